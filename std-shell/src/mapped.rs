//! A path -> the file's bytes, mapped into memory.
//!
//! Opening costs no reading: pages come in as they are touched. An empty file is an empty slice.
//! Nothing here panics; this file holds `unsafe` code, one line of it.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use memmap2::{Mmap, MmapOptions};

use crate::disk::open_regular;
use crate::error::Error;
use crate::read_at::{ReadAt, past_end, shrank};

/// A regular file, mapped for reading.
///
/// # The hazard of maps
/// A map shows the file itself. As long as it is in use, no other process should change the file in place:
/// * **Truncation.** Touching a page that the file no longer has raises SIGBUS, which ends the
///   process; no error can be returned for it. Lost bytes of the last page turn to zeros.
///   [`still_whole`](Self::still_whole) tells before bytes are touched, which narrows the window and
///   does not close it.
/// * **Writing.** Bytes that were checked may change afterwards, and the language promises nothing
///   about a slice that changes.
///
/// This library never does either, but to the loss history of a run
/// ([`History`](crate::run::History): appended to, and cut behind its last whole line when it is opened), which is not for
/// maps while a trainer may run. All other writers make a new file and rename it over the name
/// ([`commit`](crate::commit)), and a map of the old file goes on showing the old content. The same
/// holds for others who replace files by rename, or remove them. Where a file may be changed in
/// place by somebody else, or lies on a network disk that may fail, use
/// [`FileReader`](crate::FileReader): it reads with `pread` and turns both into errors.
///
/// ```
/// use safestep::Mapped;
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("ten");
/// std::fs::write(&path, b"0123456789")?;
///
/// let file = Mapped::open(&path)?;
/// assert_eq!(&file[4..7], b"456");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Mapped {
    /// None: the file is empty. A map of no bytes is not possible everywhere.
    map: Option<Mmap>,
    file: File,
    len_bytes: u64,
    path: PathBuf,
}

