//! A step and a count become the head of a five-region snapshot, and its bytes views of weights and moments.
//!
//! ```text
//! byte 0      4           8         8+4n      8+8n      8+12n: file end
//! | step: i32 | n: i32    | weights | m       | v       |    n f32 each, all of it little-endian
//! ```
//!
//! The length of the file is proven by the head, so the regions of a whole file always exist. Nothing is converted: each
//! f32 keeps its bits. No heap, no panic.

use crate::span::{ByteLen, Offset, Span, count};
use crate::tensor::view::ViewError;
use core::fmt;
use zerocopy::FromBytes as _;

/// The bytes of the head: the step and the number of parameters.
pub const HEAD_BYTES: usize = 8;

/// The largest step, and the largest number of parameters, that the head can hold.
pub const COUNT_MAX: u32 = i32::MAX.cast_unsigned();

/// The head of a snapshot: everything that there is to know about its layout.
///
/// ```
/// use safestep_core::snapshot::{Region, Snapshot};
/// let snapshot = Snapshot::new(112_700, 12_800_000)?;
/// assert_eq!(snapshot.file_len().value(), 153_600_008);
/// assert_eq!(snapshot.span(Region::FirstMoment).begin().value(), 51_200_008);
/// assert_eq!(Snapshot::read(&snapshot.head(), 153_600_008), Ok(snapshot));
/// # Ok::<(), safestep_core::snapshot::SnapshotError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    step: u32,
    parameters: u32,
}

/// The three arrays, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Region {
    /// The parameters.
    Weights,
    /// Adam's m: the moving average of the gradients.
    FirstMoment,
    /// Adam's v: the moving average of their squares.
    SecondMoment,
}

/// The bytes of a region.
#[derive(Clone, Copy, Debug, Default)]
pub struct RegionView<'a> {
    bytes: &'a [u8],
}

impl Snapshot {
    /// The head for a step and a number of parameters.
    ///
    /// # Errors
    /// [`SnapshotErrorKind::StepTooLarge`], [`SnapshotErrorKind::CountTooLarge`] over [`COUNT_MAX`].
    pub fn new(step: u64, parameters: u64) -> Result<Self, SnapshotError> {
        let narrow = |value: u64| u32::try_from(value).ok().filter(|&value| value <= COUNT_MAX);
        let Some(narrow_step) = narrow(step) else {
            return Err(SnapshotError { kind: SnapshotErrorKind::StepTooLarge { found: step }, at: STEP_AT });
        };
        let Some(narrow_parameters) = narrow(parameters) else {
            let kind = SnapshotErrorKind::CountTooLarge { found: parameters };
            return Err(SnapshotError { kind, at: COUNT_AT });
        };
        Ok(Self { step: narrow_step, parameters: narrow_parameters })
    }

    /// Judges a file by its first bytes ([`HEAD_BYTES`] suffice) and its length.
    ///
    /// # Errors
    /// The first broken rule: the head is not there, a number in it is negative, the file has another length.
    pub fn read(front: &[u8], file_len: u64) -> Result<Self, SnapshotError> {
        let broken = |kind, at| Err(SnapshotError { kind, at });
        let head = front.first_chunk::<HEAD_BYTES>().filter(|_| file_len >= count(HEAD_BYTES));
        let Some(&[a, b, c, d, e, f, g, h]) = head else {
            let found = file_len.min(count(front.len()));
            return broken(SnapshotErrorKind::Short { found }, found);
        };
        let (step, parameters) = (i32::from_le_bytes([a, b, c, d]), i32::from_le_bytes([e, f, g, h]));
        let Ok(narrow_step) = u32::try_from(step) else {
            return broken(SnapshotErrorKind::Step { found: step }, STEP_AT);
        };
        let Ok(narrow_parameters) = u32::try_from(parameters) else {
            return broken(SnapshotErrorKind::Count { found: parameters }, COUNT_AT);
        };
        let snapshot = Self { step: narrow_step, parameters: narrow_parameters };
        let expected = snapshot.file_len().value();
        if file_len != expected {
            return broken(SnapshotErrorKind::Length { expected, found: file_len }, expected.min(file_len));
        }
        Ok(snapshot)
    }

    /// The step after which it was taken.
    #[must_use]
    pub fn step(&self) -> u32 {
        self.step
    }

    /// The number of parameters, which is that of the numbers in each region.
    #[must_use]
    pub fn parameters(&self) -> u32 {
        self.parameters
    }

    /// The first bytes of the file.
    #[must_use]
    pub fn head(&self) -> [u8; HEAD_BYTES] {
        let ([a, b, c, d], [e, f, g, h]) = (self.step.to_le_bytes(), self.parameters.to_le_bytes());
        [a, b, c, d, e, f, g, h]
    }

    /// The length of the file: 8 + 12 x parameters.
    #[must_use]
    pub fn file_len(&self) -> ByteLen {
        ByteLen::new(self.begin_of_region(3))
    }

