//! Bytes for a path -> a file that appears there whole and durable, or not at all.
//!
//! ```text
//! begin    look where the path leads; create  .<name>.<pid>-<random>.tmp  beside the target
//! write    append to it, as often as you like, in any sizes
//! finish   sync the file; rename it over the target; sync the directory
//! ```
//!
//! A reader, and a machine that comes up after a power failure, sees the old file or the new one,
//! never a part: the content is durable before it gets the name, and `finish` returns after the
//! name is durable too. After an error the target is as it was and the temporary file is gone; the
//! one exception is the last step, and its error says so ([`Cause::NotDurable`]). A sync that
//! failed is never tried again: the second one may say that all is well about bytes that are lost.
//! Nothing here panics; the heap holds one buffer.
//!
//! What a killed process leaves is the temporary file. Its name ends in `.tmp` and is never used
//! again; a program that wants to tidy up on SIGINT or SIGTERM can remove
//! [`Commit::temporary_path`], this library installs no handlers.
//!
//! The new file is a new inode. Other hard links to the old one keep the old content, and so do
//! those who have it open or mapped, which is why source and target can be the same file.
//! Permissions and, where allowed, owner and group are carried over; access control lists and
//! extended attributes are not.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, IoSlice};
use std::mem;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, Found, Ownership};
use crate::error::{Cause, Error, FileKind};

/// A file on its way to its place. Dropped without [`finish`](Self::finish), it leaves nothing behind.
///
/// ```
/// use safestep::{Commit, OsDisk};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("greeting");
/// std::fs::write(&path, "old")?;
///
/// let mut commit = Commit::begin(&OsDisk, &path)?;
/// commit.write(b"hello, ")?;
/// commit.write(b"world")?;
/// assert_eq!(std::fs::read_to_string(&path)?, "old");
///
/// commit.finish()?;
/// assert_eq!(std::fs::read_to_string(&path)?, "hello, world");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Commit<'d, D: Disk> {
    disk: &'d D,
    places: Places,
    /// None after an error, and once the file has its name: then there is nothing to write to or to remove.
    draft: Option<Draft<D::File>>,
}

impl<'d, D: Disk> Commit<'d, D> {
    /// Makes a temporary file beside the file that `target` leads to.
    ///
    /// A symbolic link stays and the file it leads to is replaced, through any number of links that
    /// the disk allows; a link to nothing gets the file it names. An existing file need not be
    /// writable, only its directory. A relative path is looked up anew by each call, so the working
    /// directory should stay the same until the end.
    ///
    /// # Errors
    /// [`Cause::NotRegular`] when a directory, FIFO, socket or device stands there; [`Cause::Io`]
    /// when the path cannot be looked up, its links go round in a loop, or its directory takes no
    /// new file.
    pub fn begin(disk: &'d D, target: &Path) -> Result<Self, Error> {
        let (target, ownership) = resolve(disk, target)?;
        let Some(name) = target.file_name() else {
            return Err(Error::io("write", target, io::ErrorKind::InvalidFilename.into()));
        };
        let gathered = Gathered::new().map_err(|error| Error::io("write", &target, error))?;
        let (temporary, file) = create_beside(disk, &target, name, ownership.as_ref())?;
        let directory = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
            _ => PathBuf::from("."),
        };
        let draft = Draft { file, gathered };
        Ok(Self { disk, places: Places { target, directory, temporary }, draft: Some(draft) })
    }

    /// The file that will be there: the given path, or where its symbolic links lead.
    pub fn target(&self) -> &Path {
        &self.places.target
    }

    /// The file that holds the bytes until [`finish`](Self::finish), and that a killed process leaves behind.
    pub fn temporary_path(&self) -> &Path {
        &self.places.temporary
    }

    /// Reserves space for `len_bytes` in all, to learn about a full disk now. It is a promise of
    /// space, not of length: fewer or more may be written. Where the file system cannot reserve,
    /// nothing happens.
    ///
    /// # Errors
    /// [`Cause::Io`] when there is not so much space, and the commit is over.
    pub fn allocate(&mut self, len_bytes: u64) -> Result<(), Error> {
        self.attempt("reserve space for", |disk, _, draft| disk.allocate(&draft.file, len_bytes))
    }

    /// Appends `bytes`. Small pieces are gathered, large ones go to the disk as they are.
    ///
    /// # Errors
    /// [`Cause::Io`], and the commit is over: every later call is refused with [`Cause::Abandoned`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.attempt("write", |disk, _, draft| draft.gathered.write(disk, &draft.file, bytes))
    }

    /// Whether an error has ended the commit: then nothing is written any more, and nothing is left.
    pub fn is_abandoned(&self) -> bool {
        self.draft.is_none()
    }

    /// Makes the bytes durable, puts the file in its place and makes that durable.
    ///
    /// # Errors
    /// [`Cause::Io`], and the target is as it was; [`Cause::NotDurable`] ([`Error::is_in_place`])
    /// when the new file is in place and only the last step failed; [`Cause::Abandoned`] when an
    /// earlier call had failed.
    pub fn finish(self) -> Result<(), Error> {
        place_all([self.seal()?], &mut |_| ())
    }

    /// Makes the bytes durable and closes the file, which keeps its temporary name for now: so that a set of files appears only
    /// when all of them are good, by [`place_all`].
    ///
    /// # Errors
    /// [`Cause::Io`], and the target is as it was; [`Cause::Abandoned`] when an earlier call had failed.
    pub fn seal(mut self) -> Result<Sealed<'d, D>, Error> {
        self.attempt("write", |disk, _, draft| draft.gathered.flush(disk, &draft.file))?;
        self.attempt("sync", |disk, _, draft| disk.sync(&draft.file))?;
        self.draft = None;
        Ok(Sealed { disk: self.disk, places: mem::take(&mut self.places), waits: true })
    }

    /// Does one step, unless an earlier one failed; an error ends the commit.
    fn attempt(
        &mut self,
        doing: &'static str,
        step: impl FnOnce(&D, &Places, &mut Draft<D::File>) -> io::Result<()>,
    ) -> Result<(), Error> {
        let Some(draft) = &mut self.draft else {
            return Err(Error::new(doing, &self.places.target, Cause::Abandoned));
        };
        step(self.disk, &self.places, draft).map_err(|error| {
            self.abandon();
            Error::io(doing, &self.places.target, error)
        })
    }

    /// Closes and removes the temporary file; every later call is refused with [`Cause::Abandoned`]. If removing it fails
    /// there is nobody to help: the error that led here is the one to tell.
    pub fn abandon(&mut self) {
        if self.draft.take().is_some() {
            let _ = self.disk.remove(&self.places.temporary);
        }
    }
}

