//! Turns a seed into a small safetensors file that is good, or has one to three faults.
//!
//! A file grows in four stages, each of which may damage it in the ways that only that stage knows: a plan (names, dtypes,
//! shapes, offsets), a tree of JSON (fields, forms, spellings), the header's bytes, and the frame around them. So most faults
//! stand in a file that is good in every other way, which random bytes never are.

mod bytes;
mod plan;
mod tree;

use super::random::Random;
use plan::Plan;

/// A file from a seed: its front, and its length. The front is the whole file, unless the data is longer than
/// [`DATA_BYTES_MAX`]: then it is the header alone.
#[must_use]
pub fn random_file(seed: u64) -> (Vec<u8>, u64) {
    let file = File::grow(seed);
    (file.bytes, file.len)
}

/// No data longer than this is made up.
pub const DATA_BYTES_MAX: u64 = 1 << 16;

/// How often a file has faults.
const FAULTY_PERCENT: usize = 60;

struct File {
    bytes: Vec<u8>,
    len: u64,
    #[cfg(test)]
    faults: usize,
}

/// How many faults each stage puts in.
#[derive(Default)]
struct Faults {
    plan: usize,
    tree: usize,
    text: usize,
    frame: usize,
}

impl Faults {
    fn draw(random: &mut Random) -> Self {
        let mut faults = Self::default();
        if random.chance(FAULTY_PERCENT) {
            for _ in 0..=random.pick(&[0, 0, 0, 1, 1, 2]) {
                match random.below(100) {
                    0..32 => faults.plan += 1,
                    32..74 => faults.tree += 1,
                    74..92 => faults.text += 1,
                    _ => faults.frame += 1,
                }
            }
        }
        faults
    }
}

impl File {
    fn grow(seed: u64) -> Self {
        let random = &mut Random::new(seed);
        let faults = Faults::draw(random);
        let mut plan = Plan::draw(random);
        for _ in 0..faults.plan {
            random.pick(plan::FAULTS)(random, &mut plan);
        }
        let mut tree = tree::Json::of_plan(random, &plan);
        for _ in 0..faults.tree {
            random.pick(tree::FAULTS)(random, &mut tree);
        }
        let mut header = tree.render(random);
        bytes::pad(random, &mut header);
        for _ in 0..faults.text {
            random.pick(bytes::TEXT_FAULTS)(random, &mut header);
        }
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header);
        let mut len = bytes.len() as u64 + plan.data_len;
        if plan.data_len <= DATA_BYTES_MAX {
            bytes.resize(usize::try_from(len).expect("a short file"), 0);
            for _ in 0..faults.frame {
                random.pick(bytes::FRAME_FAULTS)(random, &mut bytes);
            }
            len = bytes.len() as u64;
        }
        Self {
            bytes,
            len,
            #[cfg(test)]
            faults: faults.plan + faults.tree + faults.text + faults.frame,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{reference, twin};

    const SEEDS: u64 = 20_000;

    /// Judges every file by the twin and the reference, asserts their agreement, and counts rules, notes and dtypes.
    fn histogram() -> BTreeMap<String, u64> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for seed in 0..SEEDS {
            let file = File::grow(seed);
            let verdict = twin::judge(&file.bytes, file.len, &twin::Options::default());
            reference::check(&file.bytes, file.len, &verdict);
            let mut count = |key: &str| *counts.entry(key.to_owned()).or_default() += 1;
            match verdict {
                Ok(model) => {
                    count("good");
                    model.notes.iter().for_each(|note| count(note.id));
                    model.tensors.iter().for_each(|tensor| count(&tensor.dtype));
                    if model.data_len > DATA_BYTES_MAX {
                        count("long");
                    }
                }
                Err(found) => {
                    assert!(file.faults > 0, "seed {seed} has no fault, but {found:?}");
                    count(found.rule);
                    if reference::accepts_prefix(&file.bytes, file.len).is_ok() {
                        count(&format!("{} on purpose", found.rule));
                    }
                }
            }
        }
        counts
    }

    #[test]
    fn every_rule_note_and_dtype_is_reached() {
        let counts = histogram();
        let dtypes = twin::dtypes::DTYPES.map(|(name, _)| name);
        let purposes =
            ["R2.start", "R2.duplicate", "R4.field", "R4.dtype"].map(|rule| format!("{rule} on purpose"));
        let wanted = twin::RULES.into_iter().chain(twin::NOTES).chain(dtypes).chain(["long"]);
        for id in wanted.chain(purposes.iter().map(String::as_str)) {
            let count = counts.get(id).copied().unwrap_or(0);
            assert!(count >= 20, "{id}: {count} of {SEEDS}; all: {counts:#?}");
        }
        let good = counts["good"];
        assert!((SEEDS * 4 / 10..SEEDS * 7 / 10).contains(&good), "{good} good of {SEEDS}");
    }

    #[test]
    fn a_seed_gives_one_file() {
        assert_eq!(random_file(7), random_file(7));
        assert_ne!(random_file(7), random_file(8));
    }
}
