//! Slices of bytes become slices of numbers, and back, for every dtype.

use crate::dtype::Dtype;
use crate::numbers::bfloat::Bf16;
use crate::numbers::element::number;
use crate::numbers::error::{NumbersError, Refusal, ValueError};
use crate::numbers::float;
use crate::numbers::format::{Format as _, OutOfRange, QUIET_NAN};
use crate::numbers::int::{Integer, exact_f32, exact_f64};
use crate::numbers::minifloat::{F4, F6E2M3, F6E3M2, F8E4M3, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F16};
use crate::numbers::number::Number;
use crate::numbers::scale::F8E8M0;
use crate::span::count;

/// How many elements go through a buffer at once: whole groups of every packing.
const BUFFERED: usize = 64;

/// Decodes elements to f32, exactly.
///
/// Floats of at most 32 bits and integers of at most 32 bits; `bytes` are those of `values.len()` elements.
///
/// # Errors
/// [`NumbersError::Length`] if they are not; [`NumbersError::Type`] for another dtype; [`NumbersError::Value`] for an
/// integer that is no f32.
///
/// ```
/// use safestep_core::{Dtype, numbers::decode_f32};
/// let mut values = [0.0; 2];
/// decode_f32(Dtype::Bf16, &[0x80, 0x3F, 0x00, 0xC0], &mut values)?;
/// assert_eq!(values, [1.0, -2.0]);
/// # Ok::<(), safestep_core::numbers::NumbersError>(())
/// ```
pub fn decode_f32(dtype: Dtype, bytes: &[u8], values: &mut [f32]) -> Result<(), NumbersError> {
    check(dtype, values.len(), bytes)?;
    match dtype {
        Dtype::F32 => each(bytes, values, f32::from_le_bytes),
        Dtype::I8 => each(bytes, values, |byte| i8::from_le_bytes(byte).into()),
        Dtype::U8 => each(bytes, values, |byte| u8::from_le_bytes(byte).into()),
        Dtype::I16 => each(bytes, values, |pair| i16::from_le_bytes(pair).into()),
        Dtype::U16 => each(bytes, values, |pair| u16::from_le_bytes(pair).into()),
        Dtype::I32 | Dtype::U32 => return each_exact(dtype, bytes, values, exact_f32),
        _ => with_format!(dtype, F => float::decode::<F>(bytes, values), return Err(other(dtype, "f32"))),
    }
    Ok(())
}

/// Decodes elements to f64, exactly: floats and integers of any size.
///
/// A NaN of F64 stays the one it is; that of another dtype becomes the quiet NaN of f64, on every machine.
///
/// # Errors
/// As [`decode_f32`] gives them.
pub fn decode_f64(dtype: Dtype, bytes: &[u8], values: &mut [f64]) -> Result<(), NumbersError> {
    check(dtype, values.len(), bytes)?;
    match dtype {
        Dtype::F64 => each(bytes, values, f64::from_le_bytes),
        Dtype::I32 | Dtype::U32 | Dtype::I64 | Dtype::U64 => {
            return each_exact(dtype, bytes, values, exact_f64);
        }
        Dtype::Bool | Dtype::C64 => return Err(other(dtype, "f64")),
        _ => {
            let mut buffer = [0.0; BUFFERED];
            for (values, bytes) in values.chunks_mut(BUFFERED).zip(bytes.chunks(block_bytes(dtype))) {
                let buffer = buffer.get_mut(..values.len()).unwrap_or_default();
                decode_f32(dtype, bytes, buffer)?;
                for (wide, &value) in values.iter_mut().zip(&*buffer) {
                    *wide = to_f64(value);
                }
            }
        }
    }
    Ok(())
}

/// Decodes integers to i64, exactly.
///
/// # Errors
/// [`NumbersError::Length`]; [`NumbersError::Type`] for a dtype that is none of integers; [`NumbersError::Value`] for a
/// U64 beyond the range.
pub fn decode_i64(dtype: Dtype, bytes: &[u8], values: &mut [i64]) -> Result<(), NumbersError> {
    check(dtype, values.len(), bytes)?;
    integers_only(dtype, "i64")?;
    each_exact(dtype, bytes, values, |number| match number {
        Number::Signed(integer) => Some(integer),
        Number::Unsigned(integer) => integer.try_into().ok(),
        _ => None,
    })
}

