//! What went wrong, while doing what, to which path -> one line that a terminal can print safely.
//!
//! Nothing here panics. An error owns its path and costs its allocation only when it happens. Names come from
//! strangers (file names, tensor names), so everything printed goes through [`terminal_safe`].

mod terminal;

mod found;

mod refusal;

mod shard;

mod arrays;

pub use arrays::BadArrays;
pub use found::ends;
pub use refusal::Refusal;
pub use shard::{BadShard, Misfit};
pub use terminal::{TerminalSafe, terminal_safe};

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use safestep_core::history::LineError;
use safestep_core::numbers::ValueError;
use safestep_core::snapshot::SnapshotError;
use safestep_core::{Dtype, ErrorKind, Rule, Seems, sniff};

use crate::memory;

/// An action on a path that could not be done, and why.
///
/// Displays as one line: `cannot <doing> <path>: <because>`.
#[derive(Debug)]
pub struct Error {
    doing: &'static str,
    path: PathBuf,
    because: Cause,
}

impl Error {
    /// An error from its three parts; `doing` completes the sentence "cannot … this path".
    pub fn new(doing: &'static str, path: impl Into<PathBuf>, because: Cause) -> Self {
        Self { doing, path: path.into(), because }
    }

    /// [`Error::new`] for the commonest cause.
    pub fn io(doing: &'static str, path: impl Into<PathBuf>, because: io::Error) -> Self {
        Self::new(doing, path, Cause::Io(because))
    }

    /// What was being done: a verb that takes the path as its object.
    pub fn doing(&self) -> &'static str {
        self.doing
    }

    /// The path it was done to, as it was given (not made safe for a terminal).
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why it could not be done.
    pub fn because(&self) -> &Cause {
        &self.because
    }

    /// Who is to blame: decides the program's exit code.
    pub fn blame(&self) -> Blame {
        self.because.blame()
    }

    /// True when a commit failed after its file had taken the target's name: the new content is
    /// what every reader now sees, but a power failure may still bring the old one back.
    pub fn is_in_place(&self) -> bool {
        matches!(self.because, Cause::NotDurable(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} ", self.doing)?;
        if self.path.as_os_str().is_empty() {
            f.write_str("\"\"")?;
        }
        write!(f, "{}: {}", terminal_safe(&self.path), self.because)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.because {
            Cause::Io(error) | Cause::NotDurable(error) => Some(error),
            Cause::Bad(bad) => Some(&bad.error),
            Cause::Number(bad) => Some(&bad.error),
            Cause::Refused(refusal) => Some(refusal),
            Cause::Snapshot(error) => Some(error),
            Cause::Line { error, .. } | Cause::State(error) => Some(error),
            Cause::BadShard(bad) => Some(&bad.error),
            Cause::Misfit(misfit) => Some(misfit),
            Cause::BadArrays(bad) => Some(bad),
            Cause::NotRegular(_)
            | Cause::Shrank { .. }
            | Cause::PastEnd { .. }
            | Cause::Abandoned
            | Cause::Form(_)
            | Cause::BadIds(_)
            | Cause::OtherConfig { .. }
            | Cause::Unasked { .. }
            | Cause::NoSpace { .. }
            | Cause::Locked { .. }
            | Cause::StepExists
            | Cause::Damaged(_)
            | Cause::NoCheckpoint { .. }
            | Cause::ThreadLost => None,
        }
    }
}

