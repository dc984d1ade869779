//! A name becomes a number of 32 bits: names that are equal have the same one, others hardly ever.

use crate::json::JsonStr;
use crate::span::narrow;

/// A fingerprint of the text that a name stands for: multiply and fold, sixteen bytes at a time, then the last sixteen,
/// which may have been there before (a loop over an odd tail would cost more).
///
/// It need not resist attack: chains are bounded, and there is a way on that does not depend on it.
#[inline]
pub(crate) fn fingerprint(name: JsonStr<'_>) -> u32 {
    if name.is_escaped() {
        return hash_bytes(name.bytes());
    }
    let spelled = name.as_spelled();
    let (pairs, tail) = spelled.as_chunks::<16>();
    let mut hash = 0;
    for pair in pairs {
        let [low, high] = halves(pair);
        hash = mix(hash, low, high);
    }
    let [low, high] = match spelled.last_chunk::<16>() {
        Some(last) => halves(last),
        None => short(tail),
    };
    finish(mix(hash, low, high), narrow(spelled.len()))
}

/// Fewer than sixteen bytes as the upper end of two words.
fn short(bytes: &[u8]) -> [u64; 2] {
    bytes.iter().fold([0, 0], |last, &byte| shift_in(last, byte))
}

/// Two words, the last byte uppermost, with one more.
fn shift_in([low, high]: [u64; 2], byte: u8) -> [u64; 2] {
    [low >> 8 | high << 56, high >> 8 | u64::from(byte) << 56]
}

fn halves(pair: &[u8; 16]) -> [u64; 2] {
    let [a, b, c, d, e, f, g, h, high @ ..] = *pair;
    [u64::from_le_bytes([a, b, c, d, e, f, g, h]), u64::from_le_bytes(high)]
}

/// The same for bytes that come one by one.
#[cold]
fn hash_bytes(bytes: impl Iterator<Item = u8>) -> u32 {
    let (mut hash, mut last, mut len) = (0, [0_u64; 2], 0_u32);
    for byte in bytes {
        last = shift_in(last, byte);
        len = len.wrapping_add(1);
        if len & 15 == 0 {
            hash = mix(hash, last[0], last[1]);
        }
    }
    finish(mix(hash, last[0], last[1]), len)
}

#[inline(always)]
fn mix(hash: u64, low: u64, high: u64) -> u64 {
    // The product of the upper half does not wait for the hash so far.
    let product =
        (hash ^ low ^ high.wrapping_mul(0xD6E8_FEB8_6659_FD93).rotate_left(32)).wrapping_mul(FACTOR);
    product ^ product >> 32
}

fn finish(hash: u64, len: u32) -> u32 {
    narrow_high((hash ^ u64::from(len)).wrapping_mul(FACTOR))
}

/// 2^64 over the golden ratio, odd.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// The upper half.
pub(crate) fn narrow_high(wide: u64) -> u32 {
    let [.., a, b, c, d] = wide.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fingerprint depends on what a name says, not on how it is spelled.
    #[test]
    fn escapes_do_not_change_the_fingerprint() {
        for (one, other) in
            [("", ""), ("a", r"\u0061"), ("abcdefgh", r"abcdefg\u0068"), ("a/b", r"a\/b"), ("é", r"\u00e9")]
        {
            assert_eq!(
                fingerprint(JsonStr::new(one.as_bytes())),
                fingerprint(JsonStr::new(other.as_bytes())),
                "{one}"
            );
        }
    }
}
