//! What can be wrong: a broken rule with its place, or a caller that lent too little. `Copy`, one line, no heap.

use crate::dtype::Dtype;
use crate::json::{Expected, JsonStr, Kind};
use crate::rule::Rule;
use crate::span::{Offset, Span, widen};
use core::fmt;

/// What is wrong, where, and with which tensor.
///
/// `Display` is a lower-case fragment of one line: the rule, the place, what was expected and what was found.
/// The name is given as a span of the header, so that whoever holds the header can print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    at: u64,
    /// Between the quotes, counted from the first header byte; `(0, 0)` is no name, for that byte is `{`.
    name: (u32, u32),
}

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The file breaks a rule.
    Bytes,
    /// The caller lent too little or too much; the file may be good.
    Caller,
}

/// The kinds of error; each carries what was expected and what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// R1.short: the file has only `found` bytes of the eight that hold the header's length.
    Short {
        /// The file's length in bytes.
        found: u64,
    },
    /// R1.too_large: the header's length is over the limit.
    TooLarge {
        /// The most that the caller allows, in bytes.
        limit: u64,
        /// The stated length of the header, in bytes.
        found: u64,
    },
    /// R1.past_end: the header would end behind the file's end.
    PastEnd {
        /// The stated length of the header, in bytes.
        header: u64,
        /// The file's length in bytes.
        found: u64,
    },
    /// R2.start: the header does not begin with `{`.
    Start {
        /// The byte that stands there; `None` in an empty header.
        found: Option<u8>,
    },
    /// R2.utf8: the header is not UTF-8.
    Utf8 {
        /// The first byte of the invalid sequence.
        found: u8,
    },
    /// R2.json: the header is not a JSON object.
    Json {
        /// What could have stood there.
        expected: Expected,
        /// The byte that stands there; `None` at the header's end.
        found: Option<u8>,
    },
    /// R2.trailing: something follows the header's closing brace.
    Trailing {
        /// The first byte that is no white space.
        found: u8,
    },
    /// R2.duplicate: a key that stood before.
    Duplicate {
        /// Where the first of the two keys stands, from the start of the file.
        first: u64,
    },
    /// R3.metadata: `__metadata__`, or a value in it, is of the wrong kind.
    Metadata {
        /// The kind of value found.
        found: Kind,
    },
    /// R4.field: the entry's value is no object.
    EntryKind {
        /// The kind of value found.
        found: Kind,
    },
    /// R4.field: a field that entries do not have.
    FieldUnknown,
    /// R4.field: a field that entries must have.
    FieldMissing {
        /// The first one that is missing.
        expected: Field,
    },
    /// R4.dtype: the dtype is no string.
    DtypeKind {
        /// The kind of value found.
        found: Kind,
    },
    /// R4.dtype: the dtype is no name of one.
    DtypeUnknown,
    /// R4.dtype: a dtype that the caller does not allow.
    DtypeRefused {
        /// The dtype.
        found: Dtype,
    },
    /// R4.shape: the shape is no array, or an element of it no integer of 64 bits.
    Shape {
        /// The kind of value found.
        found: Kind,
    },
    /// R4.offsets: the offsets are no array, or one of them no integer of 64 bits.
    Offsets {
        /// The kind of value found.
        found: Kind,
    },
    /// R4.offsets: not two of them.
    OffsetsCount {
        /// How many were found; three stands for more than two.
        found: u32,
    },
    /// R4.offsets: the end stands before the begin.
    OffsetsReversed {
        /// The begin.
        begin: u64,
        /// The end.
        end: u64,
    },
    /// R4.overflow: more elements, or more bits, than 64 bits can count.
    Overflow,
    /// R4.bits: the elements do not fill whole bytes.
    Bits {
        /// The total, in bits.
        found: u64,
    },
    /// R4.size: the offsets hold another number of bytes than shape and dtype.
    Size {
        /// Elements x bits / 8.
        expected: u64,
        /// End - begin.
        found: u64,
    },
    /// R5.gap: bytes that belong to no tensor.
    Gap {
        /// Where the tensor had to begin, in the data.
        expected: u64,
        /// Where it begins.
        found: u64,
    },
    /// R5.overlap: bytes that belong to two tensors.
    Overlap {
        /// Where the tensor had to begin, in the data.
        expected: u64,
        /// Where it begins.
        found: u64,
    },
    /// R5.past_end: the data ends before the last tensor does.
    DataShort {
        /// The last end, in bytes of data.
        expected: u64,
        /// The bytes of data that are there.
        found: u64,
    },
    /// R5.surplus: bytes remain after the last tensor.
    Surplus {
        /// The last end, in bytes of data.
        expected: u64,
        /// The bytes of data that are there.
        found: u64,
    },
    /// Not the file's fault: judging needs more slots than were lent.
    SlotsTooFew {
        /// How many suffice.
        needed: u64,
        /// How many were lent.
        lent: u64,
    },
    /// Not the file's fault: this header cannot be judged without slots.
    SlotsNeeded {
        /// How many suffice.
        needed: u64,
    },
    /// Not the file's fault: the caller brought another number of bytes than the frame says.
    HeaderBytes {
        /// The header's length in bytes.
        expected: u64,
        /// The number of bytes brought.
        found: u64,
    },
}

