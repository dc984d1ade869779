//! Checkpoints: what is saved is loaded, whatever happens in between is noticed, and nothing is lost on the way.
//!
//! A training run is worth what its last checkpoint is worth. Each module below guards one way to lose it.

mod roundtrip;
mod refusals;
mod retention;
mod damage;
mod power;
mod errors;
mod background;
#[cfg(target_os = "linux")]
mod descriptors;

use std::path::{Path, PathBuf};

use safestep::checkpoint::{Checkpoint, Retention, SaveOptions, Saved, load, save};
use safestep::{Error, OsDisk};
use safestep_tests::runs::Run;
use tempfile::TempDir;

/// A root in a directory that vanishes.
fn room() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("run/ckpt");
    (directory, root)
}

fn save_at(root: &Path, step: u64) -> Result<Saved, Error> {
    Run::at(step).with(|state| save(&OsDisk, root, state, &SaveOptions::default()))
}

fn save_keeping(root: &Path, step: u64, retention: Retention) -> Saved {
    let options = SaveOptions { retention, ..SaveOptions::default() };
    Run::at(step).with(|state| save(&OsDisk, root, state, &options)).unwrap()
}

/// Loads, and holds what came against the run at its step.
fn loaded(root: &Path) -> Checkpoint {
    let checkpoint = load(&OsDisk, root).unwrap();
    assert_eq!(Run::at(checkpoint.name.step()).differs_from(&checkpoint), None);
    checkpoint
}

/// The names in a directory, in order.
fn names(directory: &Path) -> Vec<String> {
    use safestep::Disk as _;
    let names = OsDisk.list(directory).unwrap();
    names.iter().map(|name| name.to_string_lossy().into_owned()).collect()
}
