//! A checkpoint root becomes the newest state that can be trusted, and a word about each that could not.
//!
//! The step that `LATEST` names comes first; if it is not whole, the newest older one that is. Newer ones were never declared
//! done and are not looked at. Without a readable `LATEST` the newest whole one wins.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use safestep_core::checkpoint::{OPTIMIZER_STATE_NONE, StepName, TrainerState};

use super::names::CONFIG;
use super::scan::{Latest, scan};
use super::verify::{Flaw, FlawKind, Inspected, optimizer_state};
use crate::disk::Disk;
use crate::error::{Cause, Error};
use crate::mapped::Mapped;
use crate::model::Model;

/// A checkpoint that was verified, byte by byte, and is mapped: tensors are views of the bytes that were checked.
#[derive(Debug)]
pub struct Checkpoint {
    /// Its directory.
    pub path: PathBuf,
    /// Its name.
    pub name: StepName,
    /// The parameters.
    pub model: Model,
    /// The optimizer's arrays, by name.
    pub optimizer: Model,
    /// The rest of the run.
    pub trainer: TrainerState,
    /// What `LATEST` says.
    pub latest: Latest,
    /// The steps that came before it in order and are not whole.
    pub skipped: Vec<Skipped>,
    files: BTreeMap<String, Mapped>,
}

/// A step that was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its name.
    pub name: StepName,
    /// What is wrong with it.
    pub flaws: Vec<Flaw>,
}

impl Checkpoint {
    /// The rest of the optimizer's state, JSON text; `{}` if there is none.
    pub fn optimizer_state(&self) -> String {
        optimizer_state(&self.optimizer).unwrap_or_else(|| OPTIMIZER_STATE_NONE.into())
    }

    /// The text of `config.json`, if there is one.
    pub fn config(&self) -> Option<&[u8]> {
        self.file(CONFIG)
    }

    /// The bytes of a further file.
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(Mapped::bytes)
    }

    /// The names of the config and of further files, in order.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        let mut separator = ": ";
        for flaw in &self.flaws {
            write!(f, "{separator}{flaw}")?;
            separator = ", ";
        }
        Ok(())
    }
}

/// Loads the checkpoint that a resume takes.
///
/// # Errors
/// [`Cause::NoCheckpoint`] when there is none, or none that is whole; [`Cause::ThreadLost`]; otherwise as [`scan()`].
pub fn load<D: Disk>(disk: &D, root: &Path) -> Result<Checkpoint, Error> {
    let scan = match scan(disk, root) {
        Err(error) if is_not_found(&error) => {
            return Err(Error::new("load from", root, Cause::NoCheckpoint { skipped: Vec::new() }));
        }
        answer => answer?,
    };
    let mut skipped = Vec::new();
    let newest = scan.latest.step();
    // What LATEST names may be gone altogether.
    if let Some(name) = newest.filter(|name| !scan.steps.contains(name)) {
        let flaw = Flaw { file: name.as_str().into(), kind: FlawKind::Missing };
        skipped.push(Skipped { name, flaws: vec![flaw] });
    }
    let candidates = scan.steps.iter().rev().filter(|name| newest.is_none_or(|newest| **name <= newest));
    for name in candidates {
        let opened = match open(root, *name) {
            // It may be whole for all we know.
            Err(error) if matches!(error.because(), Cause::ThreadLost) => return Err(error),
            // One that cannot even be listed, or that somebody deletes just now, is stepped over like any other.
            Err(error) => {
                let kind = FlawKind::Unreadable(error.because().to_string());
                Err(vec![Flaw { file: name.as_str().into(), kind }])
            }
            Ok(opened) => opened,
        };
        match opened {
            Ok(checkpoint) => return Ok(Checkpoint { skipped, latest: scan.latest, ..checkpoint }),
            Err(flaws) => skipped.push(Skipped { name: *name, flaws }),
        }
    }
    let skipped = skipped.iter().map(ToString::to_string).collect();
    Err(Error::new("load from", root, Cause::NoCheckpoint { skipped }))
}

/// Loads one step and no other, whatever `LATEST` says.
///
/// # Errors
/// [`Cause::Damaged`] with every flaw; [`Cause::Io`] when it is not there; [`Cause::ThreadLost`].
pub fn load_step<D: Disk>(disk: &D, root: &Path, step: u64) -> Result<Checkpoint, Error> {
    let name = StepName::of(step);
    let latest = scan(disk, root)?.latest;
    match open(root, name)? {
        Ok(checkpoint) => Ok(Checkpoint { latest, ..checkpoint }),
        Err(flaws) => {
            let flaws = flaws.iter().map(ToString::to_string).collect();
            Err(Error::new("load", root.join(name.as_str()), Cause::Damaged(flaws)))
        }
    }
}

fn open(root: &Path, name: StepName) -> Result<Result<Checkpoint, Vec<Flaw>>, Error> {
    let path = root.join(name.as_str());
    let opened = Inspected::of(&path, &|_, _| {})?.open();
    Ok(opened.map(|opened| Checkpoint {
        path,
        name,
        model: opened.model,
        optimizer: opened.optimizer,
        trainer: opened.trainer,
        latest: Latest::Absent,
        skipped: Vec::new(),
        files: opened.files,
    }))
}

fn is_not_found(error: &Error) -> bool {
    matches!(error.because(), Cause::Io(error) if error.kind() == io::ErrorKind::NotFound)
}
