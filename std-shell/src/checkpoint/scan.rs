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
/// [`Cause::Io`](crate::Cause::Io) when it cannot be listed, also because it is not there.
pub fn scan<D: Disk>(disk: &D, root: &Path) -> Result<Scan, Error> {
    let names = disk.list(root).map_err(|error| Error::io("list", root, error))?;
    let mut scan = Scan { latest: read_latest(disk, root), ..Scan::default() };
    for name in names {
        if let Some(step) = step(&name)
            && is_directory(disk, &root.join(&name))
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

fn is_directory<D: Disk>(disk: &D, path: &Path) -> bool {
    matches!(disk.look(path), Ok(Found::Other(FileKind::Directory)))
}

/// What `LATEST` says. A missing newline is forgiven: somebody wrote the name by hand.
fn read_latest<D: Disk>(disk: &D, root: &Path) -> Latest {
    let text = match disk.read(&root.join(LATEST), LATEST_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_dangling(disk, root) => {
            return Latest::Absent;
        }
        Err(error) => return Latest::Unreadable(error.to_string()),
        Ok(text) => text,
    };
    let text = String::from_utf8_lossy(&text);
    match StepName::parse(text.strip_suffix('\n').unwrap_or(&text)) {
        Some(name) => Latest::Step(name),
        None => Latest::Unreadable(format!("it names no step: {text:?}")),
    }
}

/// Whether `LATEST` is a link to nothing.
fn is_dangling<D: Disk>(disk: &D, root: &Path) -> bool {
    matches!(disk.look(&root.join(LATEST)), Ok(Found::Link(_)))
}

/// No name is so long.
const LATEST_BYTES_MAX: u64 = 256;
