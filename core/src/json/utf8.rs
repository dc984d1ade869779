//! Bytes become the number of those from the start that are UTF-8.

/// How many bytes stand before the first invalid sequence.
#[cfg_attr(not(feature = "fast"), cold)]
#[cfg_attr(feature = "fast", inline(never))]
pub(crate) fn valid_bytes(text: &[u8]) -> usize {
    if cfg!(feature = "fast") {
        // Vectors look for high bits faster than the decoder passes over what has none.
        if text.is_ascii() {
            return text.len();
        }
        core::str::from_utf8(text).map_or_else(|fault| fault.valid_up_to(), str::len)
    } else {
        valid_bytes_one_by_one(text)
    }
}

/// The same in a fifth of the code, after Table 3-7 of the Unicode standard, "Well-Formed UTF-8 Byte Sequences".
fn valid_bytes_one_by_one(text: &[u8]) -> usize {
    let mut valid = 0;
    let mut following = 0_u32;
    // What the next byte of a sequence may be.
    let (mut low, mut high) = (0x80, 0xBF);
    for (place, &byte) in text.iter().enumerate() {
        if following > 0 {
            if byte < low || byte > high {
                break;
            }
            following = following.wrapping_sub(1);
            (low, high) = (0x80, 0xBF);
        } else {
            match byte {
                ..0x80 => {}
                0xC2..0xE0 => following = 1,
                0xE0..0xF0 => {
                    following = 2;
                    if byte == 0xE0 {
                        low = 0xA0;
                    }
                    if byte == 0xED {
                        high = 0x9F;
                    }
                }
                0xF0..0xF5 => {
                    following = 3;
                    if byte == 0xF0 {
                        low = 0x90;
                    }
                    if byte == 0xF4 {
                        high = 0x8F;
                    }
                }
                _ => break,
            }
        }
        if following == 0 {
            valid = place.wrapping_add(1);
        }
    }
    valid
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every sequence of up to four bytes around the borders of Table 3-7 of the Unicode standard, cut off and followed
    /// by ASCII.
    #[test]
    fn both_searches_find_the_same() {
        const BORDERS: [u8; 26] = [
            0x00, 0x22, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC,
            0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xF8, 0xFF,
        ];
        // Miri is a thousand times slower: a few borders and first bytes do there.
        let (borders, step) = if cfg!(miri) { (&BORDERS[3..22], 17) } else { (&BORDERS[..], 1) };
        let borders = || borders.iter().copied().step_by(if cfg!(miri) { 6 } else { 1 });
        for a in (0..=255).step_by(step) {
            for b in borders() {
                for c in borders() {
                    for d in borders() {
                        let text = [b'a', a, b, c, d, b'z'];
                        for text in [&text[..], &text[..5], &text[..4], &text[..3], &text[..2]] {
                            let expected =
                                core::str::from_utf8(text).map_or_else(|fault| fault.valid_up_to(), str::len);
                            assert_eq!(valid_bytes_one_by_one(text), expected, "{text:x?}");
                        }
                    }
                }
            }
        }
    }
}
