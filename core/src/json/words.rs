//! Eight bytes at a time become marks and counts: what a scanner asks of them, with no branch a byte (SWAR).
//!
//! Nothing here allocates or panics; all of it belongs to the feature `fast`.

use crate::span::widen;

/// The high bit of each byte.
pub(crate) const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

const ONES: u64 = 0x0101_0101_0101_0101;

/// A mark in the high bit of each byte that does not stand for itself inside a string; exact up to the lowest one.
///
/// With bit 1 flipped, the quote (0x22) and the control characters (below 0x20) are what lies below 0x21.
/// A byte is below n if subtracting n borrows while its own high bit is clear.
#[inline(always)]
pub(super) fn marks(word: u64) -> u64 {
    let quote_or_control = word ^ repeat(0x02);
    let backslash = word ^ repeat(b'\\');
    let low = quote_or_control.wrapping_sub(repeat(0x21)) & !quote_or_control;
    (low | backslash.wrapping_sub(ONES) & !backslash) & HIGH_BITS
}

/// The place in the word of its lowest mark.
#[inline(always)]
pub(crate) fn byte_index(marks: u64) -> usize {
    widen(marks.trailing_zeros() >> 3)
}

/// How many bytes at the start of the word are white space.
#[inline(always)]
pub(super) fn blanks(word: u64) -> usize {
    // Adding 0x7F to seven bits carries into the eighth unless they are zero: exact for each byte.
    let differs = |byte: u8| {
        let bits = word ^ repeat(byte);
        ((bits & !HIGH_BITS).wrapping_add(!HIGH_BITS) | bits) & HIGH_BITS
    };
    byte_index(differs(b' ') & differs(b'\n') & differs(b'\r') & differs(b'\t'))
}

/// Whether all of these bytes are white space.
#[inline(always)]
pub(super) fn all_blank(chunk: &[u8; 32]) -> bool {
    // Without a way out in the middle, so that a vector can hold them.
    chunk.iter().fold(true, |all, &byte| all & super::is_white_space(byte))
}

/// Whether all of these bytes stand for themselves inside a string.
#[inline(always)]
pub(super) fn all_plain(chunk: &[u8; 16]) -> bool {
    chunk.iter().fold(true, |all, &byte| all & (byte >= 0x20) & (byte != b'"') & (byte != b'\\'))
}

/// The value of four hexadecimal digits.
#[inline(always)]
pub(super) fn hex(digits: [u8; 4]) -> Option<u32> {
    let values = digits.map(|digit| u32::from(HEX[usize::from(digit)]));
    let [a, b, c, d] = values;
    // No digit is 0xFF, in which bit 7 is set.
    if (a | b | c | d) & 0x80 != 0 { None } else { Some(a << 12 | b << 8 | c << 4 | d) }
}

const HEX: [u8; 256] = {
    let mut table = [0xFF; 256];
    let mut byte = 0;
    while byte < 256 {
        if let Some(value) = (byte as u8 as char).to_digit(16) {
            table[byte] = value as u8;
        }
        byte += 1;
    }
    table
};

#[inline(always)]
const fn repeat(byte: u8) -> u64 {
    ONES.wrapping_mul(byte as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_classified_wherever_it_stands() {
        for byte in 0..=255_u8 {
            for place in 0..8 {
                for filler in [b' ', b'x', 0x80, 0xFF] {
                    let mut chunk = [filler; 8];
                    chunk[place] = byte;
                    let word = u64::from_le_bytes(chunk);
                    let special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
                    let first = chunk.iter().position(special);
                    let found = marks(word);
                    assert_eq!((found != 0).then(|| byte_index(found)), first, "{chunk:?}");
                    let first = chunk.iter().position(|&byte| !super::super::is_white_space(byte));
                    assert_eq!(blanks(word), first.unwrap_or(8), "{chunk:?}");
                }
            }
            let digit = char::from(byte).to_digit(16);
            assert_eq!(hex([byte, b'0', b'a', b'F']), digit.map(|digit| digit << 12 | 0xAF));
        }
    }
}
