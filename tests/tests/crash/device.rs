//! Blocks written by a real file system -> a log of every write and flush, and the disks that a power failure could leave.
//!
//! A FUSE file system with one file, which a loop device turns into a disk. Its pages are in memory: those of the base, which
//! nothing changes, and over them those that were written since. Another disk is put in by swapping the pages.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite,
    Request, WriteFlags,
};
use safestep_tests::headers::random::Random;
use tempfile::TempDir;

/// What a file system asked of the device, in order.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// Write these bytes.
    Write(Write),
    /// Make all writes before durable.
    Flush,
}

/// A write.
#[derive(Clone, Debug)]
pub(super) struct Write {
    offset: usize,
    bytes: Arc<[u8]>,
}

impl Write {
    /// The parts that lie in different pages; a disk may do some of them and not the others.
    pub(super) fn parts(&self) -> impl Iterator<Item = Write> + '_ {
        let first = (PAGE - self.offset % PAGE).min(self.bytes.len());
        let (first, rest) = self.bytes.split_at(first);
        let parts = std::iter::once(first).chain(rest.chunks(PAGE));
        parts.scan(self.offset, |at, part| {
            let offset = *at;
            *at += part.len();
            Some(Write { offset, bytes: part.into() })
        })
    }
}

/// The content of a disk.
#[derive(Clone, Default)]
pub(super) struct Pages {
    base: Arc<HashMap<usize, Box<[u8]>>>,
    written: HashMap<usize, Box<[u8]>>,
}

impl Pages {
    pub(super) fn write(&mut self, write: &Write) {
        let mut offset = write.offset;
        for part in write.parts() {
            let (page, at) = (offset / PAGE, offset % PAGE);
            let from = || self.base.get(&page).cloned().unwrap_or_else(|| [0; PAGE].into());
            let to = self.written.entry(page).or_insert_with(from);
            to[at..at + part.bytes.len()].copy_from_slice(&part.bytes);
            offset += part.bytes.len();
        }
    }

    fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let mut done = 0;
        while done < len {
            let (page, at) = ((offset + done) / PAGE, (offset + done) % PAGE);
            let count = (PAGE - at).min(len - done);
            if let Some(found) = self.written.get(&page).or_else(|| self.base.get(&page)) {
                bytes[done..done + count].copy_from_slice(&found[at..at + count]);
            }
            done += count;
        }
        bytes
    }

    /// The same content, as a base for what comes.
    pub(super) fn settled(&self) -> Self {
        let mut base = (*self.base).clone();
        base.extend(self.written.iter().map(|(page, bytes)| (*page, bytes.clone())));
        Self { base: Arc::new(base), written: HashMap::new() }
    }
}

/// A disk in memory, with all that happened to it since it was put in.
#[derive(Default)]
struct Disk {
    pages: Pages,
    log: Vec<Event>,
    /// Pages that it can no longer read.
    bad: HashSet<usize>,
}

/// The file that the loop device stands on.
pub(super) struct Device {
    disk: Arc<Mutex<Disk>>,
    directory: TempDir,
    session: Option<BackgroundSession>,
}

impl Device {
    /// A device of so many zeros.
    pub(super) fn new(len_bytes: u64) -> std::io::Result<Self> {
        let disk = Arc::new(Mutex::new(Disk::default()));
        let directory = tempfile::tempdir()?;
        let server = Server { disk: Arc::clone(&disk), len_bytes };
        let session = fuser::spawn_mount(server, directory.path(), &Config::default())?;
        Ok(Self { disk, directory, session: Some(session) })
    }

    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().join(NAME)
    }

    /// Puts another disk in. Nobody may have it mounted.
    pub(super) fn put_in(&self, pages: Pages) {
        *self.lock() = Disk { pages, ..Disk::default() };
    }

    /// The disk as it is now.
    pub(super) fn pages(&self) -> Pages {
        self.lock().pages.clone()
    }

    /// From now on, no page with these bytes can be read. Says how many there are.
    pub(super) fn spoil(&self, bytes: &[u8]) -> usize {
        let mut disk = self.lock();
        let written = disk.pages.written.iter().chain(disk.pages.base.iter());
        let holds = |page: &[u8]| page.windows(bytes.len()).any(|window| window == bytes);
        disk.bad = written.filter(|(_, page)| holds(page)).map(|(place, _)| *place).collect();
        disk.bad.len()
    }

    /// How many events there have been.
    pub(super) fn position(&self) -> usize {
        self.lock().log.len()
    }

    pub(super) fn take_log(&self) -> Vec<Event> {
        std::mem::take(&mut self.lock().log)
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            // The loop device lets go of the file a moment after it is told to.
            let path = self.directory.path().to_path_buf();
            let _ = rustix::mount::unmount(&path, rustix::mount::UnmountFlags::DETACH);
            let _ = session.umount_and_join();
        }
    }
}

