//! A signal at every phase of a step, of a save and of a repair: at system calls that are counted before, not at moments that
//! are guessed.
//!
//! `strace` notes what an undisturbed trainer asks of the kernel, and then runs it once for each of these calls, with a signal
//! as the call begins. What the log of that run says decides what has to follow: after which step it stops, and whether the
//! signal fell into a save.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::{Bench, Ran, collect, finish};
use crate::program::{names, skipped};

/// What a step and a save ask for, and what a start does.
const CALLS: &str = "open,openat,read,pread64,write,fsync,fdatasync,rename,renameat,renameat2,mkdir,mkdirat,unlink,unlinkat,\
                     rmdir,ftruncate,flock,fallocate";

/// A call of the thread that trains.
struct Call {
    name: String,
    /// The how manieth of that name it is.
    number: usize,
    line: String,
}

impl Bench {
    /// A run under strace: how it ended, and its calls.
    fn traced(&self, run: &str, more: &str, inject: Option<&str>) -> (Ran, Vec<Call>) {
        let log = self.at("calls");
        let trace = format!("trace={CALLS},rt_sigaction");
        let mut strace = vec!["strace", "-f", "-y", "-qq", "-s", "0", "-e", &trace];
        strace.extend(inject.iter().flat_map(|inject| ["-e", inject]));
        strace.extend(["-o", log.to_str().unwrap()]);
        let ran = finish(&mut self.command_by(&strace, run, more));
        let (text, mut counts) =
            (fs::read_to_string(&log).unwrap_or_default(), BTreeMap::<String, usize>::new());
        let main = text.split(' ').next().unwrap_or_default().to_owned();
        let mut calls = Vec::new();
        for line in text.lines() {
            let Some(line) = line.strip_prefix(&main) else { continue };
            let name = line.trim_start().split('(').next().unwrap_or_default().to_owned();
            let count = counts.entry(name.clone()).or_default();
            *count += 1;
            calls.push(Call { name, number: *count, line: line.trim_start().to_owned() });
        }
        (ran, calls)
    }
}

fn traces() -> bool {
    let traced = Command::new("strace").args(["-f", "-qq", "-o", "/dev/null", "true"]).output();
    let traces = traced.is_ok_and(|output| output.status.success());
    if !traces {
        skipped("signals at system calls: no strace that may trace");
    }
    traces
}

/// Where a run is by its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Place {
    /// Lines that were appended to the history, the one in the making included.
    step: u64,
    /// Between the first call of a save and the last one.
    saves: bool,
    /// Signals are caught.
    hears: bool,
}

impl Place {
    fn goes_on(&mut self, call: &Call) {
        let has = |word: &str| call.line.contains(word);
        self.hears |= call.name == "rt_sigaction" && has("SIGUSR1");
        self.step += u64::from(call.name == "write" && has("/.loss.json>"));
        // The history first, the pointer last.
        self.saves |= call.name == "fsync" && has("/.loss.json>");
        self.saves &= !(call.name.starts_with("rename") && has("/LATEST\""));
    }
}

#[test]
fn to_stop_at_every_phase_of_a_step_and_of_a_save() {
    const STEPS: u64 = 12;
    if !traces() {
        return;
    }
    let (bench, more) = (Bench::new(), format!("--max-steps {STEPS} --ckpt-every 5"));
    let whole = bench.whole(&more);
    bench.remove("run");
    let (ran, calls) = bench.traced("run", &more, None);
    ran.expect(0);
    // All calls of a save, and some of each other kind: of one phase many are alike.
    let (mut place, mut picked, mut alike) = (Place::default(), Vec::new(), BTreeMap::new());
    for call in &calls {
        if place.hears && CALLS.split(',').any(|name| name == call.name) {
            let count = alike.entry((call.name.clone(), place.step, place.saves)).or_insert(0);
            *count += 1;
            if *count <= if place.saves && place.step < 6 { 100 } else { 2 } {
                picked.push((call.name.clone(), call.number));
            }
        }
        place.goes_on(call);
    }
    assert_eq!(place.step, STEPS);
    let (mut in_saves, mut in_steps, mut before, mut after) = (0, 0, 0, 0);
    for (name, number) in picked {
        bench.remove("run");
        let inject = format!("inject={name}:signal=TERM:when={number}");
        let (ran, calls) = bench.traced("run", &more, Some(&inject));
        let end = calls.iter().position(|call| call.line.starts_with("--- SIGTERM"));
        let mut place = Place::default();
        // The call at which it came has begun.
        calls[..end.expect("the signal comes")].iter().for_each(|call| place.goes_on(call));
        ran.expect(0);
        assert!(!ran.err.contains("safestep: "), "{}", ran.err);
        let stopped = ran.err.lines().find_map(|line| line.strip_prefix("stopped after step "));
        let stopped =
            stopped.and_then(|rest| rest.split(' ').next()).map(|step| step.parse::<u64>().unwrap());
        // A stop that comes within a step ends with it; within a save too; before the first step, after that one.
        let expected = Some(place.step.max(1)).filter(|step| *step < STEPS);
        assert_eq!(stopped, expected, "{inject}: {}", ran.err);
        if let Some(step) = stopped {
            assert!(ran.err.contains(&format!("saved {step}\nstopped")), "{inject}: {}", ran.err);
        }
        match place {
            Place { step: 0, .. } => before += 1,
            Place { saves: true, .. } => in_saves += 1,
            Place { step: STEPS, .. } => after += 1,
            _ => in_steps += 1,
        }
        let resumed = bench.ends_like(&whole, "run", &more);
        let step = expected.unwrap_or(STEPS);
        // As late as in the last save there may be no step yet to go on from but the one before.
        let from = [format!("resumed {step}\n"), "resumed 10\n".into()];
        assert!(from.iter().any(|from| resumed.err.starts_with(from)), "{inject}: {}", resumed.err);
    }
    println!(
        "SIGTERM {before} times before the first step, {in_steps} in steps, {in_saves} in saves, {after} after all"
    );
    assert!(
        before > 5 && in_steps > 3 && in_saves > 30 && after > 3,
        "{before} {in_steps} {in_saves} {after}"
    );
}

