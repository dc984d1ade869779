//! Any bytes become a case: a list of small shards, a shape, and a run over them with interruptions.

use crate::tokens::twin::shard_file;

/// Shards and a run over them.
#[derive(Clone, Debug)]
pub struct Case {
    /// The shards.
    pub shards: Vec<ShardCase>,
    /// T
    pub seq_len: u32,
    /// B
    pub batch: u32,
    /// The seed and the sequence of the generator.
    pub seed: (u64, u64),
    /// The parts of the run, between which everything is thrown away but the cursor.
    pub legs: Vec<Leg>,
}

/// A shard.
#[derive(Clone, Debug)]
pub struct ShardCase {
    /// Magic number and version.
    pub kind: (i32, i32),
    /// The size of the vocabulary, or 0.
    pub vocabulary: i32,
    /// What is in it.
    pub ids: Vec<u32>,
}

/// A part of a run.
#[derive(Clone, Debug)]
pub struct Leg {
    /// How many ranks share it.
    pub ranks: u32,
    /// How many batches each of them reads.
    pub batches: u32,
}

impl ShardCase {
    /// The file's bytes.
    #[must_use]
    pub fn file(&self) -> Vec<u8> {
        shard_file(self.kind.0, self.kind.1, self.vocabulary, &self.ids)
    }

    /// The first id that is outside the vocabulary, among those.
    #[must_use]
    pub fn bad_id(&self, begin: usize, end: usize) -> Option<usize> {
        let size = u32::try_from(self.vocabulary).expect("not negative");
        (begin..end).find(|&place| size != 0 && self.ids[place] >= size)
    }
}

impl Case {
    /// The case that these bytes stand for; every input stands for one.
    #[must_use]
    pub fn of(input: &[u8]) -> Self {
        let mut bytes = Bytes { rest: input };
        let seq_len = 1 + u32::from(bytes.next() % 9);
        let batch = 1 + u32::from(bytes.next() % 5);
        let seed = (u64::from(bytes.next()), u64::from(bytes.next()));
        let shards = (0..=bytes.next() % 4).map(|_| shard(&mut bytes, seq_len)).collect();
        let legs = (0..=bytes.next() % 6).map(|_| leg(&mut bytes)).collect();
        Self { shards, seq_len, batch, seed, legs }
    }
}

fn leg(bytes: &mut Bytes<'_>) -> Leg {
    Leg { ranks: 1 + u32::from(bytes.next() % 4), batches: u32::from(bytes.next() % 4) }
}

fn shard(bytes: &mut Bytes<'_>, seq_len: u32) -> ShardCase {
    let form = bytes.next();
    let kind = [(20_240_520, 1), (20_240_520, 2), (20_240_801, 7)][usize::from(form % 3)];
    // Mostly just long enough, or a few passes long.
    let more = bytes.next();
    let len = match more {
        0..8 => u32::from(more),
        _ => seq_len + 1 + u32::from(more % 40),
    };
    let first = u32::from(bytes.next()) << (form & 8);
    let first = if kind.1 == 1 { first } else { first << 15 };
    let ids: Vec<u32> =
        (0..len).map(|place| (first + place) & if kind.1 == 1 { 0xFFFF } else { u32::MAX }).collect();
    // None, one that all ids are in, or now and then one that the last ids are not in.
    let beyond = ids.iter().max().map_or(1, |largest| largest + 1);
    let vocabulary = match form >> 4 {
        0..6 => 0,
        6..14 => beyond,
        _ => beyond.saturating_sub(u32::from(form >> 4) - 12).max(1),
    };
    ShardCase { kind, vocabulary: i32::try_from(vocabulary).expect("small ids"), ids }
}

/// Choices; when they run out, all is 0.
struct Bytes<'i> {
    rest: &'i [u8],
}

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((&first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        first
    }
}
