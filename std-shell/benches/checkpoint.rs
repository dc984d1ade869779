//! States of many bytes become checkpoints, and those verdicts, and a table of ratios: ours beside plain writes of the same bytes,
//! beside the reference crate, beside memcpy and SHA-256; and what was promised.
//!
//! `cargo bench -p safestep --bench checkpoint` runs everything with states of 64 MiB; behind `--`, `--large` takes 1 GiB too (5 GB of
//! memory, 3 GB of disk), `--quick` few samples, `--only TEXT` only sections with that text in their names, `--directory DIR` says where
//! the disk is, `--strict` ends with exit code 1 if a promise is not met.
//!
//! A disk that others use is never as fast as a moment ago, so every sample of ours has its yardstick right beside it, in turn before
//! and after it. What counts is the median of the ratios, never a speed. All memory was touched before.

#[path = "checkpoint/allocations.rs"]
mod allocations;
#[path = "checkpoint/background.rs"]
mod background;
#[path = "checkpoint/pairs.rs"]
mod pairs;
#[path = "header/report.rs"]
#[expect(dead_code, reason = "another benchmark writes JSON, too")]
mod report;
#[path = "checkpoint/saving.rs"]
mod saving;
#[path = "checkpoint/states.rs"]
mod states;
#[path = "checkpoint/verifying.rs"]
mod verifying;

use std::path::PathBuf;
use std::process::ExitCode;

use report::Report;
use states::{Kind, Owned};

struct Options {
    quick: bool,
    large: bool,
    strict: bool,
    only: String,
    directory: PathBuf,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    let mut report = Report::default();
    let sizes: &[usize] = if options.large { &[64, 1024] } else { &[64] };
    for &mib in sizes {
        // Samples of 1 GiB take seconds each.
        let rounds = match (options.quick, mib) {
            (true, 64) => 7,
            (false, 64) => 25,
            _ => 7,
        };
        for kind in Kind::ALL {
            let state = Owned::new(kind, mib << 20);
            let directory = tempfile::tempdir_in(&options.directory).expect("a directory");
            let name = format!("{mib} MiB, {kind}");
            let wants = |section: &str| format!("{section} {name}").contains(&options.only);
            if wants("save") {
                saving::run(&state, &name, directory.path(), rounds, &mut report);
            }
            if wants("memory") {
                allocations::run(&state, &name, directory.path(), &mut report);
            }
            if wants("begin") {
                background::run(&state, &name, directory.path(), rounds, &mut report);
            }
            if wants("verify") {
                verifying::run(&state, &name, directory.path(), rounds, &mut report);
            }
        }
    }
    let met = report.promises();
    if met || !options.strict { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn options() -> Result<Options, String> {
    let directory = env!("CARGO_TARGET_TMPDIR").into();
    let mut options = Options { quick: false, large: false, strict: false, only: String::new(), directory };
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = |what| arguments.next().ok_or(format!("{} wants {what}", argument.display()));
        match argument.to_str() {
            // Cargo says so to every benchmark.
            Some("--bench") => {}
            Some("--quick") => options.quick = true,
            Some("--large") => options.large = true,
            Some("--only") => options.only = value("a text")?.to_string_lossy().into_owned(),
            Some("--directory") => options.directory = value("a directory")?.into(),
            Some("--strict") => options.strict = true,
            _ => return Err(format!("unknown argument {}; {KNOWN}", argument.display())),
        }
    }
    Ok(options)
}

const KNOWN: &str = "known are --quick, --large, --only TEXT, --directory DIR and --strict";
