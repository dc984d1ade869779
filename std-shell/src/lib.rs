//! Paths become judged model files, and model files become durable: maps, commits, and the program `safestep`.
//!
//! The judging itself is done by [`safestep_core`], which is re-exported. Data flows one way; the modules stand in its order,
//! and each uses only those before it:
//!
//! path -> disk -> bytes by pread or map -> judged model -> numbers, statistics -> streamed out through one commit path;
//! path -> judged shards -> windows -> batches -> cursor -> the same run, later;
//! run directory -> snapshots, history, state -> a trainer that is killed and goes on
//!
//! For Unix only: nothing else has the calls that a durable commit is made of, and nothing else is tested.
//!
//! No function here panics on any input. `unsafe` lives in [`mapped`] and [`kernels`] and nowhere else.
#![deny(unsafe_code)]

#[cfg(not(unix))]
compile_error!("safestep is for Unix only; safestep-core is for every target");

mod memory;

pub mod error;

pub mod disk;

pub mod read_at;

pub mod mapped;

pub mod kernels;

pub mod commit;

pub mod model;

pub mod checkpoint;

pub mod tokens;

pub mod run;

pub mod guide;

pub use commit::Commit;
pub use disk::{Disk, OsDisk};
pub use error::{
    BadArrays, BadFile, BadNumber, BadShard, Blame, Cause, Error, FileKind, Misfit, Refusal, ends,
    terminal_safe,
};
pub use mapped::Mapped;
pub use model::{
    Access, Converted, ConvertedPair, FLOATS, Model, ModelWriter, Rewritten, TensorPlan, Values, convert,
    rewrite,
};
pub use model::{Block, Counts, Extent, Histogram, Spread, Stats, ValueReader};
pub use read_at::{FileReader, ReadAt};
pub use safestep_core;

/// The example of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
