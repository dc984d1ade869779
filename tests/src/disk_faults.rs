//! Calls to a [`Disk`] -> what running programs see, and what a power failure could leave.
//!
//! A simulated disk in memory. It keeps two images of everything: the live one, which running
//! programs see, and the durable one, which a sync writes. Pulling the plug leaves the durable image
//! plus any part of what was not synced: each change of names on its own (one rename is one change),
//! and of each file's new bytes none, the first half, all, or zeros in their place. File systems with
//! a journal leave less to chance; nothing they leave is worse.
//!
//! It records every call, can fail one or pull the plug at it, and can ignore a sync: a test that
//! still passes then would not have noticed that the sync was missing.
//!
//! The model has no other writers, no permissions and no limit of space. Links are followed by those
//! who call `look`, not on the way of a path. It panics when a test has panicked while holding it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::io::{self, IoSlice};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use safestep::disk::{Disk, Found, Locked, Ownership};
use safestep::error::FileKind;

/// A disk in memory. Paths start at its root, relative ones too.
#[derive(Debug)]
pub struct SimulatedDisk {
    state: Mutex<State>,
}

/// A file of a [`SimulatedDisk`], open for writing.
#[derive(Debug)]
pub struct SimulatedFile(Node);

/// One call and what it was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `look` at a path.
    Look(PathBuf),
    /// `create` a path.
    Create(PathBuf),
    /// `allocate` so many bytes.
    Allocate(u64),
    /// `write` so many bytes, of which some are taken.
    Write(usize),
    /// `sync` of a file, by its number.
    Sync(usize),
    /// `write_back` of a file, by its number.
    WriteBack(usize),
    /// `rename` from, to.
    Rename(PathBuf, PathBuf),
    /// `sync_dir` of a directory.
    SyncDirectory(PathBuf),
    /// `remove` a path.
    Remove(PathBuf),
    /// `list` a directory.
    List(PathBuf),
    /// `read` a file.
    Read(PathBuf),
    /// `make_dir` a path.
    MakeDirectory(PathBuf),
    /// `remove_dir` a path.
    RemoveDirectory(PathBuf),
    /// `lock` a directory.
    Lock(PathBuf),
    /// `free_bytes` of a directory's file system.
    FreeBytes,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call fails with this error number and has no effect; later calls work.
    Error(i32),
    /// This call and all later ones fail with this error number.
    Broken(i32),
    /// The power goes before the call has an effect: it and all later ones fail and are not recorded.
    PowerFailure,
}

/// All that stands on a disk, by path; directories too, but for the root.
pub type Image = BTreeMap<PathBuf, Standing>;

/// What stands at one path of an [`Image`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// A regular file's content.
    File(Vec<u8>),
    /// A symbolic link.
    Link(PathBuf),
    /// A directory.
    Directory,
    /// A FIFO, a device, …
    Other(FileKind),
}

impl SimulatedDisk {
    /// A disk that holds an image, all of it durable. Directories on the way to a path are made.
    pub fn holding<P: AsRef<Path>>(image: impl IntoIterator<Item = (P, Standing)>) -> Self {
        let root = Content::Directory(BTreeMap::new());
        let mut state =
            State { live: vec![root], most_bytes: usize::MAX, free_bytes: u64::MAX, ..State::default() };
        for (path, standing) in image {
            state.place(path.as_ref(), standing);
        }
        state.durable = state.live.clone();
        Self { state: Mutex::new(state) }
    }

    /// Makes the call with this number (from 0 on) go wrong.
    #[must_use]
    pub fn fail_at(self, call: usize, fault: Fault) -> Self {
        self.state().fault = Some((call, fault));
        self
    }

    /// Makes the sync with this number (files and directories together, from 0 on) say `Ok` and do nothing.
    #[must_use]
    pub fn ignore_sync(self, sync: usize) -> Self {
        self.state().ignored_sync = Some(sync);
        self
    }

