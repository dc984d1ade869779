//! Bytes become f32 and f32 become bytes as the core says, in loops for the machine at hand.
//!
//! [`Path::best`] is chosen once, at run time. Every path gives the same bits as the core's own loops: what a kernel does
//! not take (a NaN, a value out of range, the end of a slice) goes block by block through the core's, compiled for
//! the same machine, and every error is the core's own.
//!
//! This file holds the `unsafe` code of the kernels: the calls of functions for a larger machine, and loads and stores of
//! vectors. The kernels themselves are safe code over those. Nothing here panics.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "what a machine has is known at run time only; the proofs are inside")
)]

#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::{__m512i, _mm512_stream_si512};
use std::sync::OnceLock;

use safestep_core::Dtype;
use safestep_core::numbers::{self, NumbersError, OutOfRange};

/// Whether a kernel did it, for the format of that dtype; none does if the dtype is no float of at most 16 bits.
#[cfg(target_arch = "x86_64")]
macro_rules! with_format {
    ($dtype:expr, $format:ident => $then:expr) => {
        with_format!(@ $dtype, $format, $then,
            F4 F6E2M3 F6E3M2 F8E5M2 F8E4M3 F8E8M0 F8E4M3Fnuz F8E5M2Fnuz F16 Bf16)
    };
    (@ $dtype:expr, $format:ident, $then:expr, $($name:ident)+) => {
        match $dtype {
            $( Dtype::$name => { type $format = numbers::$name; $then } )+
            _ => false,
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod fields;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

/// A set of instructions that the loops are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Path {
    /// What every machine of the target has: SSE2 on x86-64, NEON on aarch64.
    Portable,
    /// x86-64 with AVX2 and F16C.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ, VL and VBMI.
    Avx512,
}

impl Path {
    /// All of them, the plainest first.
    pub const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];

    /// Those of this machine, the plainest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|path| path.is_available())
    }

    /// The fastest of this machine.
    #[must_use]
    pub fn best() -> Self {
        static BEST: OnceLock<Path> = OnceLock::new();
        *BEST.get_or_init(|| Self::available().last().unwrap_or(Self::Portable))
    }

    /// Whether this machine has it.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vbmi")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
        }
    }

    /// [`decode_f32`] on this path; on the portable one if the machine does not have it.
    ///
    /// # Errors
    /// As [`numbers::decode_f32`].
    pub fn decode_f32(self, dtype: Dtype, bytes: &[u8], values: &mut [f32]) -> Result<(), NumbersError> {
        if fits(dtype, values.len(), bytes.len()) && self.decode(dtype, bytes, values) {
            return Ok(());
        }
        numbers::decode_f32(dtype, bytes, values)
    }

    /// [`encode_f32`] on this path; on the portable one if the machine does not have it.
    ///
    /// # Errors
    /// As [`numbers::encode_f32`].
    pub fn encode_f32(
        self,
        values: &[f32],
        dtype: Dtype,
        bytes: &mut [u8],
        beyond: OutOfRange,
    ) -> Result<(), NumbersError> {
        if fits(dtype, values.len(), bytes.len()) && self.encode(values, dtype, bytes, beyond) {
            return Ok(());
        }
        numbers::encode_f32(values, dtype, bytes, beyond)
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn decode(self, _: Dtype, _: &[u8], _: &mut [f32]) -> bool {
        false
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn encode(self, _: &[f32], _: Dtype, _: &mut [u8], _: OutOfRange) -> bool {
        false
    }

    /// Whether it was done; if not, the core does it.
    #[cfg(target_arch = "x86_64")]
    fn decode(self, dtype: Dtype, bytes: &[u8], values: &mut [f32]) -> bool {
        match self {
            Self::Avx512 if self.is_available() => {
                with_format!(dtype, F => {
                    // SAFETY: the function needs a machine with what `is_available` has just asked for.
                    unsafe { avx512::decode::<F>(bytes, values) };
                    true
                })
            }
            Self::Avx2 if self.is_available() => {
                with_format!(dtype, F => {
                    // SAFETY: as above.
                    unsafe { avx2::decode::<F>(bytes, values) };
                    true
                })
            }
            _ => false,
        }
    }

    /// Whether it was done; if not, the core does it, or says why not.
    #[cfg(target_arch = "x86_64")]
    fn encode(self, values: &[f32], dtype: Dtype, bytes: &mut [u8], beyond: OutOfRange) -> bool {
        match self {
            Self::Avx512 if self.is_available() => {
                with_format!(dtype, F => {
                    // SAFETY: the function needs a machine with what `is_available` has just asked for.
                    unsafe { avx512::encode::<F>(values, bytes, beyond) }
                })
            }
            Self::Avx2 if self.is_available() => {
                with_format!(dtype, F => {
                    // SAFETY: as above.
                    unsafe { avx2::encode::<F>(values, bytes, beyond) }
                })
            }
            _ => false,
        }
    }
}

/// Decodes elements to f32, exactly, as [`numbers::decode_f32`] does, on the [best path](Path::best).
///
/// # Errors
/// As [`numbers::decode_f32`].
///
/// ```
/// use safestep::kernels::decode_f32;
/// use safestep::safestep_core::Dtype;
///
/// let mut values = [0.0; 2];
/// decode_f32(Dtype::Bf16, &[0x80, 0x3F, 0x00, 0xC0], &mut values)?;
/// assert_eq!(values, [1.0, -2.0]);
/// # Ok::<(), safestep::safestep_core::numbers::NumbersError>(())
/// ```
pub fn decode_f32(dtype: Dtype, bytes: &[u8], values: &mut [f32]) -> Result<(), NumbersError> {
    Path::best().decode_f32(dtype, bytes, values)
}

/// Encodes f32 values as that dtype, as [`numbers::encode_f32`] does, on the [best path](Path::best).
///
/// # Errors
/// As [`numbers::encode_f32`].
pub fn encode_f32(
    values: &[f32],
    dtype: Dtype,
    bytes: &mut [u8],
    beyond: OutOfRange,
) -> Result<(), NumbersError> {
    Path::best().encode_f32(values, dtype, bytes, beyond)
}

/// Whether so many elements take so many bytes.
fn fits(dtype: Dtype, elements: usize, bytes: usize) -> bool {
    let bits = u64::try_from(elements).ok().and_then(|elements| dtype.total_bits(elements));
    bits.is_some_and(|bits| bits.is_multiple_of(8) && usize::try_from(bits / 8) == Ok(bytes))
}

/// Types of which every pattern of bits is a value, and all of whose bytes belong to it.
#[cfg(target_arch = "x86_64")]
trait Plain: Copy {}

#[cfg(target_arch = "x86_64")]
mod plain {
    use core::arch::x86_64::{__m128i, __m256, __m256i, __m512, __m512i};

    impl<const N: usize> super::Plain for [u8; N] {}
    impl<const N: usize> super::Plain for [f32; N] {}
    impl super::Plain for __m128i {}
    impl super::Plain for __m256 {}
    impl super::Plain for __m256i {}
    impl super::Plain for __m512 {}
    impl super::Plain for __m512i {}
}

/// The vector that stands in an array, at any alignment.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn load<A: Plain, V: Plain>(array: &A) -> V {
    const { assert!(size_of::<A>() == size_of::<V>()) };
    // SAFETY: the reference is good for reading the bytes of an `A`, of which a `V` has as many; unaligned is what the
    // read is made for; and any bytes are a `V`, since it is plain.
    unsafe { core::ptr::from_ref(array).cast::<V>().read_unaligned() }
}

