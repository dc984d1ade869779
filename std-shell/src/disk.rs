//! Wishes to change files -> calls that can fail one by one.
//!
//! Every write of the workspace goes through these few calls, so a test can stand a simulated disk
//! in the place of the real one ([`OsDisk`]), make any call fail or pull the plug at it, and look
//! at what is left. The calls are as dumb as those of the kernel and report its errors as they are;
//! what to do and in which order is decided in [`commit`](crate::commit). The loss history stands apart
//! ([`History`](crate::run::History)): its lines are appended, and one that was cut off is cut away, by calls of its own.

mod os;

pub(crate) use os::holder;
pub use os::{DirectoryLock, OsDisk};

use std::ffi::OsString;
use std::fs::{self, File, FileType};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::error::{Cause, Error, FileKind};

/// A file system, as far as writing durable files needs one.
///
/// No call follows a symbolic link at the end of its path: [`look`](Self::look) shows links, and
/// who writes decides. All calls take `&self`, so that one thread can sync a file while another one
/// writes to it.
pub trait Disk {
    /// A file open for writing, at its end. Dropping it closes it.
    type File;

    /// A directory that is locked. Dropping it unlocks.
    type Lock;

    /// What stands at `path`: nothing, a regular file, a link, something else.
    ///
    /// # Errors
    /// The path cannot be looked up for another reason than that its last part does not exist.
    fn look(&self, path: &Path) -> io::Result<Found>;

    /// Makes a new empty file and opens it for writing. Without `ownership` it gets read and write for
    /// all, less the umask; with it, these permissions, and owner and group as far as this process
    /// may give them. When the group cannot be kept, the file is made no more open to the new group
    /// than it was to everybody.
    ///
    /// # Errors
    /// `AlreadyExists` when anything, a dangling link too, stands at `path`; else the kernel's
    /// error, and no file is left.
    fn create(&self, path: &Path, ownership: Option<&Ownership>) -> io::Result<Self::File>;

    /// Reserves space so that writing the first `len_bytes` cannot run out of it; the file's length
    /// stays as it is. A disk that cannot reserve says `Ok`, and so does the default.
    ///
    /// # Errors
    /// The space is not there, or the file would be too large.
    fn allocate(&self, file: &Self::File, len_bytes: u64) -> io::Result<()> {
        let _ = (file, len_bytes);
        Ok(())
    }

    /// Appends some bytes of `pieces`, in order, and says how many.
    ///
    /// # Errors
    /// The kernel's; `Interrupted` when nothing was written and the call can be made again.
    fn write(&self, file: &Self::File, pieces: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Returns once the file's content and length would survive a power failure. Its name may not yet: see
    /// [`sync_dir`](Self::sync_dir).
    ///
    /// # Errors
    /// What was written may be lost, also if a second call says `Ok`: never call it again on this file.
    fn sync(&self, file: &Self::File) -> io::Result<()>;

    /// Gives the file at `from` the name `to` in one step; a file that had this name loses it.
    ///
    /// # Errors
    /// The kernel's; then both names are as they were.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Returns once the names in `directory` would survive a power failure.
    ///
    /// # Errors
    /// The kernel's: changes of names since the last sync may be lost.
    fn sync_dir(&self, directory: &Path) -> io::Result<()>;

    /// Takes the name `path` away from a file.
    ///
    /// # Errors
    /// The kernel's, also when nothing stands there.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// The names in a directory, sorted by their bytes, without `.` and `..`.
    ///
    /// # Errors
    /// The directory cannot be read to its end.
    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>>;

    /// Brings what was written so far to the disk, while more is written, so that the last [`sync`](Self::sync) has less to
    /// do. It promises nothing, and the default does nothing.
    ///
    /// # Errors
    /// As [`sync`](Self::sync), and as bad.
    fn write_back(&self, file: &Self::File) -> io::Result<()> {
        let _ = file;
        Ok(())
    }

    /// The content of a regular file that is meant to be small.
    ///
    /// # Errors
    /// The kernel's; `FileTooLarge` if it has more than `most_bytes`; `InvalidInput` if it is no regular file.
    fn read(&self, path: &Path, most_bytes: u64) -> io::Result<Vec<u8>>;

    /// Makes an empty directory.
    ///
    /// # Errors
    /// The kernel's, also when anything stands there.
    fn make_dir(&self, path: &Path) -> io::Result<()>;

    /// Takes the name `path` away from an empty directory.
    ///
    /// # Errors
    /// The kernel's, also when it is not empty.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Locks a directory against all others who lock it, in this process or another, until the lock is dropped or the
    /// process ends, however it ends. Never waits.
    ///
    /// # Errors
    /// The kernel's; that somebody else holds it is no error but an answer.
    fn lock(&self, directory: &Path) -> io::Result<Locked<Self::Lock>>;

    /// How many bytes this process can still write to the file system of a directory.
    ///
    /// # Errors
    /// The kernel's.
    fn free_bytes(&self, directory: &Path) -> io::Result<u64>;
}

/// The answer to a wish for a lock.
#[derive(Debug)]
pub enum Locked<L> {
    /// It is ours as long as this is kept.
    Ours(L),
    /// Another one holds it.
    Theirs {
        /// The process, as far as the kernel tells.
        pid: Option<u32>,
    },
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing: the name is free.
    Nothing,
    /// A regular file, and who may use it.
    File(Ownership),
    /// A symbolic link and where it points, relative to its own directory. What it leads to is a
    /// regular file, or nothing.
    Link(PathBuf),
    /// Something that is no place for a file's bytes, maybe by way of a link.
    Other(FileKind),
}

/// Who may use a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ownership {
    /// The nine permission bits, `rwxrwxrwx`.
    pub mode: u32,
    /// The number of the owning user.
    pub owner: u32,
    /// The number of the owning group.
    pub group: u32,
}

