//! Numbers become places: where the windows of a pass start, when it ends, and what part of them belongs to whom.
//!
//! A window is T + 1 ids: T inputs and the T that follow them one later. Windows of one pass over a shard start T apart, from a
//! phase that is drawn when the pass starts. Behind the last one that fits comes the next shard, behind the last shard the
//! first. Nothing here reads an id: all is arithmetic of numbers, in 64 bits, and costs what it costs whatever their size; but for
//! passes, which are walked one by one. How many windows one has depends on its phase, and which number is drawn next depends on
//! whether the one before it was fair, so no formula tells where the thousandth pass ends.

use crate::limits::PASSES_PER_STEP_MAX;
use crate::span::count;
use crate::tokens::cursor::Cursor;
use crate::tokens::pcg32::Pcg32;
use core::fmt;
use core::num::NonZeroU32;

/// Whether a window of `seq_len` inputs that starts at `offset` ends within `ids` ids. Where it does not, the pass ends.
#[must_use]
pub const fn fits(ids: u64, seq_len: NonZeroU32, offset: u64) -> bool {
    match ids.checked_sub(offset) {
        Some(rest) => rest > seq_len.get() as u64,
        None => false,
    }
}

/// How many windows a pass still has from `offset` on, where the next one would start. With the phase as the offset: how many
/// the pass has in all.
///
/// ```
/// use core::num::NonZeroU32;
/// use safestep_core::tokens::windows_left;
/// let seq_len = NonZeroU32::new(3).unwrap();
/// assert_eq!([0, 1, 2, 6, 7, 10, 11].map(|offset| windows_left(10, seq_len, offset)), [3, 2, 2, 1, 0, 0, 0]);
/// ```
#[must_use]
pub fn windows_left(ids: u64, seq_len: NonZeroU32, offset: u64) -> u64 {
    match ids.checked_sub(offset).and_then(|rest| rest.checked_sub(1)) {
        Some(targets) => targets.checked_div(u64::from(seq_len.get())).unwrap_or_default(),
        None => 0,
    }
}

/// Where the window numbered `number`, from 0, starts in a pass with that phase; `None` beyond 64 bits.
#[must_use]
pub fn window_start(phase: u64, seq_len: NonZeroU32, number: u64) -> Option<u64> {
    number.checked_mul(u64::from(seq_len.get()))?.checked_add(phase)
}

/// Below what number the phase of a pass over `ids` ids is drawn: min(T, ids - T), so that a short shard has room for a window;
/// `None` if it has not.
#[must_use]
pub fn phase_bound(ids: u64, seq_len: NonZeroU32) -> Option<NonZeroU32> {
    let room = ids.checked_sub(u64::from(seq_len.get()))?;
    NonZeroU32::new(u32::try_from(room).unwrap_or(u32::MAX).min(seq_len.get()))
}

/// Windows of one pass, side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The number of the shard.
    pub shard: u64,
    /// Where the first of them starts, in ids.
    pub offset: u64,
    /// How many they are, one at least; each starts where the inputs of the one before end.
    pub windows: u64,
}

/// A list of shards, by their numbers of ids (lent or owned), and the length of a window: an endless sequence of windows.
#[derive(Clone, Copy, Debug)]
pub struct Windows<C> {
    counts: C,
    seq_len: NonZeroU32,
}

/// Why there are no windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeError {
    /// There is no shard.
    NoShards,
    /// A shard holds no window.
    TooShort {
        /// The number of the shard.
        shard: u64,
        /// How many ids a window takes: T + 1.
        needed: u64,
        /// How many the shard has.
        found: u64,
    },
    /// Other ranks take so many windows in each step that they could be more than [`PASSES_PER_STEP_MAX`] passes over the shards.
    Passes {
        /// How many windows the others take.
        windows: u64,
        /// How many passes these could be.
        passes: u64,
    },
    /// A rank that is not below the number of ranks.
    Rank {
        /// The number of ranks.
        ranks: u32,
        /// The rank.
        found: u32,
    },
}

