//! Snapshots of five regions: what is in one, how large one will be, and checkpoints made of them and into them.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use safestep::checkpoint::{Checkpoint, StepName, load, load_step, root_of, scan};
use safestep::run::{MappedSnapshot, Parameter, export_snapshot, import_snapshot, parameters_of};
use safestep::{Cause, Error, OsDisk};
use safestep_core::snapshot::{COUNT_MAX, Snapshot};
use serde::Deserialize;

use super::outputs::{leads_into, must_be_free, must_be_outside_of_steps};
use super::{Exit, Failure};
use crate::report::{Screen, run as report};

/// Show snapshots of five regions, make them of checkpoints and checkpoints of them
///
/// A snapshot is a step and a number of parameters, then weights, Adam's m and Adam's v as f32: 8 + 12 x parameters bytes,
/// in files called step_NNNNNN.bin.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, subcommand_required = true, disable_help_subcommand = true)]
#[command(after_long_help = AFTER_HELP)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Inspect(Inspect),
    Export(Export),
    Import(Import),
    Size(Size),
}

const AFTER_HELP: &str = "\
Examples:
  safestep snapshot inspect run/step_112700.bin
  safestep snapshot export run --out step_000050.bin
  safestep snapshot import step_000050.bin --params order.json --out run
  safestep snapshot size --params 12.8M

Exit codes:
  0  all good
  1  a file is bad
  2  wrong usage
  3  a file could not be read or written";

/// Show step, number of parameters and regions of a snapshot
///
/// Reads eight bytes and the length of the file, so its size does not matter.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_INSPECT)]
struct Inspect {
    /// The snapshot.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Print one JSON object.
    ///
    /// {"path","step","parameters","bytes","regions":[{"name","begin","end"}]}. Bytes of a path that are no UTF-8 become
    /// U+FFFD.
    #[arg(long)]
    json: bool,
}

const AFTER_INSPECT: &str = "\
Examples:
  safestep snapshot inspect run/step_112700.bin
  safestep snapshot inspect --json run/step_112700.bin | jq .step

Exit codes:
  0  the file is good
  1  it is bad
  2  wrong usage
  3  it could not be read";

/// Make a snapshot of a checkpoint
///
/// Weights are the arrays of model.safetensors; m and v are <name>.exp_avg and <name>.exp_avg_sq of optimizer.safetensors; all F32.
/// Each keeps its bits. An array without a place is an error; what is no array (cursor, generator, learning rate, config) stays
/// behind. The checkpoint is verified before.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_EXPORT)]
struct Export {
    /// A directory step-NNNNNN, or a run, whose newest whole checkpoint is taken.
    #[arg(value_name = "CKPT_OR_RUN")]
    checkpoint: PathBuf,

    /// The snapshot to write; an old file is replaced once the new one is durable.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// The parameters in order: a JSON list of {"name","shape"}.
    ///
    /// By default the order of the data in the model file, which is that of the names' bytes.
    #[arg(long, value_name = "FILE")]
    order: Option<PathBuf>,

    /// Print one JSON object.
    ///
    /// {"path","checkpoint","step","parameters","bytes","order":[{"name","shape"}]}; the order is what 'snapshot import' wants.
    #[arg(long)]
    json: bool,
}

const AFTER_EXPORT: &str = "\
Examples:
  safestep snapshot export run --out run/step_000050.bin
  safestep snapshot export run/ckpt/step-000050 --out s.bin --order order.json
  safestep snapshot export run --out s.bin --json | jq .order > order.json

Exit codes:
  0  the snapshot is written
  1  the checkpoint is bad, or has arrays that a snapshot cannot hold
  2  wrong usage
  3  a file could not be read or written";

/// Make a checkpoint of a snapshot
///
/// Each number keeps its bits. The checkpoint has the step and the arrays; cursor, generator, learning rate and config are not in
/// a snapshot, so whoever resumes has to bring them: 'train --resume' refuses such a checkpoint.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_IMPORT)]
struct Import {
    /// The snapshot.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The parameters in the order of the regions: a JSON list of {"name","shape"}.
    #[arg(long, value_name = "FILE")]
    params: PathBuf,