/// Why something could not be done to a path.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The operating system said no.
    Io(io::Error),
    /// A regular file was needed and something else stands there.
    NotRegular(FileKind),
    /// The file became shorter after it was opened, so a byte that it had is gone.
    Shrank {
        /// The length in bytes when it was opened.
        expected_bytes: u64,
        /// The length in bytes now.
        found_bytes: u64,
    },
    /// The caller asked for bytes beyond the end that the file had from the start.
    PastEnd {
        /// The end of the wanted bytes, counted from the start of the file.
        wanted_bytes: u64,
        /// The length of the file.
        length_bytes: u64,
    },
    /// An earlier error had already ended this commit; nothing is written any more.
    Abandoned,
    /// The bytes break a rule of the format.
    Bad(Box<BadFile>),
    /// What was to be written breaks a rule of the format (W5).
    Refused(Refusal),
    /// A number that was to be written is none that its tensor's dtype holds.
    Number(Box<BadNumber>),
    /// The elements that were to be written are of another dtype than their tensor; nothing is converted unasked.
    Unasked {
        /// The tensor's name.
        tensor: String,
        /// Its dtype.
        expected: Dtype,
        /// The dtype of the elements.
        found: Dtype,
    },
    /// The bytes break a rule of the five-region snapshot.
    Snapshot(SnapshotError),
    /// A line of a loss history breaks a rule.
    Line {
        /// Which line, or which element of an array, from 1 on.
        number: u64,
        /// Where it begins, in bytes from the start of the file.
        at: u64,
        /// What is wrong with it.
        error: LineError,
    },
    /// The file breaks a rule as a whole: one line that says which.
    Form(&'static str),
    /// A state that names no config, or is no JSON.
    State(LineError),
    /// A state that was made under another config.
    OtherConfig {
        /// The sha256 of the config that the caller has.
        expected: String,
        /// That of the config under which it was made.
        found: String,
    },
    /// The file is no shard of tokens, or an id in it is outside the vocabulary.
    BadShard(BadShard),
    /// Ids are no shard's: one line that says which, and where they stand.
    BadIds(String),
    /// The shards are good, and not the ones for this stream or cursor.
    Misfit(Misfit),
    /// A checkpoint and a snapshot are not each other's.
    BadArrays(BadArrays),
    /// The new file has taken its name, but syncing the directory failed.
    NotDurable(io::Error),
    /// There is not enough space on the disk; nothing was written.
    NoSpace {
        /// How many bytes are needed.
        needed_bytes: u64,
        /// How many are free.
        free_bytes: u64,
    },
    /// Somebody else is saving there.
    Locked {
        /// The process, as far as the kernel tells.
        pid: Option<u32>,
    },
    /// A checkpoint of this step was saved before.
    StepExists,
    /// The directory is not what its manifest says: each flaw in words.
    Damaged(Vec<String>),
    /// There is no checkpoint that could be loaded: each that was looked at, and why not.
    NoCheckpoint {
        /// A line for each.
        skipped: Vec<String>,
    },
    /// A thread of this program came to an end too early.
    ThreadLost,
}

impl Cause {
    /// Who is to blame for this cause.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Bad(_)
            | Self::Number(_)
            | Self::Damaged(_)
            | Self::BadShard(_)
            | Self::BadIds(_)
            | Self::Misfit(_)
            | Self::BadArrays(_)
            | Self::Snapshot(_)
            | Self::Line { .. }
            | Self::Form(_)
            | Self::State(_)
            | Self::OtherConfig { .. } => Blame::Data,
            Self::Refused(_) | Self::PastEnd { .. } | Self::Unasked { .. } | Self::StepExists => {
                Blame::Caller
            }
            Self::NoCheckpoint { skipped } if !skipped.is_empty() => Blame::Data,
            Self::Io(_)
            | Self::NotRegular(_)
            | Self::Shrank { .. }
            | Self::Abandoned
            | Self::NotDurable(_)
            | Self::NoSpace { .. }
            | Self::Locked { .. }
            | Self::NoCheckpoint { .. }
            | Self::ThreadLost => Blame::Machine,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{}", terminal_safe(&error.to_string())),
            Self::NotRegular(kind) => write!(f, "it is {kind}, not a regular file"),
            Self::Shrank { expected_bytes, found_bytes } => {
                write!(f, "it shrank from {expected_bytes} to {found_bytes} bytes while it was in use")
            }
            Self::PastEnd { wanted_bytes, length_bytes } => {
                write!(f, "bytes up to {wanted_bytes} were asked for and it has {length_bytes}")
            }
            Self::Bad(bad) => bad.fmt(f),
            Self::Refused(refusal) => terminal_safe(&refusal.to_string()).fmt(f),
            Self::Number(bad) => bad.fmt(f),
            Self::Unasked { tensor, expected, found } => {
                let tensor = terminal_safe(tensor);
                write!(
                    f,
                    "\"{tensor}\": expected elements of {expected}, found {found}, and nothing is converted unasked"
                )
            }
            Self::NoSpace { needed_bytes, free_bytes } => {
                write!(f, "{needed_bytes} bytes are needed and {free_bytes} are free")
            }
            Self::Locked { pid: Some(pid) } => write!(f, "process {pid} is saving there"),
            Self::Locked { pid: None } => f.write_str("another process is saving there"),
            Self::StepExists => {
                f.write_str("a checkpoint of this step was saved before; it is left as it is")
            }
            Self::Damaged(flaws) => terminal_safe(&flaws.join("; ")).fmt(f),
            Self::NoCheckpoint { skipped } if skipped.is_empty() => f.write_str("there is no checkpoint"),
            Self::NoCheckpoint { skipped } => {
                write!(f, "no checkpoint is whole: {}", terminal_safe(&skipped.join("; ")))
            }
            Self::ThreadLost => f.write_str("a thread of this program came to an end too early"),
            Self::Snapshot(error) => error.fmt(f),
            Self::Line { number, at, error } => {
                let at = at.saturating_add(error.at().value());
                write!(f, "line {number}: {} at byte {at}: {}", error.rule(), error.kind())
            }
            Self::Form(what) => f.write_str(what),
            Self::State(error) => error.fmt(f),
            Self::OtherConfig { expected, found } => write!(
                f,
                "it was made under the config {}, this is {}; state of a former policy is loaded only by that name",
                terminal_safe(found),
                terminal_safe(expected)
            ),
            Self::BadShard(bad) => bad.fmt(f),
            Self::BadIds(reason) => terminal_safe(reason).fmt(f),
            Self::Misfit(misfit) => misfit.fmt(f),
            Self::BadArrays(bad) => bad.fmt(f),
            Self::Abandoned => f.write_str("an earlier error had already ended this write"),
            Self::NotDurable(error) => write!(
                f,
                "the new file is in place but may not survive a power failure: {}",
                terminal_safe(&error.to_string())
            ),
        }
    }
}

