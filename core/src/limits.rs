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
#[cfg(feature = "fast")]
pub(crate) const NAME_CHAIN_MAX: u32 = 24;

/// How many steps along the chains of the name table are taken before names are sorted instead, in all: one a name, of
/// which honest names take half, and these, which let few names be unlucky.
#[cfg(feature = "fast")]
pub(crate) const NAME_EFFORT_MIN: u32 = 1024;

/// The same for the table of where tensors begin.
#[cfg(feature = "fast")]
pub(crate) const OFFSET_EFFORT_MIN: u32 = 1024;

/// How many steps it counts as to compare two names that differ though their fingerprints do not: of honest names, one pair
/// in four billions.
#[cfg(feature = "fast")]
pub(crate) const NAME_FALSE_MATCH_EFFORT: u32 = 64;

/// How many bytes the slot-free judge may read again to compare names, or keys, pair by pair.
///
/// Sixteen are compared with all that follow at each reading. This keeps the judge useful for models of some thousand
/// names in any order, and ends within a second what somebody made to take hours.
pub const REREAD_BYTES_MAX: u64 = 1 << 27;

/// The same for the judge with slots, when too few are free for the keys of an inner object: so many bytes and twice the
/// header. Such metadata as people write fits; what does not is answered with the slots that are needed.
pub(crate) const REREAD_BYTES_IN_SLOTS: u64 = 1 << 16;

/// How many ascending runs of names the slot-free judge merges.
///
/// The reference writer leaves one run for each dtype, so at most 22.
pub const NAME_RUNS_MAX: usize = 32;

/// The longest manifest or trainer state that is read, in bytes.
///
/// A manifest of half a million files fits. Places in a document fit in a `u32` because of it.
pub const DOCUMENT_BYTES_MAX: u64 = 1 << 26;

/// The longest line of a loss history, and the longest element of one that is an array, in bytes.
///
/// A line holds a step, a loss and what a trainer adds: a few hundred bytes. Readers take one at a time, so this is
/// what bounds their memory whatever the file is. Places inside a line fit in a `u32` because of it.
pub const LOSS_LINE_BYTES_MAX: u64 = 1 << 20;

/// How many passes over shards may begin among the windows of a step that are other ranks'.
///
/// Each draws its phase, and where it ends depends on that, so that they cannot be passed over without it; a million take some
/// ten milliseconds. Real shards have thousands of windows and more for each pass.
pub const PASSES_PER_STEP_MAX: u64 = 1 << 22;

/// The most ids that a shard has, and the largest vocabulary: both stand in its header as an i32.
pub const SHARD_IDS_MAX: u32 = i32::MAX as u32;
