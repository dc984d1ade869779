//! States of many bytes become checkpoints, and those verdicts, and a table of ratios: ours beside plain writes of the same bytes,
//! beside the reference crate, beside memcpy and SHA-256; and what was promised.
//!
//! `cargo bench -p safestep --bench checkpoint` runs everything with states of 64 MiB; behind `--`, `--large` takes 1 GiB too (5 GB of
//! memory, 3 GB of disk), `--quick` few samples, `--only TEXT` only sections with that text in their names, `--directory DIR` says where
//! the disk is, `--strict` ends with exit code 1 if a promise is not met, `--json FILE` writes the ratios down.
//!
//! A disk that others use is never as fast as a moment ago, so every sample of ours has its yardstick right beside it, in turn before
//! and after it. What counts is the median of the ratios, never a speed. All memory was touched before.

#[path = "common/options.rs"]
mod options;
#[path = "common/report.rs"]
mod report;
#[path = "checkpoint/allocations.rs"]
mod allocations;
#[path = "checkpoint/background.rs"]
mod background;
#[path = "checkpoint/pairs.rs"]
mod pairs;
#[path = "checkpoint/saving.rs"]
mod saving;
#[path = "checkpoint/states.rs"]
mod states;
#[path = "checkpoint/verifying.rs"]
mod verifying;

use std::path::PathBuf;
use std::process::ExitCode;

use options::Extra;
use states::{Kind, Owned};

fn main() -> ExitCode {
    let (mut large, mut directory) = (false, PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    let begun = options::run(&mut [
        Extra { name: "--large", value: None, set: &mut |_| large = true },
        Extra { name: "--directory", value: Some("a directory"), set: &mut |value| directory = value.into() },
    ]);
    let mut run = match begun {
        Ok(run) => run,
        Err(code) => return code,
    };
    let sizes: &[usize] = if large { &[64, 1024] } else { &[64] };
    for &mib in sizes {
        // Samples of 1 GiB take seconds each.
        let rounds = match (run.timing.quick, mib) {
            (true, 64) => 7,
            (false, 64) => 25,
            _ => 7,
        };
        for kind in Kind::ALL {
            let state = Owned::new(kind, mib << 20);
            let directory = tempfile::tempdir_in(&directory).expect("a directory");
            let name = format!("{mib} MiB, {kind}");
            let wants = |section: &str| run.timing.wants(&format!("{section} {name}"));
            if wants("save") {
                saving::run(&state, &name, directory.path(), rounds, &mut run.report);
            }
            if wants("memory") {
                allocations::run(&state, &name, directory.path(), &mut run.report);
            }
            if wants("begin") {
                background::run(&state, &name, directory.path(), rounds, &mut run.report);
            }
            if wants("verify") {
                verifying::run(&state, &name, directory.path(), rounds, &mut run.report);
            }
        }
    }
    run.end()
}
