//! Slices of floats: the loops over every format of at most 16 bits.
//!
//! They are inlined where they are called. Values are taken in blocks: a block is converted whatever it holds, and looked
//! through again only if one of its values was refused.

use crate::numbers::format::{Format, OutOfRange, Packing, low_byte};
use crate::numbers::packed::{pack_four, pack_two, unpack_four, unpack_two};

/// How many values are converted between two looks at whether one was refused.
const BLOCK: usize = 64;

/// Decodes as many elements as both slices have.
#[inline(always)]
pub fn decode<F: Format>(bytes: &[u8], values: &mut [f32]) {
    match F::PACKING {
        Packing::Byte => {
            for (value, &byte) in values.iter_mut().zip(bytes) {
                *value = F::decode(u16::from(byte));
            }
        }
        Packing::Pair => {
            let (pairs, _) = bytes.as_chunks::<2>();
            for (value, &pair) in values.iter_mut().zip(pairs) {
                *value = F::decode(u16::from_le_bytes(pair));
            }
        }
        Packing::FourInThree => {
            let (threes, _) = bytes.as_chunks::<3>();
            let (fours, _) = values.as_chunks_mut::<4>();
            for (four, &three) in fours.iter_mut().zip(threes) {
                *four = unpack_four(three).map(F::decode);
            }
        }
        Packing::TwoInOne => {
            let (twos, _) = values.as_chunks_mut::<2>();
            for (two, &byte) in twos.iter_mut().zip(bytes) {
                *two = unpack_two(byte).map(F::decode);
            }
        }
    }
}

/// Encodes as many elements as both slices have; the answer is the place of the first value that was refused, if one was.
#[inline(always)]
pub fn encode<F: Format>(values: &[f32], bytes: &mut [u8], beyond: OutOfRange) -> Option<usize> {
    match beyond {
        OutOfRange::Refuse => encode_with_rescan::<F, false>(values, bytes),
        OutOfRange::Saturate => encode_with_rescan::<F, true>(values, bytes),
    }
}

/// Block by block; one with a value that was refused is looked through for its place.
#[inline(always)]
fn encode_with_rescan<F: Format, const SATURATE: bool>(values: &[f32], bytes: &mut [u8]) -> Option<usize> {
    let beyond = if SATURATE { OutOfRange::Saturate } else { OutOfRange::Refuse };
    let mut done = 0_usize;
    for (values, bytes) in values.chunks(BLOCK).zip(bytes.chunks_mut(F::PACKING.bytes_of(BLOCK).max(1))) {
        if encode_block::<F, SATURATE>(values, bytes) {
            let place = values.iter().position(|&value| F::refuses(value, beyond));
            return place.map(|place| done.wrapping_add(place));
        }
        done = done.wrapping_add(values.len());
    }
    None
}

/// Encodes one block; the answer is whether a value was refused.
#[inline(always)]
fn encode_block<F: Format, const SATURATE: bool>(values: &[f32], bytes: &mut [u8]) -> bool {
    let beyond = if SATURATE { OutOfRange::Saturate } else { OutOfRange::Refuse };
    let mut refused = false;
    let mut round = |value: f32| {
        refused |= F::refuses(value, beyond);
        F::round(if SATURATE { F::clamp(value) } else { value })
    };
    match F::PACKING {
        Packing::Byte => {
            for (byte, &value) in bytes.iter_mut().zip(values) {
                *byte = low_byte(round(value));
            }
        }
        Packing::Pair => {
            let (pairs, _) = bytes.as_chunks_mut::<2>();
            for (pair, &value) in pairs.iter_mut().zip(values) {
                *pair = round(value).to_le_bytes();
            }
        }
        Packing::FourInThree => {
            let (threes, _) = bytes.as_chunks_mut::<3>();
            let codes = rounded(values, &mut round);
            let (fours, _) = codes.as_chunks::<4>();
            for (three, &four) in threes.iter_mut().zip(fours) {
                *three = pack_four(four);
            }
        }
        Packing::TwoInOne => {
            let codes = rounded(values, &mut round);
            let (twos, _) = codes.as_chunks::<2>();
            for (byte, &two) in bytes.iter_mut().zip(twos) {
                *byte = pack_two(two);
            }
        }
    }
    refused
}

/// The codes of one block, still apart: rounding and packing are each made vectors of, but not both at once.
#[inline(always)]
fn rounded(values: &[f32], mut round: impl FnMut(f32) -> u16) -> [u16; BLOCK] {
    let mut codes = [0; BLOCK];
    for (code, &value) in codes.iter_mut().zip(values) {
        *code = round(value);
    }
    codes
}
