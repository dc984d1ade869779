//! Samples and state of a run go into its archive, for a new policy to begin without them.

use std::path::PathBuf;

use clap::Args;
use safestep::run::{Canonical, RunFiles, pivot};
use safestep::{Error, OsDisk};

use super::history::history_file;
use super::{Exit, Failure};
use crate::report::{Screen, run as report};

/// Archive samples and state of a run, never its loss history
///
/// A pivot is a change of policy within a run: checkpoints and the loss history go on; RUN/STEM.samples.json and
/// RUN/STEM.state.json move to RUN/archive/STEP/. Nothing there is ever replaced: a second pivot at a step adds a number to
/// the names. It is refused while a trainer runs: stop it first. What is not there is not missed.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// The run's directory.
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// What the names begin with.
    #[arg(long, value_name = "STEM", default_value = "", hide_default_value = true)]
    stem: String,

    /// The step of the pivot; otherwise the last one of the loss history.
    #[arg(long, value_name = "N")]
    step: Option<u64>,

    /// Print one JSON object: {"step","archive","moved":[{"from","to"}]}.
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  safestep pivot run
  safestep pivot run --stem polish --step 112700

Exit codes:
  0  done, or nothing was there
  1  the loss history is bad, so the step is not known (--step gives it)
  2  wrong usage
  3  a file could not be read or moved, or a trainer is running";

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    let files = RunFiles::new(&arguments.run, &arguments.stem)?;
    if !files.directory().is_dir() {
        let because = std::io::Error::new(std::io::ErrorKind::NotADirectory, "it is no directory of a run");
        return Err(Error::io("pivot", files.directory(), because).into());
    }
    let step = match arguments.step {
        Some(step) => step,
        None => last_step(&files)?,
    };
    let done = pivot(&OsDisk, &files, step)?;
    report::pivoted(screen, step, &done, arguments.json)?;
    Ok(Exit::Good)
}

/// The last step of the loss history; a run without one has made none.
fn last_step(files: &RunFiles) -> Result<u64, Error> {
    let stem = Some(files.stem()).filter(|stem| !stem.is_empty());
    let path = history_file(files.directory(), stem)?;
    if !path.exists() {
        return Ok(0);
    }
    Ok(Canonical::open(&path)?.last_step()?.unwrap_or_default())
}
