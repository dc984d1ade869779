//! Names, dtypes and shapes, then bytes in pieces of any size, become a model file in canonical layout.
//!
//! The layout is planned first; the data streams through, so memory does not grow with the file. The file appears under
//! its name whole and durable, or not at all.

use std::path::Path;

use safestep_core::{Dtype, Layout, TensorSpec};

use crate::commit::Commit;
use crate::disk::Disk;
use crate::error::{Cause, Error};

/// A tensor that will be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorPlan {
    /// Its name.
    pub name: String,
    /// What its elements are.
    pub dtype: Dtype,
    /// Its dimensions, outermost first.
    pub shape: Vec<u64>,
}

/// A model file in the making. Dropped before [`finish`](Self::finish), it leaves nothing behind.
///
/// ```
/// use safestep::{ModelWriter, OsDisk, TensorPlan};
/// use safestep_core::Dtype;
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("model.safetensors");
/// let plan = [
///     TensorPlan { name: "step".into(), dtype: Dtype::I64, shape: vec![] },
///     TensorPlan { name: "codes".into(), dtype: Dtype::U8, shape: vec![4] },
/// ];
/// let metadata = [("format".to_string(), "pt".to_string())];
/// let mut writer = ModelWriter::create(&OsDisk, &path, &plan, Some(&metadata))?;
/// while let Some(tensor) = writer.next_tensor() {
///     match plan[tensor].name.as_str() {
///         "step" => writer.write(&7_i64.to_le_bytes())?,
///         _ => writer.write(&[1, 2, 3, 4])?,
///     }
/// }
/// writer.finish()?;
/// assert_eq!(std::fs::metadata(&path)?.len() % 8, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ModelWriter<'d, D: Disk> {
    commit: Commit<'d, D>,
    /// The tensors that are not complete yet, the next one last.
    rest: Vec<Pending>,
    file_bytes: u64,
    names: Vec<String>,
}

struct Pending {
    /// Its place in the caller's list.
    plan: usize,
    /// The bytes that are still to come.
    missing: u64,
    len: u64,
}

impl<'d, D: Disk> ModelWriter<'d, D> {
    /// Plans the layout, begins the file beside `path`, makes room for it and writes its header.
    ///
    /// `metadata` of `Some` with no pairs is written as an empty object.
    ///
    /// # Errors
    /// [`Cause::Refused`] with the rule W5 before anything is written; otherwise as [`Commit::begin`],
    /// [`Commit::allocate`] and [`Commit::write`].
    pub fn create(
        disk: &'d D,
        path: impl AsRef<Path>,
        tensors: &[TensorPlan],
        metadata: Option<&[(String, String)]>,
    ) -> Result<Self, Error> {
        let path = path.as_ref();
        let mut specs: Vec<TensorSpec<'_>> =
            tensors.iter().map(|plan| TensorSpec::new(&plan.name, plan.dtype, &plan.shape)).collect();
        let mut pairs: Option<Vec<(&str, &str)>> =
            metadata.map(|pairs| pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect());
        let layout = Layout::plan(&mut specs, pairs.as_deref_mut())
            .map_err(|error| Error::new("write", path, Cause::Refused(error.to_string())))?;
        let mut commit = Commit::begin(disk, path)?;
        commit.allocate(layout.file_len().value())?;
        layout.write_header(|piece| commit.write(piece))?;
        let (rest, file_bytes) = (pending(tensors, &layout), layout.file_len().value());
        let names = tensors.iter().map(|plan| plan.name.clone()).collect();
        let mut writer = Self { commit, rest, file_bytes, names };
        writer.skip_complete();
        Ok(writer)
    }

    /// The place in the caller's list of the tensor whose bytes come next; `None` when all are written.
    ///
    /// The order is that of the layout: dtype, then name.
    pub fn next_tensor(&self) -> Option<usize> {
        self.rest.last().map(|pending| pending.plan)
    }

    /// Writes the next bytes of the data: little-endian, row-major, in pieces of any size, across tensors if you like.
    ///
    /// # Errors
    /// [`Cause::Refused`] for more bytes than the tensors have; otherwise as [`Commit::write`].
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let Some(next) = self.rest.last_mut() else {
                let reason =
                    format!("W5: expected no more data, found {} bytes behind the last tensor", bytes.len());
                return Err(self.refuse(reason));
            };
            let taken = usize::try_from(next.missing).unwrap_or(usize::MAX).min(bytes.len());
            let (piece, tail) = bytes.split_at_checked(taken).unwrap_or((bytes, &[]));
            self.commit.write(piece)?;
            next.missing = next.missing.saturating_sub(u64::try_from(taken).unwrap_or_default());
            bytes = tail;
            self.skip_complete();
        }
        Ok(())
    }

    /// Makes the file durable and gives it its name.
    ///
    /// # Errors
    /// [`Cause::Refused`] if a tensor lacks bytes; otherwise as [`Commit::finish`]. The old file is then as it was.
    pub fn finish(self) -> Result<(), Error> {
        if let Some(next) = self.rest.last() {
            let name = self.names.get(next.plan).map_or("", String::as_str);
            let found = next.len.saturating_sub(next.missing);
            let reason = format!("W5: expected {} bytes for {name:?}, found {found}", next.len);
            return Err(self.refuse(reason));
        }
        self.commit.finish()
    }

    /// The length that the whole file will have, in bytes.
    pub fn file_len_bytes(&self) -> u64 {
        self.file_bytes
    }

    fn skip_complete(&mut self) {
        while self.rest.last().is_some_and(|pending| pending.missing == 0) {
            self.rest.pop();
        }
    }

    fn refuse(&self, reason: String) -> Error {
        Error::new("write", self.commit.target(), Cause::Refused(reason))
    }
}

/// The tensors in the order of the layout, the first one last.
fn pending(tensors: &[TensorPlan], layout: &Layout<'_, '_>) -> Vec<Pending> {
    let places: std::collections::HashMap<&str, usize> =
        tensors.iter().enumerate().map(|(place, plan)| (plan.name.as_str(), place)).collect();
    let planned = layout.tensors().iter().rev();
    planned
        .map(|spec| {
            let len = spec.span().len().value();
            Pending { plan: places.get(spec.name()).copied().unwrap_or_default(), missing: len, len }
        })
        .collect()
}
