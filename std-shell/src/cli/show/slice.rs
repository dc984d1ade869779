//! The text of `--slice` and a shape become picks, as Python's and NumPy's indexing has it.
//!
//! Ranges are clipped, an index is not. Nothing here overflows, whatever the numbers.

use std::str::FromStr;

use safestep_core::{Pick, Shape};

use crate::report::{Picked, plural};

/// What to take of the dimensions, before a shape is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SliceText {
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Index(i128),
    Range { start: Option<i128>, stop: Option<i128>, step: u64 },
}

impl FromStr for SliceText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Result<_, String> = text.split(',').map(|part| Part::read(part.trim())).collect();
        Ok(Self { parts: parts? })
    }
}

impl SliceText {
    /// What is taken of a tensor of that shape; dimensions that nothing is said of are taken whole.
    ///
    /// # Errors
    /// A sentence about the dimension that it does not fit.
    pub(super) fn of(&self, shape: &Shape<'_>) -> Result<Vec<Picked>, String> {
        let (rank, found) = (shape.rank(), self.parts.len() as u64);
        if found > rank {
            return Err(format!("the slice has {}, and the tensor is of rank {rank}", plural(found, "part")));
        }
        let whole = Part::Range { start: None, stop: None, step: 1 };
        let parts = self.parts.iter().chain(std::iter::repeat(&whole));
        shape.dims().zip(parts).enumerate().map(|(axis, (dim, part))| part.of(axis, dim)).collect()
    }
}

impl Part {
    fn read(text: &str) -> Result<Self, String> {
        let pieces: Vec<&str> = text.split(':').map(str::trim).collect();
        let bound = |text: &str| if text.is_empty() { Ok(None) } else { integer(text).map(Some) };
        match pieces.as_slice() {
            [""] => {
                Err("expected an index or a range such as 0:2 for each dimension, found none".to_string())
            }
            [index] => Ok(Self::Index(integer(index)?)),
            [start, stop] => Ok(Self::Range { start: bound(start)?, stop: bound(stop)?, step: 1 }),
            [start, stop, step] => {
                let (start, stop, step) = (bound(start)?, bound(stop)?, bound(step)?.unwrap_or(1));
                if step < 1 {
                    return Err(format!("expected a step of at least 1, found {step}"));
                }
                Ok(Self::Range { start, stop, step: u64::try_from(step).unwrap_or(u64::MAX) })
            }
            _ => Err(format!("expected at most start:stop:step, found {text}")),
        }
    }

    fn of(self, axis: usize, dim: u64) -> Result<Picked, String> {
        let size = i128::from(dim);
        let from_end = |index: i128| if index < 0 { index.saturating_add(size) } else { index };
        match self {
            Self::Index(index) => match u64::try_from(from_end(index)) {
                Ok(found) if found < dim => Ok(Picked::of(Pick::one(found), dim, false)),
                _ => Err(format!("index {index} is out of range for dimension {axis}, which has size {dim}")),
            },
            Self::Range { start, stop, step } => {
                // Within 0..=dim, so it fits.
                let clip = |index| u64::try_from(from_end(index).clamp(0, size)).unwrap_or(dim);
                let start = clip(start.unwrap_or(0));
                let stop = clip(stop.unwrap_or(size)).max(start);
                Ok(Picked::of(Pick { start, stop, step }, dim, true))
            }
        }
    }
}

