//! A name becomes a number of 32 bits: names that are equal have the same one, others hardly ever. And one of 64 bits
//! that is harder to steer for, for names that somebody chose by the first one.

use crate::json::JsonStr;
use crate::span::{high_half, narrow};

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
#[inline(never)]
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
    high_half((hash ^ u64::from(len)).wrapping_mul(FACTOR))
}

/// 2^64 over the golden ratio, odd.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// The fingerprint by which names are sorted when they crowd the table of the other one.
///
/// Sorting keeps its bound whatever it is; the better it spreads, the less names have to be compared themselves. So this
/// is SipHash-1-3 (Aumasson and Bernstein, 2012; the reference's hash maps use it, with a secret key), for which nobody
/// knows a cheap way to many collisions, though the key is no secret here.
pub(crate) fn strong(name: JsonStr<'_>) -> u64 {
    let mut state = Sip::new();
    let spelled = name.as_spelled();
    if name.is_escaped() {
        let (mut word, mut len) = (0_u64, 0_u32);
        for byte in name.bytes() {
            word = word >> 8 | u64::from(byte) << 56;
            len = len.wrapping_add(1);
            if len & 7 == 0 {
                state.word(word);
            }
        }
        let unused = 64_u32.wrapping_sub((len & 7).wrapping_mul(8));
        return state.finish(word.checked_shr(unused).unwrap_or_default(), len);
    }
    let (words, tail) = spelled.as_chunks::<8>();
    for word in words {
        state.word(u64::from_le_bytes(*word));
    }
    let last = tail.iter().rev().fold(0, |last, &byte| last << 8 | u64::from(byte));
    state.finish(last, narrow(spelled.len()))
}

/// The state of SipHash with the key zero.
struct Sip([u64; 4]);

impl Sip {
    fn new() -> Self {
        Self([0x736F_6D65_7073_6575, 0x646F_7261_6E64_6F6D, 0x6C79_6765_6E65_7261, 0x7465_6462_7974_6573])
    }

    #[inline(always)]
    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.0;
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        self.0 = [a, b, c, d];
    }

    #[inline(always)]
    fn word(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.0[0] ^= word;
    }

    /// Takes the last bytes, at most seven, and the length.
    #[inline(always)]
    fn finish(mut self, last: u64, len: u32) -> u64 {
        self.word(last | u64::from(len) << 56);
        self.0[2] ^= 0xFF;
        for _ in 0..3 {
            self.round();
        }
        let [a, b, c, d] = self.0;
        a ^ b ^ c ^ d
    }
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

    /// Against the standard library's, which is the same function with the same key.
    #[test]
    fn the_strong_fingerprint_is_siphash() {
        extern crate std;
        use core::hash::Hasher;
        for len in 0..100_u8 {
            let name: std::vec::Vec<u8> = (0..len).map(|place| place.wrapping_mul(37) & 63 | 64).collect();
            let name: std::vec::Vec<u8> = name.into_iter().filter(|byte| *byte != b'\\').collect();
            let mut hasher = std::hash::DefaultHasher::new();
            hasher.write(&name);
            assert_eq!(strong(JsonStr::new(&name)), hasher.finish(), "{len}");
        }
    }
}
