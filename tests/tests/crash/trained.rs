//! The program trains a tiny model and saves every step; what it saves is held against a run that nothing has disturbed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use safestep::checkpoint::Checkpoint;
use tempfile::TempDir;

use super::room;
use crate::program::program;

/// A shard, and a run over it of which all steps are there.
pub(super) struct Trained {
    directory: TempDir,
}

/// As many as anybody saves.
const STEPS: u64 = 6;

impl Trained {
    pub(super) fn new() -> Self {
        let trained = Self { directory: room() };
        let (text, shard) = (trained.at("text"), trained.at("shard.bin"));
        fs::write(&text, "the quick brown fox jumps over the lazy dog; ".repeat(4)).unwrap();
        let mut pack = program();
        pack.args(["tokens", "pack"]).arg(text).arg("--out").arg(shard).args(["--vocab", "128"]);
        assert!(pack.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
        let run = trained.command(&trained.at("run"), STEPS, &[]).output().unwrap();
        assert!(run.status.success(), "{run:?}");
        trained
    }

    /// Where all of it is.
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Our program, about to train in this directory up to this step.
    pub(super) fn command(&self, run: &Path, step: u64, more: &[&str]) -> Command {
        let mut command = program();
        command.args(["train", "bigram", "--data"]).arg(self.at("shard.bin")).arg("--out").arg(run);
        command.args([
            "--max-steps",
            &step.to_string(),
            "--ckpt-every",
            "1",
            "--batch",
            "2",
            "--seq-len",
            "4",
        ]);
        command.args(["--git-sha", &"5a".repeat(20)]).args(more);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Which file is not the same, bit for bit.
    pub(super) fn differs_from(&self, checkpoint: &Checkpoint) -> Option<String> {
        let files = |directory: &Path| -> Vec<(PathBuf, Vec<u8>)> {
            let entries = directory.read_dir().unwrap().map(|entry| entry.unwrap());
            let mut files: Vec<_> =
                entries.map(|entry| (entry.file_name().into(), fs::read(entry.path()).unwrap())).collect();
            files.sort();
            files
        };
        let expected = files(&self.at("run/ckpt").join(checkpoint.name.as_str()));
        let found = files(&checkpoint.path);
        let differs = expected.iter().zip(&found).find(|(one, other)| one != other);
        match differs {
            Some(((name, _), _)) => Some(format!("another {}", name.display())),
            None if expected.len() == found.len() => None,
            None => Some("more files, or fewer".to_owned()),
        }
    }
}
