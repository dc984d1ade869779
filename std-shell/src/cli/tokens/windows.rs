//! SHARDs become batches of windows, and the cursor from which they go on.

use std::num::NonZeroU32;

use clap::Args;
use safestep::tokens::{Bookmark, Pcg32, Shards, Share, TokenStream};
use safestep::{Access, Error};

use super::Sources;
use crate::cli::{Exit, Failure};
use crate::report::{Screen, tokens};

/// Read batches of windows, from the start or from a cursor
///
/// A window is T inputs and the T ids that follow them one later. The windows of a pass over a shard start T apart, from a phase that
/// the generator draws; then comes the next shard, and after the last the first. The cursor that is printed at the end goes on there.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(super) struct Arguments {
    #[command(flatten)]
    sources: Sources,

    /// Inputs of a window.
    #[arg(long, value_name = "T")]
    seq_len: NonZeroU32,

    /// Windows of a batch.
    #[arg(long, value_name = "B")]
    batch: NonZeroU32,

    /// Batches to read.
    #[arg(long, value_name = "N")]
    batches: u64,

    /// The size of the vocabulary, for shards that state none.
    #[arg(long, value_name = "V")]
    vocab: Option<NonZeroU32>,

    /// Seed of the generator.
    #[arg(long, value_name = "S", default_value_t = 42, conflicts_with = "cursor")]
    seed: u64,

    /// Which sequence of the generator.
    #[arg(long, value_name = "Q", default_value_t = 54, conflicts_with = "cursor")]
    stream: u64,

    /// Where to go on: a cursor as it was printed.
    ///
    /// {"shard","offset","rng":{"state","inc"}}, or the whole line around it. If it says which shards it belongs to, these must be
    /// them.
    #[arg(long, value_name = "JSON", value_parser = cursor)]
    cursor: Option<Bookmark>,

    /// Which of the ranks this is, from 0.
    ///
    /// Each rank reads B windows of a step, the lower rank the earlier ones: together they read what one would with R times B. All of
    /// them have the same cursor, and another number of ranks can go on from it.
    #[arg(long, value_name = "r", default_value_t = 0, requires = "ranks")]
    rank: u32,

    /// How many ranks share the windows [default: 1]
    #[arg(long, value_name = "R", requires = "rank")]
    ranks: Option<NonZeroU32>,

    /// Let the cursor say which shards it belongs to.
    #[arg(long)]
    fingerprint: bool,

    /// Print a JSON line a batch, then one with the cursor.
    ///
    /// {"inputs":[[..]],"targets":[[..]]}, a row a window; {"cursor":{"shard","offset","rng":{"state","inc"}}}, with "shards":
    /// [{"name","bytes","ids"}] in it if --fingerprint asks for them.
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  safestep tokens windows train.bin --seq-len 8 --batch 2 --batches 3
  safestep tokens windows shards/ --seq-len 1024 --batch 4 --batches 10 --rank 1 --ranks 8 --json
  safestep tokens windows train.bin --seq-len 8 --batch 2 --batches 3 --json --cursor \\
      '{\"shard\":0,\"offset\":6,\"rng\":{\"state\":\"185706b82c2e03f8\",\"inc\":\"000000000000006d\"}}'

Exit codes:
  0  read
  1  a shard is bad, too short, or not the cursor's
  2  wrong usage
  3  a file could not be read";

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    let share = match Share::of(arguments.batch, arguments.rank, arguments.ranks.unwrap_or(NonZeroU32::MIN)) {
        Ok(share) => share,
        Err(error) => {
            screen.complain(&error.to_string());
            return Ok(Exit::Usage);
        }
    };
    let files = arguments.sources.files().collect::<Result<Vec<_>, Error>>()?;
    let shards = Shards::open(files, Access::Read)?;
    let rng = Pcg32::seed(arguments.seed, arguments.stream);
    let mut stream =
        TokenStream::new(shards, arguments.seq_len, share, rng, arguments.vocab.map(NonZeroU32::get))?;
    if let Some(bookmark) = &arguments.cursor {
        stream.restore_bookmark(bookmark)?;
    }
    let seq_len = usize::try_from(arguments.seq_len.get()).unwrap_or(usize::MAX);
    if arguments.batches > 0 {
        let mut batch = stream.empty_batch()?;
        for number in 1..=arguments.batches {
            stream.next_batch_into(&mut batch.inputs, &mut batch.targets)?;
            tokens::batch(screen, number, &batch, seq_len, arguments.json)?;
        }
    }
    if arguments.fingerprint {
        tokens::cursor(screen, &stream.bookmark(), arguments.json)?;
    } else {
        tokens::cursor(screen, &stream.cursor(), arguments.json)?;
    }
    Ok(Exit::Good)
}

/// A cursor, or the line that was printed with it.
fn cursor(text: &str) -> Result<Bookmark, String> {
    let text = text.trim();
    let inner = text.strip_prefix("{\"cursor\":").and_then(|rest| rest.strip_suffix('}'));
    Bookmark::read(inner.unwrap_or(text).as_bytes()).map_err(|error| error.to_string())
}
