//! Every limit of the core, each with its reason.

/// The longest header that is read, in bytes, and the longest that is written.
///
/// The reference library draws the same line; a caller can lower it with [`Limits`](crate::Limits).
/// Places inside a header fit in a `u32` because of it.
pub const HEADER_BYTES_MAX: u64 = 100_000_000;

/// How many JSON containers may be open at once in a header.
///
/// A good header opens three. RFC 8259, section 9, lets a reader set such a limit; `serde_json`, which
/// the reference library parses with, has the same one. It bounds the stack of the scanner to 16 bytes.
pub const JSON_DEPTH_MAX: u32 = 127;

/// The longest chain of names in one bucket of the name table before names are sorted instead.
///
/// With honest names and one bucket a name, chains of nine are rare and chains of twenty do not happen:
/// a longer one means that somebody chose the names.
pub(crate) const NAME_CHAIN_MAX: u32 = 24;

/// How many keys of one object are compared pair by pair when no memory was lent to do better.
///
/// It keeps the slot-free judge useful for models in any name order, at no more than eight million
/// comparisons of two 32-bit fingerprints.
pub const KEYS_PAIRWISE_MAX: u32 = 4096;

/// How many ascending runs of names the slot-free judge merges.
///
/// The reference writer leaves one run for each dtype, so at most 22.
pub const NAME_RUNS_MAX: usize = 32;
