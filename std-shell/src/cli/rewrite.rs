//! A good model file becomes the same tensors and metadata in canonical layout.

use std::path::PathBuf;

use clap::Args;
use safestep::rewrite;
use safestep_core::Limits;

use super::interrupt::Interruptible;
use super::{Exit, Failure};
use crate::report::{Screen, human};

/// Write the same tensors and metadata in the canonical layout
///
/// Repairs files that are good, yet misaligned, oddly ordered or oddly padded: OUT is byte for byte what the reference
/// library writes for the same content (with more than one metadata key its order is random; ours is sorted).
///
/// OUT appears whole and durable or not at all; an old OUT stays as it was until then, keeps its permissions, and may be
/// IN itself. Until then both need room on the disk: in place, too, a second copy of the file. Other hard links to an old OUT
/// keep the old content. When interrupted, nothing is left behind. A bad IN gets its verdict and writes nothing.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// The model file to read.
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// The model file to write; it is replaced if it is there.
    #[arg(value_name = "OUT")]
    output: PathBuf,
}

const AFTER_HELP: &str = "\
Examples:
  safestep rewrite odd.safetensors canonical.safetensors
  safestep rewrite model.safetensors model.safetensors     in place

Exit codes:
  0    OUT is written
  1    IN is bad
  2    wrong usage
  3    IN could not be read, or OUT not written
  130  interrupted (129: by SIGHUP, 143: by SIGTERM)";

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    let (input, output) = (&arguments.input, &arguments.output);
    let disk = Interruptible::install(output)?;
    let mut bar = screen.bar();
    let done = rewrite(&disk, input, output, Limits::default(), &mut |done, total| bar.progress(done, total));
    bar.clear();
    human::rewritten(screen, output, &disk.settle(done)?)?;
    Ok(Exit::Good)
}
