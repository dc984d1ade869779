//! Blocks of small floats with one scale (OCP Microscaling Formats 1.0): 32 elements of F8, F6 or F4 and an E8M0.
//!
//! The value of an element is its own times the scale's. Encoding follows the specification's section 6.3: the scale is the
//! power of two that brings the largest magnitude of a block to the uppermost exponent of the element format, and what is
//! then beyond the largest element becomes that.

use crate::dtype::Dtype;
use crate::numbers::error::{NumbersError, Refusal, ValueError};
use crate::numbers::float;
use crate::numbers::format::{Format, INFINITY, MAGNITUDE, OutOfRange, low_byte, low_half};
use crate::numbers::minifloat::{F4, F6E2M3, F6E3M2, F8E4M3, F8E5M2};
use crate::numbers::number::Number;
use crate::numbers::scale::F8E8M0;
use crate::numbers::slice::check;
use crate::span::count;

/// The expression for the element format of that dtype; a dtype without one is the caller's error.
macro_rules! with_element {
    ($dtype:expr, $format:ident => $then:expr) => {
        with_element!(@ $dtype, $format, $then, F4 F6E2M3 F6E3M2 F8E5M2 F8E4M3)
    };
    (@ $dtype:expr, $format:ident, $then:expr, $($name:ident)+) => {
        match $dtype {
            $( Dtype::$name => { type $format = $name; $then } )+
            _ => return Err(NumbersError::Type { dtype: $dtype, numbers: "blocks with a scale" }),
        }
    };
}

/// How many elements have one scale.
pub const BLOCK_ELEMENTS: usize = 32;

/// Decodes blocks to f32: each element times the scale of its block, rounded as f32 multiplication rounds.
///
/// `scales` are E8M0 codes, one for each [`BLOCK_ELEMENTS`] values; the dtype is F8_E4M3, F8_E5M2, F6_E2M3, F6_E3M2 or F4.
/// A scale of NaN makes the whole block NaN.
///
/// # Errors
/// [`NumbersError::Scales`] or [`NumbersError::Length`] if scales or bytes are not those of `values.len()` elements;
/// [`NumbersError::Type`] for another dtype.
///
/// ```
/// use safestep_core::{Dtype, numbers::decode_blocks};
/// let mut values = [0.0; 32];
/// decode_blocks(Dtype::F4, &[128], &[0x72; 16], &mut values)?;
/// assert_eq!(values[..4], [2.0, 12.0, 2.0, 12.0]);
/// # Ok::<(), safestep_core::numbers::NumbersError>(())
/// ```
pub fn decode_blocks(
    dtype: Dtype,
    scales: &[u8],
    bytes: &[u8],
    values: &mut [f32],
) -> Result<(), NumbersError> {
    check_scales(values.len(), scales)?;
    check(dtype, values.len(), bytes)?;
    with_element!(dtype, F => float::decode::<F>(bytes, values));
    for (block, &scale) in values.chunks_mut(BLOCK_ELEMENTS).zip(scales) {
        let scale = F8E8M0::decode(scale.into());
        for value in block {
            *value = if value.is_nan() { *value } else { *value * scale };
        }
    }
    Ok(())
}

/// Encodes f32 values as blocks: an E8M0 scale for each [`BLOCK_ELEMENTS`] values, and elements of that dtype.
///
/// A block of zeros has the least scale.
///
/// # Errors
/// [`NumbersError::Scales`], [`NumbersError::Length`] and [`NumbersError::Type`] as [`decode_blocks`];
/// [`NumbersError::Value`] for infinity, and for NaN where the element format has none.
pub fn encode_blocks(
    values: &[f32],
    dtype: Dtype,
    scales: &mut [u8],
    bytes: &mut [u8],
) -> Result<(), NumbersError> {
    check_scales(values.len(), scales)?;
    check(dtype, values.len(), bytes)?;
    let refused = with_element!(dtype, F => encode_all::<F>(values, scales, bytes));
    refused.map_or(Ok(()), |(place, value)| {
        let refusal = if value.is_nan() { Refusal::NotANumber } else { Refusal::OutOfRange };
        Err(NumbersError::Value(ValueError {
            dtype,
            index: count(place),
            value: Number::F32(value),
            refusal,
        }))
    })
}

/// Encodes all blocks; the answer is the first value that was refused, and its place.
fn encode_all<F: Format>(values: &[f32], scales: &mut [u8], bytes: &mut [u8]) -> Option<(usize, f32)> {
    let block_bytes = F::PACKING.bytes_of(BLOCK_ELEMENTS).max(1);
    let uppermost = exponent(F::LARGEST.to_bits());
    let blocks = values.chunks(BLOCK_ELEMENTS).zip(bytes.chunks_mut(block_bytes)).zip(scales);
    let mut done = 0_usize;
    for ((values, bytes), scale) in blocks {
        let refuses = |value: f32| value.is_infinite() || F::refuses(value, OutOfRange::Saturate);
        if let Some(place) = values.iter().position(|&value| refuses(value)) {
            return Some((done.wrapping_add(place), *values.get(place)?));
        }
        let magnitudes = values.iter().map(|value| value.to_bits() & MAGNITUDE);
        let largest = magnitudes.filter(|&magnitude| magnitude < INFINITY).max().unwrap_or_default();
        // Both exponents have the bias of f32; their difference has none, and a scale's is the same again.
        let code = low_half(exponent(largest).wrapping_add(127).saturating_sub(uppermost));
        let inverse = F8E8M0::decode(254_u16.wrapping_sub(code));
        let mut scaled = [0.0; BLOCK_ELEMENTS];
        for (scaled, value) in scaled.iter_mut().zip(values) {
            *scaled = value * inverse;
        }
        float::encode::<F>(&scaled, bytes, OutOfRange::Saturate);
        *scale = low_byte(code);
        done = done.wrapping_add(values.len());
    }
    None
}

/// The exponent of an f32, with its bias.
const fn exponent(magnitude: u32) -> u32 {
    magnitude >> 23
}

/// Whether there is a scale for each block of so many elements.
fn check_scales(elements: usize, scales: &[u8]) -> Result<(), NumbersError> {
    let (elements, found) = (count(elements), count(scales.len()));
    let expected = (elements & 31 == 0).then_some(elements >> 5);
    if expected == Some(found) {
        return Ok(());
    }
    Err(NumbersError::Scales { elements, expected, found })
}
