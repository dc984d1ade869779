//! The first eight bytes and the file's length become a frame: where the header ends and the data begins.
//!
//! ```text
//! byte 0        8             8+N                               file end
//! | N: u64 LE   | header JSON | tensor data, packed, row-major, LE |
//! ```

use crate::dtype::DtypeSet;
use crate::error::{Error, ErrorKind};
use crate::limits::HEADER_BYTES_MAX;
use crate::span::{ByteLen, Span, count};

/// The bytes before the header.
pub const PREFIX_BYTES: u64 = 8;

/// What a caller is ready to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    header_bytes: u64,
    dtypes: DtypeSet,
}

impl Limits {
    /// Headers of at most `bytes` bytes (R1.too_large); [`HEADER_BYTES_MAX`] cannot be exceeded.
    #[must_use]
    pub const fn header_bytes(self, bytes: u64) -> Self {
        let header_bytes = if bytes < HEADER_BYTES_MAX { bytes } else { HEADER_BYTES_MAX };
        Self { header_bytes, ..self }
    }

    /// Only these dtypes (R4.dtype).
    #[must_use]
    pub const fn dtypes(self, dtypes: DtypeSet) -> Self {
        Self { dtypes, ..self }
    }
}

impl Default for Limits {
    /// Headers of up to [`HEADER_BYTES_MAX`] bytes, every dtype.
    fn default() -> Self {
        Self { header_bytes: HEADER_BYTES_MAX, dtypes: DtypeSet::ALL }
    }
}

/// Where a file's header and data are. The rules R1 hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    header_bytes: u32,
    allowed: DtypeSet,
    file_bytes: u64,
}

impl Frame {
    /// Reads the length of the header from `prefix`, the first eight bytes of a file of `file_bytes` bytes.
    ///
    /// What follows in `prefix` is ignored, so the whole file will do. The file may be longer than the machine can address.
    ///
    /// # Errors
    /// R1.short, R1.too_large, R1.past_end.
    ///
    /// ```
    /// use safestep_core::{Frame, Limits};
    /// let frame = Frame::read(&[2, 0, 0, 0, 0, 0, 0, 0], 6_000_000_000, Limits::default())?;
    /// assert_eq!(frame.header_len().value(), 2);
    /// assert_eq!(frame.data_len().value(), 5_999_999_990);
    /// # Ok::<(), safestep_core::Error>(())
    /// ```
    #[inline]
    pub fn read(prefix: &[u8], file_bytes: u64, limits: Limits) -> Result<Self, Error> {
        let Some(length) = prefix.first_chunk::<8>().filter(|_| file_bytes >= PREFIX_BYTES) else {
            let found = file_bytes.min(count(prefix.len()));
            return Err(Error::new(ErrorKind::Short { found }, found));
        };
        let header_bytes = u64::from_le_bytes(*length);
        if header_bytes > limits.header_bytes {
            let kind = ErrorKind::TooLarge { limit: limits.header_bytes, found: header_bytes };
            return Err(Error::new(kind, 0));
        }
        if header_bytes > file_bytes.saturating_sub(PREFIX_BYTES) {
            return Err(Error::new(ErrorKind::PastEnd { header: header_bytes, found: file_bytes }, 0));
        }
        let header_bytes = u32::try_from(header_bytes).unwrap_or(u32::MAX);
        Ok(Self { header_bytes, allowed: limits.dtypes, file_bytes })
    }

    /// The length of the header, N.
    #[must_use]
    pub const fn header_len(&self) -> ByteLen {
        ByteLen::new(self.header_bytes as u64)
    }

    /// The length of the data.
    #[must_use]
    pub const fn data_len(&self) -> ByteLen {
        ByteLen::new(self.file_bytes.saturating_sub(self.data_begin()))
    }

    /// Where the header is in the file.
    #[must_use]
    pub fn header_span(&self) -> Span {
        Span::new(PREFIX_BYTES, self.data_begin()).unwrap_or_default()
    }

    /// Where the data is in the file.
    #[must_use]
    pub fn data_span(&self) -> Span {
        Span::new(self.data_begin(), self.file_bytes).unwrap_or_default()
    }

    /// The length of the file.
    #[must_use]
    pub const fn file_len(&self) -> ByteLen {
        ByteLen::new(self.file_bytes)
    }

    /// The dtypes that the caller allows.
    pub(crate) const fn allowed(&self) -> DtypeSet {
        self.allowed
    }

    /// 8 + N.
    pub(crate) const fn data_begin(&self) -> u64 {
        (self.header_bytes as u64).wrapping_add(PREFIX_BYTES)
    }
}

/// A place of the header, in the file.
pub(crate) fn in_file(at: u32) -> u64 {
    PREFIX_BYTES.wrapping_add(u64::from(at))
}
