//! Streams over files: the worked example, the properties of the reference document's table, and random runs beside the twin.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::PathBuf;

use safestep::tokens::shards::SCRATCH_BYTES;
use safestep::tokens::{Pcg32, ShardHeader, ShardKind, Shards, Share, Token, TokenStream};
use safestep::{Access, Cause, Misfit};
use safestep_tests::headers::random::Random;
use safestep_tests::tokens::case::{Case, at_the_edges};
use safestep_tests::tokens::oracle;
use safestep_tests::tokens::twin::shard_file;

use super::{BOTH, number, stream, write};

/// A generator whose first phases below 3 are 1 and 0.
fn one_then_zero() -> Pcg32 {
    let mut seeds = (0..).map(|seed| Pcg32::seed(seed, 54));
    seeds
        .find(|generator| {
            let mut generator = *generator;
            [1, 0] == [generator.below(number(3)), generator.below(number(3))]
        })
        .unwrap()
}

#[test]
fn hand_example_token_windows() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), "a.bin", 10..20);
    for access in BOTH {
        let shards = Shards::open([&path], access).unwrap();
        let mut generator = one_then_zero();
        let share = Share::whole(number(2));
        let mut stream = TokenStream::new(shards, number(3), share, generator, None).unwrap();
        let batch = stream.next_batch::<i64>().unwrap();
        assert_eq!(batch.inputs, [11, 12, 13, 14, 15, 16]);
        assert_eq!(batch.targets, [12, 13, 14, 15, 16, 17]);
        let batch = stream.next_batch::<i64>().unwrap();
        assert_eq!(batch.inputs, [10, 11, 12, 13, 14, 15]);
        assert_eq!(batch.targets, [11, 12, 13, 14, 15, 16]);
        generator.below(number(3));
        generator.below(number(3));
        let cursor = stream.cursor();
        assert_eq!((cursor.shard, cursor.offset, cursor.rng), (0, 6, generator));
    }
}

/// With the default generator, as anybody can compute it.
#[test]
fn the_default_generator() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), "a.bin", 10..20);
    let mut stream = stream(&[path], Access::Map, 3, 2).unwrap();
    let mut generator = Pcg32::seed(42, 54);
    let phase = i64::from(generator.below(number(3)));
    assert_eq!(stream.cursor().rng, generator, "the first phase is drawn, and no other");
    let inputs = stream.next_batch::<i64>().unwrap().inputs;
    assert_eq!(inputs[0], 10 + phase);
    assert_eq!(stream.cursor().rng, generator);
}

/// T apart, each pass to where the next window would not fit, shards in order; every id behind the phase is a target once a pass.
#[test]
fn windows_tile_each_pass() {
    let directory = tempfile::tempdir().unwrap();
    let lens = [50_usize, 7, 23];
    let paths: Vec<PathBuf> = lens
        .iter()
        .enumerate()
        .map(|(place, &len)| {
            let first = 100 * place as u32;
            write(directory.path(), &format!("{place}.bin"), first..first + len as u32)
        })
        .collect();
    for seq_len in [1, 2, 5, 6] {
        let mut stream = stream(&paths, Access::Read, seq_len as u32, 1).unwrap();
        for (place, len) in (0..3).cycle().zip(lens.into_iter().cycle()).take(12) {
            let (mut start, mut targets) = (None, Vec::new());
            let windows = loop {
                let batch = stream.next_batch::<u32>().unwrap();
                let begin = batch.inputs[0] as usize - 100 * place;
                assert_eq!(*start.get_or_insert(begin) + targets.len(), begin, "T apart");
                targets.extend(batch.targets);
                if begin + 2 * seq_len + 1 > len {
                    break targets.len() / seq_len;
                }
            };
            let phase = start.unwrap();
            assert!(phase < seq_len.min(len - seq_len));
            assert_eq!(windows, (len - 1 - phase) / seq_len);
            let expected = (0..targets.len()).map(|target| (100 * place + phase + 1 + target) as u32);
            assert!(targets.into_iter().eq(expected));
        }
    }
}

