//! An entry spelled as the reference writer spells it, read at one go; anything else is left to the general way.
//!
//! `:{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}`: no white space, fields in this order, every rule of R4 kept.
//! What is not so is not an error here. Tests hold both ways against each other.

use crate::dtype::{Dtype, DtypeSet};
use crate::span::{narrow, widen};
use crate::tensor::entry::Form;

const ZEROS: u64 = 0x3030_3030_3030_3030;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// The digits of the last end, which the next tensor is likely to begin with.
#[derive(Default)]
pub(crate) struct LastEnd {
    /// Up to sixteen bytes in two words; what lies behind the digits is masked out.
    digits: [u64; 2],
    masks: [u64; 2],
    len: usize,
    value: u64,
}

/// Reads an entry at the start of `rest`, which stands at the place `at` of the header, right behind a key's quote.
#[inline(always)]
pub(crate) fn entry<'h>(
    rest: &'h [u8],
    at: u32,
    allowed: DtypeSet,
    last: &mut LastEnd,
) -> Option<(Form, &'h [u8])> {
    let whole = rest.len();
    let rest = rest.strip_prefix(b":{\"dtype\":\"")?;
    let (dtype, rest) = dtype(rest)?;
    let rest = rest.strip_prefix(b"\",\"shape\":")?;
    let shape_at = at.wrapping_add(narrow(whole.wrapping_sub(rest.len())));
    let mut rest = rest.strip_prefix(b"[")?;
    let mut elements = 1_u64;
    if let Some((b']', tail)) = rest.split_first() {
        rest = tail;
    } else {
        loop {
            let (dim, tail) = match rest {
                // A digit alone: where the next one begins does not wait for the value of this one.
                [digit @ b'0'..=b'9', b',' | b']', ..] => (u64::from(digit & 15), rest.get(1..)?),
                _ => integer(rest)?,
            };
            elements = elements.checked_mul(dim)?;
            let (&mark, tail) = tail.split_first()?;
            rest = tail;
            if mark != b',' {
                if mark != b']' {
                    return None;
                }
                break;
            }
        }
    }
    let rest = rest.strip_prefix(b",\"data_offsets\":[")?;
    let (begin, rest) = match last.again(rest) {
        Some(again) => again,
        None => integer(rest)?,
    };
    let digits = rest.strip_prefix(b",")?;
    let (end, rest) = integer(digits)?;
    last.remember(digits, digits.len().wrapping_sub(rest.len()), end);
    let rest = rest.strip_prefix(b"]}")?;
    let form = Form { dtype, shape_at, begin, end };
    form.keeps_the_rules(elements, allowed).then_some((form, rest))
}

impl Form {
    /// Whether no rule of R4 is broken, with so many elements.
    #[inline(always)]
    pub(crate) fn keeps_the_rules(&self, elements: u64, allowed: DtypeSet) -> bool {
        let Some(bits) = self.dtype.total_bits(elements) else { return false };
        let len = self.end.wrapping_sub(self.begin);
        allowed.contains(self.dtype) && bits & 7 == 0 && self.begin <= self.end && len == bits >> 3
    }
}

impl LastEnd {
    /// The last end once more, and what follows it: more digits perhaps, but then no comma.
    #[inline(always)]
    pub(crate) fn again<'h>(&self, rest: &'h [u8]) -> Option<(u64, &'h [u8])> {
        let words = words(rest)?;
        let differ = |word: u64, digits: u64, mask: u64| (word & mask) ^ digits;
        let [low, high] = words;
        if differ(low, self.digits[0], self.masks[0]) | differ(high, self.digits[1], self.masks[1]) != 0 {
            return None;
        }
        let tail = rest.get(self.len..)?;
        if self.len > 0 { Some((self.value, tail)) } else { None }
    }

    /// `len` digits, at most fifteen, that stand for `value`.
    #[inline(always)]
    pub(crate) fn remember(&mut self, digits: &[u8], len: usize, value: u64) {
        let Some(words) = words(digits) else { return };
        let bits = narrow(len).wrapping_mul(8);
        let below = |bits: u32| !(u64::MAX << (bits & 63));
        self.masks = if bits < 64 { [below(bits), 0] } else { [u64::MAX, below(bits)] };
        self.digits = [words[0] & self.masks[0], words[1] & self.masks[1]];
        self.len = len;
        self.value = value;
    }
}

/// The first sixteen bytes as two words.
#[inline(always)]
fn words(rest: &[u8]) -> Option<[u64; 2]> {
    let (low, tail) = rest.split_first_chunk::<8>()?;
    Some([u64::from_le_bytes(*low), u64::from_le_bytes(*tail.first_chunk::<8>()?)])
}

