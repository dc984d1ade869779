//! Weights and moments become a snapshot file, region by region, and a snapshot file becomes a map of them.
//!
//! Writing takes constant memory and leaves the whole file or none ([`Commit`]); opening reads eight bytes, however long
//! the file is, and pages come in as they are touched. The hazard of maps is [`Mapped`]'s.

use std::path::Path;

use safestep_core::snapshot::{Region, RegionView, Snapshot};

use crate::commit::Commit;
use crate::disk::Disk;
use crate::error::{Cause, Error, Refusal};
use crate::mapped::Mapped;
use crate::read_at::ReadAt as _;

/// The name of the snapshot of a step: six digits, and more where there are more.
pub fn snapshot_name(step: u64) -> String {
    format!("step_{step:06}.bin")
}

/// Writes a snapshot whose regions are in memory.
///
/// # Errors
/// [`Cause::Refused`] if the regions are not of one length; otherwise as [`SnapshotWriter`].
pub fn write_snapshot<D: Disk>(
    disk: &D,
    path: impl AsRef<Path>,
    step: u64,
    [weights, first_moment, second_moment]: [&[f32]; 3],
) -> Result<(), Error> {
    let path = path.as_ref();
    for (region, values) in [(Region::FirstMoment, first_moment), (Region::SecondMoment, second_moment)] {
        if values.len() != weights.len() {
            let (expected, found, name) = (weights.len(), values.len(), region.name());
            let reason = format!("expected {expected} numbers in {name} as in weights, found {found}");
            return Err(Error::new("write", path, Cause::Refused(Refusal::State(reason))));
        }
    }
    let mut writer = SnapshotWriter::create(disk, path, step, weights.len() as u64)?;
    for values in [weights, first_moment, second_moment] {
        writer.write(values)?;
    }
    writer.finish()
}

/// A snapshot file in the making. Dropped before [`finish`](Self::finish), it leaves nothing behind.
///
/// ```
/// use safestep::OsDisk;
/// use safestep::run::{MappedSnapshot, SnapshotWriter, snapshot_name};
/// use safestep_core::snapshot::Region;
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join(snapshot_name(7));
/// let mut writer = SnapshotWriter::create(&OsDisk, &path, 7, 2)?;
/// for region in [[0.5, -0.0], [0.25, f32::NAN], [1e-40, 2.0]] {
///     writer.write(&region)?; // weights, m, v; in pieces of any size
/// }
/// writer.finish()?;
///
/// let snapshot = MappedSnapshot::open(&path)?;
/// assert_eq!(snapshot.head().step(), 7);
/// assert_eq!(snapshot.region(Region::Weights).floats(), Ok(&[0.5, -0.0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SnapshotWriter<'d, D: Disk> {
    commit: Commit<'d, D>,
    /// How many numbers are still to come, in all regions together.
    missing: u64,
    total: u64,
    buffer: Vec<u8>,
}

impl<'d, D: Disk> SnapshotWriter<'d, D> {
    /// Begins the file beside `path`, makes room for all of it and writes its head.
    ///
    /// # Errors
    /// [`Cause::Snapshot`] for a step or a count that the head cannot hold, before anything is written; otherwise as
    /// [`Commit::begin`], [`Commit::allocate`] and [`Commit::write`].
    pub fn create(disk: &'d D, path: impl AsRef<Path>, step: u64, parameters: u64) -> Result<Self, Error> {
        let path = path.as_ref();
        let head = Snapshot::new(step, parameters)
            .map_err(|error| Error::new("write", path, Cause::Snapshot(error)))?;
        let mut commit = Commit::begin(disk, path)?;
        commit.allocate(head.file_len().value())?;
        commit.write(&head.head())?;
        let total = parameters.saturating_mul(3);
        Ok(Self { commit, missing: total, total, buffer: Vec::with_capacity(PIECE_NUMBERS * 4) })
    }

    /// Writes the next numbers, with their bits: weights, then m, then v, across regions if you like.
    ///
    /// # Errors
    /// [`Cause::Refused`] for more numbers than there are; otherwise as [`Commit::write`].
    pub fn write(&mut self, values: &[f32]) -> Result<(), Error> {
        let Some(missing) = self.missing.checked_sub(values.len() as u64) else {
            return Err(self.refuse(&format!("{} more", values.len() as u64 - self.missing)));
        };
        for piece in values.chunks(PIECE_NUMBERS) {
            self.buffer.clear();
            self.buffer.extend(piece.iter().flat_map(|value| value.to_le_bytes()));
            self.commit.write(&self.buffer)?;
        }
        self.missing = missing;
        Ok(())
    }

    /// The same for numbers that are bytes already, little-endian, such as those of a mapped file.
    ///
    /// # Errors
    /// As [`write`](Self::write); also [`Cause::Refused`] for bytes that are not whole numbers.
    pub fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let (numbers, rest) = (bytes.len() as u64 / 4, bytes.len() % 4);
        let missing = match self.missing.checked_sub(numbers) {
            _ if rest > 0 => return Err(self.refuse(&format!("one of {rest} bytes"))),
            None => return Err(self.refuse(&format!("{} more", numbers - self.missing))),
            Some(missing) => missing,
        };
        self.commit.write(bytes)?;
        self.missing = missing;
        Ok(())
    }

    /// Makes the file durable and gives it its name.
    ///
    /// # Errors
    /// [`Cause::Refused`] if numbers are missing; otherwise as [`Commit::finish`]. An old file is then as it was.
    pub fn finish(self) -> Result<(), Error> {
        match self.missing {
            0 => self.commit.finish(),
            missing => Err(self.refuse(&format!("{missing} fewer"))),
        }
    }

    fn refuse(&self, found: &str) -> Error {
        let reason = format!("expected {} numbers in three regions, found {found}", self.total);
        Error::new("write", self.commit.target(), Cause::Refused(Refusal::State(reason)))
    }
}

/// A snapshot file, mapped.
#[derive(Debug)]
pub struct MappedSnapshot {
    map: Mapped,
    head: Snapshot,
}

impl MappedSnapshot {
    /// Maps a file and judges its head and length.
    ///
    /// # Errors
    /// [`Cause::Snapshot`] with the first broken rule; otherwise as [`Mapped::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let map = Mapped::open(path)?;
        match Snapshot::read(map.bytes(), map.len_bytes()) {
            Ok(head) => Ok(Self { map, head }),
            Err(error) => Err(Error::new("accept", path, Cause::Snapshot(error))),
        }
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        self.map.path()
    }

    /// Step, number of parameters, and where the regions are.
    pub fn head(&self) -> &Snapshot {
        &self.head
    }

    /// A region, in place.
    pub fn region(&self, region: Region) -> RegionView<'_> {
        self.head.view(self.map.bytes(), region).unwrap_or_default()
    }
}

/// How many numbers become bytes at once.
const PIECE_NUMBERS: usize = 1 << 14;
