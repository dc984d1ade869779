//! The value of a key becomes an entry: dtype, shape and offsets, each rule of R4 checked on the way.

use crate::dtype::Dtype;
use crate::error::{ErrorKind, Field};
#[cfg(feature = "fast")]
use crate::json::words;
use crate::json::{JsonStr, Kind, Scan};
use crate::rule::Rule;
use crate::span::{Span, multiply, widen};
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

/// An entry while its fields come in, in any order.
pub(crate) struct Fields {
    /// The opening quotes of the fields' keys, in the order of [`Field::ALL`]; 0 while a field is missing.
    keys_at: [u32; 3],
    form: Form,
    /// The number of elements.
    elements: u64,
    offsets_at: u32,
    /// It has fields that entries do not have; duplicates among them are still to be found.
    pub(crate) foreign: bool,
    /// No rule is broken.
    sound: bool,
}

impl Fields {
    /// An entry without fields.
    pub(crate) fn new() -> Self {
        Self {
            keys_at: [0; 3],
            form: Form { dtype: Dtype::Bool, shape_at: 0, begin: 0, end: u64::MAX },
            elements: 1,
            offsets_at: 0,
            foreign: false,
            sound: false,
        }
    }

    /// What they say; `None` if they break a rule, which the verdict knows.
    pub(crate) fn form(&self) -> Option<&Form> {
        self.sound.then_some(&self.form)
    }

    /// Scans the value of an entry, of any form.
    pub(crate) fn scan(&mut self, scan: &mut Scan<'_>, verdict: &mut Verdict) {
        let faults = verdict.faults();
        if !verdict.expect(scan, Kind::Object, Rule::Field) {
            return;
        }
        while scan.goes_on() {
            scan.key();
            let key_at = scan.key_at;
            let mut known = Field::ALL.iter().zip(&mut self.keys_at);
            match known.find(|(field, _)| scan.string.is(field.name().as_bytes())) {
                None => {
                    self.foreign = true;
                    verdict.record(ErrorKind::FieldUnknown, key_at);
                    scan.value();
                }
                Some((_, &mut first)) if first != 0 => {
                    verdict.record(ErrorKind::Duplicate { first: in_file(first) }, key_at);
                    scan.value();
                }
                Some((field, missing)) => {
                    *missing = key_at;
                    match field {
                        Field::Dtype => self.dtype(scan, verdict),
                        Field::Shape | Field::DataOffsets => self.integers(*field, scan, verdict),
                    }
                }
            }
        }
        for (&expected, &key_at) in Field::ALL.iter().zip(&self.keys_at) {
            if key_at == 0 {
                verdict.record(ErrorKind::FieldMissing { expected }, scan.at().wrapping_sub(1));
            }
        }
        if verdict.faults() == faults {
            self.close(verdict);
        }
        self.sound = verdict.faults() == faults;
    }

    /// The value of the field `dtype`.
    fn dtype(&mut self, scan: &mut Scan<'_>, verdict: &mut Verdict) {
        let at = scan.at();
        #[cfg(feature = "fast")]
        if let Some((_, name)) = scan.rest.split_first()
            && scan.peek() == Some(b'"')
            && let Some((found, rest)) = Dtype::before_quote(name)
            && verdict.allowed().contains(found)
        {
            self.form.dtype = found;
            scan.rest = rest;
            scan.advance(1);
            return;
        }
        if verdict.expect(scan, Kind::String, Rule::Dtype) {
            match Dtype::from_json(scan.string) {
                Some(found) if verdict.allowed().contains(found) => self.form.dtype = found,
                Some(found) => verdict.record(ErrorKind::DtypeRefused { found }, at),
                None => verdict.record(ErrorKind::DtypeUnknown, at),
            }
        }
    }

