//! Large files become durable files and digests by all cores.
//!
//! Some threads write first and others hash first; who has done with the one goes on with the other. One more, which mostly waits,
//! brings to the disk what is written while the others go on: now and then while a file grows, so that the sync at its end finds
//! little left. The first error ends all of it.

use std::cmp::Reverse;
use std::iter;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Scope, ScopedJoinHandle};

use safestep_core::checkpoint::Digest;

use super::contents::Content;
use super::pieces::{create, fill, hash};
use super::thresholds::Thresholds;
use crate::disk::Disk;
use crate::error::{Cause, Error};

/// How files are written.
#[derive(Clone, Copy)]
pub(crate) struct How {
    /// Sync each.
    pub(crate) sync: bool,
    /// How many threads work, if there is enough for them.
    pub(crate) threads: usize,
    pub(crate) thresholds: Thresholds,
}

/// A step on its way to the disk, and who has taken up what of it.
pub(super) struct Crew<'s, D> {
    disk: &'s D,
    directory: &'s Path,
    contents: &'s [Content<'s>],
    how: How,
    /// Places in `contents`, the largest file first: it takes longest.
    order: Vec<usize>,
    next_write: AtomicUsize,
    next_hash: AtomicUsize,
    /// The beginning of some file waits to be brought to the disk. Whoever would add to that asks again later.
    wished: AtomicBool,
    first_error: OnceLock<Error>,
}

/// A file, or its beginning, that was written and is to be brought to the disk.
struct Written<F> {
    file: Arc<F>,
    name: Arc<str>,
    whole: bool,
}

/// How files come to the one who syncs them. He waits for nobody, so whoever finds it full may wait for him.
type Flusher<F> = SyncSender<Written<F>>;

impl<'s, D> Crew<'s, D>
where
    D: Disk + Sync,
    D::File: Send + Sync,
{
    pub(super) fn new(disk: &'s D, directory: &'s Path, contents: &'s [Content<'s>], how: How) -> Self {
        let mut order: Vec<usize> = (0..contents.len()).collect();
        order.sort_by_key(|place| Reverse(contents.get(*place).map(|content| content.len_bytes)));
        Self {
            disk,
            directory,
            contents,
            how,
            order,
            next_write: AtomicUsize::new(0),
            next_hash: AtomicUsize::new(0),
            wished: AtomicBool::new(false),
            first_error: OnceLock::new(),
        }
    }

    /// Writes and hashes all files, and gives their digests.
    pub(super) fn work(self) -> Result<Vec<Digest>, Error> {
        let (mut digests, all_came_back) = thread::scope(|scope| self.begin(scope));
        if let Some(error) = self.first_error.into_inner() {
            return Err(error);
        }
        digests.sort_by_key(|(place, _)| *place);
        if !all_came_back || digests.len() != self.contents.len() {
            return Err(Error::new("write", self.directory, Cause::ThreadLost));
        }
        Ok(digests.into_iter().map(|(_, digest)| digest).collect())
    }

    /// Where no thread can be made, those that there are do its work. Says whether all that were made came back.
    fn begin<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> (Vec<(usize, Digest)>, bool) {
        let (sender, receiver) = sync_channel(OPEN_FILES_MAX);
        let flusher = spawn(scope, move || self.flush(&receiver));
        let sender = flusher.is_some().then_some(sender);
        let helpers = self.how.threads.min(2 * self.contents.len());
        let helpers: Vec<_> = (1..helpers)
            .filter_map(|place| {
                let sender = sender.clone();
                spawn(scope, move || self.share(place < self.how.threads / 2, sender))
            })
            .collect();
        let mut digests = self.share(true, sender);
        let mut all_came_back = true;
        for helper in helpers {
            match helper.join() {
                Ok(others) => digests.extend(others),
                Err(_) => all_came_back = false,
            }
        }
        let flushed = flusher.is_none_or(|flusher| flusher.join().is_ok());
        (digests, all_came_back && flushed)
    }

    /// One thread's share of the work.
    fn share(&self, writes_first: bool, flusher: Option<Flusher<D::File>>) -> Vec<(usize, Digest)> {
        if writes_first {
            self.write(flusher);
            return self.hash();
        }
        let digests = self.hash();
        self.write(flusher);
        digests
    }

    fn hash(&self) -> Vec<(usize, Digest)> {
        let take = || self.take(&self.next_hash);
        iter::from_fn(take).map(|(place, content)| (place, hash(content, &|| self.goes_on()))).collect()
    }

    fn write(&self, flusher: Option<Flusher<D::File>>) {
        while let Some((_, content)) = self.take(&self.next_write) {
            if let Err(error) = self.write_one(content, flusher.as_ref()) {
                self.fail(error);
            }
        }
    }

    /// The next file that nobody has taken.
    fn take(&self, next: &AtomicUsize) -> Option<(usize, &'s Content<'s>)> {
        if !self.goes_on() {
            return None;
        }
        let place = *self.order.get(next.fetch_add(1, Ordering::Relaxed))?;
        self.contents.get(place).map(|content| (place, content))
    }

    fn goes_on(&self) -> bool {
        self.first_error.get().is_none()
    }

    /// Whoever is late with an error has it because of the first, which is the one to tell.
    fn fail(&self, error: Error) {
        let _ = self.first_error.set(error);
    }

    fn write_one(&self, content: &Content<'_>, flusher: Option<&Flusher<D::File>>) -> Result<(), Error> {
        let Self { disk, how: How { sync, thresholds, .. }, .. } = self;
        let path = self.directory.join(&*content.name);
        let (file, name) = (Arc::new(create(*disk, &path, content)?), Arc::from(&*content.name));
        let written = |whole| Written { file: Arc::clone(&file), name: Arc::clone(&name), whole };
        let portion = thresholds.write_back_bytes;
        let flusher = flusher.filter(|_| *sync);
        let mut grows = flusher.filter(|_| content.len_bytes >= portion.saturating_mul(2));
        let mut waiting = 0_u64;
        fill(*disk, &file, content, thresholds, &mut |bytes| {
            waiting = waiting.saturating_add(bytes);
            if let Some(flusher) = grows
                && waiting >= portion
                && !self.wished.swap(true, Ordering::Relaxed)
            {
                waiting = 0;
                grows = flusher.send(written(false)).is_ok().then_some(flusher);
            }
            self.goes_on()
        })
        .map_err(|error| Error::io("write", &path, error))?;
        if !sync || !self.goes_on() {
            return Ok(());
        }
        match flusher.map(|flusher| flusher.send(written(true))) {
            // A flusher that is gone has told why.
            Some(_) => Ok(()),
            None => self.bring(&written(true)),
        }
    }

    /// Brings to the disk what is written, until nothing more can come.
    fn flush(&self, all_written: &Receiver<Written<D::File>>) {
        for written in all_written {
            if !written.whole {
                self.wished.store(false, Ordering::Relaxed);
            }
            if !self.goes_on() {
                return;
            }
            if let Err(error) = self.bring(&written) {
                return self.fail(error);
            }
        }
    }

    fn bring(&self, written: &Written<D::File>) -> Result<(), Error> {
        let Written { file, name, whole } = written;
        let brought = if *whole { self.disk.sync(file) } else { self.disk.write_back(file) };
        brought.map_err(|error| Error::io("sync", self.directory.join(&**name), error))
    }
}

/// How many files that are written may wait for their sync, open: a small part of what a process may have.
const OPEN_FILES_MAX: usize = 16;

/// A thread, if the system lets us make one.
fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, T>> {
    thread::Builder::new().spawn_scoped(scope, work).ok()
}
