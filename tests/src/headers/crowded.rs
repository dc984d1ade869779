//! Turns a length into headers whose names and offsets are chosen against the core's tables, so that its ways around them
//! have to be taken.
//!
//! The core's fingerprint and buckets are copied here, on purpose: who changes them there should see here what becomes
//! of an attacker's headers. If the copy is out of date the headers are still good ones, only no longer hostile.

use std::collections::HashMap;

use super::Sample;
use super::hostile::Make;
use super::random::Random;

/// Every kind, with its name.
pub const KINDS: [(&str, Make); 10] = [
    ("crowded: one bucket", one_bucket),
    ("crowded: long chains", long_chains),
    ("crowded: one fingerprint", one_fingerprint),
    ("crowded: one fingerprint, equal for 96 bytes", one_fingerprint_equal_prefix),
    ("crowded: fingerprints by twenties, equal for 96", fingerprints_by_twenties),
    ("crowded: one bucket, equal for 100 in groups", groups),
    ("crowded: one bucket, a branch every 8 bytes", branches),
    ("crowded: one bucket, a staircase", staircase),
    ("crowded: one bucket, all escapes", escapes),
    ("crowded: names and offsets", names_and_offsets),
];

/// The core's fingerprint of a name without escapes.
#[must_use]
pub fn fingerprint(name: &[u8]) -> u32 {
    let (pairs, tail) = name.as_chunks::<16>();
    let hash = pairs.iter().fold(0, |hash, pair| mix(hash, halves(*pair)));
    let last = match name.last_chunk::<16>() {
        Some(last) => *last,
        None => {
            let mut last = [0; 16];
            last[16 - tail.len()..].copy_from_slice(tail);
            last
        }
    };
    let hash = mix(hash, halves(last)) ^ name.len() as u64;
    (hash.wrapping_mul(FACTOR) >> 32) as u32
}

fn halves(pair: [u8; 16]) -> [u64; 2] {
    let pair = u128::from_le_bytes(pair);
    [pair as u64, (pair >> 64) as u64]
}

/// What a block does to the hash: equal blends, equal hashes.
fn blend([low, high]: [u64; 2]) -> u64 {
    low ^ high.wrapping_mul(0xD6E8_FEB8_6659_FD93).rotate_left(32)
}

fn mix(hash: u64, block: [u64; 2]) -> u64 {
    let product = (hash ^ blend(block)).wrapping_mul(FACTOR);
    product ^ product >> 32
}

const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// The bucket of a name.
#[must_use]
pub fn bucket_of_name(name: &[u8], buckets: usize) -> usize {
    bucket(u64::from(fingerprint(name)), buckets)
}

/// The bucket of an offset.
#[must_use]
pub fn bucket_of_offset(offset: u64, buckets: usize) -> usize {
    bucket(offset.wrapping_mul(FACTOR) >> 32, buckets)
}

fn bucket(spread: u64, buckets: usize) -> usize {
    usize::try_from((spread * buckets as u64) >> 32).expect("a 64-bit machine")
}

/// More than the core lets stand in one bucket.
const CROWD: usize = 40;

/// Below the longest chain that the core lets stand, so that long chains are walked to their ends.
const CHAIN: usize = 20;

