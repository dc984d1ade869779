//! A shape and a pick of each dimension become runs of elements that lie side by side, in row-major order.
//!
//! No memory of its own: the caller lends one [`Axis`] a dimension, so any rank that there is room for.

use crate::dtype::Dtype;
use crate::span::{Span, count};
use crate::tensor::entry::Shape;
use core::fmt;

/// What to take of one dimension: the indices `start`, `start + step`, ... below `stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The first index.
    pub start: u64,
    /// The first index that is too far; at most the dimension, or [`Pick::ALL`]'s, which stands for it.
    pub stop: u64,
    /// The distance of two indices, at least 1.
    pub step: u64,
}

impl Pick {
    /// The whole dimension.
    pub const ALL: Self = Self { start: 0, stop: u64::MAX, step: 1 };

    /// One index of the dimension, which stays as a dimension of 1.
    #[must_use]
    pub const fn one(index: u64) -> Self {
        Self { start: index, stop: index.saturating_add(1), step: 1 }
    }
}

/// Memory for one dimension of a [`Slice`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Axis {
    dim: u64,
    start: u64,
    step: u64,
    /// How many indices are taken.
    taken: u64,
    /// How many elements one index is away from the next.
    stride: u64,
    /// Which of them is next.
    next: u64,
}

/// Why a slice cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceError {
    /// More picks than dimensions.
    PicksTooMany {
        /// The rank.
        rank: u64,
        /// The number of picks.
        found: u64,
    },
    /// Fewer axes lent than there are dimensions.
    AxesTooFew {
        /// The rank.
        needed: u64,
        /// The number lent.
        lent: u64,
    },
    /// A step of 0.
    Step {
        /// The dimension, counted from the outermost.
        axis: u64,
    },
    /// A stop behind the dimension's end, or a start behind the stop.
    Range {
        /// The dimension, counted from the outermost.
        axis: u64,
        /// Its size.
        dim: u64,
        /// What was asked of it.
        found: Pick,
    },
}

impl core::error::Error for SliceError {}

impl fmt::Display for SliceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PicksTooMany { rank, found } => write!(f, "expected at most {rank} picks, found {found}"),
            Self::AxesTooFew { needed, lent } => write!(f, "{needed} axes are needed, {lent} were lent"),
            Self::Step { axis } => write!(f, "expected a step of at least 1 in dimension {axis}, found 0"),
            Self::Range { axis, dim, found } => write!(
                f,
                "expected a range within 0..{dim} in dimension {axis}, found {}..{}",
                found.start, found.stop
            ),
        }
    }
}

/// Elements of one tensor that lie side by side, counted from the tensor's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first element.
    pub first: u64,
    /// How many.
    pub elements: u64,
}

impl Run {
    /// The bytes of the run, counted from the tensor's first; `None` if F4 or F6 elements begin or end inside a byte.
    #[must_use]
    pub fn span(&self, dtype: Dtype) -> Option<Span> {
        let begin = dtype.total_bits(self.first)?;
        let end = dtype.total_bits(self.first.checked_add(self.elements)?)?;
        if (begin | end) & 7 != 0 { None } else { Span::new(begin >> 3, end >> 3) }
    }
}

/// A part of a tensor: an iterator over its runs, in row-major order.
///
/// ```
/// use safestep_core::{Axis, Dtype, Pick, Shape, Slice};
/// let mut axes = [Axis::default(); 2];
/// let columns = [Pick::ALL, Pick { start: 1, stop: 3, step: 1 }];
/// let slice = Slice::of(Shape::new(b"[2,4]"), &columns, &mut axes)?;
/// assert_eq!(slice.dims().collect::<Vec<_>>(), [2, 2]);
/// let bytes: Vec<_> = slice.filter_map(|run| run.span(Dtype::U8)).map(|s| (s.begin().value(), s.end().value())).collect();
/// assert_eq!(bytes, [(1, 3), (5, 7)]);
/// # Ok::<(), safestep_core::SliceError>(())
/// ```
#[derive(Debug)]
pub struct Slice<'s> {
    /// All dimensions; those from `outer` on lie inside a run.
    axes: &'s mut [Axis],
    outer: usize,
    /// The elements of one run.
    run: u64,
    /// Where the runs begin inside the outer dimensions' index.
    offset: u64,
    ended: bool,
}

