//! A trained model becomes what a run leaves beside its checkpoints: samples, and the last word in `final.json`.

use std::io;
use std::path::Path;

use safestep::tokens::Shards;
use safestep::tokens::shards::SCRATCH_BYTES;
use safestep::{Commit, Disk as _, Error, FileReader, OsDisk, ReadAt as _};
use safestep_core::checkpoint::{Digest, Sha256};
use safestep_core::tokens::Pcg32;
use serde::Serialize;

use super::learner::Learner;

/// The last word: compact, keys sorted.
#[derive(Debug, Serialize)]
pub(super) struct Final {
    pub(super) eval_loss: Option<f64>,
    pub(super) model_sha256: String,
    pub(super) steps: u64,
    pub(super) tokens_seen: u64,
}

/// Puts a document where it belongs, whole and durable.
pub(super) fn write(path: &Path, document: &impl Serialize) -> Result<(), Error> {
    let mut text = serde_json::to_vec(document).map_err(|error| Error::io("write", path, error.into()))?;
    text.push(b'\n');
    let mut commit = Commit::begin(&OsDisk, path)?;
    commit.write(&text)?;
    commit.finish()
}

/// The mean loss over the first ids of the first shard, as far as [`EVALUATED_IDS`] go. None if it is not finite.
pub(super) fn evaluate(
    learner: &mut Learner,
    shards: &Shards,
    vocabulary: u32,
) -> Result<Option<f64>, Error> {
    let Some(shard) = shards.list().first() else { return Ok(None) };
    let pairs = shard.header().ids().saturating_sub(1).min(EVALUATED_IDS);
    let pairs = usize::try_from(pairs).unwrap_or_default();
    let (mut inputs, mut targets) = (vec![0_u32; pairs], vec![0_u32; pairs]);
    shard.read_pair_into(0, &mut inputs, &mut targets, Some(vocabulary), &mut vec![0; SCRATCH_BYTES])?;
    Ok(Some(learner.loss(&inputs, &targets)).filter(|loss| loss.is_finite()))
}

/// How many pairs are evaluated at most.
const EVALUATED_IDS: u64 = 1 << 16;

/// The digest of a file, read once.
pub(super) fn sha256_of(path: &Path) -> Result<Digest, Error> {
    let file = FileReader::open(path)?;
    let (mut hash, mut buffer, mut at) = (Sha256::new(), vec![0; 1 << 20], 0_u64);
    while at < file.len_bytes() {
        let step = (file.len_bytes() - at).min(1 << 20);
        let piece = buffer.get_mut(..usize::try_from(step).unwrap_or_default()).unwrap_or_default();
        file.read_at(at, piece)?;
        hash.update(piece);
        at = at.saturating_add(step);
    }
    Ok(hash.digest())
}

/// A few texts of the model at a step, as JSON: the same for the same seed and step.
pub(super) fn samples(learner: &Learner, seed: u64, step: u64, vocabulary: u32) -> String {
    let sample = |number: u32| {
        let mut random = Pcg32::seed(seed ^ u64::from(number) << 32, step);
        let ids = learner.model.sample(number % vocabulary.max(1), SAMPLE_IDS, &mut random);
        let bytes: Vec<u8> = ids.iter().filter_map(|&id| u8::try_from(id).ok()).collect();
        // Ids of a larger vocabulary are no bytes, and no text.
        let text = (vocabulary <= 256).then(|| String::from_utf8_lossy(&bytes).into_owned());
        Sample { ids, text }
    };
    let samples = Samples { samples: (0..SAMPLES).map(|number| sample(number * 32 + 32)).collect(), step };
    serde_json::to_string(&samples).unwrap_or_default()
}

/// The step that samples in a file are of, if it has some.
pub(super) fn step_of_samples(path: &Path) -> Option<u64> {
    let document: serde_json::Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    document.get("step")?.as_u64()
}

/// Takes a document away, durably, if it is there.
pub(super) fn take_back(directory: &Path, name: &str) -> Result<(), Error> {
    let path = directory.join(name);
    match OsDisk.remove(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        answer => {
            answer.and_then(|()| OsDisk.sync_dir(directory)).map_err(|error| Error::io("remove", path, error))
        }
    }
}

const SAMPLES: u32 = 3;
const SAMPLE_IDS: usize = 48;

#[derive(Serialize)]
struct Samples {
    samples: Vec<Sample>,
    step: u64,
}

#[derive(Serialize)]
struct Sample {
    ids: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// A directory that holds nothing, or is not there yet.
pub(super) fn is_empty(directory: &Path) -> io::Result<bool> {
    match std::fs::read_dir(directory) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}
