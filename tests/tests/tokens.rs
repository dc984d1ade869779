//! Shards of tokens: what the reference document works out by hand, what its table asks for, and thousands of runs beside the twin.
//!
//! A run that resumes must see the windows that it would have seen, however often it is interrupted and whoever shares it: nothing
//! tells a model apart that was fed one window twice, but the next one that cannot be compared with it.

mod arithmetic;
mod cursors;
mod headers;
mod ids;
mod numpy;
mod packing;
mod prefetch;
mod streams;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use safestep::tokens::{Pcg32, Shards, Share, TokenStream};
use safestep::{Access, Error};
use safestep_tests::tokens::twin::shard_file;

const BOTH: [Access; 2] = [Access::Map, Access::Read];

fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

/// Writes a shard of u16 without a vocabulary.
fn write(directory: &Path, name: &str, ids: impl IntoIterator<Item = u32>) -> PathBuf {
    let path = directory.join(name);
    let ids: Vec<u32> = ids.into_iter().collect();
    std::fs::write(&path, shard_file(20_240_520, 1, 0, &ids)).unwrap();
    path
}

/// A stream for one rank, with the default generator.
fn stream(paths: &[PathBuf], access: Access, seq_len: u32, batch: u32) -> Result<TokenStream, Error> {
    let share = Share::whole(number(batch));
    TokenStream::new(Shards::open(paths, access)?, number(seq_len), share, Pcg32::seed(42, 54), None)
}

/// Every input that a fuzzer was started from or crashed on, once more.
#[test]
fn kept_inputs_of_the_fuzzers() {
    for target in ["shard", "window"] {
        let folder = safestep_tests::cases::fixtures().join("fuzz").join(target);
        let inputs =
            std::fs::read_dir(folder).unwrap().map(|input| std::fs::read(input.unwrap().path()).unwrap());
        let inputs: Vec<Vec<u8>> = inputs.collect();
        assert!(!inputs.is_empty(), "no inputs for {target}");
        for input in inputs {
            safestep_tests::tokens::oracle::shard(&input);
            safestep_tests::tokens::oracle::window(&input);
        }
    }
}
