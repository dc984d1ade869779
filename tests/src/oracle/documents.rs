//! The documents of a checkpoint, held against naive readers that know nothing of ours: a tree of JSON, then the rules as the
//! format page says them.
//!
//! `serde_json` has to take the text as JSON; where it does and the twin's tree is asked, equal keys are still seen.

use std::collections::BTreeSet;

use safestep_core::checkpoint::{FileRecord, Manifest, ManifestDraft, TrainerState, check_optimizer_state};

use crate::twin::json::{Node, Value, parse};

/// A manifest: ours and the naive reader agree on accept and refuse, and what is accepted is written as the same, twice.
///
/// # Panics
/// When any of this is not so.
pub fn manifest(text: &[u8]) {
    let naive = tree(text).and_then(|root| naive_manifest(&root));
    let own = Manifest::parse(text);
    let Ok(own) = own else {
        assert!(naive.is_none(), "refused: {own:?}");
        return;
    };
    let naive = naive.expect("accepted what the format page refuses");
    let files: Vec<(String, String, u64)> =
        own.files().map(|file| (file.name.to_string(), file.sha256.to_string(), file.size)).collect();
    assert_eq!((own.step(), own.len(), &files), (naive.0, naive.1.len() as u64, &naive.1));
    let records: Vec<FileRecord<'_>> = own
        .files()
        .zip(&files)
        .map(|(file, (name, ..))| FileRecord { name, sha256: file.sha256, size: file.size })
        .collect();
    let mut written = Vec::new();
    let draft = ManifestDraft::of(own.step(), &records).expect("what is read can be written");
    let sunk: Result<(), ()> = draft.write(|piece| {
        written.extend_from_slice(piece);
        Ok(())
    });
    sunk.unwrap();
    let again = Manifest::parse(&written).expect("what is written can be read");
    assert!(again.step() == own.step() && again.files().eq(own.files()));
    assert_eq!(again.compare([]).count(), files.len());
}

/// A trainer state: the same; and the text as the state of an optimizer, which may say anything.
///
/// # Panics
/// When any of this is not so.
pub fn trainer_state(text: &[u8]) {
    let tree = tree(text);
    // An optimizer's state is any JSON.
    assert_eq!(check_optimizer_state(text).is_ok(), tree.is_some());
    let naive = tree.and_then(|root| naive_trainer_state(&root));
    let own = TrainerState::parse(text);
    let Ok(own) = own else {
        assert!(naive.is_none(), "refused: {own:?}");
        return;
    };
    let naive = naive.expect("accepted what the format page refuses");
    assert_eq!(own.lr.map(f64::to_bits), naive.map(f64::to_bits));
    let written = written(&own);
    let again = TrainerState::parse(&written).expect("what is written can be read");
    assert_eq!((again, again.lr.map(f64::to_bits)), (own, own.lr.map(f64::to_bits)));
    assert_eq!(self::written(&again), written);
    // The shortest digits, and the keys in order: what serde_json makes of it.
    let value: serde_json::Value = serde_json::from_slice(&written).unwrap();
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert!(keys.is_sorted());
}

fn written(state: &TrainerState) -> Vec<u8> {
    let mut written = Vec::new();
    let sink = |piece: &[u8]| {
        written.extend_from_slice(piece);
        Ok::<(), ()>(())
    };
    state.write(sink).expect("what is read can be written").unwrap();
    written
}

/// The text as a tree, if it is JSON and nothing else.
fn tree(text: &[u8]) -> Option<Node> {
    let text = std::str::from_utf8(text).ok()?;
    let blanks = [' ', '\t', '\n', '\r'];
    let text = text.trim_matches(blanks);
    let root = parse(text).ok()?;
    // Offsets of the twin count eight bytes that a document does not have.
    let end = usize::try_from(root.end - crate::twin::HEADER_START).ok()?;
    let all = end == text.len();
    // serde_json takes no number beyond f64 and counts nesting as we do: what it takes is what we take, but for the numbers.
    if all {
        let taken = serde_json::from_str::<serde_json::Value>(text);
        assert!(taken.is_ok() || taken.is_err_and(|error| error.to_string().contains("out of range")));
    }
    all.then_some(root)
}

/// The members of an object that has exactly these keys, each once, in this order.
fn members<'n, const N: usize>(node: &'n Node, keys: [&str; N]) -> Option<[&'n Node; N]> {
    if !matches!(node.value, Value::Object(_)) || node.members().len() != N {
        return None;
    }
    let found: BTreeSet<&str> = node.members().iter().map(|member| member.key.as_str()).collect();
    let wanted: BTreeSet<&str> = keys.into();
    let of = |key| node.members().iter().find(|member| member.key == key).map(|member| &member.node);
    (found == wanted).then(|| keys.map(|key| of(key).expect("it was found")))
}

type Listed = Vec<(String, String, u64)>;

fn naive_manifest(root: &Node) -> Option<(u64, Listed)> {
    let [files, step, version] = members(root, ["files", "step", "version"])?;
    let (step, version) = (step.integer()?, version.integer()?);
    let mut listed = Listed::new();
    for file in files.elements()? {
        let [name, sha256, size] = members(file, ["name", "sha256", "size"])?;
        let (name, sha256, size) = (name.text()?, sha256.text()?, size.integer()?);
        let bad_name = ["", ".", "..", "MANIFEST.json"].contains(&name) || name.contains(['/', '\0']);
        let in_order = listed.last().is_none_or(|(last, ..)| last.as_bytes() < name.as_bytes());
        if bad_name || !in_order || !is_hex(sha256, 64) {
            return None;
        }
        listed.push((name.to_owned(), sha256.to_owned(), size));
    }
    (version == 1).then_some((step, listed))
}

/// The learning rate, which is all that is compared by value: the rest is written and read again.
fn naive_trainer_state(root: &Node) -> Option<Option<f64>> {
    let keys = ["config_sha256", "data_cursor", "git_sha", "lr", "rng_state", "step", "tokens_seen"];
    let [config, cursor, git, lr, rng, step, tokens] = members(root, keys)?;
    let null_or = |node: &Node, good: &dyn Fn(&Node) -> bool| matches!(node.value, Value::Null) || good(node);
    let hex = |node: &Node, digits| node.text().is_some_and(|text| is_hex(text, digits));
    let good = null_or(config, &|node| hex(node, 64))
        && null_or(git, &|node| hex(node, 40))
        && null_or(cursor, &|node| {
            members(node, ["offset", "shard"])
                .is_some_and(|both| both.iter().all(|part| part.integer().is_some()))
        })
        && null_or(rng, &|node| {
            members(node, ["inc", "state"]).is_some_and(|[inc, state]| {
                let odd =
                    inc.text().is_some_and(|text| text.ends_with(['1', '3', '5', '7', '9', 'b', 'd', 'f']));
                hex(inc, 16) && hex(state, 16) && odd
            })
        })
        && step.integer().is_some()
        && tokens.integer().is_some();
    let lr = match &lr.value {
        Value::Null => None,
        Value::Number(text) => Some(text.parse::<f64>().ok().filter(|lr| lr.is_finite())?),
        _ => return None,
    };
    good.then_some(lr)
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
