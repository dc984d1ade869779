//! Batches become a better model, one step each; a model with all that its next step depends on goes into a checkpoint and
//! comes back bit for bit.

use std::collections::TryReserveError;

use safestep::Model;
use safestep::checkpoint::{Checkpoint, Optimizer as Saved, State, Tensor, TrainerState};
use safestep::kernels::{decode_f32, encode_f32};
use safestep_core::Dtype;
use safestep_core::numbers::{NumbersError, OutOfRange, decode_u64};

use super::config::difference;
use super::model::{Bigram, Pairs};
use super::optimizer::Optimizer;

/// The model, and how it learns.
#[derive(Debug)]
pub(super) struct Learner {
    pub(super) model: Bigram,
    method: Method,
    pairs: Pairs,
    vocabulary: u64,
}

#[derive(Debug)]
enum Method {
    Gradient { optimizer: Optimizer, gradient: Vec<f32> },
    Counts { counts: Vec<u64> },
}

/// The name of the only parameter.
const LOGITS: &str = "logits";

impl Learner {
    /// A model that knows nothing yet; it learns by the optimizer, or by counting.
    pub(super) fn new(vocabulary: u32, optimizer: Option<Optimizer>) -> Result<Self, TryReserveError> {
        let width = usize::try_from(vocabulary).unwrap_or(usize::MAX);
        let size = width.saturating_mul(width);
        let method = match optimizer {
            Some(mut optimizer) => {
                optimizer.arrays = optimizer.arrays.iter().map(|_| zeros(size)).collect::<Result<_, _>>()?;
                Method::Gradient { optimizer, gradient: zeros(size)? }
            }
            None => Method::Counts { counts: zeros(size)? },
        };
        let model = Bigram::from_logits(width, zeros(size)?);
        Ok(Self { model, method, pairs: Pairs::default(), vocabulary: vocabulary.into() })
    }

    /// Learns from a batch; the answer is the loss before.
    pub(super) fn step(&mut self, inputs: &[u32], targets: &[u32]) -> f64 {
        self.pairs.fill(inputs, targets);
        match &mut self.method {
            Method::Gradient { optimizer, gradient } => {
                let loss = self.model.loss_and_gradient(&self.pairs, gradient);
                optimizer.apply(self.model.logits_mut(), gradient);
                loss
            }
            Method::Counts { counts } => {
                let loss = self.model.loss(&self.pairs);
                self.model.count(&self.pairs, counts);
                loss
            }
        }
    }

    /// The mean loss of pairs that nothing is learned from.
    pub(super) fn loss(&mut self, inputs: &[u32], targets: &[u32]) -> f64 {
        self.pairs.fill(inputs, targets);
        self.model.loss(&self.pairs)
    }

    /// Lends what a checkpoint saves.
    pub(super) fn with_state<T>(
        &self,
        trainer: TrainerState,
        config: &str,
        save: impl FnOnce(&State<'_>) -> T,
    ) -> T {
        let logits = bytes_of(self.model.logits());
        let (names, arrays, dtype) = match &self.method {
            Method::Gradient { optimizer, .. } => {
                let names = optimizer.algorithm.keys().iter().map(|key| format!("{LOGITS}.{key}")).collect();
                let arrays: Vec<Vec<u8>> = optimizer.arrays.iter().map(|array| bytes_of(array)).collect();
                (names, arrays, Dtype::F32)
            }
            Method::Counts { counts } => {
                let bytes = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
                (vec![format!("{LOGITS}.counts")], vec![bytes], Dtype::U64)
            }
        };
        let state = self.method.state();
        let shape = [self.vocabulary; 2];
        let tensor = |(name, bytes)| Tensor { name, dtype, shape: &shape, bytes };
        let names: Vec<String> = names;
        let arrays: Vec<Vec<u8>> = arrays;
        let arrays: Vec<Tensor<'_>> =
            names.iter().map(String::as_str).zip(arrays.iter().map(Vec::as_slice)).map(tensor).collect();
        save(&State {
            model: &[Tensor { name: LOGITS, dtype: Dtype::F32, shape: &shape, bytes: &logits }],
            optimizer: Saved { arrays: &arrays, state: &state },
            trainer,
            config: Some(config.as_bytes()),
            files: &[],
        })
    }

    /// Takes over what a checkpoint holds. Its config is ours, so names and shapes are; what is not is said, and so is a setting
    /// of the optimizer that is no part of the config.
    pub(super) fn restore(&mut self, checkpoint: &Checkpoint) -> Result<(), String> {
        if let Method::Gradient { optimizer, .. } = &mut self.method {
            optimizer.step = checkpoint.trainer.step;
        }
        let state = checkpoint.optimizer_state();
        if let Some(what) = difference("the state of its optimizer", state.as_bytes(), &self.method.state()) {
            return Err(what);
        }
        floats(&checkpoint.model, LOGITS, self.model.logits_mut())?;
        match &mut self.method {
            Method::Gradient { optimizer, .. } => {
                let keys = optimizer.algorithm.keys();
                for (key, array) in keys.iter().zip(&mut optimizer.arrays) {
                    floats(&checkpoint.optimizer, &format!("{LOGITS}.{key}"), array)?;
                }
                Ok(())
            }
            Method::Counts { counts } => {
                let name = format!("{LOGITS}.counts");
                read(&checkpoint.optimizer, &name, |dtype, bytes| decode_u64(dtype, bytes, counts))
            }
        }
    }
}

impl Method {
    /// What a checkpoint says of how it was learned, as JSON: compact, keys sorted.
    fn state(&self) -> String {
        match self {
            Self::Gradient { optimizer, .. } => optimizer.state(),
            Self::Counts { .. } => r#"{"algorithm":"counts"}"#.into(),
        }
    }
}

fn floats(model: &Model, name: &str, values: &mut [f32]) -> Result<(), String> {
    read(model, name, |dtype, bytes| decode_f32(dtype, bytes, values))
}

fn read(
    model: &Model,
    name: &str,
    decode: impl FnOnce(Dtype, &[u8]) -> Result<(), NumbersError>,
) -> Result<(), String> {
    let view = model.index().get(name).and_then(|entry| model.view(&entry));
    let Some(view) = view else { return Err(format!("it has no tensor {name}")) };
    decode(view.dtype(), view.bytes()).map_err(|error| format!("{name}: {error}"))
}

fn zeros<T: Clone + Default>(len: usize) -> Result<Vec<T>, TryReserveError> {
    // Whether there is room; then pages that the kernel has zeroed, and that take no memory until they are touched.
    let mut room = Vec::<T>::new();
    room.try_reserve_exact(len)?;
    drop(room);
    Ok(vec![T::default(); len])
}

/// The bytes of numbers in a file.
fn bytes_of(values: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; values.len().saturating_mul(4)];
    // As many bytes as they are; F32 is never refused.
    let _ = encode_f32(values, Dtype::F32, &mut bytes, OutOfRange::Refuse);
    bytes
}
