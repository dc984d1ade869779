//! Samples and state become files that are replaced whole, and a pivot moves them into an archive.
//!
//! A pivot is a change of policy within a run: weights, moments and the loss history go on, samples and state do not.
//! Renames and nothing else do it, each to a name that nothing had; a crash in between leaves every file under one name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use safestep_core::history::{LineError, LineErrorKind};
use safestep_core::state::{CONFIG_KEY, config_of, is_sha256};

use super::RunFiles;
use super::history::keep_still;
use crate::commit::Commit;
use crate::disk::{Disk, Found};
use crate::error::{Cause, Error, Refusal};
use crate::read_at::{FileReader, ReadAt as _};

/// Replaces the samples: any text, JSON by the name.
///
/// # Errors
/// As [`Commit`]: the old samples are then as they were.
pub fn replace_samples<D: Disk>(disk: &D, files: &RunFiles, text: &str) -> Result<(), Error> {
    replace(disk, &files.samples(), &[text])
}

/// Replaces the state: an object of JSON without a `config_sha256` of its own, which is put before its members.
///
/// ```
/// use safestep::OsDisk;
/// use safestep::run::{RunFiles, replace_state, state, state_of_any_config};
///
/// let directory = tempfile::tempdir()?;
/// let files = RunFiles::new(directory.path(), "")?;
/// let (one, other) = ("1".repeat(64), "2".repeat(64));
/// replace_state(&OsDisk, &files, &one, r#"{"arms":[3,1]}"#)?;
/// assert_eq!(state(&files, &one)?, Some(format!(r#"{{"config_sha256":"{one}","arms":[3,1]}}"#)));
/// assert!(state(&files, &other).is_err() && state_of_any_config(&files)?.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Cause::Refused`] if the config is no sha256; [`Cause::State`] if the text is no such object; both before anything is
/// written. Otherwise as [`Commit`]: the old state is then as it was.
pub fn replace_state<D: Disk>(
    disk: &D,
    files: &RunFiles,
    config_sha256: &str,
    text: &str,
) -> Result<(), Error> {
    let path = files.state();
    if !is_sha256(config_sha256) {
        let reason =
            format!("expected a sha256 of the config in 64 lower-case digits, found {config_sha256:?}");
        return Err(Error::new("write", path, Cause::Refused(Refusal::State(reason))));
    }
    let refuse = |error| Error::new("write", &path, Cause::State(error));
    match config_of(text.as_bytes()) {
        // The one error of an object that is good and has none.
        Err(error) if error.kind() == LineErrorKind::ConfigMissing => {}
        Err(error) => return Err(refuse(error)),
        Ok(_) => {
            let reason = format!("expected a state without {CONFIG_KEY}, which is added, found one");
            return Err(Error::new("write", &path, Cause::Refused(Refusal::State(reason))));
        }
    }
    // It is an object, so there is a brace.
    let members = text.trim_start().strip_prefix('{').unwrap_or_default();
    let separator = if members.trim_start().starts_with('}') { "" } else { "," };
    let head = format!("{{\"{CONFIG_KEY}\":\"{config_sha256}\"{separator}");
    replace(disk, &path, &[&head, members])
}

/// The text of the state, if there is one.
///
/// # Errors
/// [`Cause::OtherConfig`] if it was made under another config; [`Cause::State`] if it names none or is no JSON;
/// [`Cause::Io`] if it cannot be read.
pub fn state(files: &RunFiles, config_sha256: &str) -> Result<Option<String>, Error> {
    let Some(text) = state_of_any_config(files)? else { return Ok(None) };
    let path = files.state();
    let found = config_of(text.as_bytes()).map_err(|error| unreadable(&path, error))?;
    if found != config_sha256 {
        let (expected, found) = (config_sha256.to_string(), found.to_string());
        return Err(Error::new("load", path, Cause::OtherConfig { expected, found }));
    }
    Ok(Some(text))
}

