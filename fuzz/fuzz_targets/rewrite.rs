//! Any bytes -> the canonical file, held against the reference writer's.
#![no_main]
use safestep_tests::oracle;
libfuzzer_sys::fuzz_target!(|input: &[u8]| oracle::over_recipe(oracle::rewrite, input));
