//! The calls of [`Disk`] -> system calls.
//!
//! Errors pass as the kernel gives them, except where a call cannot be answered otherwise: what
//! this file swallows is listed at each call. Nothing here panics.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, IoSlice, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::io::{Errno, retry_on_intr};

use super::{Disk, Found, Locked, Ownership, irregular, open_without_waiting};

/// The machine's own file systems.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsDisk;

/// A directory that is locked until this is dropped, also where a process forked meanwhile holds the same open directory: closing
/// it here would not be enough then.
#[derive(Debug)]
pub struct DirectoryLock(File);

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // What fails here ends when the directory is closed.
        let _ = rustix::fs::flock(&self.0, rustix::fs::FlockOperation::Unlock);
    }
}

impl Disk for OsDisk {
    type File = File;
    type Lock = DirectoryLock;

    /// A link is followed once by the kernel too: it knows which links nobody should follow
    /// (`fs.protected_symlinks`), finds loops, and sees through the links of `/proc` that lead to a
    /// pipe or a terminal and whose text is no path.
    fn look(&self, path: &Path) -> io::Result<Found> {
        let metadata = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            answer => answer?,
        };
        if !metadata.is_symlink() {
            return Ok(
                irregular(metadata.file_type()).map_or(Found::File(ownership(&metadata)), Found::Other)
            );
        }
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            answer => {
                if let Some(kind) = irregular(answer?.file_type()) {
                    return Ok(Found::Other(kind));
                }
            }
        }
        fs::read_link(path).map(Found::Link)
    }

    /// A file that takes over somebody's permissions is closed to all but its maker until it has them.
    fn create(&self, path: &Path, ownership: Option<&Ownership>) -> io::Result<File> {
        let mode = Mode::from_raw_mode(if ownership.is_some() { 0o600 } else { 0o666 });
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = File::from(retry_on_intr(|| rustix::fs::open(path, flags, mode))?);
        if let Some(ownership) = ownership
            && let Err(error) = adopt(&file, ownership)
        {
            let _ = self.remove(path);
            return Err(error);
        }
        Ok(file)
    }

    /// Not being able to reserve, or being interrupted by a signal, is no failure: writing will tell.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn allocate(&self, file: &File, len_bytes: u64) -> io::Result<()> {
        use rustix::fs::FallocateFlags;
        if len_bytes == 0 {
            return Ok(());
        }
        if i64::try_from(len_bytes).is_err() {
            return Err(Errno::FBIG.into());
        }
        match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, len_bytes) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn write(&self, file: &File, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(rustix::io::writev(file, pieces)?)
    }

    /// Not `File::sync_all`, which calls fsync again after a signal.
    fn sync(&self, file: &File) -> io::Result<()> {
        #[cfg(target_vendor = "apple")]
        rustix::fs::fcntl_fullfsync(file)?;
        #[cfg(not(target_vendor = "apple"))]
        rustix::fs::fsync(file)?;
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(rustix::fs::rename(from, to)?)
    }

    /// A file system that has no sync for directories (some network ones) says EINVAL; there is
    /// nothing more to do there.
    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = retry_on_intr(|| rustix::fs::open(directory, flags, Mode::empty()))?;
        match rustix::fs::fsync(&directory) {
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::unlink(path))?)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let entries = fs::read_dir(directory)?;
        let mut names = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    fn write_back(&self, file: &File) -> io::Result<()> {
        #[cfg(not(target_vendor = "apple"))]
        rustix::fs::fdatasync(file)?;
        let _ = file;
        Ok(())
    }

    fn read(&self, path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let mut bytes = Vec::new();
        open_without_waiting(path)?.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).is_ok_and(|len| len <= most_bytes) {
            return Ok(bytes);
        }
        Err(io::ErrorKind::FileTooLarge.into())
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::mkdir(path, Mode::from_raw_mode(0o777)))?)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::rmdir(path))?)
    }

    /// The lock is `flock` on the directory itself: no file is left behind, and the kernel drops it with the process.
    fn lock(&self, directory: &Path) -> io::Result<Locked<DirectoryLock>> {
        use rustix::fs::{FlockOperation, flock};
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = File::from(retry_on_intr(|| rustix::fs::open(directory, flags, Mode::empty()))?);
        match retry_on_intr(|| flock(&directory, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => Ok(Locked::Ours(DirectoryLock(directory))),
            Err(Errno::WOULDBLOCK) => Ok(Locked::Theirs { pid: holder(&directory) }),
            Err(error) => Err(error.into()),
        }
    }

    fn free_bytes(&self, directory: &Path) -> io::Result<u64> {
        let free = retry_on_intr(|| rustix::fs::statvfs(directory))?;
        Ok(free.f_bavail.saturating_mul(free.f_frsize))
    }
}

