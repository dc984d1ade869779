//! Any bytes -> the manifest of a checkpoint, held against a naive reader's, written and read again.
#![no_main]
use safestep_tests::oracle::documents;
libfuzzer_sys::fuzz_target!(|input: &[u8]| documents::manifest(input));
