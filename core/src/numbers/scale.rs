//! E8M0: the powers of two by which blocks of small floats are scaled (OCP Microscaling Formats 1.0, 5.4).

use crate::dtype::Dtype;
use crate::numbers::error::Refusal;
use crate::numbers::format::{Format, INFINITY, MAGNITUDE, OutOfRange, Packing, QUIET_NAN, low_half, sealed};

/// The power of two 2^(code - 127): from 2^-127 to 2^127, no sign, no zero; NaN 0xFF.
///
/// A value in the middle between two powers becomes the greater one, and one below the least becomes the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct F8E8M0;

impl sealed::Sealed for F8E8M0 {}

impl Format for F8E8M0 {
    const DTYPE: Dtype = Dtype::F8E8M0;
    const PACKING: Packing = Packing::Byte;
    const LARGEST: f32 = f32::from_bits(0x7F00_0000);
    const EXPONENT_BITS: u32 = 8;
    const MANTISSA_BITS: u32 = 0;
    const BIAS: u32 = 127;

    #[inline(always)]
    fn decode(code: u16) -> f32 {
        let bits = (u32::from(code) & 0xFF) << 23;
        // 2^-127 is a subnormal; the uppermost code would be infinity.
        f32::from_bits(if bits == INFINITY { QUIET_NAN } else { bits.max(1 << 22) })
    }

    #[inline(always)]
    fn round(value: f32) -> u16 {
        let magnitude = value.to_bits() & MAGNITUDE;
        // Half of an exponent's step; among subnormals the step from 2^-127 to 2^-126 is half as long.
        let half = if magnitude < 1 << 23 { 1 << 21 } else { 1 << 22 };
        low_half(if magnitude > INFINITY { INFINITY } else { magnitude.wrapping_add(half) } >> 23)
    }

    #[inline(always)]
    fn refuses(value: f32, beyond: OutOfRange) -> bool {
        let bits = value.to_bits();
        let largest = match beyond {
            OutOfRange::Refuse => Self::LARGEST.to_bits(),
            OutOfRange::Saturate => INFINITY,
        };
        // Zero and what has a sign wrap to the far side.
        (bits.wrapping_sub(1) >= largest) & (bits & MAGNITUDE <= INFINITY)
    }

    #[inline(always)]
    fn refusal(value: f32) -> Refusal {
        if value <= 0.0 { Refusal::NotPositive } else { Refusal::OutOfRange }
    }
}
