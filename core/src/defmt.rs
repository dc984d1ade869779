//! Errors, rules, dtypes and places become `defmt` frames, for firmware that logs over a probe (feature `defmt`).
//!
//! Numbers stay numbers and words are interned, so a frame is a few bytes.

use crate::dtype::Dtype;
use crate::error::{Error, ErrorKind, Field};
use crate::history::LineError;
use crate::json::Kind;
use crate::rule::Rule;
use crate::snapshot::SnapshotError;
use crate::sniff::Seems;
use crate::span::{ByteLen, Offset, Span};
use crate::tokens::{ShardError, ShardErrorKind, ShardRule};
use defmt::{Format, Formatter, write};

impl Format for Offset {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=u64}", self.value());
    }
}

impl Format for ByteLen {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=u64}", self.value());
    }
}

impl Format for Span {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=u64}..{=u64}", self.begin().value(), self.end().value());
    }
}

impl Format for Dtype {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=str}", self.name());
    }
}

impl Format for Rule {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=str}", self.id());
    }
}

impl Format for ShardRule {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=str}", self.id());
    }
}

impl Format for ShardError {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{} at byte {}: ", self.rule(), self.at());
        match self.kind() {
            ShardErrorKind::Short { found } => write!(f, "expected 1024 bytes, found {=u64}", found),
            ShardErrorKind::Size { expected, found } => {
                write!(f, "expected {=u64}, found {=u64}", expected, found);
            }
            ShardErrorKind::Id { index, found, largest } => {
                write!(f, "expected at most {=u32}, found {=u32} as id {=u64}", largest, found, index);
            }
            ShardErrorKind::Magic { found, .. }
            | ShardErrorKind::Version { found, .. }
            | ShardErrorKind::Count { found }
            | ShardErrorKind::Vocabulary { found } => write!(f, "found {=i32}", found),
        }
    }
}

/// Words that are interned: each variant is one.
macro_rules! words {
    ($( $type:ident { $( $variant:ident $word:literal ),+ $(,)? } )+) => { $(
        impl Format for $type {
            fn format(&self, f: Formatter<'_>) {
                match self { $( Self::$variant => write!(f, $word) ),+ }
            }
        }
    )+ };
}

words! {
    Seems {
        Zip "a zip archive, which can run code", Pickle "a pickle, which can run code", Gguf "a GGUF model",
        GitLfs "a git-lfs pointer", Html "a web page", Gzip "a gzip file", Npy "a NumPy array", Hdf5 "an HDF5 file",
        Onnx "an ONNX model",
    }
    Kind {
        Object "an object", Array "an array", String "a string", Number "a number", Integer "an integer", Bool "a bool",
        Null "null",
    }
    Field { Dtype "dtype", Shape "shape", DataOffsets "data_offsets" }
}

impl Format for Error {
    fn format(&self, f: Formatter<'_>) {
        match self.rule() {
            Some(rule) => write!(f, "{} at byte {}: {}", rule, self.at(), self.kind()),
            None => write!(f, "{}", self.kind()),
        }
    }
}

/// What was expected and what was found, in numbers; words are those of the rule.
impl Format for ErrorKind {
    fn format(&self, f: Formatter<'_>) {
        match *self {
            Self::Short { found } => write!(f, "expected 8 bytes, found {=u64}", found),
            Self::TooLarge { limit, found } => {
                write!(f, "expected at most {=u64} bytes, found {=u64}", limit, found);
            }
            Self::PastEnd { header, found } => {
                write!(f, "expected 8 + {=u64} bytes, found {=u64}", header, found);
            }
            Self::Start { found: Some(byte) } | Self::Json { found: Some(byte), .. } => {
                write!(f, "found byte {=u8:#04x}", byte);
            }
            Self::Start { found: None } | Self::Json { found: None, .. } => {
                write!(f, "found the end of the header");
            }
            Self::Utf8 { found } | Self::Trailing { found } => write!(f, "found byte {=u8:#04x}", found),
            Self::Duplicate { first } => write!(f, "stands at byte {=u64} too", first),
            Self::FieldMissing { expected } => write!(f, "expected field {}", expected),
            Self::DtypeRefused { found } => write!(f, "found {}", found),
            Self::OffsetsCount { found } => write!(f, "expected 2 offsets, found {=u32}", found),
            Self::OffsetsReversed { begin, end } => {
                write!(f, "expected at least {=u64}, found {=u64}", begin, end);
            }
            Self::Bits { found } => write!(f, "expected whole bytes, found {=u64} bits", found),
            Self::Size { expected, found }
            | Self::Gap { expected, found }
            | Self::Overlap { expected, found }
            | Self::DataShort { expected, found }
            | Self::Surplus { expected, found }
            | Self::HeaderBytes { expected, found } => {
                write!(f, "expected {=u64}, found {=u64}", expected, found);
            }
            Self::SlotsTooFew { needed, lent } => write!(f, "{=u64} slots needed, {=u64} lent", needed, lent),
            Self::SlotsNeeded { needed } => write!(f, "{=u64} slots needed", needed),
            Self::Metadata { found }
            | Self::EntryKind { found }
            | Self::DtypeKind { found }
            | Self::Shape { found }
            | Self::Offsets { found } => write!(f, "found {}", found),
            Self::FieldUnknown | Self::DtypeUnknown | Self::Overflow => write!(f, "not as it must be"),
        }
    }
}

impl Format for SnapshotError {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=str} at byte {}", self.rule(), self.at());
    }
}

impl Format for LineError {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=str} at byte {}", self.rule(), self.at());
    }
}
