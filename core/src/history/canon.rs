//! Lines in the order of the file become the stretches of it that are canonical: what a resume supersedes, in a few words
//! a resume, however many lines there are.
//!
//! A stretch begins where the run went on, and of what stands from there to the next stretch the entries up to its last
//! step are canonical. A resume lowers the last step of the stretch before it and takes those away that lie beyond:
//!
//! ```text
//! lines      1 2 3 4 5   resume 3   4 5 6   resume 4   5 6 7
//! stretches  [1..=3                 [4..=4             [5..
//! ```
//!
//! Then the file is read a second time, and each entry asks its stretch.

use crate::history::Line;
use crate::span::count;

/// A part of the file, up to where the next one begins, and the last step of it that is canonical.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    begin: u64,
    first: u64,
    last: u64,
}

/// The stretches so far are in the first [`len`](Self::len) places of what the caller lends at each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Canon {
    used: usize,
    /// The step after which the run would go on: that of the newest entry, or of a resume before it.
    newest: Option<u64>,
    /// The next entry begins a stretch.
    broken: bool,
}

/// More stretches are needed than were lent. Nothing has changed: the same line can be added again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StretchesTooFew {
    /// How many this line needs.
    pub needed: u64,
}

impl core::error::Error for StretchesTooFew {}

impl core::fmt::Display for StretchesTooFew {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} stretches are needed", self.needed)
    }
}

impl Stretch {
    /// Where it begins, as the caller counts.
    #[must_use]
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// The step of its first entry.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Whether its entry of this step is canonical.
    #[must_use]
    pub fn keeps(&self, step: u64) -> bool {
        step <= self.last
    }
}

impl Canon {
    /// Takes note of the line at the place `at`; places ascend. The same stretches are lent each time, or more.
    ///
    /// # Errors
    /// [`StretchesTooFew`].
    pub fn add(
        &mut self,
        stretches: &mut [Stretch],
        line: &Line<'_>,
        at: u64,
    ) -> Result<(), StretchesTooFew> {
        match *line {
            Line::Resume(step) => {
                if self.newest.is_some_and(|newest| newest > step) {
                    self.forget_behind(stretches, Some(step));
                    lower(stretches.get_mut(..self.used).unwrap_or_default(), Some(step));
                    (self.newest, self.broken) = (Some(step), true);
                }
                Ok(())
            }
            Line::Entry(entry) => self.entry(stretches, entry.step(), at),
        }
    }

    /// How many stretches there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether there are none, and so no canonical entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    fn entry(&mut self, stretches: &mut [Stretch], step: u64, at: u64) -> Result<(), StretchesTooFew> {
        let goes_back = self.newest.is_some_and(|newest| newest >= step);
        let mut after = Self { newest: Some(step), ..*self };
        if goes_back {
            after.forget_behind(stretches, step.checked_sub(1));
        }
        if goes_back || after.broken || after.used == 0 {
            let needed = after.used.saturating_add(1);
            let Some((stretch, before)) = stretches.get_mut(..needed).and_then(|lent| lent.split_last_mut())
            else {
                return Err(StretchesTooFew { needed: count(needed) });
            };
            if goes_back {
                lower(before, step.checked_sub(1));
            }
            *stretch = Stretch { begin: at, first: step, last: u64::MAX };
            (after.used, after.broken) = (needed, false);
        }
        *self = after;
        Ok(())
    }

    /// Stretches that begin beyond `last` are gone. Their bytes belong to the one before them, which keeps none of it.
    fn forget_behind(&mut self, stretches: &[Stretch], last: Option<u64>) {
        while let Some(place) = self.used.checked_sub(1)
            && stretches.get(place).is_some_and(|stretch| last.is_none_or(|last| stretch.first > last))
        {
            self.used = place;
        }
    }
}

/// Lowers the last step of the last stretch.
fn lower(stretches: &mut [Stretch], last: Option<u64>) {
    if let (Some(stretch), Some(last)) = (stretches.last_mut(), last) {
        stretch.last = stretch.last.min(last);
    }
}
