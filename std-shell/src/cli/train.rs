//! A run's settings become a trained model: a small real trainer over the library, as proof and example.

mod options;
mod config;
mod model;
mod optimizer;
mod room;
mod learner;
mod ending;
mod bigram;

use std::path::Path;

use clap::{Args, Subcommand};
use safestep::run::Signals;

use super::{Exit, Failure};
use crate::report::Screen;

/// Train a small model, in a run that can be killed at any instant
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP, arg_required_else_help = true, subcommand_required = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    model: Model,
}

impl Arguments {
    /// Where the run is.
    pub(super) fn run_directory(&self) -> &Path {
        match &self.model {
            Model::Bigram(arguments) => &arguments.out,
        }
    }
}

#[derive(Debug, Subcommand)]
enum Model {
    Bigram(options::Arguments),
}

const AFTER_HELP: &str = "\
Examples:
  safestep train bigram --help

Exit codes:
  0  all steps are done, or SIGTERM asked for a save and the end
  1  a shard is bad, or no checkpoint of the run is whole
  2  wrong usage: RUN holds something, or the run to resume is another one
  3  a file could not be read or written";

pub(super) fn run(arguments: &Arguments, signals: Signals, screen: &mut Screen) -> Result<Exit, Failure> {
    match &arguments.model {
        Model::Bigram(arguments) => bigram::run(arguments, signals, screen),
    }
}
