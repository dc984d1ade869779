//! Bytes become JSON tokens with places: a strict scanner after RFC 8259, and strings that unescape while they are read.
//!
//! Nothing is trusted: every byte that is passed over has been checked, except that bytes from 0x80 on are only
//! noted; whoever scans checks UTF-8 once at the end. No recursion, no panic.

mod fault;
mod string;

pub use fault::{Expected, Kind};
pub use string::JsonStr;

use crate::limits::JSON_DEPTH_MAX;
use crate::span::{narrow, widen};

/// Where and why a text stops being JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    pub(crate) expected: Expected,
    /// From the first header byte.
    pub(crate) at: u32,
    /// The byte there; `None` at the end.
    pub(crate) found: Option<u8>,
}

/// What is left of a text to scan.
#[derive(Clone)]
pub(crate) struct Scan<'h> {
    pub(crate) rest: &'h [u8],
    len: usize,
    /// All string bytes seen, or'ed together: a high bit here asks for a check of UTF-8.
    seen: u64,
}

/// The numbers that the fields of an entry want: integers that 64 bits hold.
pub(crate) type Integer = Option<u64>;

impl<'h> Scan<'h> {
    /// A scan of `text` from the place `at` on.
    pub(crate) fn new(text: &'h [u8], at: usize) -> Self {
        Self { rest: text.get(at..).unwrap_or_default(), len: text.len(), seen: 0 }
    }

    /// The place of the next byte.
    #[inline]
    pub(crate) fn at(&self) -> u32 {
        narrow(self.len.saturating_sub(self.rest.len()))
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
    pub(crate) fn stop<T>(&self, expected: Expected) -> Result<T, Stop> {
        Err(Stop { expected, at: self.at(), found: self.peek() })
    }

    #[cold]
    fn stop_at_end<T>(&self, expected: Expected) -> Result<T, Stop> {
        Err(Stop { expected, at: narrow(self.len), found: None })
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
        while let Some((&byte, tail)) = self.rest.split_first() {
            if byte > b' ' {
                return;
            }
            #[cfg(feature = "fast")]
            if let Some((b"        ", far)) = self.rest.split_first_chunk::<8>() {
                self.rest = far;
                continue;
            }
            if !is_white_space(byte) {
                return;
            }
            self.rest = tail;
        }
    }

    /// Consumes a key, from its opening quote to the colon and the white space behind it.
    #[inline]
    pub(crate) fn key(&mut self, expected: Expected) -> Result<JsonStr<'h>, Stop> {
        if !self.take(b'"') {
            return self.stop(expected);
        }
        let key = self.string()?;
        self.colon()?;
        Ok(key)
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

    /// After a member or an element: a comma (true) or the closing bracket (false), with the white space around.
    pub(crate) fn more(&mut self, close: u8) -> Result<bool, Stop> {
        self.white_space();
        if self.take(b',') {
            self.white_space();
            return Ok(true);
        }
        if self.take(close) { Ok(false) } else { self.stop(Expected::CommaOrClose) }
    }

    /// Consumes a string behind its opening quote, closing quote included.
    pub(crate) fn string(&mut self) -> Result<JsonStr<'h>, Stop> {
        self.string_inline()
    }

    /// The same for the one place where a call costs time.
    #[cfg_attr(feature = "fast", inline(always))]
    pub(crate) fn string_inline(&mut self) -> Result<JsonStr<'h>, Stop> {
        let start = self.rest;
        let mut escaped = false;
        loop {
            let run = self.plain_run();
            self.advance(run);
            match self.peek() {
                Some(b'"') => {
                    let len = start.len().wrapping_sub(self.rest.len());
                    self.advance(1);
                    return Ok(JsonStr::scanned(start.get(..len).unwrap_or_default(), escaped));
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return self.stop(Expected::Character),
            }
        }
    }

