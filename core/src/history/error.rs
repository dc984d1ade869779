//! What can be wrong with a line of a history, or with a state: the rule, the place, what was expected and what was found.

use crate::json::{Expected, Kind};
use crate::limits::LOSS_LINE_BYTES_MAX;
use crate::span::{Offset, widen};
use core::fmt;

/// What is wrong, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineError {
    kind: LineErrorKind,
    at: u32,
}

/// The members that a line is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// `loss`, of an entry.
    Loss,
    /// `step`, of an entry.
    Step,
    /// `resume`, of a mark.
    Resume,
}

/// The kinds of error; each carries what was expected and what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineErrorKind {
    /// H1.long: the line is longer than [`LOSS_LINE_BYTES_MAX`](crate::limits::LOSS_LINE_BYTES_MAX).
    Long,
    /// H1.object: the line does not begin with `{`.
    Object {
        /// The byte that stands there; `None` in an empty line.
        found: Option<u8>,
    },
    /// H1.json: the line is not JSON.
    Json {
        /// What could have stood there.
        expected: Expected,
        /// The byte that stands there; `None` at the end.
        found: Option<u8>,
    },
    /// H1.trailing: something other than white space follows the object.
    Trailing {
        /// The first byte of it.
        found: u8,
    },
    /// H1.utf8: the line is not UTF-8.
    Utf8 {
        /// The first byte of the invalid sequence.
        found: u8,
    },
    /// H2.duplicate: a member that stood before.
    Duplicate {
        /// Its key.
        found: Key,
    },
    /// H2.value: a step that is no integer of 64 bits, or a loss that is neither a number nor a word for one.
    Value {
        /// The key.
        key: Key,
        /// The kind of value found.
        found: Kind,
    },
    /// H2.missing: an entry without loss, or without step.
    Missing {
        /// The member that is missing.
        expected: Key,
    },
    /// H2.both: an entry and a mark in one line.
    Both,
    /// H2.config: `config_sha256` stands twice, or is no string of 64 lower-case hexadecimal digits.
    Config,
    /// H2.config: there is no `config_sha256`.
    ConfigMissing,
}

impl LineError {
    pub(crate) fn new(kind: LineErrorKind, at: u32) -> Self {
        Self { kind, at }
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> LineErrorKind {
        self.kind
    }

    /// Where, from the start of the line.
    #[must_use]
    pub fn at(&self) -> Offset {
        Offset::new(crate::span::count(widen(self.at)))
    }

    /// The id of the broken rule.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self.kind {
            LineErrorKind::Long => "H1.long",
            LineErrorKind::Object { .. } => "H1.object",
            LineErrorKind::Json { .. } => "H1.json",
            LineErrorKind::Trailing { .. } => "H1.trailing",
            LineErrorKind::Utf8 { .. } => "H1.utf8",
            LineErrorKind::Duplicate { .. } => "H2.duplicate",
            LineErrorKind::Value { .. } => "H2.value",
            LineErrorKind::Missing { .. } => "H2.missing",
            LineErrorKind::Both => "H2.both",
            LineErrorKind::Config | LineErrorKind::ConfigMissing => "H2.config",
        }
    }
}

impl Key {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Loss, Self::Step, Self::Resume];

    /// As it is spelled.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Step => "step",
            Self::Resume => "resume",
        }
    }
}

impl core::error::Error for LineError {}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.rule(), self.at, self.kind)
    }
}

impl fmt::Display for LineErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Long => {
                write!(f, "expected a line of at most {LOSS_LINE_BYTES_MAX} bytes, found a longer one")
            }
            Self::Object { found: None } => f.write_str("expected an object, found nothing"),
            Self::Object { found: Some(byte) } => {
                write!(f, "expected an object, found byte 0x{byte:02x}")
            }
            Self::Json { expected, found: None } => write!(f, "expected {expected}, found the end"),
            Self::Json { expected, found: Some(byte) } => {
                write!(f, "expected {expected}, found byte 0x{byte:02x}")
            }
            Self::Trailing { found } => {
                write!(f, "expected nothing behind the object, found byte 0x{found:02x}")
            }
            Self::Utf8 { found } => {
                write!(f, "expected UTF-8, found an invalid sequence from byte 0x{found:02x} on")
            }
            Self::Duplicate { found } => write!(f, "expected {} once, found it twice", found.name()),
            Self::Value { key: Key::Loss, found: Kind::String } => f.write_str(
                "expected a loss, found a string that is none of \"NaN\", \"Infinity\", \"-Infinity\"",
            ),
            Self::Value { key: Key::Loss, found } => write!(f, "expected a number as loss, found {found}"),
            Self::Value { key, found: Kind::Number } => {
                write!(f, "expected {} to be an integer from 0 to 2^64 - 1, found another number", key.name())
            }
            Self::Value { key, found } => {
                write!(f, "expected {} to be an integer from 0 to 2^64 - 1, found {found}", key.name())
            }
            Self::Missing { expected } => {
                write!(f, "expected {}, found the end of the entry", expected.name())
            }
            Self::Both => f.write_str("expected an entry or the mark of a resume, found both in one"),
            Self::ConfigMissing => f.write_str("expected config_sha256, found none"),
            Self::Config => {
                f.write_str("expected config_sha256 once, as a string of 64 lower-case hexadecimal digits")
            }
        }
    }
}
