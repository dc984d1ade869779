//! A state becomes a copy, and the copy a checkpoint while training goes on.
//!
//! One save runs at a time. Its error reaches whoever asks next: [`BackgroundSaver::wait`], or the next
//! [`begin`](BackgroundSaver::begin). Dropping the saver waits for the save, so leaving a program loses none; an error that
//! nobody has asked for by then goes to stderr.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use safestep_core::Dtype;
use safestep_core::checkpoint::TrainerState;

use super::save::{SaveOptions, Saved, save};
use super::state::{Optimizer, State, Tensor};
use crate::disk::Disk;
use crate::error::{Cause, Error};

/// Saves in a thread of its own.
#[derive(Debug)]
pub struct BackgroundSaver<D: Disk> {
    disk: Arc<D>,
    root: PathBuf,
    running: Option<JoinHandle<(Result<Saved, Error>, Copied)>>,
    /// The copy of the last save: its memory is used again, since pages that were touched cost less.
    spare: Copied,
}

impl<D> BackgroundSaver<D>
where
    D: Disk + Send + Sync + 'static,
    D::File: Send + Sync,
{
    /// A saver for a checkpoint root.
    pub fn new(disk: D, root: impl Into<PathBuf>) -> Self {
        Self { disk: Arc::new(disk), root: root.into(), running: None, spare: Copied::default() }
    }

    /// Where it saves.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Waits for the save before, copies the state, and begins to save the copy.
    ///
    /// # Errors
    /// That of the save before; then the new one is not begun, and a second call begins it. Or no thread could be made.
    pub fn begin(&mut self, state: &State<'_>, options: SaveOptions) -> Result<Option<Saved>, Error> {
        let before = self.wait()?;
        let mut copy = std::mem::take(&mut self.spare);
        copy.take(state);
        let (disk, root) = (Arc::clone(&self.disk), self.root.clone());
        let run = move || {
            let answer = copy.with_state(|state| save(&*disk, &root, state, &options));
            (answer, copy)
        };
        let thread = thread::Builder::new().name("checkpoint".into()).spawn(run);
        self.running = Some(thread.map_err(|error| Error::io("begin to save to", &self.root, error))?);
        Ok(before)
    }

    /// Waits until the save is done; `None` if there is none to wait for.
    ///
    /// # Errors
    /// Those of [`save()`].
    pub fn wait(&mut self) -> Result<Option<Saved>, Error> {
        let Some(running) = self.running.take() else { return Ok(None) };
        let (answer, copy) =
            running.join().map_err(|_| Error::new("save to", &self.root, Cause::ThreadLost))?;
        self.spare = copy;
        answer.map(Some)
    }

    /// Whether a save is running.
    pub fn is_running(&self) -> bool {
        self.running.as_ref().is_some_and(|running| !running.is_finished())
    }
}

impl<D: Disk> Drop for BackgroundSaver<D> {
    fn drop(&mut self) {
        let Some(running) = self.running.take() else { return };
        match running.join() {
            Ok((Ok(_), _)) => {}
            Ok((Err(error), _)) => say(&error),
            Err(_) => say(&Error::new("save to", &self.root, Cause::ThreadLost)),
        }
    }
}

/// The last word about a save; where nobody listens there is nobody to tell.
fn say(error: &Error) {
    let _ = writeln!(io::stderr(), "safestep: {error}");
}

/// A state that owns what it holds: all bytes one behind the other.
#[derive(Debug, Default)]
struct Copied {
    bytes: Vec<u8>,
    model: Vec<CopiedTensor>,
    arrays: Vec<CopiedTensor>,
    optimizer_state: String,
    trainer: TrainerState,
    config_len: Option<usize>,
    files: Vec<(String, usize)>,
}

#[derive(Debug)]
struct CopiedTensor {
    name: String,
    dtype: Dtype,
    shape: Vec<u64>,
    len: usize,
}

impl Copied {
    fn take(&mut self, state: &State<'_>) {
        let tensors = |tensors: &[Tensor<'_>]| {
            let copied = tensors.iter().map(|tensor| CopiedTensor {
                name: tensor.name.to_owned(),
                dtype: tensor.dtype,
                shape: tensor.shape.to_vec(),
                len: tensor.bytes.len(),
            });
            copied.collect()
        };
        self.model = tensors(state.model);
        self.arrays = tensors(state.optimizer.arrays);
        state.optimizer.state.clone_into(&mut self.optimizer_state);
        self.trainer = state.trainer;
        self.config_len = state.config.map(<[u8]>::len);
        self.files = state.files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.len())).collect();
        let pieces = || {
            let tensors = state.model.iter().chain(state.optimizer.arrays).map(|tensor| tensor.bytes);
            tensors.chain(state.config).chain(state.files.iter().map(|(_, bytes)| *bytes))
        };
        let len = pieces().map(<[u8]>::len).sum();
        if self.bytes.len() < len {
            // Zeros that nobody has touched yet: the copy is the first to need their pages.
            self.bytes = Vec::new();
            self.bytes = vec![0; len];
        }
        self.bytes.truncate(len);
        copy_all(pieces(), &mut self.bytes);
    }

    fn with_state<T>(&self, use_it: impl FnOnce(&State<'_>) -> T) -> T {
        let mut rest = &*self.bytes;
        let mut next = |len: usize| {
            let (piece, tail) = rest.split_at_checked(len).unwrap_or_default();
            rest = tail;
            piece
        };
        let (model, arrays): (Vec<_>, Vec<_>) =
            (tensors(&self.model, &mut next), tensors(&self.arrays, &mut next));
        let config = self.config_len.map(&mut next);
        let files: Vec<_> = self.files.iter().map(|(name, len)| (name.as_str(), next(*len))).collect();
        use_it(&State {
            model: &model,
            optimizer: Optimizer { arrays: &arrays, state: &self.optimizer_state },
            trainer: self.trainer,
            config,
            files: &files,
        })
    }
}

/// Copies pieces, one behind the other, to memory of their length, by as many threads as there are cores: the caller waits for it.
fn copy_all<'a>(pieces: impl Iterator<Item = &'a [u8]>, mut to: &mut [u8]) {
    let mut chunks = Vec::new();
    for from in pieces.flat_map(|piece| piece.chunks(CHUNK_BYTES)) {
        let Some((head, tail)) = to.split_at_mut_checked(from.len()) else { return };
        chunks.push((head, from));
        to = tail;
    }
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let helpers = threads.min(chunks.len()).saturating_sub(1);
    let chunks = Mutex::new(chunks.into_iter());
    // No thread can panic while it holds the lock, which is let go before the copying.
    let next = || chunks.lock().ok()?.next();
    let work = || std::iter::from_fn(next).for_each(|(to, from)| to.copy_from_slice(from));
    thread::scope(|scope| {
        for _ in 0..helpers {
            // Without it the others do more.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
}

/// How much a thread copies at once: small enough that none is waited for, large enough that small states need no thread.
const CHUNK_BYTES: usize = 4 << 20;

fn tensors<'a>(copied: &'a [CopiedTensor], next: &mut impl FnMut(usize) -> &'a [u8]) -> Vec<Tensor<'a>> {
    let tensors = copied.iter().map(|tensor| Tensor {
        name: &tensor.name,
        dtype: tensor.dtype,
        shape: &tensor.shape,
        bytes: next(tensor.len),
    });
    tensors.collect()
}