impl<D: Disk> Drop for Commit<'_, D> {
    fn drop(&mut self) {
        self.abandon();
    }
}

/// A file whose bytes are durable and that waits for its name. Dropped without [`place_all`], it leaves nothing behind.
#[derive(Debug)]
pub struct Sealed<'d, D: Disk> {
    disk: &'d D,
    places: Places,
    /// Whether it has its temporary name.
    waits: bool,
}

impl<D: Disk> Drop for Sealed<'_, D> {
    fn drop(&mut self) {
        if self.waits {
            let _ = self.disk.remove(&self.places.temporary);
        }
    }
}

/// Puts files in their places, in this order, and makes that durable, each directory once. `placed` is told how many are there.
///
/// Each appears in one step, but not all of them in one: a power failure in the middle may leave some in their places.
///
/// # Errors
/// [`Cause::Io`] for the first that cannot be put in its place: those before it stay and are made durable, the others are gone;
/// [`Cause::NotDurable`] when all are in their places and only the last step failed.
pub fn place_all<'d, D: Disk + 'd>(
    files: impl IntoIterator<Item = Sealed<'d, D>>,
    placed: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let mut files: Vec<_> = files.into_iter().collect();
    let mut directories = BTreeMap::new();
    let (mut done, mut count) = (Ok(()), 0_u64);
    for Sealed { disk, places, waits } in &mut files {
        if let Err(error) = disk.rename(&places.temporary, &places.target) {
            done = Err(Error::io("put the new file at", &places.target, error));
            break;
        }
        *waits = false;
        count = count.saturating_add(1);
        placed(count);
        directories.entry(&places.directory).or_insert((*disk, &places.target));
    }
    for (directory, (disk, target)) in directories {
        if let Err(error) = disk.sync_dir(directory) {
            done = done.and(Err(Error::new("make durable", target, Cause::NotDurable(error))));
        }
    }
    done
}

/// The paths of a commit.
#[derive(Debug, Default)]
struct Places {
    target: PathBuf,
    /// Where the target's name stands; never empty.
    directory: PathBuf,
    temporary: PathBuf,
}

/// The temporary file, and the bytes that are not in it yet.
#[derive(Debug)]
struct Draft<F> {
    file: F,
    gathered: Gathered,
}

