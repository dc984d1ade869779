//! Ids from raw files, text or shards become shards: all of them, each whole and durable under its name, or none.
//!
//! The inputs are read twice. First every id is looked at, so that a bad one is told before a byte is written, and they are counted,
//! because the count stands in the header; then they are written. The shards get their names when the last of them is durable. Memory
//! is constant, but for the names. An input that others change in between is an error.

mod source;

pub use source::IdSource;

use std::path::{Path, PathBuf};

use safestep_core::limits::SHARD_IDS_MAX;
use safestep_core::tokens::{HEADER_BYTES, ShardHeader, ShardKind};

use crate::commit::{Commit, Sealed, means_a_directory, place_all};
use crate::disk::{Disk, Found};
use crate::error::{Cause, Error, FileKind};
use crate::tokens::shards::counted;
use source::{CHUNK_BYTES, Limit, Reading, refused};

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
    /// The shards that are in their places, in their order.
    pub shards: Vec<PathBuf>,
    /// The ids in them.
    pub ids: u64,
    /// Their lengths in all, in bytes.
    pub bytes: u64,
}

/// Writes the ids of the inputs, one input after the other, to `output`; or, with [`Packing::shard_ids`], to files beside it with a
/// number of six digits before the ending: `train.bin` becomes `train_000000.bin`, `train_000001.bin` and so on. More than a million
/// shards get as many digits as the last of them needs, so that the order of the names is always that of the numbers.
///
/// `packed` is what stands in its place, also after an error: nothing, unless the error came when the names were given.
/// `progress` is told how many bytes of how many were read.
///
/// # Errors
/// [`Cause::BadIds`] for a bad id, with its place, for an input that is a shard though `from` says otherwise, for one that would be
/// replaced, for more ids than a shard holds, and for another set of shards that is there already; [`Cause::BadShard`] for an
/// input that is no shard though `from` says so; otherwise as [`FileReader::open`](crate::FileReader::open),
/// [`ReadAt::read_at`](crate::ReadAt::read_at), [`Commit`] and [`place_all`].
pub fn pack<D: Disk>(
    disk: &D,
    inputs: &[PathBuf],
    from: IdSource,
    output: &Path,
    packing: Packing,
    packed: &mut Packed,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Error> {
    let limit = Limit { kind: packing.kind, vocabulary: packing.vocabulary };
    let mut reading = Reading::open(inputs, from, limit, 2)?;
    if let Some(ids) = reading.known_ids() {
        // Before hours of reading.
        Plan::new(output, packing, ids)?.free(disk, &reading)?;
    }
    let mut ids = 0_u64;
    progress(0, reading.total());
    reading.ids(progress, &mut |piece| {
        let before = ids;
        ids = ids.saturating_add(piece.len() as u64);
        // Now and then: it may have been told to stop.
        if before / LOOK_IDS != ids / LOOK_IDS { look(disk, output).map(drop) } else { Ok(()) }
    })?;
    let plan = Plan::new(output, packing, ids)?;
    plan.free(disk, &reading)?;
    let mut writer = Writer::begin(disk, plan)?;
    reading.ids(progress, &mut |piece| writer.write(piece))?;
    writer.finish(packed)
}

/// After how many ids the disk is asked while nothing is written.
const LOOK_IDS: u64 = 1 << 22;

fn look<D: Disk>(disk: &D, path: &Path) -> Result<Found, Error> {
    disk.look(path).map_err(|error| Error::io("look for", path, error))
}

/// Which ids go to which files.
struct Plan<'p> {
    output: &'p Path,
    packing: Packing,
    /// The ids of all shards.
    ids: u64,
}

impl<'p> Plan<'p> {
    /// The plan for so many ids, if a header can tell how many a shard gets.
    fn new(output: &'p Path, packing: Packing, ids: u64) -> Result<Self, Error> {
        if packing.vocabulary > SHARD_IDS_MAX {
            let reason = format!("a vocabulary has at most {SHARD_IDS_MAX} ids");
            return Err(Error::new("write", output, Cause::BadIds(reason)));
        }
        if packing.shard_ids.is_none() && ids > u64::from(SHARD_IDS_MAX) {
            let reason =
                format!("{ids} ids are more than a shard can have, {SHARD_IDS_MAX}: they have to be cut");
            return Err(Error::new("write", output, Cause::BadIds(reason)));
        }
        Ok(Self { output, packing, ids })
    }

    fn shard_ids(&self) -> u64 {
        self.packing.shard_ids.unwrap_or(SHARD_IDS_MAX).clamp(1, SHARD_IDS_MAX).into()
    }

    fn shards(&self) -> u64 {
        self.ids.div_ceil(self.shard_ids()).max(1)
    }

    /// How many digits the number of a shard has.
    fn digits(&self) -> usize {
        self.shards().saturating_sub(1).checked_ilog10().map_or(0, |log| log as usize + 1).max(DIGITS_MIN)
    }

    /// What the shard of that number is called.
    fn path(&self, number: u64) -> PathBuf {
        match self.packing.shard_ids {
            None => self.output.to_path_buf(),
            Some(_) => self.numbered(number, self.digits()),
        }
    }

    fn numbered(&self, number: u64, digits: usize) -> PathBuf {
        let mut name = self.output.file_stem().unwrap_or_default().to_os_string();
        name.push(format!("_{number:0digits$}"));
        if let Some(ending) = self.output.extension() {
            name.push(".");
            name.push(ending);
        }
        self.output.with_file_name(name)
    }

