//! A part of a tensor becomes what is printed of it: values, codes or statistics.

mod corners;

pub(crate) mod human;

pub(crate) mod json;

use std::io;
use std::path::Path;

use safestep::{Block, Error, Model};
use safestep_core::{Axis, Entry, Pick, Run, Slice};

/// What is shown of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// What it means.
    Values,
    /// What is stored.
    Codes,
}

/// What is taken of one dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Picked {
    pub(crate) pick: Pick,
    /// The number of indices.
    pub(crate) taken: u64,
    /// Whether it stays a dimension; a single index does not.
    pub(crate) keeps: bool,
    dim: u64,
}

impl Picked {
    /// The pick, which fits a dimension of that size.
    pub(crate) fn of(pick: Pick, dim: u64, keeps: bool) -> Self {
        let taken = pick.stop.saturating_sub(pick.start).div_ceil(pick.step.max(1));
        Self { pick, taken, keeps, dim }
    }

    /// All of it.
    pub(crate) fn whole(dim: u64) -> Self {
        Self::of(Pick { start: 0, stop: dim, step: 1 }, dim, true)
    }

    /// The index in the tensor of that place in the part.
    pub(crate) fn index(&self, place: u64) -> u64 {
        self.pick.start.saturating_add(place.saturating_mul(self.pick.step))
    }
}

/// A tensor, what of it is to be shown, and how.
pub(crate) struct Part<'a> {
    model: &'a Model,
    entry: Entry<'a>,
    picks: Vec<Picked>,
    /// Whether somebody has asked for a slice.
    sliced: bool,
    form: Form,
}

impl<'a> Part<'a> {
    /// These picks, one for each dimension.
    pub(crate) fn new(
        model: &'a Model,
        entry: Entry<'a>,
        picks: Vec<Picked>,
        sliced: bool,
        form: Form,
    ) -> Self {
        Self { model, entry, picks, sliced, form }
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        self.model.path()
    }

    /// The length of all elements of the part.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_of(self.elements())
    }

    /// The length of so many elements.
    pub(crate) fn bytes_of(&self, elements: u64) -> u64 {
        self.entry.dtype().total_bits(elements).unwrap_or(u64::MAX) / 8
    }

    /// The dimensions of the part.
    fn dims(&self) -> impl Iterator<Item = u64> + Clone + use<'_> {
        self.picks.iter().filter(|picked| picked.keeps).map(|picked| picked.taken)
    }

    fn elements(&self) -> u64 {
        if self.picks.iter().any(|picked| picked.taken == 0) {
            return 0;
        }
        self.picks.iter().fold(1, |product, picked| product.saturating_mul(picked.taken))
    }

    /// Hands over all elements, until the answer is false.
    pub(crate) fn each_block<E: From<Error>>(
        &self,
        take: impl FnMut(&Block<'_>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let picks: Vec<Pick> = self.picks.iter().map(|picked| picked.pick).collect();
        let mut axes = vec![Axis::default(); picks.len()];
        let slice = Slice::of(self.entry.shape(), &picks, &mut axes);
        let slice = slice.map_err(|error| Error::io("slice", self.path(), io::Error::other(error)))?;
        self.each_block_of(slice, take)
    }

    /// The same of some elements.
    fn each_block_of<E: From<Error>>(
        &self,
        runs: impl IntoIterator<Item = Run>,
        mut take: impl FnMut(&Block<'_>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let mut values = self.model.values(&self.entry, runs);
        while let Some(block) = values.next_block()? {
            if !take(&block)? {
                break;
            }
        }
        Ok(())
    }
}
