//! The losses of a run become lines of a file that only grows, and such a file the canonical history of the run.
//!
//! A line goes to the kernel with one call, so another program sees it at once, and a killed process loses none; a power
//! failure may, unless [`History::sync`] has returned. What a crash has cut off is the last line alone. On the next open
//! it is copied into a file of its own ([`Commit`]), and only when that is durable the history is cut to its last whole line:
//! of what is whole no byte is ever written again.

mod records;
mod canonical;

pub use canonical::{Canonical, Entries, Summary, loss_value};

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process;

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use safestep_core::history::{self as core_history, Line, Loss, NonFinite};

use crate::commit::Commit;
use crate::disk::{Disk, Found, Locked, holder};
use crate::error::{Cause, Error};
use crate::read_at::{FileReader, ReadAt as _};
use crate::run::RunFiles;
use records::{Form, form_of};

/// A loss history, open to be appended to. One process at a time has it.
///
/// ```
/// use safestep::OsDisk;
/// use safestep::run::{Canonical, History, RunFiles, Value};
///
/// let directory = tempfile::tempdir()?;
/// let files = RunFiles::new(directory.path(), "")?;
/// let mut history = History::open(&OsDisk, &files)?;
/// for step in 1..=60 {
///     history.append(step, 1.0 / step as f64, &[("lr", Value::Number(3e-4))])?;
/// }
/// // Killed; the last checkpoint is that of step 50.
/// history.resume(50)?;
/// history.append(51, f64::NAN, &[])?;
///
/// let canonical = Canonical::open(&files.loss())?;
/// let (mut entries, mut steps) = (canonical.entries(), Vec::new());
/// while let Some(entry) = entries.next()? {
///     steps.push(entry.step());
/// }
/// assert_eq!(steps, (1..=51).collect::<Vec<_>>());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct History {
    file: LockedFile,
    path: PathBuf,
    /// The line that is being made.
    line: Vec<u8>,
    /// The last line is whole and has no newline.
    unended: bool,
    repair: Option<Repair>,
    /// After an error nothing more is written: half a line may stand at the end.
    abandoned: bool,
}

/// A cut line that was moved out of the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Where it stood in the history.
    pub at: u64,
    /// How long it is.
    pub len_bytes: u64,
    /// Where it is now.
    pub moved_to: PathBuf,
}

/// What a trainer adds to an entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'v> {
    /// An integer.
    Integer(i64),
    /// A count.
    Count(u64),
    /// A number; one that is not finite becomes a string, as a loss does.
    Number(f64),
    /// A text.
    Text(&'v str),
    /// A truth value.
    Bool(bool),
}

impl History {
    /// Opens the history of a run, or begins it. A cut line is moved out of the way: see [`repair`](Self::repair).
    ///
    /// # Errors
    /// [`Cause::Form`] if the file is one JSON array, which is read but not appended to; [`Cause::Locked`] if another one has
    /// it open, and nothing has changed; [`Cause::Io`] if it cannot be opened, repaired or made durable.
    pub fn open<D: Disk>(disk: &D, files: &RunFiles) -> Result<Self, Error> {
        let path = files.loss();
        let file = open_locked(disk, &path)?;
        let reader = FileReader::open(&path)?;
        let tail = match form_of(&reader)? {
            Form::Array => {
                let because = "it is one JSON array, which is read and not appended to";
                return Err(Error::new("append to", path, Cause::Form(because)));
            }
            Form::Lines => tail(&reader)?,
        };
        let repair = match tail {
            Tail::Ended | Tail::Whole => None,
            Tail::Cut { at } => Some(move_out_of_the_way(disk, &file.file, &reader, at)?),
        };
        let unended = tail == Tail::Whole;
        Ok(Self { file, path, line: Vec::new(), unended, repair, abandoned: false })
    }

