//! A good model file becomes the same tensors in other floating dtypes, tensor by tensor.
//!
//! Which dtype is the caller's word for each tensor. What keeps its dtype is copied bit for bit; of F64, a value is rounded
//! once, straight to its new dtype. Memory does not grow with the data: some chunks, and a small multiple of the header.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use safestep_core::numbers::{NumbersError, OutOfRange, decode_f64};
use safestep_core::{Dtype, Entry, JsonStr, Metadata};

use crate::disk::Disk;
use crate::error::{Cause, Error, Refusal};
use crate::kernels::decode_f32;
use crate::memory;
use crate::model::file::Model;
use crate::model::write::{ModelWriter, TensorPlan, Values};

/// The dtypes that convert to each other: the floats, the widest first.
pub const FLOATS: [Dtype; 12] = [
    Dtype::F64,
    Dtype::F32,
    Dtype::Bf16,
    Dtype::F16,
    Dtype::F8E4M3,
    Dtype::F8E5M2,
    Dtype::F8E4M3Fnuz,
    Dtype::F8E5M2Fnuz,
    Dtype::F8E8M0,
    Dtype::F6E2M3,
    Dtype::F6E3M2,
    Dtype::F4,
];

/// What a conversion did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// The length of the old file in bytes.
    pub bytes_before: u64,
    /// The length of the new file in bytes.
    pub bytes_after: u64,
    /// The tensors, by the dtype they had and the one they have; also of those that are the same.
    pub pairs: BTreeMap<(Dtype, Dtype), ConvertedPair>,
}

/// The tensors that went from one dtype to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConvertedPair {
    /// How many there are.
    pub tensors: u64,
    /// The bytes of data they had.
    pub bytes_before: u64,
    /// The bytes of data they have.
    pub bytes_after: u64,
}

