//! Codes stand in bytes: two in one, four in three, one in one, one in two.

use crate::numbers::format::{Packing, low_byte, low_half};

impl Packing {
    /// The bytes of so many elements, which fill whole ones.
    pub(crate) const fn bytes_of(self, elements: usize) -> usize {
        match self {
            Self::TwoInOne => elements >> 1,
            Self::FourInThree => (elements >> 2).wrapping_mul(3),
            Self::Byte => elements,
            Self::Pair => elements.wrapping_mul(2),
        }
    }

    /// The whole elements in so many bytes.
    pub(crate) const fn elements_in(self, bytes: usize) -> usize {
        match self {
            Self::TwoInOne => bytes.saturating_mul(2),
            Self::FourInThree => bytes.div_euclid(3).saturating_mul(4),
            Self::Byte => bytes,
            Self::Pair => bytes >> 1,
        }
    }
}

/// The four codes in three bytes.
#[inline(always)]
pub(crate) fn unpack_four(bytes: [u8; 3]) -> [u16; 4] {
    let [a, b, c] = bytes;
    let word = u32::from_le_bytes([a, b, c, 0]);
    [word, word >> 6, word >> 12, word >> 18].map(|code| low_half(code & 0x3F))
}

/// Three bytes for four codes of six bits.
#[inline(always)]
pub(crate) fn pack_four(codes: [u16; 4]) -> [u8; 3] {
    let [a, b, c, d] = codes.map(u32::from);
    let [low, middle, high, _] = (a | b << 6 | c << 12 | d << 18).to_le_bytes();
    [low, middle, high]
}

/// The two codes in a byte.
#[inline(always)]
pub(crate) fn unpack_two(byte: u8) -> [u16; 2] {
    [u16::from(byte & 0xF), u16::from(byte >> 4)]
}

/// A byte for two codes of four bits.
#[inline(always)]
pub(crate) fn pack_two([low, high]: [u16; 2]) -> u8 {
    low_byte(low | high << 4)
}
