//! Headers that are as they must be, and headers that lie.

use std::fs::{self, File};

use safestep::tokens::{Shard, ShardHeader, ShardKind, ShardRule};
use safestep::{Access, Blame, Cause, FileReader, ReadAt as _};
use safestep_tests::headers::random::Random;
use safestep_tests::tokens::oracle;
use safestep_tests::tokens::twin::shard_file;

use super::BOTH;

/// The 1030 bytes that the reference document works out.
#[test]
fn header_worked_example() {
    let mut expected = vec![0x88, 0xd8, 0x34, 0x01, 1, 0, 0, 0, 3, 0, 0, 0, 0, 1, 0, 0];
    expected.resize(1024, 0);
    expected.extend([1, 0, 2, 0, 3, 0]);
    assert_eq!(expected.len(), 1030);
    let mut front = [0xAA; 1024];
    ShardHeader::new(ShardKind::Narrow, 3, 256).unwrap().encode(&mut front);
    assert_eq!(front, expected[..1024]);
    assert_eq!(shard_file(20_240_520, 1, 256, &[1, 2, 3]), expected);
    let header = ShardHeader::read(&expected, 1030).unwrap();
    assert_eq!((header.kind(), header.ids(), header.vocabulary()), (ShardKind::Narrow, 3, Some(256)));
}

#[test]
fn wide_ids_are_read_above_65535() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wide.bin");
    for (magic, version) in [(20_240_520, 2), (20_240_801, 7)] {
        fs::write(&path, shard_file(magic, version, 128_256, &[65_536, 128_255, 0])).unwrap();
        for access in BOTH {
            let shard = Shard::open(&path, access).unwrap();
            let mut ids = [0_i64; 3];
            shard.read_into(0, &mut ids, None, &mut [0; 8]).unwrap();
            assert_eq!(ids, [65_536, 128_255, 0]);
        }
    }
}