    /// Makes no write take more than so many bytes.
    #[must_use]
    pub fn with_short_writes(self, most_bytes: usize) -> Self {
        self.state().most_bytes = most_bytes;
        self
    }

    /// Makes so many bytes be free, whatever is written.
    #[must_use]
    pub fn with_free_bytes(self, free_bytes: u64) -> Self {
        self.state().free_bytes = free_bytes;
        self
    }

    /// The calls so far, failed ones too.
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// How many of the calls so far were syncs.
    pub fn syncs(&self) -> usize {
        self.state().syncs()
    }

    /// What running programs see.
    pub fn live(&self) -> Image {
        image(&self.state().live)
    }

    /// What may be found when the power fails now, each possible image once. When there are more
    /// than `most`, so many are drawn with a fixed seed; the two in which nothing or everything
    /// survives are always there.
    pub fn after_power_failure(&self, most: usize) -> BTreeSet<Image> {
        let state = self.state();
        let files = state.unsynced_files();
        let mut possible = 1_usize;
        for choices in files.iter().map(|(_, contents)| contents.len()).chain(state.pending.iter().map(|_| 2))
        {
            possible = possible.saturating_mul(choices);
        }
        let mut images = BTreeSet::from([image(&state.durable), image(&state.live)]);
        let mut seed = 0x5afe_57e9;
        for number in 0..possible.min(most) {
            let mut rest = number;
            images.insert(state.survivors(&files, |choices| {
                let digit = if possible <= most { rest } else { draw(&mut seed) };
                rest /= choices;
                digit % choices
            }));
        }
        images
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a test has panicked")
    }

    /// Records a call, and fails it when that is planned.
    fn call(&self, call: Call) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        if let Some(number) = state.broken {
            return Err(io::Error::from_raw_os_error(number));
        }
        let fault = state.fault.filter(|(at, _)| *at == state.calls.len()).map(|(_, fault)| fault);
        if fault != Some(Fault::PowerFailure) {
            state.calls.push(call);
        }
        let number = match fault {
            None => return Ok(state),
            Some(Fault::Error(number)) => number,
            Some(Fault::Broken(number)) => *state.broken.insert(number),
            Some(Fault::PowerFailure) => *state.broken.insert(EIO),
        };
        Err(io::Error::from_raw_os_error(number))
    }
}

impl Disk for SimulatedDisk {
    type File = SimulatedFile;
    type Lock = ();

    fn look(&self, path: &Path) -> io::Result<Found> {
        let state = self.call(Call::Look(path.into()))?;
        let Some(node) = state.find(path)? else { return Ok(Found::Nothing) };
        Ok(match &state.live[node] {
            Content::File(_) => Found::File(state.ownership.get(&node).copied().unwrap_or(OWNERSHIP)),
            Content::Link(to) => Found::Link(to.clone()),
            Content::Directory(_) => Found::Other(FileKind::Directory),
            Content::Other(kind) => Found::Other(*kind),
        })
    }

    fn create(&self, path: &Path, ownership: Option<&Ownership>) -> io::Result<SimulatedFile> {
        let mut state = self.call(Call::Create(path.into()))?;
        if state.find(path)?.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (directory, name) = state.split(path)?;
        let node = state.add(Content::File(Vec::new()));
        state.durable.push(Content::File(Vec::new()));
        state.ownership.insert(node, ownership.copied().unwrap_or(OWNERSHIP));
        state.change(vec![(directory, name, Some(node))]);
        Ok(SimulatedFile(node))
    }

    fn allocate(&self, _: &SimulatedFile, len_bytes: u64) -> io::Result<()> {
        self.call(Call::Allocate(len_bytes)).map(drop)
    }

    fn write(&self, file: &SimulatedFile, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
        let mut state = self.call(Call::Write(bytes.len()))?;
        let taken = bytes.len().min(state.most_bytes);
        if let Content::File(content) = &mut state.live[file.0] {
            content.extend_from_slice(&bytes[..taken]);
        }
        Ok(taken)
    }

