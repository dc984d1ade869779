//! Files in memory become durable files of a directory that has no good name yet, and digests of the same bytes.
//!
//! Small states are written one file after the other. Large ones use all cores: each file is written by a thread of its own
//! while other threads hash the same bytes, and one more brings what is written to the disk, so that the sync at the end finds
//! little left. The first error ends all of it.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TrySendError, sync_channel};
use std::thread;

use safestep_core::checkpoint::{Digest, Sha256};

use super::contents::Content;
use super::thresholds::Thresholds;
use crate::commit::Gathered;
use crate::disk::Disk;
use crate::error::{Cause, Error};

/// How files are written.
#[derive(Clone, Copy)]
pub(crate) struct How {
    /// Sync each.
    pub(crate) sync: bool,
    /// How many threads write, and how many hash, if there is enough for them.
    pub(crate) threads: usize,
    pub(crate) thresholds: Thresholds,
}

/// Writes all files into `directory`, and gives their digests.
pub(crate) fn write_all<D>(
    disk: &D,
    directory: &Path,
    contents: &[Content<'_>],
    how: &How,
) -> Result<Vec<Digest>, Error>
where
    D: Disk + Sync,
    D::File: Send + Sync,
{
    let total = contents.iter().fold(0_u64, |sum, content| sum.saturating_add(content.len_bytes));
    if how.threads < 2 || total < how.thresholds.parallel_bytes_min {
        let each = contents.iter().map(|content| {
            write_one(disk, &directory.join(&*content.name), content, how.sync)?;
            Ok(hash(content, &AtomicBool::new(false)))
        });
        return each.collect();
    }
    Parallel::new(disk, directory, contents, *how).run()
}

/// The digests of all files, one after the other.
pub(crate) fn digests(contents: &[Content<'_>]) -> Vec<Digest> {
    contents.iter().map(|content| hash(content, &AtomicBool::new(false))).collect()
}

/// Writes one file.
pub(crate) fn write_one<D: Disk>(
    disk: &D,
    path: &Path,
    content: &Content<'_>,
    sync: bool,
) -> Result<(), Error> {
    let (stop, thresholds) = (AtomicBool::new(false), Thresholds::default());
    write(disk, path, content, sync, &stop, |file| {
        fill(disk, file, content, &thresholds, &stop, &mut |_| Ok(()))
    })
}

/// A step on its way to the disk by many threads.
struct Parallel<'s, 'a, D> {
    disk: &'s D,
    directory: &'s Path,
    contents: &'s [Content<'a>],
    how: How,
    /// Places in `contents`, the largest file first: it takes longest.
    order: Vec<usize>,
    stop: AtomicBool,
}

impl<'s, 'a, D> Parallel<'s, 'a, D>
where
    D: Disk + Sync,
    D::File: Send + Sync,
{
    fn new(disk: &'s D, directory: &'s Path, contents: &'s [Content<'a>], how: How) -> Self {
        let mut order: Vec<(usize, u64)> =
            contents.iter().map(|content| content.len_bytes).enumerate().collect();
        order.sort_by_key(|(_, len_bytes)| std::cmp::Reverse(*len_bytes));
        let order = order.into_iter().map(|(place, _)| place).collect();
        Self { disk, directory, contents, how, order, stop: AtomicBool::new(false) }
    }

    fn run(&self) -> Result<Vec<Digest>, Error> {
        let (next_hash, next_write) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let lost = || Error::new("write", self.directory, Cause::ThreadLost);
        thread::scope(|scope| {
            let workers = self.how.threads.min(self.contents.len());
            // Where no thread can be made this one does the work.
            let hash = || self.hash_from(&next_hash);
            let hashers: Vec<_> = (0..workers).filter_map(|_| helper(scope, hash)).collect();
            let write = || self.write_from(&next_write);
            let writers: Vec<_> = (0..workers).filter_map(|_| helper(scope, write)).collect();
            let own_written = writers.is_empty().then(|| Ok(write()));
            let own_hashed = hashers.is_empty().then(|| Ok(hash()));
            let written: Vec<_> =
                writers.into_iter().map(thread::ScopedJoinHandle::join).chain(own_written).collect();
            let hashed: Vec<_> =
                hashers.into_iter().map(thread::ScopedJoinHandle::join).chain(own_hashed).collect();
            for answer in written {
                answer.map_err(|_| lost())??;
            }
            let mut digests = vec![Digest::new([0; 32]); self.contents.len()];
            for answer in hashed {
                for (place, digest) in answer.map_err(|_| lost())? {
                    if let Some(to) = digests.get_mut(place) {
                        *to = digest;
                    }
                }
            }
            Ok(digests)
        })
    }

    /// The next file that nobody has taken.
    fn take(&self, next: &AtomicUsize) -> Option<(usize, &'s Content<'a>)> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let place = *self.order.get(next.fetch_add(1, Ordering::Relaxed))?;
        self.contents.get(place).map(|content| (place, content))
    }

    fn hash_from(&self, next: &AtomicUsize) -> Vec<(usize, Digest)> {
        std::iter::from_fn(|| self.take(next))
            .map(|(place, content)| (place, hash(content, &self.stop)))
            .collect()
    }

    fn write_from(&self, next: &AtomicUsize) -> Result<(), Error> {
        while let Some((_, content)) = self.take(next) {
            let path = self.directory.join(&*content.name);
            self.write_with_help(&path, content).inspect_err(|_| self.stop.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    }

    /// Writes a file, with a thread at its side that brings to the disk what is written.
    fn write_with_help(&self, path: &Path, content: &Content<'_>) -> Result<(), Error> {
        let Self { disk, how: How { sync, thresholds, .. }, stop, .. } = self;
        if !sync || content.len_bytes < thresholds.write_back_bytes.saturating_mul(2) {
            return write(*disk, path, content, *sync, stop, |file| {
                fill(*disk, file, content, thresholds, stop, &mut |_| Ok(()))
            });
        }
        write(*disk, path, content, *sync, stop, |file| {
            thread::scope(|scope| {
                // One signal may wait; more would tell nothing new.
                let (wish, wishes) = sync_channel(1);
                let helper = helper(scope, move || write_back(*disk, file, &wishes));
                let mut waiting = 0;
                let filled = fill(*disk, file, content, thresholds, stop, &mut |written| {
                    waiting += written;
                    if waiting >= thresholds.write_back_bytes && helper.is_some() {
                        waiting = 0;
                        // A helper that is gone has an error to tell.
                        return wish.try_send(()).or_else(|full| match full {
                            TrySendError::Full(()) => Ok(()),
                            TrySendError::Disconnected(()) => Err(io::Error::other("writing back failed")),
                        });
                    }
                    Ok(())
                });
                drop(wish);
                let helped = helper.map_or(Ok(Ok(())), thread::ScopedJoinHandle::join);
                let helped = helped.unwrap_or_else(|_| Err(io::Error::other("a thread was lost")));
                helped.and(filled)
            })
        })
    }
}

/// A thread that helps, if the system lets us make one.
fn helper<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    help: impl FnOnce() -> T + Send + 'scope,
) -> Option<thread::ScopedJoinHandle<'scope, T>> {
    thread::Builder::new().spawn_scoped(scope, help).ok()
}

