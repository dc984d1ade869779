//! `train bigram`: whatever ends a run before its time, resumed it ends on the bytes of a run that nothing has disturbed.
//!
//! Processes are real, and so are the signals. What is compared is what a run is for: `final.json`, the last checkpoint
//! with all its files, the samples, and the history as `history --json` tells it.

mod killed;
mod told;
mod traced;
mod failing;
mod refused;
mod beside;
mod shown;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use safestep_tests::tokens::twin::Generator;
use serde_json::Value;

use super::{Ran, collect, finish, names, program, run_in};

/// A directory with a small shard, for runs beside it.
struct Bench {
    directory: tempfile::TempDir,
}

/// What is left at the end.
#[derive(Debug, PartialEq)]
struct Outcome {
    last_word: String,
    checkpoint: (OsString, Vec<(OsString, Vec<u8>)>),
    samples: String,
    history: String,
}

/// A commit that checkpoints name, whichever repository is around and whoever resumes.
const GIT_SHA: &str = "0123456789abcdef0123456789abcdef01234567";

impl Bench {
    fn new() -> Self {
        let bench = Self { directory: tempfile::tempdir().unwrap() };
        bench.pack("ids", 700);
        bench
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Packs so many ids of a vocabulary of 32, of which some like to follow others.
    fn pack(&self, name: &str, len: usize) {
        let mut random = Generator::seed(7, 54);
        let ids: Vec<String> =
            (0..len).map(|place| ((place as u128 * 5 + random.draw() % 4) % 32).to_string()).collect();
        fs::write(self.at("ids.txt"), ids.join(" ")).unwrap();
        let shard = format!("{name}.bin");
        let pack = ["tokens", "pack", "ids.txt", "--from", "text", "--vocab", "32", "--out", &shard];
        run_in(self.directory.path(), pack).expect(0);
    }

    /// Our program as another one starts it, about to train.
    fn command_by(&self, before: &[&str], run: &str, more: &str) -> Command {
        let ours = program();
        let mut command = match before.split_first() {
            None => ours,
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(ours.get_program()).stdin(Stdio::null());
                command
            }
        };
        command.current_dir(self.directory.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.args(["train", "bigram", "--data", "ids.bin", "--out", run, "--git-sha", GIT_SHA]);
        // What is told later replaces nothing: each option stands once.
        for (option, value) in [("--batch", "4"), ("--seq-len", "8")] {
            if !more.contains(option) {
                command.args([option, value]);
            }
        }
        command.args(more.split_whitespace());
        command
    }

    fn command(&self, run: &str, more: &str) -> Command {
        self.command_by(&[], run, more)
    }

    fn train(&self, run: &str, more: &str) -> Ran {
        finish(&mut self.command(run, more))
    }

    /// A run that nothing disturbs.
    fn whole(&self, more: &str) -> Outcome {
        self.train("whole", more).expect(0);
        self.outcome("whole")
    }

    fn outcome(&self, run: &str) -> Outcome {
        let history = run_in(self.directory.path(), ["history", run, "--json"]);
        let read = |name: &str| fs::read_to_string(self.at(run).join(name)).unwrap();
        let last = self.steps(run).pop().unwrap();
        let checkpoint = self.at(run).join("ckpt").join(&last);
        let files = names(&checkpoint).into_iter().map(|name| {
            let bytes = fs::read(checkpoint.join(&name)).unwrap();
            (name, bytes)
        });
        assert_eq!(read("ckpt/LATEST").trim(), last.to_str().unwrap());
        Outcome {
            last_word: read("final.json"),
            samples: read(".samples.json"),
            history: history.expect(0).into(),
            checkpoint: (last.clone(), files.collect()),
        }
    }

    /// The names of the checkpoints, the oldest first.
    fn steps(&self, run: &str) -> Vec<OsString> {
        let mut names = names(&self.at(run).join("ckpt"));
        names.retain(|name| {
            name.to_str().is_some_and(|name| name.starts_with("step-") && !name.ends_with(".tmp"))
        });
        names
    }

    /// Goes on with a run to its end, which is that of the whole one.
    #[track_caller]
    fn ends_like(&self, whole: &Outcome, run: &str, more: &str) -> Ran {
        let ran = self.train(run, &format!("{more} --resume"));
        ran.expect(0);
        assert_eq!(&self.outcome(run), whole, "{run} {more}: {}", ran.err);
        ran
    }

    fn remove(&self, run: &str) {
        let _ = fs::remove_dir_all(self.at(run));
    }

    /// A second run that is the first one so far.
    fn copy(&self, from: &str, to: &str) {
        self.remove(to);
        let copied = Command::new("cp").arg("-r").arg(self.at(from)).arg(self.at(to)).status();
        assert!(copied.unwrap().success());
    }
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}
