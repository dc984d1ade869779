//! A floating format of at most 16 bits: a code becomes an f32, an f32 becomes a code.

use crate::dtype::Dtype;
use crate::numbers::error::Refusal;

/// What becomes of a value beyond the largest of a format. Overflow to infinity is no refusal: the default is named for the
/// formats without it, where a caller has to expect an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutOfRange {
    /// As the format says: one with infinity overflows to it (IEEE 754), one without refuses the value, infinity too.
    #[default]
    Refuse,
    /// The largest value of the same sign takes its place, infinity's too, in every format. (F32 values for F32, and F64 for
    /// F64, are not converted and stay as they are.)
    Saturate,
}

/// How elements stand in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Two in a byte, the low nibble first.
    TwoInOne,
    /// Four in three bytes, low bits first.
    FourInThree,
    /// A byte each.
    Byte,
    /// Two bytes each, the low one first.
    Pair,
}

/// A floating format of at most 16 bits.
///
/// Codes stand in the low bits of a `u16`; higher bits are ignored. The formats are types without values, so that code
/// generic over them is compiled for each. The trait is sealed.
///
/// ```
/// use safestep_core::numbers::{Bf16, F8E4M3, Format, OutOfRange, Refusal};
/// assert_eq!(Bf16::encode(1.0 + 1.0 / 256.0, OutOfRange::Refuse), Ok(0x3F80)); // a tie goes to the even code
/// assert_eq!(F8E4M3::decode(0x78), 256.0);
/// assert_eq!(F8E4M3::encode(449.0, OutOfRange::Refuse), Err(Refusal::OutOfRange));
/// assert_eq!(F8E4M3::encode(449.0, OutOfRange::Saturate), Ok(0x7E));
/// ```
pub trait Format: sealed::Sealed + Copy + 'static {
    /// The dtype of that format.
    const DTYPE: Dtype;

    /// How elements stand in bytes.
    const PACKING: Packing;

    /// The largest finite value.
    const LARGEST: f32;

    /// The bits of the exponent.
    #[doc(hidden)]
    const EXPONENT_BITS: u32;

    /// The bits of the mantissa, without the leading one.
    #[doc(hidden)]
    const MANTISSA_BITS: u32;

    /// What is taken off the exponent.
    #[doc(hidden)]
    const BIAS: u32;

    /// The value of a code, exactly. NaN becomes a quiet NaN of f32; that of BF16 stays the one it is.
    fn decode(code: u16) -> f32;

    /// The same for a code that is [no special one](Self::is_special); of others it is some value.
    #[doc(hidden)]
    #[inline(always)]
    fn finite(code: u16) -> f32 {
        Self::decode(code)
    }

    /// Whether only [`decode`](Self::decode) has the value: infinity and NaN, where they are no plain arithmetic.
    #[doc(hidden)]
    #[inline(always)]
    fn is_special(_: u16) -> bool {
        false
    }

    /// The nearest code, ties to even, of a value that is not [refused](Self::refuses). NaN becomes the quiet NaN.
    ///
    /// Of other values it is some code.
    #[doc(hidden)]
    fn round(value: f32) -> u16;

    /// The same for a value that is [not odd](Self::is_odd).
    #[doc(hidden)]
    #[inline(always)]
    fn nearest(value: f32) -> u16 {
        Self::round(value)
    }

    /// Whether the value is one that [`nearest`](Self::nearest) does not take: a NaN, or one that is refused.
    #[doc(hidden)]
    #[inline(always)]
    fn is_odd(value: f32, beyond: OutOfRange) -> bool {
        Self::refuses(value, beyond)
    }

    /// Whether the format has no code for the value.
    #[doc(hidden)]
    fn refuses(value: f32, beyond: OutOfRange) -> bool;

    /// The value, or, when it is beyond the largest, that with the same sign. NaN stays.
    #[doc(hidden)]
    #[inline(always)]
    fn clamp(value: f32) -> f32 {
        let (bits, largest) = (value.to_bits(), Self::LARGEST.to_bits());
        let magnitude = bits & MAGNITUDE;
        let clamped = if magnitude > largest && magnitude <= INFINITY { largest } else { magnitude };
        f32::from_bits(bits & SIGN | clamped)
    }

    /// Why the value is refused, if it is.
    #[doc(hidden)]
    #[inline(always)]
    fn refusal(value: f32) -> Refusal {
        if value.is_nan() { Refusal::NotANumber } else { Refusal::OutOfRange }
    }

    /// The nearest code, ties to even.
    ///
    /// # Errors
    /// [`Refusal`] if the format has no code for the value.
    #[inline(always)]
    fn encode(value: f32, beyond: OutOfRange) -> Result<u16, Refusal> {
        if Self::refuses(value, beyond) {
            return Err(Self::refusal(value));
        }
        Ok(match beyond {
            OutOfRange::Refuse => Self::round(value),
            OutOfRange::Saturate => Self::round(Self::clamp(value)),
        })
    }
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// The bits of an f32 but its sign.
pub(crate) const MAGNITUDE: u32 = 0x7FFF_FFFF;
pub(crate) const SIGN: u32 = 0x8000_0000;
pub(crate) const INFINITY: u32 = 0x7F80_0000;
pub(crate) const QUIET_NAN: u32 = 0x7FC0_0000;

