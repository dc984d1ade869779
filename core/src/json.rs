//! Bytes become JSON tokens with places: a strict scanner after RFC 8259, and strings that unescape while they are read.
//!
//! Nothing is trusted: every byte that is passed over has been checked, except that bytes from 0x80 on are only
//! noted; whoever scans checks UTF-8 once at the end. No recursion, no panic.

mod fault;
#[cfg(feature = "fast")]
pub(crate) mod words;
mod escape;
mod string;
mod utf8;
#[cfg(feature = "fast")]
mod skip;
mod python;

pub use fault::{Expected, Kind};
pub use python::NonFinite;
pub use string::JsonStr;
pub(crate) use utf8::valid_bytes;

use crate::limits::JSON_DEPTH_MAX;
#[cfg(not(feature = "fast"))]
use crate::span::widen;
use crate::span::{multiply, narrow};
use escape::unescape;

/// What is left of a text to scan, the containers that are open there, and what was read last.
///
/// Where the text stops being JSON the scan stops: it remembers the place, and from then on it is at its end. So nobody has
/// to ask after each step; what is read behind a stop is nonsense, and what is judged of it counts less than the stop.
///
/// The fields keep this order because a small machine reaches single bytes at the front of a structure with less code.
#[repr(C)]
pub(crate) struct Scan<'h> {
    pub(crate) rest: &'h [u8],
    len: usize,
    /// The innermost container has been opened, and nothing stands behind its bracket yet.
    opened: bool,
    /// The last number is an integer, and 64 bits hold it.
    fits: bool,
    /// What can stand where the innermost container goes on.
    expected: Expected,
    /// What could have stood where the text stops being JSON, and the place.
    pub(crate) stop: Option<(Expected, u32)>,
    /// All string bytes seen, or'ed together: a high bit here asks for a check of UTF-8.
    seen: u64,
    nest: Nest,
    pub(crate) depth: u32,
    /// The last string.
    pub(crate) string: JsonStr<'h>,
    /// The opening quote of the last key.
    pub(crate) key_at: u32,
    /// The value of the last number, if it is an integer that 64 bits hold.
    pub(crate) integer: u64,
}

