//! The first 1024 bytes and the file's length become a header: how many ids there are, how wide, and of what vocabulary.
//!
//! ```text
//! byte 0       4         8        12           16                  1024               1024 + n x width
//! | magic: i32 | version | n: i32 | vocabulary | 252 ignored i32's | ids, u16 or u32 |
//! ```
//!
//! All little-endian. No byte is trusted before the checks; what passes them cannot be read beyond the file's end.

use crate::limits::SHARD_IDS_MAX;
use crate::span::{ByteLen, Offset, Span, count};
use crate::tokens::error::{LlmcFile, ShardError, ShardErrorKind, StrangeMagic};

/// The bytes before the ids.
pub const HEADER_BYTES: u64 = 1024;

/// How many bytes an id has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// u16
    Two,
    /// u32
    Four,
}

impl Width {
    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        1 << self.shift()
    }

    /// The largest id that it holds.
    #[must_use]
    pub const fn largest(self) -> u32 {
        match self {
            Self::Two => u16::MAX as u32,
            Self::Four => u32::MAX,
        }
    }

    /// By how many bits a number of ids is shifted to be one of bytes.
    pub(crate) const fn shift(self) -> u32 {
        match self {
            Self::Two => 1,
            Self::Four => 2,
        }
    }
}

/// The forms of shard that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ShardKind {
    /// Magic number 20240520, version 1: u16.
    Narrow,
    /// Magic number 20240520, version 2: u32.
    Wide,
    /// Magic number 20240801, version 7: u32, as llm.c has them for Llama 3.
    Llama3,
}

impl ShardKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Narrow, Self::Wide, Self::Llama3];

    /// The first number of the file.
    #[must_use]
    pub const fn magic(self) -> i32 {
        match self {
            Self::Narrow | Self::Wide => 20_240_520,
            Self::Llama3 => 20_240_801,
        }
    }

    /// The second.
    #[must_use]
    pub const fn version(self) -> i32 {
        match self {
            Self::Narrow => 1,
            Self::Wide => 2,
            Self::Llama3 => 7,
        }
    }

    /// How wide its ids are.
    #[must_use]
    pub const fn width(self) -> Width {
        match self {
            Self::Narrow => Width::Two,
            Self::Wide | Self::Llama3 => Width::Four,
        }
    }
}

/// The header of a shard, in a file of the length that it asks for. The rules T1 hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShardHeader {
    kind: ShardKind,
    /// Neither is above [`SHARD_IDS_MAX`].
    ids: u32,
    vocabulary: u32,
}

impl ShardHeader {
    /// The header of a shard that is to be written; a vocabulary of 0 is not stated. `None` if one of the numbers is above
    /// [`SHARD_IDS_MAX`], which is the most that the header can say.
    #[must_use]
    pub const fn new(kind: ShardKind, ids: u32, vocabulary: u32) -> Option<Self> {
        if ids > SHARD_IDS_MAX || vocabulary > SHARD_IDS_MAX {
            return None;
        }
        Some(Self { kind, ids, vocabulary })
    }