/// A number that a tensor does not hold.
#[derive(Clone, Debug)]
pub struct BadNumber {
    /// The tensor's name.
    pub tensor: String,
    /// Its dimensions, outermost first.
    pub shape: Vec<u64>,
    /// The number, its place among all the tensor's elements, and what is wrong with it.
    pub error: ValueError,
}

impl fmt::Display for BadNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ValueError { dtype, index, value, refusal } = self.error;
        let tensor = terminal_safe(&self.tensor);
        write!(f, "\"{tensor}\": expected a value of {dtype}, found {value} in element {index}")?;
        // Of a vector the index says it all.
        if self.shape.len() > 1 {
            write!(f, ", {}", ends(&Coordinates { shape: &self.shape, index }, LONGEST_COORDINATES))?;
        }
        write!(f, ": {refusal}")
    }
}

/// Room for rank 8 and large dimensions; a hostile tensor has millions of them.
const LONGEST_COORDINATES: usize = 64;

/// Where in each dimension an element is: `[1, 2]`.
struct Coordinates<'s> {
    shape: &'s [u64],
    index: u64,
}

impl fmt::Display for Coordinates<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The elements from one place in a dimension to the next. A tensor with elements has no dimension of 0.
        let mut stride = self.shape.iter().fold(1, |product: u64, &dim| product.saturating_mul(dim));
        let mut rest = self.index;
        let mut separator = "[";
        for dim in self.shape {
            stride /= (*dim).max(1);
            write!(f, "{separator}{}", rest / stride.max(1))?;
            rest %= stride.max(1);
            separator = ", ";
        }
        f.write_str("]")
    }
}

/// A verdict on a file, with what the header says at its place.
#[derive(Clone, Debug)]
pub struct BadFile {
    /// The rule, the place, what was expected and what was found.
    pub error: safestep_core::Error,
    /// The tensor, or the key in `__metadata__`, that it is about. None too where memory is too short for it.
    pub name: Option<String>,
    /// What stands at the place, where that says more. A long word without its middle.
    pub found: Option<String>,
    /// The shape of the tensor, where it is the shape that is wrong. A long one without its middle.
    pub shape: Option<String>,
    /// What the file seems to be, if it is no safetensors file at all.
    pub seems: Option<Seems>,
}

impl BadFile {
    /// A verdict on the file that begins with `first`, with names and words taken from its `header`, if that was read.
    pub fn new(error: safestep_core::Error, first: &[u8], header: &[u8]) -> Self {
        let stranger =
            matches!(error.rule(), Some(Rule::Short | Rule::TooLarge | Rule::PastEnd | Rule::Start));
        let seems = if stranger { sniff(first) } else { None };
        let name = error.name_of(header).and_then(|name| memory::text(&name, name.as_spelled().len()).ok());
        let (found, shape) = (found::word_at(error, header), found::shape_of(error, header));
        Self { error, name, found, shape, seems }
    }