#[test]
fn targets_are_inputs_shifted() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), "a.bin", (0..5000).map(|id| id * 13 % 60_000));
    for access in BOTH {
        let mut stream = stream(std::slice::from_ref(&path), access, 64, 5).unwrap();
        for _ in 0..40 {
            let batch = stream.next_batch::<i64>().unwrap();
            for (inputs, targets) in batch.inputs.chunks(64).zip(batch.targets.chunks(64)) {
                assert_eq!(inputs[1..], targets[..63]);
            }
        }
    }
}

/// Each type of integer, each width and each access: the same numbers. Long enough for many reads a batch.
#[test]
fn every_type_and_access_agrees() {
    let directory = tempfile::tempdir().unwrap();
    let ids: Vec<u32> = (0..200_000).map(|id| id * 7 % 50_257).collect();
    let mut paths = Vec::new();
    for (magic, version) in [(20_240_520, 1), (20_240_520, 2), (20_240_801, 7)] {
        let path = directory.path().join(format!("{version}.bin"));
        fs::write(&path, shard_file(magic, version, 50_257, &ids)).unwrap();
        paths.push(path);
    }
    fn read<T: Token>(path: &PathBuf, access: Access, to: fn(T) -> i64) -> Vec<i64> {
        let mut stream = stream(std::slice::from_ref(path), access, 1000, 70).unwrap();
        let batches = (0..8).map(|_| stream.next_batch::<T>().unwrap());
        batches.flat_map(|batch| batch.inputs.into_iter().chain(batch.targets)).map(to).collect()
    }
    let expected = read::<i64>(&paths[0], Access::Map, |id| id);
    for path in &paths {
        for access in BOTH {
            assert!(read::<i64>(path, access, |id| id) == expected);
            assert!(read::<u32>(path, access, i64::from) == expected);
            assert!(read::<i32>(path, access, i64::from) == expected);
        }
    }
}

#[test]
fn stream_rejects_bad_args() {
    let directory = tempfile::tempdir().unwrap();
    let four = write(directory.path(), "four.bin", 0..4);
    let three = write(directory.path(), "three.bin", 0..3);
    let empty = write(directory.path(), "empty.bin", []);
    let table: &[(&[&PathBuf], u32, &str)] = &[
        (&[], 1, "cannot take windows of \"\": expected one shard at least, found none"),
        (&[&three], 3, "three.bin: expected 4 ids at least for a window, found 3 in shard 0"),
        (&[&four, &empty, &four], 3, "empty.bin: expected 4 ids at least for a window, found 0 in shard 1"),
        (&[&four], u32::MAX, "four.bin: expected 4294967296 ids at least"),
    ];
    for (paths, seq_len, message) in table {
        let paths: Vec<PathBuf> = paths.iter().map(|path| (*path).clone()).collect();
        let error = stream(&paths, Access::Read, *seq_len, 1).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
    // Exactly T + 1: one window a pass, each with a phase of 0 that is drawn.
    let mut one = stream(std::slice::from_ref(&four), Access::Map, 3, 2).unwrap();
    let mut generator = Pcg32::seed(42, 54);
    for passes in [2, 2] {
        assert_eq!(one.next_batch::<i64>().unwrap().inputs, [0, 1, 2, 0, 1, 2]);
        for _ in 0..passes {
            generator.draw();
        }
        let behind = one.cursor();
        // The next pass has not begun yet.
        assert_eq!((behind.offset, behind.rng), (3, generator));
    }
    // A vocabulary that the shard does not state is held against its ids; another one than it states is refused.
    let path = directory.path().join("words.bin");
    fs::write(&path, shard_file(20_240_520, 1, 50, &[0, 49, 1, 2])).unwrap();
    let open = |path: &PathBuf, vocabulary| {
        let shards = Shards::open([path], Access::Read).unwrap();
        TokenStream::new(shards, number(3), Share::whole(number(1)), Pcg32::seed(0, 0), vocabulary)
    };
    let error = open(&path, Some(51)).unwrap_err();
    assert!(
        matches!(error.because(), Cause::Misfit(Misfit::Vocabulary { expected: 51, found: 50 })),
        "{error}"
    );
    open(&path, Some(50)).unwrap().next_batch::<i64>().unwrap();
    open(&four, Some(4)).unwrap().next_batch::<i64>().unwrap();
    let error = open(&four, Some(3)).unwrap().next_batch::<i64>().unwrap_err();
    assert!(error.to_string().contains("T2.id at byte 1030: expected ids of at most 2, found 3"), "{error}");
}

#[test]
fn buffers_of_another_length_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), "a.bin", 0..40);
    let mut stream = stream(&[path], Access::Map, 3, 2).unwrap();
    let before = stream.cursor();
    for (inputs, targets) in [(5, 6), (6, 7), (0, 0)] {
        let error = stream.next_batch_into(&mut vec![0_i64; inputs], &mut vec![0; targets]).unwrap_err();
        assert!(matches!(error.because(), Cause::Misfit(Misfit::Buffer { expected: 6, .. })), "{error}");
    }
    assert_eq!(stream.cursor(), before);
}