    /// Reads the header from `front`, the first bytes of a file of `file_bytes` bytes.
    ///
    /// What follows the header in `front` is ignored, so the whole file will do; it costs the same however long that is.
    ///
    /// # Errors
    /// The first broken rule, from T1.short to T1.size.
    ///
    /// ```
    /// use safestep_core::tokens::{ShardHeader, ShardKind};
    /// let mut front = [0; 1024];
    /// ShardHeader::new(ShardKind::Narrow, 3, 256).unwrap().encode(&mut front);
    /// let header = ShardHeader::read(&front, 1030)?;
    /// assert_eq!((header.ids(), header.vocabulary()), (3, Some(256)));
    /// let error = ShardHeader::read(&front, 1029).unwrap_err();
    /// assert_eq!(error.to_string(), "T1.size at byte 1029: expected 1030 bytes for so many ids, found 1029: 1 missing");
    /// # Ok::<(), safestep_core::tokens::ShardError>(())
    /// ```
    pub fn read(front: &[u8], file_bytes: u64) -> Result<Self, ShardError> {
        let broken = |kind, at| Err(ShardError { kind, at });
        let Some(fields) = front.first_chunk::<16>().filter(|_| file_bytes >= HEADER_BYTES) else {
            let found = file_bytes.min(count(front.len()));
            return broken(ShardErrorKind::Short { found }, found);
        };
        let [magic, version, ids, vocabulary] = numbers(fields);
        let mut kinds = ShardKind::ALL.iter().filter(|kind| kind.magic() == magic).peekable();
        if kinds.peek().is_none() {
            return broken(ShardErrorKind::Magic { found: magic, seems: seems(magic) }, 0);
        }
        let Some(&kind) = kinds.find(|kind| kind.version() == version) else {
            return broken(ShardErrorKind::Version { magic, found: version }, 4);
        };
        let Ok(ids_found) = u32::try_from(ids) else {
            return broken(ShardErrorKind::Count { found: ids }, 8);
        };
        let Ok(vocabulary_found) = u32::try_from(vocabulary) else {
            return broken(ShardErrorKind::Vocabulary { found: vocabulary }, 12);
        };
        let header = Self { kind, ids: ids_found, vocabulary: vocabulary_found };
        let expected = header.file_len().value();
        if expected != file_bytes {
            return broken(ShardErrorKind::Size { expected, found: file_bytes }, expected.min(file_bytes));
        }
        Ok(header)
    }

    /// Writes the header's bytes.
    pub fn encode(&self, out: &mut [u8; HEADER_BYTES as usize]) {
        let [ids, vocabulary] = [self.ids, self.vocabulary].map(u32::to_le_bytes);
        let fields = [self.kind.magic().to_le_bytes(), self.kind.version().to_le_bytes(), ids, vocabulary];
        let (places, _) = out.as_chunks_mut::<4>();
        places.fill([0; 4]);
        for (place, field) in places.iter_mut().zip(fields) {
            *place = field;
        }
    }

    /// Which form of shard it is.
    #[must_use]
    pub const fn kind(&self) -> ShardKind {
        self.kind
    }

    /// How many ids there are.
    #[must_use]
    pub const fn ids(&self) -> u64 {
        self.ids as u64
    }

    /// How many ids the vocabulary has, if that is stated.
    #[must_use]
    pub const fn vocabulary(&self) -> Option<u32> {
        if self.vocabulary == 0 { None } else { Some(self.vocabulary) }
    }

    /// The length of the file.
    #[must_use]
    pub const fn file_len(&self) -> ByteLen {
        ByteLen::new(HEADER_BYTES.wrapping_add(self.ids() << self.kind.width().shift()))
    }

    /// Where `ids` ids from the one numbered `first` on stand in the file; `None` if there are not so many.
    #[must_use]
    pub fn span(&self, first: u64, ids: u64) -> Option<Span> {
        first.checked_add(ids).filter(|&end| end <= self.ids())?;
        let shift = self.kind.width().shift();
        Span::at(Offset::new(HEADER_BYTES.wrapping_add(first << shift)), ByteLen::new(ids << shift))
    }

    /// The verdict T2.id on the id numbered `index`.
    #[must_use]
    pub const fn beyond(&self, index: u64, found: u32, largest: u32) -> ShardError {
        let at = HEADER_BYTES.wrapping_add(index << self.kind.width().shift());
        ShardError { kind: ShardErrorKind::Id { index, found, largest }, at }
    }
}

fn numbers(fields: &[u8; 16]) -> [i32; 4] {
    let mut numbers = [0; 4];
    for (number, bytes) in numbers.iter_mut().zip(fields.as_chunks::<4>().0) {
        *number = i32::from_le_bytes(*bytes);
    }
    numbers
}

fn seems(magic: i32) -> Option<StrangeMagic> {
    let swapped = magic.swap_bytes();
    if ShardKind::ALL.iter().any(|kind| kind.magic() == swapped) {
        return Some(StrangeMagic::ByteSwapped);
    }
    LlmcFile::of(magic).map(StrangeMagic::Llmc)
}
