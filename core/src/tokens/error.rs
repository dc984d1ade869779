//! What can be wrong with a shard: the rule, the byte, what was expected and what was found. `Copy`, one line, no heap.

use crate::span::Offset;
use core::fmt;

macro_rules! rules {
    ($( $variant:ident $id:literal $doc:literal ),+ $(,)?) => {
        /// A rule that a shard can break; the first broken one, in this order, is the verdict.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ShardRule { $( #[doc = $doc] $variant ),+ }

        impl ShardRule {
            /// All rules, in order.
            pub const ALL: &'static [Self] = &[ $( Self::$variant ),+ ];

            /// The id under which the rule is documented, such as `T1.size`.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self { $( Self::$variant => $id ),+ }
            }
        }
    };
}

rules! {
    Short "T1.short" "The file has fewer than the 1024 bytes of the header.",
    Magic "T1.magic" "The first number is none of the magic numbers.",
    Version "T1.version" "The version does not belong to the magic number.",
    Count "T1.count" "The number of ids is negative.",
    Vocabulary "T1.vocabulary" "The size of the vocabulary is negative.",
    Size "T1.size" "The file is not as long as its header says.",
    Id "T2.id" "An id is outside the vocabulary.",
}

impl fmt::Display for ShardRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.id())
    }
}

/// What is wrong with a shard, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardError {
    pub(crate) kind: ShardErrorKind,
    pub(crate) at: u64,
}

/// The kinds of error; each carries what was expected and what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShardErrorKind {
    /// T1.short: not even a header.
    Short {
        /// The file's length in bytes.
        found: u64,
    },
    /// T1.magic: another magic number.
    Magic {
        /// The number that stands there.
        found: i32,
        /// What the file seems to be, if the number tells.
        seems: Option<StrangeMagic>,
    },
    /// T1.version: another version than belongs to the magic number.
    Version {
        /// The magic number.
        magic: i32,
        /// The version that stands there.
        found: i32,
    },
    /// T1.count: a negative number of ids.
    Count {
        /// The number that stands there.
        found: i32,
    },
    /// T1.vocabulary: a negative size.
    Vocabulary {
        /// The number that stands there.
        found: i32,
    },
    /// T1.size: not 1024 bytes and those of the ids.
    Size {
        /// The length that the header asks for, in bytes.
        expected: u64,
        /// The file's length in bytes.
        found: u64,
    },
    /// T2.id: an id that is not below the size of the vocabulary.
    Id {
        /// Which id of the shard it is, from 0.
        index: u64,
        /// The id.
        found: u32,
        /// The largest id that is allowed.
        largest: u32,
    },
}

/// What a file seems to be whose magic number is not that of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrangeMagic {
    /// A shard whose numbers are big-endian.
    ByteSwapped,
    /// Another file of llm.c.
    Llmc(LlmcFile),
}

/// The other files of llm.c that have such a header, by their magic numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LlmcFile {
    /// 20240326: the weights of a model.
    Model,
    /// 20240327: activations and gradients to compare with.
    DebugState,
    /// 20240328: a tokenizer.
    Tokenizer,
    /// 20240522: questions of an evaluation.
    Evaluation,
    /// 20240527: the state of a training run.
    TrainingState,
}

impl LlmcFile {
    pub(crate) const fn of(magic: i32) -> Option<Self> {
        Some(match magic {
            20_240_326 => Self::Model,
            20_240_327 => Self::DebugState,
            20_240_328 => Self::Tokenizer,
            20_240_522 => Self::Evaluation,
            20_240_527 => Self::TrainingState,
            _ => return None,
        })
    }
}

impl ShardError {
    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> ShardErrorKind {
        self.kind
    }

    /// Where, from the start of the file.
    #[must_use]
    pub fn at(&self) -> Offset {
        Offset::new(self.at)
    }

    /// The broken rule.
    #[must_use]
    pub fn rule(&self) -> ShardRule {
        match self.kind {
            ShardErrorKind::Short { .. } => ShardRule::Short,
            ShardErrorKind::Magic { .. } => ShardRule::Magic,
            ShardErrorKind::Version { .. } => ShardRule::Version,
            ShardErrorKind::Count { .. } => ShardRule::Count,
            ShardErrorKind::Vocabulary { .. } => ShardRule::Vocabulary,
            ShardErrorKind::Size { .. } => ShardRule::Size,
            ShardErrorKind::Id { .. } => ShardRule::Id,
        }
    }
}

impl core::error::Error for ShardError {}

impl fmt::Display for ShardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.rule(), self.at, self.kind)
    }
}

impl fmt::Display for ShardErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Short { found } => write!(f, "expected a header of 1024 bytes, found a file of {found}"),
            Self::Magic { found, seems } => {
                write!(f, "expected magic number 20240520 or 20240801, found {found}")?;
                seems.map_or(Ok(()), |seems| write!(f, ": it seems to be {seems}"))
            }
            Self::Version { magic: 20_240_801, found } => {
                write!(f, "expected version 7 behind magic number 20240801, found {found}")
            }
            Self::Version { magic, found } => {
                write!(f, "expected version 1 or 2 behind magic number {magic}, found {found}")
            }
            Self::Count { found } => write!(f, "expected the number of ids, found {found}"),
            Self::Vocabulary { found } => {
                write!(f, "expected the size of the vocabulary, or 0, found {found}")
            }
            Self::Size { expected, found } if found < expected => {
                write!(
                    f,
                    "expected {expected} bytes for so many ids, found {found}: {} missing",
                    expected.wrapping_sub(found)
                )
            }
            Self::Size { expected, found } => {
                write!(
                    f,
                    "expected {expected} bytes for so many ids, found {found}: {} too many",
                    found.wrapping_sub(expected)
                )
            }
            Self::Id { index, found, largest } => {
                write!(f, "expected ids of at most {largest}, found {found} as id {index} of the shard")
            }
        }
    }
}

impl fmt::Display for StrangeMagic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByteSwapped => f.write_str("a shard with its bytes swapped (big-endian)"),
            Self::Llmc(file) => file.fmt(f),
        }
    }
}

impl fmt::Display for LlmcFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model => "a model of llm.c",
            Self::DebugState => "a debug state of llm.c",
            Self::Tokenizer => "a tokenizer of llm.c",
            Self::Evaluation => "an evaluation of llm.c",
            Self::TrainingState => "a training state of llm.c",
        })
    }
}
