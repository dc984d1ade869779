//! Integers become floats, and floats integers, where nothing is lost.

use crate::numbers::error::Refusal;
use crate::numbers::format::OutOfRange;
use crate::numbers::number::Number;

/// An integer that stands in a file.
pub(crate) trait Integer: Copy {
    /// The integer that a float is.
    ///
    /// # Errors
    /// [`Refusal`] if it is none of the type's.
    fn from_float(value: f64, beyond: OutOfRange) -> Result<Self, Refusal>;
}

macro_rules! integers {
    ($($type:ident $past:literal;)+) => { $(
        impl Integer for $type {
            #[inline(always)]
            fn from_float(value: f64, beyond: OutOfRange) -> Result<Self, Refusal> {
                const LEAST: f64 = $type::MIN as f64;
                // The first power of two above the range: the largest integer may be no f64.
                const PAST: f64 = $past;
                if value.is_nan() {
                    return Err(Refusal::NotANumber);
                }
                // `as` ends at the nearest integer in range, which is what saturation means.
                let integer = value as $type;
                if !(LEAST..PAST).contains(&value) {
                    return if beyond == OutOfRange::Saturate { Ok(integer) } else { Err(Refusal::OutOfRange) };
                }
                if integer as f64 == value { Ok(integer) } else { Err(Refusal::Inexact) }
            }
        }
    )+ };
}

integers! {
    i8 128.0;
    u8 256.0;
    i16 32_768.0;
    u16 65_536.0;
    i32 2_147_483_648.0;
    u32 4_294_967_296.0;
}

/// The f64 of that value, if there is one.
#[inline(always)]
pub(crate) fn exact_f64(number: Number) -> Option<f64> {
    match number {
        // Back again as a wider integer: the largest u64 becomes 2^64, which none of 64 bits is.
        Number::Signed(integer) => Some(integer as f64).filter(|&value| value as i128 == i128::from(integer)),
        Number::Unsigned(integer) => {
            Some(integer as f64).filter(|&value| value as u128 == u128::from(integer))
        }
        Number::F64(value) => Some(value),
        Number::F32(value) => Some(f64::from(value)),
        Number::Bool(_) | Number::Complex(_) => None,
    }
}

/// The f32 of that value, if there is one.
#[inline(always)]
pub(crate) fn exact_f32(number: Number) -> Option<f32> {
    let wide = exact_f64(number)?;
    let value = wide as f32;
    (f64::from(value) == wide).then_some(value)
}
