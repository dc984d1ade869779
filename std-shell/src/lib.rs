//! Paths become judged model files, and model files become durable: maps, commits, and the program `safestep`.
//!
//! The judging itself is done by [`safestep_core`], which is re-exported. Data flows one way; the modules stand in its order,
//! and each uses only those before it:
//!
//! path -> disk -> bytes by pread or map -> judged model -> streamed out through one commit path
//! path -> judged shards -> windows -> batches -> cursor -> the same run, later
//!
//! No function here panics on any input. `unsafe` lives in [`mapped`] and nowhere else.
#![deny(unsafe_code)]

pub mod error;

pub mod disk;

pub mod read_at;

pub mod mapped;

pub mod commit;

pub mod model;

pub mod tokens;

pub use commit::Commit;
pub use disk::Disk;
#[cfg(unix)]
pub use disk::OsDisk;
pub use error::{BadFile, BadShard, Blame, Cause, Error, FileKind, Misfit, terminal_safe};
pub use mapped::Mapped;
pub use model::{Access, Model, ModelWriter, Rewritten, TensorPlan, rewrite};
pub use read_at::{FileReader, ReadAt};
pub use safestep_core;

/// The example of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