/// The text of the state, if there is one, under whichever config it was made: the name by which to ask for a state that
/// [`state`] refuses.
///
/// # Errors
/// [`Cause::State`] if it names no config or is no JSON; [`Cause::Io`] if it cannot be read.
pub fn state_of_any_config(files: &RunFiles) -> Result<Option<String>, Error> {
    let path = files.state();
    let file = match FileReader::open(&path) {
        Err(error) if matches!(error.because(), Cause::Io(io) if io.kind() == io::ErrorKind::NotFound) => {
            return Ok(None);
        }
        file => file?,
    };
    let Ok(len) = usize::try_from(file.len_bytes()) else {
        return Err(Error::io("load", path, io::ErrorKind::FileTooLarge.into()));
    };
    let mut bytes = vec![0; len];
    file.read_at(0, &mut bytes)?;
    config_of(&bytes).map_err(|error| unreadable(&path, error))?;
    // Judged to be UTF-8.
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// What a pivot has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pivoted {
    /// The archive of the step; it is made only if there is something to put into it.
    pub directory: PathBuf,
    /// The files that were moved: from, to.
    pub moved: Vec<(PathBuf, PathBuf)>,
}

/// Archives samples and state of a run, never the loss history. What is not there is not missed. The second pivot at a
/// step archives under names with a number: nothing in an archive is ever replaced.
///
/// # Errors
/// [`Cause::Locked`] if another process has the loss history open: its trainer would go on with what it holds in memory.
/// Nothing has changed then. A process that has it open itself may pivot between two steps. [`Cause::Io`] if the archive cannot
/// be made, or a file cannot be moved or made durable: each file is then under its old name or its new one.
pub fn pivot<D: Disk>(disk: &D, files: &RunFiles, step: u64) -> Result<Pivoted, Error> {
    let directory = files.archive(step);
    // Held to the end: no trainer of a run that has a history begins in the middle.
    let _still = keep_still(&files.loss())?;
    let mut present = Vec::new();
    for path in [files.samples(), files.state()] {
        match disk.look(&path).map_err(|error| Error::io("archive", &path, error))? {
            Found::Nothing => {}
            Found::File(_) | Found::Link(_) => present.push(path),
            Found::Other(kind) => return Err(Error::new("archive", path, Cause::NotRegular(kind))),
        }
    }
    if present.is_empty() {
        return Ok(Pivoted { directory, moved: Vec::new() });
    }
    make_durable_directory(disk, files.directory(), &directory)?;
    let number = free_number(disk, &directory, &present)?;
    let mut moved = Vec::new();
    for from in present {
        let to = directory.join(numbered(&from, number));
        disk.rename(&from, &to).map_err(|error| Error::io("archive", &from, error))?;
        moved.push((from, to));
    }
    // First where the names are now, then where they are no more: a power failure leaves a file at two places, not at none.
    for directory in [directory.as_path(), files.directory()] {
        disk.sync_dir(directory).map_err(|error| Error::io("make durable", directory, error))?;
    }
    Ok(Pivoted { directory, moved })
}

/// Makes the two directories of an archive, of which the first may be there.
fn make_durable_directory<D: Disk>(disk: &D, run: &Path, archive: &Path) -> Result<(), Error> {
    let io = |error| Error::io("make", archive, error);
    fs::create_dir_all(archive).map_err(io)?;
    let parent = archive.parent().unwrap_or(run);
    disk.sync_dir(parent).and_then(|()| disk.sync_dir(run)).map_err(io)
}

/// The first number under which none of the files is in the archive.
fn free_number<D: Disk>(disk: &D, archive: &Path, files: &[PathBuf]) -> Result<u64, Error> {
    let mut number = 1;
    'number: loop {
        for file in files {
            let path = archive.join(numbered(file, number));
            match disk.look(&path).map_err(|error| Error::io("archive", file, error))? {
                Found::Nothing => {}
                _ => {
                    number += 1;
                    continue 'number;
                }
            }
        }
        return Ok(number);
    }
}

/// `x.state.json`, `x.state.2.json`, `x.state.3.json`, ...
fn numbered(path: &Path, number: u64) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match name.strip_suffix(".json") {
        Some(front) if number > 1 => format!("{front}.{number}.json"),
        _ => name.into_owned(),
    }
}

fn replace<D: Disk>(disk: &D, path: &Path, pieces: &[&str]) -> Result<(), Error> {
    let mut commit = Commit::begin(disk, path)?;
    for piece in pieces {
        commit.write(piece.as_bytes())?;
    }
    commit.finish()
}

fn unreadable(path: &Path, error: LineError) -> Error {
    Error::new("load", path, Cause::State(error))
}
