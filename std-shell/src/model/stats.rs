//! Blocks of numbers become statistics: twice the same blocks, in constant memory.
//!
//! The first pass, [`Extent`], counts, adds and finds the ends; the second, [`Spread`], knows from it the mean and the bins
//! of the histogram. What is no finite number is counted, and takes part in nothing else. Sums are f64 and compensated;
//! those of the second pass are of scaled numbers, so that they neither overflow nor drown.

use safestep_core::Dtype;
use safestep_core::numbers::Number;

use crate::model::values::Block;

/// What is known of numbers after the first pass.
#[derive(Clone, Debug, Default)]
pub struct Extent {
    dtype: Option<Dtype>,
    counts: Counts,
    least: f64,
    greatest: f64,
    /// The same of integers that are too long for an f64, and their sum.
    least_long: i128,
    greatest_long: i128,
    sum_long: i128,
    /// The sum of the finite numbers, unless it overflows.
    sum: Sum,
    measures: Vec<f64>,
}

/// How many numbers there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of them.
    pub elements: u64,
    /// Those that are neither NaN nor infinite.
    pub finite: u64,
    /// Zeros of either sign.
    pub zeros: u64,
    /// Those that are not a number.
    pub nan: u64,
    /// Bytes of BOOL other than 0 and 1.
    pub not_boolean: u64,
    /// Positive infinities.
    pub positive_infinities: u64,
    /// Negative infinities.
    pub negative_infinities: u64,
}

impl Extent {
    /// Takes a block into account.
    pub fn add(&mut self, block: &Block<'_>) {
        if self.dtype.is_none() {
            (self.least, self.greatest) = (f64::INFINITY, f64::NEG_INFINITY);
            (self.least_long, self.greatest_long) = (i128::MAX, i128::MIN);
        }
        self.dtype = Some(block.dtype());
        if matches!(block.dtype(), Dtype::I64 | Dtype::U64) {
            for long in block.numbers().filter_map(long) {
                self.least_long = self.least_long.min(long);
                self.greatest_long = self.greatest_long.max(long);
                self.sum_long = self.sum_long.saturating_add(long);
            }
        }
        let mut measures = std::mem::take(&mut self.measures);
        block.measures(&mut measures);
        self.add_measures(&measures);
        self.measures = measures;
        if block.dtype() == Dtype::Bool {
            let odd = std::mem::take(&mut self.counts.nan);
            self.counts.not_boolean = self.counts.not_boolean.saturating_add(odd);
        }
    }

    fn add_measures(&mut self, measures: &[f64]) {
        let (mut counts, mut sum) = (self.counts, self.sum);
        counts.elements = counts.elements.saturating_add(measures.len() as u64);
        for &value in measures {
            if value.is_finite() {
                counts.finite = counts.finite.saturating_add(1);
                counts.zeros = counts.zeros.saturating_add((value == 0.0).into());
                self.least = if value < self.least { value } else { self.least };
                self.greatest = if value > self.greatest { value } else { self.greatest };
                sum.add(value);
            } else if value.is_nan() {
                counts.nan = counts.nan.saturating_add(1);
            } else if value > 0.0 {
                counts.positive_infinities = counts.positive_infinities.saturating_add(1);
            } else {
                counts.negative_infinities = counts.negative_infinities.saturating_add(1);
            }
        }
        (self.counts, self.sum) = (counts, sum);
    }

    /// The mean, if the sum has not overflowed.
    fn mean(&self) -> Option<f64> {
        let sum = match self.dtype? {
            Dtype::I64 | Dtype::U64 => self.sum_long as f64,
            _ => self.sum.value(),
        };
        Some(sum / self.counts.finite as f64).filter(|mean| mean.is_finite())
    }

