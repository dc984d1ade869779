//! Losses by step become a curve of a bounded number of points, and the curve a chart of dots.
//!
//! Steps share a point once there are more than [`POINTS`] of them: neighbours are merged in pairs as often as need be,
//! so memory does not grow with the run.

/// A loss curve in the making. Steps ascend.
#[derive(Debug, Default)]
pub(crate) struct Curve {
    points: Vec<Point>,
    /// The first step, and how many steps share a point.
    first_step: u64,
    steps_a_point: u64,
    pub(super) entries: u64,
    pub(super) last: Option<(u64, f64)>,
    /// The smallest finite loss, and its first step.
    pub(super) best: Option<(u64, f64)>,
    pub(super) first: Option<(u64, f64)>,
    /// Losses that are not finite; they are not in the points.
    pub(super) non_finite: u64,
}

/// The finite losses of some neighbouring steps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Point {
    pub(super) min: f64,
    pub(super) max: f64,
    sum: f64,
    count: u64,
}

impl Point {
    fn add(&mut self, other: Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other;
            return;
        }
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.count += other.count;
    }

    pub(super) fn mean(&self) -> f64 {
        (self.sum / self.count as f64).clamp(self.min, self.max)
    }
}

impl Curve {
    /// Adds the loss of the next step.
    pub(crate) fn add(&mut self, step: u64, loss: f64) {
        if self.first.is_none() {
            (self.first, self.first_step, self.steps_a_point) = (Some((step, loss)), step, 1);
        }
        self.entries += 1;
        self.last = Some((step, loss));
        if !loss.is_finite() {
            self.non_finite += 1;
            return;
        }
        if self.best.is_none_or(|(_, best)| loss < best) {
            self.best = Some((step, loss));
        }
        let distance = step.saturating_sub(self.first_step);
        while distance / self.steps_a_point >= POINTS as u64 {
            self.merge();
        }
        let place = usize::try_from(distance / self.steps_a_point).unwrap_or(POINTS);
        if place >= self.points.len() {
            self.points.resize(place + 1, Point::default());
        }
        if let Some(point) = self.points.get_mut(place) {
            point.add(Point { min: loss, max: loss, sum: loss, count: 1 });
        }
    }

    /// Twice as many steps share a point from now on.
    fn merge(&mut self) {
        self.steps_a_point = self.steps_a_point.saturating_mul(2);
        let pairs = self.points.chunks(2).map(|pair| {
            let mut merged = Point::default();
            pair.iter().for_each(|point| merged.add(*point));
            merged
        });
        self.points = pairs.collect();
    }

    /// The points that hold losses: step, losses.
    pub(super) fn points(&self) -> impl Iterator<Item = (u64, &Point)> {
        let held = self.points.iter().enumerate().filter(|(_, point)| point.count > 0);
        held.map(|(place, point)| {
            let steps = (place as u64).saturating_mul(self.steps_a_point);
            // In the middle of the steps that share it.
            let middle = (self.steps_a_point - 1) / 2;
            (self.first_step.saturating_add(steps).saturating_add(middle), point)
        })
    }

    /// The smallest and the largest finite loss, a little apart.
    pub(super) fn range(&self) -> Option<(f64, f64)> {
        let mut points = self.points.iter().filter(|point| point.count > 0);
        let first = points.next()?;
        let (low, high) = points
            .fold((first.min, first.max), |(low, high), point| (low.min(point.min), high.max(point.max)));
        // Beyond that the difference of two losses is not finite.
        let (low, high) = (low.clamp(-LARGEST, LARGEST), high.clamp(-LARGEST, LARGEST));
        let least = (low.abs().max(high.abs()) * 1e-6).max(1e-9);
        Some(if high - low < least { (low - least, high + least) } else { (low, high) })
    }

    /// The curve in braille dots, two columns and four rows a character.
    pub(super) fn dots(&self, width: usize, height: usize) -> Vec<String> {
        let (Some((low, high)), true) = (self.range(), width > 0 && height > 0) else { return Vec::new() };
        let (columns, rows) = (width * 2, height * 4);
        let mut cells = vec![vec![0_u8; width]; height];
        let row_of = |loss: f64| {
            let share = ((high - loss.clamp(low, high)) / (high - low)).clamp(0.0, 1.0);
            (share * (rows - 1) as f64).round() as usize
        };
        let last = self.points.len().max(2) - 1;
        for (place, point) in self.points.iter().enumerate().filter(|(_, point)| point.count > 0) {
            let column = place * (columns - 1) / last;
            for row in row_of(point.max)..=row_of(point.min) {
                if let Some(cell) = cells.get_mut(row / 4).and_then(|cells| cells.get_mut(column / 2)) {
                    *cell |= DOTS[row % 4][column % 2];
                }
            }
        }
        let char_of = |cell: u8| char::from_u32(0x2800 + u32::from(cell)).unwrap_or(' ');
        cells.into_iter().map(|cells| cells.into_iter().map(char_of).collect()).collect()
    }
}

/// The bits of the dots of a braille character, by row and column (Unicode 15, "Braille Patterns").
const DOTS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

/// More than a drawing has columns; a power of two.
const POINTS: usize = 2048;

/// Larger losses stand at the edge.
const LARGEST: f64 = 1e300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_is_a_short_curve() {
        let mut curve = Curve::default();
        for step in 0..1_000_000_u64 {
            curve.add(step + 7, if step % 1000 == 3 { f64::NAN } else { step as f64 });
        }
        assert!(curve.points.len() <= POINTS && curve.points.len() > POINTS / 4);
        assert_eq!((curve.entries, curve.non_finite), (1_000_000, 1000));
        assert_eq!((curve.first, curve.best), (Some((7, 0.0)), Some((7, 0.0))));
        assert_eq!((curve.last, curve.range()), (Some((1_000_006, 999_999.0)), Some((0.0, 999_999.0))));
        // The last point may be half full.
        assert!(curve.points().all(|(step, point)| (point.mean() + 7.0 - step as f64).abs() <= 256.0));
        let ends = [u64::MAX, 0].map(|first| {
            let mut curve = Curve::default();
            curve.add(first, 1.0);
            curve.add(u64::MAX, f64::MAX);
            curve.add(u64::MAX, -f64::MAX);
            curve.dots(10, 2).len()
        });
        assert_eq!(ends, [2, 2]);
    }

    #[test]
    fn dots_stand_where_losses_are() {
        let mut curve = Curve::default();
        assert!(curve.dots(4, 1).is_empty());
        (0..8).for_each(|step| curve.add(step, -(step as f64)));
        assert_eq!(curve.dots(4, 2), ["⠑⢄⠀⠀", "⠀⠀⠑⢄"]);
        let mut flat = Curve::default();
        (0..8).for_each(|step| flat.add(step, 2.0));
        assert_eq!(flat.dots(4, 1), ["⠒⠒⠒⠒"]);
    }
}