/// Why a cursor is none of these shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceError {
    /// There is no such shard.
    Shard {
        /// How many there are.
        shards: u64,
        /// The number that was asked for.
        found: u64,
    },
    /// The offset is behind the shard's end.
    Offset {
        /// The number of the shard.
        shard: u64,
        /// How many ids it has.
        ids: u64,
        /// The offset that was asked for.
        found: u64,
    },
}

impl<C: AsRef<[u64]>> Windows<C> {
    /// The windows of `seq_len` inputs over shards of so many ids each.
    ///
    /// # Errors
    /// [`ShapeError`] if there is no shard, or one that is too short for a window.
    pub fn over(counts: C, seq_len: NonZeroU32) -> Result<Self, ShapeError> {
        if counts.as_ref().is_empty() {
            return Err(ShapeError::NoShards);
        }
        let mut shard = 0_u64;
        for &found in counts.as_ref() {
            if !fits(found, seq_len, 0) {
                let needed = u64::from(seq_len.get()).wrapping_add(1);
                return Err(ShapeError::TooShort { shard, needed, found });
            }
            shard = shard.wrapping_add(1);
        }
        Ok(Self { counts, seq_len })
    }

    /// The first window's place: the first phase is drawn.
    #[must_use]
    pub fn begin(&self, rng: Pcg32) -> Cursor {
        let mut cursor = Cursor { shard: 0, offset: 0, rng };
        self.start_pass(&mut cursor);
        cursor
    }

    /// Whether the cursor's place is one of these shards. An offset at the end of one is: there the next pass starts.
    ///
    /// # Errors
    /// [`PlaceError`] if it is not.
    pub fn check(&self, cursor: &Cursor) -> Result<(), PlaceError> {
        match self.ids(cursor.shard) {
            None => Err(PlaceError::Shard { shards: count(self.counts.as_ref().len()), found: cursor.shard }),
            Some(ids) if cursor.offset > ids => {
                Err(PlaceError::Offset { shard: cursor.shard, ids, found: cursor.offset })
            }
            Some(_) => Ok(()),
        }
    }

    /// Takes the next windows, as many as there are in one pass and no more than `at_most` (0 counts as 1), and moves the
    /// cursor behind them.
    ///
    /// The cursor is one that [`check`](Self::check) lets through; a stranger starts a pass.
    pub fn take(&self, cursor: &mut Cursor, at_most: u64) -> Run {
        let mut left = self.left(cursor);
        if left == 0 {
            cursor.shard = cursor.shard.wrapping_add(1);
            if self.ids(cursor.shard).is_none() {
                cursor.shard = 0;
            }
            self.start_pass(cursor);
            left = self.left(cursor);
        }
        let windows = left.min(at_most.max(1));
        let run = Run { shard: cursor.shard, offset: cursor.offset, windows };
        // No further than the end of the shard.
        cursor.offset = cursor.offset.wrapping_add(windows.wrapping_mul(u64::from(self.seq_len.get())));
        run
    }

    /// Moves the cursor behind the next `windows` windows. The cost is that of the passes that end in between, for which see
    /// [`passes_within`](Self::passes_within).
    pub fn skip(&self, cursor: &mut Cursor, windows: u64) {
        let mut rest = windows;
        while rest > 0 {
            rest = rest.wrapping_sub(self.take(cursor, rest).windows);
        }
    }

    /// How many passes begin at most among so many windows, wherever they start and whatever is drawn.
    pub fn passes_within(&self, windows: u64) -> u64 {
        let counts = self.counts.as_ref();
        // From the latest phase on; one window at least.
        let fewest = |ids: u64| {
            let latest =
                phase_bound(ids, self.seq_len).map_or(0, |bound| u64::from(bound.get()).wrapping_sub(1));
            windows_left(ids, self.seq_len, latest)
        };
        let round = counts.iter().fold(0_u64, |sum, &ids| sum.saturating_add(fewest(ids)));
        let rounds = windows.checked_div(round).unwrap_or(windows);
        // Those that end are so many rounds; one more round that does not end, and each pass has a window.
        rounds.saturating_add(1).saturating_mul(count(counts.len())).min(windows)
    }

