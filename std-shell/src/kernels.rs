//! Bytes become f32 and f32 become bytes as the core says, in loops for the machine at hand.
//!
//! [`Level::best`] is chosen once, at run time. Every level gives the same bits as the core's own loops: what a kernel does
//! not take (a NaN, a value out of range, the end of a slice) goes block by block through the core's, compiled for
//! the same machine, and every error is the core's own.
//!
//! This file holds the `unsafe` code of the kernels: the calls of functions for a larger machine, and loads and stores of
//! vectors. The kernels themselves are safe code over those. Nothing here panics.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "what a machine has is known at run time only; the proofs are inside")
)]

use std::sync::OnceLock;

use safestep_core::Dtype;
use safestep_core::numbers::{self, NumbersError, OutOfRange, portable};

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

/// Whether the machine has all of these. The lists name what the kernels' `target_feature` names, and what that implies for
/// the compiler (`rustc --print cfg -C target-feature=...`); a test holds the one against the other.
#[cfg(target_arch = "x86_64")]
macro_rules! detected {
    ($($feature:tt)+) => { true $( && is_x86_feature_detected!($feature) )+ };
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
pub enum Level {
    /// What every machine of the target has: SSE2 on x86-64, NEON on aarch64.
    Portable,
    /// x86-64 with AVX2, FMA and F16C.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ, VL and VBMI.
    Avx512,
}

impl Level {
    /// All of them, the plainest first.
    pub const ALL: &'static [Self] = &[Self::Portable, Self::Avx2, Self::Avx512];

    /// Those of this machine, the plainest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|level| level.is_available())
    }

    /// The fastest of this machine.
    #[must_use]
    pub fn best() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| Self::available().last().unwrap_or(Self::Portable))
    }

    /// Whether this machine has it.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => detected!("sse3" "ssse3" "sse4.1" "sse4.2" "avx" "avx2" "fma" "f16c"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_available()
                    && detected!("avx512f" "avx512bw" "avx512dq" "avx512vl" "avx512vbmi")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
        }
    }

    /// [`decode_f32`] at this level; at the portable one if the machine does not have it.
    ///
    /// # Errors
    /// As [`numbers::decode_f32`].
    pub fn decode_f32(self, dtype: Dtype, bytes: &[u8], values: &mut [f32]) -> Result<(), NumbersError> {
        portable::check(dtype, values.len(), bytes)?;
        if self.decode(dtype, bytes, values) {
            return Ok(());
        }
        numbers::decode_f32(dtype, bytes, values)
    }

    /// [`encode_f32`] at this level; at the portable one if the machine does not have it.
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
        portable::check(dtype, values.len(), bytes)?;
        if self.encode(values, dtype, bytes, beyond) {
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

/// Decodes elements to f32, exactly, as [`numbers::decode_f32`] does, at the [best level](Level::best).
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
    Level::best().decode_f32(dtype, bytes, values)
}

/// Encodes f32 values as that dtype, as [`numbers::encode_f32`] does, at the [best level](Level::best).
///
/// # Errors
/// As [`numbers::encode_f32`].
pub fn encode_f32(
    values: &[f32],
    dtype: Dtype,
    bytes: &mut [u8],
    beyond: OutOfRange,
) -> Result<(), NumbersError> {
    Level::best().encode_f32(values, dtype, bytes, beyond)
}

/// Types of which every pattern of bits is a value, and all of whose bytes belong to it.
///
/// # Safety
/// Just that: [`load`] makes a value of any bytes, and [`store`] any bytes of a value. So no padding, no pattern that means
/// nothing, no pointer.
#[cfg(target_arch = "x86_64")]
unsafe trait Plain: Copy {}

#[cfg(target_arch = "x86_64")]
mod plain {
    use core::arch::x86_64::{__m128i, __m256, __m256i, __m512, __m512i};

    use super::Plain;

    // SAFETY: bytes are bytes, and an array has no padding.
    unsafe impl<const N: usize> Plain for [u8; N] {}
    // SAFETY: every pattern of 32 bits is an f32, and an array has no padding.
    unsafe impl<const N: usize> Plain for [f32; N] {}
    // SAFETY: a vector of 128 bits is these bits, whatever they are.
    unsafe impl Plain for __m128i {}
    // SAFETY: as above, of 256 bits.
    unsafe impl Plain for __m256 {}
    // SAFETY: as above.
    unsafe impl Plain for __m256i {}
    // SAFETY: as above, of 512 bits.
    unsafe impl Plain for __m512 {}
    // SAFETY: as above.
    unsafe impl Plain for __m512i {}
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

/// The bytes of numbers.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn bytes_of(values: &[f32]) -> &[u8] {
    // SAFETY: the reference is good for reading that many bytes for as long as it lives; an f32 has no padding, and bytes
    // stand at any address.
    unsafe { core::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// What is written past the caches is in order with nothing else until a fence; here nobody can forget it.
#[cfg(target_arch = "x86_64")]
mod stream {
    use core::arch::x86_64::{__m512i, _mm_sfence, _mm512_stream_si512};

    use super::{Plain, store};

    /// Leave to write past the caches. Only [`fenced`] makes it, and lends it; when it is gone, the fence was set.
    pub(super) struct Streaming(());

    impl Drop for Streaming {
        fn drop(&mut self) {
            // SAFETY: the function needs SSE, without which there is no x86-64.
            unsafe { _mm_sfence() };
        }
    }

    /// Does the work, with leave to stream if `streams`. All that it wrote stands in its place for everybody when this
    /// returns, on every way out of the work.
    #[inline]
    pub(super) fn fenced<T>(streams: bool, work: impl FnOnce(Option<&Streaming>) -> T) -> T {
        let streaming = streams.then(|| Streaming(()));
        work(streaming.as_ref())
    }

    /// Puts a vector into an array; past the caches, if there is leave and the array is a line of memory.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn put<A: Plain>(array: &mut A, vector: __m512i, streaming: Option<&Streaming>) {
        const { assert!(size_of::<A>() == size_of::<__m512i>()) };
        let place = core::ptr::from_mut(array).cast::<__m512i>();
        if streaming.is_some() && place.is_aligned() {
            // SAFETY: the reference is good for writing the bytes of an `A`, of which a vector has as many; the place was
            // found aligned; and any bytes are an `A`, since it is plain. The write is in order with later ones only
            // after a fence: this thread sees it all the same, and other threads learn of the slice only from one who
            // has it back from `fenced`, which sets the fence before it returns. The leave cannot outlive that, nor be
            // forgotten, for it is only lent.
            unsafe { _mm512_stream_si512(place, vector) };
        } else {
            store(array, vector);
        }
    }
}