    /// How many bytes stand before the next quote, backslash or control character.
    #[cfg(feature = "fast")]
    #[inline(always)]
    fn plain_run(&mut self) -> usize {
        let mut rest = self.rest;
        let mut seen = 0;
        while let Some((chunk, tail)) = rest.split_first_chunk::<8>() {
            let word = u64::from_le_bytes(*chunk);
            let hit = marks(word);
            seen |= word;
            if hit != 0 {
                self.seen |= seen;
                return self.rest.len().wrapping_sub(rest.len()).wrapping_add(byte_index(hit));
            }
            rest = tail;
        }
        self.seen |= seen;
        self.rest.len().wrapping_sub(rest.len()).wrapping_add(self.plain_tail(rest))
    }

    /// How many bytes stand before the next quote, backslash or control character.
    #[cfg(not(feature = "fast"))]
    fn plain_run(&mut self) -> usize {
        self.plain_tail(self.rest)
    }

    fn plain_tail(&mut self, rest: &[u8]) -> usize {
        let mut run: usize = 0;
        for &byte in rest {
            if byte == b'"' || byte == b'\\' || byte < 0x20 {
                break;
            }
            self.seen |= u64::from(byte);
            run = run.wrapping_add(1);
        }
        run
    }

    /// Consumes an escape from its backslash on, both halves of a surrogate pair included.
    #[cold]
    fn escape(&mut self) -> Result<(), Stop> {
        let here = self.rest;
        match here.get(1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.advance(2),
            Some(b'u') => match self.unit(here)? {
                0xD800..=0xDBFF => self.low_surrogate(here.get(6..).unwrap_or_default())?,
                0xDC00..=0xDFFF => return self.stop(Expected::Surrogate),
                _ => self.advance(6),
            },
            Some(_) => return self.stop(Expected::Escape),
            None => return self.stop_at_end(Expected::Escape),
        }
        Ok(())
    }

    /// The four digits of `\uXXXX`, which `escape` begins with.
    fn unit(&self, escape: &[u8]) -> Result<u32, Stop> {
        let mut value = 0_u32;
        for place in 2..6 {
            let Some(&byte) = escape.get(place) else { return self.stop_at_end(Expected::Escape) };
            let Some(digit) = char::from(byte).to_digit(16) else {
                let at = narrow(self.len.saturating_sub(escape.len()));
                return Err(Stop { expected: Expected::Escape, at, found: escape.first().copied() });
            };
            value = (value << 4) | digit;
        }
        Ok(value)
    }

    /// Behind a high surrogate, at whose backslash the scan still stands: the low one must be `second`.
    fn low_surrogate(&mut self, second: &[u8]) -> Result<(), Stop> {
        match (second.first(), second.get(1)) {
            (None, _) | (Some(b'\\'), None) => self.stop_at_end(Expected::Escape),
            (Some(b'\\'), Some(b'u')) if matches!(self.unit(second)?, 0xDC00..=0xDFFF) => {
                self.advance(12);
                Ok(())
            }
            _ => self.stop(Expected::Surrogate),
        }
    }

