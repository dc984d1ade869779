//! A scanned string, still spelled as in the header; it unescapes while it is compared, hashed or printed.

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
    escaped: bool,
}

impl<'h> JsonStr<'h> {
    /// The string that `raw`, the bytes between the quotes, spells.
    ///
    /// Bytes that no scanner would let through do no harm: they stand for U+FFFD.
    #[must_use]
    pub fn new(raw: &'h [u8]) -> Self {
        Self { raw, escaped: raw.contains(&b'\\') }
    }

    /// The same for bytes of which it is known whether a backslash stands among them.
    #[inline]
    pub(crate) fn scanned(raw: &'h [u8], escaped: bool) -> Self {
        Self { raw, escaped }
    }

    /// The bytes between the quotes, as they are spelled.
    #[must_use]
    pub fn as_spelled(&self) -> &'h [u8] {
        self.raw
    }

    /// Whether it is spelled with escapes.
    #[must_use]
    pub fn is_escaped(&self) -> bool {
        self.escaped
    }

    /// The string itself, if it is spelled without escapes.
    #[must_use]
    pub fn as_plain(&self) -> Option<&'h str> {
        if self.escaped { None } else { core::str::from_utf8(self.raw).ok() }
    }

    /// The characters that it stands for.
    pub fn chars(&self) -> impl Iterator<Item = char> + Clone + 'h {
        Chars { rest: self.raw }
    }

    /// The UTF-8 bytes that it stands for.
    pub fn bytes(&self) -> impl Iterator<Item = u8> + Clone + 'h {
        Bytes { rest: self.raw, escaped: self.escaped, pending: 0, left: 0 }
    }

    /// Whether it stands for these bytes.
    #[inline]
    pub(crate) fn is(&self, text: &[u8]) -> bool {
        if self.escaped { self.bytes().eq(text.iter().copied()) } else { self.raw == text }
    }
}

impl PartialEq for JsonStr<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        if self.escaped || other.escaped { self.bytes().eq(other.bytes()) } else { self.raw == other.raw }
    }
}

impl Eq for JsonStr<'_> {}

impl PartialOrd for JsonStr<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for JsonStr<'_> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        if self.escaped || other.escaped { self.bytes().cmp(other.bytes()) } else { self.raw.cmp(other.raw) }
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
    /// The bytes of an unescaped character that are still to come, the next one lowest.
    pending: u32,
    left: u8,
}

impl Iterator for Bytes<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if self.left == 0 {
            let (&first, tail) = self.rest.split_first()?;
            if first != b'\\' || !self.escaped {
                self.rest = tail;
                return Some(first);
            }
            let (char, tail) = unescape(self.rest);
            self.rest = tail;
            let mut buffer = [0; 4];
            self.left = u8::try_from(char.encode_utf8(&mut buffer).len()).unwrap_or_default();
            self.pending = u32::from_le_bytes(buffer);
        }
        let [byte, ..] = self.pending.to_le_bytes();
        self.pending >>= 8;
        self.left = self.left.saturating_sub(1);
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
            b'\\' => unescape(self.rest),
            ..0x80 => (char::from(first), tail),
            _ => decode(self.rest),
        };
        self.rest = tail;
        Some(char)
    }
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

/// The character that the escape at the start of `text` stands for, and what follows it.
fn unescape(text: &[u8]) -> (char, &[u8]) {
    let short = match text.get(1) {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{C}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unescape_units(text),
        Some(&byte) => char::from(byte),
        None => char::REPLACEMENT_CHARACTER,
    };
    (short, text.get(2..).unwrap_or_default())
}

fn unescape_units(text: &[u8]) -> (char, &[u8]) {
    let tail = text.get(6..).unwrap_or_default();
    match unit(text) {
        high @ 0xD800..=0xDBFF => {
            let low = unit(tail);
            let point = (high & 0x3FF) << 10 | (low & 0x3FF);
            let char = char::from_u32(point.wrapping_add(0x1_0000)).unwrap_or(char::REPLACEMENT_CHARACTER);
            (char, tail.get(6..).unwrap_or_default())
        }
        point => (char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER), tail),
    }
}

/// The value of the four digits behind `\u`.
fn unit(escape: &[u8]) -> u32 {
    let digits = escape.get(2..6).unwrap_or_default();
    digits.iter().fold(0, |value, &byte| value << 4 | char::from(byte).to_digit(16).unwrap_or_default())
}