    /// The line that a crash had cut off, if it had.
    pub fn repair(&self) -> Option<&Repair> {
        self.repair.as_ref()
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends the loss of a step and what the trainer adds. It has reached the kernel when this returns.
    ///
    /// # Errors
    /// [`Cause::Line`], and nothing is written, if the line would break a rule: a name stands for the format's own
    /// members, or the line is too long. [`Cause::Io`] if it cannot be written; from then on nothing is.
    pub fn append(&mut self, step: u64, loss: f64, more: &[(&str, Value<'_>)]) -> Result<(), Error> {
        let spelled: Vec<Option<String>> = more.iter().map(|(_, value)| value.spelled()).collect();
        let pairs: Vec<(&str, core_history::Value<'_>)> = more
            .iter()
            .zip(&spelled)
            .map(|((name, value), spelled)| match (spelled, value) {
                (Some(spelled), _) => (*name, core_history::Value::Json(spelled)),
                (None, Value::Text(text)) => (*name, core_history::Value::Text(text)),
                (None, _) => (*name, core_history::Value::Text(non_finite(value.number()).word())),
            })
            .collect();
        let number = spelled_number(loss);
        let loss = match &number {
            Some(number) => Loss::Number(number),
            None => Loss::NonFinite(non_finite(loss)),
        };
        self.put(|line| core_history::write_entry(step, loss, &pairs, line))
    }

    /// Appends the mark of a resume: entries beyond `step` are superseded, and still there.
    ///
    /// # Errors
    /// [`Cause::Io`] if it cannot be written; from then on nothing is.
    pub fn resume(&mut self, step: u64) -> Result<(), Error> {
        self.put(|line| Line::Resume(step).write(line))
    }

    /// Returns once all that was appended would survive a power failure: call it before a checkpoint is declared done.
    ///
    /// # Errors
    /// [`Cause::Io`]; from then on nothing is written or synced.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.attempt("sync", |file, _| Ok(rustix::fs::fsync(file)?))
    }

    /// Makes a line, judges it and appends it.
    fn put(
        &mut self,
        write: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        if self.unended {
            line.push(b'\n');
        }
        let spelled = write(&mut |piece| {
            line.extend_from_slice(piece);
            Ok(())
        });
        self.line = line;
        spelled?;
        if let Err(error) = Line::parse(&self.line) {
            return Err(Error::new("append to", &self.path, Cause::Line { number: 1, at: 0, error }));
        }
        self.line.push(b'\n');
        self.attempt("append to", |mut file, line| file.write_all(line))?;
        self.unended = false;
        Ok(())
    }

    fn attempt(
        &mut self,
        doing: &'static str,
        step: impl FnOnce(&File, &[u8]) -> io::Result<()>,
    ) -> Result<(), Error> {
        if self.abandoned {
            return Err(Error::new(doing, &self.path, Cause::Abandoned));
        }
        step(&self.file.file, &self.line).map_err(|error| {
            self.abandoned = true;
            Error::io(doing, &self.path, error)
        })
    }
}

impl Value<'_> {
    /// As JSON spells it, unless it is to be a string.
    fn spelled(&self) -> Option<String> {
        match self {
            Self::Integer(value) => Some(value.to_string()),
            Self::Count(value) => Some(value.to_string()),
            Self::Bool(value) => Some(value.to_string()),
            Self::Number(value) => spelled_number(*value),
            Self::Text(_) => None,
        }
    }

    fn number(&self) -> f64 {
        match self {
            Self::Number(value) => *value,
            _ => f64::NAN,
        }
    }
}

/// The shortest digits that are this number and no other; nothing for one that is not finite.
fn spelled_number(value: f64) -> Option<String> {
    value.is_finite().then(|| format!("{value:?}"))
}

fn non_finite(value: f64) -> NonFinite {
    if value.is_nan() {
        NonFinite::NaN
    } else if value > 0.0 {
        NonFinite::Infinity
    } else {
        NonFinite::NegativeInfinity
    }
}

/// Keeps trainers away from a history as long as the answer lives; nothing if there is none, or if this very process has it
/// open and so knows what it does.
pub(super) fn keep_still(path: &Path) -> Result<Option<LockedFile>, Error> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(metadata) if metadata.is_file() => {}
        // Nobody appends to it.
        Ok(_) => return Ok(None),
        Err(error) => return Err(Error::io("look at", path, error)),
    }
    let io = |error| Error::io("open", path, error);
    let file = File::open(path).map_err(io)?;
    match lock(file).map_err(io)? {
        Locked::Ours(file) => Ok(Some(file)),
        Locked::Theirs { pid } if pid == Some(process::id()) => Ok(None),
        Locked::Theirs { pid } => Err(Error::new("pivot beside", path, Cause::Locked { pid })),
    }
}

/// A file that is locked until this is dropped by the process that has locked it. To close it would not be enough where a process
/// that was forked meanwhile holds the same open file; and that one's end is not the end of the lock.
#[derive(Debug)]
pub(super) struct LockedFile {
    file: File,
    process: u32,
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        if self.process == process::id() {
            // What fails here ends when the file is closed.
            let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        }
    }
}

/// Locks a file. Where the file system has no locks, it is ours.
fn lock(file: File) -> io::Result<Locked<LockedFile>> {
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOLCK) => {
            Ok(Locked::Ours(LockedFile { file, process: process::id() }))
        }
        Err(Errno::WOULDBLOCK) => Ok(Locked::Theirs { pid: holder(&file) }),
        Err(error) => Err(error.into()),
    }
}

/// Opens the file that has the name, for us alone. One that was exchanged while we waited is opened again.
fn open_locked<D: Disk>(disk: &D, path: &Path) -> Result<LockedFile, Error> {
    let io = |error| Error::io("open", path, error);
    loop {
        let is_new = matches!(disk.look(path).map_err(io)?, Found::Nothing);
        if let Ok(metadata) = fs::metadata(path)
            && !metadata.is_file()
        {
            // Says what it is instead, without waiting for a FIFO's reader.
            FileReader::open(path)?;
        }
        let file = OpenOptions::new().append(true).create(true).open(path).map_err(io)?;
        let file = match lock(file).map_err(io)? {
            Locked::Ours(file) => file,
            Locked::Theirs { pid } => return Err(Error::new("append to", path, Cause::Locked { pid })),
        };
        if is_new {
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            disk.sync_dir(directory.unwrap_or(Path::new("."))).map_err(io)?;
        }
        let (ours, named) = (file.file.metadata().map_err(io)?, fs::metadata(path).map_err(io)?);
        if (ours.dev(), ours.ino()) == (named.dev(), named.ino()) {
            return Ok(file);
        }
    }
}

