//! A checkpoint root becomes the list of what stands in it. Nothing is judged by its content but `LATEST`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use safestep_core::checkpoint::StepName;

use super::names::{LATEST, is_temporary, step};
use crate::disk::{Disk, Found};
use crate::error::{Error, FileKind};

/// What stands in a checkpoint root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// The steps that have a directory, in order. Whether they are whole, [`verify`](crate::checkpoint::verify()) tells.
    pub steps: Vec<StepName>,
    /// Which step was declared done last.
    pub latest: Latest,
    /// What saves that did not come to their end have left: the next one clears it.
    pub stale: Vec<OsString>,
    /// Names that mean nothing here. They are never touched.
    pub foreign: Vec<OsString>,
}

/// What `LATEST` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Latest {
    /// There is none.
    #[default]
    Absent,
    /// This step, which need not be there.
    Step(StepName),
    /// Nothing that could be read: why.
    Unreadable(String),
}

impl Latest {
    /// The step, if it names one.
    pub fn step(&self) -> Option<StepName> {
        match self {
            Self::Step(name) => Some(*name),
            Self::Absent | Self::Unreadable(_) => None,
        }
    }
}

impl fmt::Display for Latest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("there is none"),
            Self::Step(name) => name.fmt(f),
            Self::Unreadable(reason) => f.write_str(reason),
        }
    }
}

/// The checkpoint root of a run: its `ckpt` if there is one, else the path itself.
pub fn root_of(run: &Path) -> PathBuf {
    let inner = run.join("ckpt");
    if inner.is_dir() { inner } else { run.to_path_buf() }
}

/// Lists a checkpoint root.
///
/// # Errors
/// [`Cause::Io`](crate::Cause::Io) when it cannot be listed, also because it is not there, or when the disk fails on the way.
pub fn scan<D: Disk>(disk: &D, root: &Path) -> Result<Scan, Error> {
    let names = disk.list(root).map_err(|error| Error::io("list", root, error))?;
    let mut scan = Scan { latest: read_latest(disk, &root.join(LATEST))?, ..Scan::default() };
    for name in names {
        if let Some(step) = step(&name)
            && is_directory(disk, &root.join(&name))?
        {
            scan.steps.push(step);
        } else if is_temporary(&name) {
            scan.stale.push(name);
        } else if name != OsStr::new(LATEST) {
            scan.foreign.push(name);
        }
    }
    scan.steps.sort();
    Ok(scan)
}

fn is_directory<D: Disk>(disk: &D, path: &Path) -> Result<bool, Error> {
    let found = disk.look(path).map_err(|error| Error::io("look at", path, error))?;
    Ok(found == Found::Other(FileKind::Directory))
}

/// What `LATEST` says. A missing newline is forgiven: somebody wrote the name by hand. Something else than a file counts as
/// unreadable; a disk that fails is an error, since it could say something else the next time.
fn read_latest<D: Disk>(disk: &D, path: &Path) -> Result<Latest, Error> {
    let text = match disk.read(path, LATEST_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A link to nothing is not nothing.
            let found = disk.look(path).map_err(|error| Error::io("look at", path, error))?;
            return Ok(match found {
                Found::Nothing => Latest::Absent,
                _ => Latest::Unreadable(error.to_string()),
            });
        }
        Err(error) if is_no_file(&error) => return Ok(Latest::Unreadable(error.to_string())),
        Err(error) => return Err(Error::io("read", path, error)),
    };
    let text = String::from_utf8_lossy(&text);
    Ok(match StepName::parse(text.strip_suffix('\n').unwrap_or(&text)) {
        Some(name) => Latest::Step(name),
        None => Latest::Unreadable(format!("it names no step: {text:?}")),
    })
}

/// Whether an error says that something else than a small file stands there.
fn is_no_file(error: &io::Error) -> bool {
    #[cfg(unix)]
    let is_loop = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
    #[cfg(not(unix))]
    let is_loop = false;
    is_loop || matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge)
}

/// No name is so long.
const LATEST_BYTES_MAX: u64 = 256;