/// Writes the tensors of `model`, each as the dtype that `target` says, and its metadata to `output`, in canonical layout.
///
/// `output` may be the file that the model was opened from. A tensor whose dtype stays is copied, whatever it holds; others
/// have to go from one of the [`FLOATS`] to another. Values are rounded to nearest, ties to even; `beyond` says what becomes
/// of those that are out of range. A `__metadata__` of null is not written. `progress` is told how many bytes of data of how
/// many have been read; `target` is asked once for each tensor. Memory: some chunks, and for the plan a small multiple of the
/// header.
///
/// # Errors
/// Before anything is written: [`Cause::Unasked`] for a tensor that is no float or is to become none, [`Cause::Refused`] if
/// elements would not fill whole bytes. [`Cause::Number`] for the first value that its new dtype does not hold; as
/// [`Model::read_into`] for the input, as [`ModelWriter`] for `output`, which is then as it was.
///
/// ```
/// use safestep::{Access, Model, ModelWriter, OsDisk, TensorPlan, Values, convert};
/// use safestep_core::{Dtype, Limits, numbers::OutOfRange};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("model.safetensors");
/// let plan = [TensorPlan { name: "w".into(), dtype: Dtype::F32, shape: vec![2] }];
/// let mut writer = ModelWriter::create(&OsDisk, &path, &plan, None)?;
/// writer.write_values(Values::F32(&[1.0, -2.0]), OutOfRange::Refuse)?;
/// writer.finish()?;
///
/// let model = Model::open(&path, Access::Read, Limits::default())?;
/// convert(&OsDisk, &model, &path, &|_| Dtype::Bf16, OutOfRange::Refuse, &mut |_, _| ())?;
/// assert!(std::fs::read(&path)?.ends_with(&[0x80, 0x3F, 0x00, 0xC0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn convert<D: Disk>(
    disk: &D,
    model: &Model,
    output: &Path,
    target: &dyn Fn(&Entry<'_>) -> Dtype,
    beyond: OutOfRange,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Converted, Error> {
    let index = model.index();
    let no_room = |error| Error::io("convert", model.path(), error);
    let entries = memory::gathered(index.iter().map(Ok), index.len()).map_err(no_room)?;
    let targets = memory::gathered(entries.iter().map(|entry| Ok(target(entry))), entries.len());
    let targets = targets.map_err(no_room)?;
    for (entry, dtype) in entries.iter().zip(&targets) {
        convertible(entry, *dtype, output)?;
    }
    let plan = entries.iter().zip(&targets).map(|(entry, dtype)| planned(entry, *dtype));
    let plan = memory::gathered(plan, entries.len()).map_err(no_room)?;
    let metadata = index.metadata().map(owned).transpose().map_err(no_room)?;
    let mut writer = ModelWriter::create(disk, output, &plan, metadata.as_deref())?;
    let mut converted = Converted {
        bytes_before: model.frame().file_len().value(),
        bytes_after: writer.file_len_bytes(),
        ..Converted::default()
    };
    let total = model.frame().data_len().value();
    let (mut done, mut buffers) = (0_u64, Buffers::default());
    progress(done, total);
    while let Some(place) = writer.next_tensor() {
        let (Some(entry), Some(plan)) = (entries.get(place), plan.get(place)) else { break };
        let len = entry.span().len().value();
        let pair = (entry.dtype(), plan.dtype);
        let step = chunk_bytes(pair);
        let mut offset = 0_u64;
        while offset < len {
            let piece = buffers.piece(len.saturating_sub(offset).min(step));
            model.read_into(entry, offset, piece)?;
            offset = offset.saturating_add(piece.len() as u64);
            done = done.saturating_add(piece.len() as u64);
            buffers.pass(model, pair, beyond, &mut writer)?;
            progress(done, total);
        }
    }
    for (entry, plan) in entries.iter().zip(&plan) {
        converted.count(entry, plan);
    }
    writer.finish()?;
    Ok(converted)
}

/// Whether a tensor can become one of that dtype.
fn convertible(entry: &Entry<'_>, dtype: Dtype, output: &Path) -> Result<(), Error> {
    let found = entry.dtype();
    if dtype != found && !(FLOATS.contains(&dtype) && FLOATS.contains(&found)) {
        let tensor = entry.name().to_string();
        return Err(Error::new("write", output, Cause::Unasked { tensor, expected: dtype, found }));
    }
    Ok(())
}

/// The tensor as it will be.
fn planned(entry: &Entry<'_>, dtype: Dtype) -> io::Result<TensorPlan> {
    let (rank, dims) = (usize::try_from(entry.shape().rank()), entry.shape().dims());
    let shape = memory::gathered(dims.map(Ok), rank.unwrap_or(usize::MAX))?;
    Ok(TensorPlan { name: text(entry.name())?, dtype, shape })
}

fn owned(pairs: Metadata<'_>) -> io::Result<Vec<(String, String)>> {
    let count = pairs.clone().count();
    memory::gathered(pairs.map(|(key, value)| Ok((text(key)?, text(value)?))), count)
}

fn text(spelled: JsonStr<'_>) -> io::Result<String> {
    memory::text(&spelled, spelled.as_spelled().len())
}

impl Converted {
    fn count(&mut self, entry: &Entry<'_>, plan: &TensorPlan) {
        // The writer has proven that the new bits can be counted and fill whole bytes.
        let elements = entry.shape().elements().unwrap_or_default();
        let pair = self.pairs.entry((entry.dtype(), plan.dtype)).or_default();
        pair.tensors = pair.tensors.saturating_add(1);
        pair.bytes_before = pair.bytes_before.saturating_add(entry.span().len().value());
        pair.bytes_after =
            pair.bytes_after.saturating_add(plan.dtype.total_bits(elements).unwrap_or_default() / 8);
    }
}

/// How much is copied at once.
const COPIED_BYTES: u64 = 1 << 20;

/// How many elements are converted at once: whole groups of every packing, and all of it within a cache.
const CONVERTED_ELEMENTS: u64 = 1 << 15;

/// The bytes that go through at once.
fn chunk_bytes((from, to): (Dtype, Dtype)) -> u64 {
    if from == to { COPIED_BYTES } else { CONVERTED_ELEMENTS / 8 * u64::from(from.bits()) }
}

/// A piece of a tensor on its way: as it was read, and as numbers.
#[derive(Debug, Default)]
struct Buffers {
    bytes: Vec<u8>,
    singles: Vec<f32>,
    doubles: Vec<f64>,
}

impl Buffers {
    /// Room for so many bytes.
    fn piece(&mut self, len_bytes: u64) -> &mut [u8] {
        self.bytes.resize(usize::try_from(len_bytes).unwrap_or_default(), 0);
        &mut self.bytes
    }

    /// Writes what the room holds.
    fn pass<D: Disk>(
        &mut self,
        model: &Model,
        (from, to): (Dtype, Dtype),
        beyond: OutOfRange,
        writer: &mut ModelWriter<'_, D>,
    ) -> Result<(), Error> {
        if from == to {
            return writer.write_values(Values::Codes(from, &self.bytes), beyond);
        }
        let bits = usize::try_from(from.bits()).unwrap_or(usize::MAX);
        let elements = self.bytes.len().saturating_mul(8) / bits;
        // Every float but F64 is an f32: if one refuses all the same, the fault is ours, and nothing is written.
        let surprise = |error: NumbersError| {
            Error::new("read a tensor of", model.path(), Cause::Refused(Refusal::Layout(error.to_string())))
        };
        if from == Dtype::F64 {
            self.doubles.resize(elements, 0.0);
            decode_f64(from, &self.bytes, &mut self.doubles).map_err(surprise)?;
            writer.write_values(Values::Rounded(&self.doubles), beyond)
        } else {
            self.singles.resize(elements, 0.0);
            decode_f32(from, &self.bytes, &mut self.singles).map_err(surprise)?;
            writer.write_values(Values::F32(&self.singles), beyond)
        }
    }
}