    /// The run; the checkpoint is RUN/ckpt/step-NNNNNN, and LATEST names it.
    #[arg(long, value_name = "RUN")]
    out: PathBuf,

    /// Let LATEST go back to this step where it names a newer one, which is then no longer resumed.
    #[arg(long)]
    replace_latest: bool,

    /// Print one JSON object: {"path","checkpoint","step","parameters","bytes"}.
    #[arg(long)]
    json: bool,
}

const AFTER_IMPORT: &str = "\
Examples:
  safestep snapshot import step_000050.bin --params order.json --out run
  safestep snapshot import old.bin --params order.json --out run --replace-latest

Exit codes:
  0  the checkpoint is saved
  1  the snapshot is bad, or the list does not fit it
  2  wrong usage, or a checkpoint of this step or a newer one is there already
  3  a file could not be read or written";

/// Reckon how large a snapshot will be
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_SIZE)]
struct Size {
    /// How many parameters: 12800000, 12_800_000, 12.8M; k, M and B stand for a thousand, a million, a billion.
    #[arg(long, value_name = "N", value_parser = parameters)]
    params: Snapshot,

    /// Print one JSON object: {"parameters","bytes","region_bytes"}.
    #[arg(long)]
    json: bool,
}

const AFTER_SIZE: &str = "\
Examples:
  safestep snapshot size --params 12.8M
  safestep snapshot size --params 120M --json | jq .bytes

Exit codes:
  0  all good
  2  wrong usage";

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    match &arguments.command {
        Command::Inspect(arguments) => {
            let snapshot = MappedSnapshot::open(&arguments.file)?;
            report::snapshot(screen, snapshot.path(), snapshot.head(), arguments.json)?;
        }
        Command::Export(arguments) => export(arguments, screen)?,
        Command::Import(arguments) => import(arguments, screen)?,
        Command::Size(arguments) => report::snapshot_size(screen, &arguments.params, arguments.json)?,
    }
    Ok(Exit::Good)
}

fn export(arguments: &Export, screen: &mut Screen) -> Result<(), Failure> {
    let out = arguments.out.as_path();
    must_be_free(out, arguments.order.as_deref())?;
    let checkpoint = checkpoint(&arguments.checkpoint)?;
    // Its files may have further names outside of its directory.
    must_be_free(out, files_of(&checkpoint)?.iter().map(PathBuf::as_path))?;
    for skipped in &checkpoint.skipped {
        screen.complain(&format!("skipped {skipped}"));
    }
    let order = arguments.order.as_ref().map_or_else(|| Ok(parameters_of(&checkpoint)), |path| list(path))?;
    let head = export_snapshot(&OsDisk, &checkpoint, &order, out)?;
    let paths = [out, &checkpoint.path];
    Ok(report::exported(screen, paths, &head, &order, arguments.json)?)
}

fn import(arguments: &Import, screen: &mut Screen) -> Result<(), Failure> {
    let parameters = list(&arguments.params)?;
    let snapshot = MappedSnapshot::open(&arguments.file)?;
    let step = StepName::of(snapshot.head().step().into());
    let root = arguments.out.join("ckpt");
    // A step that is damaged would be replaced, with the input in it.
    let place = root.join(step.as_str());
    must_be_outside_of_steps(&place)?;
    if let Some(input) =
        [&arguments.file, &arguments.params].into_iter().find(|input| leads_into(input, &place))
    {
        let what = format!("cannot write {}: the input {} is in it", place.display(), input.display());
        return Err(Failure::Usage(what));
    }
    if !arguments.replace_latest {
        must_be_newest(step, &root)?;
    }
    let saved = import_snapshot(&OsDisk, &snapshot, &parameters, &root)?;
    let paths = [snapshot.path(), &saved.path];
    report::imported(screen, paths, snapshot.head(), saved.bytes, arguments.json)?;
    screen.remark("a snapshot has no cursor and no config: 'train --resume' refuses what was made of it");
    Ok(())
}

