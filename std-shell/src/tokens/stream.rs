//! Shards become batches of windows, one after the other for ever, and a cursor says from where to go on.
//!
//! ```text
//! the sequence of windows   | w0 w1 w2 w3 | w4 w5 w6 w7 | ...
//! batches of 2, rank 0 of 2 | w0 w1       | w4 w5       |
//!               rank 1 of 2 |       w2 w3 |       w6 w7 |
//! the cursor                ^             ^             ^
//! ```
//!
//! All ranks walk the same sequence and have the same cursor, so each of them can save it, and a run can go on with another number
//! of ranks. A batch is read without an allocation. After an error the position is what it was before.

use std::fmt;
use std::num::NonZeroU32;
use std::path::Path;

use safestep_core::tokens::{
    Cursor, CursorError, Pcg32, PlaceError, ShapeError, ShardFacts, Share, Token, Windows,
};

use crate::error::{Cause, Error, Misfit};
use crate::tokens::shards::{SCRATCH_BYTES, Shard, Shards, counted};

/// An endless stream of batches.
///
/// ```
/// use std::num::NonZeroU32;
/// use safestep::{Access, tokens::{Pcg32, Shards, Share, ShardHeader, ShardKind, TokenStream}};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("shard.bin");
/// let mut front = [0; 1024];
/// ShardHeader::new(ShardKind::Narrow, 10, 20).unwrap().encode(&mut front);
/// let ids = (10_u16..20).flat_map(u16::to_le_bytes);
/// std::fs::write(&path, front.into_iter().chain(ids).collect::<Vec<u8>>())?;
///
/// let shards = Shards::open([&path], Access::Map)?;
/// let [seq_len, batch] = [3, 2].map(|n| NonZeroU32::new(n).unwrap());
/// let mut stream = TokenStream::new(shards, seq_len, Share::whole(batch), Pcg32::seed(42, 54), None)?;
/// let (mut inputs, mut targets) = ([0_i64; 6], [0_i64; 6]);
/// stream.next_batch_into(&mut inputs, &mut targets)?;
/// assert_eq!(inputs.map(|id| id + 1), targets);
/// let cursor = stream.cursor();
/// let next = stream.next_batch::<i64>()?;
/// stream.restore(cursor)?;
/// assert_eq!(stream.next_batch()?, next);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TokenStream {
    shards: Shards,
    windows: Windows<Vec<u64>>,
    share: Share,
    /// For shards that state none.
    vocabulary: Option<u32>,
    cursor: Cursor,
    scratch: Vec<u8>,
}

/// A batch in memory of its own: `batch` rows of `seq_len` ids each, row after row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch<T> {
    /// What a model is given.
    pub inputs: Vec<T>,
    /// What it should say: the same ids, one later.
    pub targets: Vec<T>,
}

impl TokenStream {
    /// A stream of windows of `seq_len` inputs over these shards, from the first on; `rng` draws where each pass starts.
    ///
    /// With a `vocabulary`, shards that state another one are refused, and ids of those that state none are held against it.
    ///
    /// # Errors
    /// [`Misfit::Shape`] without a shard, with one that is too short for a window, or with a share that
    /// [`Windows::check_share`] refuses; [`Misfit::Vocabulary`].
    pub fn new(
        shards: Shards,
        seq_len: NonZeroU32,
        share: Share,
        rng: Pcg32,
        vocabulary: Option<u32>,
    ) -> Result<Self, Error> {
        let windows = Windows::over(shards.counts(), seq_len);
        let windows = windows.and_then(|windows| windows.check_share(&share).map(|()| windows));
        let windows = windows.map_err(|error| {
            let culprit = match error {
                ShapeError::TooShort { shard, .. } => shards.get(shard),
                _ => shards.list().first(),
            };
            let path = culprit.map_or(Path::new(""), |shard| shard.path());
            misfit("take windows of", path, Misfit::Shape(error))
        })?;
        shards.list().iter().try_for_each(|shard| shard.agree_on(vocabulary))?;
        let cursor = windows.begin(rng);
        Ok(Self { shards, windows, share, vocabulary, cursor, scratch: vec![0; SCRATCH_BYTES] })
    }

