//! Runs of a tensor's elements become blocks of numbers, as they are asked for: in constant memory.
//!
//! Of a part of the tensor only the part is read, and a little more where its runs lie close together. Nothing here
//! panics. No number is rounded but where it says so.

use safestep_core::numbers::{Number, code, decode_f64, number};
use safestep_core::{Dtype, Entry, Run};

use crate::error::Error;
use crate::model::file::Model;

/// Elements of one tensor on their way out of the file: see [`Model::values`].
#[derive(Debug)]
pub struct ValueReader<'m, R> {
    model: &'m Model,
    entry: Entry<'m>,
    runs: R,
    /// What is left of the run at hand.
    rest: Run,
    /// Bytes of the tensor, from its byte `begin` on.
    window: Vec<u8>,
    begin: u64,
    /// How far a read goes at the least, because the runs lie close together.
    reach: u64,
}

/// How much is read at once, at the most.
const WINDOW_BYTES: u64 = 1 << 18;

/// Runs that are no farther apart are read together: the disk would bring what lies between them anyway.
const NEAR_BYTES: u64 = 1 << 12;

/// The elements of a block, at the most.
const BLOCK_ELEMENTS: u64 = 1 << 12;

impl Model {
    /// The elements of these runs of the tensor, such as those of a [`Slice`](safestep_core::Slice).
    ///
    /// ```
    /// # use safestep::{Access, Model, ModelWriter, OsDisk, TensorPlan};
    /// # use safestep_core::{Axis, Dtype, Limits, Pick, Slice, numbers::Number};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("model.safetensors");
    /// # let plan = vec![TensorPlan { name: "w".into(), dtype: Dtype::U8, shape: vec![2, 3] }];
    /// # let mut writer = ModelWriter::create(&OsDisk, &path, &plan, None)?;
    /// # writer.write(&[1, 2, 3, 4, 5, 6])?;
    /// # writer.finish()?;
    /// let model = Model::open(&path, Access::Read, Limits::default())?;
    /// let entry = model.index().get("w").unwrap();
    /// let mut axes = [Axis::default(); 2];
    /// let last_column = Slice::of(entry.shape(), &[Pick::ALL, Pick::one(2)], &mut axes)?;
    /// let mut values = model.values(&entry, last_column);
    /// let mut numbers = Vec::new();
    /// while let Some(block) = values.next_block()? {
    ///     numbers.extend(block.numbers());
    /// }
    /// assert_eq!(numbers, [Number::Unsigned(3), Number::Unsigned(6)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn values<'m, R>(&'m self, entry: &Entry<'m>, runs: R) -> ValueReader<'m, R::IntoIter>
    where
        R: IntoIterator<Item = Run>,
    {
        ValueReader {
            model: self,
            entry: *entry,
            runs: runs.into_iter(),
            rest: Run { first: 0, elements: 0 },
            window: Vec::new(),
            begin: 0,
            reach: 0,
        }
    }
}

impl<R: Iterator<Item = Run>> ValueReader<'_, R> {
    /// The next elements, or `None` behind the last; never an empty block.
    ///
    /// # Errors
    /// As [`Model::read_into`]; so a run that is not the tensor's is an error.
    pub fn next_block(&mut self) -> Result<Option<Block<'_>>, Error> {
        while self.rest.elements == 0 {
            match self.runs.next() {
                Some(run) => self.rest = run,
                None => return Ok(None),
            }
        }
        let dtype = self.entry.dtype();
        let Run { first, elements } = self.rest;
        let skipped = first & group(dtype).saturating_sub(1);
        let elements = elements.min(BLOCK_ELEMENTS);
        self.rest.first = first.saturating_add(elements);
        self.rest.elements = self.rest.elements.saturating_sub(elements);

        let begin = byte_of(dtype, first.saturating_sub(skipped));
        let end = byte_of(dtype, whole_groups(dtype, first.saturating_add(elements)));
        let run_end = self.rest.first.saturating_add(self.rest.elements);
        let run_end = byte_of(dtype, whole_groups(dtype, run_end));
        self.fill(begin, end, run_end)?;
        let skipped_bytes = usize::try_from(begin.saturating_sub(self.begin)).unwrap_or(usize::MAX);
        let len = usize::try_from(end.saturating_sub(begin)).unwrap_or_default();
        let bytes = self.window.get(skipped_bytes..).and_then(|bytes| bytes.get(..len)).unwrap_or_default();
        Ok(Some(Block { dtype, bytes, skipped, elements }))
    }

    /// Makes the window hold the bytes from `begin` to `end`; those up to `run_end` will be wanted next.
    fn fill(&mut self, begin: u64, end: u64, run_end: u64) -> Result<(), Error> {
        let filled = self.begin.saturating_add(self.window.len() as u64);
        if self.begin <= begin && end <= filled {
            return Ok(());
        }
        let near = self.begin <= begin && begin <= filled.saturating_add(NEAR_BYTES) && filled > 0;
        self.reach = if near { self.reach.saturating_mul(2).clamp(NEAR_BYTES, WINDOW_BYTES) } else { 0 };
        let wanted = run_end.saturating_sub(begin).min(WINDOW_BYTES).max(self.reach);
        let there = self.entry.span().len().value().saturating_sub(begin);
        let len = wanted.min(there).max(end.saturating_sub(begin));
        self.window.resize(usize::try_from(len).unwrap_or_default(), 0);
        self.begin = begin;
        self.model.read_into(&self.entry, begin, &mut self.window)
    }
}

/// Some elements of a tensor, side by side.
#[derive(Clone, Copy, Debug)]
pub struct Block<'v> {
    dtype: Dtype,
    /// Whole groups of elements.
    bytes: &'v [u8],
    /// The elements in front of the first.
    skipped: u64,
    elements: u64,
}

