//! The value of a key becomes an entry: dtype, shape and offsets, each rule of R4 checked on the way.

use crate::dtype::Dtype;
use crate::error::{ErrorKind, Field};
use crate::json::{Expected, JsonStr, Kind, Scan, Stop};
use crate::span::{Span, widen};
use crate::tensor::frame::in_file;
use crate::tensor::verdict::Verdict;

/// A tensor as the header describes it. Its bytes are elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'h> {
    pub(crate) name: JsonStr<'h>,
    pub(crate) dtype: Dtype,
    pub(crate) shape: Shape<'h>,
    pub(crate) span: Span,
}

impl<'h> Entry<'h> {
    /// The tensor's name.
    #[must_use]
    pub fn name(&self) -> JsonStr<'h> {
        self.name
    }

    /// What its elements are.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Its dimensions, outermost first.
    #[must_use]
    pub fn shape(&self) -> Shape<'h> {
        self.shape
    }

    /// Its bytes, counted from the start of the data.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }
}

/// A shape, still spelled as in the header: any rank, no memory of its own.
///
/// ```
/// # use safestep_core::Shape;
/// assert_eq!(Shape::new(b"[2, 3]").dims().collect::<Vec<_>>(), [2, 3]);
/// ```
#[derive(Clone, Copy)]
pub struct Shape<'h> {
    text: &'h [u8],
}

impl<'h> Shape<'h> {
    /// The shape that a JSON array of integers spells. Anything else gives some shape or other.
    #[must_use]
    pub fn new(text: &'h [u8]) -> Self {
        Self { text }
    }

    /// The dimensions, outermost first.
    pub fn dims(&self) -> impl Iterator<Item = u64> + Clone + 'h {
        Dims { text: self.text }
    }

    /// The number of dimensions; a scalar has none.
    #[must_use]
    pub fn rank(&self) -> u64 {
        self.dims().fold(0, |rank, _| u64::wrapping_add(rank, 1))
    }

    /// The number of elements, or `None` beyond `u64::MAX`.
    #[must_use]
    pub fn elements(&self) -> Option<u64> {
        self.dims().try_fold(1, u64::checked_mul)
    }
}

impl PartialEq for Shape<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.dims().eq(other.dims())
    }
}

impl Eq for Shape<'_> {}

impl core::fmt::Debug for Shape<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.dims()).finish()
    }
}

impl core::fmt::Display for Shape<'_> {
    /// As in Python: `[2, 3]`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(self, f)
    }
}

#[derive(Clone)]
struct Dims<'h> {
    text: &'h [u8],
}

impl Iterator for Dims<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let mut value = None;
        while let Some((&byte, tail)) = self.text.split_first() {
            if byte.is_ascii_digit() {
                let digit = u64::from(byte & 15);
                value = Some(value.map_or(digit, |value: u64| value.wrapping_mul(10).wrapping_add(digit)));
            } else if value.is_some() || byte == b']' {
                break;
            }
            self.text = tail;
        }
        value
    }
}

/// The form of an entry: what its fields say, and where they stand in the header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) dtype: Dtype,
    /// The shape's opening bracket.
    pub(crate) shape_at: u32,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// The fields of one entry while they come in, in any order.
#[derive(Default)]
struct Fields {
    dtype: Option<Found<Dtype>>,
    shape: Option<Found<Elements>>,
    offsets: Option<Found<(u64, u64)>>,
}

/// The number of elements; `None` beyond 64 bits.
type Elements = Option<u64>;

/// A field that stands in the entry.
struct Found<T> {
    /// Its key's opening quote.
    key_at: u32,
    /// Its value's first byte.
    at: u32,
    /// `None`: the value breaks a rule, which the verdict knows.
    value: Option<T>,
}

/// What an entry gave.
pub(crate) struct Parsed {
    /// `None`: the entry breaks a rule, which the verdict knows.
    pub(crate) form: Option<Form>,
    /// It has fields that entries do not have; duplicates among them are still to be found.
    pub(crate) foreign_fields: bool,
}