/// Refuses a step that is older than what a resume would take: LATEST would go back to it.
fn must_be_newest(step: StepName, root: &Path) -> Result<(), Failure> {
    let scan = match scan(&OsDisk, root) {
        Err(error) if matches!(error.because(), Cause::Io(io) if io.kind() == ErrorKind::NotFound) => {
            return Ok(());
        }
        answer => answer?,
    };
    let newest = scan.latest.step().or(scan.steps.last().copied());
    match newest.filter(|newest| *newest > step) {
        Some(newest) => Err(Failure::Usage(format!(
            "cannot write {}: expected the newest step, found {newest}; --replace-latest makes LATEST go back",
            root.join(step.as_str()).display()
        ))),
        None => Ok(()),
    }
}

/// All files of a checkpoint.
fn files_of(checkpoint: &Checkpoint) -> Result<Vec<PathBuf>, Error> {
    let path = &checkpoint.path;
    let entries = fs::read_dir(path).map_err(|error| Error::io("look into", path, error))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

/// The checkpoint in a directory that is called like one, or the newest whole one of a run.
fn checkpoint(path: &Path) -> Result<Checkpoint, Error> {
    match path.file_name().and_then(OsStr::to_str).and_then(StepName::parse) {
        Some(name) => {
            let root = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            load_step(&OsDisk, root.unwrap_or(Path::new(".")), name.step())
        }
        None => load(&OsDisk, &root_of(path)),
    }
}

/// What a list of parameters says of one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    name: String,
    shape: Vec<u64>,
}

/// The parameters in a JSON file.
fn list(path: &Path) -> Result<Vec<Parameter>, Failure> {
    let text = fs::read(path).map_err(|error| Error::io("read", path, error))?;
    let listed: Vec<Listed> = serde_json::from_slice(&text).map_err(|error| {
        let what = format!("expected a JSON list of {{\"name\",\"shape\"}} in {}: {error}", path.display());
        Failure::Usage(what)
    })?;
    Ok(listed.into_iter().map(|Listed { name, shape }| Parameter { name, shape }).collect())
}

/// A count of parameters as people say it, exactly.
fn parameters(text: &str) -> Result<Snapshot, String> {
    let count = count(text).ok_or("expected a whole number such as 12800000 or 12.8M")?;
    Snapshot::new(0, count).map_err(|_| format!("a snapshot holds at most {COUNT_MAX} parameters"))
}

/// Digits with `_` between them, a fraction that the unit makes whole, a unit; `u64::MAX` for what is larger.
fn count(text: &str) -> Option<u64> {
    let zeros = match text.bytes().last()? {
        b'k' | b'K' => 3,
        b'M' => 6,
        b'B' | b'G' => 9,
        _ => 0,
    };
    let number = if zeros > 0 { text.get(..text.len() - 1)? } else { text };
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (number, ""),
    };
    let whole = whole.replace('_', "");
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(&whole) || !all_digits(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    // Nothing if the fraction is finer than the unit.
    let missing = usize::checked_sub(zeros, fraction.len())?;
    let digits = format!("{whole}{fraction}{}", "0".repeat(missing));
    Some(digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_exact_or_refused() {
        let table: &[(&str, Option<u64>)] = &[
            ("0", Some(0)),
            ("12800000", Some(12_800_000)),
            ("12_800_000", Some(12_800_000)),
            ("12.8M", Some(12_800_000)),
            ("120M", Some(120_000_000)),
            ("1.500k", Some(1500)),
            ("2.147483647B", Some(2_147_483_647)),
            ("1G", Some(1_000_000_000)),
            ("99999999999999999999", Some(u64::MAX)),
            ("1.0", Some(1)),
            ("", None),
            ("M", None),
            (".5M", None),
            ("1.M", None),
            ("1.5", None),
            ("0.0001k", None),
            ("-1", None),
            ("+1", None),
            ("1e6", None),
            ("1.2.3M", None),
            ("12 M", None),
            ("1m", None),
            ("٣", None),
        ];
        for (text, expected) in table {
            assert_eq!(count(text), *expected, "{text}");
        }
        assert!(parameters("2147483647").is_ok() && parameters("2147483648").is_err());
    }
}
