//! The files beside a run: what a crash, a signal or a change of policy may do to them, and what it must not.

mod snapshot;
mod convert;
mod history;
mod satellites;
mod signals;
mod forked;

use std::path::Path;

use safestep::run::RunFiles;
use tempfile::TempDir;

/// A run's directory and its files.
fn run(stem: &str) -> (TempDir, RunFiles) {
    let directory = tempfile::tempdir().unwrap();
    let files = RunFiles::new(directory.path(), stem).unwrap();
    (directory, files)
}

/// The names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = directory.read_dir().unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_stem_is_part_of_a_name() {
    for stem in ["a/b", "../x", "/", "a\0", "a\\b"] {
        assert!(RunFiles::new("run", stem).is_err(), "{stem:?}");
    }
    for stem in ["", ".", "..", "größe", "a b"] {
        let files = RunFiles::new("run", stem).unwrap();
        assert_eq!(files.loss(), Path::new("run").join(format!("{stem}.loss.json")));
        assert_eq!(files.loss().parent(), Some(Path::new("run")));
    }
}
