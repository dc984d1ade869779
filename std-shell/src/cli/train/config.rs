//! What a run is made of becomes a document, and two documents what differs between them.

use std::collections::BTreeSet;

use safestep::tokens::Shards;
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

/// A shard by what can be seen without reading it.
#[derive(Debug, Serialize)]
struct Shard {
    bytes: u64,
    ids: u64,
    name: String,
}

impl Config {
    pub(super) fn of(arguments: &Arguments, shards: &Shards, vocabulary: u32) -> Self {
        let by_gradient = arguments.method == Method::Gradient;
        let lr = arguments.lr.unwrap_or_else(|| arguments.optimizer.usual_lr());
        let shards = shards.list().iter().map(|shard| {
            let facts = shard.facts();
            Shard { bytes: facts.bytes, ids: facts.ids, name: facts.name }
        });
        Self {
            batch: arguments.batch.get(),
            lr: by_gradient.then_some(lr),
            method: if by_gradient { "gradient" } else { "counts" },
            model: "bigram",
            optimizer: by_gradient.then(|| arguments.optimizer.name()),
            seed: arguments.seed,
            seq_len: arguments.seq_len.get(),
            shards: shards.collect(),
            vocabulary,
        }
    }

    /// The text of `config.json`: compact, keys sorted, as the fields stand here.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The digest of a config's text.
pub(super) fn sha256(text: &str) -> Digest {
    Sha256::of(text.as_bytes())
}

/// What differs between the config of a checkpoint and ours, in words; `None` if nothing does.
pub(super) fn difference(saved: &[u8], ours: &str) -> Option<String> {
    if saved == ours.as_bytes() {
        return None;
    }
    let (Ok(Value::Object(saved)), Ok(Value::Object(ours))) =
        (serde_json::from_slice(saved), serde_json::from_str(ours))
    else {
        return Some("its config.json is not one of ours".into());
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
            ("[]", r#"{"a":1}"#, Some("its config.json is not one of ours")),
        ];
        for (saved, ours, expected) in table {
            assert_eq!(difference(saved.as_bytes(), ours).as_deref(), expected);
        }
    }
}
