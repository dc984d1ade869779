//! Thousands of small random files, most of them good or nearly good, through every oracle.
//!
//! The fuzzers look further; this is what every `cargo test` sees, the same files each time.

use std::collections::BTreeMap;

use safestep_tests::headers::mutate::random_file;
use safestep_tests::{oracle, twin};

/// How many seeds each oracle sees.
const SEEDS: u64 = 20_000;

#[test]
fn random_files_have_one_verdict() {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..SEEDS {
        let (bytes, file_len) = random_file(seed);
        oracle::header(&bytes, file_len);
        let verdict = twin::judge(&bytes, file_len, &twin::Options::default());
        *counts.entry(verdict.map_or_else(|found| found.rule, |_| "good")).or_default() += 1;
    }
    println!("{SEEDS} files: {counts:?}");
    assert_eq!(counts.len(), 1 + twin::RULES.len());
}

#[test]
fn random_files_answer_every_question_alike() {
    for seed in SEEDS..SEEDS + SEEDS / 4 {
        let (bytes, file_len) = random_file(seed);
        oracle::index(&bytes, file_len);
    }
}

#[test]
fn random_files_are_rewritten_as_the_reference_writes_them() {
    for seed in 2 * SEEDS..2 * SEEDS + SEEDS / 4 {
        let (bytes, file_len) = random_file(seed);
        oracle::rewrite(&bytes, file_len);
    }
}