/// Opens a regular file for reading and says how long it is. Never waits and never touches a
/// device: what is no regular file is found out by looking before it is opened, and again
/// afterwards in case it was exchanged in between.
///
/// # Errors
/// [`Cause::NotRegular`] for a directory, a FIFO, a socket or a device; [`Cause::Io`] when it
/// cannot be opened.
pub fn open_regular(path: &Path) -> Result<(File, u64), Error> {
    let io = |error| Error::io("open", path, error);
    length_of_regular(path, &fs::metadata(path).map_err(io)?)?;
    let file = open_without_waiting(path).map_err(io)?;
    let len_bytes = length_of_regular(path, &file.metadata().map_err(io)?)?;
    Ok((file, len_bytes))
}

fn length_of_regular(path: &Path, metadata: &fs::Metadata) -> Result<u64, Error> {
    match irregular(metadata.file_type()) {
        None => Ok(metadata.len()),
        Some(kind) => Err(Error::new("open", path, Cause::NotRegular(kind))),
    }
}

/// Opens for reading; a FIFO that was put there a moment ago does not make us wait for its writer.
fn open_without_waiting(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(rustix::io::retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))?.into())
}

/// What a file is, when it is no regular file.
pub(crate) fn irregular(kind: FileType) -> Option<FileKind> {
    if kind.is_file() {
        return None;
    }
    if kind.is_dir() {
        return Some(FileKind::Directory);
    }
    if kind.is_fifo() {
        return Some(FileKind::Fifo);
    }
    if kind.is_socket() {
        return Some(FileKind::Socket);
    }
    if kind.is_char_device() {
        return Some(FileKind::CharacterDevice);
    }
    if kind.is_block_device() {
        return Some(FileKind::BlockDevice);
    }
    Some(FileKind::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::os::unix::net::UnixListener;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    /// What a call answers; a wait is a failure.
    fn without_waiting<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(call()));
        receiver.recv_timeout(Duration::from_secs(20)).expect("opening waits")
    }

    /// What `open_regular` says of a path.
    fn opened(path: &Path) -> Result<u64, Error> {
        let path = path.to_path_buf();
        without_waiting(move || open_regular(&path).map(|(_, len_bytes)| len_bytes))
    }

    #[test]
    fn only_regular_files_are_opened_and_nothing_waits() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let _listener = UnixListener::bind(at("socket")).unwrap();
        fs::write(at("file"), b"12345").unwrap();
        fs::write(at("empty"), b"").unwrap();
        for (link, to) in [("link", "file"), ("to_fifo", "fifo"), ("dangling", "none"), ("loop", "loop")] {
            std::os::unix::fs::symlink(to, at(link)).unwrap();
        }

        assert_eq!(opened(&at("file")).unwrap(), 5);
        assert_eq!(opened(&at("empty")).unwrap(), 0);
        assert_eq!(opened(&at("link")).unwrap(), 5);
        let irregular = [
            (at("."), FileKind::Directory),
            (at("fifo"), FileKind::Fifo),
            (at("to_fifo"), FileKind::Fifo),
            (at("socket"), FileKind::Socket),
            ("/dev/null".into(), FileKind::CharacterDevice),
        ];
        for (path, kind) in irregular {
            let error = opened(&path).unwrap_err();
            assert!(matches!(error.because(), Cause::NotRegular(found) if *found == kind), "{error}");
        }
        for path in [at("none"), at("dangling"), at("loop"), at("file/x"), PathBuf::new()] {
            let error = opened(&path).unwrap_err();
            assert!(matches!(error.because(), Cause::Io(_)), "{error}");
        }

        // One that takes the place of a file after we have looked.
        let fifo = at("fifo");
        let file = without_waiting(move || open_without_waiting(&fifo)).unwrap();
        assert!(length_of_regular(&at("fifo"), &file.metadata().unwrap()).is_err());
    }
}
