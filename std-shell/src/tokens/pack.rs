//! Ids from raw files or text become shards: each whole and durable under its name, or not there.
//!
//! The inputs are read twice. First every id is looked at, so that a bad one is told before a byte is written, and they are counted,
//! because the count stands in the header; then they are written. Memory is constant. An input that others change in between is an
//! error.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use safestep_core::limits::SHARD_IDS_MAX;
use safestep_core::tokens::{HEADER_BYTES, ShardHeader, ShardKind};

use crate::commit::Commit;
use crate::disk::{Disk, Found};
use crate::error::{Cause, Error};
use crate::read_at::{FileReader, ReadAt};

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
}

/// What the shards are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Their form.
    pub kind: ShardKind,
    /// The size of the vocabulary; 0 is not stated, and then every id that the form holds is good.
    pub vocabulary: u32,
    /// The most ids that a shard gets. With it the names are numbered; without it there is one shard.
    pub shard_ids: Option<u32>,
}

/// What was packed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// The shards that were written, in their order.
    pub shards: Vec<PathBuf>,
    /// The ids in them.
    pub ids: u64,
    /// Their lengths in all, in bytes.
    pub bytes: u64,
}

/// Writes the ids of the inputs, one input after the other, to `output`; or, with [`Packing::shard_ids`], to files beside it with a
/// number of six digits before the ending: `train.bin` becomes `train_000000.bin`, `train_000001.bin` and so on.
///
/// `packed` is what was written so far, also after an error. `progress` is told how many bytes of how many were read.
///
/// # Errors
/// [`Cause::BadIds`] for a bad id, with its place, before anything is written, and for more ids than a shard holds, and for a
/// longer set of shards that is there already; otherwise as [`FileReader::open`], [`ReadAt::read_at`] and [`Commit`].
pub fn pack<D: Disk>(
    disk: &D,
    inputs: &[PathBuf],
    from: IdSource,
    output: &Path,
    packing: Packing,
    packed: &mut Packed,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Error> {
    let files = inputs.iter().map(|path| FileReader::open(path)).collect::<Result<Vec<_>, _>>()?;
    let bytes = files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.len_bytes()));
    let mut reading = Reading { files: &files, from, packing, total: bytes.saturating_mul(2), done: 0 };
    if from != IdSource::Text {
        // Known before anything is read.
        countable(output, packing, bytes / reading.width())?;
    }
    let mut ids = 0_u64;
    progress(0, reading.total);
    reading.ids(progress, &mut |piece| {
        ids = ids.saturating_add(piece.len() as u64);
        Ok(())
    })?;
    let mut writer = Writer::plan(disk, output, packing, ids, packed)?;
    reading.ids(progress, &mut |piece| writer.write(piece))?;
    writer.finish()
}

/// The inputs, and how far they are read.
struct Reading<'f> {
    files: &'f [FileReader],
    from: IdSource,
    packing: Packing,
    total: u64,
    done: u64,
}

/// How much is read at once.
const CHUNK_BYTES: usize = 1 << 16;