/// Decodes integers to u64, exactly.
///
/// # Errors
/// [`NumbersError::Length`]; [`NumbersError::Type`] for a dtype that is none of integers; [`NumbersError::Value`] for a
/// negative one.
pub fn decode_u64(dtype: Dtype, bytes: &[u8], values: &mut [u64]) -> Result<(), NumbersError> {
    check(dtype, values.len(), bytes)?;
    integers_only(dtype, "u64")?;
    each_exact(dtype, bytes, values, |number| match number {
        Number::Signed(integer) => integer.try_into().ok(),
        Number::Unsigned(integer) => Some(integer),
        _ => None,
    })
}

/// Decodes truth values.
///
/// # Errors
/// [`NumbersError::Length`]; [`NumbersError::Type`] for a dtype other than BOOL; [`NumbersError::Value`] for a byte that is
/// neither 0 nor 1.
pub fn decode_bool(dtype: Dtype, bytes: &[u8], values: &mut [bool]) -> Result<(), NumbersError> {
    check(dtype, values.len(), bytes)?;
    if dtype != Dtype::Bool {
        return Err(other(dtype, "bool"));
    }
    for ((value, &byte), index) in values.iter_mut().zip(bytes).zip(0..) {
        if byte > 1 {
            let value = Number::Unsigned(byte.into());
            return Err(refused(dtype, index, value, Refusal::NotABool));
        }
        *value = byte == 1;
    }
    Ok(())
}

/// Decodes complex numbers: real part, imaginary part.
///
/// # Errors
/// [`NumbersError::Length`]; [`NumbersError::Type`] for a dtype other than C64.
pub fn decode_complex(dtype: Dtype, bytes: &[u8], values: &mut [[f32; 2]]) -> Result<(), NumbersError> {
    check(dtype, values.len(), bytes)?;
    if dtype != Dtype::C64 {
        return Err(other(dtype, "complex"));
    }
    each(bytes, values, |[a, b, c, d, e, f, g, h]: [u8; 8]| {
        [f32::from_le_bytes([a, b, c, d]), f32::from_le_bytes([e, f, g, h])]
    });
    Ok(())
}

/// Encodes f32 values as that dtype: a float of at most 64 bits, or an integer of at most 32.
///
/// Floats are rounded to nearest, ties to even; an integer is never made by rounding. NaN becomes the quiet NaN of the
/// dtype; F32 is what the values are already, and keeps its NaNs. `bytes` are those of `values.len()`
/// elements.
///
/// # Errors
/// [`NumbersError::Length`] if they are not; [`NumbersError::Type`] for another dtype; [`NumbersError::Value`] for the first
/// value that the dtype does not hold. The bytes are of no meaning then.
///
/// ```
/// use safestep_core::{Dtype, numbers::{OutOfRange, encode_f32}};
/// let mut bytes = [0; 3];
/// encode_f32(&[1.0625, 250.0, f32::NAN], Dtype::F8E4M3, &mut bytes, OutOfRange::Refuse)?;
/// assert_eq!(bytes, [0x38, 0x78, 0x7F]);
/// let error = encode_f32(&[0.0, 449.0, 1.0], Dtype::F8E4M3, &mut bytes, OutOfRange::Refuse).unwrap_err();
/// assert_eq!(error.to_string(), "expected a value of F8_E4M3, found 449.0 in element 1: it is out of range");
/// # Ok::<(), safestep_core::numbers::NumbersError>(())
/// ```
pub fn encode_f32(
    values: &[f32],
    dtype: Dtype,
    bytes: &mut [u8],
    beyond: OutOfRange,
) -> Result<(), NumbersError> {
    check(dtype, values.len(), bytes)?;
    let wide = |&value: &f32| f64::from(value);
    let number = |&value: &f32| Number::F32(value);
    match dtype {
        Dtype::F32 => put(values, bytes, |&value| value.to_le_bytes()),
        Dtype::F64 => put(values, bytes, |&value| to_f64(value).to_le_bytes()),
        Dtype::I8 => put_exact(dtype, values, bytes, wide, number, beyond, i8::to_le_bytes)?,
        Dtype::U8 => put_exact(dtype, values, bytes, wide, number, beyond, u8::to_le_bytes)?,
        Dtype::I16 => put_exact(dtype, values, bytes, wide, number, beyond, i16::to_le_bytes)?,
        Dtype::U16 => put_exact(dtype, values, bytes, wide, number, beyond, u16::to_le_bytes)?,
        Dtype::I32 => put_exact(dtype, values, bytes, wide, number, beyond, i32::to_le_bytes)?,
        Dtype::U32 => put_exact(dtype, values, bytes, wide, number, beyond, u32::to_le_bytes)?,
        _ => {
            let place = with_format!(dtype, F => float::encode::<F>(values, bytes, beyond), return Err(other(dtype, "f32")));
            refuse(dtype, values, place, number)?;
        }
    }
    Ok(())
}