/// An entry of a tensor of bytes.
fn entry(name: &str, begin: u64, size: u64) -> String {
    let end = begin + size;
    format!(r#""{name}":{{"dtype":"U8","shape":[{size}],"data_offsets":[{begin},{end}]}}"#)
}

/// Tensors of these sizes, the header shuffled against the data.
fn tensors(kind: &str, names: &[String], size: impl Fn(usize, u64) -> u64) -> Sample {
    let mut end = 0;
    let entries = names.iter().enumerate().map(|(place, name)| {
        let (begin, size) = (end, size(place, end));
        end += size;
        entry(name, begin, size)
    });
    let mut entries: Vec<String> = entries.collect();
    Random::new(11).shuffle(&mut entries);
    let mut text = format!("{{{}}}", entries.join(","));
    text.push_str(&" ".repeat(text.len().next_multiple_of(8) - text.len()));
    Sample::new(kind, text, end, None)
}

/// How many names of `len` bytes fit into the length, with their entries.
fn count(header_len: usize, len: usize) -> usize {
    let entry = entry("", 100_000, 1).len() + 1 + len;
    (header_len / entry).max(2 * CROWD)
}

/// So many names; some of them, spelled by `spell` from numbers as high as it takes, fall into one bucket.
fn with_crowd(count: usize, spell: impl Fn(u64) -> String) -> Vec<String> {
    let crowd_from = 1 << 24;
    let bucket = bucket_of_name(spell(crowd_from).as_bytes(), count);
    let crowd = (crowd_from..).map(&spell).filter(|name| bucket_of_name(name.as_bytes(), count) == bucket);
    let mut names: Vec<String> = crowd.take(CROWD).collect();
    names.extend((0..(count - CROWD) as u64).map(&spell));
    names
}

fn plain(number: u64) -> String {
    format!("t{number:07}")
}

fn one_byte(_: usize, _: u64) -> u64 {
    1
}

fn one_bucket(header_len: usize) -> Sample {
    let names = with_crowd(count(header_len, 9), plain);
    tensors("crowded: one bucket", &names, one_byte)
}

/// Names in every sixteenth bucket, up to [`CHAIN`] in each.
fn chained(count: usize, spell: impl Fn(u64) -> String) -> Vec<String> {
    let mut chains = vec![0; count];
    let mut may_stay = |name: &String| {
        let bucket = bucket_of_name(name.as_bytes(), count);
        let stays = bucket.is_multiple_of(16) && chains[bucket] < CHAIN;
        chains[bucket] += usize::from(stays);
        stays
    };
    (0..).map(spell).filter(&mut may_stay).take(count).collect()
}

fn long_chains(header_len: usize) -> Sample {
    let names = chained(count(header_len, 9), plain);
    tensors("crowded: long chains", &names, one_byte)
}

/// Blocks of sixteen printable characters that blend to the same; another `seed`, another set.
pub fn equal_blocks(seed: u64) -> impl Iterator<Item = String> {
    let mut random = Random::new(seed);
    let wanted = blend([random.bits(), random.bits()]);
    std::iter::from_fn(move || {
        loop {
            // Eight letters at will, one of sixteen each; the other eight bytes follow, and with luck are characters.
            let bits = random.bits();
            let high = std::array::from_fn(|place| b'a' + (bits >> (8 * place) & 0xF) as u8);
            let high = u64::from_le_bytes(high);
            let low = wanted ^ blend([0, high]);
            let block = [low.to_le_bytes(), high.to_le_bytes()].concat();
            if block.iter().all(|byte| matches!(byte, b' '..=b'~' if !br#""\"#.contains(byte))) {
                return String::from_utf8(block).ok();
            }
        }
    })
}

/// The next `count` names that are not there yet.
fn distinct(names: impl Iterator<Item = String>, count: usize) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    names.filter(|name| seen.insert(name.clone())).take(count).collect()
}

fn one_fingerprint(header_len: usize) -> Sample {
    let names = distinct(equal_blocks(1), count(header_len, 16));
    tensors("crowded: one fingerprint", &names, one_byte)
}

fn one_fingerprint_equal_prefix(header_len: usize) -> Sample {
    let prefix = "model.layer.0000".repeat(6);
    let names = equal_blocks(2).map(|block| format!("{prefix}{block}"));
    let names = distinct(names, count(header_len, 112));
    tensors("crowded: one fingerprint, equal for 96 bytes", &names, one_byte)
}

/// Few enough names of each fingerprint that no bucket is crowded.
fn fingerprints_by_twenties(header_len: usize) -> Sample {
    let count = count(header_len, 112);
    let groups = count.div_ceil(CHAIN);
    let blocks = distinct(equal_blocks(3), CHAIN);
    // Another prefix of the same length gives another fingerprint for the same blocks.
    let names = (0..groups).flat_map(|group| {
        let prefix = format!("{}{group:016}", "model.layer.0000".repeat(5));
        blocks.iter().map(move |block| format!("{prefix}{block}"))
    });
    let names: Vec<String> = names.take(count).collect();
    tensors("crowded: fingerprints by twenties, equal for 96", &names, one_byte)
}

/// Names with hundred equal bytes in each of 64 groups.
fn groups(header_len: usize) -> Sample {
    let spell = |number: u64| format!("{:02}{}{:07}", number % 64, "x".repeat(100), number / 64);
    let names = with_crowd(count(header_len, 109), spell);
    tensors("crowded: one bucket, equal for 100 in groups", &names, one_byte)
}

/// Names that part two ways after each eight bytes.
fn branches(header_len: usize) -> Sample {
    let spell = |number: u64| (0..25).rev().map(|bit| format!("layers.{}", number >> bit & 1)).collect();
    let names = with_crowd(count(header_len, 200), spell);
    tensors("crowded: one bucket, a branch every 8 bytes", &names, one_byte)
}

/// Each name is one byte longer than another.
fn staircase(header_len: usize) -> Sample {
    let mut steps = CROWD;
    while steps * steps / 2 + steps * 60 < header_len {
        steps += 1;
    }
    let count = steps + CROWD;
    let mut names = with_crowd(count, plain);
    names.truncate(CROWD);
    names.extend((0..steps).map(|step| "s".repeat(step)));
    tensors("crowded: one bucket, a staircase", &names, one_byte)
}

fn escapes(header_len: usize) -> Sample {
    let names = with_crowd(count(header_len, 8 * 6), plain);
    let escape = |name: &String| name.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let names: Vec<String> = names.iter().map(escape).collect();
    tensors("crowded: one bucket, all escapes", &names, one_byte)
}

/// Long chains for the names and for the offsets, with one crowd among the names.
fn names_and_offsets(header_len: usize) -> Sample {
    let count = count(header_len, 20);
    let mut names = chained(count - CROWD, plain);
    let crowd = with_crowd(count, |number| format!("c{number}"));
    names.extend(crowd.into_iter().take(CROWD));
    let chains = std::cell::RefCell::new(HashMap::new());
    let size = |_, begin: u64| {
        let mut chains = chains.borrow_mut();
        let may_stay = |size: &u64| {
            let bucket = bucket_of_offset(begin + size, count);
            let chain: &mut usize = chains.entry(bucket).or_default();
            let stays = bucket.is_multiple_of(16) && *chain < CHAIN;
            *chain += usize::from(stays);
            stays
        };
        (1..).find(may_stay).expect("an offset in such a bucket")
    };
    tensors("crowded: names and offsets", &names, size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{reference, twin};

    #[test]
    fn crowded_headers_are_good_and_have_their_length() {
        for header_len in [0, 20_000, 300_000] {
            for (name, make) in KINDS {
                let sample = make(header_len);
                assert_eq!(sample.name, name);
                let verdict = twin::judge(&sample.header, sample.file_len(), &twin::Options::default());
                reference::check(&sample.header, sample.file_len(), &verdict);
                assert!(verdict.is_ok(), "{name}: {verdict:?}");
                let len = sample.header.len();
                let about = header_len * 7 / 10..header_len * 12 / 10 + 30_000;
                assert!(about.contains(&len), "{name}: {len} for {header_len}");
            }
        }
    }

    #[test]
    fn equal_blocks_have_one_fingerprint() {
        let names: Vec<String> = equal_blocks(5).take(50).collect();
        let first = fingerprint(names[0].as_bytes());
        assert!(names.iter().all(|name| name.len() == 16 && fingerprint(name.as_bytes()) == first));
    }
}
