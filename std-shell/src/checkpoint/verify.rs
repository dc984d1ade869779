//! A step's directory becomes a verdict: whole, or every flaw by name. What is whole stays mapped, so what is used afterwards is
//! what was checked.
//!
//! All cores hash, the largest files first. The flaws are those that keep [`load`](crate::checkpoint::load()) from taking it,
//! no more and no fewer.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use safestep_core::Limits;
use safestep_core::checkpoint::{
    Difference, Digest, FoundFile, MANIFEST_NAME, Manifest, Sha256, TrainerState, check_optimizer_state,
};
use safestep_core::limits::DOCUMENT_BYTES_MAX;

use super::names::{MODEL, OPTIMIZER, OPTIMIZER_STATE, TRAINER_STATE, step};
use crate::disk::irregular;
use crate::error::{Cause, Error, FileKind, terminal_safe};
use crate::mapped::Mapped;
use crate::model::Model;

/// What a look at a step's directory found.
#[derive(Debug)]
pub struct Verdict {
    /// The step that its manifest names, if that could be read.
    pub step: Option<u64>,
    /// The length of all files in it, in bytes.
    pub bytes: u64,
    /// What is wrong; nothing, if it is whole.
    pub flaws: Vec<Flaw>,
}

impl Verdict {
    /// Whether a load would take it.
    pub fn is_whole(&self) -> bool {
        self.flaws.is_empty()
    }
}

/// One thing that is wrong with a step's directory. Displays as one line that begins with the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The file's name.
    pub file: OsString,
    /// What is wrong with it.
    pub kind: FlawKind,
}

/// What can be wrong with a file of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlawKind {
    /// It is not there.
    Missing,
    /// The manifest does not list it.
    Unlisted,
    /// It is no regular file.
    NotRegular(FileKind),
    /// It is longer or shorter than the manifest says.
    Size {
        /// The length listed, in bytes.
        expected: u64,
        /// The length found, in bytes.
        found: u64,
    },
    /// It has other bytes than the manifest says.
    Sha256 {
        /// The digest listed.
        expected: Digest,
        /// The digest found.
        found: Digest,
    },
    /// It could not be read.
    Unreadable(String),
    /// It is of another step than the directory's name says.
    Step {
        /// The step of the name.
        expected: u64,
        /// The step it is of.
        found: u64,
    },
    /// It breaks the rules of its format.
    Malformed(String),
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", terminal_safe(&self.file), self.kind)
    }
}

impl fmt::Display for FlawKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("it is missing"),
            Self::Unlisted => f.write_str("the manifest does not list it"),
            Self::NotRegular(kind) => write!(f, "it is {kind}, not a regular file"),
            Self::Size { expected, found } => write!(f, "expected {expected} bytes, found {found}"),
            Self::Sha256 { expected, found } => write!(f, "expected sha256 {expected}, found {found}"),
            Self::Unreadable(reason) | Self::Malformed(reason) => terminal_safe(reason).fmt(f),
            Self::Step { expected, found } => write!(f, "expected step {expected}, found {found}"),
        }
    }
}

