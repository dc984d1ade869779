//! Values in pieces of any size become the bytes of a tensor: whole groups at once, and what a piece has cut off bit by bit.
//!
//! Elements below a byte fill whole bytes in groups: two of F4, four of F6. All others are groups of one.

use safestep_core::Dtype;
use safestep_core::numbers::{NumbersError, ValueError};

use crate::disk::Disk;
use crate::error::{BadNumber, Cause, Error, Refusal};
use crate::model::write::{ModelWriter, Pending};

/// One of the core's encoders.
pub(super) type Encode<'e, T> = dyn Fn(&[T], Dtype, &mut [u8]) -> Result<(), NumbersError> + 'e;

/// Elements below a byte that do not fill whole bytes yet: their codes, and zeros where the others will be.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Group {
    codes: [u8; GROUP_BYTES],
    pub(super) elements: usize,
}

/// The longest group that fills whole bytes: four elements in three bytes.
const GROUP_ELEMENTS: usize = 4;
const GROUP_BYTES: usize = 3;

/// How many values are encoded at once: whole groups, and with the values themselves within a cache.
const ENCODED_ELEMENTS: usize = 1 << 15;

impl<D: Disk> ModelWriter<'_, D> {
    /// Encodes values of the dtype `from` as that of the next tensor, and appends them.
    pub(super) fn encode<T: Copy + Default>(
        &mut self,
        values: &[T],
        from: Dtype,
        encode: &Encode<'_, T>,
    ) -> Result<(), Error> {
        let Some(group) = self.group_for(values.len())? else { return Ok(()) };
        let begun = self.begun.elements;
        let missing = if begun == 0 { 0 } else { group.saturating_sub(begun).min(values.len()) };
        let (first, rest) = values.split_at_checked(missing).unwrap_or((values, &[]));
        self.encode_part(first, group, from, encode)?;
        let (whole, last) = rest.split_at_checked(rest.len() - rest.len() % group).unwrap_or((rest, &[]));
        for values in whole.chunks(ENCODED_ELEMENTS) {
            self.encode_groups(values, from, encode)?;
        }
        self.encode_part(last, group, from, encode)
    }

    /// How many elements of the next tensor fill whole bytes, if it takes so many; `None` for no elements.
    fn group_for(&self, elements: usize) -> Result<Option<usize>, Error> {
        if elements == 0 {
            return Ok(None);
        }
        let Some(next) = self.rest.last() else {
            return self.has_room("elements", elements, 0).map(|()| None);
        };
        let bits = u64::from(next.dtype.bits());
        if next.done_bits() % bits != 0 {
            let (name, found) = (self.name(next).into(), super::count(elements));
            return Err(self.refuse(Refusal::DataCut { name, unit: "elements", found }));
        }
        let missing = next.missing.saturating_mul(8) / bits;
        let missing = missing.saturating_sub(super::count(self.begun.elements));
        self.has_room("elements", elements, missing)?;
        Ok(Some(match bits {
            4 => 2,
            6 => GROUP_ELEMENTS,
            _ => 1,
        }))
    }

    /// Encodes whole groups, at most [`ENCODED_ELEMENTS`].
    fn encode_groups<T>(&mut self, values: &[T], from: Dtype, encode: &Encode<'_, T>) -> Result<(), Error> {
        let Some(next) = self.rest.last() else { return Ok(()) };
        let dtype = next.dtype;
        let len = values.len().saturating_mul(usize::try_from(dtype.bits()).unwrap_or_default()) / 8;
        let mut encoded = std::mem::take(&mut self.encoded);
        if encoded.len() < len {
            encoded.resize(len, 0);
        }
        let bytes = encoded.get_mut(..len).unwrap_or_default();
        encode(values, dtype, bytes).map_err(|error| self.refuse_number(error, from))?;
        self.put(bytes)?;
        self.encoded = encoded;
        Ok(())
    }

    /// Encodes a part of a group, after what is there of it already; the group is appended when it is whole.
    fn encode_part<T: Copy + Default>(
        &mut self,
        values: &[T],
        group: usize,
        from: Dtype,
        encode: &Encode<'_, T>,
    ) -> Result<(), Error> {
        let Some(next) = self.rest.last().filter(|_| !values.is_empty()) else { return Ok(()) };
        // The code of zero is zero in every format below a byte, so groups with zeros for what is elsewhere add up.
        let mut padded = [T::default(); GROUP_ELEMENTS];
        for (place, &value) in padded.iter_mut().skip(self.begun.elements).zip(values) {
            *place = value;
        }
        let len = group.saturating_mul(usize::try_from(next.dtype.bits()).unwrap_or_default()) / 8;
        let mut codes = [0; GROUP_BYTES];
        let (padded, bytes) =
            (padded.get(..group).unwrap_or_default(), codes.get_mut(..len).unwrap_or_default());
        encode(padded, next.dtype, bytes).map_err(|error| self.refuse_number(error, from))?;
        for (all, more) in self.begun.codes.iter_mut().zip(codes) {
            *all |= more;
        }
        self.begun.elements = self.begun.elements.saturating_add(values.len());
        if self.begun.elements < group {
            return Ok(());
        }
        let whole = std::mem::take(&mut self.begun);
        self.put(whole.codes.get(..len).unwrap_or_default())
    }

    /// The error for values of the dtype `from` that were not encoded; they began where the next bytes go.
    fn refuse_number(&self, error: NumbersError, from: Dtype) -> Error {
        let Some(next) = self.rest.last() else { return self.refuse(Refusal::Layout(error.to_string())) };
        match error {
            NumbersError::Type { .. } => self.refuse_dtype(next, from),
            NumbersError::Length { .. } | NumbersError::Scales { .. } => {
                self.refuse(Refusal::Layout(error.to_string()))
            }
            NumbersError::Value(error) => {
                let before = next.done_bits() / u64::from(next.dtype.bits());
                let error = ValueError { index: error.index.saturating_add(before), ..error };
                let (tensor, shape) = (self.name(next).into(), self.shape(next).into());
                let because = Cause::Number(Box::new(BadNumber { tensor, shape, error }));
                Error::new("write", self.commit.target(), because)
            }
        }
    }
}

impl Pending {
    /// What is written of it. The layout has counted all its bits in 64 bits.
    fn done_bits(&self) -> u64 {
        self.len.saturating_sub(self.missing).saturating_mul(8)
    }
}