impl Reading<'_> {
    /// Hands on all ids of all inputs, in pieces.
    fn ids(
        &mut self,
        progress: &mut dyn FnMut(u64, u64),
        sink: &mut dyn FnMut(&[u32]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (mut chunk, mut ids) = (vec![0; CHUNK_BYTES], Vec::with_capacity(CHUNK_BYTES));
        for file in self.files {
            let mut text = Decimal::default();
            let (len, mut at, mut index) = (file.len_bytes(), 0_u64, 0_u64);
            self.whole(file)?;
            while at < len {
                let step = len.saturating_sub(at).min(CHUNK_BYTES as u64);
                let piece = chunk.get_mut(..usize::try_from(step).unwrap_or_default()).unwrap_or_default();
                file.read_at(at, piece)?;
                ids.clear();
                match self.from {
                    IdSource::Bytes => ids.extend(piece.iter().map(|&byte| u32::from(byte))),
                    IdSource::U16 => {
                        ids.extend(piece.as_chunks().0.iter().map(|&id| u32::from(u16::from_le_bytes(id))));
                    }
                    IdSource::U32 => ids.extend(piece.as_chunks().0.iter().map(|&id| u32::from_le_bytes(id))),
                    IdSource::Text => {
                        text.read(piece, at, &mut ids).map_err(|fault| refused(file.path(), fault))?;
                    }
                }
                at = at.saturating_add(step);
                if at == len && self.from == IdSource::Text {
                    text.end(&mut ids);
                }
                self.check(file, index, &ids, &text)?;
                index = index.saturating_add(ids.len() as u64);
                sink(&ids)?;
                self.done = self.done.saturating_add(step);
                progress(self.done, self.total);
            }
        }
        Ok(())
    }

    /// Raw ids fill the file.
    fn whole(&self, file: &FileReader) -> Result<(), Error> {
        let width = self.width();
        if file.len_bytes().is_multiple_of(width) {
            return Ok(());
        }
        let len = file.len_bytes();
        Err(refused(file.path(), format!("expected ids of {width} bytes each, found {len} bytes")))
    }

    const fn width(&self) -> u64 {
        match self.from {
            IdSource::Bytes | IdSource::Text => 1,
            IdSource::U16 => 2,
            IdSource::U32 => 4,
        }
    }

    /// Every id is in the vocabulary, and of the shards' width.
    fn check(&self, file: &FileReader, first: u64, ids: &[u32], text: &Decimal) -> Result<(), Error> {
        let Packing { kind, vocabulary, .. } = self.packing;
        let widest = kind.width().largest();
        let largest = if vocabulary == 0 { widest } else { widest.min(vocabulary.saturating_sub(1)) };
        let Some(place) = ids.iter().position(|&id| id > largest) else { return Ok(()) };
        let (place, found) = (place as u64, ids.get(place).copied().unwrap_or_default());
        let index = first.saturating_add(place);
        let at = match self.from {
            IdSource::Text => text.places.get(place as usize).copied().unwrap_or_default(),
            _ => index.saturating_mul(self.width()),
        };
        let mut reason = format!("id {index}, at byte {at}, is {found}: ");
        let _ = if found > widest {
            write!(reason, "the largest id of {} bytes is {widest}", kind.width().bytes())
        } else {
            write!(reason, "it is outside the vocabulary of {vocabulary}")
        };
        Err(refused(file.path(), reason))
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

/// A shard that is being written.
struct Draft<'d, D: Disk> {
    commit: Commit<'d, D>,
    path: PathBuf,
    header: ShardHeader,
    /// How many ids it still gets.
    room: u64,
}

/// The shards in the making, one at a time.
struct Writer<'d, 'p, D: Disk> {
    disk: &'d D,
    output: PathBuf,
    packing: Packing,
    packed: &'p mut Packed,
    /// The ids that are still to come.
    left: u64,
    open: Option<Draft<'d, D>>,
    bytes: Vec<u8>,
}

impl<'d, 'p, D: Disk> Writer<'d, 'p, D> {
    fn plan(
        disk: &'d D,
        output: &Path,
        packing: Packing,
        ids: u64,
        packed: &'p mut Packed,
    ) -> Result<Self, Error> {
        countable(output, packing, ids)?;
        let mut writer = Self {
            disk,
            output: output.to_path_buf(),
            packing,
            packed,
            left: ids,
            open: None,
            bytes: Vec::with_capacity(CHUNK_BYTES * 4),
        };
        let shards = ids.div_ceil(writer.shard_ids()).max(1);
        if packing.shard_ids.is_some() {
            writer.ends_at(shards)?;
        }
        writer.begin(0)?;
        Ok(writer)
    }

    /// Nothing stands where a shard of the number behind the last would: a reader would take it for one of ours.
    fn ends_at(&self, shards: u64) -> Result<(), Error> {
        let next = self.path(shards);
        match self.disk.look(&next) {
            Ok(Found::Nothing) => Ok(()),
            Ok(_) => {
                let reason = format!("it belongs to a longer set; this one has {shards} shards");
                Err(Error::new("leave in its place", next, Cause::BadIds(reason)))
            }
            Err(error) => Err(Error::io("look for", next, error)),
        }
    }

    fn shard_ids(&self) -> u64 {
        self.packing.shard_ids.unwrap_or(SHARD_IDS_MAX).clamp(1, SHARD_IDS_MAX).into()
    }

    /// What the shard of that number is called.
    fn path(&self, number: u64) -> PathBuf {
        if self.packing.shard_ids.is_none() {
            return self.output.clone();
        }
        let mut name = self.output.file_stem().unwrap_or_default().to_os_string();
        name.push(format!("_{number:06}"));
        if let Some(ending) = self.output.extension() {
            name.push(".");
            name.push(ending);
        }
        self.output.with_file_name(name)
    }

    fn begin(&mut self, number: u64) -> Result<(), Error> {
        let path = self.path(number);
        let ids = self.left.min(self.shard_ids());
        let header = u32::try_from(ids)
            .ok()
            .and_then(|ids| ShardHeader::new(self.packing.kind, ids, self.packing.vocabulary));
        let Some(header) = header else {
            let reason = format!("a vocabulary has at most {SHARD_IDS_MAX} ids");
            return Err(Error::new("write", path, Cause::BadIds(reason)));
        };
        let mut commit = Commit::begin(self.disk, &path)?;
        commit.allocate(header.file_len().value())?;
        let mut front = [0; HEADER_BYTES as usize];
        header.encode(&mut front);
        commit.write(&front)?;
        self.open = Some(Draft { commit, path, header, room: ids });
        Ok(())
    }

    fn write(&mut self, ids: &[u32]) -> Result<(), Error> {
        let mut rest = ids;
        while !rest.is_empty() {
            let Some(Draft { commit, room, .. }) = &mut self.open else { return Err(self.changed()) };
            if *room == 0 {
                if self.left == 0 {
                    return Err(self.changed());
                }
                let number = self.close()?;
                self.begin(number)?;
                continue;
            }
            let step = usize::try_from(*room).unwrap_or(usize::MAX).min(rest.len());
            let (now, later) = rest.split_at_checked(step).unwrap_or((rest, &[]));
            rest = later;
            *room = room.saturating_sub(now.len() as u64);
            self.left = self.left.saturating_sub(now.len() as u64);
            self.bytes.clear();
            match self.packing.kind.width().bytes() {
                // Checked when it was read.
                2 => self.bytes.extend(now.iter().flat_map(|id| (*id as u16).to_le_bytes())),
                _ => self.bytes.extend(now.iter().flat_map(|id| id.to_le_bytes())),
            }
            commit.write(&self.bytes)?;
        }
        Ok(())
    }

    /// Puts the open shard in its place; the number of the next one.
    fn close(&mut self) -> Result<u64, Error> {
        if let Some(Draft { commit, path, header, .. }) = self.open.take() {
            commit.finish()?;
            self.packed.shards.push(path);
            self.packed.ids = self.packed.ids.saturating_add(header.ids());
            self.packed.bytes = self.packed.bytes.saturating_add(header.file_len().value());
        }
        Ok(self.packed.shards.len() as u64)
    }

    fn finish(mut self) -> Result<(), Error> {
        if self.left > 0 {
            return Err(self.changed());
        }
        self.close().map(|_| ())
    }

    fn changed(&self) -> Error {
        let reason = "the inputs were changed while they were read".to_string();
        Error::new("write", &self.output, Cause::BadIds(reason))
    }
}

/// So many ids can be told in a header, or are cut into as many as can.
fn countable(output: &Path, packing: Packing, ids: u64) -> Result<(), Error> {
    if packing.shard_ids.is_some() || ids <= u64::from(SHARD_IDS_MAX) {
        return Ok(());
    }
    let reason = format!("{ids} ids are more than a shard can have, {SHARD_IDS_MAX}: they have to be cut");
    Err(Error::new("write", output, Cause::BadIds(reason)))
}

fn refused(path: &Path, reason: String) -> Error {
    Error::new("pack", path, Cause::BadIds(reason))
}
