//! Parts of tensors: the runs of a slice are the elements that plain nested loops would take, in the same order, whatever
//! the rank; and elements are lent in place exactly where their type and alignment allow it.

use safestep_core::numbers::Number;
use safestep_core::{Axis, Dtype, Frame, Limits, Pick, Shape, Slice, SliceError, ViewError};
use safestep_tests::headers::random::Random;

/// The numbers of the elements that the picks take, by nested loops.
fn naive(dims: &[u64], picks: &[Pick]) -> Vec<u64> {
    let mut elements = vec![0];
    for (axis, &dim) in dims.iter().enumerate() {
        let pick = picks.get(axis).copied().unwrap_or(Pick::ALL);
        let stop = pick.stop.min(dim);
        let mut next = Vec::new();
        for element in elements {
            let mut index = pick.start;
            while index < stop {
                next.push(element * dim + index);
                index += pick.step;
            }
        }
        elements = next;
    }
    elements
}

#[test]
fn runs_are_what_nested_loops_take() {
    let mut random = Random::new(7);
    let mut merged = 0;
    for _ in 0..20_000 {
        let rank = random.below(6);
        let dims: Vec<u64> = (0..rank).map(|_| random.pick(&[0, 1, 1, 2, 3, 5, 8])).collect();
        let mut below = |count: u64| random.bits() % count;
        let picks: Vec<Pick> = dims
            .iter()
            .take(below(rank as u64 + 1) as usize)
            .map(|&dim| {
                let stop = below(dim + 1);
                let start = below(stop + 1);
                match below(4) {
                    0 => Pick::ALL,
                    1 if dim > 0 => Pick::one(below(dim)),
                    _ => Pick { start, stop, step: 1 + below(4) },
                }
            })
            .collect();
        let text = format!("{dims:?}");
        let mut axes = vec![Axis::default(); rank];
        let slice = Slice::of(Shape::new(text.as_bytes()), &picks, &mut axes).unwrap();
        let expected = naive(&dims, &picks);
        assert_eq!(slice.elements(), expected.len() as u64, "{dims:?} {picks:?}");
        assert_eq!(slice.dims().product::<u64>(), expected.len() as u64);
        let runs: Vec<_> = slice.collect();
        let found: Vec<u64> = runs.iter().flat_map(|run| run.first..run.first + run.elements).collect();
        assert_eq!(found, expected, "{dims:?} {picks:?}");
        merged += usize::from(runs.len() < found.len());
    }
    assert!(merged > 1_000, "runs of several elements were seen {merged} times only");
}

#[test]
fn whole_tensors_and_whole_rows_are_one_run() {
    let cases: &[(&str, &[Pick], usize)] = &[
        ("[]", &[], 1),
        ("[4,5,6]", &[], 1),
        ("[4,5,6]", &[Pick { start: 1, stop: 3, step: 1 }], 1),
        ("[4,5,6]", &[Pick::one(2), Pick { start: 1, stop: 4, step: 1 }], 1),
        ("[4,5,6]", &[Pick::ALL, Pick { start: 1, stop: 4, step: 1 }], 4),
        ("[4,5,6]", &[Pick { start: 0, stop: 4, step: 2 }], 2),
        ("[4,5,6]", &[Pick::ALL, Pick::ALL, Pick { start: 0, stop: 6, step: 2 }], 60),
        // One index is one, whatever the step.
        ("[4,1]", &[Pick::ALL, Pick { start: 0, stop: 1, step: 2 }], 1),
        ("[4,0,6]", &[], 0),
        ("[0,18446744073709551615,18446744073709551615]", &[], 0),
    ];
    for (shape, picks, runs) in cases {
        let mut axes = [Axis::default(); 3];
        let slice = Slice::of(Shape::new(shape.as_bytes()), picks, &mut axes).unwrap();
        assert_eq!(slice.count(), *runs, "{shape} {picks:?}");
    }
}

