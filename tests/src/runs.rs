//! A small training run made up: states that differ in every byte that training would change, and images of directories on a
//! real disk.

use std::fs;
use std::path::{Path, PathBuf};

use safestep::checkpoint::protocol::Protocol;
use safestep::checkpoint::thresholds::Thresholds;
use safestep::checkpoint::{Checkpoint, Optimizer, SaveOptions, State, Tensor};
use safestep_core::Dtype;
use safestep_core::checkpoint::{DataCursor, GitSha, RngState, TrainerState};

use crate::disk_faults::{Image, Standing};
use crate::headers::random::Random;

/// A state that owns what it holds: a `Linear(2, 1)` under AdamW.
#[derive(Clone, Debug)]
pub struct Run {
    /// The rest of the run.
    pub trainer: TrainerState,
    /// Parameters, by name.
    pub model: Vec<Array>,
    /// Optimizer arrays, by name.
    pub arrays: Vec<Array>,
    /// The rest of the optimizer.
    pub optimizer_state: String,
    /// `config.json`
    pub config: Option<Vec<u8>>,
    /// Further files.
    pub files: Vec<(String, Vec<u8>)>,
}

/// A tensor that owns its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Its name.
    pub name: String,
    /// What its elements are.
    pub dtype: Dtype,
    /// Its dimensions.
    pub shape: Vec<u64>,
    /// Its elements.
    pub bytes: Vec<u8>,
}

impl Array {
    /// Values of 32 bits.
    #[must_use]
    pub fn f32(name: &str, shape: &[u64], values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { name: name.to_owned(), dtype: Dtype::F32, shape: shape.to_vec(), bytes }
    }
}

