//! SHARDs become a table of what their headers say.

use clap::Args;
use safestep::Access;
use safestep::tokens::Shard;

use super::Sources;
use crate::cli::{Exit, Failure, Tally};
use crate::report::{Screen, tokens};

/// Show what the headers of shards say
///
/// Reads headers only, so a shard of 100 GB answers at once. Files that cannot be read or are judged bad are reported on standard
/// error, and the others are shown.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(super) struct Arguments {
    #[command(flatten)]
    sources: Sources,

    /// Print one JSON document.
    ///
    /// {"shards":[{"path","magic","version","width","ids","vocabulary","file_bytes"}],"totals":{"shards","ids","bytes"}}, where a
    /// vocabulary that is not stated is null. Bytes of a path that are no UTF-8 become U+FFFD.
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  safestep tokens inspect train.bin
  safestep tokens inspect --json shards/ | jq .totals.ids

Exit codes:
  0  all good
  1  at least one is bad
  2  wrong usage
  3  a file could not be read (whatever the others are)";

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    let (mut shards, mut tally) = (Vec::new(), Tally::default());
    for file in arguments.sources.files() {
        match file.and_then(|path| Shard::open(path, Access::Read)) {
            Ok(shard) => shards.push(shard),
            Err(error) => {
                tally.count(error.blame());
                screen.complain_of(&error);
            }
        }
    }
    tokens::inspected(screen, &shards, arguments.json)?;
    Ok(tally.exit())
}