/// Checks a step's directory: the manifest, that there are exactly the files that it lists, their bytes, and that the model,
/// the optimizer and the trainer state can be read. If the directory has a step's name, it has to be of this step.
///
/// `progress` is told how many bytes of how many are through, from any thread.
///
/// # Errors
/// [`Cause::Io`] when the directory cannot be listed; [`Cause::ThreadLost`] when a thread did not come back with its digests. All
/// that is wrong inside is part of the verdict.
pub fn verify(directory: &Path, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Verdict, Error> {
    let inspected = Inspected::of(directory, progress)?;
    let (step, bytes) = (inspected.step, inspected.bytes);
    let flaws = inspected.open().map_or_else(|flaws| flaws, |_| Vec::new());
    Ok(Verdict { step, bytes, flaws })
}

/// A directory whose files have been held against its manifest.
pub(crate) struct Inspected {
    step: Option<u64>,
    bytes: u64,
    flaws: Vec<Flaw>,
    files: BTreeMap<String, Mapped>,
}

/// The parts of a checkpoint that is whole.
pub(crate) struct Opened {
    pub(crate) model: Model,
    pub(crate) optimizer: Model,
    pub(crate) trainer: TrainerState,
    /// All other files.
    pub(crate) files: BTreeMap<String, Mapped>,
}

impl Inspected {
    pub(crate) fn of(directory: &Path, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Self, Error> {
        let (listing, mut flaws) = list(directory)?;
        let bytes = listing.iter().fold(0_u64, |sum, (_, size)| sum.saturating_add(*size));
        let mut inspected = Self { step: None, bytes, flaws: Vec::new(), files: BTreeMap::new() };
        let text = match read_manifest(directory, &listing) {
            Ok(text) => text,
            Err(flaw) => {
                flaws.push(flaw);
                inspected.flaws = flaws;
                return Ok(inspected);
            }
        };
        let manifest = match Manifest::parse(text.bytes()) {
            Ok(manifest) => manifest,
            Err(error) => {
                flaws.push(Flaw::of(MANIFEST_NAME, FlawKind::Malformed(error.to_string())));
                inspected.flaws = flaws;
                return Ok(inspected);
            }
        };
        inspected.step = Some(manifest.step());
        let named = directory.file_name().and_then(step).map(|name| name.step());
        flaws.extend(named.and_then(|named| other_step(MANIFEST_NAME, named, manifest.step())));
        let checked = check_bytes(directory, &manifest, &listing, &mut flaws, progress)?;
        flaws.extend(differences(&manifest, &listing, &checked, &flaws));
        inspected.files = checked.into_iter().map(|(name, (map, _))| (name, map)).collect();
        flaws.sort_by(|one, other| one.file.cmp(&other.file));
        inspected.flaws = flaws;
        Ok(inspected)
    }

    /// The parts, or every flaw.
    pub(crate) fn open(mut self) -> Result<Opened, Vec<Flaw>> {
        let mut flaws = std::mem::take(&mut self.flaws);
        if !flaws.is_empty() {
            return Err(flaws);
        }
        let mut take = |name: &str| self.files.remove(name).ok_or_else(|| Flaw::of(name, FlawKind::Missing));
        let model = take(MODEL).and_then(|map| model(MODEL, map));
        let optimizer = take(OPTIMIZER).and_then(|map| self::model(OPTIMIZER, map)).and_then(with_state);
        let trainer = take(TRAINER_STATE).and_then(|map| trainer(&map, self.step));
        match (model, optimizer, trainer) {
            (Ok(model), Ok(optimizer), Ok(trainer)) => {
                Ok(Opened { model, optimizer, trainer, files: self.files })
            }
            (model, optimizer, trainer) => {
                flaws.extend([model.err(), optimizer.err(), trainer.err()].into_iter().flatten());
                Err(flaws)
            }
        }
    }
}

impl Flaw {
    fn of(file: &str, kind: FlawKind) -> Self {
        Self { file: file.into(), kind }
    }
}

/// The files of a directory with their lengths, by the bytes of their names; and a flaw for each thing that is no file.
fn list(directory: &Path) -> Result<(Listing, Vec<Flaw>), Error> {
    let io = |error| Error::io("list", directory, error);
    let (mut listing, mut flaws) = (Listing::new(), Vec::new());
    for entry in fs::read_dir(directory).map_err(io)? {
        let name = entry.map_err(io)?.file_name();
        match fs::symlink_metadata(directory.join(&name)) {
            Ok(metadata) => match irregular(metadata.file_type()) {
                None => listing.push((name, metadata.len())),
                Some(kind) => flaws.push(Flaw { file: name, kind: FlawKind::NotRegular(kind) }),
            },
            Err(error) => flaws.push(Flaw { file: name, kind: FlawKind::Unreadable(error.to_string()) }),
        }
    }
    listing.sort();
    Ok((listing, flaws))
}

fn read_manifest(directory: &Path, listing: &[(OsString, u64)]) -> Result<Mapped, Flaw> {
    let flaw = |kind| Flaw::of(MANIFEST_NAME, kind);
    let size = listing.iter().find(|(name, _)| name == MANIFEST_NAME).map(|(_, size)| *size);
    let size = size.ok_or_else(|| flaw(FlawKind::Missing))?;
    if size > DOCUMENT_BYTES_MAX {
        let reason = format!("expected at most {DOCUMENT_BYTES_MAX} bytes, found {size}");
        return Err(flaw(FlawKind::Malformed(reason)));
    }
    let map =
        Mapped::open(&directory.join(MANIFEST_NAME)).map_err(|error| unreadable(MANIFEST_NAME, &error))?;
    map.fetch(0, map.len()).map_err(|error| flaw(FlawKind::Unreadable(error.to_string())))?;
    Ok(map)
}

fn unreadable(name: &str, error: &Error) -> Flaw {
    let kind = match error.because() {
        Cause::NotRegular(kind) => FlawKind::NotRegular(*kind),
        because => FlawKind::Unreadable(because.to_string()),
    };
    Flaw::of(name, kind)
}

/// Whether this process, or the machine, has too many files open, or no room for a map.
fn is_shortage(error: &Error) -> bool {
    let Cause::Io(error) = error.because() else { return false };
    let errno = rustix::io::Errno::from_io_error(error);
    matches!(errno, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE | rustix::io::Errno::NOMEM))
}

/// The files of a directory with their lengths, by the bytes of their names.
type Listing = Vec<(OsString, u64)>;

/// Files that have been hashed.
type Checked = BTreeMap<String, (Mapped, Digest)>;

/// Maps and hashes every file that is listed and has the length that is listed.
fn check_bytes(
    directory: &Path,
    manifest: &Manifest<'_>,
    listing: &[(OsString, u64)],
    flaws: &mut Vec<Flaw>,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Checked, Error> {
    let mut work = Vec::new();
    for listed in manifest.files() {
        let name = listed.name.to_string();
        let place = listing.binary_search_by(|(found, _)| found.as_encoded_bytes().cmp(name.as_bytes()));
        let size = place.ok().and_then(|place| listing.get(place)).map(|(_, size)| *size);
        if size == Some(listed.size) {
            match Mapped::open(&directory.join(&name)) {
                Ok(map) => work.push((name, map)),
                // Nothing is wrong with the file.
                Err(error) if is_shortage(&error) => return Err(error),
                Err(error) => flaws.push(unreadable(&name, &error)),
            }
        }
    }
    work.sort_by_key(|(_, map)| std::cmp::Reverse(map.len()));
    let digests =
        hash_all(&work, progress).ok_or_else(|| Error::new("verify", directory, Cause::ThreadLost))?;
    let mut checked = Checked::new();
    for ((name, map), digest) in work.into_iter().zip(digests) {
        match digest {
            Ok(digest) => {
                checked.insert(name, (map, digest));
            }
            Err(error) => flaws.push(Flaw::of(&name, FlawKind::Unreadable(error.to_string()))),
        }
    }
    Ok(checked)
}

/// The digests of files, by as many threads as there are cores; `None` if one came to an end too early and took digests with it.
fn hash_all(
    files: &[(String, Mapped)],
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Option<Vec<io::Result<Digest>>> {
    let total = files.iter().map(|(_, map)| len_bytes(map)).fold(0, u64::saturating_add);
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    let work = || {
        let mut digests = Vec::new();
        while let Some((place, (_, map))) = files.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed))
        {
            let digest = hash(map, &|bytes| {
                progress(done.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes), total);
            });
            digests.push((place, digest));
        }
        digests
    };
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get).min(files.len());
    let mut digests: Vec<_> = files.iter().map(|_| None).collect();
    progress(0, total);
    thread::scope(|scope| {
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        // One that cannot be made leaves its share to the others.
        let helpers: Vec<_> = (1..threads).filter_map(spawn).collect();
        let own = work();
        let others = helpers.into_iter().filter_map(|helper| helper.join().ok()).flatten();
        for (place, digest) in own.into_iter().chain(others) {
            if let Some(to) = digests.get_mut(place) {
                *to = Some(digest);
            }
        }
    });
    digests.into_iter().collect()
}

