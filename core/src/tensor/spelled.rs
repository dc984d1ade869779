//! An entry spelled as the reference writer spells it, read at one go; anything else is left to the general way.
//!
//! `:{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}`: no white space, fields in this order, every rule of R4 kept.
//! What is not so is not an error here. Tests hold both ways against each other.

use crate::dtype::{Dtype, DtypeSet};
use crate::json::words::{self, HIGH_BITS};
use crate::span::{narrow, widen};
use crate::tensor::entry::Form;

const ZEROS: u64 = 0x3030_3030_3030_3030;

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
    let (dtype, rest) = Dtype::before_quote(rest)?;
    let rest = rest.strip_prefix(b"\",\"shape\":")?;
    let shape_at = at.wrapping_add(narrow(whole.wrapping_sub(rest.len())));
    let (elements, rest) = shape(rest.strip_prefix(b"[")?)?;
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

/// The number of elements of a shape behind its opening bracket, and what follows the closing one.
#[inline(always)]
fn shape(rest: &[u8]) -> Option<(u64, &[u8])> {
    if let Some((b']', rest)) = rest.split_first() {
        return Some((1, rest));
    }
    let (first, rest) = integer(rest)?;
    match rest.split_first()? {
        (b']', rest) => Some((first, rest)),
        (b',', rest) => {
            let (second, rest) = integer(rest)?;
            let elements = first.checked_mul(second)?;
            match rest.split_first()? {
                (b']', rest) => Some((elements, rest)),
                (b',', rest) => further_factors(elements, rest),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The same from the third factor on, for ranks that may be high.
#[inline(never)]
fn further_factors(mut elements: u64, mut rest: &[u8]) -> Option<(u64, &[u8])> {
    loop {
        while let Some((product, tail)) = words::four_factors(rest) {
            elements = elements.checked_mul(product)?;
            rest = tail;
        }
        // Digit by digit: the machine guesses how many there are, which it does not when it has to count them.
        let (factor, tail) = words::plain_integer(rest)?;
        elements = elements.checked_mul(factor)?;
        match tail.split_first()? {
            (b',', tail) => rest = tail,
            (b']', tail) => return Some((elements, tail)),
            _ => return None,
        }
    }
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
    #[expect(clippy::indexing_slicing, reason = "three bits are always a place of 8")]
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

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::format;

    const BEHIND: &str = ",\"b\":{\"dtype\":\"F32\"";

    #[test]
    fn integers_are_read_up_to_fifteen_digits() {
        for len in 1..=18 {
            for digits in
                ["123456789012345678", "999999999999999999", "100000000000000000", "012345678901234567"]
            {
                for behind in [b',', b'/', b':', b' ', 0x80, 0xB0, 0xFF] {
                    let text = [&digits.as_bytes()[..len], &[behind], &[0x30; 16]].concat();
                    let good = len <= 15 && (len == 1 || !digits.starts_with('0'));
                    let expected = good.then(|| (digits[..len].parse().unwrap(), &text[len..]));
                    assert_eq!(integer(&text), expected, "{text:?}");
                }
            }
        }
        assert_eq!(integer(b",0000000000000000"), None);
    }

    /// The begin of an entry is taken from the end before it, digit for digit.
    #[test]
    fn the_last_end_is_known_again() {
        for len in 1..=15 {
            let text = format!("{},{}", &"123456789012345"[..len], "9".repeat(16));
            let (text, digits) = (text.as_bytes(), &text.as_bytes()[..len]);
            let mut last = LastEnd::default();
            assert_eq!(last.again(text), None);
            let value = digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit & 15));
            last.remember(text, len, value);
            let behind = [digits, &[b'x'; 16]].concat();
            for text in [text, &behind] {
                assert_eq!(last.again(text), Some((value, &text[len..])));
            }
            for place in 0..len {
                let mut other = text.to_vec();
                other[place] ^= 1;
                assert_eq!(last.again(&other), None);
                // The same difference once more, a word further on.
                if place + 8 < len {
                    other[place + 8] ^= 1;
                    assert_eq!(last.again(&other), None);
                }
            }
            // What comes after it takes its place.
            last.remember(b"7,xxxxxxxxxxxxxxxx", 1, 7);
            assert_eq!(last.again(b"7]xxxxxxxxxxxxxxxx"), Some((7, b"]xxxxxxxxxxxxxxxx".as_slice())));
        }
    }

    #[test]
    fn entries_of_the_reference_are_read() {
        let mut last = LastEnd::default();
        let mut begin = 0;
        for (shape, elements) in [
            ("", 1),
            ("6", 6),
            ("2,3", 6),
            ("1,2,3", 6),
            ("1,1,2,3", 6),
            ("1,2,1,2,1,10,3", 120),
            ("1,1,1,1,1,1,1,1,2,4", 8),
            ("4,0,5", 0),
            ("123456,1000", 123_456_000),
        ] {
            let end = begin + 4 * elements;
            let entry = format!(r#":{{"dtype":"F32","shape":[{shape}],"data_offsets":[{begin},{end}]}}"#);
            let text = format!("{entry}{BEHIND}");
            let read = |allowed, last: &mut LastEnd| {
                let (form, rest) = super::entry(text.as_bytes(), 100, allowed, last)?;
                Some((form.dtype, form.shape_at, form.begin, form.end, rest.len()))
            };
            let shape_at = 100 + narrow(entry.find('[').unwrap());
            let expected = (Dtype::F32, shape_at, begin, end, BEHIND.len());
            assert_eq!(read(DtypeSet::ALL, &mut last), Some(expected), "{shape}");
            assert_eq!(read(DtypeSet::of(&[Dtype::F16]), &mut LastEnd::default()), None);
            for place in (1..entry.len()).filter(|place| !entry.as_bytes()[*place].is_ascii_digit()) {
                let mut odd = text.clone();
                odd.insert(place, ' ');
                assert!(
                    super::entry(odd.as_bytes(), 0, DtypeSet::ALL, &mut LastEnd::default()).is_none(),
                    "{odd}"
                );
            }
            begin = end;
        }
    }
}
