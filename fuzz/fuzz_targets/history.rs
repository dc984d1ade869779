//! Any bytes -> lines of a loss history and what is canonical, held against the twin's.
#![no_main]
use safestep_tests::oracle;
libfuzzer_sys::fuzz_target!(|input: &[u8]| oracle::run::history(input));
