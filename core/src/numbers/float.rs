//! Slices of floats: the loops over every format of at most 16 bits.
//!
//! They are inlined where they are called. Elements are taken in blocks: a block is converted as if it held plain numbers only,
//! and once more, with care, if it does not.

use crate::numbers::format::{Format, OutOfRange, Packing, low_byte};
use crate::numbers::packed::{pack_four, pack_two, unpack_four, unpack_two};

/// How many elements are converted between two looks at whether all were plain.
const BLOCK: usize = 64;

/// Decodes as many elements as both slices have.
#[inline(always)]
pub fn decode<F: Format>(bytes: &[u8], values: &mut [f32]) {
    let both = F::PACKING.elements_in(bytes.len()).min(values.len());
    let (Some(bytes), Some(values)) = (bytes.get(..F::PACKING.bytes_of(both)), values.get_mut(..both)) else {
        return;
    };
    match F::PACKING {
        Packing::TwoInOne => decode_blocks::<F, 32>(bytes, values),
        Packing::FourInThree => decode_blocks::<F, 48>(bytes, values),
        Packing::Byte => decode_blocks::<F, 64>(bytes, values),
        Packing::Pair => decode_blocks::<F, 128>(bytes, values),
    }
}

/// Block by block, of so many bytes; one with a special code is decoded again.
#[inline(always)]
fn decode_blocks<F: Format, const BYTES: usize>(bytes: &[u8], values: &mut [f32]) {
    let (values, last_values) = values.as_chunks_mut::<BLOCK>();
    let (bytes, last_bytes) = bytes.as_chunks::<BYTES>();
    for (values, bytes) in values.iter_mut().zip(bytes) {
        let mut special = false;
        decode_block::<F>(bytes, values, |code| {
            special |= F::is_special(code);
            F::finite(code)
        });
        if special {
            decode_block::<F>(bytes, values, F::decode);
        }
    }
    decode_block::<F>(last_bytes, last_values, F::decode);
}

/// Decodes one block, each code as it is told to.
#[inline(always)]
fn decode_block<F: Format>(bytes: &[u8], values: &mut [f32], mut decode: impl FnMut(u16) -> f32) {
    match F::PACKING {
        Packing::Byte => {
            for (value, &byte) in values.iter_mut().zip(bytes) {
                *value = decode(u16::from(byte));
            }
        }
        Packing::Pair => {
            let (pairs, _) = bytes.as_chunks::<2>();
            for (value, &pair) in values.iter_mut().zip(pairs) {
                *value = decode(u16::from_le_bytes(pair));
            }
        }
        Packing::FourInThree => {
            let (threes, _) = bytes.as_chunks::<3>();
            let (fours, _) = values.as_chunks_mut::<4>();
            for (four, &three) in fours.iter_mut().zip(threes) {
                *four = unpack_four(three).map(&mut decode);
            }
        }
        Packing::TwoInOne => {
            let (twos, _) = values.as_chunks_mut::<2>();
            for (two, &byte) in twos.iter_mut().zip(bytes) {
                *two = unpack_two(byte).map(&mut decode);
            }
        }
    }
}

/// Encodes as many elements as both slices have; the answer is the place of the first value that was refused, if one was.
#[inline(always)]
pub fn encode<F: Format>(values: &[f32], bytes: &mut [u8], beyond: OutOfRange) -> Option<usize> {
    let both = F::PACKING.elements_in(bytes.len()).min(values.len());
    let values = values.get(..both)?;
    let bytes = bytes.get_mut(..F::PACKING.bytes_of(both))?;
    match beyond {
        OutOfRange::Refuse => encode_packed::<F, false>(values, bytes),
        OutOfRange::Saturate => encode_packed::<F, true>(values, bytes),
    }
}

#[inline(always)]
fn encode_packed<F: Format, const SATURATE: bool>(values: &[f32], bytes: &mut [u8]) -> Option<usize> {
    match F::PACKING {
        Packing::TwoInOne => encode_blocks::<F, 32, SATURATE>(values, bytes),
        Packing::FourInThree => encode_blocks::<F, 48, SATURATE>(values, bytes),
        Packing::Byte => encode_blocks::<F, 64, SATURATE>(values, bytes),
        Packing::Pair => encode_blocks::<F, 128, SATURATE>(values, bytes),
    }
}

