//! PATHs become the directories of steps, and those verdicts, one a step, whatever the first one was.

use std::path::{Path, PathBuf};

use clap::Args;
use safestep::checkpoint::{FlawKind, StepName};
use safestep::{Blame, Cause, Error};

use super::checkpoints::{Judge, Root};
use super::{Exit, Failure, Tally};
use crate::report::Screen;
use crate::report::steps::{self as report, Judged};

/// Verify checkpoints: every byte against the digests of the manifest
///
/// A step is whole if its directory holds exactly the files that its manifest lists, each with the bytes that were saved, and if
/// the model, the optimizer and the trainer state can be read. Each flaw gets a line that names the file and the reason. Files are
/// read on all cores; all steps are looked at, whatever the first one was.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// Runs, their ckpt directories, or directories of single steps.
    ///
    /// Of a run every step is verified, and that LATEST names one of them. A run without checkpoints counts as one that could not
    /// be read (exit code 3).
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Say nothing of steps that are whole.
    #[arg(short, long)]
    quiet: bool,

    /// Print a JSON object for each step, one a line.
    ///
    /// {"path","step","bytes","valid","flaws":[{"file","reason"}]}, with null for what is not known. A LATEST that is bad gets an
    /// object with the path of the checkpoint directory. With --quiet whole steps are left out. Directories that cannot be read get
    /// no line here, only a word on standard error and exit code 3. Bytes of a name that are no UTF-8 become U+FFFD.
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  safestep verify run
  safestep verify run/ckpt/step-000050
  safestep verify --quiet runs/* && echo all whole
  safestep verify --json run | jq -r 'select(.valid | not) | .path'

Exit codes:
  0  all whole
  1  at least one is not
  2  wrong usage
  3  a file could not be read (whatever the others are)";

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    let sources: Vec<Result<Source, Error>> = arguments.paths.iter().map(|path| Source::of(path)).collect();
    let mut judge = Judge::new(screen, sources.iter().flatten().flat_map(|source| &source.directories));
    let mut tally = Tally::default();
    for source in &sources {
        match source {
            Ok(source) => verify_all(source, &mut judge, arguments, &mut tally, screen)?,
            Err(error) => {
                tally.count(error.blame());
                screen.complain_of(error);
            }
        }
    }
    if !arguments.quiet && !arguments.json {
        report::verified(screen, tally.good, tally.bad, tally.unreadable);
    }
    Ok(tally.exit())
}

fn verify_all(
    source: &Source,
    judge: &mut Judge,
    arguments: &Arguments,
    tally: &mut Tally,
    screen: &mut Screen,
) -> Result<(), Failure> {
    for path in &source.directories {
        let verdict = match judge.verdict(path) {
            Ok(verdict) => verdict,
            Err(error) => {
                tally.count(error.blame());
                screen.complain_of(&error);
                continue;
            }
        };
        let is_unread = |kind: &FlawKind| matches!(kind, FlawKind::Unreadable(_));
        match verdict.flaws.iter().find(|flaw| is_unread(&flaw.kind)) {
            Some(_) => tally.count(Blame::Machine),
            None if verdict.is_whole() => tally.good += 1,
            None => tally.count(Blame::Data),
        }
        if !(arguments.quiet && verdict.is_whole()) {
            Judged::of(path, &verdict).print(screen, arguments.json)?;
        }
    }
    if let Some((root, reason)) = &source.latest_flaw {
        tally.count(Blame::Data);
        Judged::latest(root, reason).print(screen, arguments.json)?;
    }
    Ok(())
}

/// What a PATH means.
struct Source {
    directories: Vec<PathBuf>,
    /// A checkpoint directory, and what is wrong with its `LATEST`.
    latest_flaw: Option<(PathBuf, String)>,
}

impl Source {
    fn of(path: &Path) -> Result<Self, Error> {
        if is_step(path) {
            return Ok(Self { directories: vec![path.to_path_buf()], latest_flaw: None });
        }
        let root = Root::of(path)?;
        let directories: Vec<PathBuf> = root.scan.steps.iter().map(|name| root.directory(*name)).collect();
        let latest_flaw = root.latest_flaw().map(|reason| (root.path, reason));
        if directories.is_empty() && latest_flaw.is_none() {
            return Err(Error::new("verify", path, Cause::NoCheckpoint { skipped: Vec::new() }));
        }
        Ok(Self { directories, latest_flaw })
    }
}

/// Whether a path is the directory of a step: by its name, or because there is a manifest in it.
fn is_step(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.and_then(StepName::parse).is_some() || path.join("MANIFEST.json").symlink_metadata().is_ok()
}