/// How a file of lines ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    /// With a newline, or empty.
    Ended,
    /// With a whole line that has none.
    Whole,
    /// With a part of a line.
    Cut { at: u64 },
}

/// Looks at what follows the last newline.
fn tail(reader: &FileReader) -> Result<Tail, Error> {
    let begin = behind_the_last_newline(reader)?;
    let len = reader.len_bytes().saturating_sub(begin);
    if len == 0 {
        return Ok(Tail::Ended);
    }
    if len > safestep_core::limits::LOSS_LINE_BYTES_MAX {
        return Ok(Tail::Cut { at: begin });
    }
    let mut line = vec![0; usize::try_from(len).unwrap_or_default()];
    reader.read_at(begin, &mut line)?;
    let whole = line.trim_ascii().is_empty() || Line::parse(&line).is_ok();
    Ok(if whole { Tail::Whole } else { Tail::Cut { at: begin } })
}

fn behind_the_last_newline(reader: &FileReader) -> Result<u64, Error> {
    let mut block = vec![0; BLOCK_BYTES];
    let mut end = reader.len_bytes();
    while end > 0 {
        let begin = end.saturating_sub(BLOCK_BYTES as u64);
        let piece = block.get_mut(..usize::try_from(end - begin).unwrap_or_default()).unwrap_or_default();
        reader.read_at(begin, piece)?;
        if let Some(place) = piece.iter().rposition(|&byte| byte == b'\n') {
            return Ok(begin + place as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

/// First the cut line gets a file of its own, then the history ends before it: a crash in between loses nothing, and the next
/// open finds the copy and ends the history once more.
fn move_out_of_the_way<D: Disk>(
    disk: &D,
    file: &File,
    reader: &FileReader,
    at: u64,
) -> Result<Repair, Error> {
    let end = reader.len_bytes();
    let moved_to = free_name(disk, reader, at)?;
    copy(disk, reader, at..end, &moved_to)?;
    let cut = file.set_len(at).and_then(|()| Ok(rustix::fs::fsync(file)?));
    cut.map_err(|error| Error::io("cut a broken line from", reader.path(), error))?;
    Ok(Repair { at, len_bytes: end - at, moved_to })
}

/// A name that nothing has, or a file that holds the same bytes already.
fn free_name<D: Disk>(disk: &D, reader: &FileReader, at: u64) -> Result<PathBuf, Error> {
    let mut name = reader.path().file_name().unwrap_or_default().to_os_string();
    name.push(format!(".cut-{at}"));
    for attempt in 1_u64.. {
        let mut name = name.clone();
        if attempt > 1 {
            name.push(format!("-{attempt}"));
        }
        let path = reader.path().with_file_name(name);
        let found = disk.look(&path).map_err(|error| Error::io("write", &path, error))?;
        if found == Found::Nothing || matches!(found, Found::File(_)) && holds(&path, reader, at)? {
            return Ok(path);
        }
    }
    Err(Error::io("write", reader.path(), io::ErrorKind::AlreadyExists.into()))
}

/// Whether a file holds what the history has from `at` on.
fn holds(path: &Path, reader: &FileReader, at: u64) -> Result<bool, Error> {
    let other = FileReader::open(path)?;
    let len = reader.len_bytes() - at;
    if other.len_bytes() != len {
        return Ok(false);
    }
    let (mut ours, mut theirs) = (vec![0; BLOCK_BYTES], vec![0; BLOCK_BYTES]);
    for begin in (0..len).step_by(BLOCK_BYTES) {
        let count = usize::try_from(len - begin).unwrap_or(usize::MAX).min(BLOCK_BYTES);
        let [ours, theirs] = [&mut ours, &mut theirs].map(|block| block.get_mut(..count).unwrap_or_default());
        reader.read_at(at + begin, ours)?;
        other.read_at(begin, theirs)?;
        if ours != theirs {
            return Ok(false);
        }
    }
    Ok(true)
}

fn copy<D: Disk>(disk: &D, reader: &FileReader, span: std::ops::Range<u64>, to: &Path) -> Result<(), Error> {
    let mut commit = Commit::begin(disk, to)?;
    let mut block = vec![0; BLOCK_BYTES];
    for begin in span.clone().step_by(BLOCK_BYTES) {
        let count = usize::try_from(span.end - begin).unwrap_or(usize::MAX).min(BLOCK_BYTES);
        let piece = block.get_mut(..count).unwrap_or_default();
        reader.read_at(begin, piece)?;
        commit.write(piece)?;
    }
    commit.finish()
}

/// How much is read at once.
const BLOCK_BYTES: usize = 64 * 1024;
