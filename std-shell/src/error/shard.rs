//! A verdict on a shard of tokens, and why good shards do not do, in words.

use std::fmt;

use safestep_core::Seems;
use safestep_core::tokens::{CursorError, PlaceError, ShapeError, ShardError};

use super::terminal::terminal_safe;

/// A verdict on a shard of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadShard {
    /// The rule, the place, what was expected and what was found.
    pub error: ShardError,
    /// What the file seems to be, if it is no shard at all.
    pub seems: Option<Seems>,
}

impl BadShard {
    /// What is wrong, in words: what was expected, what was found.
    pub fn message(&self) -> String {
        let mut message = self.error.kind().to_string();
        if let Some(seems) = self.seems {
            message.push_str(&format!("; the file seems to be {seems}"));
        }
        message
    }
}

impl fmt::Display for BadShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.error.rule(), self.error.at(), self.message())
    }
}

/// Why good shards do not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// They hold no windows of that length, or the rank is none.
    Shape(ShapeError),
    /// The cursor is at a place that they do not have.
    Place(PlaceError),
    /// The text of the cursor is none.
    Cursor(CursorError),
    /// The cursor belongs to other shards: what differs first.
    Shards(String),
    /// A shard states another vocabulary than was asked for.
    Vocabulary {
        /// The size that was asked for.
        expected: u32,
        /// The size that the shard states.
        found: u32,
    },
    /// The caller's buffers do not hold a batch, or not as many ids as were to be read.
    Buffer {
        /// How many ids each of them has to hold.
        expected: u64,
        /// How many one of them holds.
        found: u64,
    },
}

impl std::error::Error for Misfit {}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(error) => error.fmt(f),
            Self::Place(error) => error.fmt(f),
            Self::Cursor(error) => error.fmt(f),
            Self::Shards(difference) => terminal_safe(difference).fmt(f),
            Self::Vocabulary { expected, found } => {
                write!(f, "expected a vocabulary of {expected}, found one of {found}")
            }
            Self::Buffer { expected, found } => {
                let plural = if *expected == 1 { "" } else { "s" };
                write!(f, "expected a buffer for {expected} id{plural}, found one for {found}")
            }
        }
    }
}
