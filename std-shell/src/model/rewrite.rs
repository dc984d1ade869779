//! A good model file becomes the same tensors and metadata in canonical layout, tensor by tensor.
//!
//! Memory does not grow with the data: it takes one chunk, and a small multiple of the header.

use std::path::Path;

use safestep_core::Limits;
use safestep_core::numbers::OutOfRange;

use crate::disk::Disk;
use crate::error::Error;
use crate::model::convert::convert;
use crate::model::file::{Access, Model};

/// What a rewrite did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// The tensors written.
    pub tensors: usize,
    /// The length of the new file in bytes.
    pub file_bytes: u64,
    /// The bytes of tensor data in it.
    pub data_bytes: u64,
}

/// Writes the tensors and the metadata of `input` to `output`, in canonical layout. They may be the same file.
///
/// A `__metadata__` of null is not written. `progress` is told how many bytes of data of how many are through.
///
/// Memory: one chunk, and for the plan a small multiple of the header; it does not grow with the data.
///
/// # Errors
/// As [`Model::open`] for `input`, as [`ModelWriter`](crate::ModelWriter) for `output`, which is then as it was.
pub fn rewrite<D: Disk>(
    disk: &D,
    input: &Path,
    output: &Path,
    limits: Limits,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Rewritten, Error> {
    let model = Model::open(input, Access::Read, limits)?;
    let done = convert(disk, &model, output, &|entry| entry.dtype(), OutOfRange::Refuse, progress)?;
    let data_bytes = model.frame().data_len().value();
    Ok(Rewritten { tensors: model.index().len(), file_bytes: done.bytes_after, data_bytes })
}
