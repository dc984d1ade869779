//! The generator, the header and the sequence of windows after FORMATS.md, section 4, with nothing clever: 128 bits, lists, and one
//! window at a time.

/// PCG32 in integers that cannot overflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generator {
    /// Below 2^64.
    pub state: u128,
    /// Below 2^64, odd.
    pub inc: u128,
}

const TWO_64: u128 = 1 << 64;
const TWO_32: u128 = 1 << 32;

impl Generator {
    /// The generator of a seed and a sequence.
    #[must_use]
    pub fn seed(seed: u64, sequence: u64) -> Self {
        let mut generator = Self { state: 0, inc: (u128::from(sequence) * 2 + 1) % TWO_64 };
        generator.step();
        generator.state = (generator.state + u128::from(seed)) % TWO_64;
        generator.step();
        generator
    }

    fn step(&mut self) {
        self.state = (self.state * 6_364_136_223_846_793_005 + self.inc) % TWO_64;
    }

    /// The next number.
    pub fn draw(&mut self) -> u128 {
        let old = self.state;
        self.step();
        let word = (((old >> 18) ^ old) >> 27) % TWO_32;
        let turns = old >> 59;
        // To the right: the lower bits come in above.
        (word >> turns) | ((word << (32 - turns)) % TWO_32)
    }

    /// The next number below `bound`.
    pub fn below(&mut self, bound: u128) -> u128 {
        let unfair = (TWO_32 - bound) % bound;
        loop {
            let drawn = self.draw();
            if drawn >= unfair {
                return drawn % bound;
            }
        }
    }
}

/// A window: what shard it is of, where it starts, and its ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The number of the shard.
    pub shard: usize,
    /// Where it starts.
    pub start: usize,
    /// T + 1 ids.
    pub ids: Vec<u32>,
}

/// The sequence of windows over shards.
#[derive(Clone, Debug)]
pub struct Sequence {
    shards: Vec<Vec<u32>>,
    seq_len: usize,
    /// The number of the shard.
    pub shard: usize,
    /// Where the next window starts, if it fits.
    pub offset: usize,
    /// What draws the phases.
    pub generator: Generator,
}

impl Sequence {
    /// The sequence from its start on; `None` if there is no shard, or one that is too short.
    #[must_use]
    pub fn new(shards: Vec<Vec<u32>>, seq_len: usize, generator: Generator) -> Option<Self> {
        if shards.is_empty() || shards.iter().any(|ids| ids.len() < seq_len + 1) {
            return None;
        }
        let mut sequence = Self { shards, seq_len, shard: 0, offset: 0, generator };
        sequence.draw_phase();
        Some(sequence)
    }

    fn draw_phase(&mut self) {
        let room = self.shards[self.shard].len() - self.seq_len;
        let phase = self.generator.below(self.seq_len.min(room) as u128);
        self.offset = usize::try_from(phase).expect("a small number");
    }

    /// The next window.
    pub fn next_window(&mut self) -> Window {
        if self.offset + self.seq_len + 1 > self.shards[self.shard].len() {
            self.shard = (self.shard + 1) % self.shards.len();
            self.draw_phase();
        }
        let ids = self.shards[self.shard][self.offset..self.offset + self.seq_len + 1].to_vec();
        let window = Window { shard: self.shard, start: self.offset, ids };
        self.offset += self.seq_len;
        window
    }
}

/// The verdict on the front of a file of that length: the kind's magic, version and width, n and the vocabulary; or the broken rule
/// and the byte.
///
/// # Errors
/// The rule's id, and the place.
pub fn judge(front: &[u8], file_bytes: u64) -> Result<[i64; 5], (&'static str, u64)> {
    if file_bytes < 1024 {
        return Err(("T1.short", file_bytes.min(front.len() as u64)));
    }
    let number = |place: usize| {
        let bytes: [u8; 4] = front[4 * place..4 * place + 4].try_into().expect("four bytes");
        i64::from(i32::from_le_bytes(bytes))
    };
    let (magic, version, n, vocabulary) = (number(0), number(1), number(2), number(3));
    let width = match (magic, version) {
        (20_240_520, 1) => 2,
        (20_240_520, 2) | (20_240_801, 7) => 4,
        (20_240_520 | 20_240_801, _) => return Err(("T1.version", 4)),
        _ => return Err(("T1.magic", 0)),
    };
    if n < 0 {
        return Err(("T1.count", 8));
    }
    if vocabulary < 0 {
        return Err(("T1.vocabulary", 12));
    }
    let expected = 1024 + n.unsigned_abs() * width;
    if expected != file_bytes {
        return Err(("T1.size", expected.min(file_bytes)));
    }
    Ok([magic, version, width as i64, n, vocabulary])
}

/// The bytes of a shard.
#[must_use]
pub fn shard_file(magic: i32, version: i32, vocabulary: i32, ids: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in [magic, version, i32::try_from(ids.len()).expect("a short shard"), vocabulary] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.resize(1024, 0);
    for id in ids {
        match version {
            1 => bytes.extend(u16::try_from(*id).expect("a narrow id").to_le_bytes()),
            _ => bytes.extend(id.to_le_bytes()),
        }
    }
    bytes
}
