//! Any bytes -> the verdict on a shard's header, and the cursor that they spell, held against the twin's.
#![no_main]
use safestep_tests::tokens::oracle;
libfuzzer_sys::fuzz_target!(|input: &[u8]| oracle::shard(input));
