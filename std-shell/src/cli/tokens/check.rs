//! SHARDs become verdicts, one a file: every id is held against the vocabulary, on all cores.

use std::num::{NonZeroU32, NonZeroUsize};
use std::thread;

use clap::Args;
use safestep::tokens::Shard;
use safestep::{Access, Cause, Error};

use super::Sources;
use crate::cli::{Exit, Failure, Tally};
use crate::report::{Screen, tokens};

/// Judge shards: the header, the length, and every id against the vocabulary
///
/// A bad shard gets one line: its path, the first broken rule, the byte that shows it, what was expected and what was found. Of a
/// shard whose header states no vocabulary, every id is good unless --vocab says how many there are. All shards are looked at, whatever the first one was.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(super) struct Arguments {
    #[command(flatten)]
    sources: Sources,

    /// The size of the vocabulary, for shards that state none; those that state another one are refused.
    #[arg(long, value_name = "N")]
    vocab: Option<NonZeroU32>,

    /// Say nothing of good shards.
    #[arg(short, long)]
    quiet: bool,

    /// Print a JSON object for each shard, one a line.
    ///
    /// {"path","verdict":"good"|"bad","rule","offset","index","message","ids","vocabulary"}, with null for what does not apply;
    /// "index" is which id of the shard is outside the vocabulary. With --quiet good shards are left out. Files that cannot be read
    /// get no line here, only a word on standard error and exit code 3.
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  safestep tokens check train.bin
  safestep tokens check --quiet shards/ && echo all good
  safestep tokens check --json shards/ | jq -r 'select(.verdict == \"bad\") | .path'

Exit codes:
  0  all good
  1  at least one is bad
  2  wrong usage
  3  a file could not be read (whatever the others are)";

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    let mut tally = Tally::default();
    for file in arguments.sources.files() {
        match file
            .and_then(|path| Shard::open(path, Access::Read))
            .and_then(|shard| scan(shard, arguments.vocab, screen))
        {
            Ok(shard) => {
                tally.good += 1;
                if !arguments.quiet {
                    tokens::good(screen, &shard, arguments.json)?;
                }
            }
            Err(error) => {
                tally.count(error.blame());
                match error.because() {
                    Cause::BadShard(bad) => tokens::bad(screen, error.path(), bad, arguments.json)?,
                    _ => screen.complain_of(&error),
                }
            }
        }
    }
    Ok(tally.exit())
}

fn scan(shard: Shard, vocabulary: Option<NonZeroU32>, screen: &Screen) -> Result<Shard, Error> {
    let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let width = shard.header().kind().width().bytes();
    let mut bar = screen.bar();
    let scanned = shard.scan(vocabulary.map(NonZeroU32::get), threads, &mut |done, total| {
        bar.progress(done.saturating_mul(width), total.saturating_mul(width));
    });
    bar.clear();
    scanned.map(|()| shard)
}
