//! SHARDs become batches of windows, and the cursor from which they go on.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroU32;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use safestep::tokens::{Bookmark, CursorError, Pcg32, Shards, Share, TokenStream};
use safestep::{Access, Cause, Error, Misfit};
use serde::Deserialize;
use serde_json::value::RawValue;

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

    /// Where to go on: a cursor as it was printed, @FILE or - for standard input.
    ///
    /// {"shard","offset","rng":{"state","inc"}}, or the object {"cursor":...} that holds it. If it says which shards it belongs to,
    /// these must be them. A cursor that tells many shards is too long for an argument; a file takes it.
    #[arg(long, value_name = "JSON|@FILE|-", value_parser = OsStringValueParser::new().try_map(Origin::of))]
    cursor: Option<Origin>,

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
  tail -n 1 batches.jsonl | safestep tokens windows train.bin --seq-len 8 --batch 2 --batches 3 --json --cursor -

Exit codes:
  0  read
  1  a shard is bad, too short, or not the cursor's; what stands in a FILE is no cursor
  2  wrong usage
  3  a file could not be read";

/// Where a cursor comes from.
#[derive(Clone, Debug)]
enum Origin {
    Argument(Bookmark),
    File(PathBuf),
    Input,
}

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
    if let Some(origin) = &arguments.cursor {
        stream.restore_bookmark(&origin.bookmark()?)?;
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

impl Origin {
    fn of(argument: OsString) -> Result<Self, CursorError> {
        match argument.as_bytes() {
            b"-" => Ok(Self::Input),
            [b'@', path @ ..] => Ok(Self::File(OsString::from_vec(path.to_vec()).into())),
            text => read(text).map(Self::Argument),
        }
    }

    fn bookmark(&self) -> Result<Bookmark, Error> {
        match self {
            Self::Argument(bookmark) => Ok(bookmark.clone()),
            Self::File(path) => take(path, File::open(path)),
            Self::Input => take(Path::new("standard input"), Ok(io::stdin().lock())),
        }
    }
}

fn take(path: &Path, from: io::Result<impl Read>) -> Result<Bookmark, Error> {
    let mut text = Vec::new();
    let taken = from.and_then(|from| from.take(CURSOR_BYTES_MAX + 1).read_to_end(&mut text));
    taken.map_err(|error| Error::io("read a cursor from", path, error))?;
    if text.len() as u64 > CURSOR_BYTES_MAX {
        let error = io::Error::other(format!("it has more than {CURSOR_BYTES_MAX} bytes"));
        return Err(Error::io("read a cursor from", path, error));
    }
    read(&text).map_err(|error| Error::new("read a cursor from", path, Cause::Misfit(Misfit::Cursor(error))))
}

/// A million shards with names of thirty characters.
const CURSOR_BYTES_MAX: u64 = 1 << 27;

/// A cursor, or the object that was printed with it.
fn read(text: &[u8]) -> Result<Bookmark, CursorError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Printed<'t> {
        #[serde(borrow)]
        cursor: &'t RawValue,
    }
    // An array would do for a struct, too.
    let object = Some(text).filter(|text| text.trim_ascii_start().starts_with(b"{"));
    let inner = object.and_then(|text| serde_json::from_slice(text).ok());
    Bookmark::read(inner.map_or(text, |Printed { cursor }| cursor.get().as_bytes()))
}