/// Block by block, of so many bytes; one with a value that was refused is looked through for its place.
#[inline(always)]
fn encode_blocks<F: Format, const BYTES: usize, const SATURATE: bool>(
    values: &[f32],
    bytes: &mut [u8],
) -> Option<usize> {
    let (values, last_values) = values.as_chunks::<BLOCK>();
    let (bytes, last_bytes) = bytes.as_chunks_mut::<BYTES>();
    let mut done = 0_usize;
    for (values, bytes) in values.iter().zip(bytes) {
        if let Some(place) = encode_block::<F, SATURATE>(values, bytes) {
            return Some(done.wrapping_add(place));
        }
        done = done.wrapping_add(BLOCK);
    }
    encode_block::<F, SATURATE>(last_values, last_bytes).map(|place| done.wrapping_add(place))
}

/// Encodes at most one block; the answer is the place of the first value that was refused. A block with an odd value is
/// encoded again.
#[inline(always)]
fn encode_block<F: Format, const SATURATE: bool>(values: &[f32], bytes: &mut [u8]) -> Option<usize> {
    let beyond = if SATURATE { OutOfRange::Saturate } else { OutOfRange::Refuse };
    let within = |value| if SATURATE { F::clamp(value) } else { value };
    let mut odd = false;
    pack_block::<F>(values, bytes, |value| {
        odd |= F::is_odd(value, beyond);
        F::nearest(within(value))
    });
    if !odd {
        return None;
    }
    pack_block::<F>(values, bytes, |value| F::round(within(value)));
    values.iter().position(|&value| F::refuses(value, beyond))
}

/// Encodes at most one block, each value as it is told to.
#[inline(always)]
fn pack_block<F: Format>(values: &[f32], bytes: &mut [u8], mut round: impl FnMut(f32) -> u16) {
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

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::numbers::{Bf16, F4, F6E2M3, F8E4M3};
    use std::vec;
    use std::vec::Vec;

    /// Whatever the lengths, elements of the same place belong together, and there are as many as both have.
    fn pairs_up<F: Format>() {
        let group = match F::PACKING {
            Packing::TwoInOne => 2,
            Packing::FourInThree => 4,
            Packing::Byte | Packing::Pair => 1,
        };
        let codes: Vec<u8> = (0..300_u32).map(|place| (place * 37 % 251) as u8 & 0x77).collect();
        let mut all = vec![0.0; 140];
        decode_block::<F>(&codes, &mut all, F::decode);
        for bytes in [0, 1, 2, 63, 64, 65, 66, 95, 96, 97, 127, 128, 129, 130, 200] {
            for len in [0, 1, 2, 3, 4, 5, 63, 64, 65, 70, 127, 128, 129, 140] {
                let both = F::PACKING.elements_in(bytes).min(len) / group * group;
                let mut values = vec![-1.0; len];
                decode::<F>(&codes[..bytes], &mut values);
                assert_eq!(values[..both], all[..both], "{:?} {bytes} {len}", F::DTYPE);
                assert!(values[both..].iter().all(|value| *value == -1.0), "{:?} {bytes} {len}", F::DTYPE);
                let (mut some, mut encoded) = (vec![0xEE; bytes], vec![0; 300]);
                assert_eq!(encode::<F>(&all[..len], &mut some, OutOfRange::Refuse), None);
                let blocks = encoded.chunks_mut(F::PACKING.bytes_of(BLOCK));
                for (values, bytes) in all[..both].chunks(BLOCK).zip(blocks) {
                    pack_block::<F>(values, bytes, F::round);
                }
                let both = F::PACKING.bytes_of(both);
                assert_eq!(some[..both], encoded[..both], "{:?} {bytes} {len}", F::DTYPE);
                assert!(some[both..].iter().all(|byte| *byte == 0xEE), "{:?} {bytes} {len}", F::DTYPE);
            }
        }
    }

    #[test]
    fn slices_of_any_lengths_pair_up() {
        pairs_up::<F8E4M3>();
        pairs_up::<Bf16>();
        pairs_up::<F4>();
        pairs_up::<F6E2M3>();
    }
}
