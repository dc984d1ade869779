//! Any bytes -> shards and a run over them with interruptions and ranks, held against the twin's.
#![no_main]
use safestep_tests::tokens::oracle;
libfuzzer_sys::fuzz_target!(|input: &[u8]| oracle::window(input));
