//! Reading ahead changes nothing but when the bytes are read: the position is that of what was consumed.

use std::fs::File;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::Command;

use safestep::tokens::Prefetch;
use safestep::{Access, Cause, Misfit};

use super::{stream, write};

fn ahead(paths: &[PathBuf], batches: usize) -> Prefetch<i64> {
    Prefetch::new(stream(paths, Access::Read, 5, 3).unwrap(), NonZeroUsize::new(batches).unwrap())
}

#[test]
fn the_position_is_that_of_what_was_consumed() {
    let directory = tempfile::tempdir().unwrap();
    let paths = [write(directory.path(), "a.bin", 0..100), write(directory.path(), "b.bin", 500..540)];
    for batches in [1, 2, 7] {
        let mut plain = stream(&paths, Access::Map, 5, 3).unwrap();
        let mut ahead = ahead(&paths, batches);
        assert_eq!(ahead.cursor(), plain.cursor());
        let (mut inputs, mut targets) = ([0; 15], [0; 15]);
        for turn in 0..60 {
            let expected = plain.next_batch::<i64>().unwrap();
            if turn % 3 == 0 {
                assert_eq!(ahead.next_batch().unwrap(), expected);
            } else {
                ahead.next_batch_into(&mut inputs, &mut targets).unwrap();
                assert_eq!((&inputs[..], &targets[..]), (&expected.inputs[..], &expected.targets[..]));
            }
            assert_eq!(ahead.bookmark(), plain.bookmark());
            if turn % 7 == 0 {
                // Back to before this batch, and again.
                let mut from = super::stream(&paths, Access::Map, 5, 3).unwrap();
                (0..turn).for_each(|_| drop(from.next_batch::<i64>().unwrap()));
                ahead.restore_bookmark(&from.bookmark()).unwrap();
                assert_eq!(ahead.next_batch().unwrap(), expected);
            }
        }
        assert_eq!(ahead.into_stream().unwrap().cursor(), plain.cursor());
    }
}

#[test]
fn errors_come_when_their_batch_is_consumed() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), "a.bin", 0..60_000);
    let mut ahead = ahead(std::slice::from_ref(&path), 2);
    let before = ahead.cursor();
    File::options().write(true).open(&path).unwrap().set_len(1024).unwrap();
    for _ in 0..3 {
        let error = ahead.next_batch().unwrap_err();
        assert!(matches!(error.because(), Cause::Shrank { .. }), "{error}");
        assert_eq!(ahead.cursor(), before);
    }
    write(directory.path(), "a.bin", 0..60_000);
    // The file was written in place, so the stream has it again.
    assert_eq!(ahead.next_batch().unwrap().inputs[0], before.offset as i64);
    let mut bad = before;
    bad.shard = 1;
    let here = ahead.cursor();
    ahead.restore(bad).unwrap_err();
    assert_eq!(ahead.cursor(), here);
    let error = ahead.next_batch_into(&mut [0; 15], &mut [0; 14]).unwrap_err();
    assert!(matches!(error.because(), Cause::Misfit(Misfit::Buffer { expected: 15, found: 14 })), "{error}");
    ahead.next_batch().unwrap();
}

/// The two that read ahead as far as they like: more places than memory has are not asked for.
#[test]
fn far_ahead() {
    let directory = tempfile::tempdir().unwrap();
    let paths = [write(directory.path(), "a.bin", 0..40)];
    let mut plain = stream(&paths, Access::Map, 5, 3).unwrap();
    for batches in [4096, usize::MAX] {
        let mut ahead = ahead(&paths, batches);
        ahead.restore(plain.cursor()).unwrap();
        for _ in 0..20 {
            assert_eq!(ahead.next_batch().unwrap(), plain.next_batch::<i64>().unwrap());
        }
    }
}

/// A machine on which no thread can be started: the stack that each is to have is larger than its memory, and the setting is read
/// once in a process, so this test runs in one of its own.
#[test]
fn without_a_thread_the_batches_are_the_same() {
    const NAME: &str = "SAFESTEP_TEST_WITHOUT_THREADS";
    if std::env::var_os(NAME).is_some() {
        return alone();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "tokens::prefetch::without_a_thread_the_batches_are_the_same",
        "--test-threads",
        "1",
    ]);
    let ran = command.env(NAME, "1").env("RUST_MIN_STACK", (1_u64 << 46).to_string()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{ran:?}");
}

fn alone() {
    std::thread::Builder::new().spawn(|| ()).expect_err("a thread was started, so this proves nothing");
    let directory = tempfile::tempdir().unwrap();
    let paths = [write(directory.path(), "a.bin", 0..100), write(directory.path(), "b.bin", 500..60_000)];
    let mut plain = stream(&paths, Access::Map, 5, 3).unwrap();
    let mut ahead = ahead(&paths, 2);
    let (mut inputs, mut targets) = ([0; 15], [0; 15]);
    for turn in 0..40 {
        let before = plain.cursor();
        assert_eq!(ahead.cursor(), before);
        let expected = plain.next_batch::<i64>().unwrap();
        if turn % 5 == 0 {
            ahead.next_batch().unwrap();
            ahead.restore(before).unwrap();
        }
        if turn % 2 == 0 {
            assert_eq!(ahead.next_batch().unwrap(), expected);
        } else {
            ahead.next_batch_into(&mut inputs, &mut targets).unwrap();
            assert_eq!((&inputs[..], &targets[..]), (&expected.inputs[..], &expected.targets[..]));
        }
        assert_eq!(ahead.bookmark(), plain.bookmark());
    }
    // An error leaves the position as it was, and the next call tries again.
    let cut = File::options().write(true).open(&paths[1]).unwrap();
    cut.set_len(2000).unwrap();
    for _ in 0..2 {
        let error = ahead.next_batch().unwrap_err();
        assert!(matches!(error.because(), Cause::Shrank { .. }), "{error}");
        assert_eq!(ahead.cursor(), plain.cursor());
    }
    assert_eq!(ahead.into_stream().unwrap().cursor(), plain.cursor());
}
