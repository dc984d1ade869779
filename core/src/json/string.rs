//! A scanned string, still spelled as in the header; it unescapes while it is compared, hashed or printed.

use crate::json::escape::unescape;
#[cfg(feature = "fast")]
use crate::json::words;
use core::cmp::Ordering;
use core::fmt;

/// A JSON string without its quotes, borrowed from a header that the scanner has passed over.
///
/// Equality and order are those of the text it stands for: `"a"` and `"\u0061"` are equal, and order is by UTF-8 bytes.
///
/// ```
/// use safestep_core::JsonStr;
/// let spelled = JsonStr::new(br"caf\u00e9");
/// assert!(spelled == "caf\u{e9}" && spelled.as_plain().is_none());
/// ```
#[derive(Clone, Copy)]
pub struct JsonStr<'h> {
    raw: &'h [u8],
    /// How many escapes stand in it; what counts is whether there are any.
    escapes: u32,
}

impl<'h> JsonStr<'h> {
    /// The string that `raw`, the bytes between the quotes, spells.
    ///
    /// Bytes that no scanner would let through do no harm: they stand for U+FFFD.
    #[must_use]
    pub fn new(raw: &'h [u8]) -> Self {
        Self { raw, escapes: u32::from(raw.contains(&b'\\')) }
    }

    /// The same for bytes of which it is known how many escapes stand among them, or whether any do.
    #[inline]
    pub(crate) fn scanned(raw: &'h [u8], escapes: u32) -> Self {
        Self { raw, escapes }
    }

    /// The bytes between the quotes, as they are spelled.
    #[must_use]
    pub fn as_spelled(&self) -> &'h [u8] {
        self.raw
    }

    /// Whether it is spelled with escapes.
    #[must_use]
    pub fn is_escaped(&self) -> bool {
        self.escapes != 0
    }

    /// The string itself, if it is spelled without escapes.
    #[must_use]
    pub fn as_plain(&self) -> Option<&'h str> {
        if self.is_escaped() { None } else { core::str::from_utf8(self.raw).ok() }
    }

    /// The characters that it stands for.
    pub fn chars(&self) -> impl Iterator<Item = char> + Clone + 'h {
        Chars { rest: self.raw }
    }

    /// The UTF-8 bytes that it stands for.
    pub fn bytes(&self) -> impl Iterator<Item = u8> + Clone + 'h {
        Bytes { rest: self.raw, escaped: self.is_escaped(), point: 0, bits: 0 }
    }

    /// Whether it stands for these bytes.
    #[inline]
    pub(crate) fn is(&self, text: &[u8]) -> bool {
        let text = JsonStr::scanned(text, 0);
        if self.plain(&text) { self.raw == text.raw } else { self.cmp_unescaped(&text).is_eq() }
    }

    #[cold]
    fn cmp_unescaped(&self, other: &Self) -> Ordering {
        self.bytes().cmp(other.bytes())
    }

    /// Whether both can be compared as they are spelled. The small build has one way for all.
    #[inline]
    fn plain(&self, other: &Self) -> bool {
        cfg!(feature = "fast") && self.escapes | other.escapes == 0
    }
}

impl PartialEq for JsonStr<'_> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        if self.plain(other) { self.raw == other.raw } else { self.cmp_unescaped(other).is_eq() }
    }
}

impl Eq for JsonStr<'_> {}

impl PartialOrd for JsonStr<'_> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for JsonStr<'_> {
    #[cfg_attr(feature = "fast", inline(always))]
    fn cmp(&self, other: &Self) -> Ordering {
        if self.plain(other) { self.raw.cmp(other.raw) } else { self.cmp_unescaped(other) }
    }
}

impl PartialEq<str> for JsonStr<'_> {
    fn eq(&self, other: &str) -> bool {
        self.is(other.as_bytes())
    }
}

impl PartialEq<&str> for JsonStr<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.is(other.as_bytes())
    }
}

impl fmt::Display for JsonStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        if let Some(plain) = self.as_plain() {
            return f.write_str(plain);
        }
        self.chars().try_for_each(|char| f.write_char(char))
    }
}

impl fmt::Debug for JsonStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        f.write_char('"')?;
        self.chars().flat_map(char::escape_debug).try_for_each(|char| f.write_char(char))?;
        f.write_char('"')
    }
}

#[derive(Clone)]
struct Bytes<'h> {
    rest: &'h [u8],
    /// Otherwise a backslash is one: the names that callers ask for come without escapes.
    escaped: bool,
    /// A character that an escape stood for.
    point: u32,
    /// How many of its bits are still to come, six a byte.
    bits: u32,
}

impl Iterator for Bytes<'_> {
    type Item = u8;

    #[cfg_attr(feature = "fast", inline(always))]
    fn next(&mut self) -> Option<u8> {
        let mark = if self.bits > 0 {
            self.bits = self.bits.wrapping_sub(6);
            0x80 | self.point >> (self.bits & 31) & 0x3F
        } else {
            let (&first, tail) = self.rest.split_first()?;
            if first != b'\\' || !self.escaped {
                self.rest = tail;
                return Some(first);
            }
            // Most escapes are of one byte.
            #[cfg(feature = "fast")]
            if let Some((byte @ ..0x80, tail)) = words::escaped_byte(self.rest) {
                self.rest = tail;
                return Some(byte);
            }
            self.point = character(&mut self.rest);
            let (mark, bits) = match self.point {
                0..0x80 => (0, 0),
                0x80..0x800 => (0xC0, 6),
                0x800..0x1_0000 => (0xE0, 12),
                _ => (0xF0, 18),
            };
            self.bits = bits;
            mark | self.point >> bits
        };
        let [byte, ..] = mark.to_le_bytes();
        Some(byte)
    }
}

#[derive(Clone)]
struct Chars<'h> {
    rest: &'h [u8],
}

impl Iterator for Chars<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let (&first, tail) = self.rest.split_first()?;
        let (char, tail) = match first {
            b'\\' => {
                let point = character(&mut self.rest);
                return Some(char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            ..0x80 => (char::from(first), tail),
            _ => decode(self.rest),
        };
        self.rest = tail;
        Some(char)
    }
}

/// Takes the escape that `rest` begins with and gives its code point; of what is none, only the backslash.
fn character(rest: &mut &[u8]) -> u32 {
    let start = *rest;
    unescape(rest).unwrap_or_else(|_| {
        *rest = start.get(1..).unwrap_or_default();
        u32::from(char::REPLACEMENT_CHARACTER)
    })
}

/// The character at the start of `text`, which begins with a byte from 0x80 on, and what follows it.
fn decode(text: &[u8]) -> (char, &[u8]) {
    let width = match text.first() {
        Some(0xF0..) => 4,
        Some(0xE0..) => 3,
        _ => 2,
    };
    let decoded = text.get(..width).and_then(|bytes| core::str::from_utf8(bytes).ok()?.chars().next());
    match decoded {
        Some(char) => (char, text.get(width..).unwrap_or_default()),
        None => (char::REPLACEMENT_CHARACTER, text.get(1..).unwrap_or_default()),
    }
}
