//! Any bytes -> the verdict of every reader, held against the twin's and the reference's.
#![no_main]
use safestep_tests::oracle;
libfuzzer_sys::fuzz_target!(|input: &[u8]| oracle::over_recipe(oracle::header, input));