    /// Where a region stands in the file.
    #[must_use]
    pub fn span(&self, region: Region) -> Span {
        let begin = self.begin_of_region(region.place());
        Span::proven(begin, begin.wrapping_add(self.region_bytes()))
    }

    /// A region of the file; `None` if `file` does not hold it.
    #[must_use]
    pub fn view<'a>(&self, file: &'a [u8], region: Region) -> Option<RegionView<'a>> {
        Some(RegionView { bytes: self.span(region).of(file)? })
    }

    /// Below 2^33, as the count is below 2^31.
    fn region_bytes(&self) -> u64 {
        u64::from(self.parameters) << 2
    }

    fn begin_of_region(&self, place: u8) -> u64 {
        count(HEAD_BYTES).wrapping_add(self.region_bytes().wrapping_mul(u64::from(place)))
    }
}

impl Region {
    /// All regions, in the order of the file.
    pub const ALL: [Self; 3] = [Self::Weights, Self::FirstMoment, Self::SecondMoment];

    /// What the format calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weights => "weights",
            Self::FirstMoment => "m",
            Self::SecondMoment => "v",
        }
    }

    const fn place(self) -> u8 {
        match self {
            Self::Weights => 0,
            Self::FirstMoment => 1,
            Self::SecondMoment => 2,
        }
    }
}

impl<'a> RegionView<'a> {
    /// The bytes, at any alignment.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The numbers in place, without a copy. In a mapped file they are always aligned.
    ///
    /// # Errors
    /// [`ViewError::Misaligned`] if the bytes do not stand at a multiple of four; [`ViewError::Endian`] on a big-endian
    /// machine. [`values`](Self::values) is still there.
    pub fn floats(&self) -> Result<&'a [f32], ViewError> {
        if self.bytes.is_empty() {
            return Ok(&[]);
        }
        if cfg!(target_endian = "big") {
            return Err(ViewError::Endian);
        }
        <[f32]>::ref_from_bytes(self.bytes).map_err(|_| ViewError::Misaligned { expected: align_of::<f32>() })
    }

    /// The numbers one by one, with their bits, at any alignment and on any machine.
    pub fn values(&self) -> impl ExactSizeIterator<Item = f32> + Clone + 'a {
        let (words, _) = self.bytes.as_chunks::<4>();
        words.iter().map(|word| f32::from_le_bytes(*word))
    }
}

/// What is wrong with a snapshot, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotError {
    kind: SnapshotErrorKind,
    at: u64,
}

/// The kinds of error; each carries what was found, and what was expected where that is not one number for all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotErrorKind {
    /// S1.short: the file has only `found` bytes of the eight of its head.
    Short {
        /// The file's length in bytes.
        found: u64,
    },
    /// S2.step: the step is negative.
    Step {
        /// The step.
        found: i32,
    },
    /// S2.count: the number of parameters is negative.
    Count {
        /// The number.
        found: i32,
    },
    /// S3.length: the file is longer or shorter than its head says.
    Length {
        /// 8 + 12 x parameters.
        expected: u64,
        /// The file's length in bytes.
        found: u64,
    },
    /// S2.step, on writing: the step is over [`COUNT_MAX`].
    StepTooLarge {
        /// The step.
        found: u64,
    },
    /// S2.count, on writing: there are more than [`COUNT_MAX`] parameters.
    CountTooLarge {
        /// Their number.
        found: u64,
    },
}

impl SnapshotError {
    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> SnapshotErrorKind {
        self.kind
    }

    /// Where, from the start of the file.
    #[must_use]
    pub fn at(&self) -> Offset {
        Offset::new(self.at)
    }

    /// The id of the broken rule.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self.kind {
            SnapshotErrorKind::Short { .. } => "S1.short",
            SnapshotErrorKind::Step { .. } | SnapshotErrorKind::StepTooLarge { .. } => "S2.step",
            SnapshotErrorKind::Count { .. } | SnapshotErrorKind::CountTooLarge { .. } => "S2.count",
            SnapshotErrorKind::Length { .. } => "S3.length",
        }
    }
}

impl core::error::Error for SnapshotError {}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.rule(), self.at, self.kind)
    }
}

impl fmt::Display for SnapshotErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Short { found } => {
                write!(f, "expected 8 bytes of step and parameter count, found a file of {found}")
            }
            Self::Step { found } => write!(f, "expected a step from 0 on, found {found}"),
            Self::Count { found } => write!(f, "expected a parameter count from 0 on, found {found}"),
            Self::Length { expected, found } => {
                let (less, more) = (expected.saturating_sub(found), found.saturating_sub(expected));
                write!(f, "expected {expected} bytes, found {found}: ")?;
                if less > 0 { write!(f, "{less} short") } else { write!(f, "{more} surplus") }
            }
            Self::StepTooLarge { found } => {
                write!(f, "expected a step of at most {COUNT_MAX}, found {found}")
            }
            Self::CountTooLarge { found } => {
                write!(f, "expected at most {COUNT_MAX} parameters, found {found}")
            }
        }
    }
}

const STEP_AT: u64 = 0;
const COUNT_AT: u64 = 4;