/// A change of a good file, the rule that it breaks and where, and what the message has to say.
#[test]
fn headers_that_lie() {
    type Change = fn(&mut Vec<u8>);
    fn put(file: &mut [u8], at: usize, number: i32) {
        file[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    let table: &[(Change, ShardRule, u64, &str)] = &[
        (|file| file.truncate(1023), ShardRule::Short, 1023, "found a file of 1023"),
        (Vec::clear, ShardRule::Short, 0, "found a file of 0"),
        (|file| put(file, 0, 20_240_521), ShardRule::Magic, 0, "found 20240521"),
        (|file| file[..4].reverse(), ShardRule::Magic, 0, "a shard with its bytes swapped"),
        (|file| put(file, 0, 20_240_801_i32.swap_bytes()), ShardRule::Magic, 0, "bytes swapped"),
        (|file| put(file, 0, 20_240_326), ShardRule::Magic, 0, "a model of llm.c"),
        (|file| put(file, 0, 20_240_327), ShardRule::Magic, 0, "a debug state of llm.c"),
        (|file| put(file, 0, 20_240_328), ShardRule::Magic, 0, "a tokenizer of llm.c"),
        (|file| put(file, 0, 20_240_522), ShardRule::Magic, 0, "an evaluation of llm.c"),
        (|file| put(file, 0, 20_240_527), ShardRule::Magic, 0, "a training state of llm.c"),
        (|file| file[..6].copy_from_slice(b"\x93NUMPY"), ShardRule::Magic, 0, "a NumPy .npy array"),
        (|file| put(file, 4, 0), ShardRule::Version, 4, "expected version 1 or 2"),
        (|file| put(file, 4, 3), ShardRule::Version, 4, "found 3"),
        (|file| put(file, 4, 7), ShardRule::Version, 4, "found 7"),
        (|file| put(file, 0, 20_240_801), ShardRule::Version, 4, "expected version 7"),
        (|file| put(file, 4, -1), ShardRule::Version, 4, "found -1"),
        (|file| put(file, 8, -1), ShardRule::Count, 8, "found -1"),
        (|file| put(file, 8, i32::MIN), ShardRule::Count, 8, "found -2147483648"),
        (|file| put(file, 12, -5), ShardRule::Vocabulary, 12, "found -5"),
        (|file| put(file, 8, 4), ShardRule::Size, 1030, "2 missing"),
        (|file| put(file, 8, i32::MAX), ShardRule::Size, 1030, "expected 4294968318 bytes"),
        (|file| put(file, 8, 2), ShardRule::Size, 1028, "2 too many"),
        (|file| put(file, 4, 2), ShardRule::Size, 1030, "expected 1036 bytes"),
        (|file| file.push(0), ShardRule::Size, 1030, "1 too many"),
        (|file| file.truncate(1029), ShardRule::Size, 1029, "1 missing"),
    ];
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.bin");
    let good = shard_file(20_240_520, 1, 256, &[1, 2, 3]);
    for (place, (change, rule, at, says)) in table.iter().enumerate() {
        let mut file = good.clone();
        change(&mut file);
        fs::write(&path, &file).unwrap();
        oracle::shard(&file);
        for access in BOTH {
            let error = Shard::open(&path, access).unwrap_err();
            let Cause::BadShard(bad) = error.because() else { panic!("{place}: {error}") };
            assert_eq!((bad.error.rule(), bad.error.at().value()), (*rule, *at), "{place}: {error}");
            assert!(error.to_string().contains(says), "{place}: {error}");
            assert_eq!(error.blame(), Blame::Data);
        }
    }
    // A vocabulary of 0 is not stated, and what follows the four numbers is ignored.
    let mut file = good;
    put(&mut file, 12, 0);
    file[16..1024].fill(0xAB);
    fs::write(&path, &file).unwrap();
    assert_eq!(Shard::open(&path, Access::Map).unwrap().header().vocabulary(), None);
}

#[test]
fn random_headers_are_judged_alike() {
    let mut random = Random::new(3);
    let interesting = [
        20_240_520,
        20_240_801,
        20_240_326,
        1,
        2,
        7,
        0,
        -1,
        i32::MAX,
        i32::MIN,
        3,
        256,
        20_240_520_i32.swap_bytes(),
    ];
    for _ in 0..4000 {
        let mut file = Vec::new();
        for place in 0..4 {
            let number = match (place, random.below(8)) {
                (0, 1..) => random.pick(&interesting[..2]),
                (1, 1..) => random.pick(&interesting[3..6]),
                (_, 0) => random.bits() as i32,
                _ => random.pick(&interesting),
            };
            file.extend(number.to_le_bytes());
        }
        file.resize(1024 + random.below(20), 7);
        file.truncate(if random.chance(5) { random.below(1024) } else { file.len() });
        oracle::shard(&file);
    }
}

/// What a header can say at most: 2^31 - 1 ids of four bytes, a file of 8 GiB that takes no room.
#[test]
fn a_sparse_file_with_as_many_ids_as_a_header_can_say() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sparse.bin");
    let mut front = [0; 1024];
    let header = ShardHeader::new(ShardKind::Wide, i32::MAX as u32, 0).unwrap();
    header.encode(&mut front);
    fs::write(&path, front).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(header.file_len().value()).unwrap();
    std::os::unix::fs::FileExt::write_at(&file, &77_u32.to_le_bytes(), header.file_len().value() - 4)
        .unwrap();
    for access in BOTH {
        let shard = Shard::open(&path, access).unwrap();
        assert_eq!(shard.header().ids(), (1 << 31) - 1);
        let mut ids = [9_i32; 3];
        shard.read_into((1 << 31) - 4, &mut ids, None, &mut [0; 16]).unwrap();
        assert_eq!(ids, [0, 0, 77]);
        shard.read_into((1 << 31) - 3, &mut ids, None, &mut [0; 16]).unwrap_err();
    }
    // One more id, which an i32 counts as a negative number of them.
    std::os::unix::fs::FileExt::write_at(&file, &i32::MIN.to_le_bytes(), 8).unwrap();
    file.set_len(header.file_len().value() + 4).unwrap();
    let error = Shard::open(&path, Access::Read).unwrap_err();
    assert!(error.to_string().contains("T1.count at byte 8"), "{error}");
}

#[test]
fn opening_reads_the_header_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = super::write(directory.path(), "a.bin", 0..60_000);
    // What stands behind the header is not looked at: an id outside the vocabulary passes.
    let mut file = fs::read(&path).unwrap();
    file[12] = 1;
    fs::write(&path, file).unwrap();
    assert!(FileReader::open(&path).unwrap().len_bytes() > 100_000);
    for access in BOTH {
        Shard::open(&path, access).unwrap();
    }
}
