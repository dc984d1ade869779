//! A good model file becomes the same tensors and metadata in canonical layout, tensor by tensor, in constant memory.

use std::path::Path;

use safestep_core::{Entry, Limits};

use crate::disk::Disk;
use crate::error::Error;
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
/// A `__metadata__` of null is not written. `progress` is told how many bytes of data of how many are through. Memory: one chunk, whatever the file's size.
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
    let entries: Vec<Entry<'_>> = index.iter().collect();
    let plan: Vec<TensorPlan> = entries
        .iter()
        .map(|entry| TensorPlan {
            name: entry.name().to_string(),
            dtype: entry.dtype(),
            shape: entry.shape().dims().collect(),
        })
        .collect();
    let metadata: Option<Vec<(String, String)>> = index
        .metadata()
        .map(|pairs| pairs.map(|(key, value)| (key.to_string(), value.to_string())).collect());
    let mut writer = ModelWriter::create(disk, output, &plan, metadata.as_deref())?;
    let total = model.frame().data_len().value();
    let (mut done, mut chunk) = (0_u64, vec![0; CHUNK_BYTES]);
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
