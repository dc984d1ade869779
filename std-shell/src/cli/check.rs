//! PATHs become verdicts, one a file, whatever the first one was.

use clap::Args;
use safestep::{Access, Cause, Model};
use safestep_core::Limits;

use super::sources::Sources;
use super::{Exit, Failure, Tally};
use crate::report::{Checking, Screen, human, json};

/// Judge model files by every rule of the format
///
/// A bad file gets one line: its path, the first broken rule, the byte that shows it (counted from the start of the
/// file), the tensor, what was expected and what was found. A good file gets its notes: what is allowed, yet worth
/// knowing. All files are looked at, whatever the first one was.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(super) struct Arguments {
    #[command(flatten)]
    sources: Sources,

    /// Say nothing of good files.
    #[arg(short, long)]
    quiet: bool,

    /// Print a JSON object for each file, one a line.
    ///
    /// Its keys: path, verdict ("good" or "bad"), rule, offset, tensor, message, and notes, a list of objects with id,
    /// offset, tensor, count and message; null stands for what does not apply. With --quiet good files are left out. Files that cannot be read
    /// get no line here, only a word on standard error and exit code 3. Bytes of a path that are no UTF-8 become U+FFFD.
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  safestep check model.safetensors
  safestep check --quiet --recursive models/ && echo all good
  safestep check --json models/ | jq -r 'select(.verdict == \"bad\") | .path'

Exit codes:
  0  all good
  1  at least one is bad
  2  wrong usage
  3  a file could not be read (whatever the others are)";

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    let report: &dyn Checking = if arguments.json { &json::Lines } else { &human::Lines };
    let mut tally = Tally::default();
    for file in arguments.sources.files() {
        match file.and_then(|path| Model::open(path, Access::Read, Limits::default())) {
            Ok(model) => {
                tally.good += 1;
                if !arguments.quiet {
                    report.good(screen, model.path(), model.index().notes())?;
                }
            }
            Err(error) => {
                tally.count(error.blame());
                match error.because() {
                    Cause::Bad(bad) => report.bad(screen, error.path(), bad)?,
                    _ => screen.complain_of(&error),
                }
            }
        }
    }
    if !arguments.quiet {
        report.end(screen, tally.good, tally.bad, tally.unreadable)?;
    }
    Ok(tally.exit())
}
