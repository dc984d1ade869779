//! A stream becomes one that reads ahead on a thread of its own, at the position of what was consumed.
//!
//! A few batches wait in a queue; their memory goes round, so that nothing is allocated once it is filled. What the thread has
//! read ahead does not count: the cursor is that of the batch which is consumed next. Where no thread can be started the batches are
//! read when they are wanted; that takes longer, and is all.

use std::io;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use safestep_core::tokens::{Cursor, Token};

use crate::error::{Cause, Error, Misfit};
use crate::tokens::stream::{Batch, Bookmark, TokenStream};

/// A [`TokenStream`] that reads ahead. The batches are the same, in the same order.
///
/// After an error the position is that of the batch which could not be read, and the next call tries it again.
#[derive(Debug)]
pub struct Prefetch<T: Token + Send + 'static> {
    /// The stream, while no thread reads.
    idle: Option<TokenStream>,
    reading: Option<Reading<T>>,
    /// No thread could be started: none is asked for before the position changes.
    alone: bool,
    /// Where the next batch starts that is consumed.
    bookmark: Bookmark,
    batch_ids: u64,
    ahead: NonZeroUsize,
}

#[derive(Debug)]
struct Reading<T> {
    thread: JoinHandle<Option<TokenStream>>,
    filled: Receiver<Result<Filled<T>, Error>>,
    used: SyncSender<Batch<T>>,
}

#[derive(Debug)]
struct Filled<T> {
    batch: Batch<T>,
    /// Where the stream stands behind it.
    cursor: Cursor,
}

