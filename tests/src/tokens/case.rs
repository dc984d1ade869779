//! Any bytes become a case: a list of small shards, a shape, and a run over them with interruptions. And cases that are large: as
//! many ids as are widened or read at once, and one more or less.

use crate::tokens::twin::{Generator, Sequence, shard_file};

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

/// How many ids are widened together.
const BLOCK_IDS: u32 = 2048;

/// How many bytes `pread` fills at once.
const SCRATCH_BYTES: u32 = 1 << 16;

/// Shards of each form, and batches of as many ids as fill a block or the scratch, of one less, and of one and two more; as one
/// window, as windows of one id, and as two. In some of them a single id is outside the vocabulary: at each place near such an edge.
#[must_use]
pub fn at_the_edges() -> Vec<Case> {
    let mut cases = Vec::new();
    for (magic, version, width) in [(20_240_520, 1, 2), (20_240_520, 2, 4), (20_240_801, 7, 4)] {
        // Of what is read at once one id is only a target.
        for edge in [BLOCK_IDS, 2 * BLOCK_IDS, SCRATCH_BYTES / width - 1] {
            for ids in edge - 1..=edge + 2 {
                for (seq_len, batch) in [(ids, 1), (1, ids), (ids / 2, 2)] {
                    cases.push(large((magic, version), seq_len, batch, None));
                }
                for bad in edge - 2..=(edge + 2).min(ids) {
                    cases.push(large((magic, version), ids, 1, Some(bad)));
                }
            }
        }
    }
    cases
}

/// A shard of a few batches and a short one; `bad` is which id of the first window is outside the vocabulary.
fn large(kind: (i32, i32), seq_len: u32, batch: u32, bad: Option<u32>) -> Case {
    const VOCABULARY: u32 = 50_257;
    let seed = (u64::from(seq_len), u64::from(batch));
    let mut ids: Vec<u32> = (0..2 * seq_len * batch + seq_len).map(|place| place * 31 % VOCABULARY).collect();
    let sequence = Sequence::new(vec![ids.clone()], seq_len as usize, Generator::seed(seed.0, seed.1));
    if let Some(bad) = bad {
        ids[sequence.expect("long enough").offset + bad as usize] = VOCABULARY;
    }
    let vocabulary = i32::try_from(VOCABULARY).expect("small");
    let short = ids[..=seq_len as usize].to_vec();
    let shards = [ids, short].map(|ids| ShardCase { kind, vocabulary, ids }).into();
    Case {
        shards,
        seq_len,
        batch,
        seed,
        legs: vec![Leg { ranks: 1, batches: 2 }, Leg { ranks: 2, batches: 1 }],
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
