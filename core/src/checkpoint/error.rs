//! What can be wrong with a document of a checkpoint: the place, what was expected, what was found.

use crate::json::{Expected, Kind};
use crate::span::Offset;
use core::fmt;

/// What is wrong with a document, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentError {
    kind: DocumentErrorKind,
    at: u64,
}

impl DocumentError {
    pub(crate) fn new(kind: DocumentErrorKind, at: u32) -> Self {
        Self { kind, at: u64::from(at) }
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> DocumentErrorKind {
        self.kind
    }

    /// Where, from the start of the document.
    #[must_use]
    pub fn at(&self) -> Offset {
        Offset::new(self.at)
    }
}

/// The kinds of error; each carries what was expected and what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DocumentErrorKind {
    /// More bytes than a document may have.
    TooLong {
        /// The most, in bytes.
        limit: u64,
        /// How many there are.
        found: u64,
    },
    /// Not UTF-8.
    Utf8 {
        /// The first byte of the invalid sequence.
        found: u8,
    },
    /// Not JSON.
    Json {
        /// What could have stood there.
        expected: Expected,
        /// The byte that stands there; `None` at the end.
        found: Option<u8>,
    },
    /// Something other than white space behind the document.
    Trailing {
        /// Its first byte.
        found: u8,
    },
    /// A key that does not belong there.
    KeyUnknown,
    /// A key that stood before.
    KeyTwice {
        /// Where the first of the two stands.
        first: u64,
    },
    /// A key that must be there is not.
    KeyMissing {
        /// The first one that is missing.
        expected: &'static str,
    },
    /// A value of the wrong kind.
    Value {
        /// Whose value.
        key: &'static str,
        /// What it has to be.
        expected: &'static str,
        /// The kind found.
        found: Kind,
    },
    /// A value of the right kind that says something else than it may.
    Text {
        /// Whose value.
        key: &'static str,
        /// What it has to be.
        expected: &'static str,
    },
    /// Another version of the format.
    Version {
        /// The version found.
        found: u64,
    },
    /// A name that no file of a checkpoint has.
    Name {
        /// What is wrong with it.
        found: NameFault,
    },
    /// A name that does not stand behind the one before it, by bytes; two equal ones are such.
    Order,
}

/// What is wrong with the name of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameFault {
    /// It is empty.
    Empty,
    /// It is `.` or `..`.
    Dots,
    /// It holds a slash, so it could lead out of the directory.
    Slash,
    /// It holds a NUL.
    Nul,
    /// It is that of the manifest, which does not list itself.
    Manifest,
}

impl NameFault {
    /// What is wrong with a name, given as its UTF-8 bytes; `None` if nothing is.
    pub(crate) fn of(name: impl Iterator<Item = u8> + Clone) -> Option<Self> {
        let equals = |text: &str| name.clone().eq(text.bytes());
        if equals("") {
            return Some(Self::Empty);
        }
        if equals(".") || equals("..") {
            return Some(Self::Dots);
        }
        if equals(crate::checkpoint::MANIFEST_NAME) {
            return Some(Self::Manifest);
        }
        name.clone().find_map(|byte| match byte {
            b'/' => Some(Self::Slash),
            0 => Some(Self::Nul),
            _ => None,
        })
    }
}

impl core::error::Error for DocumentError {}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.at, self.kind)
    }
}

impl fmt::Display for DocumentErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooLong { limit, found } => write!(f, "expected at most {limit} bytes, found {found}"),
            Self::Utf8 { found } => write!(f, "expected UTF-8, found byte 0x{found:02x}"),
            Self::Json { expected, found: None } => write!(f, "expected {expected}, found the end"),
            Self::Json { expected, found: Some(byte) } => {
                write!(f, "expected {expected}, found {:?}", char::from(byte))
            }
            Self::Trailing { found } => {
                write!(f, "expected only white space behind the document, found {:?}", char::from(found))
            }
            Self::KeyUnknown => f.write_str("expected only keys of the format, found another one"),
            Self::KeyTwice { first } => {
                write!(f, "expected each key once, found one that stands at byte {first} too")
            }
            Self::KeyMissing { expected } => {
                write!(f, "expected the key {expected}, found the end of the object")
            }
            Self::Value { key, expected, found } => {
                write!(f, "expected {expected} for {key}, found {found}")
            }
            Self::Text { key, expected } => write!(f, "expected {expected} for {key}, found another"),
            Self::Version { found } => write!(f, "expected version 1, found {found}"),
            Self::Name { found } => write!(f, "expected the name of a file in the directory, found {found}"),
            Self::Order => f.write_str(
                "expected a name behind the one before it in the order of bytes, found one that is not",
            ),
        }
    }
}

impl fmt::Display for NameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "an empty one",
            Self::Dots => "one that means a directory",
            Self::Slash => "one with a slash",
            Self::Nul => "one with a NUL",
            Self::Manifest => "that of the manifest",
        })
    }
}
