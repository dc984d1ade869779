//! A kind and a size become a state whose memory was touched.

use std::fmt;

use safestep::checkpoint::{Optimizer, State, Tensor, TrainerState};
use safestep_core::Dtype;

/// How the bytes are distributed among the files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A third model, two thirds optimizer.
    Adam,
    /// The model, the optimizer and a further file, of a third each.
    Equal,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Adam, Self::Equal];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Adam => "model and optimizer",
            Self::Equal => "three equal files",
        })
    }
}

/// A state that owns its bytes.
pub(crate) struct Owned {
    pub(crate) kind: Kind,
    bytes: Vec<u8>,
    names: Vec<String>,
    shape: [u64; 1],
}

/// How many tensors a third of the bytes is.
const TENSORS: usize = 24;

impl Owned {
    pub(crate) fn new(kind: Kind, bytes: usize) -> Self {
        let tensor_bytes = bytes / (3 * TENSORS) / 4 * 4;
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let words = std::iter::repeat_with(|| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random.to_le_bytes()
        });
        let len = 3 * TENSORS * tensor_bytes;
        let mut bytes: Vec<u8> = Vec::with_capacity(len + 8);
        words.take(len.div_ceil(8)).for_each(|word| bytes.extend_from_slice(&word));
        bytes.truncate(len);
        let names = (0..3 * TENSORS).map(|place| format!("layer.{place:03}.weight")).collect();
        Self { kind, bytes, names, shape: [(tensor_bytes / 4) as u64] }
    }

    /// All bytes, one behind the other.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of each file.
    pub(crate) fn files(&self) -> Vec<&[u8]> {
        let third = self.bytes.len() / 3;
        match self.kind {
            Kind::Adam => vec![&self.bytes[..third], &self.bytes[third..]],
            Kind::Equal => self.bytes.chunks(third).collect(),
        }
    }

    /// The tensors of each file.
    pub(crate) fn tensors(&self) -> Vec<Vec<Tensor<'_>>> {
        let pieces = self.bytes.chunks(self.bytes.len() / (3 * TENSORS));
        let tensors: Vec<Tensor<'_>> = pieces
            .zip(&self.names)
            .map(|(bytes, name)| Tensor { name, dtype: Dtype::F32, shape: &self.shape, bytes })
            .collect();
        match self.kind {
            Kind::Adam => vec![tensors[..TENSORS].to_vec(), tensors[TENSORS..].to_vec()],
            Kind::Equal => tensors.chunks(TENSORS).map(<[_]>::to_vec).collect(),
        }
    }

    /// The state at a step.
    pub(crate) fn at<T>(&self, step: u64, use_it: impl FnOnce(&State<'_>) -> T) -> T {
        let (tensors, files) = (self.tensors(), self.files());
        let extra: Vec<(&str, &[u8])> = files.get(2).map(|bytes| ("ema.bin", *bytes)).into_iter().collect();
        use_it(&State {
            model: &tensors[0],
            optimizer: Optimizer { arrays: &tensors[1], state: "{}" },
            trainer: TrainerState { step, ..TrainerState::default() },
            config: None,
            files: &extra,
        })
    }
}
