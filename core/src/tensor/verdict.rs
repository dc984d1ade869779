//! Broken rules become the verdict: the one that stands first in the table, and of those the first in the file.

use crate::dtype::DtypeSet;
use crate::error::{Error, ErrorKind};
use crate::json::{JsonStr, Kind, Scan};
use crate::rule::Rule;
use crate::span::narrow;
use crate::tensor::frame::in_file;

/// Whose name a duplicate key is reported under.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blamed {
    /// The key itself.
    Key,
    /// The tensor whose entry it stands in, of which the verdict knows.
    Tensor,
}

/// The worst that was found so far.
pub(crate) struct Verdict {
    worst: Error,
    /// That of the worst one's rule; none is as high as that of a verdict without broken rules.
    rank: u32,
    faults: u32,
    allowed: DtypeSet,
    /// Between the quotes of the key whose value is being scanned.
    pub(crate) name: (u32, u32),
}

/// Between the quotes of a key whose opening one stands at this place of the header.
#[inline]
pub(crate) fn name_span(key_at: u32, key: JsonStr<'_>) -> (u32, u32) {
    let begin = key_at.wrapping_add(1);
    (begin, begin.wrapping_add(narrow(key.as_spelled().len())))
}

impl Verdict {
    pub(crate) fn new(allowed: DtypeSet) -> Self {
        let none = Error::new(ErrorKind::Overflow, 0);
        Self { worst: none, rank: u32::MAX, faults: 0, allowed, name: (0, 0) }
    }

    /// The dtypes that the caller allows.
    #[inline]
    pub(crate) fn allowed(&self) -> DtypeSet {
        self.allowed
    }

    /// What follows is about the key whose opening quote stands at this place of the header.
    #[inline]
    pub(crate) fn about(&mut self, key_at: u32, key: JsonStr<'_>) {
        self.name = name_span(key_at, key);
    }

    /// How many broken rules were recorded.
    pub(crate) fn faults(&self) -> u32 {
        self.faults
    }

    /// Notes a broken rule at this place of the header.
    #[cold]
    pub(crate) fn record(&mut self, kind: ErrorKind, at: u32) {
        self.record_in_file(kind, in_file(at));
    }

    /// Notes a broken rule at this place of the file.
    #[cold]
    pub(crate) fn record_in_file(&mut self, mut kind: ErrorKind, at: u64) {
        self.faults = self.faults.wrapping_add(1);
        let rank = kind.rule().map_or(0, Rule::rank);
        if (rank, at) < (self.rank, self.worst.at().value()) {
            self.rank = rank;
            self.worst.become_with(&mut kind, at, self.name);
        }
    }

    /// Whether the rules R2.start to R2.trailing are kept.
    pub(crate) fn is_formed(&self) -> bool {
        self.rank >= Rule::Duplicate.rank()
    }

    /// Notes a key that stood before.
    #[cold]
    pub(crate) fn duplicate(&mut self, first_at: u32, key_at: u32, name: (u32, u32), blamed: Blamed) {
        if blamed == Blamed::Key {
            self.name = name;
        }
        self.record(ErrorKind::Duplicate { first: in_file(first_at) }, key_at);
    }

    /// Reads a value that must be of a kind, or opens it; the answer is whether it is. Else it is passed over, and the
    /// rule noted that it breaks.
    pub(crate) fn expect(&mut self, scan: &mut Scan<'_>, kind: Kind, rule: Rule) -> bool {
        let (at, depth) = (scan.at(), scan.depth);
        let found = scan.token();
        if found != kind {
            scan.leave(depth);
            self.record(ErrorKind::of_kind(rule, found), at);
        }
        found == kind
    }

    /// The verdict so far.
    ///
    /// # Errors
    /// The first broken rule.
    pub(crate) fn settle(&self) -> Result<(), Error> {
        if self.rank == u32::MAX { Ok(()) } else { Err(self.worst) }
    }
}