/// Encodes f64 values as that dtype, rounding once, to nearest, ties to even: a float, or an integer of at most 32 bits.
///
/// NaN becomes the quiet NaN of the dtype; F64 keeps its NaNs.
///
/// # Errors
/// As [`encode_f32`] gives them.
pub fn encode_f64(
    values: &[f64],
    dtype: Dtype,
    bytes: &mut [u8],
    beyond: OutOfRange,
) -> Result<(), NumbersError> {
    check(dtype, values.len(), bytes)?;
    let wide = |&value: &f64| value;
    let number = |&value: &f64| Number::F64(value);
    match dtype {
        Dtype::F64 => put(values, bytes, |&value| value.to_le_bytes()),
        Dtype::F32 => put(values, bytes, |&value| to_f32(value, beyond).to_le_bytes()),
        Dtype::I8 => put_exact(dtype, values, bytes, wide, number, beyond, i8::to_le_bytes)?,
        Dtype::U8 => put_exact(dtype, values, bytes, wide, number, beyond, u8::to_le_bytes)?,
        Dtype::I16 => put_exact(dtype, values, bytes, wide, number, beyond, i16::to_le_bytes)?,
        Dtype::U16 => put_exact(dtype, values, bytes, wide, number, beyond, u16::to_le_bytes)?,
        Dtype::I32 => put_exact(dtype, values, bytes, wide, number, beyond, i32::to_le_bytes)?,
        Dtype::U32 => put_exact(dtype, values, bytes, wide, number, beyond, u32::to_le_bytes)?,
        Dtype::Bool | Dtype::C64 | Dtype::I64 | Dtype::U64 => return Err(other(dtype, "f64")),
        _ => {
            let mut buffer = [0.0; BUFFERED];
            let mut done = 0_usize;
            for (values, bytes) in values.chunks(BUFFERED).zip(bytes.chunks_mut(block_bytes(dtype))) {
                let buffer = buffer.get_mut(..values.len()).unwrap_or_default();
                for (narrow, &value) in buffer.iter_mut().zip(values) {
                    *narrow = round_to_odd(value);
                }
                let place = with_format!(dtype, F => float::encode::<F>(buffer, bytes, beyond), None);
                refuse(dtype, values, place, number).map_err(|error| later(error, done))?;
                done = done.wrapping_add(values.len());
            }
        }
    }
    Ok(())
}

/// The f64 of that value. (Which NaN comes of one, Rust leaves to the machine.)
fn to_f64(value: f32) -> f64 {
    if value.is_nan() { f64::from_bits(QUIET_NAN_F64) } else { f64::from(value) }
}

/// The quiet NaN of an f64.
const QUIET_NAN_F64: u64 = 0x7FF8_0000_0000_0000;

/// The nearest f32; out of range the largest if that was asked for, else infinity. Of NaN the quiet one.
fn to_f32(value: f64, beyond: OutOfRange) -> f32 {
    if value.is_nan() {
        return f32::from_bits(QUIET_NAN);
    }
    let narrow = value as f32;
    let clamped = narrow.clamp(-f32::MAX, f32::MAX);
    if beyond == OutOfRange::Saturate { clamped } else { narrow }
}

/// The f32 next to the value on the side of zero, with its last bit set if something was cut off.
///
/// Rounding that to a format with two bits less or more is rounding the value itself (Boldo and Melquiond, "When double
/// rounding is odd", 2005).
fn round_to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let back = f64::from(nearest);
    if back == value || value.is_nan() {
        return nearest;
    }
    let bits = nearest.to_bits();
    f32::from_bits(if back.abs() > value.abs() { bits.wrapping_sub(1) | 1 } else { bits | 1 })
}

