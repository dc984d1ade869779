//! The header's bytes, of the length that the frame promised. Nothing else about them is known until they are judged.

use crate::error::{Error, ErrorKind};
use crate::json::{Expected, Scan, Stop};
use crate::span::{count, narrow};
use crate::tensor::entry;
use crate::tensor::frame::{Frame, PREFIX_BYTES, in_file};
use crate::tensor::judge::{Outline, Sink};
use crate::tensor::names::{self, Blamed};
use crate::tensor::verdict::Verdict;

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

    /// A number of slots that suffices for this header if it is good: cheap to find, seldom more than needed.
    ///
    /// Each entry has an opening brace, and one more belongs to the header itself.
    #[must_use]
    pub fn slots_bound(&self) -> usize {
        let braces = self.text.iter().filter(|&&byte| byte == b'{');
        braces.fold(0, |braces: usize, _| braces.wrapping_add(1)).saturating_sub(1)
    }

    /// Scans the whole header: form is settled here, entries go to `sink`, broken rules of R2.duplicate to R4 to `verdict`.
    #[inline]
    pub(crate) fn scan(&self, verdict: &mut Verdict, sink: &mut impl Sink<'h>) -> Result<Outline, Error> {
        let first = self.text.first().copied();
        if first != Some(b'{') {
            return Err(Error::new(ErrorKind::Start { found: first }, PREFIX_BYTES));
        }
        let mut scan = Scan::new(self.text, 1);
        let mut outline = Outline::default();
        let members = self.members(&mut scan, &mut outline, verdict, sink);
        let padding = scan.clone();
        scan.white_space();
        if members.is_err() || scan.peek().is_some() || scan.saw_high_bit() {
            self.check_utf8()?;
        }
        if let Err(stop) = members {
            return Err(Error::new(
                ErrorKind::Json { expected: stop.expected, found: stop.found },
                in_file(stop.at),
            ));
        }
        if let Some(found) = scan.peek() {
            return Err(Error::new(ErrorKind::Trailing { found }, in_file(scan.at())));
        }
        outline.padding_at = padding.at();
        Ok(outline)
    }

    /// Scans from behind the opening brace to behind the closing one.
    #[inline]
    fn members(
        &self,
        scan: &mut Scan<'h>,
        outline: &mut Outline,
        verdict: &mut Verdict,
        sink: &mut impl Sink<'h>,
    ) -> Result<(), Stop> {
        scan.white_space();
        if scan.take(b'}') {
            return Ok(());
        }
        let mut expected = Expected::KeyOrClose;
        #[cfg(feature = "fast")]
        let mut last_end = crate::tensor::spelled::LastEnd::default();
        loop {
            let key_at = scan.at();
            if !scan.take(b'"') {
                return scan.stop(expected);
            }
            expected = Expected::Key;
            let key = scan.string_inline()?;
            verdict.about(key_at, key);
            if key.is(b"__metadata__") {
                scan.colon()?;
                self.metadata(scan, key_at, outline, verdict, sink)?;
            } else {
                #[cfg(feature = "fast")]
                if let Some((form, rest)) =
                    crate::tensor::spelled::entry(scan.rest, scan.at(), verdict.allowed(), &mut last_end)
                {
                    scan.rest = rest;
                    sink.tensor(key, key_at, Some(&form));
                    if let Some((b",\"", _)) = rest.split_first_chunk::<2>() {
                        scan.advance(1);
                        continue;
                    }
                    if scan.more(b'}')? {
                        continue;
                    }
                    return Ok(());
                }
                scan.colon()?;
                let object_at = scan.at();
                let parsed = entry::parse(scan, verdict)?;
                if parsed.foreign_fields {
                    self.duplicate_keys(object_at, Blamed::Tensor, verdict, sink);
                }
                sink.tensor(key, key_at, parsed.form.as_ref());
            }
            if !scan.more(b'}')? {
                return Ok(());
            }
        }
    }

    /// Scans the value of `__metadata__`.
    fn metadata(
        &self,
        scan: &mut Scan<'h>,
        key_at: u32,
        outline: &mut Outline,
        verdict: &mut Verdict,
        sink: &mut impl Sink<'h>,
    ) -> Result<(), Stop> {
        let object_at = scan.at();
        if let Some((first, _)) = outline.metadata {
            verdict.record(ErrorKind::Duplicate { first: in_file(first) }, key_at);
        } else {
            outline.metadata = Some((key_at, object_at));
        }
        match scan.peek() {
            Some(b'{') => {}
            Some(b'n') => return scan.value(1).map(|_| ()),
            _ => {
                let found = scan.value(1)?;
                verdict.record(ErrorKind::Metadata { found }, object_at);
                return Ok(());
            }
        }
        scan.advance(1);
        scan.white_space();
        let mut more = !scan.take(b'}');
        let mut expected = Expected::KeyOrClose;
        let mut last = None;
        let mut ascending = true;
        while more {
            let key_at = scan.at();
            let key = scan.key(expected)?;
            expected = Expected::Key;
            ascending = ascending && last.is_none_or(|last| last < key);
            last = Some(key);
            if scan.peek() == Some(b'"') {
                scan.advance(1);
                scan.string()?;
            } else {
                let at = scan.at();
                let found = scan.value(2)?;
                verdict.about(key_at, key);
                verdict.record(ErrorKind::Metadata { found }, at);
            }
            more = scan.more(b'}')?;
        }
        if !ascending {
            self.duplicate_keys(object_at, Blamed::Key, verdict, sink);
        }
        Ok(())
    }

    /// Looks for equal keys in an inner object that has just been scanned.
    #[cold]
    fn duplicate_keys(
        &self,
        object_at: u32,
        blamed: Blamed,
        verdict: &mut Verdict,
        sink: &mut impl Sink<'h>,
    ) {
        names::duplicate_in_object(self.text, object_at, blamed, verdict, sink);
    }

    #[cold]
    fn check_utf8(&self) -> Result<(), Error> {
        let Err(fault) = core::str::from_utf8(self.text) else { return Ok(()) };
        let found = self.text.get(fault.valid_up_to()).copied().unwrap_or_default();
        Err(Error::new(ErrorKind::Utf8 { found }, in_file(narrow(fault.valid_up_to()))))
    }
}
