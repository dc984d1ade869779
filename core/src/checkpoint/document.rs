//! The text of a document becomes its members, one after the other; the first thing that is wrong ends it.
//!
//! What manifests and trainer states share: an object has exactly the keys that it should, each once, in any order.

use crate::checkpoint::error::{DocumentError, DocumentErrorKind};
use crate::json::{JsonStr, Kind, Scan, valid_bytes};
use crate::limits::DOCUMENT_BYTES_MAX;
use crate::span::{count, narrow, widen};

/// A document that is being read.
pub(crate) struct Document<'d> {
    text: &'d [u8],
    scan: Scan<'d>,
}

/// A string or a number, and where it stands.
#[derive(Clone, Copy)]
pub(crate) struct Token<'d> {
    pub(crate) kind: Kind,
    pub(crate) at: u32,
    /// The string, if it is one.
    pub(crate) string: JsonStr<'d>,
    /// The value, if it is an integer.
    pub(crate) integer: u64,
    /// As it is spelled.
    pub(crate) text: &'d [u8],
}

impl<'d> Document<'d> {
    /// Reads a text that is one object with exactly these keys; `member` takes the value of the key with the number that it
    /// gets.
    pub(crate) fn read<const N: usize>(
        text: &'d [u8],
        keys: &[&'static str; N],
        member: impl FnMut(&mut Self, usize) -> Result<(), DocumentError>,
    ) -> Result<(), DocumentError> {
        let mut document = Self::begin(text)?;
        document.object("the document", "an object", keys, member)?;
        document.end()
    }

    /// Reads a text that is one value of any kind, and keeps nothing of it.
    pub(crate) fn check(text: &'d [u8]) -> Result<(), DocumentError> {
        let mut document = Self::begin(text)?;
        document.scan.value();
        document.sound()?;
        document.end()
    }

    /// A document before its value: not too long, and all of it UTF-8.
    fn begin(text: &'d [u8]) -> Result<Self, DocumentError> {
        let found = count(text.len());
        if found > DOCUMENT_BYTES_MAX {
            let kind = DocumentErrorKind::TooLong { limit: DOCUMENT_BYTES_MAX, found };
            return Err(DocumentError::new(kind, 0));
        }
        let valid = valid_bytes(text);
        if let Some(&found) = text.get(valid) {
            return Err(DocumentError::new(DocumentErrorKind::Utf8 { found }, narrow(valid)));
        }
        let mut document = Self::at(text, 0);
        document.scan.white_space();
        Ok(document)
    }

    /// An error if more than white space stands behind the value.
    fn end(&mut self) -> Result<(), DocumentError> {
        self.scan.white_space();
        match self.scan.peek() {
            Some(found) => Err(DocumentError::new(DocumentErrorKind::Trailing { found }, self.scan.at())),
            None => Ok(()),
        }
    }

    /// The document from a place on at which a value stands.
    pub(crate) fn at(text: &'d [u8], at: u32) -> Self {
        Self { text, scan: Scan::new(text, widen(at)) }
    }

    /// The place of the next byte.
    pub(crate) fn place(&self) -> u32 {
        self.scan.at()
    }

    /// The next scalar, or the opening bracket of a container.
    pub(crate) fn token(&mut self) -> Result<Token<'d>, DocumentError> {
        let at = self.scan.at();
        let kind = self.scan.token();
        self.sound()?;
        let text = self.text.get(widen(at)..widen(self.scan.at())).unwrap_or_default();
        Ok(Token { kind, at, string: self.scan.string, integer: self.scan.integer, text })
    }

    /// The next value, which has to be of this kind.
    pub(crate) fn expect(
        &mut self,
        key: &'static str,
        kind: Kind,
        expected: &'static str,
    ) -> Result<Token<'d>, DocumentError> {
        let token = self.token()?;
        if token.kind == kind { Ok(token) } else { Err(token.is_not(key, expected)) }
    }

    /// The next value, an integer.
    pub(crate) fn integer(&mut self, key: &'static str) -> Result<u64, DocumentError> {
        self.expect(key, Kind::Integer, INTEGER).map(|token| token.integer)
    }

    /// The next value, an object with exactly these keys.
    pub(crate) fn object<const N: usize>(
        &mut self,
        key: &'static str,
        expected: &'static str,
        keys: &[&'static str; N],
        member: impl FnMut(&mut Self, usize) -> Result<(), DocumentError>,
    ) -> Result<(), DocumentError> {
        self.expect(key, Kind::Object, expected)?;
        self.members(keys, member)
    }

    /// The members of an object whose brace is open, to behind the closing one.
    pub(crate) fn members<const N: usize>(
        &mut self,
        keys: &[&'static str; N],
        mut member: impl FnMut(&mut Self, usize) -> Result<(), DocumentError>,
    ) -> Result<(), DocumentError> {
        let mut seen = [None::<u32>; N];
        while self.goes_on()? {
            self.scan.key();
            self.sound()?;
            let (at, name) = (self.scan.key_at, self.scan.string);
            let place = keys.iter().position(|known| name.is(known.as_bytes()));
            let Some((place, first)) = place.and_then(|place| Some((place, seen.get_mut(place)?))) else {
                return Err(DocumentError::new(DocumentErrorKind::KeyUnknown, at));
            };
            if let Some(first) = *first {
                return Err(DocumentError::new(DocumentErrorKind::KeyTwice { first: u64::from(first) }, at));
            }
            *first = Some(at);
            member(self, place)?;
        }
        let missing = keys.iter().zip(seen).find(|(_, seen)| seen.is_none());
        match missing {
            Some((expected, _)) => {
                // The end of the object is its closing brace, which has just been read.
                let at = self.scan.at().saturating_sub(1);
                Err(DocumentError::new(DocumentErrorKind::KeyMissing { expected }, at))
            }
            None => Ok(()),
        }
    }

    /// Whether the innermost container goes on.
    pub(crate) fn goes_on(&mut self) -> Result<bool, DocumentError> {
        let goes_on = self.scan.goes_on();
        self.sound()?;
        Ok(goes_on)
    }

    /// An error if the text has stopped being JSON.
    fn sound(&self) -> Result<(), DocumentError> {
        let Some((expected, at)) = self.scan.stop else { return Ok(()) };
        let found = self.text.get(widen(at)).copied();
        Err(DocumentError::new(DocumentErrorKind::Json { expected, found }, at))
    }
}

impl Token<'_> {
    /// The error that it is of the wrong kind.
    pub(crate) fn is_not(&self, key: &'static str, expected: &'static str) -> DocumentError {
        DocumentError::new(DocumentErrorKind::Value { key, expected, found: self.kind }, self.at)
    }

    /// The error that it does not say what it has to.
    pub(crate) fn says_not(&self, key: &'static str, expected: &'static str) -> DocumentError {
        DocumentError::new(DocumentErrorKind::Text { key, expected }, self.at)
    }
}

/// What most numbers have to be.
pub(crate) const INTEGER: &str = "an integer from 0 to 2^64 - 1";

/// What a digest has to be.
pub(crate) const SHA256: &str = "64 lower-case hexadecimal digits";