    /// What is wrong, in words: what was expected, what was found.
    pub fn message(&self) -> String {
        let mut message = self.error.kind().to_string();
        if let Some(found) = &self.found {
            message.push_str(&format!(": {found}"));
        }
        if let Some(shape) = &self.shape {
            // The words of one kind end with "a shape".
            let what = if self.error.kind() == ErrorKind::Overflow { "" } else { "shape " };
            message.push_str(&format!(": {what}{shape}"));
        }
        if let Some(seems) = self.seems {
            message.push_str(&format!("; the file seems to be {seems}"));
        }
        message
    }
}

impl fmt::Display for BadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rule) = self.error.rule() {
            write!(f, "{rule} at byte {}", self.error.at())?;
        }
        if let Some(name) = &self.name {
            write!(f, ", \"{}\"", terminal_safe(name))?;
        }
        write!(f, ": {}", terminal_safe(&self.message()))
    }
}

/// Where the fault lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The bytes were read and judged bad (exit code 1).
    Data,
    /// The bytes could not be read or written (exit code 3).
    Machine,
    /// What was asked for makes no sense: tensors that no file can hold, bytes that no file has (exit code 2, as for any
    /// wrong usage).
    Caller,
}

/// What stands where a regular file was needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FileKind {
    /// A directory.
    Directory,
    /// A named or unnamed pipe.
    Fifo,
    /// A Unix-domain socket.
    Socket,
    /// A terminal, `/dev/null` and their like.
    CharacterDevice,
    /// A disk or partition.
    BlockDevice,
    /// Anything else.
    Unknown,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Directory => "a directory",
            Self::Fifo => "a FIFO",
            Self::Socket => "a socket",
            Self::CharacterDevice => "a character device",
            Self::BlockDevice => "a block device",
            Self::Unknown => "something unknown",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn refused_numbers_say_where_they_stand() {
        use safestep_core::numbers::{Number, Refusal};
        let error = ValueError {
            dtype: Dtype::F8E4M3,
            index: 7,
            value: Number::F32(449.0),
            refusal: Refusal::OutOfRange,
        };
        let tensor = "a\nb".to_string();
        let number = |shape: &[u64]| {
            Cause::Number(Box::new(BadNumber { tensor: tensor.clone(), shape: shape.to_vec(), error }))
        };
        let unasked = Cause::Unasked { tensor: tensor.clone(), expected: Dtype::F32, found: Dtype::F64 };
        let table = [
            (
                number(&[8]),
                r#"cannot write m: "a\nb": expected a value of F8_E4M3, found 449.0 in element 7: it is out of range"#,
                Blame::Data,
            ),
            (
                number(&[2, 1, 5]),
                r#"cannot write m: "a\nb": expected a value of F8_E4M3, found 449.0 in element 7, [1, 0, 2]: it is out of range"#,
                Blame::Data,
            ),
            (
                unasked,
                r#"cannot write m: "a\nb": expected elements of F32, found F64, and nothing is converted unasked"#,
                Blame::Caller,
            ),
        ];
        for (because, shown, blame) in table {
            let error = Error::new("write", "m", because);
            assert_eq!((error.to_string().as_str(), error.blame()), (shown, blame));
            assert_eq!(error.source().is_some(), matches!(error.because(), Cause::Number(_)));
        }
    }

    #[test]
    fn an_error_is_one_line() {
        let not_found = || io::Error::from(io::ErrorKind::NotFound);
        let table = [
            (Error::io("open", "a\nb", not_found()), r"cannot open a\nb: entity not found"),
            (Error::io("open", "", not_found()), "cannot open \"\": entity not found"),
            (Error::io("open", "m", io::Error::other("two\nlines")), r"cannot open m: two\nlines"),
            (
                Error::new("open", "m", Cause::NotRegular(FileKind::Fifo)),
                "cannot open m: it is a FIFO, not a regular file",
            ),
            (
                Error::new("read", "m", Cause::Shrank { expected_bytes: 9, found_bytes: 4 }),
                "cannot read m: it shrank from 9 to 4 bytes while it was in use",
            ),
            (
                Error::new("make durable", "m", Cause::NotDurable(not_found())),
                "cannot make durable m: the new file is in place but may not survive a power failure: entity not found",
            ),
        ];
        for (error, shown) in table {
            assert_eq!(error.to_string(), shown);
            assert_eq!(error.blame(), Blame::Machine);
            let io = matches!(error.because(), Cause::Io(_) | Cause::NotDurable(_));
            assert_eq!(error.source().is_some(), io);
        }
    }
}
