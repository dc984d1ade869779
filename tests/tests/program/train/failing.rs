//! A machine that fails while a run trains: the end is clear, and the last good checkpoint resumes.

use std::fs;
use std::process::{Command, Stdio};

use super::{Bench, Ran, finish};
use crate::program::rewrite::Mount;
use safestep_tests::remarks::skipped;

/// One complaint, as the last line. That samples could not be kept may be said before, and ends nothing.
#[track_caller]
fn complains(ran: &Ran, words: &str) {
    assert_eq!(ran.expect(3), "");
    let complaints: Vec<&str> = complaints(ran).filter(|line| !is_of_samples(line)).collect();
    assert_eq!(complaints.as_slice(), [ran.err.lines().last().unwrap()], "{}", ran.err);
    assert!(complaints[0].contains(words), "{}", ran.err);
}

fn complaints(ran: &Ran) -> impl Iterator<Item = &str> {
    ran.err.lines().filter(|line| line.starts_with("safestep: "))
}

fn is_of_samples(line: &str) -> bool {
    line.contains(".samples.json: ")
}

#[test]
fn a_full_disk() {
    let (bench, more) = (Bench::new(), "--max-steps 100 --ckpt-every 10");
    let whole = bench.whole(more);
    let run = bench.at("run");
    fs::create_dir(&run).unwrap();
    let mount = |options: &str| {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "none"]).arg(&run).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success())
    };
    if !mount("size=200k") {
        skipped("a full disk: no small file system can be mounted without root");
        return;
    }
    let _mount = Mount(&run);
    let ran = bench.train("run", more);
    complains(&ran, "");
    assert!(["are free", "No space left"].iter().any(|words| ran.err.contains(words)), "{}", ran.err);
    assert!(ran.err.contains("saved 10\n") && !ran.err.contains("saved 100\n"), "{}", ran.err);
    // Full it stays until there is room.
    complains(&bench.train("run", &format!("{more} --resume")), "");
    assert!(mount("remount,size=4m"));
    let resumed = bench.ends_like(&whole, "run", more);
    assert!(resumed.err.contains("resumed "), "{}", resumed.err);
}

/// The history is what grows, to a limit that is no end of a line; the kernel says so by a signal that would end us.
#[test]
fn a_file_larger_than_the_process_may_write() {
    let (bench, more) = (Bench::new(), "--max-steps 600 --ckpt-every 100");
    let whole = bench.whole(more);
    let limited = ["sh", "-c", "ulimit -f 23 && exec \"$0\" \"$@\""];
    let ran = finish(&mut bench.command_by(&limited, "run", more));
    complains(&ran, ".loss.json: File too large");
    assert!(ran.err.contains("saved 100\n"), "{}", ran.err);
    let resumed = bench.ends_like(&whole, "run", more);
    assert!(resumed.err.starts_with("moved a line that was cut off to "), "{}", resumed.err);
}

/// Each sync of the thread that trains, and of those that save, fails once.
#[test]
fn a_failed_sync() {
    let traced = Command::new("strace").args(["-f", "-qq", "-o", "/dev/null", "true"]).output();
    if !traced.is_ok_and(|output| output.status.success()) {
        skipped("a failed sync: no strace that may trace");
        return;
    }
    let (bench, more) = (Bench::new(), "--max-steps 20 --ckpt-every 10");
    let whole = bench.whole(more);
    let (mut failed, mut went_on) = (0, 0);
    for number in 1.. {
        bench.remove("run");
        let inject = format!("inject=fsync,fdatasync:error=EIO:when={number}");
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject];
        let ran = finish(&mut bench.command_by(&strace, "run", more));
        if ran.status.success() {
            let told: Vec<&str> = complaints(&ran).collect();
            if told.is_empty() {
                assert_eq!(bench.outcome("run"), whole);
                break;
            }
            assert!(told.iter().all(|line| is_of_samples(line)), "{}", ran.err);
            went_on += 1;
            // Those that could not be kept are kept now.
            bench.ends_like(&whole, "run", more);
            continue;
        }
        failed += 1;
        complains(&ran, "Input/output error");
        bench.ends_like(&whole, "run", more);
    }
    assert!(failed > 8 && went_on > 1, "{failed} {went_on}");
}
