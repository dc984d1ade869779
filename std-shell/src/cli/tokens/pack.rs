//! Files of ids, of text, or shards become shards.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use safestep::tokens::shards::shard_paths;
use safestep::tokens::{IdSource, Packed, Packing, Shard, ShardKind, Width as Stored, pack};
use safestep::{Access, Error};

use crate::cli::interrupt::Interruptible;
use crate::cli::{Exit, Failure};
use crate::report::{Screen, tokens};

/// Write ids as shards
///
/// The ids of all INs, one after the other. Every id is looked at before a byte is written: one outside the vocabulary, or above 65535
/// at width 2, is told with its place. The shards get their names when all of them are whole and durable, or none does; until then
/// they stand beside them as hidden files that end in .tmp, also those that they are to replace.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// The files to read.
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,

    /// The shard to write; it is replaced if it is there, unless it is an IN.
    #[arg(short, long, value_name = "SHARD")]
    out: PathBuf,

    /// How many ids the vocabulary has; 0 is not stated.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=i64::from(i32::MAX)))]
    vocab: u32,

    /// Bytes an id takes in the shard: 2 or 4 [default: 2 if they hold the vocabulary, else 4]
    ///
    /// Of a vocabulary that is not stated, 2 if they hold all that IN can: bytes, u16, or shards of these.
    #[arg(long, value_enum, value_name = "BYTES", hide_possible_values = true)]
    width: Option<Width>,

    /// What IN holds: bytes, u16, u32, text or shard
    ///
    /// bytes: each byte is an id. u16, u32: little-endian numbers without a header. text: decimal numbers with white space between
    /// them. shard: shards, to be cut anew, put together or made wider; a directory is every *.bin in it. A shard is not taken for
    /// raw numbers.
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    from: From,

    /// Cut after every N ids, into SHARDs with a number of six digits before the ending
    ///
    /// train.bin becomes train_000000.bin, train_000001.bin and so on; the last one has what remains. More than a million get more
    /// digits, so that the order of the names stays that of the numbers.
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
    Shard,
}

const AFTER_HELP: &str = "\
Examples:
  safestep tokens pack book.txt --out book.bin --vocab 256
  safestep tokens pack ids.u32 --from u32 --out train.bin --vocab 128256
  safestep tokens pack ids.txt --from text --out train.bin --vocab 50257 --shard-tokens 100000000
  safestep tokens pack shards/ --from shard --out all.bin --vocab 50257

Exit codes:
  0    the shards are written
  1    an IN is bad, or would be replaced
  2    wrong usage
  3    an IN could not be read, or a shard not written
  130  interrupted (143: by SIGTERM)";

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    let output = &arguments.out;
    let inputs = arguments.files()?;
    let packing = arguments.packing(&inputs)?;
    let disk = Interruptible::install(output)?;
    let (mut packed, mut bar) = (Packed::default(), screen.bar());
    let from = arguments.source();
    let progress = &mut |done, total| bar.progress(done, total);
    let done = pack(&disk, &inputs, from, output, packing, &mut packed, progress);
    bar.clear();
    let files = packed.shards.len() as u64;
    let done = disk.settle(done).map_err(|failure| match failure {
        Failure::Interrupted { signal, .. } if files > 0 => Failure::InterruptedAfter { signal, files },
        failure => failure,
    });
    if done.is_err() && files > 0 {
        tokens::in_place(screen, &packed);
    }
    done?;
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
            From::Shard => IdSource::Shard,
        }
    }

    /// The inputs; a directory of shards is the shards in it.
    fn files(&self) -> Result<Vec<PathBuf>, Error> {
        if !matches!(self.from, From::Shard) {
            return Ok(self.inputs.clone());
        }
        Ok(self.inputs.iter().map(|path| shard_paths(path)).collect::<Result<Vec<_>, _>>()?.concat())
    }

    fn packing(&self, inputs: &[PathBuf]) -> Result<Packing, Error> {
        let narrow = match (self.width, self.vocab) {
            (Some(width), _) => matches!(width, Width::Two),
            (None, 0) => self.is_narrow(inputs)?,
            (None, size) => size <= 1 << 16,
        };
        let kind = if narrow { ShardKind::Narrow } else { ShardKind::Wide };
        Ok(Packing { kind, vocabulary: self.vocab, shard_ids: self.shard_tokens })
    }

    /// Whether two bytes hold whatever stands in the inputs.
    fn is_narrow(&self, inputs: &[PathBuf]) -> Result<bool, Error> {
        match self.from {
            From::Bytes | From::U16 => Ok(true),
            From::U32 | From::Text => Ok(false),
            From::Shard => {
                let widths =
                    inputs.iter().map(|path| Ok(Shard::open(path, Access::Read)?.header().kind().width()));
                Ok(widths.collect::<Result<Vec<_>, Error>>()?.iter().all(|width| *width == Stored::Two))
            }
        }
    }
}
