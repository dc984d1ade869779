//! Paths become judged shards, in their order, and a place in one becomes ids.
//!
//! Opening reads the header and asks for the length: it costs the same however large the file is. Nothing here panics; no byte
//! is trusted before it was judged, and no id before it was held against the vocabulary.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use safestep_core::Span;
use safestep_core::tokens::{
    HEADER_BYTES, IdError, ShardError, ShardFacts, ShardHeader, ShardRule, Token, largest_id, widen,
    widen_pair,
};

use crate::error::{BadShard, Cause, Error, Misfit};
use crate::mapped::Mapped;
use crate::model::Access;
use crate::read_at::{FileReader, ReadAt};

/// A file whose header keeps every rule of shards.
///
/// By [`Access::Map`] ids are read in place. The map is asked before each reading whether the file still has all its bytes; should
/// another process truncate it in the moment after that, this one ends with SIGBUS ([`Mapped`] says more). By
/// [`Access::Read`], which is also right for network file systems, that is an error in every case.
#[derive(Debug)]
pub struct Shard {
    source: Source,
    header: ShardHeader,
    path: PathBuf,
}

#[derive(Debug)]
enum Source {
    Map(Mapped),
    Read(FileReader),
}

/// How many bytes of ids a reader of a [`Shard`] lends: what `pread` fills at once.
pub const SCRATCH_BYTES: usize = 1 << 16;

