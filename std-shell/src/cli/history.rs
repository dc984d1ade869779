//! A run becomes its canonical loss history: a chart, lines of JSON, a drawing.

use std::path::{Path, PathBuf};

use clap::Args;
use safestep::run::{Canonical, RunFiles, loss_value};
use safestep::{Commit, Error, OsDisk};

use super::outputs::must_be_free;
use super::{Exit, Failure};
use crate::report::{Curve, Screen, run as report};

/// Show the loss history of a run: the canonical one
///
/// A run that was resumed has entries that were superseded: they stay in the file and are left out here, so that each
/// step has one entry. A file that is one JSON array is read too, and so are the NaN and Infinity that Python writes. A line that
/// breaks a rule is named on standard error and left out.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// The run's directory, or a history file.
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// What the file's name begins with: STEM.loss.json. Not needed if the run has one history.
    #[arg(long, value_name = "STEM")]
    stem: Option<String>,

    /// Print the entries, a JSON object each, one a line.
    ///
    /// By step, with all members that they have. NaN, Infinity and -Infinity are strings.
    #[arg(long)]
    json: bool,

    /// Draw the curve into an SVG file; it is replaced if it is there.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Examples:
  safestep history run
  safestep history run --plot loss.svg
  safestep history run --json | jq -s 'min_by(.loss)'

Exit codes:
  0  all good
  1  a line of the history is bad: it is named, and the rest is shown
  2  wrong usage
  3  a file could not be read or written";

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    let path = history_file(&arguments.run, arguments.stem.as_deref())?;
    if let Some(plot) = &arguments.plot {
        must_be_free(plot, [path.as_path()])?;
    }
    let canonical = read(&path, screen)?;
    let (mut curve, mut entries) = (Curve::default(), canonical.entries());
    while let Some(entry) = entries.next()? {
        curve.add(entry.step(), loss_value(entry.loss()));
        if arguments.json {
            report::entry(screen, &entry)?;
        }
    }
    if !arguments.json {
        report::history(screen, &path, canonical.summary(), &curve)?;
    }
    if let Some(at) = canonical.summary().cut_at {
        report::cut(screen, &path, at);
    }
    if let Some(plot) = &arguments.plot {
        let drawing = report::svg(&curve, &path).map_err(Failure::Surprise)?;
        let mut commit = Commit::begin(&OsDisk, plot)?;
        commit.write(drawing.as_bytes())?;
        commit.finish()?;
        if !arguments.json {
            report::drawn(screen, plot)?;
        }
    }
    Ok(if canonical.summary().bad > 0 { Exit::Bad } else { Exit::Good })
}

/// Reads a history once; what is bad in it is complained of and passed over.
pub(super) fn read(path: &Path, screen: &mut Screen) -> Result<Canonical, Error> {
    let mut bad = 0_u64;
    let canonical = Canonical::open_leniently(path, &mut |error| {
        bad += 1;
        if bad <= NAMED_MAX {
            screen.complain_of(error);
        }
    })?;
    if bad > NAMED_MAX {
        screen.complain(&format!("{}: {} more bad lines", path.display(), bad - NAMED_MAX));
    }
    Ok(canonical)
}

/// How many bad lines are named one by one.
const NAMED_MAX: u64 = 100;

/// The history that is meant: a file itself; of a directory the one under the stem, or the only one.
pub(super) fn history_file(run: &Path, stem: Option<&str>) -> Result<PathBuf, Error> {
    if run.is_file() && stem.is_none() {
        return Ok(run.to_path_buf());
    }
    let path = RunFiles::new(run, stem.unwrap_or_default())?.loss();
    if stem.is_some() || path.exists() {
        return Ok(path);
    }
    let entries = run.read_dir().map_err(|error| Error::io("read", run, error))?;
    let names = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut histories = names.filter(|path| path.as_os_str().as_encoded_bytes().ends_with(b".loss.json"));
    match (histories.next(), histories.next()) {
        (Some(only), None) => Ok(only),
        _ => Ok(path),
    }
}
