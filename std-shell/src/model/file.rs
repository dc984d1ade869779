//! A path becomes a judged file: the header is read and judged at once, tensors when they are asked for.
//!
//! One allocation beside the header: the slots. Nothing here panics; no byte of the header is trusted before the core
//! has judged it.

use std::path::{Path, PathBuf};

use safestep_core::{Entry, ErrorKind, Frame, Index, Limits, Proof, Slot, Span, TensorView};

use crate::error::{BadFile, Cause, Error};
use crate::mapped::Mapped;
use crate::memory;
use crate::read_at::{FileReader, ReadAt};

/// How the bytes of a file come in. The results are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// By a map: tensors are lent in place. A process that truncates the file meanwhile takes this one down (SIGBUS).
    Map,
    /// By `pread`: tensors are copied out. A file that is truncated meanwhile is an error.
    Read,
}

/// A model file in which no rule is broken.
///
/// ```
/// use safestep::{Access, Model, ModelWriter, OsDisk, TensorPlan};
/// use safestep_core::{Dtype, Limits};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("model.safetensors");
/// let plan = vec![TensorPlan { name: "w".into(), dtype: Dtype::F32, shape: vec![2] }];
/// let mut writer = ModelWriter::create(&OsDisk, &path, &plan, None)?;
/// writer.write(&1.5_f32.to_le_bytes())?;
/// writer.write(&2.5_f32.to_le_bytes())?;
/// writer.finish()?;
///
/// let model = Model::open(&path, Access::Map, Limits::default())?;
/// let entry = model.index().get("w").unwrap();
/// assert_eq!(model.view(&entry).unwrap().elements::<f32>(), Ok(&[1.5, 2.5][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Model {
    source: Source,
    path: PathBuf,
    frame: Frame,
    slots: Vec<Slot>,
    proof: Proof,
}

#[derive(Debug)]
enum Source {
    Map(Mapped),
    Read { file: FileReader, header: Vec<u8> },
}

/// How many bytes tell what a file is that is no safetensors file.
const FIRST_BYTES: usize = 64;

impl Model {
    /// Opens a file and judges its header. The data is not touched, however long it is.
    ///
    /// # Errors
    /// [`Cause::Bad`] with the verdict if a rule is broken; [`Cause::Io`] if there is not enough memory for the header and
    /// its slots; otherwise as [`FileReader::open`] and [`ReadAt::read_at`].
    pub fn open(path: impl AsRef<Path>, access: Access, limits: Limits) -> Result<Self, Error> {
        let path = path.as_ref();
        match access {
            Access::Map => Self::of_map(Mapped::open(path)?, limits),
            Access::Read => {
                let file = FileReader::open(path)?;
                let mut first = [0; FIRST_BYTES];
                let len = usize::try_from(file.len_bytes()).unwrap_or(FIRST_BYTES).min(FIRST_BYTES);
                let first = first.get_mut(..len).unwrap_or_default();
                file.read_at(0, first)?;
                let frame = Frame::read(first, file.len_bytes(), limits);
                let frame = frame.map_err(|error| bad(path, error, first, &[]))?;
                let header = read_span(&file, frame.header_span())?;
                let (slots, proof) = judge(path, &frame, first, &header)?;
                Ok(Self {
                    source: Source::Read { file, header },
                    path: path.to_path_buf(),
                    frame,
                    slots,
                    proof,
                })
            }
        }
    }