    fn sync(&self, file: &SimulatedFile) -> io::Result<()> {
        let mut state = self.call(Call::Sync(file.0))?;
        if !state.ignores_this_sync() {
            state.durable[file.0] = state.live[file.0].clone();
        }
        Ok(())
    }

    /// It may do nothing, and that is the worst.
    fn write_back(&self, file: &SimulatedFile) -> io::Result<()> {
        self.call(Call::WriteBack(file.0)).map(drop)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.call(Call::Rename(from.into(), to.into()))?;
        let node = state.find(from)?.ok_or(io::ErrorKind::NotFound)?;
        let is_directory = |node: &Node| matches!(state.live[*node], Content::Directory(_));
        let replaced = state.find(to)?;
        match replaced.map(|replaced| (is_directory(&node), is_directory(&replaced))) {
            Some((false, true)) => return Err(io::ErrorKind::IsADirectory.into()),
            Some((true, false)) => return Err(io::ErrorKind::NotADirectory.into()),
            _ => replaced.map_or(Ok(()), |replaced| state.is_empty(replaced))?,
        }
        let ((from_directory, from_name), (to_directory, to_name)) = (state.split(from)?, state.split(to)?);
        state.change(vec![(from_directory, from_name, None), (to_directory, to_name, Some(node))]);
        Ok(())
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.call(Call::SyncDirectory(directory.into()))?;
        let node = state.find(directory)?.ok_or(io::ErrorKind::NotFound)?;
        if !state.ignores_this_sync() {
            let here = |change: &Change| change.iter().any(|(directory, ..)| *directory == node);
            let (synced, pending): (Vec<_>, _) =
                std::mem::take(&mut state.pending).into_iter().partition(here);
            state.pending = pending;
            synced.iter().for_each(|change| apply(&mut state.durable, change));
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.call(Call::Remove(path.into()))?;
        let node = state.find(path)?.ok_or(io::ErrorKind::NotFound)?;
        if matches!(state.live[node], Content::Directory(_)) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let (directory, name) = state.split(path)?;
        state.change(vec![(directory, name, None)]);
        Ok(())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let state = self.call(Call::List(directory.into()))?;
        let node = state.find(directory)?.ok_or(io::ErrorKind::NotFound)?;
        match &state.live[node] {
            Content::Directory(names) => Ok(names.keys().cloned().collect()),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn read(&self, path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
        let state = self.call(Call::Read(path.into()))?;
        let node = state.find(path)?.ok_or(io::ErrorKind::NotFound)?;
        match &state.live[node] {
            Content::File(bytes) if bytes.len() as u64 > most_bytes => {
                Err(io::ErrorKind::FileTooLarge.into())
            }
            Content::File(bytes) => Ok(bytes.clone()),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.call(Call::MakeDirectory(path.into()))?;
        if state.find(path)?.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (directory, name) = state.split(path)?;
        let node = state.add(Content::Directory(BTreeMap::new()));
        state.durable.push(Content::Directory(BTreeMap::new()));
        state.change(vec![(directory, name, Some(node))]);
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.call(Call::RemoveDirectory(path.into()))?;
        let node = state.find(path)?.ok_or(io::ErrorKind::NotFound)?;
        if !matches!(state.live[node], Content::Directory(_)) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        state.is_empty(node)?;
        let (directory, name) = state.split(path)?;
        state.change(vec![(directory, name, None)]);
        Ok(())
    }

    /// There is nobody else.
    fn lock(&self, directory: &Path) -> io::Result<Locked<()>> {
        self.call(Call::Lock(directory.into())).map(|_| Locked::Ours(()))
    }

    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        self.call(Call::FreeBytes).map(|state| state.free_bytes)
    }
}

/// How much a search for crash points has looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Searched {
    /// Calls that the job makes when nothing goes wrong; the plug was pulled before each, and after the last.
    pub calls: usize,
    /// How many of them are syncs.
    pub syncs: usize,
    /// Images that were judged.
    pub images: usize,
}

impl fmt::Display for Searched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, syncs, images } = self;
        write!(f, "{calls} calls, of them {syncs} syncs: {images} images judged")
    }
}