    /// An end as a number of the dtype.
    fn number(&self, measure: f64, long: i128) -> Option<Number> {
        if self.counts.finite == 0 {
            return None;
        }
        Some(match self.dtype? {
            Dtype::Bool => Number::Bool(measure != 0.0),
            Dtype::U8 | Dtype::U16 | Dtype::U32 => Number::Unsigned(measure as u64),
            Dtype::I8 | Dtype::I16 | Dtype::I32 => Number::Signed(measure as i64),
            Dtype::U64 => Number::Unsigned(u64::try_from(long).ok()?),
            Dtype::I64 => Number::Signed(i64::try_from(long).ok()?),
            Dtype::F64 | Dtype::C64 => Number::F64(measure),
            // What came of an f32 goes back into it.
            _ => Number::F32(measure as f32),
        })
    }
}

fn long(number: Number) -> Option<i128> {
    match number {
        Number::Unsigned(value) => Some(value.into()),
        Number::Signed(value) => Some(value.into()),
        _ => None,
    }
}

/// What the second pass adds to the first.
#[derive(Clone, Debug)]
pub struct Spread {
    extent: Extent,
    /// The mean, or zero in its place.
    center: f64,
    /// A power of two that brings the largest number close to 1.
    scale: f64,
    /// Of the scaled distances from the center.
    sum: Sum,
    squares: Sum,
    histogram: Option<Histogram>,
}

impl Spread {
    /// Made for the same blocks once more.
    pub fn of(extent: Extent) -> Self {
        let largest = extent.greatest.abs().max(extent.least.abs());
        let scale = if extent.counts.finite > 0 { power_below(largest) } else { 1.0 };
        let center = extent.mean().unwrap_or_default();
        let whole = !matches!(extent.number(0.0, 0), Some(Number::F32(_) | Number::F64(_)));
        let histogram =
            (extent.counts.finite > 0).then(|| Histogram::over(extent.least, extent.greatest, whole));
        Self { extent, center, scale, sum: Sum::default(), squares: Sum::default(), histogram }
    }

    /// Takes a block into account.
    pub fn add(&mut self, block: &Block<'_>) {
        let Some(histogram) = &mut self.histogram else { return };
        let mut measures = std::mem::take(&mut self.extent.measures);
        block.measures(&mut measures);
        let (mut sum, mut squares) = (self.sum, self.squares);
        let (scale, center) = (self.scale, self.center * self.scale);
        for &value in measures.iter().filter(|value| value.is_finite()) {
            let distance = value * scale - center;
            sum.add(distance);
            squares.add(distance * distance);
            histogram.add(value);
        }
        (self.sum, self.squares) = (sum, squares);
        self.extent.measures = measures;
    }

    /// All that was found.
    pub fn finish(self) -> Stats {
        let extent = &self.extent;
        let finite = extent.counts.finite as f64;
        // The center is rounded at the least, so the distances do not add up to zero.
        let rest = self.sum.value() / finite;
        let variance = (self.squares.value() / finite - rest * rest).max(0.0);
        let any = extent.counts.finite > 0;
        Stats {
            counts: extent.counts,
            min: extent.number(extent.least, extent.least_long),
            max: extent.number(extent.greatest, extent.greatest_long),
            mean: any.then(|| extent.mean().unwrap_or(rest / self.scale)),
            std: any.then(|| variance.sqrt() / self.scale),
            histogram: self.histogram,
        }
    }
}

/// The largest power of two that makes that number at most 1; within the range where both it and its inverse are normal.
fn power_below(largest: f64) -> f64 {
    let exponent = (largest.to_bits() >> 52) as i32 & 0x7FF;
    let power = 1_i32.saturating_sub(exponent).saturating_add(1021).clamp(-1021, 1021);
    f64::from_bits(u64::try_from(power.saturating_add(1023)).unwrap_or(1023) << 52)
}

/// Statistics of numbers; of complex ones, of their magnitudes. `None` where no number is finite.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// How many there are of each kind.
    pub counts: Counts,
    /// The least finite number.
    pub min: Option<Number>,
    /// The greatest finite number.
    pub max: Option<Number>,
    /// The mean of the finite numbers.
    pub mean: Option<f64>,
    /// Their standard deviation: of the population, so divided by their count.
    pub std: Option<f64>,
    /// How they are distributed.
    pub histogram: Option<Histogram>,
}

