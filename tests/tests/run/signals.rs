//! Signals against a real process: this very test binary, run again as a trainer of a millisecond a step.
//!
//! A trainer that is killed by the signal it should have heeded loses the work since its last save, and nobody notices
//! until the run is needed.

use std::io::{BufRead as _, BufReader};
use std::num::NonZeroU64;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use safestep::OsDisk;
use safestep::run::{
    Cadence, Canonical, Guard, History, MappedSnapshot, Next, OnDemand, RunFiles, Signals, snapshot_name,
    write_snapshot,
};

/// Where the child finds its run, and how it saves on demand.
const RUN: &str = "SAFESTEP_TEST_RUN";
const BOUNDARY: &str = "SAFESTEP_TEST_BOUNDARY";

/// The trainer; a test in name only.
#[test]
#[ignore = "the other tests start it"]
fn trainer() {
    let Some(run) = std::env::var_os(RUN) else { return };
    let signals = Signals::install().unwrap();
    let on_demand =
        if std::env::var_os(BOUNDARY).is_some() { OnDemand::AtTheBoundary } else { OnDemand::AfterTheStep };
    let files = RunFiles::new(&run, "").unwrap();
    let mut history = History::open(&OsDisk, &files).unwrap();
    let cadence = Cadence::every(NonZeroU64::new(200).unwrap());
    let mut guard = Guard::new(cadence, signals).on_demand(on_demand);
    println!("\nready");
    for step in 1..60_000_u16 {
        thread::sleep(Duration::from_millis(1));
        history.append(step.into(), 1.0, &[]).unwrap();
        let next = guard.after_step(step.into());
        if next != Next::Go {
            history.sync().unwrap();
            // A save that takes its time: signals come in the middle of it.
            thread::sleep(Duration::from_millis(10));
            let values = vec![f32::from(step); 1000];
            let path = Path::new(&run).join(snapshot_name(step.into()));
            write_snapshot(&OsDisk, path, step.into(), [&values; 3]).unwrap();
            println!("saved {step}");
        }
        if next == Next::SaveAndStop {
            std::process::exit(0);
        }
    }
    std::process::exit(9);
}

struct Trainer {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Trainer {
    fn start(run: &Path, boundary: bool) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["run::signals::trainer", "--exact", "--ignored", "--nocapture"]).env(RUN, run);
        if boundary {
            command.env(BOUNDARY, "1");
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut trainer = Self { child, lines };
        trainer.wait_for("ready");
        trainer
    }

    /// Reads lines up to one that begins so.
    fn wait_for(&mut self, word: &str) -> String {
        let mut line = String::new();
        while !line.starts_with(word) {
            line.clear();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the trainer ended before {word}");
        }
        line.trim().to_owned()
    }

    fn send(&self, signal: &str) {
        let process = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &process]).status().unwrap().success());
    }

    fn end(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "the trainer goes on");
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Trainer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The steps of the snapshots of a run, each of them whole.
fn saved(run: &Path) -> Vec<u64> {
    let names = super::names(run).into_iter().filter(|name| name.starts_with("step_"));
    let heads = names.map(|name| {
        let snapshot = MappedSnapshot::open(run.join(&name)).unwrap();
        assert_eq!(snapshot_name(snapshot.head().step().into()), name);
        u64::from(snapshot.head().step())
    });
    heads.collect()
}

/// Whether the run ended after a whole step whose snapshot is there, and left no litter.
fn ended_well(run: &Path) {
    let files = RunFiles::new(run, "").unwrap();
    let canonical = Canonical::open(&files.loss()).unwrap();
    assert_eq!(canonical.last_step().unwrap(), saved(run).last().copied());
    assert_eq!(canonical.summary().cut_at, None);
    assert!(super::names(run).iter().all(|name| name.starts_with("step_") || name == ".loss.json"));
}

#[test]
fn a_sigterm_at_any_moment_saves_and_exits_with_0() {
    for delay in [0, 0, 1, 2, 3, 5, 8, 13, 21, 34] {
        let directory = tempfile::tempdir().unwrap();
        let mut trainer = Trainer::start(directory.path(), false);
        thread::sleep(Duration::from_millis(delay));
        trainer.send("TERM");
        assert_eq!(trainer.end().code(), Some(0));
        ended_well(directory.path());
    }
}

#[test]
fn more_sigterms_change_nothing() {
    for delay in [0, 1, 4, 9] {
        let directory = tempfile::tempdir().unwrap();
        let mut trainer = Trainer::start(directory.path(), false);
        for _ in 0..3 {
            if trainer.child.try_wait().unwrap().is_none() {
                trainer.send("TERM");
            }
            thread::sleep(Duration::from_millis(delay));
        }
        assert_eq!(trainer.end().code(), Some(0));
        ended_well(directory.path());
        assert_eq!(saved(directory.path()).len(), 1);
    }
}

#[test]
fn a_sigterm_during_a_save_is_not_lost() {
    let directory = tempfile::tempdir().unwrap();
    let mut trainer = Trainer::start(directory.path(), false);
    trainer.send("USR1");
    thread::sleep(Duration::from_millis(4));
    trainer.send("TERM");
    assert_eq!(trainer.end().code(), Some(0));
    ended_well(directory.path());
}

#[test]
fn ten_sigusr1_in_a_burst_save_and_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let mut trainer = Trainer::start(directory.path(), false);
    for _ in 0..10 {
        trainer.send("USR1");
    }
    trainer.wait_for("saved");
    // It goes on, up to the boundary of its cadence.
    while trainer.wait_for("saved") != "saved 200" {}
    trainer.send("TERM");
    assert_eq!(trainer.end().code(), Some(0));
    ended_well(directory.path());
    let saved = saved(directory.path());
    assert!(saved.contains(&200) && (3..=12).contains(&saved.len()), "{saved:?}");
}

#[test]
fn a_sigusr1_can_wait_for_the_boundary() {
    let directory = tempfile::tempdir().unwrap();
    let mut trainer = Trainer::start(directory.path(), true);
    trainer.send("USR1");
    assert_eq!(trainer.wait_for("saved"), "saved 200");
    trainer.send("TERM");
    assert_eq!(trainer.end().code(), Some(0));
    ended_well(directory.path());
}
