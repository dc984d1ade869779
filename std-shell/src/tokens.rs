//! Shards of token ids become batches, and a cursor from which they go on bit for bit; ids become shards.
//!
//! The arithmetic is that of [`safestep_core::tokens`], which is re-exported; here the bytes come in and go out.

pub mod shards;

pub mod scan;

pub mod stream;

pub mod prefetch;

pub mod pack;

pub use pack::{IdSource, Packed, Packing, pack};
pub use prefetch::Prefetch;
pub use safestep_core::tokens::*;
pub use shards::{Shard, Shards};
pub use stream::{Batch, Bookmark, TokenStream};
