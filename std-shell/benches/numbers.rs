//! Slices of numbers become a table of speeds: every format, both ways, at every level of this machine, beside memcpy and
//! the crates that do the same; and what was promised of them.
//!
//! `cargo bench -p safestep --bench numbers` runs everything; behind `--`, `--quick` takes few samples, `--only TEXT` times
//! only rows with that text in their names, `--json FILE` writes the numbers down as well, `--strict` ends with exit code
//! 1 if a promise is not met (without it times decide nothing).
//!
//! One thread. Source and destination are lent once, used again for every call, and stand at multiples of 64 bytes. A size
//! is that of the f32 values. A speed is a share of memcpy's: `copy_from_slice` of half as many bytes as are read and
//! written, so that it moves as many. All contenders take turns in one process; every number is a median.

#[path = "numbers/buffers.rs"]
mod buffers;
#[path = "numbers/paths.rs"]
mod paths;
#[path = "numbers/peers.rs"]
mod peers;
#[path = "numbers/race.rs"]
mod race;
#[path = "header/report.rs"]
mod report;
#[path = "numbers/widened.rs"]
mod widened;

use std::path::PathBuf;
use std::process::ExitCode;

use report::Report;

/// What the command line asked for.
struct Options {
    timing: Timing,
    strict: bool,
    json: Option<PathBuf>,
}

/// What is timed, and for how long.
struct Timing {
    quick: bool,
    /// Rows with this text in their names.
    only: String,
}

impl Timing {
    fn wants(&self, name: &str) -> bool {
        name.contains(&self.only)
    }
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
    paths::run(&options.timing, &mut report);
    peers::run(&options.timing, &mut report);
    let met = report.promises();
    if let Some(path) = &options.json
        && let Err(error) = std::fs::write(path, report.json())
    {
        eprintln!("write {}: {error}", path.display());
        return ExitCode::from(3);
    }
    if met || !options.strict { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn options() -> Result<Options, String> {
    let timing = Timing { quick: false, only: String::new() };
    let mut options = Options { timing, strict: false, json: None };
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = |what| arguments.next().ok_or(format!("{} wants {what}", argument.display()));
        match argument.to_str() {
            // Cargo says so to every benchmark.
            Some("--bench") => {}
            Some("--quick") => options.timing.quick = true,
            Some("--only") => options.timing.only = value("a text")?.to_string_lossy().into_owned(),
            Some("--strict") => options.strict = true,
            Some("--json") => options.json = Some(value("a file")?.into()),
            _ => return Err(format!("unknown argument {}; {KNOWN}", argument.display())),
        }
    }
    Ok(options)
}

const KNOWN: &str = "known are --quick, --only TEXT, --strict and --json FILE";