    /// The shards can be put in their places: none is an input, and no other set would be mixed with this one.
    fn free<D: Disk>(&self, disk: &D, reading: &Reading) -> Result<(), Error> {
        for number in 0..self.shards() {
            let path = self.path(number);
            if let Some(input) = reading.which_is(&path) {
                let reason = format!("it would be replaced by the shard {}", path.display());
                return Err(refused(input, reason));
            }
        }
        if self.packing.shard_ids.is_none() {
            return Ok(());
        }
        let directory = Found::Other(FileKind::Directory);
        if means_a_directory(self.output) || look(disk, self.output)? == directory {
            return Err(Error::new("write", self.output, Cause::NotRegular(FileKind::Directory)));
        }
        // A reader would take those for some of ours: the one behind our last, and the first of a set with other digits.
        let others = (DIGITS_MIN..=DIGITS_MAX).filter(|&digits| digits != self.digits());
        let firsts = others.map(|digits| self.numbered(0, digits));
        for path in [self.path(self.shards())].into_iter().chain(firsts) {
            if look(disk, &path)? != Found::Nothing {
                let shards = counted(self.shards(), "shard");
                let reason = format!("it belongs to another set; this one has {shards}");
                return Err(Error::new("leave in its place", path, Cause::BadIds(reason)));
            }
        }
        Ok(())
    }
}

/// As many digits as people expect.
const DIGITS_MIN: usize = 6;

/// As many as any directory holds files.
const DIGITS_MAX: usize = 10;

/// A shard that is being written.
struct Draft<'d, D: Disk> {
    commit: Commit<'d, D>,
    /// How many ids it still gets.
    room: u64,
}

/// The shards in the making, one at a time; none has its name.
struct Writer<'d, 'p, D: Disk> {
    disk: &'d D,
    plan: Plan<'p>,
    open: Draft<'d, D>,
    sealed: Vec<Sealed<'d, D>>,
    bytes: Vec<u8>,
}

impl<'d, 'p, D: Disk> Writer<'d, 'p, D> {
    fn begin(disk: &'d D, plan: Plan<'p>) -> Result<Self, Error> {
        let open = Draft::begin(disk, &plan, 0)?;
        Ok(Self { disk, plan, open, sealed: Vec::new(), bytes: Vec::with_capacity(CHUNK_BYTES * 4) })
    }

    fn write(&mut self, ids: &[u32]) -> Result<(), Error> {
        let mut rest = ids;
        while !rest.is_empty() {
            if self.open.room == 0 {
                self.next()?;
            }
            let step = usize::try_from(self.open.room).unwrap_or(usize::MAX).min(rest.len());
            let (now, later) = rest.split_at_checked(step).unwrap_or((rest, &[]));
            rest = later;
            self.open.room = self.open.room.saturating_sub(now.len() as u64);
            self.bytes.clear();
            match self.plan.packing.kind.width().bytes() {
                // Checked when it was read.
                2 => self.bytes.extend(now.iter().flat_map(|id| (*id as u16).to_le_bytes())),
                _ => self.bytes.extend(now.iter().flat_map(|id| id.to_le_bytes())),
            }
            self.open.commit.write(&self.bytes)?;
        }
        Ok(())
    }

    /// Makes the open shard durable and begins the next one.
    fn next(&mut self) -> Result<(), Error> {
        let number = (self.sealed.len() as u64).saturating_add(1);
        if number >= self.plan.shards() {
            return Err(self.changed());
        }
        let next = Draft::begin(self.disk, &self.plan, number)?;
        let full = std::mem::replace(&mut self.open, next);
        self.sealed.push(full.commit.seal()?);
        Ok(())
    }

    /// Gives all shards their names.
    fn finish(mut self, packed: &mut Packed) -> Result<(), Error> {
        let shards = self.plan.shards();
        if self.open.room > 0 || (self.sealed.len() as u64).saturating_add(1) < shards {
            return Err(self.changed());
        }
        self.sealed.push(self.open.commit.seal()?);
        let plan = self.plan;
        place_all(self.sealed, &mut |placed| {
            let number = placed.saturating_sub(1);
            packed.shards.push(plan.path(number));
            let ids = plan.ids_of(number);
            packed.ids = packed.ids.saturating_add(ids);
            let bytes = ids.saturating_mul(plan.packing.kind.width().bytes());
            packed.bytes = packed.bytes.saturating_add(HEADER_BYTES).saturating_add(bytes);
        })
    }

    fn changed(&self) -> Error {
        let reason = "the inputs were changed while they were read".to_string();
        Error::new("write", self.plan.output, Cause::BadIds(reason))
    }
}

impl Plan<'_> {
    /// How many ids the shard of that number gets.
    fn ids_of(&self, number: u64) -> u64 {
        self.ids.saturating_sub(number.saturating_mul(self.shard_ids())).min(self.shard_ids())
    }
}

impl<'d, D: Disk> Draft<'d, D> {
    fn begin(disk: &'d D, plan: &Plan<'_>, number: u64) -> Result<Self, Error> {
        let (path, room) = (plan.path(number), plan.ids_of(number));
        // Both are in range: the plan saw to it.
        let ids = u32::try_from(room).unwrap_or(SHARD_IDS_MAX);
        let header = ShardHeader::new(plan.packing.kind, ids, plan.packing.vocabulary);
        let header = header.ok_or_else(|| refused(&path, format!("{ids} ids are too many")))?;
        let mut commit = Commit::begin(disk, &path)?;
        commit.allocate(header.file_len().value())?;
        let mut front = [0; HEADER_BYTES as usize];
        header.encode(&mut front);
        commit.write(&front)?;
        Ok(Self { commit, room })
    }
}
