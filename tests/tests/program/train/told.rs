//! SIGTERM and SIGUSR1: a run that is asked to stop saves and ends well; one that is asked to save saves and goes on.

use std::fs;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use super::{Bench, Ran, collect};
use safestep_tests::remarks::skipped;

/// So many signals in one burst.
fn send(signal: &str, times: u32, child: &Child) {
    let kill = format!("kill -s {signal} {}; ", child.id()).repeat(times as usize);
    // Who has ended already hears nothing: that is no failure here.
    let _ = Command::new("sh").args(["-c", &kill]).output().unwrap();
}

/// Waits until both signals are caught. False where nobody tells.
fn hears(child: &Child) -> bool {
    const SIGUSR1: u64 = 10;
    let path = format!("/proc/{}/status", child.id());
    wait(|| {
        let status = fs::read_to_string(&path).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
        caught.is_some_and(|set| set >> (SIGUSR1 - 1) & 1 == 1)
    })
}

fn wait(until: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        if until() {
            return true;
        }
        thread::sleep(Duration::from_micros(100));
    }
    false
}

/// Says after which step it stopped, if it did not finish before.
fn stopped(ran: &Ran) -> Option<u64> {
    ran.expect(0);
    assert!(!ran.err.contains("safestep: "), "{}", ran.err);
    let stopped = ran.err.lines().find_map(|line| line.strip_prefix("stopped after step "));
    let step = stopped.and_then(|rest| rest.split(' ').next()).map(|step| step.parse().unwrap());
    if let Some(step) = step {
        assert!(ran.err.contains(&format!("saved {step}\nstopped")), "{}", ran.err);
    }
    step
}

#[test]
fn to_stop_at_any_moment() {
    let (bench, more) = (Bench::new(), "--max-steps 400 --ckpt-every 100");
    let began = Instant::now();
    let whole = bench.whole(more);
    let life = began.elapsed().min(Duration::from_millis(500));
    let mut stops = 0;
    for (part, times) in (0..12).zip([1, 2].into_iter().cycle()) {
        bench.remove("run");
        let child = bench.command("run", more).spawn().unwrap();
        if !hears(&child) {
            skipped("no /proc says which signals are caught");
            drop(collect(child));
            return;
        }
        // The first one comes as early as a handler stands.
        thread::sleep(life * part / 12);
        send("TERM", times, &child);
        let ran = collect(child);
        let step = stopped(&ran);
        stops += usize::from(step.is_some());
        let resumed = bench.train("run", &format!("{more} --resume"));
        resumed.expect(0);
        let step = step.unwrap_or(400);
        assert!(resumed.err.starts_with(&format!("resumed {step}\n")), "{}", resumed.err);
        assert_eq!(bench.outcome("run"), whole, "{step}");
    }
    assert!(stops > 0);
}

/// It saves all the time, and is told so when the directory of a save that is not done stands there.
#[test]
fn to_stop_during_a_save() {
    let (bench, more) = (Bench::new(), "--max-steps 60 --ckpt-every 1");
    let whole = bench.whole(more);
    for times in [1, 2, 1, 2] {
        bench.remove("run");
        let child = bench.command("run", more).spawn().unwrap();
        let root = bench.at("run/ckpt");
        let saves = || {
            let names = fs::read_dir(&root).into_iter().flatten().flatten();
            names.into_iter().any(|entry| entry.file_name().to_string_lossy().ends_with(".tmp"))
        };
        assert!(wait(saves));
        send("TERM", times, &child);
        stopped(&collect(child));
        bench.ends_like(&whole, "run", more);
    }
}

/// What comes while a save is asked for already asks for nothing new. A process that is halted meanwhile hears ten signals as
/// one, and saves once; one that runs may hear each of them.
#[test]
fn to_save_ten_times_in_a_burst() {
    for (halted, most) in [(true, 1), (false, 10)] {
        let bench = Bench::new();
        let more = |steps: u64| format!("--max-steps {steps} --ckpt-every 1000000");
        let child = bench.command("run", &more(10_000_000)).spawn().unwrap();
        if !hears(&child) {
            skipped("no /proc says which signals are caught");
            let mut child = child;
            child.kill().unwrap();
            drop(collect(child));
            return;
        }
        if halted {
            send("STOP", 1, &child);
        }
        send("USR1", 10, &child);
        send("CONT", 1, &child);
        let latest = || fs::read_to_string(bench.at("run/ckpt/LATEST")).unwrap_or_default();
        let lines = || fs::read(bench.at("run/.loss.json")).unwrap_or_default().len();
        // Saved, and going on: no save was left to do while many steps were done.
        let went_on = wait(|| {
            let (step, before) = (latest(), lines());
            !step.is_empty() && wait(|| lines() > before + 2000) && latest() == step
        });
        send("TERM", 1, &child);
        let ran = collect(child);
        assert!(went_on, "{ran:?}");
        let step = stopped(&ran).unwrap();
        let saves = ran.err.lines().filter_map(|line| line.strip_prefix("saved "));
        let saves: Vec<u64> = saves.map(|step| step.parse().unwrap()).collect();
        let (last, on_demand) = saves.split_last().unwrap();
        assert_eq!(*last, step);
        assert!((1..=most).contains(&on_demand.len()) && saves.is_sorted(), "{halted}: {saves:?}");
        assert!(on_demand.iter().all(|saved| *saved < step), "{saves:?}");
        let whole = bench.whole(&more(step + 5));
        bench.ends_like(&whole, "run", &more(step + 5));
    }
}
