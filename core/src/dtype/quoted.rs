//! Eight bytes become a dtype: the names that models use, found at one go.

use crate::dtype::Dtype;
use crate::json::words::HIGH_BITS;

impl Dtype {
    /// One of the frequent names at the start of `rest`, up to its closing quote, which is compared too: without it "F32" and "F32" with a NUL are one word.
    #[inline(always)]
    pub(crate) fn before_quote(rest: &[u8]) -> Option<(Self, &[u8])> {
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

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    /// In each place of the quote, whatever stands behind it; other names are not found here.
    #[test]
    fn frequent_names_are_found_with_their_quotes_only() {
        let mut found = 0;
        for dtype in Dtype::ALL {
            for behind in ["\"\"\"\"\"\"\"\"", "\0\0\0\0\0\0\0\0", "\u{7ff}\u{7ff}\u{7ff}\u{7ff}"] {
                let text = std::format!("{}\"{behind}", dtype.name());
                if let Some((quoted, rest)) = Dtype::before_quote(text.as_bytes()) {
                    assert_eq!((quoted, rest.len()), (dtype, 9), "{text}");
                    found += 1;
                }
                for other in ["'", "\0", ""] {
                    let text = std::format!("{}{other}{behind}", dtype.name());
                    let known = other.is_empty() && behind.starts_with('"');
                    assert!(known || Dtype::before_quote(text.as_bytes()).is_none(), "{text}");
                }
            }
        }
        assert_eq!(found, 3 * 13);
    }
}