/// Runs `job` on a fresh disk from `setup`, with the plug pulled at each of its calls in turn and
/// after the last, and has `judge` look at every image that the power failure may leave (at most
/// `most` for each point).
///
/// `job` says whether it reported success; `judge` gets an image and that answer, and says what is wrong.
///
/// # Errors
/// The first complaint of `judge`, with the point and the calls before it; or that the job fails
/// without any fault.
pub fn crash_at_every_call(
    most: usize,
    setup: impl Fn() -> SimulatedDisk,
    job: impl Fn(&SimulatedDisk) -> bool,
    judge: impl Fn(&Image, bool) -> Result<(), String>,
) -> Result<Searched, String> {
    let whole = setup();
    if !job(&whole) {
        return Err(format!("the job fails on a sound disk: {:#?}", whole.calls()));
    }
    let calls = whole.calls().len();
    let mut searched = Searched { calls, syncs: whole.syncs(), images: 0 };
    for point in 0..=calls {
        let disk = setup().fail_at(point, Fault::PowerFailure);
        let success = job(&disk);
        for image in disk.after_power_failure(most) {
            judge(&image, success).map_err(|complaint| {
                format!("{complaint}, when the power fails after {:#?}", disk.calls())
            })?;
            searched.images += 1;
        }
    }
    Ok(searched)
}

/// The number of a file, directory or link; the root is 0.
type Node = usize;

/// Names that change together: in which directory, which name, what it stands for from now on.
type Change = Vec<(Node, OsString, Option<Node>)>;

#[derive(Debug, Default)]
struct State {
    /// What each node holds, as programs see it.
    live: Vec<Content>,
    /// What each node holds after a power failure, for certain.
    durable: Vec<Content>,
    /// Changes of names that are live and not durable, oldest first.
    pending: Vec<Change>,
    ownership: BTreeMap<Node, Ownership>,
    calls: Vec<Call>,
    fault: Option<(usize, Fault)>,
    /// The error of every further call.
    broken: Option<i32>,
    ignored_sync: Option<usize>,
    most_bytes: usize,
    free_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    File(Vec<u8>),
    Directory(BTreeMap<OsString, Node>),
    Link(PathBuf),
    Other(FileKind),
}

impl State {
    fn syncs(&self) -> usize {
        self.calls.iter().filter(|call| matches!(call, Call::Sync(_) | Call::SyncDirectory(_))).count()
    }

    /// Whether the sync that was just recorded is the one to ignore.
    fn ignores_this_sync(&self) -> bool {
        self.ignored_sync.is_some_and(|sync| sync + 1 == self.syncs())
    }

    /// Puts something at a path of the live image.
    fn place(&mut self, path: &Path, standing: Standing) {
        let directory = || Content::Directory(BTreeMap::new());
        if let Some(parent) = path.parent().filter(|parent| matches!(self.find(parent), Ok(None))) {
            self.place(parent, Standing::Directory);
        }
        let node = self.add(match standing {
            Standing::File(bytes) => Content::File(bytes),
            Standing::Link(to) => Content::Link(to),
            Standing::Directory => directory(),
            Standing::Other(kind) => Content::Other(kind),
        });
        let (parent, name) = self.split(path).expect("an image has a directory for every name");
        apply(&mut self.live, &vec![(parent, name, Some(node))]);
    }

    fn add(&mut self, content: Content) -> Node {
        self.live.push(content);
        self.live.len() - 1
    }

