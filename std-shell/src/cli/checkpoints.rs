//! RUNs become what stands in their checkpoint directories, and the directories of steps become verdicts.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use safestep::checkpoint::{Latest, Scan, StepName, Verdict, root_of, scan, verify};
use safestep::{Error, OsDisk};

use crate::report::{Bar, Screen};

/// The checkpoint directory of a run.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) path: PathBuf,
    pub(super) scan: Scan,
}

impl Root {
    /// That of a run, or the one given; nothing stands in that of a run that has not saved yet.
    pub(super) fn of(run: &Path) -> Result<Self, Error> {
        let path = root_of(run);
        let mut scan = scan(&OsDisk, &path)?;
        let is_used = !scan.steps.is_empty() || !scan.stale.is_empty() || scan.latest != Latest::Absent;
        // The run's own files are strangers to nobody.
        if path == run && !is_used && !is_called_ckpt(run) {
            scan.foreign.clear();
        }
        Ok(Self { path, scan })
    }

    /// The directory of a step.
    pub(super) fn directory(&self, name: StepName) -> PathBuf {
        self.path.join(name.as_str())
    }

    /// What is wrong with `LATEST`, if something is.
    pub(super) fn latest_flaw(&self) -> Option<String> {
        match &self.scan.latest {
            Latest::Step(name) if !self.scan.steps.contains(name) => {
                Some(format!("it names {name}, which is not there"))
            }
            Latest::Unreadable(reason) => Some(reason.clone()),
            Latest::Step(_) | Latest::Absent => None,
        }
    }

    /// The steps that a resume looks at, in its order: those newer than `LATEST` were never declared done.
    pub(super) fn candidates(&self) -> impl Iterator<Item = StepName> {
        let latest = self.scan.latest.step();
        let steps = self.scan.steps.iter().rev().copied();
        steps.filter(move |name| latest.is_none_or(|latest| *name <= latest))
    }
}

fn is_called_ckpt(path: &Path) -> bool {
    let full = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    full.file_name().is_some_and(|name| name == "ckpt")
}

/// Looks at the directories of steps, with one bar over the bytes of all of them.
pub(super) struct Judge {
    bar: Mutex<Bar>,
    done_bytes: u64,
    total_bytes: u64,
}

impl Judge {
    pub(super) fn new<'a>(screen: &Screen, directories: impl IntoIterator<Item = &'a PathBuf>) -> Self {
        let total_bytes = directories.into_iter().map(|path| bytes_in(path)).fold(0, u64::saturating_add);
        Self { bar: Mutex::new(screen.bar()), done_bytes: 0, total_bytes }
    }

    /// The verdict on the next directory; the bar is gone until then.
    pub(super) fn verdict(&mut self, directory: &Path) -> Result<Verdict, Error> {
        let (bar, before, total) = (&self.bar, self.done_bytes, self.total_bytes);
        let verdict = verify(&named(directory), &|done, _| {
            if let Ok(mut bar) = bar.lock() {
                bar.progress(before.saturating_add(done), total);
            }
        });
        if let Ok(bar) = self.bar.get_mut() {
            bar.clear();
        }
        self.done_bytes = before.saturating_add(bytes_in(directory));
        verdict
    }
}

/// The same directory with a name of its own, by which its manifest is judged: `.` has none.
fn named(directory: &Path) -> PathBuf {
    match directory.file_name() {
        Some(_) => directory.to_path_buf(),
        None => fs::canonicalize(directory).unwrap_or_else(|_| directory.to_path_buf()),
    }
}

/// The length of the files in a directory, for a bar: what cannot be looked at is told elsewhere.
fn bytes_in(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let lengths = entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len());
    lengths.fold(0, u64::saturating_add)
}

/// What is wrong with a step, on one line; nothing, if it is whole.
pub(super) fn reason(verdict: &Verdict) -> Option<String> {
    let flaws: Vec<String> = verdict.flaws.iter().map(ToString::to_string).collect();
    (!flaws.is_empty()).then(|| flaws.join(", "))
}