/// Small pieces that go to a file together.
#[derive(Debug)]
struct Gathered {
    buffer: Vec<u8>,
}

impl Gathered {
    fn new() -> io::Result<Self> {
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(GATHERED_BYTES)?;
        Ok(Self { buffer })
    }

    /// Appends bytes; large pieces go to the file as they are.
    fn write<D: Disk>(&mut self, disk: &D, file: &D::File, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > GATHERED_BYTES - self.buffer.len() {
            self.flush(disk, file)?;
        }
        if bytes.len() >= GATHERED_BYTES {
            return write_all(disk, file, &mut [IoSlice::new(bytes)]);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes what is gathered.
    fn flush<D: Disk>(&mut self, disk: &D, file: &D::File) -> io::Result<()> {
        write_all(disk, file, &mut [IoSlice::new(&self.buffer)])?;
        self.buffer.clear();
        Ok(())
    }
}

/// Writes all pieces: again what a short write left, and all of it after a signal.
pub(crate) fn write_all<D: Disk>(disk: &D, file: &D::File, mut pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
    // Those without a byte, which no answer would ever count.
    IoSlice::advance_slices(&mut pieces, 0);
    while !pieces.is_empty() {
        match disk.write(file, pieces) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                // More than there is would be a panic, and cannot be.
                let left = pieces.iter().fold(0, |sum: usize, piece| sum.saturating_add(piece.len()));
                IoSlice::advance_slices(&mut pieces, count.min(left));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Follows symbolic links from `target` to the place where a file is, or can be; and the
/// permissions of the file there.
fn resolve<D: Disk>(disk: &D, target: &Path) -> Result<(PathBuf, Option<Ownership>), Error> {
    let not_regular = |path: &Path, kind| Err(Error::new("write", path, Cause::NotRegular(kind)));
    let mut path = target.to_path_buf();
    for _ in 0..=MAX_LINKS {
        match disk.look(&path).map_err(|error| Error::io("write", &path, error))? {
            Found::Nothing if means_a_directory(&path) => return not_regular(&path, FileKind::Directory),
            Found::Nothing => return Ok((path, None)),
            Found::File(ownership) => return Ok((path, Some(ownership))),
            Found::Link(to) => path = path.parent().unwrap_or(Path::new("")).join(to),
            Found::Other(kind) => return not_regular(&path, kind),
        }
    }
    Err(Error::io("write", target, io::Error::other("too many levels of symbolic links")))
}

/// `new/` asks for a directory, yet [`Path::file_name`] would say `new`.
pub(crate) fn means_a_directory(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.ends_with(b"/") || bytes.ends_with(b"/.")
}

/// Makes a file with a new name in the target's directory.
fn create_beside<D: Disk>(
    disk: &D,
    target: &Path,
    name: &OsStr,
    ownership: Option<&Ownership>,
) -> Result<(PathBuf, D::File), Error> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let temporary = target.with_file_name(temporary_name(name));
        match disk.create(&temporary, ownership) {
            Ok(file) => return Ok((temporary, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempts < MAX_ATTEMPTS => {}
            Err(error) => return Err(Error::io("create a temporary file beside", target, error)),
        }
    }
}

/// `.<name>.<pid>-<random>.tmp`: hidden, says whose it is, and taken by nobody who did not want to collide.
fn temporary_name(name: &OsStr) -> OsString {
    let random = RandomState::new().build_hasher().finish();
    let mut temporary = OsString::from(".");
    temporary.push(clipped(name));
    temporary.push(format!(".{}-{random:016x}.tmp", std::process::id()));
    temporary
}

/// The name, or its first bytes up to the limit; text is cut between characters, since some file
/// systems take nothing but text. A long name that is no text is left out.
fn clipped(name: &OsStr) -> &OsStr {
    if name.len() <= MAX_NAME_BYTES {
        return name;
    }
    let text = name.to_str().unwrap_or_default();
    OsStr::new(text.get(..text.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or_default())
}

/// Pieces smaller than this are gathered: large enough that the cost of a system call drowns in
/// that of copying, small enough to stay in the cache.
const GATHERED_BYTES: usize = 64 * 1024;

/// How many links are followed: as many as Linux follows.
const MAX_LINKS: usize = 40;

/// How many names are tried when they are taken. One collision of 64 random bits is a miracle; more
/// are somebody's doing.
const MAX_ATTEMPTS: usize = 16;

/// How much of the target's name the temporary one repeats. Names may be 255 bytes long, on some
/// encrypted file systems 143; ours adds at most 33.
const MAX_NAME_BYTES: usize = 96;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::OsDisk;
    use crate::mapped::Mapped;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::fs::{self, Permissions};
    use std::os::unix::ffi::OsStringExt as _;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use tempfile::TempDir;

    /// A directory, and the path of a name in it.
    fn room() -> (TempDir, impl Fn(&str) -> PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_path_buf();
        (directory, move |name| path.join(name))
    }

    fn put(target: &Path, bytes: &[u8]) -> Result<(), Error> {
        let mut commit = Commit::begin(&OsDisk, target)?;
        commit.write(bytes)?;
        commit.finish()
    }

    fn names(directory: &TempDir) -> Vec<OsString> {
        OsDisk.list(directory.path()).unwrap()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_new_file_honours_the_umask_and_an_old_one_keeps_its_permissions() {
        let (directory, at) = room();
        fs::write(at("by std"), "").unwrap();
        put(&at("new"), b"1").unwrap();
        assert_eq!(mode(&at("new")), mode(&at("by std")));
        for permissions in [0o400, 0o444, 0o600, 0o640, 0o664, 0o666, 0o755] {
            fs::set_permissions(at("new"), Permissions::from_mode(permissions)).unwrap();
            put(&at("new"), b"2").unwrap();
            assert_eq!(mode(&at("new")), permissions);
        }
        assert_eq!(fs::read(at("new")).unwrap(), b"2");
        assert_eq!(names(&directory), ["by std", "new"]);
    }

    #[test]
    fn root_gives_the_new_file_its_former_owner() {
        let (_directory, at) = room();
        fs::write(at("file"), "").unwrap();
        fs::set_permissions(at("file"), Permissions::from_mode(0o640)).unwrap();
        if std::os::unix::fs::chown(at("file"), Some(1234), Some(5678)).is_err() {
            return safestep_tests::remarks::skipped("another owner: that needs root");
        }
        put(&at("file"), b"new").unwrap();
        let metadata = fs::metadata(at("file")).unwrap();
        assert_eq!((metadata.uid(), metadata.gid(), metadata.mode() & 0o777), (1234, 5678, 0o640));
    }

    #[test]
    fn links_stay_and_what_they_lead_to_is_replaced() {
        let (directory, at) = room();
        fs::create_dir(at("deep")).unwrap();
        fs::write(at("deep/file"), "old").unwrap();
        for (link, to) in [("a", "deep/b"), ("deep/b", "../c"), ("c", at("deep/file").to_str().unwrap())] {
            symlink(to, at(link)).unwrap();
        }
        symlink("deep/made", at("dangling")).unwrap();

        let commit = Commit::begin(&OsDisk, &at("a")).unwrap();
        assert_eq!(commit.target(), at("deep/file"));
        assert_eq!(commit.temporary_path().parent(), Some(at("deep").as_path()));
        drop(commit);
        put(&at("a"), b"new").unwrap();
        put(&at("dangling"), b"made").unwrap();
        assert_eq!(fs::read(at("deep/file")).unwrap(), b"new");
        assert_eq!(fs::read(at("deep/made")).unwrap(), b"made");
        assert!(["a", "deep/b", "c", "dangling"].iter().all(|link| at(link).is_symlink()));
        assert_eq!(names(&directory), ["a", "c", "dangling", "deep"]);
        assert_eq!(OsDisk.list(&at("deep")).unwrap(), ["b", "file", "made"]);
    }

    #[test]
    fn what_is_no_place_for_a_file_is_refused_and_nothing_is_made() {
        let (directory, at) = room();
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        fs::create_dir(at("deep")).unwrap();
        fs::write(at("file"), "old").unwrap();
        symlink("deep", at("to deep")).unwrap();
        symlink("new/", at("to new")).unwrap();
        symlink("loop", at("loop")).unwrap();
        let before = names(&directory);
        let table = [
            ("deep", "a directory, not"),
            ("to deep", "a directory, not"),
            (".", "a directory, not"),
            ("..", "a directory, not"),
            ("new/", "a directory, not"),
            ("new/.", "a directory, not"),
            ("to new", "a directory, not"),
            ("fifo", "a FIFO, not"),
            ("/dev/null", "a character device, not"),
            ("loop", "symbolic links"),
            ("file/", "Not a directory"),
            ("file/x", "Not a directory"),
            ("none/x", "No such file"),
            (&"n".repeat(256), "too long"),
        ];
        for (target, because) in table {
            let error = put(&at(target), b"new").unwrap_err();
            assert!(error.to_string().contains(because), "{target}: {error}");
        }
        let error = put(Path::new(""), b"new").unwrap_err();
        assert_eq!(error.to_string(), "cannot write \"\": invalid filename");
        assert_eq!(names(&directory), before);
        assert_eq!(fs::read(at("file")).unwrap(), b"old");
        assert!(fs::read_dir(at("deep")).unwrap().next().is_none());
    }

    #[test]
    fn pieces_of_any_size_arrive_in_order() {
        let (_directory, at) = room();
        let sizes = [0, 1, GATHERED_BYTES - 1, GATHERED_BYTES, GATHERED_BYTES + 1, 3 * GATHERED_BYTES];
        for first in sizes {
            for second in sizes {
                let content: Vec<u8> = (0..first + second + 1).map(|i| (i % 251) as u8).collect();
                let mut commit = Commit::begin(&OsDisk, &at("file")).unwrap();
                let (head, tail) = content.split_at(first);
                let (middle, last) = tail.split_at(second);
                for piece in [head, middle, last] {
                    commit.write(piece).unwrap();
                }
                commit.finish().unwrap();
                assert!(fs::read(at("file")).unwrap() == content, "{first} + {second} + 1");
            }
        }
    }

    #[test]
    fn a_commit_that_is_dropped_leaves_nothing() {
        let (directory, at) = room();
        fs::write(at("file"), "old").unwrap();
        let mut commit = Commit::begin(&OsDisk, &at("file")).unwrap();
        commit.write(&[7; 3 * GATHERED_BYTES]).unwrap();
        let temporary = commit.temporary_path().to_path_buf();
        assert_eq!(fs::metadata(&temporary).unwrap().len(), 3 * GATHERED_BYTES as u64);
        drop(commit);
        assert_eq!(names(&directory), ["file"]);
        assert_eq!(fs::read(at("file")).unwrap(), b"old");
    }

    #[test]
    fn long_and_strange_names_get_a_temporary_one() {
        let (directory, at) = room();
        let names = [
            "n".repeat(255).into(),
            "模".repeat(85).into(),
            "-".into(),
            "a\nb".into(),
            OsString::from_vec(vec![0xff; 255]),
            OsString::from_vec(vec![0xfe; 3]),
        ];
        for name in names {
            let target = directory.path().join(&name);
            let commit = Commit::begin(&OsDisk, &target).unwrap();
            let temporary = commit.temporary_path().file_name().unwrap();
            assert!(temporary.len() <= 143, "{temporary:?}");
            assert_eq!(temporary.to_str().is_none(), name.len() == 3 && name.to_str().is_none());
            commit.finish().unwrap();
            assert_eq!(OsDisk.list(directory.path()).unwrap(), [name]);
            fs::remove_file(&target).unwrap();
        }
        assert_ne!(temporary_name(OsStr::new("a")), temporary_name(OsStr::new("a")));
        drop(at);
    }

    #[test]
    fn source_and_target_can_be_the_same_file() {
        let (_directory, at) = room();
        let old: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        fs::write(at("file"), &old).unwrap();
        let source = Mapped::open(&at("file")).unwrap();
        let mut commit = Commit::begin(&OsDisk, &at("file")).unwrap();
        for piece in source.rchunks(10_000) {
            commit.write(piece).unwrap();
        }
        commit.finish().unwrap();
        source.still_whole().unwrap();
        assert!(source.bytes() == old);
        let new = fs::read(at("file")).unwrap();
        assert!(new.len() == old.len() && new != old);
    }

    #[test]
    fn space_is_promised_and_length_is_not() {
        let (directory, at) = room();
        let mut commit = Commit::begin(&OsDisk, &at("file")).unwrap();
        commit.allocate(0).unwrap();
        commit.allocate(1 << 20).unwrap();
        commit.write(b"12345").unwrap();
        commit.finish().unwrap();
        assert_eq!(fs::read(at("file")).unwrap(), b"12345");

        let mut commit = Commit::begin(&OsDisk, &at("file")).unwrap();
        let error = commit.allocate(u64::MAX).unwrap_err();
        assert!(error.to_string().starts_with("cannot reserve space for "), "{error}");
        assert_eq!(names(&directory), ["file"]);
        assert!(matches!(commit.write(b"x").unwrap_err().because(), Cause::Abandoned));
        assert!(matches!(commit.finish().unwrap_err().because(), Cause::Abandoned));
        assert_eq!(fs::read(at("file")).unwrap(), b"12345");
    }
}
