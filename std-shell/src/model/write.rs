//! Names, dtypes and shapes, then values or bytes in pieces of any size, become a model file in canonical layout.
//!
//! The layout is planned first; the data streams through, so memory does not grow with it. The file appears under
//! its name whole and durable, or not at all. Values are encoded on the way, as the dtype that the plan names; what is of
//! another dtype already is refused, not converted.

mod encode;

use std::io;
use std::ops::Range;
use std::path::Path;

use safestep_core::numbers::{OutOfRange, encode_f64};
use safestep_core::{Dtype, Layout, TensorSpec};

use crate::commit::Commit;
use crate::disk::Disk;
use crate::error::{Cause, Error, Refusal};
use crate::kernels::encode_f32;
use crate::memory;
use crate::model::write::encode::Group;

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

/// Elements for a tensor, in row-major order, and what they are.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Values<'a> {
    /// Numbers for a tensor of any dtype that f32 can be encoded as: the plan's dtype is the wish. Floats are rounded to
    /// nearest, ties to even; integers are never made by rounding.
    F32(&'a [f32]),
    /// Numbers for a tensor of F64, and of no other dtype.
    F64(&'a [f64]),
    /// The same for a tensor of any dtype that f64 can be encoded as: they are rounded, once.
    Rounded(&'a [f64]),
    /// Elements of that dtype, little-endian and packed as in a file, for a tensor of that dtype and no other.
    Codes(Dtype, &'a [u8]),
}

/// A model file in the making. Dropped before [`finish`](Self::finish), it leaves nothing behind; after an error it takes
/// nothing more.
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
///
/// Values become what the plan says:
///
/// ```
/// use safestep::{ModelWriter, OsDisk, TensorPlan, Values};
/// use safestep_core::{Dtype, numbers::OutOfRange};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("model.safetensors");
/// let plan = [TensorPlan { name: "w".into(), dtype: Dtype::F8E4M3, shape: vec![3] }];
/// let mut writer = ModelWriter::create(&OsDisk, &path, &plan, None)?;
/// writer.write_values(Values::F32(&[1.0625, 250.0]), OutOfRange::Refuse)?;
/// let error = writer.write_values(Values::F32(&[449.0]), OutOfRange::Refuse).unwrap_err();
/// assert!(error.to_string().ends_with(
///     "\"w\": expected a value of F8_E4M3, found 449.0 in element 2: it is out of range"
/// ));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ModelWriter<'d, D: Disk> {
    commit: Commit<'d, D>,
    /// The tensors that are not complete yet, the next one last.
    rest: Vec<Pending>,
    file_bytes: u64,
    /// The names of the tensors, one behind the other, and their dimensions.
    names: String,
    dims: Vec<u64>,
    /// The elements that a piece of values has cut off from their group.
    begun: Group,
    /// Where values are encoded; empty until there are any.
    encoded: Vec<u8>,
}

struct Pending {
    /// Its place in the caller's list.
    plan: usize,
    dtype: Dtype,
    /// The bytes that are still to come.
    missing: u64,
    len: u64,
    /// Where its name stands among the names, and its dimensions among all.
    name: Range<usize>,
    shape: Range<usize>,
}

impl<'d, D: Disk> ModelWriter<'d, D> {
    /// Plans the layout, begins the file beside `path`, makes room for it and writes its header.
    ///
    /// `metadata` of `Some` with no pairs is written as an empty object.
    ///
    /// # Errors
    /// [`Cause::Refused`] with the rule W5 before anything is written; [`Cause::Io`] if there is not enough memory for the
    /// layout; otherwise as [`Commit::begin`], [`Commit::allocate`] and [`Commit::write`].
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
        let (rest, names, dims) = pending(&layout).map_err(no_room)?;
        let mut commit = Commit::begin(disk, path)?;
        commit.allocate(layout.file_len().value())?;
        layout.write_header(|piece| commit.write(piece))?;
        let (file_bytes, begun, encoded) = (layout.file_len().value(), Group::default(), Vec::new());
        let mut writer = Self { commit, rest, file_bytes, names, dims, begun, encoded };
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
    /// [`Cause::Refused`] for more bytes than the tensors have, or bytes where values have begun a byte;
    /// [`Cause::Abandoned`] after an earlier error; otherwise as [`Commit::write`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.go_on(|writer| writer.put(bytes))
    }

    /// Writes the next elements of the tensor that is [next](Self::next_tensor), in pieces of any size: also of elements
    /// below a byte.
    ///
    /// `beyond` says what becomes of numbers that the dtype does not hold. No elements at all fit everywhere.
    ///
    /// # Errors
    /// [`Cause::Number`] for a number that the dtype does not hold, with its place in the whole tensor; [`Cause::Unasked`]
    /// for elements of a dtype that would have to be converted; [`Cause::Refused`] for more elements than the tensor has, or
    /// in the middle of one; [`Cause::Abandoned`] after an earlier error; otherwise as [`Commit::write`].
    pub fn write_values(&mut self, values: Values<'_>, beyond: OutOfRange) -> Result<(), Error> {
        self.go_on(|writer| match values {
            Values::F32(values) => writer
                .encode(values, Dtype::F32, &|values, dtype, bytes| encode_f32(values, dtype, bytes, beyond)),
            Values::F64(values) => {
                writer.accept(values.len(), Dtype::F64)?;
                writer.encode(values, Dtype::F64, &|values, dtype, bytes| {
                    encode_f64(values, dtype, bytes, beyond)
                })
            }
            Values::Rounded(values) => writer
                .encode(values, Dtype::F64, &|values, dtype, bytes| encode_f64(values, dtype, bytes, beyond)),
            Values::Codes(dtype, bytes) => {
                writer.accept(bytes.len(), dtype)?;
                writer.has_room("bytes", bytes.len(), writer.rest.last().map_or(0, |next| next.missing))?;
                writer.put(bytes)
            }
        })
    }

    /// Makes the file durable and gives it its name.
    ///
    /// # Errors
    /// [`Cause::Refused`] if a tensor lacks bytes; [`Cause::Abandoned`] after an earlier error; otherwise as
    /// [`Commit::finish`]. The old file is then as it was.
    pub fn finish(mut self) -> Result<(), Error> {
        self.go_on(|writer| match writer.rest.last() {
            None => Ok(()),
            Some(next) => {
                let (expected, found) = (next.len, next.len.saturating_sub(next.missing));
                Err(writer.refuse(Refusal::DataShort { name: writer.name(next).into(), expected, found }))
            }
        })?;
        self.commit.finish()
    }

    /// The length that the whole file will have, in bytes.
    pub fn file_len_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Does one step. A part of what was refused may have been written, so nothing can follow: the commit is over.
    fn go_on(&mut self, step: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        if self.commit.is_abandoned() {
            return Err(Error::new("write", self.commit.target(), Cause::Abandoned));
        }
        step(self).inspect_err(|_| self.commit.abandon())
    }

    /// Appends bytes, however many tensors they are of.
    fn put(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let begun = self.begun.elements > 0;
            let Some(next) = self.rest.last_mut().filter(|_| !begun) else {
                let found = count(bytes.len());
                return Err(self.refuse(match self.rest.last() {
                    Some(next) => Refusal::DataCut { name: self.name(next).into(), unit: "bytes", found },
                    None => Refusal::DataSurplus { unit: "bytes", found },
                }));
            };
            let taken = usize::try_from(next.missing).unwrap_or(usize::MAX).min(bytes.len());
            let (piece, tail) = bytes.split_at_checked(taken).unwrap_or((bytes, &[]));
            self.commit.write(piece)?;
            next.missing = next.missing.saturating_sub(count(taken));
            bytes = tail;
            self.skip_complete();
        }
        Ok(())
    }

    /// Whether elements of that dtype can go into the next tensor as they are.
    fn accept(&self, count: usize, found: Dtype) -> Result<(), Error> {
        match self.rest.last() {
            Some(next) if count > 0 && next.dtype != found => Err(self.refuse_dtype(next, found)),
            _ => Ok(()),
        }
    }

    /// Whether the next tensor takes so many more.
    fn has_room(&self, unit: &'static str, elements: usize, missing: u64) -> Result<(), Error> {
        let found = count(elements);
        if found <= missing {
            return Ok(());
        }
        Err(self.refuse(match self.rest.last() {
            Some(next) => Refusal::Surplus { name: self.name(next).into(), unit, expected: missing, found },
            None => Refusal::DataSurplus { unit, found },
        }))
    }

    fn skip_complete(&mut self) {
        while self.rest.last().is_some_and(|pending| pending.missing == 0) {
            self.rest.pop();
        }
    }

    fn name(&self, pending: &Pending) -> &str {
        self.names.get(pending.name.clone()).unwrap_or_default()
    }

    fn shape(&self, pending: &Pending) -> &[u64] {
        self.dims.get(pending.shape.clone()).unwrap_or_default()
    }

    fn refuse(&self, refusal: Refusal) -> Error {
        Error::new("write", self.commit.target(), Cause::Refused(refusal))
    }

    fn refuse_dtype(&self, next: &Pending, found: Dtype) -> Error {
        let because = Cause::Unasked { tensor: self.name(next).into(), expected: next.dtype, found };
        Error::new("write", self.commit.target(), because)
    }
}

/// The tensors in the order of the layout, the first one last; and their names and dimensions.
fn pending(layout: &Layout<'_, '_>) -> io::Result<(Vec<Pending>, String, Vec<u64>)> {
    let planned = layout.tensors().iter().rev();
    let (mut names, mut dims) = (String::new(), Vec::new());
    dims.try_reserve_exact(planned.clone().map(|spec| spec.shape().len()).sum())?;
    names.try_reserve_exact(planned.clone().map(|spec| spec.name().len()).sum())?;
    let pending = planned.map(|spec| {
        let (begin, len) = (names.len(), spec.span().len().value());
        names.push_str(spec.name());
        let (plan, dtype, name) = (spec.place(), spec.dtype(), begin..names.len());
        let begin = dims.len();
        dims.extend_from_slice(spec.shape());
        let shape = begin..dims.len();
        Ok(Pending { plan, dtype, missing: len, len, name, shape })
    });
    let pending = memory::gathered(pending, layout.tensors().len())?;
    Ok((pending, names, dims))
}

fn count(items: usize) -> u64 {
    u64::try_from(items).unwrap_or(u64::MAX)
}
