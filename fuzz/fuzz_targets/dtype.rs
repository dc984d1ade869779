//! Any bytes -> elements of every dtype and f32 and f64 values, decoded and encoded, held against the twin's.
#![no_main]
use safestep_tests::oracle;
libfuzzer_sys::fuzz_target!(|input: &[u8]| oracle::dtype(input));
