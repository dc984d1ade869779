//! Stored ids as the three types of integer, and the check that rides along.

use safestep::tokens::{IdError, Token, Width, largest_id, widen, widen_pair};
use safestep_tests::headers::random::Random;

fn bytes(width: Width, ids: &[u32]) -> Vec<u8> {
    ids.iter()
        .flat_map(|id| match width {
            Width::Two => u16::try_from(*id).unwrap().to_le_bytes().to_vec(),
            Width::Four => id.to_le_bytes().to_vec(),
        })
        .collect()
}

/// Every id is widened to itself, for each type, at any length and alignment, and the first bad one is found.
#[test]
fn ids_are_widened_and_the_first_bad_one_is_told() {
    let mut random = Random::new(4);
    for len in (0..40).chain([2047, 2048, 2049, 4096, 4097, 5000, 6145]) {
        for width in [Width::Two, Width::Four] {
            let ids: Vec<u32> = (0..len).map(|_| random.below(50_000) as u32).collect();
            each::<i64>(width, &ids, &mut random);
            each::<u32>(width, &ids, &mut random);
            each::<i32>(width, &ids, &mut random);
        }
    }
}

fn each<T: Token + PartialEq + std::fmt::Debug>(width: Width, ids: &[u32], random: &mut Random) {
    let file = [&[0_u8][..], &bytes(width, ids)].concat();
    let stored = &file[1..];
    let expected: Vec<T> = ids.iter().map(|&id| T::of(id)).collect();
    let mut out = vec![T::of(1); ids.len()];
    for size in [None, Some(50_000)] {
        widen(width, stored, &mut out, largest_id::<T>(size)).unwrap();
        assert_eq!(out, expected);
    }
    let Some(most) = ids.iter().max().copied().filter(|&most| most > 0) else { return };
    for largest in [most, most - 1, random.below(50_000) as u32] {
        let bad = ids.iter().position(|&id| id > largest);
        let error = bad.map(|place| IdError::Id { index: place as u64, found: ids[place], largest });
        assert_eq!(widen(width, stored, &mut out, largest).err(), error);
        let (mut inputs, mut targets) = (vec![T::of(1); ids.len() - 1], vec![T::of(1); ids.len() - 1]);
        let paired = widen_pair(width, stored, &mut inputs, &mut targets, largest);
        assert_eq!(paired.err(), error);
        if error.is_none() {
            assert_eq!((&inputs[..], &targets[..]), (&expected[..ids.len() - 1], &expected[1..]));
        }
    }
}

/// How many ids are looked at together; a place on either side of it is where a mistake would be.
const BLOCK: usize = 2048;

/// Of ids that fill a block, two or three but for one, exactly, or and one more: each place near an edge, alone the bad one, is told.
#[test]
fn a_bad_id_at_the_edge_of_a_block() {
    for width in [Width::Two, Width::Four] {
        for blocks in 1..=3 {
            // For `widen_pair` the first and the last stand beside the blocks.
            for len in blocks * BLOCK - 1..=blocks * BLOCK + 3 {
                edges::<i64>(width, len);
                edges::<u32>(width, len);
                edges::<i32>(width, len);
            }
        }
    }
}

fn edges<T: Token + PartialEq + std::fmt::Debug>(width: Width, len: usize) {
    let ids: Vec<u32> = (0..len as u32).map(|place| place % 1000).collect();
    let expected: Vec<T> = ids.iter().map(|&id| T::of(id)).collect();
    let (mut out, mut inputs, mut targets) =
        (vec![T::of(1); len], vec![T::of(1); len - 1], vec![T::of(1); len - 1]);
    let stored = bytes(width, &ids);
    widen(width, &stored, &mut out, 999).unwrap();
    widen_pair(width, &stored, &mut inputs, &mut targets, 999).unwrap();
    assert_eq!((&out, &inputs[..], &targets[..]), (&expected, &expected[..len - 1], &expected[1..]));
    let near = (0..=len / BLOCK + 1).flat_map(|block| (block * BLOCK).saturating_sub(3)..=block * BLOCK + 3);
    for place in near.chain(len - 3..len).filter(|&place| place < len) {
        let mut stored = stored.clone();
        let bad = bytes(width, &[1000]);
        stored[place * bad.len()..][..bad.len()].copy_from_slice(&bad);
        let error = Err(IdError::Id { index: place as u64, found: 1000, largest: 999 });
        assert_eq!(widen(width, &stored, &mut out, 999), error, "{place} of {len}");
        assert_eq!(widen_pair(width, &stored, &mut inputs, &mut targets, 999), error, "{place} of {len}");
    }
}

#[test]
fn limits_of_the_types() {
    assert_eq!(largest_id::<i64>(None), u32::MAX);
    assert_eq!(largest_id::<u32>(Some(1)), 0);
    assert_eq!(largest_id::<i32>(None), i32::MAX as u32);
    assert_eq!(largest_id::<i32>(Some(u32::MAX)), i32::MAX as u32);
    let stored = u32::MAX.to_le_bytes();
    let mut wide = [0_i64];
    widen(Width::Four, &stored, &mut wide, u32::MAX).unwrap();
    assert_eq!(wide, [4_294_967_295]);
    let error = widen(Width::Four, &stored, &mut [0_i32], u32::MAX).unwrap_err();
    assert_eq!(error.to_string(), "expected ids of at most 2147483647, found 4294967295 as id 0");
    let length = |ids, found| IdError::Length { ids, found }.to_string();
    assert_eq!(length(1, 4), "expected the bytes of 1 id, found 4 bytes");
    assert_eq!(length(0, 1), "expected the bytes of 0 ids, found 1 byte");
}

#[test]
fn buffers_of_another_length_are_refused() {
    let error = |ids, found| Err(IdError::Length { ids, found });
    assert_eq!(widen(Width::Two, &[0; 5], &mut [0_i64; 2], 9), error(2, 5));
    assert_eq!(widen(Width::Four, &[0; 4], &mut [0_i64; 2], 9), error(2, 4));
    assert_eq!(widen_pair(Width::Two, &[0; 4], &mut [0_i64; 2], &mut [0; 2], 9), error(3, 4));
    assert_eq!(widen_pair(Width::Two, &[0; 6], &mut [0_i64; 2], &mut [0; 1], 9), error(3, 6));
    assert_eq!(widen_pair::<i64>(Width::Two, &[0; 2], &mut [], &mut [], 9), Ok(()));
}
