//! A path becomes a judged model file; tensors become a model file; parts of tensors become numbers, and those statistics;
//! a model file becomes the same in other dtypes, or in canonical layout.

pub mod file;

pub mod write;

pub mod values;

pub mod stats;

pub mod convert;

pub mod rewrite;

pub use convert::{Converted, ConvertedPair, FLOATS, convert};
pub use file::{Access, Model};
pub use rewrite::{Rewritten, rewrite};
pub use stats::{Counts, Extent, Histogram, Spread, Stats};
pub use values::{Block, ValueReader};
pub use write::{ModelWriter, TensorPlan, Values};
