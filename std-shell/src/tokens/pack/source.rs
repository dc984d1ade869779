//! Files of ids become the ids themselves, piece by piece, each held against the vocabulary and told with its place if it is bad.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use safestep_core::tokens::{HEADER_BYTES, ShardHeader, ShardKind, ShardRule, Width};

use crate::error::{Cause, Error};
use crate::read_at::{FileReader, ReadAt};
use crate::tokens::shards;

/// What the ids are made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdSource {
    /// Bytes of anything: each is an id.
    Bytes,
    /// u16, little-endian.
    U16,
    /// u32, little-endian.
    U32,
    /// Decimal numbers with white space between them.
    Text,
    /// Shards, whose headers say how wide their ids are.
    Shard,
}

impl IdSource {
    /// Bytes of an id. Text has one at least.
    const fn width(self) -> u64 {
        match self {
            Self::Bytes | Self::Text => 1,
            Self::U16 => 2,
            Self::U32 | Self::Shard => 4,
        }
    }
}

/// An input, and where in it the ids are.
struct Input {
    file: FileReader,
    /// Never [`IdSource::Shard`]: its header has been read.
    from: IdSource,
    begin: u64,
    /// What file it is, whatever it is called.
    inode: Option<(u64, u64)>,
}

impl Input {
    fn open(path: &Path, from: IdSource) -> Result<Self, Error> {
        let file = FileReader::open(path)?;
        let mut front = [0; HEADER_BYTES as usize];
        let len = usize::try_from(file.len_bytes()).unwrap_or(front.len()).min(front.len());
        let front = front.get_mut(..len).unwrap_or_default();
        file.read_at(0, front)?;
        let inode = inode(path);
        if from == IdSource::Shard {
            let header = shards::judge(path, front, file.len_bytes())?;
            let from = match header.kind().width() {
                Width::Two => IdSource::U16,
                Width::Four => IdSource::U32,
            };
            return Ok(Self { file, from, begin: HEADER_BYTES, inode });
        }
        if is_shard(front, file.len_bytes()) {
            let reason = "it is a shard, and its header would become ids: pack it from shard";
            return Err(refused(path, reason.into()));
        }
        if !file.len_bytes().is_multiple_of(from.width()) {
            let (width, len) = (from.width(), file.len_bytes());
            let found = shards::counted(len, "byte");
            return Err(refused(path, format!("expected ids of {width} bytes each, found {found}")));
        }
        Ok(Self { file, from, begin: 0, inode })
    }

    fn len_bytes(&self) -> u64 {
        self.file.len_bytes().saturating_sub(self.begin)
    }
}

/// Magic number and version are those of a shard: eight bytes that stand before nothing else, also if the rest is damaged.
fn is_shard(front: &[u8], file_bytes: u64) -> bool {
    match ShardHeader::read(front, file_bytes) {
        Ok(_) => true,
        Err(error) => !matches!(error.rule(), ShardRule::Short | ShardRule::Magic | ShardRule::Version),
    }
}

/// What file a path leads to, if it leads to one.
fn inode(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// The largest ids that are good.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    pub(super) kind: ShardKind,
    /// 0 is not stated.
    pub(super) vocabulary: u32,
}

/// The inputs, and how far they are read.
pub(super) struct Reading {
    inputs: Vec<Input>,
    limit: Limit,
    total: u64,
    done: u64,
}

/// How much is read at once.
pub(super) const CHUNK_BYTES: usize = 1 << 16;

impl Reading {
    /// Opens all inputs, to read them `times` times.
    pub(super) fn open<P: AsRef<Path>>(
        paths: &[P],
        from: IdSource,
        limit: Limit,
        times: u64,
    ) -> Result<Self, Error> {
        let inputs =
            paths.iter().map(|path| Input::open(path.as_ref(), from)).collect::<Result<Vec<_>, _>>()?;
        let bytes = inputs.iter().fold(0, |sum: u64, input| sum.saturating_add(input.len_bytes()));
        Ok(Self { inputs, limit, total: bytes.saturating_mul(times), done: 0 })
    }

    /// How many bytes will have been read at the end.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// How many ids there are, where that is known before they are read.
    pub(super) fn known_ids(&self) -> Option<u64> {
        self.inputs.iter().try_fold(0, |sum: u64, input| match input.from {
            IdSource::Text => None,
            from => Some(sum.saturating_add(input.len_bytes() / from.width())),
        })
    }

    /// The input that is the file at `path`.
    pub(super) fn which_is(&self, path: &Path) -> Option<&Path> {
        let inode = inode(path)?;
        self.inputs.iter().find(|input| input.inode == Some(inode)).map(|input| input.file.path())
    }

