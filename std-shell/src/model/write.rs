//! Names, dtypes and shapes, then bytes in pieces of any size, become a model file in canonical layout.
//!
//! The layout is planned first; the data streams through, so memory does not grow with it. The file appears under
//! its name whole and durable, or not at all.

use std::io;
use std::ops::Range;
use std::path::Path;

use safestep_core::{Dtype, Layout, TensorSpec};

use crate::commit::Commit;
use crate::disk::Disk;
use crate::error::{Cause, Error, Refusal};
use crate::memory;

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
    /// The names of the tensors, one behind the other.
    names: String,
}

struct Pending {
    /// Its place in the caller's list.
    plan: usize,
    /// The bytes that are still to come.
    missing: u64,
    len: u64,
    /// Where its name stands among the names.
    name: Range<usize>,
}

impl<'d, D: Disk> ModelWriter<'d, D> {
    /// Plans the layout, begins the file beside `path`, makes room for it and writes its header.
    ///
    /// `metadata` of `Some` with no pairs is written as an empty object.
    ///
    /// # Errors
    /// [`Cause::Refused`] with the rule W5 before anything is written; [`Cause::Io`] if there is not enough memory for the
    /// layout; otherwise as [`Commit::begin`],
    /// [`Commit::allocate`] and [`Commit::write`].
    pub fn create(
        disk: &'d D,
        path: impl AsRef<Path>,
        tensors: &[TensorPlan],
        metadata: Option<&[(String, String)]>,
    ) -> Result<Self, Error> {
        let path = path.as_ref();
        let no_room = |error| Error::io("write", path, error);
        let specs = tensors.iter().map(|plan| Ok(TensorSpec::new(&plan.name, plan.dtype, &plan.shape)));
        let mut specs = memory::gathered(specs, tensors.len()).map_err(no_room)?;
        let pairs = metadata.map(|pairs| {
            let borrowed = pairs.iter().map(|(key, value)| Ok((key.as_str(), value.as_str())));
            memory::gathered(borrowed, pairs.len())
        });
        let mut pairs = pairs.transpose().map_err(no_room)?;
        let layout = Layout::plan(&mut specs, pairs.as_deref_mut())
            .map_err(|error| Error::new("write", path, Cause::Refused(error.into())))?;
        let (rest, names) = pending(&layout).map_err(no_room)?;
        let mut commit = Commit::begin(disk, path)?;
        commit.allocate(layout.file_len().value())?;
        layout.write_header(|piece| commit.write(piece))?;
        let mut writer = Self { commit, rest, file_bytes: layout.file_len().value(), names };
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
    /// [`Cause::Refused`] for more bytes than the tensors have, and the commit is over; otherwise as [`Commit::write`].
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let Some(next) = self.rest.last_mut() else {
                let found = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                return Err(self.refuse(Refusal::DataSurplus { found }));
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
    /// [`Cause::Refused`] if a tensor lacks bytes; [`Cause::Abandoned`] after an earlier error; otherwise as [`Commit::finish`]. The old file is then as it was.
    pub fn finish(mut self) -> Result<(), Error> {
        if let Some(next) = self.rest.last().filter(|_| !self.commit.is_abandoned()) {
            let name = self.names.get(next.name.clone()).unwrap_or_default().into();
            let (expected, found) = (next.len, next.len.saturating_sub(next.missing));
            return Err(self.refuse(Refusal::DataShort { name, expected, found }));
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

    /// A refusal ends the commit, so that nobody can make a file of what was refused.
    fn refuse(&mut self, refusal: Refusal) -> Error {
        self.commit.abandon();
        Error::new("write", self.commit.target(), Cause::Refused(refusal))
    }
}

/// The tensors in the order of the layout, the first one last; and their names.
fn pending(layout: &Layout<'_, '_>) -> io::Result<(Vec<Pending>, String)> {
    let planned = layout.tensors().iter().rev();
    let mut names = String::new();
    names.try_reserve_exact(planned.clone().map(|spec| spec.name().len()).sum())?;
    let pending = planned.map(|spec| {
        let (begin, len) = (names.len(), spec.span().len().value());
        names.push_str(spec.name());
        Ok(Pending { plan: spec.place(), missing: len, len, name: begin..names.len() })
    });
    let pending = memory::gathered(pending, layout.tensors().len())?;
    Ok((pending, names))
}
