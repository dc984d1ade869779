//! A process that saves all the time is killed, a thousand times, at times drawn with a fixed seed. Every other one writes its
//! small state as if it were large: many threads at once.
//!
//! It says nothing about syncs: what the kernel has is safe. It shows that every state between two system calls is one that a
//! load and the next save can live with, and that nothing in a temporary directory looks whole that is not.

use std::io::Read as _;
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use safestep::checkpoint::verify;
use safestep_tests::headers::random::Random;
use safestep_tests::remarks::remark;

use super::{Who, judge, reported, room, saver};

const KILLS: usize = 1000;
/// A process lives no longer than this.
const MICROSECONDS_MAX: usize = 20_000;
const LEN_BYTES: usize = 3_000;

/// Kills savers until there is a complaint: how many steps were reported in all.
fn kill_savers(count: usize, flags: &[&str]) -> Result<u64, String> {
    let room = room();
    let root = room.path().join("ckpt");
    let mut random = Random::new(0x00c0_ffee);
    let (mut step, mut steps) = (0, 0);
    for kill in 0..count {
        let mut saver = saver(&root, step + 1, u64::MAX, LEN_BYTES);
        if kill % 2 == 1 {
            saver.args(["--portions", "1024"]);
        }
        let child = saver.args(flags).spawn().unwrap();
        thread::sleep(Duration::from_micros(random.below(MICROSECONDS_MAX) as u64));
        let durable = reported(&killed(child)).unwrap_or(step);
        steps += durable - step;
        let judged =
            nothing_unfinished_looks_whole(&root).and_then(|()| judge(&root, durable, Who::Saver(LEN_BYTES)));
        // The judge saves one more.
        step = judged.map_err(|complaint| format!("kill {kill}, {durable} reported: {complaint}"))? + 1;
    }
    Ok(steps)
}

/// What it said until then.
fn killed(mut child: Child) -> String {
    child.kill().unwrap();
    let status = child.wait().unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(status.code(), None, "{err}");
    assert_eq!(err, "");
    out
}

/// The manifest comes last and goes first: a directory that has one is whole, whatever its name.
fn nothing_unfinished_looks_whole(root: &Path) -> Result<(), String> {
    let Ok(entries) = root.read_dir() else { return Ok(()) };
    for path in entries.map(|entry| entry.unwrap().path()) {
        let manifest = path.join("MANIFEST.json").metadata().is_ok_and(|manifest| manifest.len() > 0);
        if path.extension().is_some_and(|ending| ending == "tmp") && manifest {
            let verdict = verify(&path, &|_, _| {}).map_err(|error| error.to_string())?;
            if let Some(flaw) = verdict.flaws.first() {
                return Err(format!("{} has a manifest and is not whole: {flaw}", path.display()));
            }
        }
    }
    Ok(())
}

#[test]
fn a_thousand_kills_lose_nothing() {
    let began = Instant::now();
    let steps = kill_savers(KILLS, &[]).unwrap();
    let seconds = began.elapsed().as_secs_f64();
    remark(&format!("kills: {KILLS}, half of them of many threads: {steps} steps reported, {seconds:.1} s"));
    assert!(steps > 100, "the savers were killed before they did anything");
}

#[test]
fn kills_show_what_the_order_is_for() {
    for rule in ["manifest_last", "latest_after_step", "unname_first"] {
        let complaint = kill_savers(KILLS, &["--without", rule]).expect_err(rule);
        println!("{rule}: {complaint}");
    }
}
