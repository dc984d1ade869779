//! Any bytes -> limits, slots, names, shapes, views and slices, held against the twin's.
#![no_main]
use safestep_tests::oracle;
libfuzzer_sys::fuzz_target!(|input: &[u8]| oracle::over_recipe(oracle::index, input));
