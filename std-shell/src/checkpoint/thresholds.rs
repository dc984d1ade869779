//! How large a state is before many threads work on it, and in which portions they do.
//!
//! Tests make all of it small, so that what large states go through is looked at with small ones.

/// Where the ways of a save part, in bytes.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// A smaller state is written by one thread: more cost more than they bring.
    pub parallel_bytes_min: u64,
    /// How much of a file is written before it is brought to the disk while more is written: large enough for long transfers,
    /// small enough that the last sync is short. Files that are not twice as long are not worth it.
    pub write_back_bytes: u64,
    /// How much is written at once, about.
    pub portion_bytes: usize,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { parallel_bytes_min: 4 << 20, write_back_bytes: 32 << 20, portion_bytes: 4 << 20 }
    }
}
