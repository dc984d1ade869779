//! Tensors become sums: in all, and by dtype.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use safestep_core::{Dtype, Entry};

/// The sums over some tensors. Where 64 bits cannot count, they stay at their largest value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(super) all: Sum,
    pub(super) by_dtype: BTreeMap<Dtype, Sum>,
}

/// A number of tensors, and what they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(super) struct Sum {
    pub(super) tensors: u64,
    pub(super) parameters: u64,
    pub(super) bytes: u64,
}

impl Totals {
    /// Adds a tensor.
    pub(crate) fn add(&mut self, entry: &Entry<'_>) {
        let sum = Sum::of(entry);
        self.all += sum;
        *self.by_dtype.entry(entry.dtype()).or_default() += sum;
    }
}

impl Sum {
    /// What one tensor holds.
    pub(super) fn of(entry: &Entry<'_>) -> Self {
        // The shape was judged: the number of its elements fits.
        let parameters = entry.shape().elements().unwrap_or(u64::MAX);
        Self { tensors: 1, parameters, bytes: entry.span().len().value() }
    }
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        self.tensors = self.tensors.saturating_add(other.tensors);
        self.parameters = self.parameters.saturating_add(other.parameters);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}