/// Whether there are as many bytes as so many elements take: what every function over slices asks first.
///
/// # Errors
/// [`NumbersError::Length`] if there are not.
pub fn check(dtype: Dtype, elements: usize, bytes: &[u8]) -> Result<(), NumbersError> {
    let (elements, found) = (count(elements), count(bytes.len()));
    let expected = dtype.total_bits(elements).filter(|bits| bits & 7 == 0).map(|bits| bits >> 3);
    if expected == Some(found) {
        Ok(())
    } else {
        Err(NumbersError::Length { dtype, elements, expected, found })
    }
}

/// How many bytes a buffer's elements take.
fn block_bytes(dtype: Dtype) -> usize {
    let bits = usize::try_from(dtype.bits()).unwrap_or_default();
    (BUFFERED >> 3).wrapping_mul(bits).max(1)
}

#[inline(always)]
fn each<const N: usize, T>(bytes: &[u8], values: &mut [T], from: impl Fn([u8; N]) -> T) {
    let (elements, _) = bytes.as_chunks::<N>();
    for (value, &element) in values.iter_mut().zip(elements) {
        *value = from(element);
    }
}

fn each_exact<T>(
    dtype: Dtype,
    bytes: &[u8],
    values: &mut [T],
    exact: impl Fn(Number) -> Option<T>,
) -> Result<(), NumbersError> {
    for (value, index) in values.iter_mut().zip(0..) {
        let Some(found) = number(dtype, bytes, index) else { break };
        *value = exact(found).ok_or(refused(dtype, index, found, Refusal::Inexact))?;
    }
    Ok(())
}

#[inline(always)]
fn put<const N: usize, T>(values: &[T], bytes: &mut [u8], to: impl Fn(&T) -> [u8; N]) {
    let (elements, _) = bytes.as_chunks_mut::<N>();
    for (element, value) in elements.iter_mut().zip(values) {
        *element = to(value);
    }
}

fn put_exact<const N: usize, T, I: Integer>(
    dtype: Dtype,
    values: &[T],
    bytes: &mut [u8],
    wide: impl Fn(&T) -> f64,
    number: impl Fn(&T) -> Number,
    beyond: OutOfRange,
    to: impl Fn(I) -> [u8; N],
) -> Result<(), NumbersError> {
    let (elements, _) = bytes.as_chunks_mut::<N>();
    for ((element, value), index) in elements.iter_mut().zip(values).zip(0..) {
        let integer = I::from_float(wide(value), beyond);
        *element = to(integer.map_err(|refusal| refused(dtype, index, number(value), refusal))?);
    }
    Ok(())
}

/// The error for the value at that place.
fn refuse<T>(
    dtype: Dtype,
    values: &[T],
    place: Option<usize>,
    number: impl Fn(&T) -> Number,
) -> Result<(), NumbersError> {
    let Some((place, value)) = place.and_then(|place| Some((place, values.get(place)?))) else {
        return Ok(());
    };
    let value = number(value);
    let narrow = match value {
        Number::F32(value) => value,
        Number::F64(value) => round_to_odd(value),
        _ => return Ok(()),
    };
    let refusal = with_format!(dtype, F => F::refusal(narrow), Refusal::OutOfRange);
    Err(refused(dtype, count(place), value, refusal))
}

fn refused(dtype: Dtype, index: u64, value: Number, refusal: Refusal) -> NumbersError {
    NumbersError::Value(ValueError { dtype, index, value, refusal })
}

/// The same error so many elements later.
fn later(error: NumbersError, elements: usize) -> NumbersError {
    match error {
        NumbersError::Value(error) => {
            NumbersError::Value(ValueError { index: error.index.wrapping_add(count(elements)), ..error })
        }
        other => other,
    }
}

fn other(dtype: Dtype, numbers: &'static str) -> NumbersError {
    NumbersError::Type { dtype, numbers }
}

fn integers_only(dtype: Dtype, numbers: &'static str) -> Result<(), NumbersError> {
    match dtype {
        Dtype::I8 | Dtype::U8 | Dtype::I16 | Dtype::U16 => Ok(()),
        Dtype::I32 | Dtype::U32 | Dtype::I64 | Dtype::U64 => Ok(()),
        _ => Err(other(dtype, numbers)),
    }
}
