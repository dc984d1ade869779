//! The JSON text of a cursor becomes its fields, each judged, with the place and the reason of the first fault.
//!
//! Strict: exactly the fields that a cursor has, each once and of its kind, and nothing behind the closing brace.

use crate::json::{Expected, Kind, Scan, valid_bytes};
use crate::span::{Offset, narrow, widen};
use core::fmt;

/// The fields of a cursor, and of what stands in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorField {
    /// The number of the shard.
    Shard,
    /// Where the next window starts.
    Offset,
    /// The generator.
    Rng,
    /// Its state.
    State,
    /// Its increment.
    Inc,
    /// The shards that the cursor belongs to.
    Shards,
    /// The name of one.
    Name,
    /// Its length in bytes.
    Bytes,
    /// How many ids it has.
    Ids,
}

impl CursorField {
    /// The key.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shard => "shard",
            Self::Offset => "offset",
            Self::Rng => "rng",
            Self::State => "state",
            Self::Inc => "inc",
            Self::Shards => "shards",
            Self::Name => "name",
            Self::Bytes => "bytes",
            Self::Ids => "ids",
        }
    }

    /// What its value is.
    const fn kind(self) -> Kind {
        match self {
            Self::Shard | Self::Offset | Self::Bytes | Self::Ids => Kind::Integer,
            Self::Rng => Kind::Object,
            Self::State | Self::Inc | Self::Name => Kind::String,
            Self::Shards => Kind::Array,
        }
    }

    const fn expected(self) -> &'static str {
        match self.kind() {
            Kind::Integer => "an integer from 0 to 2^64 - 1",
            Kind::Object => "an object",
            Kind::Array => "an array",
            _ => "a string",
        }
    }
}

/// Why a text is no cursor, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorError {
    kind: CursorErrorKind,
    at: u32,
}

/// The kinds of error; each carries what was expected and what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CursorErrorKind {
    /// It is no JSON.
    Json {
        /// What could have stood there.
        expected: Expected,
        /// The byte that stands there; `None` at the end of the text.
        found: Option<u8>,
    },
    /// It is no UTF-8.
    Utf8 {
        /// The first byte of the invalid sequence.
        found: u8,
    },
    /// Something follows the closing brace.
    Trailing {
        /// The first byte that is no white space.
        found: u8,
    },
    /// It is JSON, but no object.
    NoObject {
        /// The kind of value found.
        found: Kind,
    },
    /// A key that does not belong there.
    Unknown,
    /// A key that stood before.
    Duplicate {
        /// The key.
        field: CursorField,
    },
    /// A key is missing.
    Missing {
        /// The first one that is.
        field: CursorField,
    },
    /// The value of a key is of the wrong kind.
    Value {
        /// The key.
        field: CursorField,
        /// The kind of value found.
        found: Kind,
    },
    /// The value is not 16 hexadecimal digits.
    Hex {
        /// The key.
        field: CursorField,
    },
    /// The increment of the generator is even, and none has such.
    EvenInc,
}

impl CursorError {
    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> CursorErrorKind {
        self.kind
    }

    /// Where, from the start of the text.
    #[must_use]
    pub fn at(&self) -> Offset {
        Offset::new(self.at.into())
    }
}

/// A scan that knows the first fault.
pub(crate) struct Reader<'t> {
    pub(crate) scan: Scan<'t>,
    text: &'t [u8],
    fault: Option<CursorError>,
}

impl<'t> Reader<'t> {
    /// A reader of `text` from the place `at` on.
    pub(crate) fn new(text: &'t [u8], at: usize) -> Self {
        Self { scan: Scan::new(text, at), text, fault: None }
    }

    /// Notes a fault, unless there was one before.
    pub(crate) fn record(&mut self, kind: CursorErrorKind, at: u32) {
        // Behind the place where the text stops being JSON all is nonsense.
        if self.scan.stop.is_none() {
            self.fault = self.fault.or(Some(CursorError { kind, at }));
        }
    }

    /// What there is to say at the end of the text.
    pub(crate) fn close(mut self) -> Result<(), CursorError> {
        self.scan.white_space();
        if let Some((expected, at)) = self.scan.stop {
            let found = self.text.get(widen(at)).copied();
            return Err(CursorError { kind: CursorErrorKind::Json { expected, found }, at });
        }
        if let Some(found) = self.scan.peek() {
            return Err(CursorError { kind: CursorErrorKind::Trailing { found }, at: self.scan.at() });
        }
        let valid = valid_bytes(self.text);
        if let Some(&found) = self.text.get(valid) {
            return Err(CursorError { kind: CursorErrorKind::Utf8 { found }, at: narrow(valid) });
        }
        self.fault.map_or(Ok(()), Err)
    }

