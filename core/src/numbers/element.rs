//! One element becomes a number, whatever its dtype.

use crate::dtype::Dtype;
use crate::numbers::bfloat::Bf16;
use crate::numbers::format::Format as _;
use crate::numbers::minifloat::{F4, F6E2M3, F6E3M2, F8E4M3, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F16};
use crate::numbers::number::Number;
use crate::numbers::scale::F8E8M0;

/// The bits of one element, as stored: element `index` of `bytes`, or `None` if it is not there.
///
/// ```
/// use safestep_core::{Dtype, numbers::code};
/// assert_eq!(code(Dtype::F4, &[0x52], 1), Some(5));
/// assert_eq!(code(Dtype::U16, &[1, 2, 3], 1), None);
/// ```
#[must_use]
pub fn code(dtype: Dtype, bytes: &[u8], index: u64) -> Option<u64> {
    let bits = dtype.bits();
    let first_bit = u128::from(index).wrapping_mul(u128::from(bits));
    let first = usize::try_from(first_bit >> 3).ok()?;
    let skipped = u32::try_from(first_bit & 7).ok()?;
    let last = first.checked_add(usize::try_from(skipped.wrapping_add(bits).wrapping_add(7) >> 3).ok()?)?;
    let word = bytes.get(first..last)?.iter().rev().fold(0_u64, |word, &byte| word << 8 | u64::from(byte));
    Some(word >> skipped & u64::MAX >> (64_u32.wrapping_sub(bits) & 63))
}

/// One element as a number: element `index` of `bytes`, or `None` if it is not there.
///
/// A byte of BOOL that is neither 0 nor 1 is no truth value: it is the unsigned number that it is.
///
/// ```
/// use safestep_core::{Dtype, numbers::{Number, number}};
/// assert_eq!(number(Dtype::F8E4M3, &[0x38, 0x7E], 1), Some(Number::F32(448.0)));
/// assert_eq!(number(Dtype::F8E4M3, &[0x38, 0x7E], 2), None);
/// ```
#[must_use]
pub fn number(dtype: Dtype, bytes: &[u8], index: u64) -> Option<Number> {
    let code = code(dtype, bytes, index)?;
    let [a, b, c, d, e, f, g, h] = code.to_le_bytes();
    let half = u16::from_le_bytes([a, b]);
    let [low, high] = [[a, b, c, d], [e, f, g, h]];
    Some(match dtype {
        Dtype::Bool if a > 1 => Number::Unsigned(code),
        Dtype::Bool => Number::Bool(a == 1),
        Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64 => Number::Unsigned(code),
        Dtype::I8 => Number::Signed(i8::from_le_bytes([a]).into()),
        Dtype::I16 => Number::Signed(i16::from_le_bytes([a, b]).into()),
        Dtype::I32 => Number::Signed(i32::from_le_bytes(low).into()),
        Dtype::I64 => Number::Signed(i64::from_le_bytes([a, b, c, d, e, f, g, h])),
        Dtype::F32 => Number::F32(f32::from_le_bytes(low)),
        Dtype::F64 => Number::F64(f64::from_bits(code)),
        Dtype::C64 => Number::Complex([f32::from_le_bytes(low), f32::from_le_bytes(high)]),
        _ => with_format!(dtype, F => Number::F32(F::decode(half)), return None),
    })
}
