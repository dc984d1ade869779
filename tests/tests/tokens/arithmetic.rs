//! Numbers alone: the generator, and where windows are.

use rand_pcg::rand_core::Rng as _;
use safestep::tokens::{
    Cursor, Pcg32, Run, ShapeError, Share, Windows, fits, phase_bound, window_start, windows_left,
};
use safestep_tests::headers::random::Random;
use safestep_tests::tokens::twin::Generator;

use super::number;

#[test]
fn the_vectors_of_the_format() {
    let mut generator = Pcg32::seed(42, 54);
    assert_eq!((generator.state(), generator.inc()), (0x1857_06b8_2c2e_03f8, 0x6d));
    let fresh = generator;
    let outputs = [
        0xa15c_02b7_u32,
        0x7b47_f409,
        0xba1d_3330,
        0x83d2_f293,
        0xbfa4_784b,
        0xcbed_606e,
        0xbfc6_a3ad,
        0x812f_ff6d,
    ];
    for (drawn, output) in outputs.into_iter().enumerate() {
        if drawn == 6 {
            assert_eq!(generator.state(), 0xbeb6_d0b7_3fdb_974a);
        }
        assert_eq!(generator.draw(), output);
    }
    let table: &[(u32, &[u32])] = &[
        (6, &[3, 3, 2, 1, 1, 4, 5, 3, 0, 2, 0, 1]),
        (1024, &[695, 9, 816, 659, 75, 110, 941, 877, 90, 912, 766, 505]),
        (0x8000_0001, &[559_678_134, 974_992_175, 64_156_306, 1_067_743_306]),
        (1, &[0, 0]),
    ];
    for (bound, expected) in table {
        let mut generator = fresh;
        let found: Vec<u32> = expected.iter().map(|_| generator.below(number(*bound))).collect();
        assert_eq!(found, *expected, "below {bound}");
    }
    let mut generator = fresh;
    generator.below(number(1));
    let mut drawn = fresh;
    drawn.draw();
    assert_eq!(generator, drawn, "below 1 draws once");
    assert_eq!(Pcg32::restore(1, 2), None);
    assert_eq!(Pcg32::restore(fresh.state(), fresh.inc()), Some(fresh));
}

#[test]
fn the_generator_is_that_of_rand_and_of_the_twin() {
    let mut random = Random::new(1);
    let seeds: Vec<u64> = [0, 1, 42, u64::MAX].into_iter().chain((0..200).map(|_| random.bits())).collect();
    for seed in seeds {
        for sequence in [0, 54, 1 << 63, u64::MAX, random.bits()] {
            let mut generator = Pcg32::seed(seed, sequence);
            let mut reference = rand_pcg::Pcg32::new(seed, sequence);
            let mut twin = Generator::seed(seed, sequence);
            for _ in 0..20 {
                let drawn = generator.draw();
                assert_eq!((drawn, u128::from(drawn)), (reference.next_u32(), twin.draw()));
            }
            for bound in [1, 2, 3, 6, 1024, 0x8000_0001, u32::MAX] {
                assert_eq!(u128::from(generator.below(number(bound))), twin.below(bound.into()));
            }
            assert_eq!(u128::from(generator.state()), twin.state);
        }
    }
}

#[test]
fn windows_of_a_pass() {
    // ids, T, phase: how many windows, and where the last one starts
    let table = [
        (10, 3, 0, 3, Some(6)),
        (10, 3, 1, 2, Some(4)),
        (10, 3, 2, 2, Some(5)),
        (4, 3, 0, 1, Some(0)),
        (3, 3, 0, 0, None),
        (0, 1, 0, 0, None),
        (2, 1, 0, 1, Some(0)),
        (5_000_000_000, 1024, 1023, 4_882_811, Some(4_999_998_463)),
        (u64::MAX, 1, 0, u64::MAX - 1, Some(u64::MAX - 2)),
        (u64::MAX, u32::MAX, 7, 4_294_967_296, Some(7 + 4_294_967_295 * 4_294_967_295)),
    ];
    for (ids, seq_len, phase, windows, last) in table {
        let seq_len = number(seq_len);
        assert_eq!(windows_left(ids, seq_len, phase), windows, "{ids} {seq_len} {phase}");
        let start = windows.checked_sub(1).and_then(|number| window_start(phase, seq_len, number));
        assert_eq!(start, last, "{ids} {seq_len} {phase}");
        if let Some(start) = start {
            assert!(fits(ids, seq_len, start));
            let next = window_start(phase, seq_len, windows);
            assert!(next.is_none_or(|next| !fits(ids, seq_len, next)), "{ids} {seq_len} {phase}");
        }
    }
    let bounds = [(10, 3, Some(3)), (4, 3, Some(1)), (5, 3, Some(2)), (3, 3, None), (0, 3, None)];
    for (ids, seq_len, bound) in bounds {
        assert_eq!(phase_bound(ids, number(seq_len)).map(u32::from), bound);
    }
    assert_eq!(phase_bound(u64::MAX, number(u32::MAX)), Some(number(u32::MAX)));
    assert_eq!(window_start(1, number(2), u64::MAX), None);
}

