//! Bytes become JSON tokens with places: a strict scanner after RFC 8259, and strings that unescape while they are read.
//!
//! Nothing is trusted: every byte that is passed over has been checked, except that bytes from 0x80 on are only
//! noted; whoever scans checks UTF-8 once at the end. No recursion, no panic.

mod fault;
mod escape;
mod string;
mod utf8;
#[cfg(feature = "fast")]
pub(crate) mod words;

pub use fault::{Expected, Kind};
pub use string::JsonStr;
pub(crate) use utf8::valid_bytes;

use crate::limits::JSON_DEPTH_MAX;
use crate::span::{multiply, narrow, widen};
use escape::unescape;

/// A text stops being JSON: at the next byte of the scan, where [`Scan::expected`] could have stood.
#[derive(Debug)]
pub(crate) struct Stop;

/// What is left of a text to scan, the containers that are open there, and what was read last.
pub(crate) struct Scan<'h> {
    pub(crate) rest: &'h [u8],
    len: usize,
    /// All string bytes seen, or'ed together: a high bit here asks for a check of UTF-8.
    seen: u64,
    /// A bit for each depth: whether the container there is an object.
    objects: [u32; 4],
    pub(crate) depth: u32,
    /// The innermost container has been opened, and nothing stands behind its bracket yet.
    opened: bool,
    /// The last string.
    pub(crate) string: JsonStr<'h>,
    /// The opening quote of the last key.
    pub(crate) key_at: u32,
    /// The value of the last number, if 64 bits hold it.
    pub(crate) integer: u64,
    /// They do, and it is an integer without a sign.
    fits: bool,
    /// After a [`Stop`]: what could have stood here.
    pub(crate) expected: Expected,
}

impl<'h> Scan<'h> {
    /// A scan of `text` from the place `at` on.
    #[cfg_attr(not(feature = "fast"), inline(never))]
    pub(crate) fn new(text: &'h [u8], at: usize) -> Self {
        Self {
            rest: text.get(at..).unwrap_or_default(),
            len: text.len(),
            seen: 0,
            objects: [0; 4],
            depth: 0,
            opened: false,
            string: JsonStr::scanned(b"", 0),
            key_at: 0,
            integer: 0,
            fits: true,
            expected: Expected::Value,
        }
    }

    /// The place of the next byte.
    #[inline]
    pub(crate) fn at(&self) -> u32 {
        narrow(self.len.wrapping_sub(self.rest.len()))
    }

    /// Whether a byte from 0x80 on may have stood in a string.
    pub(crate) fn saw_high_bit(&self) -> bool {
        self.seen & HIGH_BITS != 0
    }

