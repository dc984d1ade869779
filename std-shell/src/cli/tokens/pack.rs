//! Files of ids, or of text, become shards.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use safestep::tokens::{IdSource, Packed, Packing, ShardKind, pack};

use crate::cli::interrupt::Interruptible;
use crate::cli::{Exit, Failure};
use crate::report::{Screen, tokens};

/// Write ids as shards
///
/// The ids of all INs, one after the other. Every id is looked at before a byte is written: one outside the vocabulary, or above 65535
/// at width 2, is told with its place. A shard appears whole and durable or not at all.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// The files to read.
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,

    /// The shard to write; it is replaced if it is there.
    #[arg(short, long, value_name = "SHARD")]
    out: PathBuf,

    /// How many ids the vocabulary has; 0 is not stated.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=i64::from(i32::MAX)))]
    vocab: u32,

    /// Bytes an id takes in the shard: 2 or 4 [default: 2 if they hold the vocabulary, else 4]
    #[arg(long, value_enum, value_name = "BYTES", hide_possible_values = true)]
    width: Option<Width>,

    /// What IN holds: bytes, u16, u32 or text
    ///
    /// bytes: each byte is an id. u16, u32: little-endian numbers without a header. text: decimal numbers with white space between
    /// them.
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    from: From,

    /// Cut after every N ids, into SHARDs with a number of six digits before the ending
    ///
    /// train.bin becomes train_000000.bin, train_000001.bin and so on; the last one has what remains.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    shard_tokens: Option<u32>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Width {
    #[value(name = "2")]
    Two,
    #[value(name = "4")]
    Four,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum From {
    #[default]
    Bytes,
    U16,
    U32,
    Text,
}

const AFTER_HELP: &str = "\
Examples:
  safestep tokens pack book.txt --out book.bin --vocab 256
  safestep tokens pack ids.u32 --from u32 --out train.bin --vocab 128256
  safestep tokens pack ids.txt --from text --out train.bin --vocab 50257 --shard-tokens 100000000

Exit codes:
  0    the shards are written
  1    an IN is bad
  2    wrong usage
  3    an IN could not be read, or a shard not written
  130  interrupted (143: by SIGTERM)";

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    let output = &arguments.out;
    let disk = Interruptible::install(output)?;
    let (mut packed, mut bar) = (Packed::default(), screen.bar());
    let done = pack(
        &disk,
        &arguments.inputs,
        arguments.source(),
        output,
        arguments.packing(),
        &mut packed,
        &mut |done, total| bar.progress(done, total),
    );
    bar.clear();
    let files = packed.shards.len() as u64;
    disk.settle(done).map_err(|failure| match failure {
        Failure::Interrupted { signal, .. } if files > 0 => Failure::InterruptedAfter { signal, files },
        failure => failure,
    })?;
    tokens::packed(screen, &packed)?;
    Ok(Exit::Good)
}

impl Arguments {
    fn source(&self) -> IdSource {
        match self.from {
            From::Bytes => IdSource::Bytes,
            From::U16 => IdSource::U16,
            From::U32 => IdSource::U32,
            From::Text => IdSource::Text,
        }
    }

    fn packing(&self) -> Packing {
        let kind = match self.width {
            Some(Width::Two) => ShardKind::Narrow,
            Some(Width::Four) => ShardKind::Wide,
            None if self.vocab <= 1 << 16 => ShardKind::Narrow,
            None => ShardKind::Wide,
        };
        Packing { kind, vocabulary: self.vocab, shard_ids: self.shard_tokens }
    }
}
