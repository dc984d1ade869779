//! A RUN and a policy become the checkpoints that stay.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::Args;
use safestep::Error;
use safestep::checkpoint::{Retention, StepName, retain};

use super::checkpoints::{Judge, Root};
use super::interrupt::Interruptible;
use super::{Exit, Failure};
use crate::report::{Screen, steps as report};

/// Delete the checkpoints of a run that a policy does not keep
///
/// A step stays if any rule keeps it. Whatever the rules say, the step that LATEST names stays, the one that a resume would take,
/// and those newer than LATEST; without a LATEST that names a step nothing is deleted. A step first loses its name, and that is made
/// durable, before anything in it is deleted: so no crash leaves half a step. Nothing is deleted while a save is running.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
#[command(group(clap::ArgGroup::new("rule").required(true).multiple(true)))]
pub(super) struct Arguments {
    /// The run's directory, or its ckpt.
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// Keep the last N steps.
    #[arg(long, value_name = "N", group = "rule")]
    keep_last: Option<NonZeroU64>,

    /// Keep the steps that are multiples of K.
    #[arg(long, value_name = "K", group = "rule")]
    keep_every: Option<NonZeroU64>,

    /// Say what would be deleted, and delete nothing.
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// Print one JSON object.
    ///
    /// {"dry_run","removed":[STEP,...],"kept":[STEP,...],"leftovers":[{"path","reason"}]}; "leftovers" is what should have gone and
    /// could not be deleted. Bytes of a path that are no UTF-8 become U+FFFD.
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  safestep prune run --keep-last 3 --dry-run
  safestep prune run --keep-last 3 --keep-every 1000

Exit codes:
  0    only what the rules keep is there
  2    wrong usage
  3    something could not be read or deleted
  130  interrupted (129: by SIGHUP, 143: by SIGTERM)";

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    let root = Root::of(&arguments.run)?;
    let mut policy = Retention {
        last: arguments.keep_last.map(NonZeroU64::get),
        every: arguments.keep_every.map(NonZeroU64::get),
        ..Retention::default()
    };
    // Which step a resume would take costs a look at its bytes; it matters only if something goes.
    if !policy.doomed(&root.scan, None).is_empty() {
        policy.pinned.extend(resumed(&root, screen).map(|name| name.step()));
    }
    let disk = Interruptible::install(&root.path)?;
    let done = disk.settle(retain(&disk, &root.path, &policy, arguments.dry_run))?;
    report::pruned(screen, &done, arguments.dry_run, arguments.json)?;
    if let Some(signal) = disk.signal() {
        return Err(Failure::Interrupted { signal, left: "; what was not deleted by then stays" });
    }
    let exit = if done.leftovers.is_empty() { Exit::Good } else { Exit::Machine };
    for leftover in done.leftovers {
        screen.complain_of(&Error::io("delete", leftover.path, leftover.because));
    }
    Ok(exit)
}

/// The newest whole step that was declared done.
fn resumed(root: &Root, screen: &Screen) -> Option<StepName> {
    let directories: Vec<PathBuf> = root.candidates().map(|name| root.directory(name)).collect();
    // The first one is whole but for bad luck: its bytes are all that the bar counts on.
    let mut judge = Judge::new(screen, directories.first());
    root.candidates().find(|name| {
        let verdict = judge.verdict(&root.directory(*name));
        verdict.is_ok_and(|verdict| verdict.is_whole())
    })
}