    /// The next byte, which is not consumed.
    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// A stop at the next byte.
    #[cold]
    pub(crate) fn stop<T>(&mut self, expected: Expected) -> Result<T, Stop> {
        self.expected = expected;
        Err(Stop)
    }

    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Consumes the next byte if it is this one.
    #[inline]
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        match self.rest.split_first() {
            Some((&first, tail)) if first == byte => {
                self.rest = tail;
                true
            }
            _ => false,
        }
    }

    /// Passes over white space.
    #[inline]
    pub(crate) fn white_space(&mut self) {
        #[cfg(feature = "fast")]
        if matches!(self.peek(), Some(..=b' ')) {
            self.blanks();
        }
        #[cfg(not(feature = "fast"))]
        while matches!(self.peek(), Some(byte) if is_white_space(byte)) {
            self.advance(1);
        }
    }

    /// Passes over white space of which there is some.
    #[cfg(feature = "fast")]
    fn blanks(&mut self) {
        let mut rest = self.rest;
        while let Some((chunk, tail)) = rest.split_first_chunk::<8>() {
            let blanks = words::blanks(u64::from_le_bytes(*chunk));
            if blanks < 8 {
                self.rest = rest.get(blanks..).unwrap_or_default();
                return;
            }
            rest = tail;
            while let Some((chunk, tail)) = rest.split_first_chunk::<32>() {
                if !words::all_blank(chunk) {
                    break;
                }
                rest = tail;
            }
        }
        while let Some((&byte, tail)) = rest.split_first() {
            if !is_white_space(byte) {
                break;
            }
            rest = tail;
        }
        self.rest = rest;
    }

    /// Consumes an opening bracket, of an object or an array, and the white space behind it.
    pub(crate) fn open(&mut self, object: bool) -> Result<(), Stop> {
        if self.depth >= JSON_DEPTH_MAX {
            return self.stop(Expected::Shallower);
        }
        self.depth = self.depth.wrapping_add(1);
        let bit = 1_u32 << (self.depth & 31);
        let word = &mut self.objects[widen(self.depth >> 5 & 3)];
        *word = if object { *word | bit } else { *word & !bit };
        self.opened = true;
        self.advance(1);
        self.white_space();
        Ok(())
    }

    /// Whether the innermost container goes on: behind its opening bracket, or behind a member or an element of it.
    /// What separates them is consumed, and so is the closing bracket.
    pub(crate) fn goes_on(&mut self) -> Result<bool, Stop> {
        let close = if self.in_object() { b'}' } else { b']' };
        if core::mem::take(&mut self.opened) {
            self.expected = Expected::KeyOrClose;
        } else {
            self.expected = Expected::Key;
            self.white_space();
            if self.take(b',') {
                self.white_space();
                return Ok(true);
            }
            if self.peek() != Some(close) {
                return self.stop(Expected::CommaOrClose);
            }
        }
        if !self.take(close) {
            return Ok(true);
        }
        self.depth = self.depth.wrapping_sub(1);
        Ok(false)
    }

    fn in_object(&self) -> bool {
        self.objects[widen(self.depth >> 5 & 3)] >> (self.depth & 31) & 1 == 1
    }

    /// Consumes a key, from its opening quote to the white space behind the colon. It is the last string then.
    pub(crate) fn key(&mut self) -> Result<(), Stop> {
        self.key_at = self.at();
        if !self.take(b'"') {
            // What is expected has been settled when the object went on.
            return Err(Stop);
        }
        self.string()?;
        self.colon()
    }

    /// Consumes a colon and the white space around it.
    #[inline]
    pub(crate) fn colon(&mut self) -> Result<(), Stop> {
        self.white_space();
        if !self.take(b':') {
            return self.stop(Expected::Colon);
        }
        self.white_space();
        Ok(())
    }

    /// Consumes a string behind its opening quote, closing quote included.
    fn string(&mut self) -> Result<(), Stop> {
        self.string = self.string_inline()?;
        Ok(())
    }

    /// The same for the one place where a call costs time.
    #[cfg_attr(feature = "fast", inline(always))]
    pub(crate) fn string_inline(&mut self) -> Result<JsonStr<'h>, Stop> {
        let start = self.rest;
        let mut escapes = 0_u32;
        loop {
            self.plain_run();
            match self.peek() {
                Some(b'"') => {
                    let len = start.len().wrapping_sub(self.rest.len());
                    self.advance(1);
                    return Ok(JsonStr::scanned(start.get(..len).unwrap_or_default(), escapes));
                }
                Some(b'\\') => {
                    escapes = escapes.wrapping_add(1);
                    #[cfg(feature = "fast")]
                    self.good_escapes();
                    #[cfg(feature = "fast")]
                    if self.peek() != Some(b'\\') {
                        continue;
                    }
                    self.escape()?;
                }
                _ => return self.stop(Expected::Character),
            }
        }
    }

    /// Passes over the bytes before the next quote, backslash or control character.
    #[cfg(feature = "fast")]
    #[inline(always)]
    fn plain_run(&mut self) {
        let mut rest = self.rest;
        let mut seen = 0;
        while let Some((chunk, tail)) = rest.split_first_chunk::<16>() {
            if !words::all_plain(chunk) {
                break;
            }
            let word = u128::from_le_bytes(*chunk);
            seen |= word as u64 | (word >> 64) as u64;
            rest = tail;
        }
        while let Some((chunk, tail)) = rest.split_first_chunk::<8>() {
            let word = u64::from_le_bytes(*chunk);
            let hit = words::marks(word);
            seen |= word;
            if hit != 0 {
                self.seen |= seen;
                self.rest = rest.get(words::byte_index(hit)..).unwrap_or_default();
                return;
            }
            rest = tail;
        }
        self.seen |= seen;
        self.rest = rest;
        self.plain_tail();
    }

    /// Passes over the bytes before the next quote, backslash or control character.
    #[cfg(not(feature = "fast"))]
    fn plain_run(&mut self) {
        self.plain_tail();
    }

    fn plain_tail(&mut self) {
        while let Some((&byte, tail)) = self.rest.split_first() {
            if byte == b'"' || byte == b'\\' || byte < 0x20 {
                return;
            }
            self.seen |= u64::from(byte);
            self.rest = tail;
        }
    }

    /// Consumes escapes while they are good ones that need no second look; others are left to `escape`.
    #[cfg(feature = "fast")]
    fn good_escapes(&mut self) {
        let mut rest = self.rest;
        while let [b'\\', kind, tail @ ..] = rest {
            match kind {
                b'u' => {
                    let Some((digits, tail)) = tail.split_first_chunk::<4>() else { break };
                    match words::hex(*digits) {
                        Some(0xD800..=0xDFFF) | None => break,
                        Some(_) => rest = tail,
                    }
                }
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => rest = tail,
                _ => break,
            }
        }
        self.rest = rest;
    }

    /// Consumes an escape from its backslash on, both halves of a surrogate pair included.
    #[cfg_attr(not(feature = "fast"), cold)]
    fn escape(&mut self) -> Result<(), Stop> {
        match unescape(&mut self.rest) {
            Ok(_) => Ok(()),
            Err(expected) => self.stop(expected),
        }
    }

    /// Consumes a number, and leaves its value if it is an integer.
    fn number(&mut self) -> Result<Kind, Stop> {
        self.integer = 0;
        self.fits = !self.take(b'-');
        // A digit behind a leading zero is left to the caller, who expects no more of them.
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
            self.fits = false;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.advance(1);
            if let Some(b'+' | b'-') = self.peek() {
                self.advance(1);
            }
            self.digits()?;
            self.fits = false;
        }
        Ok(if self.fits { Kind::Integer } else { Kind::Number })
    }

    /// Consumes digits, one at least, with which the integer goes on.
    fn digits(&mut self) -> Result<(), Stop> {
        let start = self.rest.len();
        let (mut value, mut fits) = (self.integer, self.fits);
        while let Some((&byte @ b'0'..=b'9', tail)) = self.rest.split_first() {
            fits &= multiply(&mut value, 10, byte & 15);
            self.rest = tail;
        }
        (self.integer, self.fits) = (value, fits);
        if self.rest.len() == start { self.stop(Expected::Digit) } else { Ok(()) }
    }

    /// Passes over one value of any kind.
    pub(crate) fn value(&mut self) -> Result<Kind, Stop> {
        let depth = self.depth;
        let kind = self.token()?;
        self.leave(depth)?;
        Ok(kind)
    }

    /// Passes over what is left of the containers beyond a depth.
    pub(crate) fn leave(&mut self, depth: u32) -> Result<(), Stop> {
        while self.depth > depth {
            if self.goes_on()? {
                if self.in_object() {
                    self.key()?;
                }
                self.token()?;
            }
        }
        Ok(())
    }

    /// Passes over a scalar, or opens a container.
    pub(crate) fn token(&mut self) -> Result<Kind, Stop> {
        let (word, kind): (&[u8], Kind) = match self.peek() {
            Some(b'"') => {
                self.advance(1);
                return self.string().map(|()| Kind::String);
            }
            Some(b'-' | b'0'..=b'9') => return self.number(),
            Some(b'{') => return self.open(true).map(|()| Kind::Object),
            Some(b'[') => return self.open(false).map(|()| Kind::Array),
            Some(b't') => (b"true", Kind::Bool),
            Some(b'f') => (b"false", Kind::Bool),
            Some(b'n') => (b"null", Kind::Null),
            _ => return self.stop(Expected::Value),
        };
        for &byte in word {
            if !self.take(byte) {
                return self.stop(Expected::Literal);
            }
        }
        Ok(kind)
    }
}

/// Whether JSON passes over the byte between tokens.
pub(crate) fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