impl Mapped {
    /// Maps the whole of a regular file, as long as it is now.
    ///
    /// # Errors
    /// As [`open_regular`], and [`Cause::Io`](crate::Cause::Io) when there is no room in the
    /// address space: a file larger than it on a 32-bit machine, or a limit of the process.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (file, len_bytes) = open_regular(path)?;
        let map = match usize::try_from(len_bytes) {
            Ok(0) => None,
            Ok(len) => Some(map(&file, len).map_err(|error| Error::io("map", path, error))?),
            Err(_) => return Err(Error::io("map", path, io::ErrorKind::FileTooLarge.into())),
        };
        Ok(Self { map, file, len_bytes, path: path.to_path_buf() })
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Brings a part of the map into memory at one go. A disk that cannot give the bytes, or a file that has lost them, is an error
    /// here; without this, it would be SIGBUS at the first touch (and is still, if both happens between the two).
    ///
    /// # Errors
    /// What the system says. Where it has no such call (before Linux 5.14, and elsewhere) there is none.
    pub(crate) fn fetch(&self, begin: usize, len: usize) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if let Some(map) = &self.map {
            return match map.advise_range(memmap2::Advice::PopulateRead, begin, len) {
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
                Err(error) => Err(self.why_not(begin, len).unwrap_or(error)),
                Ok(()) => Ok(()),
            };
        }
        let _ = (begin, len);
        Ok(())
    }

    /// What reading says where a map has only a bad address to tell of.
    #[cfg(target_os = "linux")]
    fn why_not(&self, begin: usize, len: usize) -> Option<io::Error> {
        use std::os::unix::fs::FileExt as _;
        (begin..begin.saturating_add(len)).step_by(PAGE_BYTES).find_map(|place| {
            let read = u64::try_from(place).map(|place| self.file.read_at(&mut [0], place));
            match read.ok()? {
                Ok(0) => Some(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => None,
                Err(error) => Some(error),
            }
        })
    }

    /// Asks the file system whether the file still has every byte of the map. One system call.
    ///
    /// # Errors
    /// [`Cause::Shrank`](crate::Cause::Shrank): do not touch the bytes any more.
    pub fn still_whole(&self) -> Result<(), Error> {
        match self.file.metadata() {
            Ok(metadata) if metadata.len() >= self.len_bytes => Ok(()),
            _ => Err(shrank(&self.path, &self.file, self.len_bytes)),
        }
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes()
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

/// Copies out of the map, after asking whether the file is still whole.
impl ReadAt for Mapped {
    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), Error> {
        let begin = usize::try_from(offset).unwrap_or(usize::MAX);
        let span = begin..begin.saturating_add(buf.len());
        let Some(bytes) = self.bytes().get(span) else {
            return Err(past_end(&self.path, self.len_bytes, offset, buf.len()));
        };
        self.still_whole()?;
        buf.copy_from_slice(bytes);
        Ok(())
    }
}

/// No page is smaller.
#[cfg(target_os = "linux")]
const PAGE_BYTES: usize = 4096;

#[expect(
    unsafe_code,
    reason = "the language cannot see who else writes to a mapped file; the proof is inside"
)]
fn map(file: &File, len: usize) -> io::Result<Mmap> {
    let mut options = MmapOptions::new();
    options.len(len);
    // SAFETY: a slice over the map is sound while (1) its addresses stay mapped, (2) reading them
    // gives bytes of this file, and (3) the bytes do not change.
    // (1) The `Mmap` owns the mapping and unmaps it in its drop; `Mapped` keeps it private and
    //     lends slices only for as long as it is itself borrowed. Nothing else in this process
    //     knows the addresses. `len` is not 0 and fits the slice type: memmap2 refuses lengths over
    //     `isize::MAX`.
    // (2) The file is regular (`open_regular` asked the open descriptor) and has `len` bytes, and the
    //     map is for reading only: neither it nor the descriptor can be written through. If the file
    //     is truncated later, touching a lost page raises SIGBUS and the process ends before the
    //     read has a value; within the last page lost bytes turn to zeros, a change as in (3).
    // (3) Within this process: code of this crate writes to files that it has just made, under names that nobody else
    //     looks at, and moves names. The one file that is changed in place is the loss history (`run::history`), which this
    //     crate never maps. Other processes and other code of the host program, one that maps a history included, cannot be
    //     bound by a type; that nobody changes the file is the condition that the documentation of `Mapped` states, with
    //     the alternative for when it cannot be met. When it is broken, what reads here is safe code that checks every index
    //     against the slice's length, which is this struct's and cannot change.
    unsafe { options.map(file) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Cause, FileKind};
    use crate::read_at::FileReader;
    use std::fs::{self, OpenOptions};

    #[test]
    fn a_map_and_pread_show_the_same() {
        let directory = tempfile::tempdir().unwrap();
        for len in [0, 1, 8, 4095, 4096, 4097, 100_000] {
            let path = directory.path().join(len.to_string());
            let content: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            fs::write(&path, &content).unwrap();
            let (mapped, pread) = (Mapped::open(&path).unwrap(), FileReader::open(&path).unwrap());
            assert_eq!(mapped.bytes(), content);
            assert_eq!((mapped.len_bytes(), pread.len_bytes()), (len as u64, len as u64));
            for (offset, count) in [(0, len), (len / 2, len / 3), (len, 0), (len, 1), (len + 1, 0)] {
                let (mut a, mut b) = (vec![0; count], vec![0; count]);
                let answers = (mapped.read_at(offset as u64, &mut a), pread.read_at(offset as u64, &mut b));
                let shown = |answer: &Result<(), Error>| answer.as_ref().err().map(ToString::to_string);
                assert_eq!(shown(&answers.0), shown(&answers.1));
                assert_eq!(a, b);
            }
        }
    }

    #[test]
    fn a_file_that_shrinks_is_noticed_before_it_is_touched() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, [7; 10_000]).unwrap();
        let mapped = Mapped::open(&path).unwrap();
        let other = OpenOptions::new().write(true).open(&path).unwrap();
        other.set_len(20_000).unwrap();
        mapped.still_whole().unwrap();
        other.set_len(9_999).unwrap();
        for error in [mapped.still_whole(), mapped.read_at(0, &mut [0])].map(Result::unwrap_err) {
            assert!(
                matches!(error.because(), Cause::Shrank { expected_bytes: 10_000, found_bytes: 9_999 }),
                "{error}"
            );
        }
    }

    #[test]
    fn a_directory_is_no_file() {
        let error = Mapped::open(Path::new(".")).unwrap_err();
        assert!(matches!(error.because(), Cause::NotRegular(FileKind::Directory)));
    }
}
