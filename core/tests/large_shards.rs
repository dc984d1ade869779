//! Shards and lists of them beyond 32 bits, on any machine: like `large_files.rs`, for where `usize` has 32 bits.

use std::num::NonZeroU32;

use safestep_core::tokens::{Cursor, Pcg32, ShardHeader, ShardKind, Windows, window_start};

#[test]
fn the_last_ids_of_the_largest_shard() {
    let header = ShardHeader::new(ShardKind::Wide, i32::MAX as u32, 0).unwrap();
    let mut front = [0; 1024];
    header.encode(&mut front);
    let file_bytes = 1024 + 4 * ((1_u64 << 31) - 1);
    assert_eq!(ShardHeader::read(&front, file_bytes), Ok(header));
    // What a machine sees that counts in 32 bits.
    assert!(ShardHeader::read(&front, file_bytes & 0xFFFF_FFFF).is_err());
    let last = header.span((1 << 31) - 2, 1).unwrap();
    assert_eq!((last.begin().value(), last.end().value()), (file_bytes - 4, file_bytes));
    assert!(header.span((1 << 31) - 2, 2).is_none() && header.span(u64::MAX, 2).is_none());
}

#[test]
fn places_beyond_32_bits_are_kept() {
    let seq_len = NonZeroU32::new(1 << 20).unwrap();
    let counts = [5 << 32, 1 << 33];
    let windows = Windows::over(counts, seq_len).unwrap();
    let mut cursor = windows.begin(Pcg32::seed(42, 54));
    let phase = cursor.offset;
    windows.skip(&mut cursor, 20_000);
    assert_eq!(Some(cursor.offset), window_start(phase, seq_len, 20_000));
    windows.check(&cursor).unwrap();
    windows.check(&Cursor { offset: counts[0] + 1, ..cursor }).unwrap_err();
    let run = windows.take(&mut cursor, u64::MAX);
    assert_eq!((run.shard, run.windows), (0, (counts[0] - 1 - run.offset) >> 20));
    assert_eq!(windows.take(&mut cursor, u64::MAX).shard, 1);
}
