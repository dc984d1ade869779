//! Values as Python writes them become tokens: JSON, and its three words for numbers that JSON does not have.
//!
//! Only what reads files of foreign trainers comes here; models and manifests are JSON and nothing else.

use crate::json::{Kind, Scan};

/// A number that is not finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonFinite {
    /// Not a number.
    NaN,
    /// Beyond the largest.
    Infinity,
    /// Beyond the smallest.
    NegativeInfinity,
}

impl NonFinite {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::NaN, Self::Infinity, Self::NegativeInfinity];

    /// The word for it: in quotes in files of ours, without in those that Python's `json` writes.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::NaN => "NaN",
            Self::Infinity => "Infinity",
            Self::NegativeInfinity => "-Infinity",
        }
    }
}

impl Scan<'_> {
    /// Consumes a word without quotes, if one stands here.
    pub(crate) fn word(&mut self) -> Option<NonFinite> {
        let (number, tail) = NonFinite::ALL
            .into_iter()
            .find_map(|number| Some((number, self.rest.strip_prefix(number.word().as_bytes())?)))?;
        self.rest = tail;
        Some(number)
    }

    /// Passes over one value of any kind, words included.
    pub(crate) fn python_value(&mut self) {
        let depth = self.depth;
        self.python_token();
        self.python_leave(depth);
    }

    /// Passes over what is left of the containers beyond a depth, words included.
    pub(crate) fn python_leave(&mut self, depth: u32) {
        while self.depth > depth {
            if self.goes_on() {
                if self.in_object() {
                    self.key();
                }
                self.python_token();
            }
        }
    }

    /// Passes over a scalar or a word, or opens a container.
    pub(crate) fn python_token(&mut self) -> Kind {
        if self.word().is_some() { Kind::Number } else { self.token() }
    }
}