impl Shard {
    /// Opens a file and judges its header and its length.
    ///
    /// # Errors
    /// [`Cause::BadShard`] with the verdict if a rule is broken; otherwise as [`FileReader::open`] and [`ReadAt::read_at`].
    pub fn open(path: impl AsRef<Path>, access: Access) -> Result<Self, Error> {
        let path = path.as_ref();
        let (source, header) = match access {
            Access::Map => {
                let map = Mapped::open(path)?;
                let header = judge(path, map.bytes(), map.len_bytes())?;
                (Source::Map(map), header)
            }
            Access::Read => {
                let file = FileReader::open(path)?;
                let mut front = [0; HEADER_BYTES as usize];
                let len = usize::try_from(file.len_bytes()).unwrap_or(front.len()).min(front.len());
                let front = front.get_mut(..len).unwrap_or_default();
                file.read_at(0, front)?;
                let header = judge(path, front, file.len_bytes())?;
                (Source::Read(file), header)
            }
        };
        Ok(Self { source, header, path: path.to_path_buf() })
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the header says.
    pub fn header(&self) -> &ShardHeader {
        &self.header
    }

    /// What tells it from others.
    pub fn facts(&self) -> ShardFacts<String> {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        ShardFacts {
            name: name.to_string_lossy().into_owned(),
            bytes: self.header.file_len().value(),
            ids: self.header.ids(),
        }
    }

    /// Reads `out.len()` ids from the one numbered `first` on.
    ///
    /// Each is held against the vocabulary of the header, or against that one if the header states none. `scratch` is memory of
    /// at least 8 bytes, best of [`SCRATCH_BYTES`], that `pread` fills.
    ///
    /// # Errors
    /// [`Cause::BadShard`] (T2.id) for the first id outside the vocabulary, or too large for `T`; [`Misfit::Buffer`] if there are
    /// not so many ids; otherwise as [`ReadAt::read_at`].
    pub fn read_into<T: Token>(
        &self,
        first: u64,
        out: &mut [T],
        vocabulary: Option<u32>,
        scratch: &mut [u8],
    ) -> Result<(), Error> {
        let (width, largest) = (self.header.kind().width(), self.largest::<T>(vocabulary));
        let step = self.step(out.len(), 0, scratch);
        let mut at = first;
        for out in out.chunks_mut(step) {
            let ids = out.len() as u64;
            let widened = widen(width, self.bytes(at, ids, scratch)?, out, largest);
            widened.map_err(|error| self.bad_id(at, error))?;
            at = at.saturating_add(ids);
        }
        Ok(())
    }

    /// Reads the inputs and the targets of windows that lie side by side, from the id numbered `first` on.
    ///
    /// # Errors
    /// As [`read_into`](Self::read_into).
    pub fn read_pair_into<T: Token>(
        &self,
        first: u64,
        inputs: &mut [T],
        targets: &mut [T],
        vocabulary: Option<u32>,
        scratch: &mut [u8],
    ) -> Result<(), Error> {
        let (width, largest) = (self.header.kind().width(), self.largest::<T>(vocabulary));
        let step = self.step(inputs.len(), 1, scratch);
        let mut at = first;
        for (inputs, targets) in inputs.chunks_mut(step).zip(targets.chunks_mut(step)) {
            let ids = inputs.len() as u64;
            let bytes = self.bytes(at, ids.saturating_add(1), scratch)?;
            let widened = widen_pair(width, bytes, inputs, targets, largest);
            widened.map_err(|error| self.bad_id(at, error))?;
            at = at.saturating_add(ids);
        }
        Ok(())
    }

    /// That the header states that vocabulary, or none.
    pub(crate) fn agree_on(&self, vocabulary: Option<u32>) -> Result<(), Error> {
        match (vocabulary, self.header.vocabulary()) {
            (Some(expected), Some(found)) if expected != found => {
                Err(Error::new("use", self.path(), Cause::Misfit(Misfit::Vocabulary { expected, found })))
            }
            _ => Ok(()),
        }
    }

    fn largest<T: Token>(&self, vocabulary: Option<u32>) -> u32 {
        largest_id::<T>(self.header.vocabulary().or(vocabulary))
    }

    /// How many ids are read at once: all of them from a map, else what the scratch holds beside `more`.
    fn step(&self, all: usize, more: usize, scratch: &[u8]) -> usize {
        match self.source {
            Source::Map(_) => all.max(1),
            Source::Read(_) => {
                let width = usize::try_from(self.header.kind().width().bytes()).unwrap_or(4);
                (scratch.len() / width).saturating_sub(more).max(1)
            }
        }
    }

    /// The bytes of so many ids, in the map or in the scratch.
    fn bytes<'a>(&'a self, first: u64, ids: u64, scratch: &'a mut [u8]) -> Result<&'a [u8], Error> {
        let Some(span) = self.header.span(first, ids) else {
            return Err(self.misfit(ids, self.header.ids().saturating_sub(first)));
        };
        match &self.source {
            Source::Map(map) => {
                map.still_whole()?;
                // Proven to lie in the file.
                Ok(span.of(map.bytes()).unwrap_or_default())
            }
            Source::Read(file) => {
                let len = length(span);
                let room = scratch.len();
                let Some(buf) = scratch.get_mut(..len) else {
                    return Err(self.misfit(len as u64, room as u64));
                };
                file.read_at(span.begin().value(), buf)?;
                Ok(buf)
            }
        }
    }

    fn misfit(&self, expected: u64, found: u64) -> Error {
        Error::new("read ids of", &self.path, Cause::Misfit(Misfit::Buffer { expected, found }))
    }

    fn bad_id(&self, first: u64, error: IdError) -> Error {
        match error {
            IdError::Id { index, found, largest } => {
                let error = self.header.beyond(first.saturating_add(index), found, largest);
                bad(&self.path, error, &[])
            }
            IdError::Length { ids, found } => self.misfit(ids, found),
        }
    }
}

fn length(span: Span) -> usize {
    usize::try_from(span.len().value()).unwrap_or(usize::MAX)
}

pub(super) fn judge(path: &Path, front: &[u8], file_bytes: u64) -> Result<ShardHeader, Error> {
    ShardHeader::read(front, file_bytes).map_err(|error| bad(path, error, front))
}

fn bad(path: &Path, error: ShardError, first: &[u8]) -> Error {
    let stranger = matches!(error.rule(), ShardRule::Short | ShardRule::Magic);
    let seems = if stranger { safestep_core::sniff(first) } else { None };
    Error::new("accept", path, Cause::BadShard(BadShard { error, seems }))
}

/// `1 shard`, `2 shards`.
pub(super) fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Shards in the order in which they are read.
#[derive(Debug)]
pub struct Shards {
    list: Vec<Shard>,
}

impl Shards {
    /// Opens the shards that the paths mean, in the order given: a file is itself, a directory is every `*.bin` in it, in name
    /// order.
    ///
    /// # Errors
    /// As [`Shard::open`] and [`shard_paths`].
    pub fn open<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>, access: Access) -> Result<Self, Error> {
        let mut list = Vec::new();
        for path in paths {
            for path in shard_paths(path.as_ref())? {
                list.push(Shard::open(path, access)?);
            }
        }
        Ok(Self { list })
    }

    /// The shards.
    pub fn list(&self) -> &[Shard] {
        &self.list
    }

    /// How many ids each of them has.
    pub fn counts(&self) -> Vec<u64> {
        self.list.iter().map(|shard| shard.header.ids()).collect()
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Shard> {
        self.list.get(usize::try_from(number).ok()?)
    }
}

impl From<Vec<Shard>> for Shards {
    fn from(list: Vec<Shard>) -> Self {
        Self { list }
    }
}

/// The files that a path means: itself, or if it is a directory every `*.bin` in it, sorted by the bytes of their names.
///
/// # Errors
/// [`Cause::Io`] if the directory cannot be read, or has none.
pub fn shard_paths(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(|error| Error::io("read", path, error))?;
    let mut names: Vec<_> = entries.iter().map(fs::DirEntry::file_name).collect();
    names.retain(|name| name.as_encoded_bytes().ends_with(b".bin"));
    names.sort();
    let files: Vec<PathBuf> =
        names.iter().map(|name| path.join(name)).filter(|file| !file.is_dir()).collect();
    if files.is_empty() {
        return Err(Error::io("find a shard in", path, io::Error::other("it holds no .bin file")));
    }
    Ok(files)
}