    /// What stands at a path of the live image.
    fn find(&self, path: &Path) -> io::Result<Option<Node>> {
        let mut way = vec![0];
        for component in path.components() {
            let here = way.last().copied().unwrap_or_default();
            match (component, &self.live[here]) {
                (Component::Normal(name), Content::Directory(names)) => match names.get(name) {
                    Some(node) => way.push(*node),
                    None => return Ok(None),
                },
                (Component::Normal(_), _) => return Err(io::ErrorKind::NotADirectory.into()),
                (Component::ParentDir, _) => drop(way.pop()),
                _ => {}
            }
        }
        Ok(Some(way.last().copied().unwrap_or_default()))
    }

    /// The directory that a path's last name stands in, and that name.
    fn split(&self, path: &Path) -> io::Result<(Node, OsString)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = self.find(path.parent().unwrap_or(Path::new("")))?.ok_or(io::ErrorKind::NotFound)?;
        match self.live[parent] {
            Content::Directory(_) => Ok((parent, name.to_os_string())),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// An error unless it is a file or an empty directory.
    fn is_empty(&self, node: Node) -> io::Result<()> {
        match &self.live[node] {
            Content::Directory(names) if !names.is_empty() => Err(io::ErrorKind::DirectoryNotEmpty.into()),
            _ => Ok(()),
        }
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.live, &change);
        self.pending.push(change);
    }

    /// The files with bytes that are not durable, and for each what may be found in it.
    fn unsynced_files(&self) -> Vec<(Node, Vec<Vec<u8>>)> {
        let pairs = self.durable.iter().zip(&self.live).enumerate();
        let unsynced = pairs.filter_map(|(node, pair)| match pair {
            (Content::File(durable), Content::File(live)) if durable != live => {
                let half = durable.len() + live.len().saturating_sub(durable.len()) / 2;
                let mut zeros = durable.clone();
                zeros.resize(live.len(), 0);
                Some((node, vec![durable.clone(), live.clone(), live[..half].to_vec(), zeros]))
            }
            _ => None,
        });
        unsynced.collect()
    }

    /// The image for one set of choices: `choose(n)` says which of n possibilities it is.
    fn survivors(&self, files: &[(Node, Vec<Vec<u8>>)], mut choose: impl FnMut(usize) -> usize) -> Image {
        let mut contents = self.durable.clone();
        for (node, possible) in files {
            contents[*node] = Content::File(possible[choose(possible.len())].clone());
        }
        for change in &self.pending {
            if choose(2) == 1 {
                apply(&mut contents, change);
            }
        }
        image(&contents)
    }
}

fn apply(contents: &mut [Content], change: &Change) {
    for (directory, name, node) in change {
        if let Content::Directory(names) = &mut contents[*directory] {
            match node {
                Some(node) => names.insert(name.clone(), *node),
                None => names.remove(name),
            };
        }
    }
}

/// Everything that can be reached from the root.
fn image(contents: &[Content]) -> Image {
    let mut image = Image::new();
    let mut open = vec![(PathBuf::new(), 0)];
    while let Some((path, node)) = open.pop() {
        let standing = match &contents[node] {
            Content::File(bytes) => Standing::File(bytes.clone()),
            Content::Link(to) => Standing::Link(to.clone()),
            Content::Other(kind) => Standing::Other(*kind),
            Content::Directory(names) => {
                open.extend(names.iter().map(|(name, node)| (path.join(name), *node)));
                Standing::Directory
            }
        };
        image.insert(path, standing);
    }
    image.remove(Path::new(""));
    image
}

/// SplitMix64.
fn draw(seed: &mut u64) -> usize {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut bits = *seed;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    usize::try_from((bits ^ (bits >> 31)) >> 33).unwrap_or_default()
}

/// Input/output error.
pub const EIO: i32 = 5;
/// A signal came first; try again.
pub const EINTR: i32 = 4;
/// Permission denied.
pub const EACCES: i32 = 13;
/// The name is taken.
pub const EEXIST: i32 = 17;
/// The disk is full.
pub const ENOSPC: i32 = 28;

/// The permissions of a file that was made without any.
const OWNERSHIP: Ownership = Ownership { mode: 0o644, owner: 0, group: 0 };