/// A crash: the log up to a point, without some of the writes that nobody had made durable by then.
#[derive(Clone, Debug)]
pub(super) struct Crash {
    /// How many events happened.
    pub(super) events: usize,
    pub(super) lost: Lost,
}

/// Which writes since the last flush are lost.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lost {
    Nothing,
    All,
    /// This event.
    One(usize),
    /// Each with the chance of one half, drawn with this seed.
    Half(u64),
    /// Each page of each write with the chance of one half.
    HalfOfPages(u64),
}

impl Crash {
    /// Where the writes begin that no flush has made durable.
    fn pending(&self, log: &[Event]) -> usize {
        let last = log[..self.events].iter().rposition(|event| matches!(event, Event::Flush));
        last.map_or(0, |flush| flush + 1)
    }

    /// What is on the disk afterwards.
    pub(super) fn disk(&self, base: &Pages, log: &[Event]) -> Pages {
        let (mut pages, pending) = (base.clone(), self.pending(log));
        let mut random = match self.lost {
            Lost::Half(seed) | Lost::HalfOfPages(seed) => Random::new(seed),
            _ => Random::new(0),
        };
        for (place, event) in log[..self.events].iter().enumerate() {
            let Event::Write(write) = event else { continue };
            let mut kept = || match self.lost {
                _ if place < pending => true,
                Lost::Nothing => true,
                Lost::All => false,
                Lost::One(lost) => place != lost,
                Lost::Half(_) | Lost::HalfOfPages(_) => random.chance(50),
            };
            if place >= pending && matches!(self.lost, Lost::HalfOfPages(_)) {
                write.parts().filter(|_| kept()).for_each(|part| pages.write(&part));
            } else if kept() {
                pages.write(write);
            }
        }
        pages
    }
}

/// Every crash that must be looked at: after each event, and at the end of each stretch between flushes with all of its writes
/// lost, and with each of them lost alone.
pub(super) fn every_crash(log: &[Event]) -> Vec<Crash> {
    let is_write = |place: usize| matches!(log.get(place), Some(Event::Write(_)));
    let mut crashes = Vec::new();
    for events in 0..=log.len() {
        if events == 0 || is_write(events - 1) {
            crashes.push(Crash { events, lost: Lost::Nothing });
        }
        let ends = events > 0 && is_write(events - 1) && !is_write(events);
        if ends {
            let all = Crash { events, lost: Lost::All };
            let pending = all.pending(log);
            if events - pending > 1 {
                crashes.extend((pending..events - 1).map(|one| Crash { events, lost: Lost::One(one) }));
            }
            crashes.push(all);
        }
    }
    crashes
}

/// So many more, drawn with a fixed seed.
pub(super) fn some_crashes(log: &[Event], count: usize) -> Vec<Crash> {
    let mut random = Random::new(0x5afe);
    let with_choice: Vec<usize> = (1..=log.len())
        .filter(|events| events - Crash { events: *events, lost: Lost::All }.pending(log) > 0)
        .collect();
    let draw = |_| {
        let (events, seed) = (random.pick(&with_choice), random.bits());
        Crash { events, lost: if random.chance(50) { Lost::Half(seed) } else { Lost::HalfOfPages(seed) } }
    };
    (0..if with_choice.is_empty() { 0 } else { count }).map(draw).collect()
}

/// The file system of one file.
struct Server {
    disk: Arc<Mutex<Disk>>,
    len_bytes: u64,
}

impl Server {
    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let is_root = inode == INodeNo::ROOT;
        FileAttr {
            ino: inode,
            size: if is_root { 0 } else { self.len_bytes },
            blocks: 0,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_root { FileType::Directory } else { FileType::RegularFile },
            perm: if is_root { 0o700 } else { 0o600 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Server {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if Path::new(name) == Path::new(NAME) {
            reply.entry(&FOR_EVER, &self.attributes(INODE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOR_EVER, &self.attributes(inode));
    }

    /// Past the page cache of the file: what the device gets is what comes here, one by one.
    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let len = u64::from(size).min(self.len_bytes.saturating_sub(offset));
        let (offset, len) = (place(offset), place(len));
        let disk = self.disk.lock().unwrap();
        if (offset / PAGE..(offset + len).div_ceil(PAGE)).any(|page| disk.bad.contains(&page)) {
            return reply.error(Errno::EIO);
        }
        reply.data(&disk.pages.read(offset, len));
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let write = Write { offset: place(offset), bytes: bytes.into() };
        let mut disk = self.disk.lock().unwrap();
        disk.pages.write(&write);
        disk.log.push(Event::Write(write));
        drop(disk);
        reply.written(u32::try_from(bytes.len()).unwrap());
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.disk.lock().unwrap().log.push(Event::Flush);
        reply.ok();
    }
}

fn place(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

const PAGE: usize = 4096;
const NAME: &str = "disk.img";
const INODE: INodeNo = INodeNo(2);
/// Nobody but us changes the file.
const FOR_EVER: Duration = Duration::from_secs(1 << 20);
