//! What went wrong, while doing what, to which path -> one line that a terminal can print safely.
//!
//! Nothing here panics. An error owns its path and costs its allocation only when it happens. Names come from
//! strangers (file names, tensor names), so everything printed goes through [`terminal_safe`].

use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};

use safestep_core::tokens::{CursorError, PlaceError, ShapeError, ShardError};
use safestep_core::{ErrorKind, Rule, Seems, sniff};

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
            Cause::BadShard(bad) => Some(&bad.error),
            Cause::Misfit(misfit) => Some(misfit),
            Cause::NotRegular(_)
            | Cause::Shrank { .. }
            | Cause::PastEnd { .. }
            | Cause::Abandoned
            | Cause::Refused(_) => None,
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
    /// The file is no shard of tokens, or an id in it is outside the vocabulary.
    BadShard(BadShard),
    /// The shards are good, and not the ones for this stream or cursor.
    Misfit(Misfit),
    /// What was to be written breaks a rule of the format: one line that says which.
    Refused(String),
    /// The new file has taken its name, but syncing the directory failed.
    NotDurable(io::Error),
}

impl Cause {
    /// Who is to blame for this cause.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Bad(_) | Self::BadShard(_) | Self::Misfit(_) | Self::Refused(_) => Blame::Data,
            Self::Io(_)
            | Self::NotRegular(_)
            | Self::Shrank { .. }
            | Self::PastEnd { .. }
            | Self::Abandoned
            | Self::NotDurable(_) => Blame::Machine,
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
            Self::BadShard(bad) => bad.fmt(f),
            Self::Misfit(misfit) => misfit.fmt(f),
            Self::Refused(reason) => terminal_safe(reason).fmt(f),
            Self::Abandoned => f.write_str("an earlier error had already ended this write"),
            Self::NotDurable(error) => write!(
                f,
                "the new file is in place but may not survive a power failure: {}",
                terminal_safe(&error.to_string())
            ),
        }
    }
}

/// A verdict on a file, with what the header says at its place.
#[derive(Clone, Debug)]
pub struct BadFile {
    /// The rule, the place, what was expected and what was found.
    pub error: safestep_core::Error,
    /// The tensor, or the key in `__metadata__`, that it is about.
    pub name: Option<String>,
    /// What stands at the place, where that says more.
    pub found: Option<String>,
    /// What the file seems to be, if it is no safetensors file at all.
    pub seems: Option<Seems>,
}

impl BadFile {
    /// A verdict on the file that begins with `first`, with names and words taken from its `header`, if that was read.
    pub fn new(error: safestep_core::Error, first: &[u8], header: &[u8]) -> Self {
        let stranger =
            matches!(error.rule(), Some(Rule::Short | Rule::TooLarge | Rule::PastEnd | Rule::Start));
        let seems = if stranger { sniff(first) } else { None };
        let name = error.name_of(header).map(|name| name.to_string());
        Self { error, name, found: word_at(error, header), seems }
    }

    /// What is wrong, in words: what was expected, what was found.
    pub fn message(&self) -> String {
        let mut message = self.error.kind().to_string();
        if let Some(found) = &self.found {
            message.push_str(&format!(": {found}"));
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
                write!(f, "expected a buffer for {expected} ids, found one for {found}")
            }
        }
    }
}

/// The word of the header at an error's place, for the kinds of error whose own words do not hold it.
fn word_at(error: safestep_core::Error, header: &[u8]) -> Option<String> {
    match error.kind() {
        ErrorKind::DtypeUnknown
        | ErrorKind::FieldUnknown
        | ErrorKind::Shape { .. }
        | ErrorKind::Offsets { .. } => {}
        _ => return None,
    }
    const LONGEST: usize = 40;
    let at = usize::try_from(error.at().value()).ok()?.checked_sub(8)?;
    let rest = header.get(at..)?;
    let end = match rest.first()? {
        b'"' => 2 + rest.get(1..)?.iter().position(|&byte| byte == b'"')?,
        _ => rest.iter().position(|byte| matches!(byte, b',' | b']' | b'}' | b' ' | b'\n'))?,
    };
    let word = String::from_utf8_lossy(rest.get(..end.min(LONGEST))?).into_owned();
    Some(if end > LONGEST { word + "..." } else { word })
}