/// An id outside the vocabulary is told with its place when its window is read, not before; and nothing is consumed.
#[test]
fn an_id_outside_the_vocabulary() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.bin");
    let mut ids: Vec<u32> = (0..100).collect();
    ids[57] = 100;
    fs::write(&path, shard_file(20_240_520, 2, 100, &ids)).unwrap();
    for access in BOTH {
        let mut stream = stream(std::slice::from_ref(&path), access, 10, 1).unwrap();
        let mut read = 0;
        let error = loop {
            let before = stream.cursor();
            match stream.next_batch::<i64>() {
                Ok(_) => read += 1,
                Err(error) => {
                    assert_eq!(stream.cursor(), before);
                    break error;
                }
            }
        };
        assert!(read >= 4, "{read}");
        let says = "T2.id at byte 1252: expected ids of at most 99, found 100 as id 57 of the shard";
        assert!(error.to_string().ends_with(says), "{error}");
    }
}

#[test]
fn a_shard_that_shrinks_while_it_is_read() {
    let directory = tempfile::tempdir().unwrap();
    for access in BOTH {
        let path = write(directory.path(), "a.bin", (0..60_000).map(|id| id % 50_000));
        let mut stream = stream(std::slice::from_ref(&path), access, 100, 4).unwrap();
        for _ in 0..3 {
            stream.next_batch::<i64>().unwrap();
        }
        let before = stream.cursor();
        File::options().write(true).open(&path).unwrap().set_len(1300).unwrap();
        for _ in 0..2 {
            let error = stream.next_batch::<i64>().unwrap_err();
            let found =
                matches!(error.because(), Cause::Shrank { expected_bytes: 121_024, found_bytes: 1300 });
            assert!(found, "{error}");
            assert_eq!(stream.cursor(), before);
        }
        // A file that is whole again goes on, with zeros here.
        File::options().write(true).open(&path).unwrap().set_len(121_024).unwrap();
        assert_eq!(stream.next_batch::<i64>().unwrap().inputs[300], 0);
    }
}

#[test]
fn directories_are_taken_in_name_order_and_lists_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let deep = directory.path().join("deep");
    fs::create_dir_all(deep.join("x.bin")).unwrap();
    for (name, id) in [("b.bin", 2), ("a10.bin", 1), ("a2.bin", 3), ("notes.txt", 9)] {
        write(&deep, name, [id; 2]);
    }
    let first = write(directory.path(), "z.bin", [7, 7]);
    let order = |paths: &[&PathBuf]| -> Vec<String> {
        let shards = Shards::open(paths, Access::Read).unwrap();
        shards.list().iter().map(|shard| shard.facts().name).collect()
    };
    assert_eq!(order(&[&deep]), ["a10.bin", "a2.bin", "b.bin"]);
    assert_eq!(order(&[&first, &deep, &first]), ["z.bin", "a10.bin", "a2.bin", "b.bin", "z.bin"]);
    let empty = directory.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let error = Shards::open([&empty], Access::Read).unwrap_err();
    assert!(error.to_string().ends_with("empty: it holds no .bin file"), "{error}");
    assert!(Shards::open([&directory.path().join("none")], Access::Read).is_err());
}

