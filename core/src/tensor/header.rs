//! The header's bytes, of the length that the frame promised. Nothing else about them is known until they are judged.

use crate::error::{Error, ErrorKind};
use crate::json::{Kind, Scan, valid_bytes};
use crate::rule::Rule;
use crate::span::{count, narrow, widen};
use crate::tensor::entry::Fields;
use crate::tensor::frame::{Frame, in_file};
use crate::tensor::judge::{Outline, Sink};
use crate::tensor::names;
use crate::tensor::verdict::{Blamed, Verdict};

/// The bytes of a header and the frame around it.
///
/// There are two ways on, with the same verdict: [`Index::build`](crate::Index::build) with one slot a tensor,
/// and [`judge`](Self::judge) with no memory at all.
#[derive(Clone, Copy, Debug)]
pub struct Header<'h> {
    frame: Frame,
    text: &'h [u8],
}

impl Frame {
    /// The frame filled with its header's bytes, which are not yet judged.
    ///
    /// # Errors
    /// [`ErrorKind::HeaderBytes`] if `bytes` is not [`header_len`](Self::header_len) long.
    pub fn header<'h>(&self, bytes: &'h [u8]) -> Result<Header<'h>, Error> {
        let found = count(bytes.len());
        if found != self.header_len().value() {
            return Err(Error::new(ErrorKind::HeaderBytes { expected: self.header_len().value(), found }, 0));
        }
        Ok(Header::new(*self, bytes))
    }
}

impl<'h> Header<'h> {
    pub(crate) fn new(frame: Frame, text: &'h [u8]) -> Self {
        Self { frame, text }
    }