#[test]
fn skipping_is_taking_one_by_one() {
    let mut random = Random::new(2);
    for _ in 0..500 {
        let seq_len = number(1 + random.below(6) as u32);
        let counts: Vec<u64> = (0..1 + random.below(4))
            .map(|_| u64::from(seq_len.get()) + 1 + random.below(30) as u64)
            .collect();
        let windows = Windows::over(counts.as_slice(), seq_len).unwrap();
        let begin = windows.begin(Pcg32::seed(random.bits(), 0));
        let (mut skipped, mut taken) = (begin, begin);
        let many = random.below(100) as u64;
        windows.skip(&mut skipped, many);
        for _ in 0..many {
            assert_eq!(windows.take(&mut taken, 1).windows, 1);
        }
        assert_eq!(skipped, taken);
    }
}

/// The bound on the passes holds for every phase, and is near what is walked where shards are short.
#[test]
fn passes_within_a_number_of_windows() {
    let mut random = Random::new(3);
    for _ in 0..2000 {
        let seq_len = number(1 + random.below(6) as u32);
        let counts: Vec<u64> = (0..1 + random.below(4))
            .map(|_| u64::from(seq_len.get()) + 1 + random.below(30) as u64)
            .collect();
        let windows = Windows::over(counts.as_slice(), seq_len).unwrap();
        let mut cursor = windows.begin(Pcg32::seed(random.bits(), 0));
        windows.skip(&mut cursor, random.below(20) as u64);
        let many = random.below(200) as u64;
        let (mut passes, mut left) = (0, many);
        while left > 0 {
            let before = cursor;
            let run = windows.take(&mut cursor, left);
            left -= run.windows;
            passes += u64::from(cursor.rng != before.rng);
        }
        let bound = windows.passes_within(many);
        assert!(passes <= bound && bound <= many, "{passes} {bound} {many} {counts:?} {seq_len}");
    }
    let table: &[(&[u64], u32, u64, u64)] = &[
        (&[4], 3, 1000, 1000),
        (&[6], 3, 1000, 1000),
        (&[7], 3, 1000, 1000),
        (&[9], 3, 1000, 501),
        (&[4, 4, 4], 3, 2, 2),
        (&[4, 4, 4], 3, 30, 30),
        (&[1 << 30], 1024, 1 << 20, 2),
        (&[1 << 30, 2048], 1024, 1 << 20, 4),
        (&[u64::MAX], 1, u64::MAX, 2),
        (&[2; 9], 1, u64::MAX, u64::MAX),
        (&[1000], 10, 0, 0),
    ];
    for (counts, seq_len, many, passes) in table {
        let windows = Windows::over(*counts, number(*seq_len)).unwrap();
        assert_eq!(windows.passes_within(*many), *passes, "{counts:?} {seq_len} {many}");
    }
}

