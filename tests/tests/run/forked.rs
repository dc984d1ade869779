//! A data loader's worker is a fork of the trainer: it inherits the handlers, must not save over its parent's files, and has to
//! die of the SIGTERM that it was sent. The fork is a real one, of this very test binary.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use daemonize::{Daemonize, Outcome};
use safestep::run::{History, RunFiles, Signals};
use safestep::{Cause, OsDisk};

/// Where the two find each other.
const MEETING: &str = "SAFESTEP_TEST_MEETING";

/// The trainer and its worker, each of which notes what it hears; a test in name only.
#[test]
#[ignore = "the other tests start it"]
fn trainer_and_worker() {
    let Some(meeting) = std::env::var_os(MEETING) else { return };
    let meeting = Path::new(&meeting);
    let signals = Signals::install().unwrap();
    let note = |name: &str, text: &str| {
        fs::write(meeting.join(format!("{name}.new")), text).unwrap();
        fs::rename(meeting.join(format!("{name}.new")), meeting.join(name)).unwrap();
    };
    let files = RunFiles::new(meeting, "").unwrap();
    let open = || History::open(&OsDisk, &files);
    let history = open().unwrap();
    match Daemonize::new().working_directory(meeting).execute() {
        Outcome::Parent(done) => {
            done.unwrap();
            // The lock is the trainer's, whatever the worker does with its copy, and ends with the trainer's.
            assert!(wait(|| meeting.join("worker").exists()));
            assert!(matches!(open().unwrap_err().because(), Cause::Locked { .. }));
            drop(history);
            open().unwrap();
            note("trainer", "");
            while !signals.stop_asked() {
                if signals.take_save() {
                    note("saved", "");
                }
                thread::sleep(Duration::from_millis(1));
            }
        }
        Outcome::Child(done) => {
            done.unwrap();
            let copy = open();
            assert!(matches!(copy.unwrap_err().because(), Cause::Locked { .. }));
            // As a worker does that ends: it gives up nothing that is not its own.
            drop(history);
            note("worker", &std::process::id().to_string());
            let began = Instant::now();
            while !meeting.join("go").exists() && began.elapsed() < Duration::from_secs(60) {
                thread::sleep(Duration::from_millis(1));
            }
            // It asks all the time, as a copy of the loop would; nobody answers, and so it ends by the signal or not at all.
            while !signals.stop_asked() && !signals.take_save() && began.elapsed() < Duration::from_secs(60) {
                if !meeting.join("asked").exists() {
                    note("asked", "");
                }
                thread::sleep(Duration::from_millis(1));
            }
            note("heard", "");
        }
    }
    std::process::exit(0);
}

fn wait(until: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(30) {
        if until() {
            return true;
        }
        thread::sleep(Duration::from_millis(1));
    }
    false
}

fn send(signal: &str, process: u32) {
    let status = Command::new("kill").args(["-s", signal, &process.to_string()]).status();
    assert!(status.unwrap().success(), "{signal} to {process}");
}

/// Whether a process has ended, reaped or not.
fn has_ended(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = status.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
    state.is_none_or(|state| state == Some('Z'))
}

/// A trainer and the process of its worker.
fn start(meeting: &Path) -> (Child, u32) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["run::forked::trainer_and_worker", "--exact", "--ignored", "--nocapture"]);
    let trainer = command.env(MEETING, meeting).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert!(wait(|| meeting.join("worker").exists() && meeting.join("trainer").exists()));
    let worker = fs::read_to_string(meeting.join("worker")).unwrap().parse().unwrap();
    assert_ne!(worker, trainer.id());
    (trainer, worker)
}

#[test]
fn a_worker_hears_nothing_and_dies_of_a_sigterm() {
    if !Path::new("/proc/self/stat").exists() {
        safestep_tests::remarks::skipped("a forked worker: no /proc says whether it lives");
        return;
    }
    // The SIGTERM comes while the worker asks, or before it has ever asked.
    for asks in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let (mut trainer, worker) = start(directory.path());
        let go = || fs::write(at("go"), "").unwrap();
        if asks {
            go();
            assert!(wait(|| at("asked").exists()));
        }
        send("USR1", worker);
        thread::sleep(Duration::from_millis(50));
        assert!(!has_ended(worker) && !at("heard").exists());
        send("TERM", worker);
        if !asks {
            // The handler that it has inherited caught that one.
            thread::sleep(Duration::from_millis(50));
            assert!(!has_ended(worker));
            go();
        }
        assert!(wait(|| has_ended(worker)));
        assert!(!at("heard").exists() && !at("saved").exists());

        // Its parent hears as ever.
        assert_eq!(trainer.try_wait().unwrap(), None);
        send("USR1", trainer.id());
        assert!(wait(|| at("saved").exists()));
        send("TERM", trainer.id());
        assert_eq!(trainer.wait().unwrap().code(), Some(0));
    }
}