    /// Whether a rank can take its share: it passes over the windows of the others in each step.
    ///
    /// # Errors
    /// [`ShapeError::Passes`] if that could take more than [`PASSES_PER_STEP_MAX`] passes.
    pub fn check_share(&self, share: &Share) -> Result<(), ShapeError> {
        let windows = share.before().saturating_add(share.after());
        let passes = self.passes_within(windows);
        if passes > PASSES_PER_STEP_MAX {
            return Err(ShapeError::Passes { windows, passes });
        }
        Ok(())
    }

    /// The number of inputs of a window.
    pub const fn seq_len(&self) -> NonZeroU32 {
        self.seq_len
    }

    fn ids(&self, shard: u64) -> Option<u64> {
        self.counts.as_ref().get(usize::try_from(shard).ok()?).copied()
    }

    fn left(&self, cursor: &Cursor) -> u64 {
        windows_left(self.ids(cursor.shard).unwrap_or_default(), self.seq_len, cursor.offset)
    }

    fn start_pass(&self, cursor: &mut Cursor) {
        // Every shard has room for a window.
        let bound = self.ids(cursor.shard).and_then(|ids| phase_bound(ids, self.seq_len));
        cursor.offset = cursor.rng.below(bound.unwrap_or(NonZeroU32::MIN)).into();
    }
}

/// Which windows of a step belong to a rank. In each step `ranks` ranks take `batch` windows each of one sequence, the lower rank
/// the earlier ones: together they take what one rank alone would take with `ranks` times the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    batch: NonZeroU32,
    rank: u32,
    ranks: NonZeroU32,
}

impl Share {
    /// All windows for one.
    #[must_use]
    pub const fn whole(batch: NonZeroU32) -> Self {
        Self { batch, rank: 0, ranks: NonZeroU32::MIN }
    }

    /// The share of one rank of many.
    ///
    /// # Errors
    /// [`ShapeError::Rank`] if `rank` is not below `ranks`.
    pub const fn of(batch: NonZeroU32, rank: u32, ranks: NonZeroU32) -> Result<Self, ShapeError> {
        if rank < ranks.get() {
            Ok(Self { batch, rank, ranks })
        } else {
            Err(ShapeError::Rank { ranks: ranks.get(), found: rank })
        }
    }

    /// How many windows a rank takes in a step.
    #[must_use]
    pub const fn batch(&self) -> NonZeroU32 {
        self.batch
    }

    /// How many windows of a step come before this rank's.
    #[must_use]
    pub const fn before(&self) -> u64 {
        (self.rank as u64).wrapping_mul(self.batch.get() as u64)
    }

    /// How many come after them.
    #[must_use]
    pub const fn after(&self) -> u64 {
        let others = self.ranks.get().wrapping_sub(self.rank).wrapping_sub(1);
        (others as u64).wrapping_mul(self.batch.get() as u64)
    }
}

impl core::error::Error for ShapeError {}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoShards => f.write_str("expected one shard at least, found none"),
            Self::TooShort { shard, needed, found } => {
                write!(f, "expected {needed} ids at least for a window, found {found} in shard {shard}")
            }
            Self::Passes { windows, passes } => write!(
                f,
                "expected {PASSES_PER_STEP_MAX} passes over the shards at most in a step, found up to {passes} in the {windows} \
                 windows of the other ranks"
            ),
            Self::Rank { ranks, found } => write!(f, "expected a rank below {ranks}, found {found}"),
        }
    }
}

impl core::error::Error for PlaceError {}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shard { shards, found } => {
                write!(f, "expected a shard below {shards}, the number of shards, found {found}")
            }
            Self::Offset { shard, ids, found } => {
                write!(f, "expected an offset of at most {ids}, the ids of shard {shard}, found {found}")
            }
        }
    }
}
