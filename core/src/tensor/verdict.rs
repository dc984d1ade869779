//! Broken rules become the verdict: the one that stands first in the table, and of those the first in the file.

use crate::dtype::DtypeSet;
use crate::error::{Error, ErrorKind};
use crate::json::JsonStr;
use crate::span::narrow;
use crate::tensor::frame::in_file;

/// The worst that was found so far.
pub(crate) struct Verdict {
    worst: Option<Error>,
    allowed: DtypeSet,
    /// Between the quotes of the key whose value is being scanned.
    name: (u32, u32),
}

impl Verdict {
    pub(crate) fn new(allowed: DtypeSet) -> Self {
        Self { worst: None, allowed, name: (0, 0) }
    }

    /// The dtypes that the caller allows.
    #[inline]
    pub(crate) fn allowed(&self) -> DtypeSet {
        self.allowed
    }

    /// What follows is about the key whose opening quote stands at this place of the header.
    #[inline]
    pub(crate) fn about(&mut self, key_at: u32, key: JsonStr<'_>) {
        let begin = key_at.wrapping_add(1);
        self.name = (begin, begin.wrapping_add(narrow(key.as_spelled().len())));
    }

    /// Notes a broken rule at this place of the header.
    #[cold]
    pub(crate) fn record(&mut self, kind: ErrorKind, at: u32) {
        self.adopt(Error::new(kind, in_file(at)), false);
    }

    /// The first duplicate, of a verdict that was asked for nothing else.
    pub(crate) fn duplicate(&self) -> Option<Error> {
        self.worst
    }

    /// Takes over a broken rule that another verdict found, under the name that it found or under this one's.
    #[cold]
    pub(crate) fn adopt(&mut self, error: Error, keep_name: bool) {
        let error = if keep_name { error } else { error.named(self.name) };
        let rank = |error: &Error| (error.kind().rule(), error.at());
        if self.worst.is_none_or(|worst| rank(&error) < rank(&worst)) {
            self.worst = Some(error);
        }
    }

    /// The verdict so far.
    ///
    /// # Errors
    /// The first broken rule.
    pub(crate) fn settle(&self) -> Result<(), Error> {
        self.worst.map_or(Ok(()), Err)
    }
}
