//! A checkpoint becomes a verdict: one thread beside SHA-256 of the same bytes, two threads beside one.

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use safestep::OsDisk;
use safestep::checkpoint::{SaveOptions, save, verify};
use safestep_core::checkpoint::Sha256;

use crate::pairs::{ratio, timed};
use crate::report::Report;
use crate::states::{Kind, Owned};

/// Runs the section. How many threads there are is what the library asks the machine, so it is the machine that says one.
pub(crate) fn run(state: &Owned, name: &str, directory: &Path, rounds: usize, report: &mut Report) {
    println!("\nverify {name}");
    let root = directory.join("verified");
    let saved = state.at(1, |state| save(&OsDisk, &root, state, &SaveOptions::default()));
    let path = saved.expect("a checkpoint").path;
    let verified = || timed(|| assert!(verify(&path, &|_, _| {}).expect("a directory").is_whole()));
    let all = sched_getaffinity(None).expect("a set of cores");
    let one = || {
        on_one_core(&all);
        let time = verified();
        sched_setaffinity(None, &all).expect("cores");
        time
    };
    let hashed = || {
        on_one_core(&all);
        let time: Duration = state
            .files()
            .iter()
            .map(|bytes| {
                timed(|| {
                    black_box(Sha256::of(bytes));
                })
            })
            .sum();
        sched_setaffinity(None, &all).expect("cores");
        time
    };
    let alone = ratio(rounds, one, hashed);
    alone.tell("verify, one thread", name, "SHA-256", report);
    report.promise(
        &format!("{name}: verify / SHA-256"),
        ">= 0.95",
        &format!("{:.2}", alone.median),
        alone.median >= 0.95,
    );
    let both = ratio(rounds, verified, one);
    both.tell("verify, all cores", name, "one thread", report);
    if state.kind == Kind::Equal {
        let what = format!("{name}: verify on two threads / on one");
        report.promise(&what, ">= 1.4", &format!("{:.2}", both.median), both.median >= 1.4);
    }
}

/// Leaves this thread one core, the last of those that it has.
fn on_one_core(all: &CpuSet) {
    let last = (0..CpuSet::MAX_CPU).rev().find(|core| all.is_set(*core)).expect("a core");
    let mut one = CpuSet::new();
    one.set(last);
    sched_setaffinity(None, &one).expect("a core");
}