/// A repair is cut off at each of its calls, by a kill and by an error; what was cut off from the history is never lost.
#[test]
fn to_be_killed_at_every_call_of_a_repair() {
    if !traces() {
        return;
    }
    let (bench, more) = (Bench::new(), "--max-steps 20 --ckpt-every 10");
    let whole = bench.whole(more);
    bench.train("cut", &format!("{more} --sigkill-after 15"));
    let (fragment, history) = ("{\"loss\":1.25,\"st", bench.at("run/.loss.json"));
    let good = fs::read_to_string(bench.at("cut/.loss.json")).unwrap();
    fs::write(bench.at("cut/.loss.json"), format!("{good}{fragment}")).unwrap();
    bench.copy("cut", "run");
    let resume = format!("{more} --resume");
    let (ran, calls) = bench.traced("run", &resume, None);
    ran.expect(0);
    // From the lock of the history to the first line that is appended to it.
    let touches =
        |call: &Call| call.line.contains(".loss.json") && CALLS.split(',').any(|name| name == call.name);
    let repair: Vec<&Call> = calls.iter().filter(|call| touches(call)).collect();
    let end =
        repair.iter().position(|call| call.name == "write" && call.line.contains("/.loss.json>")).unwrap();
    assert!(repair[..end].iter().any(|call| call.name == "ftruncate"));
    let kept = || {
        let cuts =
            names(&bench.at("run")).into_iter().filter(|name| name.to_str().unwrap().contains(".cut-"));
        let mut cuts = cuts.filter(|name| !name.to_str().unwrap().ends_with(".tmp"));
        cuts.any(|name| fs::read_to_string(bench.at("run").join(name)).unwrap() == fragment)
    };
    let mut faults = 0;
    for call in &repair[..=end] {
        for fault in ["signal=KILL", "error=EIO"] {
            bench.copy("cut", "run");
            let inject = format!("inject={}:{fault}:when={}", call.name, call.number);
            let (ran, _) = bench.traced("run", &resume, Some(&inject));
            let killed = fault == "signal=KILL";
            let ended = if killed { ran.status.signal() == Some(9) } else { ran.status.code() == Some(3) };
            assert!(ended, "{inject}: {ran:?}");
            let text = fs::read_to_string(&history).unwrap();
            assert!(text.starts_with(&good), "{inject}");
            assert!(text[good.len()..].starts_with(fragment) || kept(), "{inject}: {text}");
            bench.ends_like(&whole, "run", more);
            assert!(kept(), "{inject}");
            faults += 1;
        }
    }
    println!("{faults} faults in a repair of {} calls", end + 1);
    assert!(faults >= 20, "{faults}");
}

/// Whoever has loaded a step while another trainer went on from it must not go on from it as well: the mark of its resume would
/// supersede the other one's losses.
#[test]
fn a_resume_that_another_one_has_overtaken_is_refused() {
    const SLOW: Duration = Duration::from_secs(8);
    if !traces() {
        return;
    }
    let (bench, more) = (Bench::new(), "--max-steps 40 --ckpt-every 10");
    let whole = bench.whole(more);
    bench.train("run", "--max-steps 20 --ckpt-every 10").expect(0);
    // The first lock is that of the history, after the load.
    let inject = format!("inject=flock:delay_enter={}:when=1", SLOW.as_micros());
    let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject];
    let slow = bench.command_by(&strace, "run", &format!("{more} --resume")).spawn().unwrap();
    thread::sleep(SLOW / 2);
    bench.ends_like(&whole, "run", more);
    let slow = collect(slow);
    assert_eq!(slow.expect(3), "");
    let told = "safestep: cannot train in run/ckpt: another trainer was there meanwhile; resume once more\n";
    assert_eq!(slow.err, told);
    assert_eq!(bench.outcome("run"), whole);
}
