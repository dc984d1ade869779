//! An offset and a buffer -> the bytes that stand there, all of them or an error.
//!
//! The way to read where a map would be wrong: a file that others may truncate, and later things
//! that are no files at all. Nothing here panics, allocates (but for an error) or keeps a position,
//! so many threads can read at once.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::disk::open_regular;
use crate::error::{Cause, Error};

/// Bytes of a known length that can be read anywhere.
pub trait ReadAt {
    /// How many bytes there are; it does not change.
    fn len_bytes(&self) -> u64;

    /// Fills the whole of `buf` with the bytes from `offset` on.
    ///
    /// # Errors
    /// [`Cause::PastEnd`] when they reach beyond [`len_bytes`](Self::len_bytes), [`Cause::Shrank`]
    /// when they were there but are gone, [`Cause::Io`] when they cannot be read. What `buf` then
    /// holds is not specified.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), Error>;
}

impl<R: ReadAt + ?Sized> ReadAt for &R {
    fn len_bytes(&self) -> u64 {
        (**self).len_bytes()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), Error> {
        (**self).read_at(offset, buf)
    }
}

/// A regular file that is read with `pread`.
///
/// ```
/// use safestep::{FileReader, ReadAt};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("ten");
/// std::fs::write(&path, b"0123456789")?;
///
/// let file = FileReader::open(&path)?;
/// let mut bytes = [0; 3];
/// file.read_at(4, &mut bytes)?;
/// assert_eq!((file.len_bytes(), &bytes), (10, b"456"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FileReader {
    file: File,
    len_bytes: u64,
    path: PathBuf,
}

impl FileReader {
    /// Opens a regular file; its length is what it is now, whatever becomes of it.
    ///
    /// # Errors
    /// As [`open_regular`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (file, len_bytes) = open_regular(path)?;
        Ok(Self { file, len_bytes, path: path.to_path_buf() })
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl ReadAt for FileReader {
    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), Error> {
        if offset.saturating_add(buf.len() as u64) > self.len_bytes {
            return Err(past_end(&self.path, self.len_bytes, offset, buf.len()));
        }
        let (mut offset, mut rest) = (offset, buf);
        while !rest.is_empty() {
            match self.file.read_at(rest, offset) {
                Ok(0) => return Err(shrank(&self.path, &self.file, self.len_bytes)),
                Ok(count) => {
                    offset = offset.saturating_add(count as u64);
                    rest = rest.get_mut(count..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("read", &self.path, error)),
            }
        }
        Ok(())
    }
}

/// The error for a reader of `len_bytes` that was asked for `count` bytes from `offset` on.
pub(crate) fn past_end(path: &Path, len_bytes: u64, offset: u64, count: usize) -> Error {
    let wanted_bytes = offset.saturating_add(count as u64);
    Error::new("read", path, Cause::PastEnd { wanted_bytes, length_bytes: len_bytes })
}

/// The error for a file that had `expected_bytes` and has fewer now.
pub(crate) fn shrank(path: &Path, file: &File, expected_bytes: u64) -> Error {
    match file.metadata() {
        Ok(metadata) => {
            Error::new("read", path, Cause::Shrank { expected_bytes, found_bytes: metadata.len() })
        }
        Err(error) => Error::io("read", path, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, OpenOptions};

    #[test]
    fn every_span_is_read_exactly_or_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let content: Vec<u8> = (0..40).collect();
        fs::write(&path, &content).unwrap();
        let file = FileReader::open(&path).unwrap();
        assert_eq!(file.len_bytes(), 40);
        for begin in 0..45_usize {
            for count in 0..45_usize {
                let mut buf = vec![0xaa; count];
                let answer = file.read_at(begin as u64, &mut buf);
                match content.get(begin..begin + count) {
                    Some(bytes) => {
                        answer.unwrap();
                        assert_eq!(buf, bytes);
                    }
                    None => assert!(matches!(answer.unwrap_err().because(), Cause::PastEnd { .. })),
                }
            }
        }
        let far = file.read_at(u64::MAX, &mut [0]).unwrap_err();
        assert!(matches!(far.because(), Cause::PastEnd { wanted_bytes: u64::MAX, length_bytes: 40 }));
    }

    #[test]
    fn a_file_that_shrinks_says_so_and_one_that_grows_does_not_matter() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, [7; 100]).unwrap();
        let file = FileReader::open(&path).unwrap();
        let other = OpenOptions::new().write(true).open(&path).unwrap();

        other.set_len(200).unwrap();
        file.read_at(0, &mut [0; 100]).unwrap();
        assert_eq!(file.len_bytes(), 100);

        other.set_len(60).unwrap();
        file.read_at(0, &mut [0; 60]).unwrap();
        for (offset, count) in [(0, 61), (60, 1), (90, 10)] {
            let error = file.read_at(offset, &mut vec![0; count]).unwrap_err();
            assert!(
                matches!(error.because(), Cause::Shrank { expected_bytes: 100, found_bytes: 60 }),
                "{error}"
            );
        }
    }
}
