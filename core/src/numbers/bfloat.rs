//! BF16: the upper half of an f32.

use crate::dtype::Dtype;
use crate::numbers::format::{Format, OutOfRange, Packing, QUIET_NAN, low_half, sealed};

/// The upper half of an f32: its range, and eight significant bits; quiet NaN 0x7FC0.
///
/// A NaN is decoded with its payload, so that no code loses a bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bf16;

impl sealed::Sealed for Bf16 {}

impl Format for Bf16 {
    const DTYPE: Dtype = Dtype::Bf16;
    const PACKING: Packing = Packing::Pair;
    const LARGEST: f32 = f32::from_bits(0x7F7F_0000);
    const EXPONENT_BITS: u32 = 8;
    const MANTISSA_BITS: u32 = 7;
    const BIAS: u32 = 127;

    #[inline(always)]
    fn decode(code: u16) -> f32 {
        f32::from_bits(u32::from(code) << 16)
    }

    #[inline(always)]
    fn round(value: f32) -> u16 {
        if value.is_nan() { low_half(QUIET_NAN >> 16) } else { Self::nearest(value) }
    }

    #[inline(always)]
    fn nearest(value: f32) -> u16 {
        let bits = value.to_bits();
        let odd = bits >> 16 & 1;
        low_half(bits.wrapping_add(0x7FFF).wrapping_add(odd) >> 16)
    }

    #[inline(always)]
    fn is_odd(value: f32, _: OutOfRange) -> bool {
        value.is_nan()
    }

    #[inline(always)]
    fn refuses(_: f32, _: OutOfRange) -> bool {
        false
    }
}