impl<'h> Scan<'h> {
    /// A scan of `text` from the place `at` on.
    #[cfg_attr(not(feature = "fast"), inline(never))]
    pub(crate) fn new(text: &'h [u8], at: usize) -> Self {
        Self {
            rest: text.get(at..).unwrap_or_default(),
            len: text.len(),
            seen: 0,
            nest: Nest::default(),
            depth: 0,
            opened: false,
            string: JsonStr::scanned(b"", 0),
            key_at: 0,
            integer: 0,
            fits: true,
            expected: Expected::Value,
            stop: None,
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

    /// Stops at the next byte, unless it has stopped before.
    #[cold]
    fn stop(&mut self, expected: Expected) {
        self.stop = self.stop.or(Some((expected, self.at())));
        self.rest = &[];
        self.depth = 0;
    }

    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Consumes the next byte if it is this one.
    #[cfg_attr(feature = "fast", inline)]
    #[cfg_attr(not(feature = "fast"), inline(never))]
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
        match self.rest {
            // One space is what stands there most often, where anything does.
            [b' ', tail @ ..] if matches!(tail.first(), Some(b'!'..)) => self.rest = tail,
            [0..=b' ', ..] => self.blanks(),
            _ => {}
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
    pub(crate) fn open(&mut self, object: bool) {
        if self.depth >= JSON_DEPTH_MAX {
            return self.stop(Expected::Shallower);
        }
        self.depth = self.depth.wrapping_add(1);
        self.nest.open(self.depth, object);
        self.opened = true;
        self.advance(1);
        self.white_space();
    }

    /// Whether the innermost container goes on: behind its opening bracket, or behind a member or an element of it.
    /// What separates them is consumed, and so is the closing bracket.
    #[cfg_attr(feature = "fast", inline)]
    pub(crate) fn goes_on(&mut self) -> bool {
        #[cfg(feature = "fast")]
        if let Some((b',', tail)) = self.rest.split_first()
            && !self.opened
        {
            self.rest = tail;
            self.expected = Expected::Key;
            self.white_space();
            return true;
        }
        self.goes_on_or_closes()
    }

    fn goes_on_or_closes(&mut self) -> bool {
        let first = core::mem::take(&mut self.opened);
        self.expected = if first { Expected::KeyOrClose } else { Expected::Key };
        if !first {
            self.white_space();
            if self.take(b',') {
                self.white_space();
                return true;
            }
        }
        if self.take(if self.in_object() { b'}' } else { b']' }) {
            self.depth = self.depth.wrapping_sub(1);
            #[cfg(feature = "fast")]
            self.nest.close(1);
            return false;
        }
        if !first {
            self.stop(Expected::CommaOrClose);
        }
        first
    }

    #[inline]
    fn in_object(&self) -> bool {
        self.nest.in_object(self.depth)
    }

    /// Consumes a key, from its opening quote to the white space behind the colon. It is the last string then.
    pub(crate) fn key(&mut self) {
        self.quote();
        self.string();
        self.colon();
    }

    /// Consumes the opening quote of a key.
    #[inline]
    pub(crate) fn quote(&mut self) {
        self.key_at = self.at();
        if !self.take(b'"') {
            self.stop(self.expected);
        }
    }

    /// Consumes a colon and the white space around it.
    #[inline]
    pub(crate) fn colon(&mut self) {
        self.white_space();
        if !self.take(b':') {
            self.stop(Expected::Colon);
        }
        self.white_space();
    }

    /// Consumes a string behind its opening quote, closing quote included.
    fn string(&mut self) {
        self.string = self.string_inline();
    }

    /// The same for the one place where a call costs time.
    #[cfg_attr(feature = "fast", inline(always))]
    pub(crate) fn string_inline(&mut self) -> JsonStr<'h> {
        let start = self.rest;
        let mut escapes = 0_u32;
        loop {
            self.plain_run();
            match self.peek() {
                Some(b'"') => {
                    let len = start.len().wrapping_sub(self.rest.len());
                    self.advance(1);
                    return JsonStr::scanned(start.get(..len).unwrap_or_default(), escapes);
                }
                Some(b'\\') => {
                    escapes = escapes.wrapping_add(1);
                    #[cfg(feature = "fast")]
                    self.good_escapes();
                    #[cfg(feature = "fast")]
                    if self.peek() != Some(b'\\') {
                        continue;
                    }
                    self.escape();
                }
                _ => {
                    self.stop(Expected::Character);
                    return JsonStr::scanned(b"", 0);
                }
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

    /// Consumes escapes while they are good ones; others are left to `escape`.
    #[cfg(feature = "fast")]
    #[inline(never)]
    fn good_escapes(&mut self) {
        let mut rest = self.rest;
        loop {
            while let Some((_, tail)) = words::escaped_byte(rest) {
                rest = tail;
            }
            self.rest = rest;
            let [b'\\', kind, tail @ ..] = rest else { return };
            match kind {
                b'u' => {
                    let Some((digits, tail)) = tail.split_first_chunk::<4>() else { return };
                    let Some(unit) = words::hex(*digits) else { return };
                    rest = tail;
                    if unit & 0xF800 == 0xD800 {
                        match tail.split_first_chunk::<6>() {
                            Some(([b'\\', b'u', digits @ ..], tail))
                                if unit < 0xDC00 && matches!(words::hex(*digits), Some(0xDC00..=0xDFFF)) =>
                            {
                                rest = tail;
                            }
                            _ => return,
                        }
                    }
                }
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => rest = tail,
                _ => return,
            }
        }
    }

    /// Consumes an escape from its backslash on, both halves of a surrogate pair included.
    #[cfg_attr(not(feature = "fast"), cold)]
    fn escape(&mut self) {
        if let Err(expected) = unescape(&mut self.rest) {
            self.stop(expected);
        }
    }

    /// Consumes a number, and leaves its value if it is an integer.
    fn number(&mut self) -> Kind {
        #[cfg(feature = "fast")]
        if let Some((value, rest)) = words::plain_integer(self.rest) {
            (self.integer, self.rest) = (value, rest);
            return Kind::Integer;
        }
        self.integer = 0;
        self.fits = !self.take(b'-');
        // A digit behind a leading zero is left to the caller, who expects no more of them.
        if !self.take(b'0') {
            self.digits();
        }
        if self.take(b'.') {
            self.digits();
            self.fits = false;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.advance(1);
            if let Some(b'+' | b'-') = self.peek() {
                self.advance(1);
            }
            self.digits();
            self.fits = false;
        }
        if self.fits { Kind::Integer } else { Kind::Number }
    }

    /// Consumes digits, one at least, with which the integer goes on.
    fn digits(&mut self) {
        let start = self.rest.len();
        while let Some((&byte @ b'0'..=b'9', tail)) = self.rest.split_first() {
            self.fits &= multiply(&mut self.integer, 10, byte & 15);
            self.rest = tail;
        }
        if self.rest.len() == start {
            self.stop(Expected::Digit);
        }
    }

    /// Passes over one value of any kind.
    pub(crate) fn value(&mut self) {
        let depth = self.depth;
        self.token();
        self.leave(depth);
    }

    /// Passes over what is left of the containers beyond a depth.
    pub(crate) fn leave(&mut self, depth: u32) {
        #[cfg(feature = "fast")]
        self.skip(depth);
        #[cfg(not(feature = "fast"))]
        while self.depth > depth {
            if self.goes_on() {
                if self.in_object() {
                    self.key();
                }
                self.token();
            }
        }
    }

    /// Passes over a scalar, or opens a container.
    pub(crate) fn token(&mut self) -> Kind {
        let (word, kind): (&[u8], Kind) = match self.peek() {
            Some(b'"') => {
                self.advance(1);
                self.string();
                return Kind::String;
            }
            Some(b'-' | b'0'..=b'9') => return self.number(),
            Some(b'{') => {
                self.open(true);
                return Kind::Object;
            }
            Some(b'[') => {
                self.open(false);
                return Kind::Array;
            }
            Some(b't') => (b"true", Kind::Bool),
            Some(b'f') => (b"false", Kind::Bool),
            Some(b'n') => (b"null", Kind::Null),
            _ => {
                self.stop(Expected::Value);
                return Kind::Null;
            }
        };
        for &byte in word {
            if !self.take(byte) {
                self.stop(Expected::Literal);
            }
        }
        kind
    }
}

/// Which of the open containers are objects: a bit each, the innermost lowest.
#[cfg(feature = "fast")]
#[derive(Default)]
struct Nest(u128);

#[cfg(feature = "fast")]
impl Nest {
    #[inline]
    fn open(&mut self, _depth: u32, object: bool) {
        self.0 = self.0 << 1 | u128::from(object);
    }

    #[inline]
    fn open_arrays(&mut self, arrays: u32) {
        self.0 <<= arrays & 127;
    }

    #[inline]
    fn close(&mut self, containers: u32) {
        self.0 >>= containers & 127;
    }

    #[inline]
    fn in_object(&self, _depth: u32) -> bool {
        self.0 & 1 == 1
    }

    /// Whether so many of the innermost are arrays.
    #[inline]
    fn in_arrays(&self, arrays: u32) -> bool {
        self.0.trailing_zeros() >= arrays
    }
}

/// Which of the open containers are objects: a bit for each depth.
#[cfg(not(feature = "fast"))]
#[derive(Default)]
struct Nest([u32; 4]);

#[cfg(not(feature = "fast"))]
#[expect(clippy::indexing_slicing, reason = "two bits are always a place of 4")]
impl Nest {
    fn open(&mut self, depth: u32, object: bool) {
        let bit = 1_u32 << (depth & 31);
        let word = &mut self.0[widen(depth >> 5 & 3)];
        *word = if object { *word | bit } else { *word & !bit };
    }

    fn in_object(&self, depth: u32) -> bool {
        self.0[widen(depth >> 5 & 3)] >> (depth & 31) & 1 == 1
    }
}

/// Whether JSON passes over the byte between tokens.
pub(crate) fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
