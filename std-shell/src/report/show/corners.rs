//! The dimensions of a part become places to look at: both ends of each, and a gap between them where there is more.

use std::cell::Cell;

use safestep_core::numbers::Number;
use safestep_core::{Dtype, Run};

use super::{Form, Part, Picked};
use crate::report::Trouble;
use crate::report::numbers as text;

/// The places of a dimension that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) len: u64,
    /// How many at the beginning.
    pub(super) head: u64,
    /// How many at the end.
    pub(super) tail: u64,
}

impl Ends {
    /// All of `len` if they are not more than `whole`, or else `end` at either side.
    pub(super) fn of(len: u64, whole: u64, end: u64) -> Self {
        if len <= whole { Self { len, head: len, tail: 0 } } else { Self { len, head: end, tail: end } }
    }

    /// How many are left out.
    pub(super) fn gap(self) -> u64 {
        self.len.saturating_sub(self.head).saturating_sub(self.tail)
    }

    /// The places, ascending.
    pub(super) fn places(self) -> impl Iterator<Item = u64> + Clone {
        (0..self.head).chain(self.len.saturating_sub(self.tail)..self.len)
    }
}

/// The dimensions of a part as they are printed: the last ones as rows and columns, those before them one block for each
/// index.
pub(super) struct Grid<'p> {
    part: &'p Part<'p>,
    /// The dimensions that are kept, each with the elements between two of its indices.
    axes: Vec<(&'p Picked, u64)>,
    /// The first element.
    first: u64,
    /// Whether there was a byte of BOOL other than 0 and 1.
    marked: Cell<bool>,
}

impl<'p> Grid<'p> {
    pub(super) fn new(part: &'p Part<'p>) -> Self {
        let (mut axes, mut first, mut stride) = (Vec::new(), 0_u64, 1_u64);
        for picked in part.picks.iter().rev() {
            // A part with elements is of a tensor whose elements can be counted, so nothing wraps.
            first = first.wrapping_add(picked.pick.start.wrapping_mul(stride));
            if picked.keeps {
                axes.push((picked, stride.wrapping_mul(picked.pick.step)));
            }
            stride = stride.wrapping_mul(picked.dim);
        }
        axes.reverse();
        Self { part, axes, first, marked: Cell::new(false) }
    }

    /// Whether one of the cells so far bears the mark of a byte that is no truth value.
    pub(super) fn has_marked(&self) -> bool {
        self.marked.get()
    }

    pub(super) fn rank(&self) -> usize {
        self.axes.len()
    }

    /// The dimension that is so many before the last.
    pub(super) fn axis(&self, place: usize) -> Option<&'p Picked> {
        self.axes.iter().rev().nth(place).map(|(picked, _)| *picked)
    }

    /// How many blocks of rows and columns there are.
    pub(super) fn blocks(&self) -> u64 {
        self.axes.iter().rev().skip(2).fold(1, |product, (picked, _)| product.saturating_mul(picked.taken))
    }

    /// Where in each of the outer dimensions that block is.
    pub(super) fn block(&self, number: u64) -> Vec<u64> {
        let mut left = number;
        let mut places: Vec<u64> = self
            .axes
            .iter()
            .rev()
            .skip(2)
            .map(|(picked, _)| {
                let place = left % picked.taken.max(1);
                left /= picked.taken.max(1);
                place
            })
            .collect();
        places.reverse();
        places
    }

    /// The elements at `rows` and `columns` of a block, row by row.
    pub(super) fn cells(
        &self,
        block: &[u64],
        rows: impl Iterator<Item = u64>,
        columns: impl Iterator<Item = u64> + Clone,
    ) -> Result<Vec<text::Cell>, Trouble> {
        let outer = self.axes.iter().zip(block);
        let first = outer
            .fold(self.first, |first, ((_, stride), place)| first.wrapping_add(place.wrapping_mul(*stride)));
        let stride = |place: usize| self.axes.iter().rev().nth(place).map_or(0, |(_, stride)| *stride);
        let (row_stride, column_stride) = (stride(1), stride(0));
        let runs = rows.flat_map(|row| {
            let first = first.wrapping_add(row.wrapping_mul(row_stride));
            columns.clone().map(move |column| Run {
                first: first.wrapping_add(column.wrapping_mul(column_stride)),
                elements: 1,
            })
        });
        let (mut cells, dtype) = (Vec::new(), self.part.entry.dtype());
        self.part.each_block_of(runs, |block| {
            match self.part.form {
                Form::Values if dtype == Dtype::Bool => {
                    cells.extend(block.numbers().map(|number| self.truth(&number)));
                }
                Form::Values => cells.extend(block.numbers().map(|number| text::Cell::value(&number))),
                Form::Codes => {
                    let complex = dtype == Dtype::C64;
                    cells.extend(block.codes().map(|code| text::Cell::code(code, dtype.bits(), complex)));
                }
            }
            Ok::<_, Trouble>(true)
        })?;
        Ok(cells)
    }

    /// A truth value; a byte that is none bears a mark.
    fn truth(&self, number: &Number) -> text::Cell {
        match number {
            Number::Bool(_) => text::Cell::value(number),
            _ => {
                self.marked.set(true);
                text::Cell::marked(number)
            }
        }
    }
}