/// The fields of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `dtype`
    Dtype,
    /// `shape`
    Shape,
    /// `data_offsets`
    DataOffsets,
}

impl Field {
    /// All fields, in the order in which the reference writer spells them.
    pub const ALL: [Self; 3] = [Self::Dtype, Self::Shape, Self::DataOffsets];

    /// The key in an entry.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dtype => "dtype",
            Self::Shape => "shape",
            Self::DataOffsets => "data_offsets",
        }
    }
}

impl Error {
    /// An error at a place of the file.
    pub(crate) fn new(kind: ErrorKind, at: u64) -> Self {
        Self { kind, at, name: (0, 0) }
    }

    /// Another error from now on. The kinds are swapped: to copy one would be the only call of `memcpy` in a small firmware.
    pub(crate) fn become_with(&mut self, kind: &mut ErrorKind, at: u64, name: (u32, u32)) {
        core::mem::swap(&mut self.kind, kind);
        self.at = at;
        self.name = name;
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Where, from the start of the file.
    #[must_use]
    pub fn at(&self) -> Offset {
        Offset::new(self.at)
    }

    /// The broken rule, or `None` if the caller is to blame.
    #[must_use]
    pub fn rule(&self) -> Option<Rule> {
        self.kind.rule()
    }

    /// Whose fault it is.
    #[must_use]
    pub fn blame(&self) -> Blame {
        if self.rule().is_some() { Blame::Bytes } else { Blame::Caller }
    }

    /// The name of the tensor (or the key in `__metadata__`) as it is spelled between its quotes: a span of the header.
    #[must_use]
    pub fn name_in_header(&self) -> Option<Span> {
        if self.name == (0, 0) {
            return None;
        }
        Span::new(u64::from(self.name.0), u64::from(self.name.1))
    }

    /// The name of the tensor (or the key in `__metadata__`), if this is the header that was judged.
    #[must_use]
    pub fn name_of<'h>(&self, header: &'h [u8]) -> Option<JsonStr<'h>> {
        self.name_in_header()?;
        header.get(widen(self.name.0)..widen(self.name.1)).map(JsonStr::new)
    }
}

impl ErrorKind {
    /// A value of the kind that was found breaks the rule; of the rules that ask for a kind.
    pub(crate) const fn of_kind(rule: Rule, found: Kind) -> Self {
        match rule {
            Rule::Metadata => Self::Metadata { found },
            Rule::Field => Self::EntryKind { found },
            Rule::Dtype => Self::DtypeKind { found },
            Rule::Shape => Self::Shape { found },
            _ => Self::Offsets { found },
        }
    }

    /// The rule that an error of this kind reports; `None` for the caller's own mistakes.
    pub(crate) fn rule(self) -> Option<Rule> {
        RULES.get(usize::from(self.number())).copied().flatten()
    }
}

macro_rules! rules_of_kinds {
    ($( $kind:ident $rule:expr ),+ $(,)?) => {
        /// The kinds, without what they carry.
        #[repr(u8)]
        enum Number { $( $kind ),+ }

        impl ErrorKind {
            /// The place of the kind among the kinds. With [`RULES`] this takes a third of the code of one `match` with both.
            const fn number(self) -> u8 {
                match self { $( Self::$kind { .. } => Number::$kind as u8 ),+ }
            }
        }

        /// The rules of the kinds, by their numbers.
        const RULES: &[Option<Rule>] = &[ $( $rule ),+ ];
    };
}

