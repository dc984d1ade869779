//! Shards of tokens, as subcommands of their own: packed, shown, judged, read.

mod check;
mod inspect;
mod pack;
mod windows;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use safestep::Error;
use safestep::tokens::shards::shard_paths;

use super::{Exit, Failure};
use crate::report::Screen;

/// Pack, show, judge and read shards of token ids
///
/// A shard is a file of ids as llm.c has them: a header of 1024 bytes, then u16 or u32, little-endian. A directory stands for every
/// *.bin in it, in name order.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP, arg_required_else_help = true, subcommand_required = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Pack(pack::Arguments),
    Inspect(inspect::Arguments),
    Check(check::Arguments),
    Windows(windows::Arguments),
}

const AFTER_HELP: &str = "\
Examples:
  safestep tokens pack book.txt --out book.bin --vocab 256
  safestep tokens inspect shards/
  safestep tokens check --json shards/
  safestep tokens windows shards/ --seq-len 8 --batch 2 --batches 3 --json

Exit codes:
  0    all good
  1    a shard, or what was to be packed, is bad
  2    wrong usage
  3    a file could not be read or written (whatever the others are)
  130  interrupted (143: by SIGTERM)";

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    match &arguments.command {
        Command::Pack(arguments) => pack::run(arguments, screen),
        Command::Inspect(arguments) => inspect::run(arguments, screen),
        Command::Check(arguments) => check::run(arguments, screen),
        Command::Windows(arguments) => windows::run(arguments, screen),
    }
}

/// What shards to look at.
#[derive(Debug, Args)]
struct Sources {
    /// Shards, and directories: of those, every *.bin file in name order.
    #[arg(required = true, value_name = "SHARD")]
    paths: Vec<PathBuf>,
}

impl Sources {
    /// The files, or why a directory has none.
    fn files(&self) -> impl Iterator<Item = Result<PathBuf, Error>> {
        self.paths.iter().flat_map(|path| match shard_paths(path) {
            Ok(files) => files.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        })
    }
}
