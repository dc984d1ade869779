//! An escape of JSON becomes the character that it stands for, or what is wrong with it: one code for the scanner, which
//! checks, and for strings that unescape while they are read.

use crate::json::fault::Expected;

/// Takes the escape that `rest` begins with, both halves of a surrogate pair, and gives its code point.
///
/// On an error `rest` begins where the text can go on no longer.
#[cfg_attr(not(feature = "fast"), cold)]
pub(crate) fn unescape(rest: &mut &[u8]) -> Result<u32, Expected> {
    let start = *rest;
    let Some(high) = unit(rest) else { return Err(Expected::Escape) };
    if !(0xD800..0xE000).contains(&high) {
        return Ok(high);
    }
    // A low surrogate must follow a high one; where the text ends before that, it ends inside an escape.
    if high < 0xDC00 && matches!(**rest, [] | [b'\\'] | [b'\\', b'u', ..]) {
        let Some(low) = unit(rest) else { return Err(Expected::Escape) };
        if (0xDC00..0xE000).contains(&low) {
            return Ok(((high & 0x3FF) << 10 | (low & 0x3FF)).wrapping_add(0x1_0000));
        }
    }
    *rest = start;
    Err(Expected::Surrogate)
}

/// One escape from its backslash on; a surrogate is as good as any.
fn unit(rest: &mut &[u8]) -> Option<u32> {
    const LETTERS: &[u8; 8] = b"\"\\/bfnrt";
    const MEANINGS: &[u8; 8] = b"\"\\/\x08\x0C\n\r\t";
    // Unless something else turns out, the text ends here.
    let escape = core::mem::take(rest);
    let letter = *escape.get(1)?;
    let mut tail = escape.get(2..)?;
    let mut value = 0;
    if letter == b'u' {
        for _ in 0..4 {
            let (&byte, behind) = tail.split_first()?;
            let Some(digit) = char::from(byte).to_digit(16) else {
                *rest = escape;
                return None;
            };
            value = value << 4 | digit;
            tail = behind;
        }
    } else {
        let Some(place) = LETTERS.iter().position(|&known| known == letter) else {
            *rest = escape;
            return None;
        };
        value = u32::from(*MEANINGS.get(place)?);
    }
    *rest = tail;
    Some(value)
}
