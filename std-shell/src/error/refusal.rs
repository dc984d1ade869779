//! Why tensors, or a state, are not written: typed, with names of its own.

use std::fmt;

use safestep_core::LayoutError;

/// Why tensors are not written (rule W5): what the core's [`LayoutError`] says, with names of its own, and what a stream of
/// bytes can do wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Two tensors of one name.
    NameTwice {
        /// The name.
        name: String,
    },
    /// The name `__metadata__`, which means something else.
    NameReserved,
    /// Two metadata keys that are equal.
    KeyTwice {
        /// The key.
        key: String,
    },
    /// Elements that do not fill whole bytes.
    Bits {
        /// The tensor's name.
        name: String,
        /// The total, in bits.
        found: u64,
    },
    /// A size that 64 bits cannot count.
    Overflow {
        /// The tensor's name.
        name: String,
    },
    /// A header longer than readers accept.
    HeaderTooLong {
        /// Its length in bytes.
        found: u64,
    },
    /// A state that its file cannot hold, in words.
    State(String),
    /// Another reason of the core's, in its words.
    Layout(String),
    /// The bytes ended before the tensor did.
    DataShort {
        /// The tensor's name.
        name: String,
        /// The tensor's bytes.
        expected: u64,
        /// The bytes that came.
        found: u64,
    },
    /// More than the tensor still lacks.
    Surplus {
        /// The tensor's name.
        name: String,
        /// What is counted: elements, bytes.
        unit: &'static str,
        /// How many it lacks.
        expected: u64,
        /// How many came.
        found: u64,
    },
    /// Bytes in the middle of a byte, or elements in the middle of an element.
    DataCut {
        /// The tensor's name.
        name: String,
        /// What came.
        unit: &'static str,
        /// How many.
        found: u64,
    },
    /// More than the tensors have.
    DataSurplus {
        /// What is counted: elements, bytes.
        unit: &'static str,
        /// How many stood behind the last tensor.
        found: u64,
    },
}

impl From<LayoutError<'_>> for Refusal {
    fn from(error: LayoutError<'_>) -> Self {
        match error {
            LayoutError::NameTwice { name } => Self::NameTwice { name: name.into() },
            LayoutError::NameReserved => Self::NameReserved,
            LayoutError::KeyTwice { key } => Self::KeyTwice { key: key.into() },
            LayoutError::Bits { name, found } => Self::Bits { name: name.into(), found },
            LayoutError::Overflow { name } => Self::Overflow { name: name.into() },
            LayoutError::HeaderTooLong { found } => Self::HeaderTooLong { found },
            other => Self::Layout(other.to_string()),
        }
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    /// Names are given as they are; who prints to a terminal makes them safe for it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTwice { name } => LayoutError::NameTwice { name }.fmt(f),
            Self::NameReserved => LayoutError::NameReserved.fmt(f),
            Self::KeyTwice { key } => LayoutError::KeyTwice { key }.fmt(f),
            Self::Bits { name, found } => LayoutError::Bits { name, found: *found }.fmt(f),
            Self::Overflow { name } => LayoutError::Overflow { name }.fmt(f),
            Self::HeaderTooLong { found } => LayoutError::HeaderTooLong { found: *found }.fmt(f),
            Self::State(reason) | Self::Layout(reason) => f.write_str(reason),
            Self::DataShort { name, expected, found } => {
                write!(f, "W5: expected {expected} bytes for {name:?}, found {found}")
            }
            Self::Surplus { name, unit, expected, found } => {
                write!(f, "W5: expected at most {expected} more {unit} for {name:?}, found {found}")
            }
            Self::DataCut { name, unit, found } => {
                write!(f, "W5: expected the rest of what was begun of {name:?}, found {found} {unit}")
            }
            Self::DataSurplus { unit, found } => {
                write!(f, "W5: expected no more data, found {found} {unit} behind the last tensor")
            }
        }
    }
}
