//! Turns the shapes of an accepted file into slices, and holds their runs against a walk over every element.

use safestep_core::{Axis, Dtype, Pick, Run, Shape, Slice, SliceError};

use super::recipe;
use crate::headers::random::Random;
use crate::twin::Model;

/// Tensors of more elements are not walked over.
const ELEMENTS_MAX: u64 = 2_000;

/// Takes a few slices of each tensor, some of them out of range.
///
/// # Panics
/// When a slice's runs are not the elements of the slice.
pub fn of_every_tensor(bytes: &[u8], file_len: u64, model: &Model) {
    let random = &mut Random::new(recipe::digest(bytes) ^ file_len);
    for tensor in &model.tensors {
        let dtype = Dtype::from_name(&tensor.dtype).expect("a dtype");
        let text = format!("{:?}", tensor.shape);
        for _ in 0..3 {
            let picks: Vec<Pick> = tensor.shape.iter().map(|dim| pick(random, *dim)).collect();
            let picks = &picks[..random.below(picks.len() + 1)];
            of_shape(Shape::new(text.as_bytes()), dtype, &tensor.shape, picks);
        }
    }
}

fn pick(random: &mut Random, dim: u64) -> Pick {
    let below = |random: &mut Random, end: u64| random.bits() % end.max(1);
    match random.below(10) {
        0..3 => Pick::ALL,
        3 => Pick::one(below(random, dim)),
        4 if random.chance(30) => {
            Pick { start: below(random, 9), stop: below(random, 9), step: below(random, 3) }
        }
        4 if random.chance(30) => Pick { start: random.bits(), stop: random.bits(), step: random.bits() },
        _ => {
            let start = below(random, dim.saturating_add(1));
            let stop = start + below(random, (dim - start).saturating_add(1));
            Pick { start, stop, step: random.pick(&[1, 1, 1, 2, 3, 7, u64::MAX]) }
        }
    }
}

/// One slice of a shape against the definition.
fn of_shape(shape: Shape<'_>, dtype: Dtype, dims: &[u64], picks: &[Pick]) {
    let mut axes = vec![Axis::default(); dims.len()];
    if let Some(fewer) = dims.len().checked_sub(1) {
        let expected = SliceError::AxesTooFew { needed: dims.len() as u64, lent: fewer as u64 };
        assert_eq!(Slice::of(shape, picks, &mut axes[..fewer]).err(), Some(expected));
    }
    let slice = match (Slice::of(shape, picks, &mut axes), first_fault(dims, picks)) {
        (Ok(slice), None) => slice,
        (Err(error), Some(expected)) => return assert_eq!(error, expected, "{picks:?} of {dims:?}"),
        (found, expected) => panic!("{picks:?} of {dims:?}: {found:?}, but {expected:?}"),
    };
    let indices: Vec<(Pick, u64)> =
        dims.iter().zip(whole(dims, picks)).map(|(dim, pick)| (pick, taken(pick, *dim))).collect();
    assert!(slice.dims().eq(indices.iter().map(|(_, taken)| *taken)), "{picks:?} of {dims:?}");
    let elements =
        indices.iter().fold(1_u128, |product, (_, taken)| product.saturating_mul(u128::from(*taken)));
    let none = indices.iter().any(|(_, taken)| *taken == 0);
    assert_eq!(u128::from(slice.elements()), if none { 0 } else { elements }, "{picks:?} of {dims:?}");
    if none || elements <= u128::from(ELEMENTS_MAX) {
        let runs: Vec<Run> = slice.collect();
        runs.iter().for_each(|run| span(*run, dtype));
        let found = runs.iter().flat_map(|run| run.first..run.first + run.elements);
        let expected = if none { Vec::new() } else { walk(dims, &indices) };
        assert!(found.eq(expected.iter().copied()), "{picks:?} of {dims:?}: {runs:?} are not {expected:?}");
    }
}

/// The first pick, outermost first, that cannot be taken.
fn first_fault(dims: &[u64], picks: &[Pick]) -> Option<SliceError> {
    let faulty = |((axis, dim), pick): ((u64, &u64), Pick)| {
        let stop = if pick.stop == u64::MAX { *dim } else { pick.stop };
        if pick.step == 0 {
            Some(SliceError::Step { axis })
        } else if stop > *dim || pick.start > stop {
            Some(SliceError::Range { axis, dim: *dim, found: pick })
        } else {
            None
        }
    };
    (0..).zip(dims).zip(picks.iter().copied()).find_map(faulty)
}

/// A pick for each dimension.
fn whole<'a>(dims: &'a [u64], picks: &'a [Pick]) -> impl Iterator<Item = Pick> + 'a {
    let picks = picks.iter().copied().chain(std::iter::repeat(Pick::ALL));
    dims.iter()
        .zip(picks)
        .map(|(dim, pick)| if pick.stop == u64::MAX { Pick { stop: *dim, ..pick } } else { pick })
}

/// How many indices a pick takes.
fn taken(pick: Pick, dim: u64) -> u64 {
    assert!(pick.stop <= dim);
    (pick.stop - pick.start).div_ceil(pick.step)
}

/// The flat numbers of the elements, in row-major order.
fn walk(dims: &[u64], indices: &[(Pick, u64)]) -> Vec<u64> {
    let mut flat = vec![0_u64];
    for (dim, (pick, taken)) in dims.iter().zip(indices) {
        let inner = |outer: &u64| {
            let outer = *outer;
            (0..*taken).map(move |number| outer * dim + pick.start + number * pick.step)
        };
        flat = flat.iter().flat_map(inner).collect();
    }
    flat
}

/// The bytes of a run, where it has whole ones.
fn span(run: Run, dtype: Dtype) {
    let bits = u128::from(dtype.bits());
    let (begin, end) = (u128::from(run.first) * bits, u128::from(run.first + run.elements) * bits);
    let expected = (begin % 8 == 0 && end % 8 == 0).then_some((begin / 8, end / 8));
    let found = run.span(dtype).map(|span| (span.begin().value().into(), span.end().value().into()));
    assert_eq!(found, expected, "{run:?} of {dtype}");
}