impl<T: Token + Send + 'static> Prefetch<T> {
    /// Reads up to `ahead` batches ahead of what is consumed; more than 4096 are no use, and count as so many.
    pub fn new(stream: TokenStream, ahead: NonZeroUsize) -> Self {
        let ahead = ahead.min(AHEAD_MAX);
        let (bookmark, batch_ids) = (stream.bookmark(), stream.batch_ids());
        Self { idle: Some(stream), reading: None, alone: false, bookmark, batch_ids, ahead }
    }

    /// Copies the next batch into these buffers. Allocates nothing once the thread runs.
    ///
    /// # Errors
    /// As [`TokenStream::next_batch_into`].
    pub fn next_batch_into(&mut self, inputs: &mut [T], targets: &mut [T]) -> Result<(), Error> {
        for found in [inputs.len() as u64, targets.len() as u64] {
            if found != self.batch_ids {
                let misfit = Misfit::Buffer { expected: self.batch_ids, found };
                return Err(Error::new("fill", "", Cause::Misfit(misfit)));
            }
        }
        if let Some(stream) = self.start()? {
            stream.next_batch_into(inputs, targets)?;
            self.bookmark.cursor = stream.cursor();
            return Ok(());
        }
        let batch = self.take()?;
        inputs.copy_from_slice(&batch.inputs);
        targets.copy_from_slice(&batch.targets);
        if let Some(reading) = &self.reading {
            // A thread that has ended needs no memory any more.
            let _ = reading.used.try_send(batch);
        }
        Ok(())
    }

    /// The next batch in memory of its own.
    ///
    /// # Errors
    /// As [`next_batch_into`](Self::next_batch_into).
    pub fn next_batch(&mut self) -> Result<Batch<T>, Error> {
        if let Some(stream) = self.start()? {
            let batch = stream.next_batch()?;
            self.bookmark.cursor = stream.cursor();
            return Ok(batch);
        }
        self.take()
    }

    /// The position of what was consumed.
    pub fn cursor(&self) -> Cursor {
        self.bookmark.cursor
    }

    /// The position of what was consumed, and which shards it belongs to.
    pub fn bookmark(&self) -> Bookmark {
        self.bookmark.clone()
    }

    /// Goes on from a position; what was read ahead is thrown away.
    ///
    /// # Errors
    /// As [`TokenStream::restore`]; the position is what it was then.
    pub fn restore(&mut self, cursor: Cursor) -> Result<(), Error> {
        self.stop()?.restore(cursor)?;
        self.bookmark.cursor = cursor;
        Ok(())
    }

    /// The same, if these are the shards that the bookmark belongs to.
    ///
    /// # Errors
    /// As [`TokenStream::restore_bookmark`]; the position is what it was then.
    pub fn restore_bookmark(&mut self, bookmark: &Bookmark) -> Result<(), Error> {
        self.stop()?.restore_bookmark(bookmark)?;
        self.bookmark.cursor = bookmark.cursor;
        Ok(())
    }

    /// The stream itself, at the position of what was consumed.
    ///
    /// # Errors
    /// [`Cause::Io`] if the thread panicked.
    pub fn into_stream(mut self) -> Result<TokenStream, Error> {
        self.stop()?;
        self.idle.take().ok_or_else(lost)
    }

    /// The next batch that the thread has read.
    fn take(&mut self) -> Result<Batch<T>, Error> {
        match self.reading.as_ref().ok_or_else(lost)?.filled.recv() {
            Ok(Ok(filled)) => {
                self.bookmark.cursor = filled.cursor;
                Ok(filled.batch)
            }
            Ok(Err(error)) => {
                self.stop()?;
                Err(error)
            }
            Err(_) => Err(lost()),
        }
    }

    /// Sees to it that a thread reads; the stream to be read from here if none can be started.
    fn start(&mut self) -> Result<Option<&mut TokenStream>, Error> {
        if self.reading.is_none() && !self.alone {
            self.reading = self.spawn()?;
            self.alone = self.reading.is_none();
        }
        if self.reading.is_some() { Ok(None) } else { self.idle.as_mut().map(Some).ok_or_else(lost) }
    }

    /// A thread that has the stream; without one the stream stays.
    fn spawn(&mut self) -> Result<Option<Reading<T>>, Error> {
        // So many batches there are at most: those that wait, one that is filled, and one that is consumed.
        let (give, used) = sync_channel(self.ahead.get().saturating_add(2));
        let (send, filled) = sync_channel(self.ahead.get());
        // A closure that is not run is dropped with all that it owns: the stream follows when the thread is there.
        let (hand, stream) = sync_channel::<TokenStream>(1);
        let read = move || stream.recv().ok().map(|stream| read_ahead(stream, &send, &used));
        let Ok(thread) = thread::Builder::new().spawn(read) else { return Ok(None) };
        hand.send(self.idle.take().ok_or_else(lost)?).map_err(|_| lost())?;
        Ok(Some(Reading { thread, filled, used: give }))
    }

    /// Ends the thread and takes the stream back, to where the consumer is.
    fn stop(&mut self) -> Result<&mut TokenStream, Error> {
        if let Some(Reading { thread, filled, used }) = self.reading.take() {
            drop((filled, used));
            let mut stream = thread.join().ok().flatten().ok_or_else(lost)?;
            stream.restore(self.bookmark.cursor)?;
            self.idle = Some(stream);
        }
        self.alone = false;
        self.idle.as_mut().ok_or_else(lost)
    }
}

impl<T: Token + Send + 'static> Drop for Prefetch<T> {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// Fills batches until nobody wants them any more, or one cannot be read.
fn read_ahead<T: Token>(
    mut stream: TokenStream,
    filled: &SyncSender<Result<Filled<T>, Error>>,
    used: &Receiver<Batch<T>>,
) -> TokenStream {
    loop {
        let answer = used.try_recv().or_else(|_| stream.empty_batch()).and_then(|mut batch| {
            stream.next_batch_into(&mut batch.inputs, &mut batch.targets)?;
            Ok(Filled { batch, cursor: stream.cursor() })
        });
        let last = answer.is_err();
        if filled.send(answer).is_err() || last {
            return stream;
        }
    }
}

/// A queue takes memory for all its places at once.
const AHEAD_MAX: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

fn lost() -> Error {
    Error::new("read ahead in", "", Cause::Io(io::Error::other("the thread has ended")))
}