/// Ranks take turns in one sequence: as many batches each, nothing twice, nothing missed, and together what one alone would take.
#[test]
fn ranks_share_one_sequence() {
    let directory = tempfile::tempdir().unwrap();
    let paths = [write(directory.path(), "a.bin", 0..97), write(directory.path(), "b.bin", 1000..1031)];
    let open = |batch, rank, ranks| {
        let share = Share::of(number(batch), rank, number(ranks)).unwrap();
        let shards = Shards::open(&paths, Access::Map).unwrap();
        TokenStream::new(shards, number(4), share, Pcg32::seed(1, 2), None).unwrap()
    };
    let rows = |stream: &mut TokenStream| stream.next_batch::<i64>().unwrap().inputs;
    let mut alone = open(12, 0, 1);
    for (batch, ranks) in [(4, 3), (12, 1), (2, 6), (6, 2), (1, 12)] {
        let cursor = alone.cursor();
        let mut shared: Vec<TokenStream> = (0..ranks).map(|rank| open(batch, rank, ranks)).collect();
        for stream in &mut shared {
            stream.restore(cursor).unwrap();
        }
        for _ in 0..5 {
            let together: Vec<i64> = shared.iter_mut().flat_map(&rows).collect();
            assert_eq!(together, rows(&mut alone));
            assert_eq!(
                shared.iter().map(|stream| stream.cursor().to_string()).collect::<BTreeSet<_>>().len(),
                1
            );
            assert_eq!(shared[0].cursor(), alone.cursor());
        }
    }
}

/// The same file many times over is a list of more than 2^31 ids, and of more than 2^32.
#[test]
fn more_than_31_bits_of_ids() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sparse.bin");
    let header = ShardHeader::new(ShardKind::Narrow, i32::MAX as u32, 0).unwrap();
    let mut front = [0; 1024];
    header.encode(&mut front);
    fs::write(&path, front).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(header.file_len().value()).unwrap();
    for access in BOTH {
        let mut stream = stream(&vec![path.clone(); 3], access, 1024, 2).unwrap();
        let mut cursor = stream.cursor();
        for shard in 0..3 {
            (cursor.shard, cursor.offset) = (shard, (1 << 31) - 1 - 1024 * 3);
            stream.restore(cursor).unwrap();
            assert_eq!(stream.next_batch::<i64>().unwrap().inputs, [0; 2048]);
            assert_eq!((stream.cursor().shard, stream.cursor().offset), (shard, (1 << 31) - 1 - 1024));
            stream.next_batch::<i64>().unwrap();
            assert_eq!(stream.cursor().shard, (shard + 1) % 3);
            cursor.rng = stream.cursor().rng;
        }
    }
}

/// Thousands of lists, shapes, ranks and interruptions: `oracle::window` says what is held against what.
#[test]
fn random_runs_are_those_of_the_twin() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::new(5);
    let mut batches = 0;
    for _ in 0..3000 {
        let input: Vec<u8> = (0..8 + random.below(30)).map(|_| random.bits() as u8).collect();
        let case = Case::of(&input);
        oracle::run(&case, directory.path());
        batches += case.legs.iter().map(|leg| leg.batches * leg.ranks).sum::<u32>();
    }
    assert!(batches > 10_000, "{batches}");
}

/// Batches that fill what is widened, or read, at once: `case::at_the_edges` says which.
#[test]
fn large_runs_are_those_of_the_twin() {
    let directory = tempfile::tempdir().unwrap();
    let cases = at_the_edges();
    assert!(
        cases.len() > 200 && cases.iter().any(|case| case.seq_len * case.batch == SCRATCH_BYTES as u32 / 2)
    );
    for case in cases {
        oracle::run(&case, directory.path());
    }
}

/// Interrupted after every batch, for many passes.
#[test]
fn a_run_that_is_interrupted_after_every_batch() {
    let directory = tempfile::tempdir().unwrap();
    let paths = [write(directory.path(), "a.bin", 0..50), write(directory.path(), "b.bin", 1000..1020)];
    for access in BOTH {
        let mut whole = stream(&paths, access, 3, 2).unwrap();
        let mut text = whole.cursor().to_string();
        for _ in 0..300 {
            let mut again = stream(&paths, access, 3, 2).unwrap();
            again.restore(safestep::tokens::Cursor::read(text.as_bytes()).unwrap().0).unwrap();
            assert_eq!(again.next_batch::<i32>().unwrap(), whole.next_batch().unwrap());
            text = again.cursor().to_string();
        }
    }
}
