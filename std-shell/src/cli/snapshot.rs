//! Snapshots of five regions: what is in one, and how large one will be.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use safestep::run::MappedSnapshot;
use safestep_core::snapshot::{COUNT_MAX, Snapshot};

use super::{Exit, Failure};
use crate::report::{Screen, run as report};

/// Show snapshots of five regions, and reckon their size
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
    Size(Size),
}

const AFTER_HELP: &str = "\
Examples:
  safestep snapshot inspect run/step_112700.bin
  safestep snapshot size --params 12.8M

Exit codes:
  0  all good
  1  the file is bad
  2  wrong usage
  3  the file could not be read";

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
        Command::Size(arguments) => report::snapshot_size(screen, &arguments.params, arguments.json)?,
    }
    Ok(Exit::Good)
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
