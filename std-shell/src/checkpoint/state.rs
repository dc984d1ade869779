//! What a checkpoint holds, borrowed from whoever trains.

use safestep_core::Dtype;
use safestep_core::checkpoint::TrainerState;

/// The state of a training run. Nothing is copied: the bytes go to the disk from where they are.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    /// The parameters.
    pub model: &'a [Tensor<'a>],
    /// The optimizer.
    pub optimizer: Optimizer<'a>,
    /// The rest of the run; its step is that of the checkpoint. If there is a `config` and no digest of one, it is filled in.
    pub trainer: TrainerState,
    /// The text of `config.json`, if there is one.
    pub config: Option<&'a [u8]>,
    /// Further files, by name: a tokenizer, averaged weights.
    pub files: &'a [(&'a str, &'a [u8])],
}

/// What an optimizer holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Optimizer<'a> {
    /// Each array as `<parameter>.<state key>`, such as `fc.weight.exp_avg`.
    pub arrays: &'a [Tensor<'a>],
    /// All else, step count and hyperparameters, as JSON text. Empty means that there is nothing else, and is saved as `{}`.
    pub state: &'a str,
}

/// A tensor with its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor<'a> {
    /// Its name.
    pub name: &'a str,
    /// What its elements are.
    pub dtype: Dtype,
    /// Its dimensions, outermost first.
    pub shape: &'a [u64],
    /// Its elements: little-endian, row-major.
    pub bytes: &'a [u8],
}