impl<'v> Block<'v> {
    /// What the elements are.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// How many elements there are: at least one, and a few thousand at the most.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// The elements as numbers.
    pub fn numbers(&self) -> impl Iterator<Item = Number> + use<'v> {
        let Self { dtype, bytes, .. } = *self;
        self.places().filter_map(move |place| number(dtype, bytes, place))
    }

    /// The elements as they are stored.
    pub fn codes(&self) -> impl Iterator<Item = u64> + use<'v> {
        let Self { dtype, bytes, .. } = *self;
        self.places().filter_map(move |place| code(dtype, bytes, place))
    }

    /// The elements as real numbers, in place of what `measures` holds: a truth value is 0 or 1 (NaN if it is neither), a complex number its
    /// magnitude, and a 64-bit integer the nearest f64.
    pub fn measures(&self, measures: &mut Vec<f64>) {
        measures.clear();
        let skipped = usize::try_from(self.skipped).unwrap_or_default();
        if !matches!(self.dtype, Dtype::Bool | Dtype::C64 | Dtype::I64 | Dtype::U64) {
            let whole = self.bytes.len().saturating_mul(8) / self.dtype.bits().max(1) as usize;
            measures.resize(whole, 0.0);
            if decode_f64(self.dtype, self.bytes, measures).is_ok() {
                measures.drain(..skipped.min(whole));
                measures.truncate(usize::try_from(self.elements).unwrap_or(usize::MAX));
                return;
            }
            measures.clear();
        }
        // A byte of BOOL that is no truth value has no measure.
        let odd = |number: &Number| self.dtype == Dtype::Bool && !matches!(number, Number::Bool(_));
        let numbers = self.numbers();
        measures.extend(numbers.map(|number| if odd(&number) { f64::NAN } else { measure(number) }));
    }

    fn places(&self) -> std::ops::Range<u64> {
        self.skipped..self.skipped.saturating_add(self.elements)
    }
}

/// The real number that stands for a number where numbers are compared and summed.
fn measure(number: Number) -> f64 {
    match number {
        Number::Bool(value) => u8::from(value).into(),
        Number::Unsigned(value) => value as f64,
        Number::Signed(value) => value as f64,
        Number::F32(value) => value.into(),
        Number::F64(value) => value,
        Number::Complex([real, imaginary]) => f64::from(real).hypot(imaginary.into()),
    }
}

/// How many elements fill whole bytes: a power of two.
fn group(dtype: Dtype) -> u64 {
    8 >> dtype.bits().trailing_zeros().min(3)
}

/// Elements up to the end of the group; a tensor has only whole ones.
fn whole_groups(dtype: Dtype, elements: u64) -> u64 {
    elements.checked_next_multiple_of(group(dtype)).unwrap_or(elements)
}

/// Where that element begins, which is the first of its group.
fn byte_of(dtype: Dtype, element: u64) -> u64 {
    u64::try_from(u128::from(element).saturating_mul(dtype.bits().into()) >> 3).unwrap_or(u64::MAX)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::disk::OsDisk;
    use crate::model::file::Access;
    use crate::model::write::{ModelWriter, TensorPlan};
    use safestep_core::Limits;

    /// Blocks of any runs, near and far, forwards and backwards, are what stands at their places.
    #[test]
    fn runs_are_read_where_they_are() {
        const ELEMENTS: u64 = 1 << 20;
        for dtype in [Dtype::F4, Dtype::F6E3M2, Dtype::U8, Dtype::Bf16, Dtype::U64] {
            let data: Vec<u8> = (0..ELEMENTS * u64::from(dtype.bits()) / 8)
                .map(|place| (place.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8)
                .collect();
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("model");
            let plan = vec![TensorPlan { name: "w".into(), dtype, shape: vec![ELEMENTS] }];
            let mut writer = ModelWriter::create(&OsDisk, &path, &plan, None).unwrap();
            writer.write(&data).unwrap();
            writer.finish().unwrap();
            let model = Model::open(&path, Access::Read, Limits::default()).unwrap();
            let entry = model.index().get("w").unwrap();

            let one = |first| Run { first, elements: 1 };
            let mut runs = vec![Run { first: 0, elements: ELEMENTS }, Run { first: 5, elements: 0 }];
            runs.extend((0..ELEMENTS).step_by(997).map(one));
            runs.extend((0..ELEMENTS).rev().step_by(7919).map(one));
            runs.extend(
                (0..3000).map(|place| Run { first: place * 331 % 900_001, elements: place * 7 % 100 }),
            );
            runs.push(Run { first: ELEMENTS - 10_001, elements: 10_001 });
            let mut values = model.values(&entry, runs.iter().copied());
            let (mut codes, mut measures, mut some) = (Vec::new(), Vec::new(), Vec::new());
            while let Some(block) = values.next_block().unwrap() {
                codes.extend(block.codes());
                block.measures(&mut some);
                assert_eq!(some.len() as u64, block.elements());
                measures.append(&mut some);
            }
            let places = runs.iter().flat_map(|run| run.first..run.first + run.elements);
            let expected: Vec<u64> = places.clone().map(|place| code(dtype, &data, place).unwrap()).collect();
            assert!(codes == expected, "{dtype}");
            let numbers = places.map(|place| measure(number(dtype, &data, place).unwrap()));
            // Which NaN it is says nothing.
            let same =
                |one: f64, other: &f64| one.to_bits() == other.to_bits() || one.is_nan() && other.is_nan();
            assert!(numbers.zip(&measures).all(|(one, other)| same(one, other)), "{dtype}");

            let beyond = Run { first: ELEMENTS - 1, elements: 9 };
            assert!(model.values(&entry, [beyond]).next_block().is_err(), "{dtype}");
        }
    }
}