/// A dtype's name, up to its closing quote, which is compared too: without it "F32" and "F32" with a NUL are one word.
#[inline(always)]
pub(crate) fn dtype(rest: &[u8]) -> Option<(Dtype, &[u8])> {
    let (chunk, _) = rest.split_first_chunk::<8>()?;
    let word = u64::from_le_bytes(*chunk);
    let quote = word ^ 0x2222_2222_2222_2222;
    let hit = quote.wrapping_sub(0x0101_0101_0101_0101) & !quote & HIGH_BITS;
    if hit == 0 {
        return None;
    }
    // The mark is the uppermost bit of the quote.
    let name = word & u64::MAX >> (63_u32.wrapping_sub(hit.trailing_zeros()) & 63);
    // Each length is a constant of its branch: what follows is read before this name has been looked at.
    let (found, len) = match name {
        BF16 => (Dtype::Bf16, 4),
        F16 => (Dtype::F16, 3),
        F32 => (Dtype::F32, 3),
        F8_E4M3 => (Dtype::F8E4M3, 7),
        U8 => (Dtype::U8, 2),
        I64 => (Dtype::I64, 3),
        I32 => (Dtype::I32, 3),
        F64 => (Dtype::F64, 3),
        BOOL => (Dtype::Bool, 4),
        I8 => (Dtype::I8, 2),
        F8_E5M2 => (Dtype::F8E5M2, 7),
        F4 => (Dtype::F4, 2),
        F8_E8M0 => (Dtype::F8E8M0, 7),
        _ => return None,
    };
    Some((found, rest.get(len..)?))
}

const BF16: u64 = word(b"BF16\"");
const F16: u64 = word(b"F16\"");
const F32: u64 = word(b"F32\"");
const F64: u64 = word(b"F64\"");
const U8: u64 = word(b"U8\"");
const I8: u64 = word(b"I8\"");
const I32: u64 = word(b"I32\"");
const I64: u64 = word(b"I64\"");
const BOOL: u64 = word(b"BOOL\"");
const F4: u64 = word(b"F4\"");
const F8_E4M3: u64 = word(b"F8_E4M3\"");
const F8_E5M2: u64 = word(b"F8_E5M2\"");
const F8_E8M0: u64 = word(b"F8_E8M0\"");

/// The bytes of a short name and its closing quote as a little-endian word.
const fn word(name: &[u8]) -> u64 {
    let mut word = 0;
    let mut rest = name;
    while let [first @ .., last] = rest {
        word = word << 8 | *last as u64;
        rest = first;
    }
    word
}

/// An integer of 1 to 15 digits without leading zeros, and what follows it.
#[inline(always)]
pub(crate) fn integer(rest: &[u8]) -> Option<(u64, &[u8])> {
    let (chunk, tail) = rest.split_first_chunk::<8>()?;
    let digits = u64::from_le_bytes(*chunk) ^ ZEROS;
    let foreign = foreign(digits);
    if foreign != 0 {
        // Seven digits at most. The lowest mark is the first byte that is no digit.
        let count = foreign.trailing_zeros() >> 3;
        let zero_leads = digits & 0xFF == 0;
        if count == 0 || (zero_leads && count > 1) {
            return None;
        }
        let value = value_of(digits << (64_u32.wrapping_sub(count.wrapping_mul(8)) & 63));
        return Some((value, rest.get(widen(count)..)?));
    }
    if digits & 0xFF == 0 {
        return None;
    }
    let high = value_of(digits);
    let low = u64::from_le_bytes(*tail.first_chunk::<8>()?) ^ ZEROS;
    let foreign = self::foreign(low);
    if foreign == 0 {
        return None;
    }
    const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
    let count = foreign.trailing_zeros() >> 3;
    let power = POWERS[widen(count & 7)];
    // With no digit here the shift leaves rubbish, of which the power 1 needs nothing.
    let low = if count == 0 { 0 } else { value_of(low << (64_u32.wrapping_sub(count.wrapping_mul(8)) & 63)) };
    Some((high.wrapping_mul(power).wrapping_add(low), tail.get(widen(count)..)?))
}

/// A mark in each byte that is no digit; exact up to the lowest one.
///
/// Adding 0x76 carries into the high bit from ten on; bytes from 0x80 on have it already.
#[inline(always)]
fn foreign(digits: u64) -> u64 {
    (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & HIGH_BITS
}

/// The value of eight digits, the first in the lowest byte, by pairs: 8 digits, 4 pairs, 2 quads, 1 value
/// (after Lemire, "Quickly parsing eight digits", 2018).
#[inline(always)]
fn value_of(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00FF_00FF_00FF_00FF;
    let quads = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_FFFF_0000_FFFF;
    quads.wrapping_mul(10_000).wrapping_add(quads >> 32) & 0xFFFF_FFFF
}