/// Puts a vector into an array, at any alignment.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn store<A: Plain, V: Plain>(array: &mut A, vector: V) {
    const { assert!(size_of::<A>() == size_of::<V>()) };
    // SAFETY: the reference is good for writing the bytes of an `A`, of which a `V` has as many, all of them initialized;
    // unaligned is what the write is made for; and any bytes are an `A`, since it is plain.
    unsafe { core::ptr::from_mut(array).cast::<V>().write_unaligned(vector) }
}

/// Puts a vector into an array; past the caches, if it streams and the array is a line of memory. Whoever streams ends with
/// `_mm_sfence`.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn put<A: Plain>(array: &mut A, vector: __m512i, streams: bool) {
    const { assert!(size_of::<A>() == size_of::<__m512i>()) };
    let place = core::ptr::from_mut(array).cast::<__m512i>();
    if streams && place.is_aligned() {
        // SAFETY: the reference is good for writing the bytes of an `A`, of which a vector has as many; the place was found
        // aligned; and any bytes are an `A`, since it is plain. Until the fence nothing else may touch those bytes: the
        // kernels that stream write each line once, hold the slice borrowed, and end with the fence on every way out.
        unsafe { _mm512_stream_si512(place, vector) };
    } else {
        store(array, vector);
    }
}