rules_of_kinds! {
    Short Some(Rule::Short),
    TooLarge Some(Rule::TooLarge),
    PastEnd Some(Rule::PastEnd),
    Start Some(Rule::Start),
    Utf8 Some(Rule::Utf8),
    Json Some(Rule::Json),
    Trailing Some(Rule::Trailing),
    Duplicate Some(Rule::Duplicate),
    Metadata Some(Rule::Metadata),
    EntryKind Some(Rule::Field),
    FieldUnknown Some(Rule::Field),
    FieldMissing Some(Rule::Field),
    DtypeKind Some(Rule::Dtype),
    DtypeUnknown Some(Rule::Dtype),
    DtypeRefused Some(Rule::Dtype),
    Shape Some(Rule::Shape),
    Offsets Some(Rule::Offsets),
    OffsetsCount Some(Rule::Offsets),
    OffsetsReversed Some(Rule::Offsets),
    Overflow Some(Rule::Overflow),
    Bits Some(Rule::Bits),
    Size Some(Rule::Size),
    Gap Some(Rule::Gap),
    Overlap Some(Rule::Overlap),
    DataShort Some(Rule::DataShort),
    Surplus Some(Rule::Surplus),
    SlotsTooFew None,
    SlotsNeeded None,
    HeaderBytes None,
}

impl core::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rule) = self.rule() {
            write!(f, "{} at byte {}: ", rule.id(), self.at)?;
        }
        self.kind.fmt(f)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Short { found } => write!(f, "expected 8 bytes of header length, found a file of {found}"),
            Self::TooLarge { limit, found } => {
                write!(f, "expected a header of at most {limit} bytes, found a stated length of {found}")
            }
            Self::PastEnd { header, found } => {
                write!(f, "expected 8 + {header} bytes for the header, found a file of {found}")
            }
            Self::Start { found: None } => {
                f.write_str("expected the header to begin with '{', found an empty header")
            }
            Self::Start { found: Some(0xEF) } => {
                f.write_str("expected the header to begin with '{', found byte 0xef (a byte order mark?)")
            }
            Self::Start { found: Some(byte) } => {
                write!(f, "expected the header to begin with '{{', found {}", Found(byte))
            }
            Self::Utf8 { found } => {
                write!(f, "expected UTF-8, found an invalid sequence from byte 0x{found:02x} on")
            }
            Self::Json { expected, found: None } => {
                write!(f, "expected {expected}, found the end of the header")
            }
            Self::Json { expected: Expected::Surrogate, .. } => {
                f.write_str("expected surrogates in pairs, found a lone one")
            }
            Self::Json { expected, found: Some(byte) } => {
                write!(f, "expected {expected}, found {}", Found(byte))
            }
            Self::Trailing { found: 0 } => {
                f.write_str("expected only white space after the closing brace, found NUL padding")
            }
            Self::Trailing { found } => {
                write!(f, "expected only white space after the closing brace, found {}", Found(found))
            }
            Self::Duplicate { first } => {
                write!(f, "expected each key once, found one that stands at byte {first} too")
            }
            Self::Metadata { found } => {
                write!(f, "expected metadata to be an object of strings, or null, found {found}")
            }
            Self::EntryKind { found } => {
                write!(f, "expected an object with dtype, shape and data_offsets, found {found}")
            }
            Self::FieldUnknown => {
                f.write_str("expected only dtype, shape and data_offsets, found another field")
            }
            Self::FieldMissing { expected } => {
                write!(f, "expected the field {expected}, found the end of the entry")
            }
            Self::DtypeKind { found } => write!(f, "expected the name of a dtype, found {found}"),
            Self::DtypeUnknown => f.write_str("expected the name of a dtype, found an unknown one"),
            Self::DtypeRefused { found } => write!(f, "expected an allowed dtype, found {found}"),
            Self::Shape { found } => {
                write!(f, "expected a shape of integers from 0 to 2^64 - 1 in an array, found {found}")
            }
            Self::Offsets { found } => {
                write!(f, "expected two integers from 0 to 2^64 - 1 in an array, found {found}")
            }
            Self::OffsetsCount { found: 3 } => f.write_str("expected two offsets, found more"),
            Self::OffsetsCount { found } => write!(f, "expected two offsets, found {found}"),
            Self::OffsetsReversed { begin, end } => {
                write!(f, "expected an end of at least {begin}, where the tensor begins, found {end}")
            }
            Self::Overflow => f.write_str("expected a size that 64 bits can count, found a shape beyond"),
            Self::Bits { found } => write!(f, "expected a whole number of bytes, found {found} bits"),
            Self::Size { expected, found } => {
                write!(
                    f,
                    "expected {expected} bytes for this shape and dtype, found offsets that span {found}"
                )
            }
            Self::Gap { expected, found } => {
                write!(f, "expected the tensor to begin at {expected} of the data, found {found}: a gap")
            }
            Self::Overlap { expected, found } => {
                write!(f, "expected the tensor to begin at {expected} of the data, found {found}: an overlap")
            }
            Self::DataShort { expected, found } => write!(
                f,
                "expected {expected} bytes of data, found {found}: the file is short by {}",
                expected.saturating_sub(found)
            ),
            Self::Surplus { expected, found } => write!(
                f,
                "expected {expected} bytes of data, found {found}: {} surplus",
                found.saturating_sub(expected)
            ),
            Self::SlotsTooFew { needed, lent } => write!(f, "{needed} slots are needed, {lent} were lent"),
            Self::SlotsNeeded { needed } => write!(f, "this header is judged in {needed} slots, not without"),
            Self::HeaderBytes { expected, found } => {
                write!(f, "the header has {expected} bytes, {found} were brought")
            }
        }
    }
}