/// The process that holds a lock on a file or directory: Linux lists all locks, each with device and inode. The device of a subvolume
/// is another one there, so an inode alone does when none has both.
pub(crate) fn holder(locked: &File) -> Option<u32> {
    let metadata = locked.metadata().ok()?;
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let device =
        format!("{:02x}:{:02x}", rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
    let inode = metadata.ino().to_string();
    let held = locks.lines().filter_map(|line| {
        // 1: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF
        let mut words = line.split_ascii_whitespace().skip(1);
        let (kind, pid, place) = (words.next()?, words.nth(2)?, words.next()?);
        let (found_device, found_inode) = place.rsplit_once(':')?;
        let pid = pid.parse().ok().filter(|pid| *pid > 0)?;
        (kind == "FLOCK" && found_inode == inode).then_some((found_device == device, pid))
    });
    held.max_by_key(|(same_device, _)| *same_device).map(|(_, pid)| pid)
}

fn ownership(metadata: &fs::Metadata) -> Ownership {
    Ownership { mode: metadata.mode() & 0o777, owner: metadata.uid(), group: metadata.gid() }
}

/// Gives a new file the permissions of another one, and its owner and group as far as we may. What
/// it already has is not asked for again: file systems without permissions of their own refuse the
/// call, yet show the same ones for every file.
fn adopt(file: &File, wanted: &Ownership) -> io::Result<()> {
    let mut now = ownership(&file.metadata()?);
    if (now.owner, now.group) != (wanted.owner, wanted.group) {
        let (owner, group) = (Uid::from_raw(wanted.owner), Gid::from_raw(wanted.group));
        // The owner needs root; the group only that we belong to it.
        if rustix::fs::fchown(file, Some(owner), Some(group)).is_err() {
            let _ = rustix::fs::fchown(file, None, Some(group));
        }
        now = ownership(&file.metadata()?);
    }
    let mode = if now.group == wanted.group { wanted.mode } else { without_group(wanted.mode) };
    if now.mode != mode {
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// The permissions for a file whose group is not the one they were meant for: it may do what
/// everybody may, at most.
fn without_group(mode: u32) -> u32 {
    mode & 0o707 | mode & (mode << 3) & 0o070
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_os = "linux")]
    use crate::error::FileKind;

    #[test]
    fn another_group_gets_no_more_than_everybody() {
        let table =
            [(0o640, 0o600), (0o644, 0o644), (0o664, 0o644), (0o666, 0o666), (0o604, 0o604), (0o750, 0o700)];
        for (mode, narrowed) in table {
            assert_eq!(without_group(mode), narrowed, "{mode:o} became {:o}", without_group(mode));
        }
    }

    #[test]
    fn a_file_is_made_once_and_only_by_us() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let ownership = Ownership {
            mode: 0o640,
            owner: rustix::process::geteuid().as_raw(),
            group: rustix::process::getegid().as_raw(),
        };
        drop(OsDisk.create(&at("a"), Some(&ownership)).unwrap());
        assert_eq!(OsDisk.look(&at("a")).unwrap(), Found::File(ownership));
        assert_eq!(OsDisk.create(&at("a"), None).unwrap_err().kind(), io::ErrorKind::AlreadyExists);

        std::os::unix::fs::symlink("b", at("dangling")).unwrap();
        assert_eq!(OsDisk.create(&at("dangling"), None).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(OsDisk.look(&at("b")).unwrap(), Found::Nothing);
        assert_eq!(OsDisk.look(&at("dangling")).unwrap(), Found::Link("b".into()));
        assert_eq!(OsDisk.list(directory.path()).unwrap(), ["a", "dangling"]);

        OsDisk.rename(&at("a"), &at("b")).unwrap();
        OsDisk.sync_dir(directory.path()).unwrap();
        OsDisk.remove(&at("b")).unwrap();
        assert_eq!(OsDisk.remove(&at("b")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(OsDisk.list(directory.path()).unwrap(), ["dangling"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_link_of_proc_to_a_pipe_is_seen_through() {
        use std::os::fd::AsRawFd as _;
        let (reader, _writer) = io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
        assert_eq!(OsDisk.look(Path::new(&path)).unwrap(), Found::Other(FileKind::Fifo));
    }
}
