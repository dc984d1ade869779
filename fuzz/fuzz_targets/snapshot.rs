//! Any bytes -> head and regions of a snapshot, held against the twin's.
#![no_main]
use safestep_tests::oracle;
libfuzzer_sys::fuzz_target!(|input: &[u8]| oracle::run::snapshot(input));