    /// Takes the value of a field; a container is opened. `false`, and it is passed over, if it is of another kind.
    pub(crate) fn value(&mut self, field: CursorField) -> bool {
        let at = self.scan.at();
        let depth = self.scan.depth;
        let found = self.scan.token();
        if found == field.kind() {
            return true;
        }
        self.record(CursorErrorKind::Value { field, found }, at);
        self.scan.leave(depth);
        false
    }

    /// Takes an object of these fields, those after the first `required` not being so; `each` takes a value.
    pub(crate) fn object(
        &mut self,
        fields: &[CursorField],
        required: usize,
        each: &mut dyn FnMut(&mut Self, CursorField),
    ) {
        let (at, depth) = (self.scan.at(), self.scan.depth);
        let found = self.scan.token();
        if found != Kind::Object {
            self.record(CursorErrorKind::NoObject { found }, at);
            return self.scan.leave(depth);
        }
        self.members(fields, required, each);
    }

    /// The same of an object that has been opened.
    pub(crate) fn members(
        &mut self,
        fields: &[CursorField],
        required: usize,
        each: &mut dyn FnMut(&mut Self, CursorField),
    ) {
        let mut seen = 0_u32;
        while self.scan.goes_on() {
            self.scan.key();
            let (key, at) = (self.scan.string, self.scan.key_at);
            let known = fields.iter().enumerate().find(|(_, field)| key.is(field.name().as_bytes()));
            match known {
                None => {
                    self.record(CursorErrorKind::Unknown, at);
                    self.scan.value();
                }
                Some((place, &field)) if seen >> (place & 31) & 1 == 1 => {
                    self.record(CursorErrorKind::Duplicate { field }, at);
                    self.scan.value();
                }
                Some((place, &field)) => {
                    seen |= 1 << (place & 31);
                    each(self, field);
                }
            }
        }
        let end = self.scan.at().wrapping_sub(1);
        for (place, &field) in fields.iter().enumerate().take(required) {
            if seen >> (place & 31) & 1 == 0 {
                self.record(CursorErrorKind::Missing { field }, end);
            }
        }
    }

    /// Takes an integer; 0 if it is none.
    pub(crate) fn integer(&mut self, field: CursorField) -> u64 {
        if self.value(field) { self.scan.integer } else { 0 }
    }

    /// Takes a string of 16 hexadecimal digits.
    pub(crate) fn hex(&mut self, field: CursorField) -> u64 {
        let at = self.scan.at();
        if !self.value(field) {
            return 0;
        }
        let (mut value, mut digits, mut good) = (0_u64, 0_u32, true);
        for char in self.scan.string.chars() {
            let digit = char.to_digit(16);
            good &= digit.is_some();
            digits = digits.wrapping_add(1);
            value = value << 4 | u64::from(digit.unwrap_or_default());
        }
        if !good || digits != 16 {
            self.record(CursorErrorKind::Hex { field }, at);
        }
        value
    }
}

impl core::error::Error for CursorError {}

impl fmt::Display for CursorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {} of the cursor: {}", self.at, self.kind)
    }
}

impl fmt::Display for CursorErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json { expected, found: None } => write!(f, "expected {expected}, found the end"),
            Self::Json { expected, found: Some(byte) } => {
                write!(f, "expected {expected}, found byte 0x{byte:02x}")
            }
            Self::Utf8 { found } => {
                write!(f, "expected UTF-8, found an invalid sequence from byte 0x{found:02x} on")
            }
            Self::Trailing { found } => {
                write!(f, "expected nothing after the closing brace, found byte 0x{found:02x}")
            }
            Self::NoObject { found } => write!(f, "expected an object, found {found}"),
            Self::Unknown => f.write_str("expected the keys of a cursor, found another one"),
            Self::Duplicate { field } => write!(f, "expected \"{}\" once, found it again", field.name()),
            Self::Missing { field } => {
                write!(f, "expected the key \"{}\", found the end of the object", field.name())
            }
            Self::Value { field, found } => {
                write!(f, "expected {} as \"{}\", found {found}", field.expected(), field.name())
            }
            Self::Hex { field } => {
                write!(f, "expected 16 hexadecimal digits as \"{}\", found others", field.name())
            }
            Self::EvenInc => f.write_str("expected an odd number as \"inc\", found an even one"),
        }
    }
}