/// The digest of one file; `through` is told of each portion.
fn hash(map: &Mapped, through: &dyn Fn(u64)) -> io::Result<Digest> {
    let mut hash = Sha256::new();
    let mut begin = 0_usize;
    for portion in map.chunks(PORTION_BYTES) {
        map.fetch(begin, portion.len())?;
        hash.update(portion);
        begin = begin.saturating_add(portion.len());
        through(len_bytes(portion));
    }
    Ok(hash.digest())
}

/// Every way in which the directory is not as the manifest says, but for files that have a flaw already.
fn differences(
    manifest: &Manifest<'_>,
    listing: &[(OsString, u64)],
    checked: &Checked,
    known: &[Flaw],
) -> Vec<Flaw> {
    let found = listing.iter().filter(|(name, _)| name != MANIFEST_NAME).map(|(name, size)| FoundFile {
        name: name.as_encoded_bytes(),
        size: *size,
        sha256: name.to_str().and_then(|name| checked.get(name)).map(|(_, digest)| *digest),
    });
    let differences = manifest.compare(found).map(|difference| match difference {
        Difference::Missing { name } => Flaw::of(&name.to_string(), FlawKind::Missing),
        Difference::Unlisted { name } => {
            let found = listing.iter().find(|(found, _)| found.as_encoded_bytes() == name);
            Flaw { file: found.map(|(name, _)| name.clone()).unwrap_or_default(), kind: FlawKind::Unlisted }
        }
        Difference::Size { name, expected, found } => {
            Flaw::of(&name.to_string(), FlawKind::Size { expected, found })
        }
        Difference::Sha256 { name, expected, found } => {
            Flaw::of(&name.to_string(), FlawKind::Sha256 { expected, found })
        }
    });
    differences.filter(|flaw| known.iter().all(|other| other.file != flaw.file)).collect()
}

