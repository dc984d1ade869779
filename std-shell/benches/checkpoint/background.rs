//! A state becomes a copy, and training goes on: how long that holds it, beside a memcpy.

use std::fs;
use std::hint::black_box;
use std::path::Path;

use safestep::OsDisk;
use safestep::checkpoint::{BackgroundSaver, SaveOptions};

use crate::pairs::{ratio, timed};
use crate::report::Report;
use crate::states::Owned;

/// Runs the section.
pub(crate) fn run(state: &Owned, name: &str, directory: &Path, rounds: usize, report: &mut Report) {
    println!("\nbegin {name}");
    let mut saver = BackgroundSaver::new(OsDisk, directory.join("background"));
    let mut step = 0;
    let ours = || {
        step += 1;
        let time = state.at(step, |state| {
            timed(|| {
                saver.begin(state, SaveOptions::default()).expect("a thread");
            })
        });
        let saved = saver.wait().expect("a checkpoint").expect("a save");
        fs::remove_dir_all(saved.path).expect("a directory");
        time
    };
    let mut copy = vec![1; state.bytes().len()];
    let memcpy = || timed(|| black_box(&mut copy).copy_from_slice(black_box(state.bytes())));
    let found = ratio(rounds, ours, memcpy);
    found.tell("begin", name, "memcpy", report);
    let times = 1.0 / found.median;
    report.promise(&format!("{name}: begin in memcpys"), "<= 1.1", &format!("{times:.2}"), times <= 1.1);
}