#[test]
fn picks_that_do_not_fit_say_why() {
    let beyond = Pick { start: 0, stop: 4, step: 1 };
    let reversed = Pick { start: 2, stop: 1, step: 1 };
    let still = Pick { start: 0, stop: 1, step: 0 };
    let cases: &[(&[Pick], usize, SliceError, &str)] = &[
        (
            &[Pick::ALL; 3],
            2,
            SliceError::PicksTooMany { rank: 2, found: 3 },
            "expected at most 2 picks, found 3",
        ),
        (&[], 1, SliceError::AxesTooFew { needed: 2, lent: 1 }, "2 axes are needed, 1 were lent"),
        (
            &[Pick::ALL, still],
            2,
            SliceError::Step { axis: 1 },
            "expected a step of at least 1 in dimension 1, found 0",
        ),
        (
            &[beyond],
            2,
            SliceError::Range { axis: 0, dim: 3, found: beyond },
            "expected a range within 0..3 in dimension 0, found 0..4",
        ),
        (
            &[reversed],
            2,
            SliceError::Range { axis: 0, dim: 3, found: reversed },
            "expected a range within 0..3 in dimension 0, found 2..1",
        ),
    ];
    for (picks, lent, expected, words) in cases {
        let mut axes = vec![Axis::default(); *lent];
        assert_eq!(Slice::of(Shape::new(b"[3, 3]"), picks, &mut axes).err(), Some(*expected));
        assert_eq!(expected.to_string(), *words);
    }
}

#[test]
fn sub_byte_runs_have_bytes_only_at_byte_bounds() {
    let run = |first, elements| safestep_core::Run { first, elements };
    let bytes = |run: safestep_core::Run, dtype| {
        run.span(dtype).map(|span| (span.begin().value(), span.end().value()))
    };
    assert_eq!(bytes(run(2, 4), Dtype::F4), Some((1, 3)));
    assert_eq!(bytes(run(1, 4), Dtype::F4), None);
    assert_eq!(bytes(run(4, 8), Dtype::F6E2M3), Some((3, 9)));
    assert_eq!(bytes(run(2, 4), Dtype::F6E2M3), None);
    assert_eq!(bytes(run(3, 2), Dtype::C64), Some((24, 40)));
    assert_eq!(bytes(run(u64::MAX, 1), Dtype::U8), None);
}

/// Elements are lent for the right type at the right address only; the bytes are always there.
#[test]
fn elements_are_lent_where_they_are_aligned() {
    let header = br#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  "#;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header);
    file.extend(1.5_f32.to_le_bytes());
    file.extend((-2.0_f32).to_le_bytes());
    let frame = Frame::read(&file, file.len() as u64, Limits::default()).unwrap();
    let judged = frame.header(frame.header_span().of(&file).unwrap()).unwrap().judge().unwrap();
    let entry = judged.get("w").unwrap();
    let data = frame.data_span().of(&file).unwrap();
    // Eight bytes of room on either side, so that some address below is a multiple of four and others are not.
    let mut room = [0_u8; 16];
    let mut aligned = 0;
    for shift in 0..8 {
        room[shift..shift + 8].copy_from_slice(data);
        let view = entry.view(&room[shift..shift + 8]).unwrap();
        assert_eq!(view.bytes(), data);
        match view.elements::<f32>() {
            Ok(elements) => {
                assert_eq!(elements, [1.5, -2.0]);
                aligned += 1;
            }
            Err(error) => assert_eq!(error, ViewError::Misaligned { expected: 4 }),
        }
        assert_eq!(view.elements::<u32>(), Err(ViewError::Dtype { found: Dtype::F32 }));
        assert_eq!(view.elements::<f64>(), Err(ViewError::Dtype { found: Dtype::F32 }));
        // As numbers, wherever they stand.
        assert_eq!(
            [0, 1, 2].map(|index| view.number(index)),
            [Some(1.5), Some(-2.0), None].map(|value| value.map(Number::F32))
        );
        let (mut floats, mut doubles) = ([0.0; 2], [0.0; 2]);
        view.decode_f32(&mut floats).unwrap();
        view.decode_f64(&mut doubles).unwrap();
        assert_eq!((floats, doubles), ([1.5, -2.0], [1.5, -2.0]));
        assert!(view.decode_f32(&mut floats[1..]).is_err() && view.decode_f64(&mut doubles[1..]).is_err());
    }
    assert_eq!(aligned, 2);
    for (error, words) in [
        (ViewError::Dtype { found: Dtype::F32 }, "expected a type for F32, found one for another dtype"),
        (ViewError::Misaligned { expected: 4 }, "expected bytes at a multiple of 4, found them elsewhere"),
        (ViewError::Endian, "expected a little-endian machine for elements of several bytes"),
    ] {
        assert_eq!(error.to_string(), words);
    }
    assert!(entry.view(&room[..7]).is_none());
}