    /// The value of the field `shape` or `data_offsets`. Elements are judged from left to right; the verdict keeps the
    /// first break.
    fn integers(&mut self, field: Field, scan: &mut Scan<'_>, verdict: &mut Verdict) {
        let is_shape = field == Field::Shape;
        let (rule, place) = if is_shape {
            (Rule::Shape, &mut self.form.shape_at)
        } else {
            (Rule::Offsets, &mut self.offsets_at)
        };
        *place = scan.at();
        if !verdict.expect(scan, Kind::Array, rule) {
            return;
        }
        let mut count = 0_u32;
        while scan.goes_on() {
            #[cfg(feature = "fast")]
            if is_shape {
                self.factors(scan, verdict);
            } else if count > 2 {
                scan.scalars();
            }
            count = count.wrapping_add(1);
            let at = scan.at();
            if !verdict.expect(scan, Kind::Integer, rule) {
                continue;
            }
            let (begin, value) = (self.form.begin, scan.integer);
            match count {
                // Rules of single fields stand before this one, so it does no harm that it is noted already.
                _ if is_shape => {
                    if !multiply(&mut self.elements, value, 0) {
                        verdict.record(ErrorKind::Overflow, self.form.shape_at);
                    }
                }
                1 => self.form.begin = value,
                2 if value < begin => verdict.record(ErrorKind::OffsetsReversed { begin, end: value }, at),
                2 => self.form.end = value,
                _ => verdict.record(ErrorKind::OffsetsCount { found: 3 }, at),
            }
        }
        if count < 2 && !is_shape {
            verdict.record(ErrorKind::OffsetsCount { found: count }, scan.at().wrapping_sub(1));
        }
    }

    /// Takes the dimensions that have a comma behind them, as long as there is nothing remarkable about them.
    #[cfg(feature = "fast")]
    fn factors(&mut self, scan: &mut Scan<'_>, verdict: &mut Verdict) {
        loop {
            let (factor, rest) = match words::four_factors(scan.rest) {
                Some(found) => found,
                None => match words::plain_integer(scan.rest) {
                    Some((value, [b',', rest @ ..])) => (value, rest),
                    _ => return,
                },
            };
            scan.rest = rest;
            scan.white_space();
            if !multiply(&mut self.elements, factor, 0) {
                verdict.record(ErrorKind::Overflow, self.form.shape_at);
            }
        }
    }

    /// The rules that need several fields, of which all are there and sound.
    fn close(&self, verdict: &mut Verdict) {
        let Form { dtype, shape_at, begin, end } = self.form;
        let Some(bits) = dtype.total_bits(self.elements) else {
            return verdict.record(ErrorKind::Overflow, shape_at);
        };
        let (expected, found) = (bits >> 3, end.wrapping_sub(begin));
        if bits & 7 != 0 {
            verdict.record(ErrorKind::Bits { found: bits }, shape_at);
        } else if found != expected {
            verdict.record(ErrorKind::Size { expected, found }, self.offsets_at);
        }
    }
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
#[derive(Clone, Copy)]
pub(crate) struct Members<'h> {
    text: &'h [u8],
    /// Behind the brace or the member before.
    at: u32,
}

impl Member<'_> {
    /// The form of the entry that it is, which has been judged before; `None` for the metadata.
    pub(crate) fn form_again(&self, text: &[u8]) -> Option<Form> {
        if self.key.is(b"__metadata__") {
            return None;
        }
        let mut scan = Scan::new(text, widen(self.value_at));
        let mut fields = Fields::new();
        fields.scan(&mut scan, &mut Verdict::new(Default::default()));
        fields.form().copied()
    }
}

impl<'h> Members<'h> {
    /// The members of the object whose opening brace is at this place of the header.
    pub(crate) fn new(text: &'h [u8], object_at: u32) -> Self {
        Self { text, at: object_at.saturating_add(1) }
    }

    /// The place behind the last member that was given.
    pub(crate) fn at(&self) -> u32 {
        self.at
    }

    /// The members from the key at this place on.
    pub(crate) fn from_key(text: &'h [u8], key_at: u32) -> Self {
        Self { text, at: key_at }
    }
}

impl<'h> Iterator for Members<'h> {
    type Item = Member<'h>;

    fn next(&mut self) -> Option<Member<'h>> {
        let mut scan = Scan::new(self.text, widen(self.at));
        scan.white_space();
        scan.take(b',');
        scan.white_space();
        scan.key();
        let (key, key_at, value_at) = (scan.string, scan.key_at, scan.at());
        scan.value();
        self.at = scan.at();
        if scan.stop.is_some() { None } else { Some(Member { key, key_at, value_at }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shapes are what they say, however it is spelled.
    #[test]
    fn shapes_are_compared_by_their_dimensions() {
        const SPELLED: [(&[u8], &[u8]); 4] =
            [(b"[]", b"[ ]"), (b"[0]", b"[\t0]"), (b"[2,3]", b"[2 , 3],[4]"), (b"[3,2]", b"[\r\n3,2 ]")];
        for (place, (one, _)) in SPELLED.iter().enumerate() {
            for (other_place, (_, other)) in SPELLED.iter().enumerate() {
                assert_eq!(Shape::new(one) == Shape::new(other), place == other_place);
            }
        }
    }
}