/// The low byte.
#[inline(always)]
pub(crate) fn low_byte(code: u16) -> u8 {
    let [low, _] = code.to_le_bytes();
    low
}

/// The lower half of 32 bits.
#[inline(always)]
pub(crate) fn low_half(wide: u32) -> u16 {
    let [low, high, ..] = wide.to_le_bytes();
    u16::from_le_bytes([low, high])
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::numbers::*;
    use std::vec::Vec;

    /// What a code says, by the definition: sign, exponent, mantissa, in f64.
    fn by_definition(exponent_bits: u32, mantissa_bits: u32, bias: i32, code: u16) -> f64 {
        let mantissa = f64::from(code & ((1 << mantissa_bits) - 1)) / f64::from(1 << mantissa_bits);
        let exponent = i32::from(code >> mantissa_bits) & ((1 << exponent_bits) - 1);
        let sign = if code >> (exponent_bits + mantissa_bits) & 1 == 1 { -1.0 } else { 1.0 };
        let lead = if exponent == 0 { 0.0 } else { 1.0 };
        sign * (lead + mantissa) * 2_f64.powi(exponent.max(1) - bias)
    }

    /// Each finite code is what the definition says, and comes back; each NaN becomes the quiet one.
    fn holds<F: Format>(
        exponent_bits: u32,
        mantissa_bits: u32,
        bias: i32,
        special: impl Fn(u16) -> bool,
        nan: u16,
    ) {
        let codes = 1_u32 << F::DTYPE.bits();
        let mut by_value = Vec::new();
        for code in (0..codes).map(low_half) {
            let value = F::decode(code);
            if !special(code) {
                let expected = by_definition(exponent_bits, mantissa_bits, bias, code) as f32;
                assert_eq!(value.to_bits(), expected.to_bits(), "{:?} {code:#x}", F::DTYPE);
                by_value.push((value, code));
            }
            let expected = if value.is_nan() { nan } else { code };
            assert_eq!(F::encode(value, OutOfRange::Refuse), Ok(expected), "{:?} {code:#x}", F::DTYPE);
        }
        by_value.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert_eq!(by_value.last().map(|last| last.0), Some(F::LARGEST));
        for pair in by_value.windows(2) {
            let [(low, low_code), (high, high_code)] = pair else { continue };
            let middle = ((f64::from(*low) + f64::from(*high)) / 2.0) as f32;
            let even = if low_code & 1 == 0 { low_code } else { high_code };
            let expected = [(middle.next_down(), low_code), (middle, even), (middle.next_up(), high_code)];
            for (value, code) in expected.into_iter().filter(|(value, _)| value != low && value != high) {
                assert_eq!(F::encode(value, OutOfRange::Refuse), Ok(*code), "{:?} {value:e}", F::DTYPE);
            }
        }
    }

    #[test]
    fn codes_are_what_the_formats_define() {
        // Miri would take minutes for these.
        if !cfg!(miri) {
            holds::<F16>(5, 10, 15, |code| code & 0x7C00 == 0x7C00, 0x7E00);
            holds::<Bf16>(8, 7, 127, |code| code & 0x7F80 == 0x7F80, 0x7FC0);
        }
        holds::<F8E5M2>(5, 2, 15, |code| code & 0x7C == 0x7C, 0x7E);
        holds::<F8E4M3>(4, 3, 7, |code| code & 0x7F == 0x7F, 0x7F);
        holds::<F6E2M3>(2, 3, 1, |_| false, 0);
        holds::<F6E3M2>(3, 2, 3, |_| false, 0);
        holds::<F4>(2, 1, 1, |_| false, 0);
        holds::<F8E4M3Fnuz>(4, 3, 8, |code| code == 0x80, 0x80);
        holds::<F8E5M2Fnuz>(5, 2, 16, |code| code == 0x80, 0x80);
    }
}