    /// Hands on all ids of all inputs, in pieces.
    pub(super) fn ids(
        &mut self,
        progress: &mut dyn FnMut(u64, u64),
        sink: &mut dyn FnMut(&[u32]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (mut chunk, mut ids) = (vec![0; CHUNK_BYTES], Vec::with_capacity(CHUNK_BYTES));
        for input in &self.inputs {
            let mut text = Decimal::default();
            let (end, mut at, mut index) = (input.file.len_bytes(), input.begin, 0_u64);
            while at < end {
                let step = end.saturating_sub(at).min(CHUNK_BYTES as u64);
                let piece = chunk.get_mut(..usize::try_from(step).unwrap_or_default()).unwrap_or_default();
                input.file.read_at(at, piece)?;
                ids.clear();
                match input.from {
                    IdSource::Bytes => ids.extend(piece.iter().map(|&byte| u32::from(byte))),
                    IdSource::U16 => {
                        ids.extend(piece.as_chunks().0.iter().map(|&id| u32::from(u16::from_le_bytes(id))));
                    }
                    IdSource::U32 | IdSource::Shard => {
                        ids.extend(piece.as_chunks().0.iter().map(|&id| u32::from_le_bytes(id)));
                    }
                    IdSource::Text => {
                        text.read(piece, at, &mut ids).map_err(|fault| refused(input.file.path(), fault))?;
                    }
                }
                at = at.saturating_add(step);
                if at == end && input.from == IdSource::Text {
                    text.end(&mut ids);
                }
                self.limit.check(input, index, &ids, &text)?;
                index = index.saturating_add(ids.len() as u64);
                sink(&ids)?;
                self.done = self.done.saturating_add(step);
                progress(self.done, self.total);
            }
        }
        Ok(())
    }
}

impl Limit {
    /// Every id is in the vocabulary, and of the shards' width.
    fn check(self, input: &Input, first: u64, ids: &[u32], text: &Decimal) -> Result<(), Error> {
        let Self { kind, vocabulary } = self;
        let widest = kind.width().largest();
        let largest = if vocabulary == 0 { widest } else { widest.min(vocabulary.saturating_sub(1)) };
        let Some(place) = ids.iter().position(|&id| id > largest) else { return Ok(()) };
        let found = ids.get(place).copied().unwrap_or_default();
        let index = first.saturating_add(place as u64);
        let at = match input.from {
            IdSource::Text => text.places.get(place).copied().unwrap_or_default(),
            from => input.begin.saturating_add(index.saturating_mul(from.width())),
        };
        let mut reason = format!("id {index}, at byte {at}, is {found}: ");
        // Another width would not help an id that no shard of this vocabulary has.
        let _ = if vocabulary != 0 && found >= vocabulary {
            write!(reason, "it is outside the vocabulary of {vocabulary}")
        } else {
            write!(reason, "the largest id of {} bytes is {widest}", kind.width().bytes())
        };
        Err(refused(input.file.path(), reason))
    }
}

/// Decimal numbers, of which one may be cut between two chunks.
#[derive(Default)]
struct Decimal {
    /// The number that is being read, and where it begins.
    begun: Option<(u32, u64)>,
    /// Where the numbers of the last chunk begin.
    places: Vec<u64>,
}

impl Decimal {
    /// Reads the numbers that end in `piece`, which stands at `at`.
    fn read(&mut self, piece: &[u8], at: u64, ids: &mut Vec<u32>) -> Result<(), String> {
        self.places.clear();
        for (place, &byte) in (at..).zip(piece) {
            match byte {
                b'0'..=b'9' => {
                    let (value, begin) = self.begun.unwrap_or((0, place));
                    let longer =
                        value.checked_mul(10).and_then(|value| value.checked_add(u32::from(byte & 15)));
                    let Some(value) = longer else {
                        return Err(format!(
                            "the number at byte {begin} is above 4294967295, the largest id"
                        ));
                    };
                    self.begun = Some((value, begin));
                }
                b' ' | b'\t' | b'\n' | b'\r' => self.end(ids),
                _ => {
                    return Err(format!(
                        "expected decimal ids with white space between them, found byte 0x{byte:02x} at byte {place}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The number ends.
    fn end(&mut self, ids: &mut Vec<u32>) {
        if let Some((value, begin)) = self.begun.take() {
            ids.push(value);
            self.places.push(begin);
        }
    }
}

pub(super) fn refused(path: &Path, reason: String) -> Error {
    Error::new("pack", path, Cause::BadIds(reason))
}