    /// Judges a file that is mapped already.
    ///
    /// # Errors
    /// [`Cause::Bad`] with the verdict if a rule is broken.
    pub fn of_map(map: Mapped, limits: Limits) -> Result<Self, Error> {
        let (path, bytes) = (map.path().to_path_buf(), map.bytes());
        let frame = Frame::read(bytes, map.len_bytes(), limits);
        let frame = frame.map_err(|error| bad(&path, error, bytes, &[]))?;
        let header = frame.header_span().of(bytes).unwrap_or_default();
        let (slots, proof) = judge(&path, &frame, bytes, header)?;
        Ok(Self { source: Source::Map(map), path, frame, slots, proof })
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where header and data are.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The tensors. Costs nothing: the header was judged when the file was opened.
    pub fn index(&self) -> Index<'_, '_> {
        Index::again(self.frame, self.header_bytes(), &self.slots, self.proof)
    }

    /// The tensor's bytes in place; `None` unless the file is mapped.
    pub fn view<'a>(&'a self, entry: &Entry<'a>) -> Option<TensorView<'a, 'a>> {
        match &self.source {
            Source::Map(map) => entry.view(self.frame.data_span().of(map.bytes())?),
            Source::Read { .. } => None,
        }
    }

    /// Fills `buf` with bytes of the tensor, from the byte `offset` of the tensor on.
    ///
    /// # Errors
    /// [`Cause::PastEnd`] beyond the tensor's end; otherwise as [`ReadAt::read_at`].
    pub fn read_into(&self, entry: &Entry<'_>, offset: u64, buf: &mut [u8]) -> Result<(), Error> {
        let len = entry.span().len().value();
        let wanted = u64::try_from(buf.len()).ok().and_then(|more| offset.checked_add(more));
        let wanted_bytes = wanted.unwrap_or(u64::MAX);
        if wanted_bytes > len {
            let because = Cause::PastEnd { wanted_bytes, length_bytes: len };
            return Err(Error::new("read a tensor of", &self.path, because));
        }
        // Proven to lie in the file, so the sum is not beyond its length.
        let at = self.frame.data_span().begin().value().saturating_add(entry.span().begin().value());
        let at = at.saturating_add(offset);
        match &self.source {
            Source::Map(map) => map.read_at(at, buf),
            Source::Read { file, .. } => file.read_at(at, buf),
        }
    }

    fn header_bytes(&self) -> &[u8] {
        match &self.source {
            Source::Map(map) => self.frame.header_span().of(map.bytes()).unwrap_or_default(),
            Source::Read { header, .. } => header,
        }
    }
}

/// Judges a header in as many slots as it needs. The file begins with `first`.
fn judge(path: &Path, frame: &Frame, first: &[u8], text: &[u8]) -> Result<(Vec<Slot>, Proof), Error> {
    let bad = |error| bad(path, error, first, text);
    let room = |slots| memory::filled(Slot::EMPTY, slots).map_err(|error| Error::io("judge", path, error));
    let header = frame.header(text).map_err(bad)?;
    let mut slots = room(header.slots_bound())?;
    loop {
        match Index::build(header, &mut slots) {
            Ok(index) => {
                let proof = index.proof();
                return Ok((slots, proof));
            }
            // Only headers with broken entries, or with thousands of unsorted metadata keys, come here.
            Err(error) => match error.kind() {
                ErrorKind::SlotsTooFew { needed, .. } => match usize::try_from(needed) {
                    Ok(needed) if needed > slots.len() => {
                        // What they hold does not matter, so the old ones make room first.
                        drop(std::mem::take(&mut slots));
                        slots = room(needed)?;
                    }
                    _ => return Err(bad(error)),
                },
                _ => return Err(bad(error)),
            },
        }
    }
}

fn read_span(file: &FileReader, span: Span) -> Result<Vec<u8>, Error> {
    // At most the limit of the header, and no more than the file has.
    let len = usize::try_from(span.len().value()).unwrap_or_default();
    let mut bytes = memory::filled(0, len).map_err(|error| Error::io("read", file.path(), error))?;
    file.read_at(span.begin().value(), &mut bytes)?;
    Ok(bytes)
}

fn bad(path: &Path, error: safestep_core::Error, first: &[u8], header: &[u8]) -> Error {
    Error::new("accept", path, Cause::Bad(Box::new(BadFile::new(error, first, header))))
}
