//! Judges, reads and lays out safetensors bytes that somebody else holds: no heap, no I/O, no panic, no `unsafe`.
//!
//! Data flows one way; the modules stand in its order, and each uses only those before it:
//!
//! bytes -> frame -> header entries -> proven index -> tensor views -> numbers;
//! step directory -> manifest -> digests: the documents of a [`checkpoint`];
//! shard -> windows -> batches -> cursor -> the same run, later: [`tokens`];
//! a run's files -> [`snapshot`], [`history`], [`state`] -> the same run, later
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::integer_division,
        clippy::panic,
        clippy::unwrap_used
    )
)]

pub mod limits;

mod span;
mod heap;
mod json;
mod dtype;
mod rule;
mod error;
pub mod numbers;
mod tensor;
pub mod snapshot;
pub mod history;
pub mod state;
pub mod cadence;
mod sniff;
pub mod checkpoint;
pub mod tokens;
#[cfg(feature = "defmt")]
mod defmt;

pub use dtype::{Dtype, DtypeSet};
pub use error::{Blame, Error, ErrorKind, Field};
pub use json::{Expected, JsonStr, Kind};
pub use rule::Rule;
pub use sniff::{Seems, sniff};
pub use span::{ByteLen, Offset, Span};
pub use tensor::entry::{Entry, Shape};
pub use tensor::frame::{Frame, Limits, PREFIX_BYTES};
pub use tensor::header::Header;
pub use tensor::in_order::Judged;
pub use tensor::index::{Index, Metadata, Proof};
pub use tensor::layout::{Layout, LayoutError, TensorSpec};
pub use tensor::notes::{Note, NoteKind, Notes};
pub use tensor::slice::{Axis, Pick, Run, Slice, SliceError};
pub use tensor::slot::Slot;
pub use tensor::view::{Element, TensorView, ViewError};
