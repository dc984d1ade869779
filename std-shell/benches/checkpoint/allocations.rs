//! A save becomes the most memory that it took beyond the state.
//!
//! The counting allocator is the system's and two counters, which no time here shows: what is timed allocates little.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::report::Report;
use crate::saving::saved;
use crate::states::Owned;

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

impl Counting {
    fn grow(&self, bytes: usize) {
        let live = LIVE.fetch_add(bytes, Ordering::Relaxed).wrapping_add(bytes);
        MOST.fetch_max(live, Ordering::Relaxed);
    }

    fn shrink(&self, bytes: usize) {
        LIVE.fetch_sub(bytes, Ordering::Relaxed);
    }
}

// SAFETY: every method hands its arguments on to the system's allocator and its answer back, unchanged, so the caller's
// promises are the ones that `System` asks for, and `System`'s promises are those that the caller gets. Counting neither
// allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.grow(layout.size());
        // SAFETY: the caller's layout, as `System` wants it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.grow(layout.size());
        // SAFETY: the caller's layout, as `System` wants it.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        self.grow(bytes);
        self.shrink(layout.size());
        // SAFETY: the caller got `block` from here, and so from `System`, with this layout.
        unsafe { System.realloc(block, layout, bytes) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.shrink(layout.size());
        // SAFETY: the caller got `block` from here, and so from `System`, with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Runs the section.
pub(crate) fn run(state: &Owned, name: &str, directory: &Path, report: &mut Report) {
    let before = LIVE.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    saved(state, &directory.join("counted"), 1);
    let most = MOST.load(Ordering::Relaxed) - before;
    let mib = most as f64 / f64::from(1 << 20);
    println!("\nmemory {name}: {mib:.2} MiB beyond the state");
    let found = format!("{mib:.2} MiB");
    report.promise(&format!("{name}: memory while saving"), "<= 64 MiB", &found, most <= 64 << 20);
}
