//! Stored ids become the integers that models are fed with, and the check against the vocabulary rides along.
//!
//! The ids of a block are held against the limit right before the block is widened: two loops of one purpose each, the second over
//! what the nearest cache holds by then, are faster than one that does both. Bytes stand at any alignment, little-endian. The loops
//! are inlined where they are called, so that a caller who compiles for a larger machine has them compiled for it.

use crate::span::count;
use crate::tokens::shard::Width;
use core::ops::BitOr;
use core::{fmt, slice};

/// An integer that an id can become.
pub trait Token: Copy + sealed::Sealed {
    /// The largest id that it holds.
    const LARGEST: u32;

    /// The integer of that id, which is at most [`LARGEST`](Self::LARGEST).
    fn of(id: u32) -> Self;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for i64 {}
    impl Sealed for u32 {}
    impl Sealed for i32 {}
}

impl Token for i64 {
    const LARGEST: u32 = u32::MAX;

    #[inline(always)]
    fn of(id: u32) -> Self {
        i64::from(id)
    }
}

impl Token for u32 {
    const LARGEST: u32 = u32::MAX;

    #[inline(always)]
    fn of(id: u32) -> Self {
        id
    }
}

impl Token for i32 {
    const LARGEST: u32 = i32::MAX.cast_unsigned();

    #[inline(always)]
    fn of(id: u32) -> Self {
        id.cast_signed()
    }
}

/// The largest id that is good: of a vocabulary of that size, if it is stated, and as an integer of type `T`.
#[must_use]
pub fn largest_id<T: Token>(vocabulary: Option<u32>) -> u32 {
    vocabulary.map_or(T::LARGEST, |size| size.saturating_sub(1)).min(T::LARGEST)
}

/// Why ids were not widened. What was written to before the error is of no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdError {
    /// The bytes, or the two buffers, are not of so many ids.
    Length {
        /// The number of ids that there are to be.
        ids: u64,
        /// The bytes that there are.
        found: u64,
    },
    /// An id is too large.
    Id {
        /// Which one, from 0.
        index: u64,
        /// The id.
        found: u32,
        /// The largest one allowed.
        largest: u32,
    },
}

impl core::error::Error for IdError {}

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { ids, found } => {
                let [ids_plural, plural] = [ids, found].map(|count| if *count == 1 { "" } else { "s" });
                write!(f, "expected the bytes of {ids} id{ids_plural}, found {found} byte{plural}")
            }
            Self::Id { index, found, largest } => {
                write!(f, "expected ids of at most {largest}, found {found} as id {index}")
            }
        }
    }
}

/// Widens as many ids as `out` has places.
///
/// # Errors
/// [`IdError::Length`] if `bytes` is not as long as they are; [`IdError::Id`] for the first id above `largest`, for which see
/// [`largest_id`].
///
/// ```
/// use safestep_core::tokens::{IdError, Width, largest_id, widen};
/// let mut ids = [0_i64; 2];
/// widen(Width::Two, &[1, 0, 0, 1], &mut ids, largest_id::<i64>(Some(257)))?;
/// assert_eq!(ids, [1, 256]);
/// let error = widen(Width::Two, &[1, 0, 0, 1], &mut ids, largest_id::<i64>(Some(256)));
/// assert_eq!(error, Err(IdError::Id { index: 1, found: 256, largest: 255 }));
/// # Ok::<(), IdError>(())
/// ```
#[inline]
pub fn widen<T: Token>(width: Width, bytes: &[u8], out: &mut [T], largest: u32) -> Result<(), IdError> {
    let ids = count(out.len());
    if Some(count(bytes.len())) != ids.checked_mul(width.bytes()) {
        return Err(IdError::Length { ids, found: count(bytes.len()) });
    }
    let largest = largest.min(T::LARGEST);
    match width {
        Width::Two => blocks(bytes.as_chunks().0, out, largest, u16::from_le_bytes),
        Width::Four => blocks(bytes.as_chunks().0, out, largest, u32::from_le_bytes),
    }
}

/// Widens one id more than each buffer has places: all but the last to `inputs`, all but the first to `targets`.
///
/// These are as many windows as lie side by side in the bytes: the last id of one is the first of the next.
///
/// # Errors
/// As [`widen`] has them; also if the buffers are of different lengths.
#[inline]
pub fn widen_pair<T: Token>(
    width: Width,
    bytes: &[u8],
    inputs: &mut [T],
    targets: &mut [T],
    largest: u32,
) -> Result<(), IdError> {
    let ids = count(inputs.len()).saturating_add(1);
    if Some(count(bytes.len())) != ids.checked_mul(width.bytes()) || inputs.len() != targets.len() {
        return Err(IdError::Length { ids, found: count(bytes.len()) });
    }
    let largest = largest.min(T::LARGEST);
    match width {
        Width::Two => pairs(bytes.as_chunks().0, inputs, targets, largest, u16::from_le_bytes),
        Width::Four => pairs(bytes.as_chunks().0, inputs, targets, largest, u32::from_le_bytes),
    }
}

/// How many ids are checked, and then widened.
const BLOCK: usize = 2048;