    /// Consumes a number; the answer is its value if it is an integer from 0 to 2^64 - 1.
    pub(crate) fn number(&mut self) -> Result<Integer, Stop> {
        let negative = self.take(b'-');
        let leading_zero = self.peek() == Some(b'0');
        let mut value = if negative { None } else { Some(0_u64) };
        let mut digits: usize = 0;
        while let Some(digit) = self.digit() {
            value = value.and_then(|value| value.checked_mul(10)?.checked_add(u64::from(digit)));
            self.advance(1);
            digits = digits.wrapping_add(1);
            if leading_zero {
                break;
            }
        }
        if digits == 0 || (leading_zero && self.digit().is_some()) {
            return self.stop(Expected::Digit);
        }
        if self.take(b'.') {
            value = None;
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            value = None;
            let _sign = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(value)
    }

    #[inline]
    fn digit(&self) -> Option<u8> {
        match self.peek() {
            Some(byte) if byte.is_ascii_digit() => Some(byte & 15),
            _ => None,
        }
    }

    fn digits(&mut self) -> Result<(), Stop> {
        if self.digit().is_none() {
            return self.stop(Expected::Digit);
        }
        while self.digit().is_some() {
            self.advance(1);
        }
        Ok(())
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), Stop> {
        for &byte in word {
            if !self.take(byte) {
                return self.stop(Expected::Literal);
            }
        }
        Ok(())
    }

    /// Passes over one value of any kind, with `open` containers open around it.
    pub(crate) fn value(&mut self, open: u32) -> Result<Kind, Stop> {
        let mut nest = Nest { objects: [0; 4], open };
        let mut kind = None;
        loop {
            // A value stands here.
            let found = match self.peek() {
                Some(b'{') => {
                    kind = kind.or(Some(Kind::Object));
                    self.open(&mut nest, true)?;
                    if !self.take(b'}') {
                        self.key(Expected::KeyOrClose)?;
                        continue;
                    }
                    nest.close();
                    Kind::Object
                }
                Some(b'[') => {
                    kind = kind.or(Some(Kind::Array));
                    self.open(&mut nest, false)?;
                    if !self.take(b']') {
                        continue;
                    }
                    nest.close();
                    Kind::Array
                }
                first => self.scalar(first)?,
            };
            let outermost = *kind.get_or_insert(found);
            // It has ended; the containers around it may end with it.
            loop {
                if nest.open <= open {
                    return Ok(outermost);
                }
                let object = nest.in_object();
                if self.more(if object { b'}' } else { b']' })? {
                    if object {
                        self.key(Expected::Key)?;
                    }
                    break;
                }
                nest.close();
            }
        }
    }

    /// Passes over a value that is no container.
    fn scalar(&mut self, first: Option<u8>) -> Result<Kind, Stop> {
        match first {
            Some(b'"') => {
                self.advance(1);
                self.string()?;
                Ok(Kind::String)
            }
            Some(b't') => self.literal(b"true").map(|()| Kind::Bool),
            Some(b'f') => self.literal(b"false").map(|()| Kind::Bool),
            Some(b'n') => self.literal(b"null").map(|()| Kind::Null),
            Some(b'-' | b'0'..=b'9') => {
                Ok(if self.number()?.is_some() { Kind::Integer } else { Kind::Number })
            }
            _ => self.stop(Expected::Value),
        }
    }

    /// Consumes an opening bracket and the white space behind it.
    fn open(&mut self, nest: &mut Nest, object: bool) -> Result<(), Stop> {
        if nest.open >= JSON_DEPTH_MAX {
            return self.stop(Expected::Shallower);
        }
        nest.open(object);
        self.advance(1);
        self.white_space();
        Ok(())
    }
}

/// The containers that are open: how many, and for each of the inner ones whether it is an object.
struct Nest {
    objects: [u32; 4],
    open: u32,
}

impl Nest {
    fn open(&mut self, object: bool) {
        self.open = self.open.wrapping_add(1);
        let bit = 1_u32 << (self.open & 31);
        let word = &mut self.objects[widen(self.open >> 5 & 3)];
        *word = if object { *word | bit } else { *word & !bit };
    }

    fn in_object(&self) -> bool {
        self.objects[widen(self.open >> 5 & 3)] >> (self.open & 31) & 1 == 1
    }

    fn close(&mut self) {
        self.open = self.open.saturating_sub(1);
    }
}

/// Whether JSON passes over the byte between tokens.
pub(crate) fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// A mark in the high bit of each byte that does not stand for itself inside a string; exact up to the lowest one.
///
/// With bit 1 flipped, the quote (0x22) and the control characters (below 0x20) are what lies below 0x21.
/// A byte is below n if subtracting n borrows while its own high bit is clear.
#[cfg(feature = "fast")]
#[inline(always)]
fn marks(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let quote_or_control = word ^ ONES.wrapping_mul(0x02);
    let backslash = word ^ ONES.wrapping_mul(0x5C);
    let low = quote_or_control.wrapping_sub(ONES.wrapping_mul(0x21)) & !quote_or_control;
    (low | backslash.wrapping_sub(ONES) & !backslash) & HIGH_BITS
}

/// The place in the word of its lowest mark.
#[cfg(feature = "fast")]
#[inline(always)]
fn byte_index(marks: u64) -> usize {
    widen(marks.trailing_zeros() >> 3)
}

const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