/// Makes a file, has it filled, and syncs it if wished.
fn write<D: Disk>(
    disk: &D,
    path: &Path,
    content: &Content<'_>,
    sync: bool,
    stop: &AtomicBool,
    fill: impl FnOnce(&D::File) -> io::Result<()>,
) -> Result<(), Error> {
    let io = |doing: &'static str| move |error| Error::io(doing, path, error);
    let file = disk.create(path, None).map_err(io("create"))?;
    disk.allocate(&file, content.len_bytes).map_err(io("reserve space for"))?;
    fill(&file).map_err(io("write"))?;
    if sync && !stop.load(Ordering::Relaxed) {
        disk.sync(&file).map_err(io("sync"))?;
    }
    Ok(())
}

/// Writes all pieces to a file, and says after each how much that was.
fn fill<D: Disk>(
    disk: &D,
    file: &D::File,
    content: &Content<'_>,
    thresholds: &Thresholds,
    stop: &AtomicBool,
    written: &mut dyn FnMut(u64) -> io::Result<()>,
) -> io::Result<()> {
    let mut gathered = Gathered::new(thresholds.gathered_bytes)?;
    for piece in chunks(content, thresholds.chunk_bytes) {
        if stop.load(Ordering::Relaxed) {
            // Another file has failed, and its error is the one to tell.
            return Ok(());
        }
        gathered.write(disk, file, piece)?;
        written(u64::try_from(piece.len()).unwrap_or_default())?;
    }
    gathered.flush(disk, file)
}

/// Brings a file to the disk at each signal, until there are no more.
fn write_back<D: Disk>(disk: &D, file: &D::File, wishes: &Receiver<()>) -> io::Result<()> {
    wishes.iter().try_for_each(|()| disk.write_back(file))
}

fn hash(content: &Content<'_>, stop: &AtomicBool) -> Digest {
    let mut hash = Sha256::new();
    chunks(content, CHUNK_BYTES)
        .take_while(|_| !stop.load(Ordering::Relaxed))
        .for_each(|chunk| hash.update(chunk));
    hash.digest()
}

/// The bytes of a file in pieces that are not too long to look up between them.
fn chunks<'c>(content: &'c Content<'_>, most_bytes: usize) -> impl Iterator<Item = &'c [u8]> {
    content.pieces.iter().flat_map(move |piece| piece.chunks(most_bytes.max(1)))
}

/// How much is hashed at once.
const CHUNK_BYTES: usize = 1 << 20;