/// Scans the value of an entry, of any form.
pub(crate) fn parse(scan: &mut Scan<'_>, verdict: &mut Verdict) -> Result<Parsed, Stop> {
    let at = scan.at();
    if scan.peek() != Some(b'{') {
        let found = scan.value(1)?;
        verdict.record(ErrorKind::EntryKind { found }, at);
        return Ok(Parsed { form: None, foreign_fields: false });
    }
    scan.advance(1);
    scan.white_space();
    let mut fields = Fields::default();
    let mut foreign_fields = false;
    let mut expected = Expected::KeyOrClose;
    let mut close = scan.at();
    let mut more = scan.peek() != Some(b'}');
    if !more {
        scan.advance(1);
    }
    while more {
        let key_at = scan.at();
        let key = scan.key(expected)?;
        expected = Expected::Key;
        let at = scan.at();
        if key.is(b"dtype") {
            if fresh(&fields.dtype, key_at, verdict) {
                fields.dtype = Some(Found { key_at, at, value: dtype(scan, verdict)? });
            } else {
                scan.value(2)?;
            }
        } else if key.is(b"shape") {
            if fresh(&fields.shape, key_at, verdict) {
                fields.shape = Some(Found { key_at, at, value: shape(scan, verdict)? });
            } else {
                scan.value(2)?;
            }
        } else if key.is(b"data_offsets") {
            if fresh(&fields.offsets, key_at, verdict) {
                fields.offsets = Some(Found { key_at, at, value: offsets(scan, verdict)? });
            } else {
                scan.value(2)?;
            }
        } else {
            foreign_fields = true;
            verdict.record(ErrorKind::FieldUnknown, key_at);
            scan.value(2)?;
        }
        scan.white_space();
        close = scan.at();
        more = scan.more(b'}')?;
    }
    Ok(Parsed { form: fields.close(close, verdict), foreign_fields })
}

/// Whether the field did not stand in the entry before.
fn fresh<T>(field: &Option<Found<T>>, key_at: u32, verdict: &mut Verdict) -> bool {
    let Some(first) = field else { return true };
    verdict.record(ErrorKind::Duplicate { first: in_file(first.key_at) }, key_at);
    false
}

impl Fields {
    /// The rules that need several fields, at the entry's closing brace.
    fn close(self, close: u32, verdict: &mut Verdict) -> Option<Form> {
        let (Some(dtype), Some(shape), Some(offsets)) = (&self.dtype, &self.shape, &self.offsets) else {
            let expected = match (&self.dtype, &self.shape) {
                (None, _) => Field::Dtype,
                (_, None) => Field::Shape,
                _ => Field::DataOffsets,
            };
            verdict.record(ErrorKind::FieldMissing { expected }, close);
            return None;
        };
        let (dtype, elements, (begin, end)) = (dtype.value?, shape.value?, offsets.value?);
        let Some(bits) = elements.and_then(|elements| dtype.total_bits(elements)) else {
            verdict.record(ErrorKind::Overflow, shape.at);
            return None;
        };
        if bits & 7 != 0 {
            verdict.record(ErrorKind::Bits { found: bits }, shape.at);
            return None;
        }
        let found = end.wrapping_sub(begin);
        if found != bits >> 3 {
            verdict.record(ErrorKind::Size { expected: bits >> 3, found }, offsets.at);
            return None;
        }
        Some(Form { dtype, shape_at: shape.at, begin, end })
    }
}

/// The value of the field `dtype`.
fn dtype(scan: &mut Scan<'_>, verdict: &mut Verdict) -> Result<Option<Dtype>, Stop> {
    let at = scan.at();
    if !scan.take(b'"') {
        let found = scan.value(2)?;
        verdict.record(ErrorKind::DtypeKind { found }, at);
        return Ok(None);
    }
    let name = scan.string()?;
    let found = Dtype::from_bytes(name.bytes());
    match found {
        None => verdict.record(ErrorKind::DtypeUnknown, at),
        Some(found) if !verdict.allowed().contains(found) => {
            verdict.record(ErrorKind::DtypeRefused { found }, at);
            return Ok(None);
        }
        Some(_) => {}
    }
    Ok(found)
}

