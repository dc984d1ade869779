//! The command line of a benchmark becomes what is timed; what was found, an exit code.

use std::env::ArgsOs;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::report::Report;

/// What is timed, and for how long.
pub(crate) struct Timing {
    pub(crate) quick: bool,
    /// Rows with this text in their names.
    only: String,
}

impl Timing {
    pub(crate) fn wants(&self, name: &str) -> bool {
        name.contains(&self.only)
    }
}

/// An option that only one benchmark has.
pub(crate) struct Extra<'e> {
    pub(crate) name: &'static str,
    /// What its value is, if it has one.
    pub(crate) value: Option<&'static str>,
    pub(crate) set: &'e mut dyn FnMut(OsString),
}

/// Reads the command line. Where it is not understood, says so.
pub(crate) fn run(extras: &mut [Extra<'_>]) -> Result<Run, ExitCode> {
    Run::of(std::env::args_os(), extras).map_err(|message| {
        eprintln!("{message}");
        ExitCode::from(2)
    })
}

/// A benchmark that was asked for.
pub(crate) struct Run {
    pub(crate) timing: Timing,
    pub(crate) report: Report,
    strict: bool,
    json: Option<PathBuf>,
}

impl Run {
    fn of(mut arguments: ArgsOs, extras: &mut [Extra<'_>]) -> Result<Self, String> {
        let timing = Timing { quick: false, only: String::new() };
        let mut run = Self { timing, report: Report::default(), strict: false, json: None };
        arguments.next();
        while let Some(argument) = arguments.next() {
            let mut value =
                |what: &str| arguments.next().ok_or(format!("{} wants {what}", argument.display()));
            match argument.to_str() {
                // Cargo says so to every benchmark.
                Some("--bench") => {}
                Some("--quick") => run.timing.quick = true,
                Some("--only") => run.timing.only = value("a text")?.to_string_lossy().into_owned(),
                Some("--strict") => run.strict = true,
                Some("--json") => run.json = Some(value("a file")?.into()),
                _ => match extras.iter_mut().find(|extra| argument == extra.name) {
                    Some(extra) => (extra.set)(extra.value.map_or(Ok(OsString::new()), value)?),
                    None => {
                        return Err(format!("unknown argument {}; {}", argument.display(), known(extras)));
                    }
                },
            }
        }
        Ok(run)
    }

    /// Shows what was promised, and says whether that is good enough.
    pub(crate) fn end(self) -> ExitCode {
        let met = self.report.promises();
        if let Some(path) = &self.json
            && let Err(error) = std::fs::write(path, self.report.json())
        {
            eprintln!("write {}: {error}", path.display());
            return ExitCode::from(3);
        }
        if met || !self.strict { ExitCode::SUCCESS } else { ExitCode::from(1) }
    }
}

fn known(extras: &[Extra<'_>]) -> String {
    let extras = extras.iter().map(|extra| format!(", {}", extra.name)).collect::<String>();
    format!("known are --quick, --only TEXT, --strict, --json FILE{extras}")
}
