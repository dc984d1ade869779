//! Batches without an allocation, by an allocator that counts. A binary of its own, because a program has one allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::atomic::{AtomicU64, Ordering};

use safestep::Access;
use safestep::tokens::{Pcg32, Prefetch, Shards, Share, TokenStream};
use safestep_tests::tokens::twin::shard_file;

struct Counting;

/// Of all threads.
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Of this thread: the one that runs the tests has things to do, too.
    static OWN: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    OWN.with(|own| own.set(own.get() + 1));
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every method hands its arguments on to the system's allocator and its answer back, unchanged, so the caller's
// promises are the ones that `System` asks for, and `System`'s promises are those that the caller gets. Counting neither
// allocates nor unwinds: the thread's count needs no memory and no drop.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's layout, as `System` wants it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        // SAFETY: the caller got `block` from here, and so from `System`, with this layout.
        unsafe { System.realloc(block, layout, bytes) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller got `block` from here, and so from `System`, with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

#[test]
fn no_batch_allocates() {
    let directory = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (name, version) in [("a.bin", 1), ("b.bin", 2)] {
        paths.push(directory.path().join(name));
        let ids: Vec<u32> = (0..50_000).collect();
        std::fs::write(directory.path().join(name), shard_file(20_240_520, version, 50_000, &ids)).unwrap();
    }
    let open = |access, rank, ranks| {
        let [batch, seq_len, ranks] = [8, 100, ranks].map(|number| NonZeroU32::new(number).unwrap());
        let shards = Shards::open(&paths, access).unwrap();
        let share = Share::of(batch, rank, ranks).unwrap();
        TokenStream::new(shards, seq_len, share, Pcg32::seed(42, 54), None).unwrap()
    };
    let (mut inputs, mut targets) = (vec![0_i64; 800], vec![0_i64; 800]);
    let mut counted = |so_far: &dyn Fn() -> u64, next: &mut dyn FnMut(&mut [i64], &mut [i64])| {
        let before = so_far();
        for _ in 0..500 {
            next(&mut inputs, &mut targets);
        }
        so_far() - before
    };
    let (own, all) = (|| OWN.with(Cell::get), || ALLOCATIONS.load(Ordering::Relaxed));
    for access in [Access::Map, Access::Read] {
        for (rank, ranks) in [(0, 1), (3, 7)] {
            let mut stream = open(access, rank, ranks);
            let cursor = stream.cursor();
            let allocations =
                counted(&own, &mut |inputs, targets| stream.next_batch_into(inputs, targets).unwrap());
            assert_eq!(allocations, 0, "{access:?} {rank} of {ranks}");
            assert_eq!(counted(&own, &mut |_, _| stream.restore(cursor).unwrap()), 0);
        }
        // Reading ahead, the memory goes round once the queue was full.
        let mut ahead = Prefetch::new(open(access, 0, 1), NonZeroUsize::new(3).unwrap());
        counted(&all, &mut |inputs, targets| ahead.next_batch_into(inputs, targets).unwrap());
        let later = counted(&all, &mut |inputs, targets| ahead.next_batch_into(inputs, targets).unwrap());
        assert!(later <= 16, "{access:?} ahead: {later} in 500 batches");
    }
}