#[inline(always)]
fn blocks<const N: usize, R: Stored, T: Token>(
    ids: &[[u8; N]],
    out: &mut [T],
    largest: u32,
    read: impl Fn([u8; N]) -> R + Copy,
) -> Result<(), IdError> {
    let mut done = 0_u64;
    let (outs, last_out) = out.as_chunks_mut::<BLOCK>();
    let (whole, last) = ids.as_chunks::<BLOCK>();
    for (out, ids) in outs.iter_mut().zip(whole) {
        block(ids, out, largest, read).map_err(|error| later(error, done))?;
        done = done.wrapping_add(count(BLOCK));
    }
    block(last, last_out, largest, read).map_err(|error| later(error, done))
}

#[inline(always)]
fn pairs<const N: usize, R: Stored, T: Token>(
    ids: &[[u8; N]],
    inputs: &mut [T],
    targets: &mut [T],
    largest: u32,
    read: impl Fn([u8; N]) -> R + Copy,
) -> Result<(), IdError> {
    // All ids but the first and the last go to both buffers, and are read once for it.
    let Some((first, behind)) = ids.split_first() else { return Ok(()) };
    let mut alone = [T::of(0)];
    block(slice::from_ref(first), &mut alone, largest, read)?;
    let (Some((last, middle)), Some((first_input, inputs)), Some((last_target, targets))) =
        (behind.split_last(), inputs.split_first_mut(), targets.split_last_mut())
    else {
        return Ok(());
    };
    [*first_input] = alone;
    let mut done = 1_u64;
    let (whole_inputs, last_inputs) = inputs.as_chunks_mut::<BLOCK>();
    let (whole_targets, last_targets) = targets.as_chunks_mut::<BLOCK>();
    let (whole, rest) = middle.as_chunks::<BLOCK>();
    for ((inputs, targets), ids) in whole_inputs.iter_mut().zip(whole_targets).zip(whole) {
        shared(ids, inputs, targets, largest, read).map_err(|error| later(error, done))?;
        done = done.wrapping_add(count(BLOCK));
    }
    shared(rest, last_inputs, last_targets, largest, read).map_err(|error| later(error, done))?;
    done = done.wrapping_add(count(rest.len()));
    let (last, last_target) = (slice::from_ref(last), slice::from_mut(last_target));
    block(last, last_target, largest, read).map_err(|error| later(error, done))
}

/// Checks, and widens.
#[inline(always)]
fn block<const N: usize, R: Stored, T: Token>(
    ids: &[[u8; N]],
    out: &mut [T],
    largest: u32,
    read: impl Fn([u8; N]) -> R + Copy,
) -> Result<(), IdError> {
    check(ids, largest, read)?;
    for (to, &id) in out.iter_mut().zip(ids) {
        *to = T::of(read(id).into());
    }
    Ok(())
}

/// Checks, and widens into two places.
#[inline(always)]
fn shared<const N: usize, R: Stored, T: Token>(
    ids: &[[u8; N]],
    inputs: &mut [T],
    targets: &mut [T],
    largest: u32,
    read: impl Fn([u8; N]) -> R + Copy,
) -> Result<(), IdError> {
    check(ids, largest, read)?;
    for ((input, target), &id) in inputs.iter_mut().zip(targets).zip(ids) {
        let id = T::of(read(id).into());
        *input = id;
        *target = id;
    }
    Ok(())
}

/// Holds each id against the limit.
#[inline(always)]
fn check<const N: usize, R: Stored>(
    ids: &[[u8; N]],
    largest: u32,
    read: impl Fn([u8; N]) -> R + Copy,
) -> Result<(), IdError> {
    // What is wider than the ids is no limit to them. Bits that are gathered wait for nothing; a maximum would for the one before it.
    let limit = R::try_from(largest).unwrap_or(R::LARGEST);
    let excess = ids.iter().fold(R::default(), |bits, &id| bits | read(id).above(limit));
    if excess.into() > 0 { Err(first_beyond(ids, largest, |id| read(id).into())) } else { Ok(()) }
}

/// An id as it is stored.
trait Stored: Copy + Default + Into<u32> + TryFrom<u32> + BitOr<Output = Self> {
    const LARGEST: Self;

    /// By how much it is above the limit; 0 if it is not.
    fn above(self, limit: Self) -> Self;
}

impl Stored for u16 {
    const LARGEST: Self = Self::MAX;

    #[inline(always)]
    fn above(self, limit: Self) -> Self {
        self.saturating_sub(limit)
    }
}

impl Stored for u32 {
    const LARGEST: Self = Self::MAX;

    #[inline(always)]
    fn above(self, limit: Self) -> Self {
        self.saturating_sub(limit)
    }
}

#[cold]
fn first_beyond<const N: usize>(ids: &[[u8; N]], largest: u32, read: impl Fn([u8; N]) -> u32) -> IdError {
    let mut index = 0_u64;
    let mut found = 0;
    for &id in ids {
        found = read(id);
        if found > largest {
            break;
        }
        index = index.wrapping_add(1);
    }
    IdError::Id { index, found, largest }
}

/// The same error so many ids later.
#[cold]
fn later(error: IdError, ids: u64) -> IdError {
    match error {
        IdError::Id { index, found, largest } => {
            IdError::Id { index: index.wrapping_add(ids), found, largest }
        }
        other => other,
    }
}