    /// How many ids a batch has: inputs, and as many targets.
    pub fn batch_ids(&self) -> u64 {
        u64::from(self.share.batch().get()).saturating_mul(self.windows.seq_len().get().into())
    }

    /// The shards.
    pub fn shards(&self) -> &Shards {
        &self.shards
    }

    /// Reads the next batch into these buffers, row after row. Allocates nothing.
    ///
    /// # Errors
    /// [`Misfit::Buffer`] if they do not hold [`batch_ids`](Self::batch_ids) each; otherwise as
    /// [`Shard::read_into`](crate::tokens::Shard::read_into).
    pub fn next_batch_into<T: Token>(&mut self, inputs: &mut [T], targets: &mut [T]) -> Result<(), Error> {
        let expected = self.batch_ids();
        for found in [inputs.len() as u64, targets.len() as u64] {
            if found != expected {
                return Err(misfit("fill", self.first_path(), Misfit::Buffer { expected, found }));
            }
        }
        let mut cursor = self.cursor;
        self.windows.skip(&mut cursor, self.share.before());
        let (mut inputs, mut targets) = (inputs, targets);
        let mut left = u64::from(self.share.batch().get());
        while left > 0 {
            let run = self.windows.take(&mut cursor, left);
            left = left.saturating_sub(run.windows);
            // No more than the buffers hold.
            let ids = run.windows.saturating_mul(self.windows.seq_len().get().into());
            let ids = usize::try_from(ids).unwrap_or(usize::MAX);
            let (Some(some_inputs), Some(some_targets)) =
                (inputs.split_off_mut(..ids), targets.split_off_mut(..ids))
            else {
                break;
            };
            if let Some(shard) = self.shards.get(run.shard) {
                let scratch = &mut self.scratch;
                shard.read_pair_into(run.offset, some_inputs, some_targets, self.vocabulary, scratch)?;
            }
        }
        self.windows.skip(&mut cursor, self.share.after());
        self.cursor = cursor;
        Ok(())
    }

    /// The next batch in memory of its own.
    ///
    /// # Errors
    /// As [`next_batch_into`](Self::next_batch_into).
    pub fn next_batch<T: Token>(&mut self) -> Result<Batch<T>, Error> {
        let mut batch = self.empty_batch()?;
        self.next_batch_into(&mut batch.inputs, &mut batch.targets)?;
        Ok(batch)
    }

    /// Memory for a batch, all zeros, to be filled by [`next_batch_into`](Self::next_batch_into).
    ///
    /// # Errors
    /// [`Cause::Io`] if there is not so much.
    pub fn empty_batch<T: Token>(&self) -> Result<Batch<T>, Error> {
        let ids = usize::try_from(self.batch_ids()).unwrap_or(usize::MAX);
        let memory = || {
            let mut ids_of_zero = Vec::new();
            let reserved = ids_of_zero.try_reserve_exact(ids);
            reserved.map_err(|error| Error::io("hold a batch of", self.first_path(), error.into()))?;
            ids_of_zero.resize(ids, T::of(0));
            Ok(ids_of_zero)
        };
        Ok(Batch { inputs: memory()?, targets: memory()? })
    }

    /// The position: where the next batch starts, the same for all ranks.
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// The position, and which shards it belongs to.
    pub fn bookmark(&self) -> Bookmark {
        let facts = self.shards.list().iter().map(Shard::facts);
        Bookmark { cursor: self.cursor, shards: Some(facts.collect()) }
    }

