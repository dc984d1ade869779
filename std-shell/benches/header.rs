//! Headers become a table of times: the whole judgement of ours beside the reference crate's, and what was promised of it.
//!
//! `cargo bench -p safestep` runs everything; behind `--`, `--quick` takes few samples, `--only TEXT` times only headers
//! with that text in their names, `--json FILE` writes the numbers down as well, `--strict` ends with exit code 1 if a
//! promise is not met (without it times decide nothing).
//!
//! Both contenders get the bytes of the whole file, a mapping that is empty behind the header, and take turns sample by
//! sample in one process. What is timed of ours: frame, header and index, in slots that were lent before. What is timed
//! of the reference: `SafeTensors::read_metadata`. Results are dropped when the clock stands.

#[path = "header/allocations.rs"]
mod allocations;
#[path = "header/contenders.rs"]
mod contenders;
#[path = "header/honest.rs"]
mod honest;
#[path = "header/hostile.rs"]
mod hostile;
#[path = "header/opening.rs"]
mod opening;
#[path = "header/report.rs"]
mod report;

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
    /// Headers with this text in their names.
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
    honest::run(&options.timing, &mut report);
    hostile::run(&options.timing, &mut report);
    if options.timing.only.is_empty() {
        opening::run(&mut report);
        allocations::run(&mut report);
    }
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
