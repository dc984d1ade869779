//! A shard becomes a verdict on every id in it, on all cores.
//!
//! Pieces are handed out in order and read with the shard's own access; the first bad id of the file is the one that is told,
//! whichever thread was faster. Memory: one piece a thread.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::error::Error;
use crate::tokens::shards::{SCRATCH_BYTES, Shard};

/// How many ids are read at once: few enough for the nearest cache, as u32.
const PIECE_IDS: usize = 1 << 13;

/// How many ids a thread takes at a time.
const SHARE_IDS: u64 = 1 << 20;

impl Shard {
    /// Holds every id against the vocabulary of the header, or that one if it states none, on as many threads.
    ///
    /// `progress` is told, on this thread, how many ids of how many were looked at.
    ///
    /// # Errors
    /// As [`read_into`](Self::read_into); of bad ids the first. [`Misfit::Vocabulary`](crate::error::Misfit::Vocabulary) if the
    /// header states another one than that.
    pub fn scan(
        &self,
        vocabulary: Option<u32>,
        threads: NonZeroUsize,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), Error> {
        self.agree_on(vocabulary)?;
        let scan = Scan {
            shard: self,
            vocabulary,
            next: AtomicU64::new(0),
            done: AtomicU64::new(0),
            fault: Mutex::new(None),
        };
        let total = self.header().ids();
        progress(0, total);
        thread::scope(|scope| {
            for _ in 1..threads.get() {
                // With fewer threads than wanted it takes longer, and that is all.
                let _ = thread::Builder::new().spawn_scoped(scope, || scan.run(&mut |_| ()));
            }
            scan.run(&mut |done| progress(done, total));
        });
        match scan.fault.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }
}

struct Scan<'s> {
    shard: &'s Shard,
    vocabulary: Option<u32>,
    /// The first id that nobody has taken.
    next: AtomicU64,
    /// How many were looked at.
    done: AtomicU64,
    /// The error in the earliest share that has one.
    fault: Mutex<Option<(u64, Error)>>,
}

impl Scan<'_> {
    fn run(&self, progress: &mut dyn FnMut(u64)) {
        let (mut ids, mut scratch) = (vec![0_u32; PIECE_IDS], vec![0; SCRATCH_BYTES]);
        let total = self.shard.header().ids();
        loop {
            let begin = self.next.fetch_add(SHARE_IDS, Ordering::Relaxed);
            if begin >= total {
                return;
            }
            let end = begin.saturating_add(SHARE_IDS).min(total);
            if let Err(error) = self.share(begin, end, &mut ids, &mut scratch) {
                // What comes later than a bad id does not matter any more; what was taken earlier is looked at by its taker.
                self.next.fetch_max(total, Ordering::Relaxed);
                let mut fault = self.fault.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if fault.as_ref().is_none_or(|(earliest, _)| begin < *earliest) {
                    *fault = Some((begin, error));
                }
                return;
            }
            let looked_at = end.saturating_sub(begin);
            progress(self.done.fetch_add(looked_at, Ordering::Relaxed).saturating_add(looked_at));
        }
    }

    fn share(&self, begin: u64, end: u64, ids: &mut [u32], scratch: &mut [u8]) -> Result<(), Error> {
        let mut at = begin;
        while at < end {
            let count = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX).min(ids.len());
            let piece = ids.get_mut(..count).unwrap_or_default();
            self.shard.read_into(at, piece, self.vocabulary, scratch)?;
            at = at.saturating_add(count as u64);
        }
        Ok(())
    }
}
