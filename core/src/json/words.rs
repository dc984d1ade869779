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

/// An integer of at most 18 digits that ends as integers in arrays do, and what follows it.
#[inline(always)]
pub(crate) fn plain_integer(text: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, mut rest) = text.split_first()?;
    if !first.is_ascii_digit() {
        return None;
    }
    let mut value = u64::from(first & 15);
    let mut digits: u32 = 1;
    while let Some((&byte, tail)) = rest.split_first() {
        if !byte.is_ascii_digit() {
            let ends = matches!(byte, b',' | b']' | b'}') || super::is_white_space(byte);
            return if ends { Some((value, rest)) } else { None };
        }
        // Leading zeros and what may not fit are for others to look at.
        if first == b'0' || digits > 17 {
            return None;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(byte & 15));
        digits = digits.wrapping_add(1);
        rest = tail;
    }
    None
}

/// The product of four integers of one digit from 1 to 9 with a comma behind each, and what follows them.
#[inline(always)]
pub(crate) fn four_factors(text: &[u8]) -> Option<(u64, &[u8])> {
    let (chunk, rest) = text.split_first_chunk::<8>()?;
    let lanes = u64::from_le_bytes(*chunk) ^ repeat_pair(b'0', b',');
    // A comma leaves nothing in the upper byte of its pair; what is in the lower one must reach 1 and not 10.
    let below_10 = lanes.wrapping_add(repeat_pair(0x76, 0)) & repeat_pair(0x80, 0xFF) == 0;
    let from_1 = lanes.wrapping_add(repeat_pair(0x7F, 0)) & repeat_pair(0x80, 0) == repeat_pair(0x80, 0);
    if !(below_10 && from_1) {
        return None;
    }
    // Pairs, then all four: the products stay below 2^16.
    let pairs = [lanes & 0xFF, lanes >> 16 & 0xFF, lanes >> 32 & 0xFF, lanes >> 48];
    let [a, b, c, d] = pairs;
    Some((a.wrapping_mul(b).wrapping_mul(c.wrapping_mul(d)), rest))
}

const fn repeat_pair(low: u8, high: u8) -> u64 {
    0x0001_0001_0001_0001_u64.wrapping_mul((high as u64) << 8 | low as u64)
}

/// The value of four hexadecimal digits.
#[inline(always)]
#[expect(clippy::indexing_slicing, reason = "a byte is always a place of 256")]
pub(crate) fn hex(digits: [u8; 4]) -> Option<u32> {
    let values = digits.map(|digit| u32::from(HEX[usize::from(digit)]));
    let [a, b, c, d] = values;
    // No digit is 0xFF, in which bit 7 is set.
    if (a | b | c | d) & 0x80 != 0 { None } else { Some(a << 12 | b << 8 | c << 4 | d) }
}

/// What an escape of the form `\u00XX` at the start of the text stands for, and what follows it.
#[inline(always)]
#[expect(clippy::indexing_slicing, reason = "a byte is always a place of 256")]
pub(crate) fn escaped_byte(text: &[u8]) -> Option<(u8, &[u8])> {
    let (escape, rest) = text.split_first_chunk::<6>()?;
    let [b'\\', b'u', b'0', b'0', high, low] = *escape else { return None };
    let (high, low) = (HEX[usize::from(high)], HEX[usize::from(low)]);
    if (high | low) & 0x80 != 0 { None } else { Some((high << 4 | low, rest)) }
}

#[expect(clippy::indexing_slicing, reason = "the compiler counts to 256 itself")]
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
    extern crate std;

    #[test]
    fn each_byte_is_classified_wherever_it_stands() {
        for byte in (0..=255_u8).step_by(if cfg!(miri) { 5 } else { 1 }) {
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
            for place in 0..8 {
                let mut text = *b"2,3,4,5,";
                text[place] = byte;
                let found = four_factors(&text).map(|(product, _)| product);
                let values = text.map(|byte| u64::from(byte.wrapping_sub(b'0')));
                let good = |place| matches!(text[place], b'1'..=b'9') && text[place + 1] == b',';
                let product = [0, 2, 4, 6].iter().map(|&place| values[place]).product();
                let expected = [0, 2, 4, 6].into_iter().all(good).then_some(product);
                assert_eq!(found, expected, "{text:?}");
            }
            let digit = char::from(byte).to_digit(16);
            assert_eq!(hex([byte, b'0', b'a', b'F']), digit.map(|digit| digit << 12 | 0xAF));
            for (one, other) in [(0, 1), (0, 2), (1, 2), (2, 3)] {
                let mut digits = *b"1234";
                (digits[one], digits[other]) = (byte, byte);
                assert_eq!(hex(digits).is_some(), digit.is_some(), "{digits:?}");
            }
        }
    }
    /// One byte of a chunk decides, wherever it stands.
    #[test]
    fn chunks_are_plain_or_blank_as_their_bytes_are() {
        for byte in 0..=255_u8 {
            for place in 0..32 {
                let mut chunk = *b" \n\r\t \n\r\t \n\r\t \n\r\t \n\r\t \n\r\t \n\r\t \n\r\t";
                chunk[place] = byte;
                assert_eq!(all_blank(&chunk), matches!(byte, b' ' | b'\n' | b'\r' | b'\t'), "{chunk:?}");
                let mut chunk = *b" !#[]az\x7f\x80\xff 0129~";
                chunk[place & 15] = byte;
                assert_eq!(all_plain(&chunk), byte >= 0x20 && byte != b'"' && byte != b'\\', "{chunk:?}");
            }
        }
    }

    /// Of each length, with each byte behind it.
    #[test]
    fn integers_are_read_up_to_eighteen_digits() {
        for len in 1..=21 {
            for digits in ["123456789012345678901", "999999999999999999999", "012345678901234567890"] {
                for byte in 0..=255_u8 {
                    let text = [&digits.as_bytes()[..len], &[byte], b"0"].concat();
                    let ends = matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t');
                    let long = len + usize::from(byte.is_ascii_digit()) * 2;
                    let good = ends && long <= 18 && (len == 1 || !digits.starts_with('0'));
                    let expected = good.then(|| (digits[..len].parse().unwrap(), &text[len..]));
                    assert_eq!(plain_integer(&text), expected, "{text:?}");
                }
                assert_eq!(plain_integer(&digits.as_bytes()[..len]), None);
            }
        }
        for text in ["", "-1,", ",", "/,", ":,"] {
            assert_eq!(plain_integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn escapes_of_single_bytes_are_read() {
        for byte in 0..=255_u8 {
            for digits in [std::format!("{byte:02x}"), std::format!("{byte:02X}")] {
                let text = std::format!("\\u00{digits}rest");
                assert_eq!(escaped_byte(text.as_bytes()), Some((byte, b"rest".as_slice())));
                let text = text.into_bytes();
                for place in 0..4 {
                    let mut other = text.clone();
                    other[place] = if place == 1 { b'U' } else { b'1' };
                    assert_eq!(escaped_byte(&other), None);
                }
            }
            let digit = char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            let escape =
                |high, low| escaped_byte(&[b'\\', b'u', b'0', b'0', high, low]).map(|(byte, _)| byte);
            assert_eq!(escape(byte, b'c'), digit.map(|digit| digit << 4 | 0xC));
            assert_eq!(escape(byte, byte), digit.map(|digit| digit << 4 | digit));
            assert_eq!(escape(b'c', byte), digit.map(|digit| 0xC0 | digit));
        }
        assert_eq!(escaped_byte(b"\\u004"), None);
    }
}