/// Scans an array of integers and hands them over one by one; `None` if it is none.
///
/// `fault` makes the error of a value that is of another kind; `element` gets each integer and its place.
fn integers(
    scan: &mut Scan<'_>,
    verdict: &mut Verdict,
    fault: fn(Kind) -> ErrorKind,
    element: &mut dyn FnMut(u64, u32, &mut Verdict),
) -> Result<Option<u32>, Stop> {
    let at = scan.at();
    if !scan.take(b'[') {
        let found = scan.value(2)?;
        verdict.record(fault(found), at);
        return Ok(None);
    }
    scan.white_space();
    if scan.peek() == Some(b']') {
        let close = scan.at();
        scan.advance(1);
        return Ok(Some(close));
    }
    let mut sound = true;
    loop {
        let at = scan.at();
        let value = match scan.peek() {
            Some(b'0'..=b'9') => scan.number()?.ok_or(Kind::Number),
            _ => Err(scan.value(3)?),
        };
        match value {
            Ok(value) if sound => element(value, at, verdict),
            Ok(_) => {}
            Err(found) => {
                if sound {
                    verdict.record(fault(found), at);
                }
                sound = false;
            }
        }
        scan.white_space();
        let close = scan.at();
        if !scan.more(b']')? {
            return Ok(sound.then_some(close));
        }
    }
}

/// The value of the field `shape`: the number of elements.
fn shape(scan: &mut Scan<'_>, verdict: &mut Verdict) -> Result<Option<Elements>, Stop> {
    let mut elements: Elements = Some(1);
    let sound = integers(scan, verdict, |found| ErrorKind::Shape { found }, &mut |dim, _, _| {
        elements = elements.and_then(|elements| elements.checked_mul(dim));
    })?;
    Ok(sound.map(|_| elements))
}

/// The value of the field `data_offsets`: begin and end.
fn offsets(scan: &mut Scan<'_>, verdict: &mut Verdict) -> Result<Option<(u64, u64)>, Stop> {
    let (mut begin, mut end, mut count) = (0, 0, 0_u32);
    let mut broken = false;
    let close = integers(scan, verdict, |found| ErrorKind::Offsets { found }, &mut |value, at, verdict| {
        count = count.saturating_add(1);
        match count {
            1 => begin = value,
            2 => {
                end = value;
                if end < begin {
                    broken = true;
                    verdict.record(ErrorKind::OffsetsReversed { begin, end }, at);
                }
            }
            _ => {
                broken = true;
                verdict.record(ErrorKind::OffsetsCount { found: 3 }, at);
            }
        }
    })?;
    let Some(close) = close else { return Ok(None) };
    if count < 2 {
        verdict.record(ErrorKind::OffsetsCount { found: count }, close);
        return Ok(None);
    }
    Ok((!broken).then_some((begin, end)))
}

/// A key and its value in an object that has been scanned before.
#[derive(Clone, Copy)]
pub(crate) struct Member<'h> {
    pub(crate) key: JsonStr<'h>,
    /// The key's opening quote.
    pub(crate) key_at: u32,
    /// The value's first byte.
    pub(crate) value_at: u32,
}

/// The members of an object that has been scanned before.
#[derive(Clone)]
pub(crate) struct Members<'h> {
    scan: Scan<'h>,
}

impl<'h> Members<'h> {
    /// The members of the object whose opening brace is at this place of the header.
    pub(crate) fn new(header: &'h [u8], object_at: u32) -> Self {
        Self::from_key(header, object_at.saturating_add(1))
    }

    /// The members from the key at this place on.
    pub(crate) fn from_key(header: &'h [u8], key_at: u32) -> Self {
        Self { scan: Scan::new(header, widen(key_at)) }
    }
}

impl<'h> Iterator for Members<'h> {
    type Item = Member<'h>;

    fn next(&mut self) -> Option<Member<'h>> {
        self.scan.white_space();
        self.scan.take(b',');
        self.scan.white_space();
        let key_at = self.scan.at();
        let key = self.scan.key(Expected::Key).ok()?;
        let value_at = self.scan.at();
        self.scan.value(1).ok()?;
        Some(Member { key, key_at, value_at })
    }
}
