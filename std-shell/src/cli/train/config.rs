//! What a run is made of becomes a document, and two documents what differs between them.

use std::collections::BTreeSet;
use std::path::Path;

use safestep::tokens::Shards;
use safestep::{Error, FileReader, ReadAt as _};
use safestep_core::checkpoint::{Digest, Sha256};
use serde::Serialize;
use serde_json::Value;

use super::options::{Arguments, Method};

/// All that decides on the bytes of a run. How long it is, and how often it is saved, does not.
#[derive(Debug, Serialize)]
pub(super) struct Config {
    pub(super) batch: u32,
    /// None where nothing has a rate.
    pub(super) lr: Option<f64>,
    method: &'static str,
    model: &'static str,
    optimizer: Option<&'static str>,
    pub(super) seed: u64,
    pub(super) seq_len: u32,
    shards: Vec<Shard>,
    pub(super) vocabulary: u32,
}

/// A shard by what can be seen without reading all of it. That both ends are the same bytes tells shards of one name and
/// length apart for the price of two reads; an id that was changed in the middle alone is not noticed.
#[derive(Debug, Serialize)]
struct Shard {
    bytes: u64,
    ends_sha256: String,
    ids: u64,
    name: String,
}

impl Config {
    pub(super) fn of(arguments: &Arguments, shards: &Shards, vocabulary: u32) -> Result<Self, Error> {
        let by_gradient = arguments.method == Method::Gradient;
        let lr = arguments.lr.unwrap_or_else(|| arguments.optimizer.usual_lr());
        let shards = shards.list().iter().map(|shard| {
            let facts = shard.facts();
            let ends_sha256 = ends_of(shard.path())?.to_string();
            Ok(Shard { bytes: facts.bytes, ends_sha256, ids: facts.ids, name: facts.name })
        });
        Ok(Self {
            batch: arguments.batch.get(),
            lr: by_gradient.then_some(lr),
            method: if by_gradient { "gradient" } else { "counts" },
            model: "bigram",
            optimizer: by_gradient.then(|| arguments.optimizer.name()),
            seed: arguments.seed,
            seq_len: arguments.seq_len.get(),
            shards: shards.collect::<Result<_, Error>>()?,
            vocabulary,
        })
    }

    /// The text of `config.json`: compact, keys sorted, as the fields stand here.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The digest of a file's first and last bytes; of all of them if it is short.
fn ends_of(path: &Path) -> Result<Digest, Error> {
    let file = FileReader::open(path)?;
    let (mut hash, mut end) = (Sha256::new(), vec![0; END_BYTES]);
    let len = file.len_bytes();
    let head = len.min(END_BYTES as u64);
    for begin in [0, head.max(len.saturating_sub(END_BYTES as u64))] {
        let count = usize::try_from(len.saturating_sub(begin)).unwrap_or(usize::MAX).min(END_BYTES);
        let piece = end.get_mut(..count).unwrap_or_default();
        file.read_at(begin, piece)?;
        hash.update(piece);
    }
    Ok(hash.digest())
}

/// Some ten thousand ids, read in a moment from any disk.
const END_BYTES: usize = 64 * 1024;

/// The digest of a config's text.
pub(super) fn sha256(text: &str) -> Digest {
    Sha256::of(text.as_bytes())
}

/// What differs between a document of a checkpoint and ours, in words; `None` if nothing does.
pub(super) fn difference(document: &str, saved: &[u8], ours: &str) -> Option<String> {
    if saved == ours.as_bytes() {
        return None;
    }
    let (Ok(Value::Object(saved)), Ok(Value::Object(ours))) =
        (serde_json::from_slice(saved), serde_json::from_str(ours))
    else {
        return Some(format!("{document} is not one of ours"));
    };
    let keys: BTreeSet<&String> = saved.keys().chain(ours.keys()).collect();
    let word = |value: Option<&Value>| value.map_or("nothing".into(), Value::to_string);
    let differing = keys.into_iter().filter(|&key| saved.get(key) != ours.get(key));
    let words: Vec<String> = differing
        .map(|key| format!("{key}: it has {}, this is {}", word(saved.get(key)), word(ours.get(key))))
        .collect();
    Some(words.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named() {
        let table = [
            (r#"{"a":1}"#, r#"{"a":1}"#, None),
            (r#"{"a":1,"b":[2]}"#, r#"{"a":1,"b":[3]}"#, Some("b: it has [2], this is [3]")),
            (r#"{"a":1}"#, r#"{"b":1}"#, Some("a: it has 1, this is nothing; b: it has nothing, this is 1")),
            ("[]", r#"{"a":1}"#, Some("its config is not one of ours")),
        ];
        for (saved, ours, expected) in table {
            assert_eq!(difference("its config", saved.as_bytes(), ours).as_deref(), expected);
        }
    }

    #[test]
    fn both_ends_of_a_file_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shard");
        for len in [0, 1, END_BYTES, END_BYTES + 1, 2 * END_BYTES - 1, 2 * END_BYTES, 5 * END_BYTES] {
            let mut bytes: Vec<u8> = (0..len).map(|place| (place % 251) as u8).collect();
            let mut ends = |change: Option<usize>| {
                change.into_iter().for_each(|place| bytes[place] ^= 1);
                std::fs::write(&path, &bytes).unwrap();
                ends_of(&path).unwrap()
            };
            let before = ends(None);
            for place in [0, END_BYTES / 2, END_BYTES, len.saturating_sub(1)] {
                if place < len && (place < END_BYTES || place + END_BYTES >= len) {
                    assert_ne!(ends(Some(place)), before, "{len} {place}");
                    assert_eq!(ends(Some(place)), before, "{len} {place}");
                }
            }
        }
    }
}
