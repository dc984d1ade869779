//! A good model file becomes the same tensors and metadata in canonical layout, tensor by tensor.
//!
//! Memory does not grow with the data: it takes one chunk, and a small multiple of the header.

use std::io;
use std::path::Path;

use safestep_core::{Entry, Index, JsonStr, Limits};

use crate::disk::Disk;
use crate::error::Error;
use crate::memory;
use crate::model::file::{Access, Model};
use crate::model::write::{ModelWriter, TensorPlan};

/// How much is copied at once.
const CHUNK_BYTES: usize = 1 << 20;

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
/// As [`Model::open`] for `input`, as [`ModelWriter`] for `output`, which is then as it was.
pub fn rewrite<D: Disk>(
    disk: &D,
    input: &Path,
    output: &Path,
    limits: Limits,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Rewritten, Error> {
    let model = Model::open(input, Access::Read, limits)?;
    let index = model.index();
    let (entries, plan, metadata) = plan(&index).map_err(|error| Error::io("rewrite", input, error))?;
    let mut writer = ModelWriter::create(disk, output, &plan, metadata.as_deref())?;
    let total = model.frame().data_len().value();
    let mut chunk = memory::filled(0, CHUNK_BYTES).map_err(|error| Error::io("rewrite", input, error))?;
    let mut done = 0_u64;
    progress(done, total);
    while let Some(entry) = writer.next_tensor().and_then(|place| entries.get(place)) {
        let len = entry.span().len().value();
        let mut offset = 0_u64;
        while offset < len {
            let step = len.saturating_sub(offset).min(CHUNK_BYTES as u64);
            let piece = chunk.get_mut(..usize::try_from(step).unwrap_or_default()).unwrap_or_default();
            model.read_into(entry, offset, piece)?;
            writer.write(piece)?;
            offset = offset.saturating_add(step);
            done = done.saturating_add(step);
            progress(done, total);
        }
    }
    let file_bytes = writer.file_len_bytes();
    writer.finish()?;
    Ok(Rewritten { tensors: entries.len(), file_bytes, data_bytes: total })
}

/// What is to be written: the tensors where they are, and what they will be; and the metadata.
type Plan<'m> = (Vec<Entry<'m>>, Vec<TensorPlan>, Option<Vec<(String, String)>>);

fn plan<'m>(index: &Index<'m, '_>) -> io::Result<Plan<'m>> {
    let text = |spelled: JsonStr<'m>| memory::text(&spelled, spelled.as_spelled().len());
    let entries = memory::gathered(index.iter().map(Ok), index.len())?;
    let tensors = entries.iter().map(|entry| {
        let (rank, dims) = (usize::try_from(entry.shape().rank()), entry.shape().dims());
        let shape = memory::gathered(dims.map(Ok), rank.unwrap_or(usize::MAX))?;
        Ok(TensorPlan { name: text(entry.name())?, dtype: entry.dtype(), shape })
    });
    let tensors = memory::gathered(tensors, entries.len())?;
    let Some(pairs) = index.metadata() else { return Ok((entries, tensors, None)) };
    let count = pairs.clone().count();
    let metadata = pairs.map(|(key, value)| Ok((text(key)?, text(value)?)));
    Ok((entries, tensors, Some(memory::gathered(metadata, count)?)))
}