/// Finite numbers, counted in bins of the same width, whose edges are short decimal numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// One more than there are bins; ascending.
    edges: Vec<f64>,
    counts: Vec<u64>,
    /// Where a number stands, in bins: times this, less that.
    per_width: f64,
    offset: f64,
}

/// The bins, at the most; a round width and round edges need one or two more than its half.
const BINS: f64 = 20.0;

impl Histogram {
    /// Empty bins from `least` to `greatest`; their edges are integers if `whole`.
    fn over(least: f64, greatest: f64, whole: bool) -> Self {
        let largest = greatest.abs().max(least.abs());
        let mut width = greatest / BINS - least / BINS;
        if width == 0.0 {
            width = if largest == 0.0 { 1.0 } else { largest / BINS };
        }
        // Edges that are distinct numbers.
        width = width.max(largest * f64::EPSILON * 4.0).max(f64::MIN_POSITIVE);
        let (digit, exponent) = round_up(if whole { width.max(1.0) } else { width });
        let width = decimal(digit, exponent);
        let edge = |place: i128| decimal(place.saturating_mul(digit), exponent);
        let mut place = (least / width).floor() as i128;
        while edge(place) > least {
            place = place.saturating_sub(1);
        }
        while edge(place.saturating_add(1)) <= least {
            place = place.saturating_add(1);
        }
        let mut edges = vec![edge(place)];
        while edges.last().is_some_and(|&last| last <= greatest) {
            place = place.saturating_add(1);
            edges.push(edge(place));
        }
        // What is near the ends of f64 has its round edges beyond them; the outermost are the ends then.
        edges.iter_mut().for_each(|edge| *edge = edge.clamp(f64::MIN, f64::MAX));
        let counts = vec![0; edges.len().saturating_sub(1)];
        let per_width = 1.0 / width;
        let offset = edges.first().map_or(0.0, |first| first * per_width);
        Self { edges, counts, per_width, offset }
    }

    fn add(&mut self, value: f64) {
        let above = |place: usize| self.edges.get(place).is_some_and(|&edge| value >= edge);
        // The guess may have been rounded over an edge.
        let mut place = ((value * self.per_width - self.offset) as usize).min(self.counts.len());
        while place > 0 && !above(place) {
            place = place.saturating_sub(1);
        }
        while above(place.saturating_add(1)) {
            place = place.saturating_add(1);
        }
        // Nothing is above the last edge, but one number may be at it: the largest of all.
        let last = self.counts.len().saturating_sub(1);
        if let Some(count) = self.counts.get_mut(place.min(last)) {
            *count = count.saturating_add(1);
        }
    }

    /// The edges, ascending; one more than there are bins.
    pub fn edges(&self) -> &[f64] {
        &self.edges
    }

    /// How many numbers are in each bin: at least its lower edge, and less than the upper one; but [`f64::MAX`], which is
    /// no less than any edge, is in the last.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }
}

/// The least number of 1, 2 or 5 times a power of ten that is not below: digit and exponent.
fn round_up(width: f64) -> (i128, i32) {
    let exponent = width.log10().floor() as i32;
    let tried = [exponent.saturating_sub(1), exponent, exponent.saturating_add(1)];
    let mut all = tried.into_iter().flat_map(|exponent| [1, 2, 5].map(|digit| (digit, exponent)));
    all.find(|&(digit, exponent)| decimal(digit, exponent) >= width).unwrap_or((1, exponent))
}

/// The f64 nearest to `digits` times ten to the `exponent`.
fn decimal(digits: i128, exponent: i32) -> f64 {
    format!("{digits}e{exponent}").parse().unwrap_or_default()
}

/// A sum that keeps what rounding would lose (Knuth's exact addition of two).
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        let added = sum - self.sum;
        self.lost += (self.sum - (sum - added)) + (value - added);
        self.sum = sum;
    }

    fn value(self) -> f64 {
        self.sum + self.lost
    }
}