/// An integer; one that is too large for any dimension becomes another of the kind.
fn integer(text: &str) -> Result<i128, String> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("expected an integer, found {text}"));
    }
    const FAR: i128 = 1 << 100;
    let value = digits.parse::<i128>().unwrap_or(FAR).min(FAR);
    Ok(if text.starts_with('-') { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Python takes of `0..dim`, found by walking and counting.
    fn twin(dim: i64, start: Option<i64>, stop: Option<i64>, step: i64) -> Vec<u64> {
        let indices: Vec<i64> = (0..dim).collect();
        let bound = |bound: i64| if bound < 0 { dim + bound } else { bound };
        let mut from = start.map_or(0, bound);
        while from < 0 {
            from += 1;
        }
        let stop = stop.map_or(dim, bound);
        let mut taken = Vec::new();
        while let Some(&index) = indices.get(usize::try_from(from).unwrap()) {
            if index >= stop {
                break;
            }
            taken.push(index.try_into().unwrap());
            from += step;
        }
        taken
    }

    #[test]
    fn ranges_are_those_of_python() {
        let bounds = || [None].into_iter().chain((-8..=8).map(Some));
        let text = |bound: Option<i64>| bound.map(|bound| bound.to_string()).unwrap_or_default();
        for dim in 0..=6 {
            let shape = format!("[{dim}]");
            for (start, stop, step) in bounds()
                .flat_map(|start| bounds().map(move |stop| (start, stop)))
                .flat_map(|(start, stop)| (1..=8).map(move |step| (start, stop, step)))
            {
                let slice = format!("{}:{}:{step}", text(start), text(stop));
                let picked = slice.parse::<SliceText>().unwrap().of(&Shape::new(shape.as_bytes())).unwrap();
                let found: Vec<u64> = (0..picked[0].taken).map(|place| picked[0].index(place)).collect();
                assert_eq!(found, twin(dim, start, stop, step), "{slice} of {dim}");
                assert!(picked[0].keeps);
                // The core takes as many.
                let mut axes = [safestep_core::Axis::default()];
                let taken =
                    safestep_core::Slice::of(Shape::new(shape.as_bytes()), &[picked[0].pick], &mut axes);
                assert_eq!(taken.unwrap().elements(), picked[0].taken);
            }
        }
    }

    #[test]
    fn indices_are_those_of_python() {
        for dim in 0..=5_i64 {
            let shape = format!("[{dim}]");
            for index in -7..=7_i64 {
                let picked =
                    index.to_string().parse::<SliceText>().unwrap().of(&Shape::new(shape.as_bytes()));
                if (-dim..dim).contains(&index) {
                    let picked = picked.unwrap();
                    assert_eq!((picked[0].index(0), picked[0].taken), (index.rem_euclid(dim) as u64, 1));
                    assert!(!picked[0].keeps);
                } else {
                    assert!(picked.unwrap_err().contains("out of range for dimension 0"));
                }
            }
        }
    }

    #[test]
    fn what_is_no_slice_is_refused() {
        let table = [
            ("", "expected an index or a range"),
            ("0,", "expected an index or a range"),
            (",", "expected an index or a range"),
            ("a", "expected an integer, found a"),
            ("1.5", "expected an integer, found 1.5"),
            ("0x1", "expected an integer, found 0x1"),
            ("--1", "expected an integer, found --1"),
            ("-", "expected an integer, found -"),
            ("::0", "expected a step of at least 1, found 0"),
            ("::-1", "expected a step of at least 1, found -1"),
            ("1:2:3:4", "expected at most start:stop:step"),
            ("...", "expected an integer, found ..."),
        ];
        for (text, complaint) in table {
            let error = text.parse::<SliceText>().unwrap_err();
            assert!(error.starts_with(complaint), "{text}: {error}");
        }
        for (text, shape, complaint) in [
            ("0,0", "[3]", "the slice has 2 parts, and the tensor is of rank 1"),
            (":,:,:", "[3, 0]", "the slice has 3 parts, and the tensor is of rank 2"),
            ("0", "[]", "the slice has 1 part, and the tensor is of rank 0"),
            (":,9", "[3,9]", "index 9 is out of range for dimension 1, which has size 9"),
        ] {
            let error = text.parse::<SliceText>().unwrap().of(&Shape::new(shape.as_bytes())).unwrap_err();
            assert_eq!(error, complaint);
        }
    }

    #[test]
    fn numbers_beyond_any_machine_are_clipped() {
        let far = "9".repeat(60);
        let shape = format!("[{}, 0]", u64::MAX);
        for (text, expected) in [
            (format!("-{far}:{far}"), (0, u64::MAX)),
            (format!("{far}:"), (u64::MAX, 0)),
            (format!("::{far}"), (0, 1)),
            (format!("-1:{far}"), (u64::MAX - 1, 1)),
        ] {
            let picked = text.parse::<SliceText>().unwrap().of(&Shape::new(shape.as_bytes())).unwrap();
            assert_eq!((picked[0].index(0), picked[0].taken), expected, "{text}");
        }
    }
}
