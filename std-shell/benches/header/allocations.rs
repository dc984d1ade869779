//! A judgement becomes a count of what it allocated.
//!
//! The counting allocator is the system's and, while it does not count, one look at a flag, which no time here shows.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use safestep_core::Slot;
use safestep_tests::headers::Sample;
use safestep_tests::headers::honest::{Order, honest};
use safestep_tests::headers::hostile;

use crate::contenders::{File, ours, ours_slot_free, reference};
use crate::report::{Report, Table};

struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

impl Counting {
    fn count(&self) {
        if COUNTS.load(Ordering::Relaxed) {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// SAFETY: every method hands its arguments on to the system's allocator and its answer back, unchanged, so the caller's
// promises are the ones that `System` asks for, and `System`'s promises are those that the caller gets. Counting neither
// allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.count();
        // SAFETY: the caller's layout, as `System` wants it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.count();
        // SAFETY: the caller's layout, as `System` wants it.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        self.count();
        // SAFETY: the caller got `block` from here, and so from `System`, with this layout.
        unsafe { System.realloc(block, layout, bytes) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller got `block` from here, and so from `System`, with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

/// How often `work` allocates.
fn count<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    COUNTS.store(true, Ordering::Relaxed);
    let result = work();
    COUNTS.store(false, Ordering::Relaxed);
    (result, ALLOCATIONS.load(Ordering::Relaxed) - before)
}

/// Runs the section.
pub(crate) fn run(report: &mut Report) {
    let table = Table::new(
        "allocations",
        &[("header", 48), ("in slots", -10), ("no slots", -10), ("reference", -10)],
    );
    let honest = Order::ALL.into_iter().map(|order| honest(5_000, order));
    let hostile = hostile::all(600_000);
    let mut most = 0;
    for sample in honest.chain(hostile) {
        let [slots, no_slots, reference] = allocations(&sample);
        most = most.max(slots).max(no_slots);
        let cells = [slots, no_slots, reference].map(|count| count.to_string());
        table.row(&[&sample.name, &cells[0], &cells[1], &cells[2]]);
    }
    report.promise("allocations of any judgement", "0", &most.to_string(), most == 0);
}

fn allocations(sample: &Sample) -> [u64; 3] {
    let file = File::of(sample);
    let mut slots = vec![Slot::EMPTY; file.header_len() / 6];
    let (verdict, in_slots) = count(|| ours(file.bytes(), &mut slots));
    let (same, no_slots) = count(|| ours_slot_free(file.bytes()));
    if let (Err(one), Err(other)) = (verdict, same) {
        let slots_needed = other.rule().is_none();
        assert!(slots_needed || one == other, "{}: {one} and {other}", sample.name);
    }
    let (result, theirs) = count(|| reference(file.bytes()));
    drop(result);
    [in_slots, no_slots, theirs]
}