impl Run {
    /// The run after some steps; no two steps hold the same numbers.
    #[must_use]
    pub fn at(step: u64) -> Self {
        let value =
            |place: u64| f32::from_bits(0x3f80_0000 + u32::try_from(step % 100_000 * 31 + place).unwrap());
        let weight = |name: &str, from: u64| Array::f32(name, &[1, 2], &[value(from), -value(from + 1)]);
        let bias = |name: &str, from: u64| Array::f32(name, &[1], &[value(from)]);
        Self {
            trainer: TrainerState {
                config_sha256: None,
                data_cursor: Some(DataCursor { offset: step * 6, shard: step % 3 }),
                git_sha: Some(GitSha::new([0xa5; 20])),
                lr: Some(3e-4 / (step + 1) as f64),
                rng_state: Some(RngState { inc: 0x6d, state: step.wrapping_mul(0x9e37_79b9_7f4a_7c15) }),
                step,
                tokens_seen: step * 4096,
            },
            model: vec![weight("weight", 0), bias("bias", 2)],
            arrays: vec![
                weight("weight.exp_avg", 3),
                weight("weight.exp_avg_sq", 5),
                bias("bias.exp_avg", 7),
                bias("bias.exp_avg_sq", 8),
            ],
            optimizer_state: format!(r#"{{"betas":[0.9,0.999],"step":{step}}}"#),
            config: Some(br#"{"seq_len":3}"#.to_vec()),
            files: vec![("tokenizer.json".to_owned(), b"{}".to_vec())],
        }
    }

    /// The same with a further tensor of so many bytes, of which each step has others.
    #[must_use]
    pub fn sized(step: u64, len_bytes: usize) -> Self {
        let mut run = Self::at(step);
        let mut random = Random::new(step);
        let mut bytes: Vec<u8> =
            (0..len_bytes.div_ceil(8)).flat_map(|_| random.bits().to_le_bytes()).collect();
        bytes.truncate(len_bytes);
        let shape = vec![u64::try_from(len_bytes).unwrap()];
        run.model.push(Array { name: "table".to_owned(), dtype: Dtype::U8, shape, bytes });
        run
    }

    /// Lends the state.
    pub fn with<T>(&self, use_it: impl FnOnce(&State<'_>) -> T) -> T {
        let (model, arrays) = (lend(&self.model), lend(&self.arrays));
        let files: Vec<(&str, &[u8])> =
            self.files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
        use_it(&State {
            model: &model,
            optimizer: Optimizer { arrays: &arrays, state: &self.optimizer_state },
            trainer: self.trainer,
            config: self.config.as_deref(),
            files: &files,
        })
    }

    /// What is not the same, bit for bit, in what was loaded.
    #[must_use]
    pub fn differs_from(&self, loaded: &Checkpoint) -> Option<String> {
        let arrays = |model: &safestep::Model| -> Vec<Array> {
            let index = model.index();
            let arrays = index.iter().map(|entry| Array {
                name: entry.name().to_string(),
                dtype: entry.dtype(),
                shape: entry.shape().dims().collect(),
                bytes: model.view(&entry).unwrap().bytes().to_vec(),
            });
            arrays.collect()
        };
        let sorted = |arrays: &[Array]| {
            let mut arrays = arrays.to_vec();
            arrays.sort_by(|one, other| one.name.cmp(&other.name));
            arrays
        };
        let mut trainer = self.trainer;
        if let Some(config) = &self.config {
            trainer.config_sha256 = Some(safestep_core::checkpoint::Sha256::of(config));
        }
        let rate = |trainer: &TrainerState| trainer.lr.map(f64::to_bits);
        let further = |name: &String| loaded.file(name).map(<[u8]>::to_vec);
        let checks = [
            ("trainer state", trainer == loaded.trainer && rate(&trainer) == rate(&loaded.trainer)),
            ("model", sorted(&self.model) == sorted(&arrays(&loaded.model))),
            ("optimizer", sorted(&self.arrays) == sorted(&arrays(&loaded.optimizer))),
            ("optimizer state", self.optimizer_state == loaded.optimizer_state()),
            ("config", self.config.as_deref() == loaded.config()),
            ("files", self.files.iter().all(|(name, bytes)| further(name).as_ref() == Some(bytes))),
        ];
        checks.into_iter().find(|(_, same)| !same).map(|(what, _)| format!("another {what}"))
    }
}

fn lend(arrays: &[Array]) -> Vec<Tensor<'_>> {
    let tensors = arrays.iter().map(|array| Tensor {
        name: &array.name,
        dtype: array.dtype,
        shape: &array.shape,
        bytes: &array.bytes,
    });
    tensors.collect()
}

/// Has small states go through what large ones go through: many threads write, in portions of so many bytes between which the
/// file is brought to the disk.
#[must_use]
pub fn in_portions(bytes: usize) -> SaveOptions {
    let thresholds =
        Thresholds { parallel_bytes_min: 0, write_back_bytes: bytes as u64, portion_bytes: bytes / 2 };
    SaveOptions { threads: 3, thresholds, ..SaveOptions::default() }
}

/// All rules of a save but one, by its name.
#[must_use]
pub fn protocol_without(rule: &str) -> Option<Protocol> {
    let mut protocol = Protocol::default();
    *match rule {
        "sync_files" => &mut protocol.sync_files,
        "sync_manifest" => &mut protocol.sync_manifest,
        "sync_step" => &mut protocol.sync_step,
        "sync_root_for_step" => &mut protocol.sync_root_for_step,
        "sync_latest" => &mut protocol.sync_latest,
        "sync_root_for_latest" => &mut protocol.sync_root_for_latest,
        "sync_parent" => &mut protocol.sync_parent,
        "manifest_last" => &mut protocol.manifest_last,
        "latest_after_step" => &mut protocol.latest_after_step,
        "delete_last" => &mut protocol.delete_last,
        "unname_first" => &mut protocol.unname_first,
        _ => return None,
    } = false;
    Some(protocol)
}

/// Makes a directory hold what an image holds, no more and no less, and leaves alone what is the same already.
///
/// # Panics
/// When the disk does not do as it is told.
pub fn materialize(image: &Image, directory: &Path, before: &Image) {
    for (path, standing) in before.iter().rev().filter(|(path, standing)| image.get(*path) != Some(*standing))
    {
        let at = directory.join(path);
        match standing {
            Standing::Directory => fs::remove_dir_all(at).unwrap(),
            _ => fs::remove_file(at).unwrap(),
        }
    }
    for (path, standing) in image.iter().filter(|(path, standing)| before.get(*path) != Some(*standing)) {
        let at: PathBuf = directory.join(path);
        match standing {
            Standing::Directory => fs::create_dir(at).unwrap(),
            Standing::File(bytes) => fs::write(at, bytes).unwrap(),
            Standing::Link(to) => std::os::unix::fs::symlink(to, at).unwrap(),
            Standing::Other(kind) => panic!("no image of a real disk has {kind}"),
        }
    }
}
