//! A RUN becomes the list of its checkpoints, and which of them a resume would take.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args;
use safestep::Blame;
use safestep::checkpoint::StepName;

use super::checkpoints::{Judge, Root, reason};
use super::{Exit, Failure, Tally};
use crate::report::Screen;
use crate::report::steps::{Age, Listing, Step};

/// List the checkpoints of a run, and say which one a resume would take
///
/// Each step is verified: every byte is held against the digests of its manifest, on all cores. A resume takes the step that
/// LATEST names or, if that is not whole, the newest older one that is; without LATEST the newest whole one. Steps newer than
/// LATEST were never declared done and are not looked at.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// The run's directory, or its ckpt.
    ///
    /// A run without a checkpoint directory has no checkpoints, which is no error.
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// Print one JSON document.
    ///
    /// {"latest":NAME|null,"load":STEP|null,"steps":[...],"foreign":[...],"stale":[...]}, each of the steps
    /// {"step","bytes","valid","reason"}; "load" is the step that a resume would take, "foreign" lists names that are never touched, "stale" what the next save clears. Bytes of
    /// a name that are no UTF-8 become U+FFFD.
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  safestep steps run
  safestep steps run/ckpt
  safestep steps --json run | jq .load

Exit codes:
  0  the list is there, whether or not all steps are whole ('safestep verify' judges them)
  2  wrong usage
  3  a directory or a file could not be read";

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    let root = Root::of(&arguments.run)?;
    let directories: Vec<PathBuf> = root.scan.steps.iter().map(|name| root.directory(*name)).collect();
    let mut judge = Judge::new(screen, &directories);
    let (mut steps, mut tally) = (Vec::new(), Tally::default());
    for (name, directory) in root.scan.steps.iter().zip(&directories) {
        let (bytes, reason) = match judge.verdict(directory) {
            Ok(verdict) => (verdict.bytes, reason(&verdict)),
            Err(error) => {
                tally.count(Blame::Machine);
                screen.complain_of(&error);
                (0, Some(error.to_string()))
            }
        };
        steps.push(Step { name: *name, bytes, age: age(directory), reason });
    }
    let is_whole = |name: &StepName| steps.iter().any(|step| step.name == *name && step.reason.is_none());
    let load = root.candidates().find(is_whole);
    let latest_flaw = root.latest_flaw();
    let listing = Listing { root: &root.path, scan: &root.scan, latest_flaw, load, steps: &steps };
    if arguments.json {
        listing.json(screen)?;
    } else {
        listing.table(screen)?;
    }
    Ok(tally.exit())
}

/// How long ago the step was finished: its manifest came last. By a clock that went backwards since, it lies in the future.
fn age(directory: &Path) -> Age {
    let manifest = directory.join("MANIFEST.json");
    let metadata = manifest.symlink_metadata().or_else(|_| directory.symlink_metadata());
    match metadata.and_then(|metadata| metadata.modified()) {
        Ok(then) => SystemTime::now().duration_since(then).map_or(Age::Future, Age::Past),
        Err(_) => Age::Unknown,
    }
}