/// A byte as a message shows it.
struct Found(u8);

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_ascii_graphic() {
            write!(f, "'{}'", char::from(self.0))
        } else {
            write!(f, "byte 0x{:02x}", self.0)
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::format;
    use std::string::ToString;

    /// What each kind says; the first word of all that break a rule is "expected".
    const WORDS: [(ErrorKind, &str); 40] = [
        (ErrorKind::Short { found: 7 }, "8 bytes of header length, found a file of 7"),
        (
            ErrorKind::TooLarge { limit: 10, found: 11 },
            "a header of at most 10 bytes, found a stated length of 11",
        ),
        (ErrorKind::PastEnd { header: 2, found: 9 }, "8 + 2 bytes for the header, found a file of 9"),
        (ErrorKind::Start { found: None }, "the header to begin with '{', found an empty header"),
        (
            ErrorKind::Start { found: Some(0xEF) },
            "the header to begin with '{', found byte 0xef (a byte order mark?)",
        ),
        (ErrorKind::Start { found: Some(b'[') }, "the header to begin with '{', found '['"),
        (ErrorKind::Start { found: Some(b' ') }, "the header to begin with '{', found byte 0x20"),
        (ErrorKind::Utf8 { found: 0xC0 }, "UTF-8, found an invalid sequence from byte 0xc0 on"),
        (json(Expected::Value, None), "a JSON value, found the end of the header"),
        (json(Expected::KeyOrClose, Some(b',')), "a key or '}', found ','"),
        (json(Expected::Key, Some(b'}')), "a key, found '}'"),
        (json(Expected::Colon, Some(b'\n')), "':', found byte 0x0a"),
        (json(Expected::CommaOrClose, Some(b'"')), "',' or a closing bracket, found '\"'"),
        (json(Expected::Digit, Some(b'-')), "a digit, found '-'"),
        (json(Expected::Literal, Some(b'N')), "true, false or null, found 'N'"),
        (
            json(Expected::Character, Some(0x1F)),
            "a character of the string or its closing quote, found byte 0x1f",
        ),
        (json(Expected::Escape, Some(b'\\')), "an escape of JSON, found '\\'"),
        (json(Expected::Surrogate, Some(b'\\')), "surrogates in pairs, found a lone one"),
        (json(Expected::Surrogate, None), "surrogates in pairs, found the end of the header"),
        (json(Expected::Shallower, Some(b'{')), "at most 127 open brackets, found '{'"),
        (ErrorKind::Trailing { found: 0 }, "only white space after the closing brace, found NUL padding"),
        (ErrorKind::Trailing { found: b'}' }, "only white space after the closing brace, found '}'"),
        (ErrorKind::Duplicate { first: 9 }, "each key once, found one that stands at byte 9 too"),
        (
            ErrorKind::Metadata { found: Kind::Array },
            "metadata to be an object of strings, or null, found an array",
        ),
        (
            ErrorKind::EntryKind { found: Kind::String },
            "an object with dtype, shape and data_offsets, found a string",
        ),
        (ErrorKind::FieldUnknown, "only dtype, shape and data_offsets, found another field"),
        (
            ErrorKind::FieldMissing { expected: Field::DataOffsets },
            "the field data_offsets, found the end of the entry",
        ),
        (ErrorKind::DtypeKind { found: Kind::Bool }, "the name of a dtype, found a truth value"),
        (ErrorKind::DtypeUnknown, "the name of a dtype, found an unknown one"),
        (ErrorKind::DtypeRefused { found: Dtype::Bf16 }, "an allowed dtype, found BF16"),
        (
            ErrorKind::Shape { found: Kind::Number },
            "a shape of integers from 0 to 2^64 - 1 in an array, found a number that is no such integer",
        ),
        (
            ErrorKind::Offsets { found: Kind::Object },
            "two integers from 0 to 2^64 - 1 in an array, found an object",
        ),
        (ErrorKind::OffsetsCount { found: 3 }, "two offsets, found more"),
        (ErrorKind::OffsetsCount { found: 1 }, "two offsets, found 1"),
        (
            ErrorKind::OffsetsReversed { begin: 4, end: 3 },
            "an end of at least 4, where the tensor begins, found 3",
        ),
        (ErrorKind::Overflow, "a size that 64 bits can count, found a shape beyond"),
        (ErrorKind::Bits { found: 12 }, "a whole number of bytes, found 12 bits"),
        (
            ErrorKind::Size { expected: 4, found: 5 },
            "4 bytes for this shape and dtype, found offsets that span 5",
        ),
        (ErrorKind::DataShort { expected: 9, found: 7 }, "9 bytes of data, found 7: the file is short by 2"),
        (ErrorKind::Surplus { expected: 7, found: 9 }, "7 bytes of data, found 9: 2 surplus"),
    ];

    const fn json(expected: Expected, found: Option<u8>) -> ErrorKind {
        ErrorKind::Json { expected, found }
    }

    #[test]
    fn errors_say_what_was_expected_and_found() {
        for (kind, words) in WORDS {
            assert_eq!(kind.to_string(), format!("expected {words}"));
            let error = Error::new(kind, 8);
            let rule = error.rule().unwrap();
            assert_eq!(error.to_string(), format!("{rule} at byte 8: {kind}"));
            assert_eq!(error.blame(), Blame::Bytes);
        }
        for (kind, words) in [(Kind::Integer, "an integer"), (Kind::Null, "null")] {
            assert_eq!(kind.to_string(), words);
        }
    }

    /// Where two tensors are concerned the place is told in the data, and whose fault it is not says no rule.
    #[test]
    fn errors_between_tensors_and_of_callers() {
        let cases = [
            (
                ErrorKind::Gap { expected: 4, found: 6 },
                "R5.gap at byte 8: expected the tensor to begin at 4 of the data, found 6: a gap",
            ),
            (
                ErrorKind::Overlap { expected: 4, found: 2 },
                "R5.overlap at byte 8: expected the tensor to begin at 4 of the data, found 2: an overlap",
            ),
            (ErrorKind::SlotsTooFew { needed: 3, lent: 2 }, "3 slots are needed, 2 were lent"),
            (ErrorKind::SlotsNeeded { needed: 3 }, "this header is judged in 3 slots, not without"),
            (ErrorKind::HeaderBytes { expected: 3, found: 2 }, "the header has 3 bytes, 2 were brought"),
        ];
        for (kind, words) in cases {
            let error = Error::new(kind, 8);
            assert_eq!(error.to_string(), words);
            assert_eq!(error.blame() == Blame::Caller, error.rule().is_none());
        }
    }
}