    /// Goes on from a position, whatever was read before. Costs the same wherever it is.
    ///
    /// # Errors
    /// [`Misfit::Place`] if these shards have no such place; the position is what it was then.
    pub fn restore(&mut self, cursor: Cursor) -> Result<(), Error> {
        self.windows.check(&cursor).map_err(|error| {
            let beyond = match error {
                PlaceError::Offset { shard, .. } => self.shards.get(shard),
                PlaceError::Shard { .. } => None,
            };
            let path = beyond.map_or(self.first_path(), |shard| shard.path());
            misfit("restore a cursor in", path, Misfit::Place(error))
        })?;
        self.cursor = cursor;
        Ok(())
    }

    /// The same, if these are the shards that the bookmark belongs to, or it does not say to which it does.
    ///
    /// # Errors
    /// [`Misfit::Shards`] if they differ: in what; else as [`restore`](Self::restore).
    pub fn restore_bookmark(&mut self, bookmark: &Bookmark) -> Result<(), Error> {
        if let Some(expected) = &bookmark.shards {
            let found: Vec<_> = self.shards.list().iter().map(Shard::facts).collect();
            if let Some((place, difference)) = difference(expected, &found) {
                let path = self.shards.get(place).map_or(self.first_path(), |shard| shard.path());
                return Err(misfit("restore a cursor in", path, Misfit::Shards(difference)));
            }
        }
        self.restore(bookmark.cursor)
    }

    fn first_path(&self) -> &Path {
        self.shards.list().first().map_or(Path::new(""), |shard| shard.path())
    }
}

/// A cursor, and the shards that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bookmark {
    /// The position.
    pub cursor: Cursor,
    /// The shards in their order, if it is known.
    pub shards: Option<Vec<ShardFacts<String>>>,
}

impl Bookmark {
    /// Reads what [`Display`](fmt::Display) writes, and cursors without shards.
    ///
    /// # Errors
    /// [`CursorError`]: what is wrong first, and where.
    pub fn read(text: &[u8]) -> Result<Self, CursorError> {
        let (cursor, fingerprint) = Cursor::read(text)?;
        let shards = fingerprint.map(|fingerprint| {
            let shards = fingerprint.shards();
            let owned = shards.map(|shard| ShardFacts {
                name: shard.name.to_string(),
                bytes: shard.bytes,
                ids: shard.ids,
            });
            owned.collect()
        });
        Ok(Self { cursor, shards })
    }
}

impl fmt::Display for Bookmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every piece is a whole number of characters.
        let sink = |piece: &[u8]| f.write_str(str::from_utf8(piece).unwrap_or_default());
        match &self.shards {
            None => self.cursor.write(sink),
            Some(shards) => {
                let lent = shards.iter().map(|shard| ShardFacts {
                    name: shard.name.as_str(),
                    bytes: shard.bytes,
                    ids: shard.ids,
                });
                self.cursor.write_with(lent, sink)
            }
        }
    }
}

/// The first difference of two lists of shards, in words, and the number of the shard.
fn difference(expected: &[ShardFacts<String>], found: &[ShardFacts<String>]) -> Option<(u64, String)> {
    for (place, (expected, found)) in (0..).zip(expected.iter().zip(found)) {
        if expected != found {
            let text = format!("shard {place} was {}, and is {}", described(expected), described(found));
            return Some((place, text));
        }
    }
    if expected.len() == found.len() {
        return None;
    }
    let text = format!("it belongs to {}, and these are {}", many(expected.len()), found.len());
    Some((0, text))
}

fn described(facts: &ShardFacts<String>) -> String {
    let ShardFacts { name, bytes, ids } = facts;
    format!("\"{name}\" of {} with {}", counted(*bytes, "byte"), counted(*ids, "id"))
}

fn many(shards: usize) -> String {
    counted(shards as u64, "shard")
}

fn misfit(doing: &'static str, path: &Path, because: Misfit) -> Error {
    Error::new(doing, path, Cause::Misfit(because))
}