    /// The frame that it fills.
    #[must_use]
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Its bytes: JSON and padding.
    #[must_use]
    pub fn text(&self) -> &'h [u8] {
        self.text
    }

    /// A number of slots that suffices for the tensors of this header if it is good: cheap to find, seldom more than needed.
    ///
    /// Long metadata whose keys are out of order, or entries with many unknown fields, may want more to find equal keys;
    /// [`Index::build`](crate::Index::build) then answers with the number ([`ErrorKind::SlotsTooFew`]). Good for one retry.
    ///
    /// Each entry has an opening brace, and one more belongs to the header itself; and no entry is shorter than 49
    /// bytes, so that a string of braces asks for no more memory than the header takes itself.
    #[must_use]
    pub fn slots_bound(&self) -> usize {
        // Few enough for a byte, so that vectors can count.
        let (chunks, rest) = self.text.as_chunks::<64>();
        let braces =
            |bytes: &[u8]| bytes.iter().fold(0_u8, |n, &byte| n.wrapping_add(u8::from(byte == b'{')));
        let counts = chunks.iter().map(|chunk| braces(chunk)).chain([braces(rest)]);
        let braces = counts.fold(0, |sum: usize, count| sum.wrapping_add(usize::from(count)));
        braces.saturating_sub(1).min(self.text.len().checked_div(ENTRY_BYTES_MIN).unwrap_or_default())
    }

    /// Scans the whole header: entries go to `sink`, broken rules of R2 to R4 to `verdict`.
    #[inline]
    pub(crate) fn scan(&self, verdict: &mut Verdict, sink: &mut impl Sink<'h>) -> Outline {
        let mut outline = Outline::default();
        let mut scan = Scan::new(self.text, 0);
        let first = scan.peek();
        if first != Some(b'{') {
            verdict.record(ErrorKind::Start { found: first }, 0);
            return outline;
        }
        self.members(&mut scan, &mut outline, verdict, sink);
        verdict.name = (0, 0);
        outline.padding_at = scan.at();
        scan.white_space();
        if let Some((expected, at)) = scan.stop {
            let found = self.text.get(widen(at)).copied();
            verdict.record(ErrorKind::Json { expected, found }, at);
        } else if let Some(found) = scan.peek() {
            verdict.record(ErrorKind::Trailing { found }, scan.at());
        } else if !scan.saw_high_bit() {
            return outline;
        }
        let valid = valid_bytes(self.text);
        if let Some(&found) = self.text.get(valid) {
            verdict.record(ErrorKind::Utf8 { found }, narrow(valid));
        }
        outline
    }

    /// Scans from the opening brace to behind the closing one.
    #[inline]
    fn members(
        &self,
        scan: &mut Scan<'h>,
        outline: &mut Outline,
        verdict: &mut Verdict,
        sink: &mut impl Sink<'h>,
    ) {
        #[cfg(feature = "fast")]
        let mut last_end = crate::tensor::spelled::LastEnd::default();
        #[cfg(feature = "fast")]
        let mut patterns = crate::tensor::pattern::Patterns::default();
        scan.open(true);
        let mut goes_on = scan.goes_on();
        while goes_on {
            scan.quote();
            let key_at = scan.key_at;
            let key = scan.string_inline();
            verdict.about(key_at, key);
            let is_metadata = key.is(b"__metadata__");
            #[cfg(feature = "fast")]
            if !is_metadata
                && let Some((form, rest)) =
                    crate::tensor::spelled::entry(scan.rest, scan.at(), verdict.allowed(), &mut last_end)
                        .or_else(|| patterns.entry(scan.rest, scan.at(), verdict.allowed()))
            {
                scan.rest = rest;
                sink.tensor(key, key_at, Some(&form));
                if let Some((b",\"", _)) = rest.split_first_chunk::<2>() {
                    scan.advance(1);
                } else if let Some(distance) = patterns.next(rest) {
                    scan.advance(distance);
                } else {
                    goes_on = scan.goes_on();
                }
                continue;
            }
            #[cfg(feature = "fast")]
            let start = scan.rest;
            scan.colon();
            let object_at = scan.at();
            if is_metadata {
                if metadata(scan, key_at, outline, verdict) {
                    self.duplicate_keys(object_at, Blamed::Key, verdict, sink);
                }
            } else {
                let mut fields = Fields::new();
                fields.scan(scan, verdict);
                if fields.foreign {
                    self.duplicate_keys(object_at, Blamed::Tensor, verdict, sink);
                }
                #[cfg(feature = "fast")]
                if fields.form().is_some() {
                    patterns.learn(start, start.len().wrapping_sub(scan.rest.len()));
                }
                sink.tensor(key, key_at, fields.form());
            }
            goes_on = scan.goes_on();
        }
    }

    /// Looks for equal keys in an inner object that has just been scanned.
    #[cfg_attr(feature = "fast", inline(never))]
    fn duplicate_keys(
        &self,
        object_at: u32,
        blamed: Blamed,
        verdict: &mut Verdict,
        sink: &mut impl Sink<'h>,
    ) {
        names::duplicate_in_object(self.text, object_at, blamed, verdict, sink);
    }
}

/// The length of `"":{"dtype":"U8","shape":[],"data_offsets":[0,1]}`, than which no sound entry is shorter.
const ENTRY_BYTES_MIN: usize = 49;

/// Scans the value of `__metadata__`; the answer is whether keys stand out of order, so that some may be equal.
fn metadata(scan: &mut Scan<'_>, key_at: u32, outline: &mut Outline, verdict: &mut Verdict) -> bool {
    if let Some((first, _)) = outline.metadata {
        verdict.record(ErrorKind::Duplicate { first: in_file(first) }, key_at);
    } else {
        outline.metadata = Some((key_at, scan.at()));
    }
    if scan.peek() == Some(b'n') {
        scan.token();
        return false;
    }
    let mut ascending = true;
    if verdict.expect(scan, Kind::Object, Rule::Metadata) {
        let mut last = None;
        while scan.goes_on() {
            scan.key();
            let key = scan.string;
            ascending = ascending && last.is_none_or(|last| last < key);
            last = Some(key);
            verdict.about(scan.key_at, key);
            verdict.expect(scan, Kind::String, Rule::Metadata);
        }
    }
    !ascending
}