/// A share that would walk for minutes in each step is refused, at once; one rank of its own never is.
#[test]
fn shares_that_pass_over_too_many_passes() {
    // Ids of the shards, T, B, ranks; the windows of the others and the passes, if refused.
    type Row = (&'static [u64], u32, u32, u32, Option<(u64, u64)>);
    let table: &[Row] = &[
        (&[4], 3, 1, u32::MAX, Some((u64::from(u32::MAX) - 1, u64::from(u32::MAX) - 1))),
        (
            &[4],
            3,
            u32::MAX,
            u32::MAX,
            Some(((1 << 32) * ((1 << 32) - 3) + 2, (1 << 32) * ((1 << 32) - 3) + 2)),
        ),
        (&[4], 3, 1, (1 << 22) + 2, Some(((1 << 22) + 1, (1 << 22) + 1))),
        (&[4], 3, 1, (1 << 22) + 1, None),
        (&[4], 3, u32::MAX, 1, None),
        (&[1 << 30], 1024, 1 << 20, 1024, None),
        (&[100_000_000; 1000], 1024, 512, 100_000, None),
    ];
    for (counts, seq_len, batch, ranks, refused) in table {
        let windows = Windows::over(*counts, number(*seq_len)).unwrap();
        for rank in [0, ranks / 2, ranks - 1] {
            let share = Share::of(number(*batch), rank, number(*ranks)).unwrap();
            let expected = refused.map(|(windows, passes)| ShapeError::Passes { windows, passes });
            assert_eq!(windows.check_share(&share).err(), expected, "{counts:?} {batch} {ranks}");
        }
    }
    // The most that is let through ends soon.
    let windows = Windows::over([4_u64], number(3)).unwrap();
    let mut cursor = windows.begin(Pcg32::seed(42, 54));
    let began = std::time::Instant::now();
    windows.skip(&mut cursor, 1 << 22);
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    println!("passes: {:?}", began.elapsed());
}

/// A list of shards far beyond 2^31 ids, and beyond 2^63.
#[test]
fn numbers_beyond_31_bits() {
    let counts = [3 << 31, u64::MAX];
    let windows = Windows::over(counts, number(1 << 20)).unwrap();
    let mut cursor = windows.begin(Pcg32::seed(42, 54));
    let phase = cursor.offset;
    let in_first = windows_left(counts[0], number(1 << 20), phase);
    windows.skip(&mut cursor, in_first);
    assert_eq!((cursor.shard, cursor.offset), (0, phase + (in_first << 20)));
    let run = windows.take(&mut cursor, u64::MAX);
    assert_eq!((run.shard, run.windows), (1, (u64::MAX - 1 - run.offset) >> 20));
    assert!(cursor.offset > u64::MAX - (1 << 21));
    windows.check(&cursor).unwrap();
    assert_eq!(windows.take(&mut cursor, 1).shard, 0);
}

#[test]
fn shapes_that_are_none() {
    let over = |counts: &[u64], seq_len| Windows::over(counts.to_vec(), number(seq_len)).map(drop);
    assert_eq!(over(&[], 1), Err(ShapeError::NoShards));
    assert_eq!(over(&[4], 3), Ok(()));
    assert_eq!(over(&[9, 3, 9], 3), Err(ShapeError::TooShort { shard: 1, needed: 4, found: 3 }));
    let needed = u64::from(u32::MAX) + 1;
    assert_eq!(over(&[7], u32::MAX), Err(ShapeError::TooShort { shard: 0, needed, found: 7 }));
    assert_eq!(Share::of(number(1), 2, number(2)), Err(ShapeError::Rank { ranks: 2, found: 2 }));
    let last = Share::of(number(u32::MAX), u32::MAX - 1, number(u32::MAX)).unwrap();
    assert_eq!((last.before(), last.after()), ((u64::from(u32::MAX) - 1) * u64::from(u32::MAX), 0));
}

#[test]
fn a_run_ends_with_its_pass() {
    let windows = Windows::over([10, 4], number(3)).unwrap();
    let at_end = |offset| Cursor { shard: 0, offset, rng: Pcg32::seed(42, 54) };
    let take =
        |mut cursor: Cursor, at_most| (windows.take(&mut cursor, at_most), cursor.shard, cursor.offset);
    assert_eq!(take(at_end(0), 9), (Run { shard: 0, offset: 0, windows: 3 }, 0, 9));
    assert_eq!(take(at_end(6), 9), (Run { shard: 0, offset: 6, windows: 1 }, 0, 9));
    for offset in 7..=10 {
        assert_eq!(take(at_end(offset), 9), (Run { shard: 1, offset: 0, windows: 1 }, 1, 3), "{offset}");
    }
}