impl<'s> Slice<'s> {
    /// Takes `picks` of the dimensions of `shape`, outermost first; dimensions without a pick are taken whole.
    ///
    /// # Errors
    /// [`SliceError`]: picks that do not fit the shape, or too few axes.
    pub fn of(shape: Shape<'_>, picks: &[Pick], axes: &'s mut [Axis]) -> Result<Self, SliceError> {
        let (rank, lent) = (shape.rank(), count(axes.len()));
        if count(picks.len()) > rank {
            return Err(SliceError::PicksTooMany { rank, found: count(picks.len()) });
        }
        let Some(axes) = usize::try_from(rank).ok().and_then(|rank| axes.get_mut(..rank)) else {
            return Err(SliceError::AxesTooFew { needed: rank, lent });
        };
        let all_picks = picks.iter().copied().chain(core::iter::repeat(Pick::ALL));
        let mut number = 0_u64;
        for ((axis, dim), pick) in axes.iter_mut().zip(shape.dims()).zip(all_picks) {
            *axis = Axis::new(number, dim, pick)?;
            number = number.wrapping_add(1);
        }
        // In a shape with a 0 the other dimensions may overflow; then there are no elements to count.
        let mut stride = 1_u64;
        for axis in axes.iter_mut().rev() {
            axis.stride = stride;
            stride = stride.wrapping_mul(axis.dim);
        }
        let ended = axes.iter().any(|axis| axis.taken == 0);
        let (mut outer, mut run, mut offset) = (axes.len(), 1_u64, 0_u64);
        while let Some(axis) = outer.checked_sub(1).and_then(|place| axes.get(place)) {
            // With all inner dimensions whole, neighbouring indices are neighbouring elements.
            if axis.step != 1 && axis.taken > 1 {
                break;
            }
            outer = outer.wrapping_sub(1);
            run = axis.taken.wrapping_mul(axis.stride);
            offset = offset.wrapping_add(axis.start.wrapping_mul(axis.stride));
            if axis.taken != axis.dim {
                break;
            }
        }
        Ok(Self { axes, outer, run, offset, ended })
    }

    /// The dimensions of what is taken, outermost first.
    pub fn dims(&self) -> impl Iterator<Item = u64> + use<'_> {
        self.axes.iter().map(|axis| axis.taken)
    }

    /// How many elements are taken.
    #[must_use]
    pub fn elements(&self) -> u64 {
        if self.axes.iter().any(|axis| axis.taken == 0) {
            return 0;
        }
        self.axes.iter().fold(1, |product, axis| product.wrapping_mul(axis.taken))
    }
}

impl Axis {
    fn new(number: u64, dim: u64, pick: Pick) -> Result<Self, SliceError> {
        let stop = if pick.stop == Pick::ALL.stop { dim } else { pick.stop };
        if pick.step == 0 {
            return Err(SliceError::Step { axis: number });
        }
        if stop > dim || pick.start > stop {
            return Err(SliceError::Range { axis: number, dim, found: pick });
        }
        Ok(Self {
            dim,
            start: pick.start,
            step: pick.step,
            taken: steps(stop.wrapping_sub(pick.start), pick.step),
            stride: 0,
            next: 0,
        })
    }
}

/// How many multiples of `step`, 0 included, are below `len`.
fn steps(len: u64, step: u64) -> u64 {
    let whole = len.checked_div(step).unwrap_or_default();
    if whole.wrapping_mul(step) == len { whole } else { whole.wrapping_add(1) }
}

impl Iterator for Slice<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        if self.ended {
            return None;
        }
        let outer = self.axes.get_mut(..self.outer).unwrap_or_default();
        let first = outer.iter().fold(self.offset, |first, axis| {
            let index = axis.start.wrapping_add(axis.next.wrapping_mul(axis.step));
            first.wrapping_add(index.wrapping_mul(axis.stride))
        });
        // The next index, innermost first, as an odometer counts.
        self.ended = true;
        for axis in outer.iter_mut().rev() {
            axis.next = axis.next.wrapping_add(1);
            if axis.next < axis.taken {
                self.ended = false;
                break;
            }
            axis.next = 0;
        }
        Some(Run { first, elements: self.run })
    }
}
