//! Arguments become what a run is made of.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use safestep_core::checkpoint::GitSha;

use super::optimizer::Algorithm;

/// Train a bigram language model on token shards
///
/// The model is a table: for each token, a logit for each token that may follow. It reads windows through the token stream,
/// saves RUN/ckpt every K steps, appends a loss a step to RUN/.loss.json, keeps samples in RUN/.samples.json, and ends with
/// RUN/final.json. Killed at any instant and resumed, it ends on the same bytes as if nothing had happened.
///
/// SIGTERM: finish the step, save, exit with 0. SIGUSR1: save after the step, go on.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
#[command(override_usage = "safestep train bigram --data <SHARD>... --out <RUN> --max-steps <N> [OPTIONS]")]
pub(super) struct Arguments {
    /// Token shards, or directories of them, in this order.
    ///
    /// A run goes on with the same ones: names, lengths and the first and last 64 KiB of each are compared.
    #[arg(long, value_name = "SHARD", num_args = 1.., required = true)]
    pub(super) data: Vec<PathBuf>,

    /// The run's directory: new or empty, unless it is resumed.
    #[arg(long, value_name = "RUN")]
    pub(super) out: PathBuf,

    /// Steps in all.
    #[arg(long, value_name = "N")]
    pub(super) max_steps: u64,

    /// Windows a step.
    #[arg(long, value_name = "B")]
    pub(super) batch: NonZeroU32,

    /// Inputs a window.
    #[arg(long, value_name = "T")]
    pub(super) seq_len: NonZeroU32,

    /// Steps from save to save.
    #[arg(long, value_name = "K")]
    pub(super) ckpt_every: NonZeroU64,

    /// Go on from the newest checkpoint that is whole; from step 0 if there is none yet.
    #[arg(long)]
    pub(super) resume: bool,

    /// How the table is learned: gradient (or autograd) steps, or counts.
    #[arg(long, value_name = "METHOD", default_value = "gradient", hide_possible_values = true)]
    pub(super) method: Method,

    /// What makes a step of a gradient: adamw, sgd.
    #[arg(long, value_name = "NAME", default_value = "adamw", hide_possible_values = true)]
    pub(super) optimizer: Algorithm,

    /// The learning rate; 0.05 for adamw, 5 for sgd unless it is given.
    #[arg(long, value_name = "X", value_parser = learning_rate)]
    pub(super) lr: Option<f64>,

    /// The seed of the windows and the samples.
    #[arg(long, value_name = "S", default_value_t = 42)]
    pub(super) seed: u64,

    /// The size of the vocabulary, for shards that state none.
    #[arg(long, value_name = "V")]
    pub(super) vocab: Option<NonZeroU32>,

    /// Checkpoints that stay; without it all do.
    #[arg(long, value_name = "N")]
    pub(super) keep_last: Option<NonZeroU64>,

    /// The commit that checkpoints name; without it that of the repository around, or of the resumed run.
    ///
    /// A run that is resumed keeps the commit of its checkpoint, wherever it is resumed, unless another one is given here.
    #[arg(long, value_name = "SHA", value_parser = git_sha)]
    pub(super) git_sha: Option<GitSha>,

    /// Be killed by SIGKILL after this step: what demo and tests call a crash.
    #[arg(long, value_name = "STEP", hide = true)]
    pub(super) sigkill_after: Option<u64>,
}

const AFTER_HELP: &str = "\
Examples:
  safestep train bigram --data book.bin --out run --max-steps 1000 \\
      --batch 8 --seq-len 128 --ckpt-every 100
  safestep train bigram --data book.bin --out run --max-steps 2000 \\
      --batch 8 --seq-len 128 --ckpt-every 100 --resume
  safestep tokens pack book.txt --out book.bin --vocab 256     makes a shard of a text

Exit codes:
  0  all steps are done, or SIGTERM asked for a save and the end
  1  a shard is bad, or no checkpoint of the run is whole
  2  wrong usage: RUN holds something, the run to resume is another one or beyond --max-steps,
     or the vocabulary is too large for the memory that is available
  3  a file could not be read or written";

/// How the table is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Method {
    /// By the gradient of the loss, in closed form.
    #[value(alias = "autograd")]
    Gradient,
    /// By counting what follows what.
    Counts,
}

fn learning_rate(text: &str) -> Result<f64, String> {
    let lr: f64 = text.parse().map_err(|_| "expected a number")?;
    if lr.is_finite() && lr > 0.0 { Ok(lr) } else { Err("expected a finite number above zero".into()) }
}

fn git_sha(text: &str) -> Result<GitSha, String> {
    GitSha::parse(text).ok_or_else(|| "expected 40 hexadecimal digits in lower case".into())
}