fn model(name: &str, map: Mapped) -> Result<Model, Flaw> {
    let malformed = |error: Error| Flaw::of(name, FlawKind::Malformed(error.because().to_string()));
    Model::of_map(map, Limits::default()).map_err(malformed)
}

/// The optimizer, if the rest of its state is JSON.
fn with_state(optimizer: Model) -> Result<Model, Flaw> {
    let checked = optimizer_state(&optimizer).map_or(Ok(()), |text| check_optimizer_state(text.as_bytes()));
    let malformed = |reason| Flaw::of(OPTIMIZER, FlawKind::Malformed(format!("{OPTIMIZER_STATE}: {reason}")));
    checked.map(|()| optimizer).map_err(malformed)
}

/// The rest of an optimizer's state. Who holds nothing beside arrays may have left it out.
pub(crate) fn optimizer_state(optimizer: &Model) -> Option<String> {
    let mut pairs = optimizer.index().metadata().into_iter().flatten();
    pairs.find(|(key, _)| *key == OPTIMIZER_STATE).map(|(_, text)| text.to_string())
}

fn trainer(map: &Mapped, step: Option<u64>) -> Result<TrainerState, Flaw> {
    let malformed = |reason: String| Flaw::of(TRAINER_STATE, FlawKind::Malformed(reason));
    let state = TrainerState::parse(map.bytes()).map_err(|error| malformed(error.to_string()))?;
    match step.and_then(|step| other_step(TRAINER_STATE, step, state.step)) {
        Some(flaw) => Err(flaw),
        None => Ok(state),
    }
}

fn other_step(file: &str, expected: u64, found: u64) -> Option<Flaw> {
    (expected != found).then(|| Flaw::of(file, FlawKind::Step { expected, found }))
}

fn len_bytes(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// How much is read and hashed before progress is told.
const PORTION_BYTES: usize = 1 << 20;