/// Where the fault lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The bytes were read and judged bad (exit code 1).
    Data,
    /// The bytes could not be read or written (exit code 3).
    Machine,
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

/// Text that can be printed to a terminal whatever stands in it: on one line, and without driving
/// the terminal.
///
/// Control characters (C0, DEL, C1), line and paragraph separators and the characters that change
/// the writing direction are escaped as Rust would (`\n`, `\u{202e}`), bytes that are no UTF-8 as
/// `\xNN`. All else, a backslash too, stays as it is, so the result is for the eye and cannot be
/// turned back.
///
/// ```
/// assert_eq!(safestep::terminal_safe("a\u{1b}[2J\nb").to_string(), r"a\u{1b}[2J\nb");
/// ```
pub fn terminal_safe<S: AsRef<OsStr> + ?Sized>(text: &S) -> TerminalSafe<'_> {
    TerminalSafe(text.as_ref())
}

/// The answer of [`terminal_safe`]: displays the text with its dangerous characters escaped.
#[derive(Clone, Copy, Debug)]
pub struct TerminalSafe<'a>(&'a OsStr);

impl fmt::Display for TerminalSafe<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.as_encoded_bytes().utf8_chunks() {
            for character in chunk.valid().chars() {
                if drives_a_terminal(character) {
                    write!(f, "{}", character.escape_default())?;
                } else {
                    f.write_char(character)?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Characters that move the cursor, end the line or turn the writing direction.
fn drives_a_terminal(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' // direction marks
            | '\u{2028}' | '\u{2029}' // line and paragraph separator
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') // embeddings, overrides, isolates
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn names_cannot_drive_a_terminal() {
        let table: &[(&str, &str)] = &[
            ("", ""),
            ("model.safetensors", "model.safetensors"),
            ("a b\\c\"d", "a b\\c\"d"),
            ("größe-模型-😀", "größe-模型-😀"),
            ("\0\t\n\r", r"\u{0}\t\n\r"),
            ("\u{1b}]0;title\u{7}", r"\u{1b}]0;title\u{7}"),
            ("\u{7f}", r"\u{7f}"),
            ("\u{80}\u{9b}31m\u{9f}", r"\u{80}\u{9b}31m\u{9f}"),
            ("\u{a0}", "\u{a0}"),
            ("\u{200d}\u{200e}\u{200f}\u{2010}", "\u{200d}\\u{200e}\\u{200f}\u{2010}"),
            ("\u{61c}\u{2028}\u{2029}", r"\u{61c}\u{2028}\u{2029}"),
            ("\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}", r"\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}"),
            ("\u{2066}\u{2067}\u{2068}\u{2069}\u{206a}", "\\u{2066}\\u{2067}\\u{2068}\\u{2069}\u{206a}"),
        ];
        for (name, shown) in table {
            assert_eq!(terminal_safe(name).to_string(), *shown, "{name:?}");
        }
        for character in (0..=0x9f).filter_map(char::from_u32) {
            let shown = terminal_safe(&character.to_string()).to_string();
            assert!(!shown.chars().any(char::is_control), "{character:?} is shown as {shown:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn bytes_that_are_no_text_are_shown_as_numbers() {
        use std::os::unix::ffi::OsStrExt as _;
        let table: &[(&[u8], &str)] = &[
            (b"\xff", r"\xff"),
            (b"a\xc3(b", r"a\xc3(b"),
            (b"\xe2\x80", r"\xe2\x80"),
            (b"\xed\xa0\x80", r"\xed\xa0\x80"),
            (b"\x9b1m \xc2\x9b1m", r"\x9b1m \u{9b}1m"),
        ];
        for (name, shown) in table {
            assert_eq!(terminal_safe(OsStr::from_bytes(name)).to_string(), *shown, "{name:?}");
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
