//! A cadence and a clock become the answer whether a save is due.

use std::time::Instant;

use safestep_core::cadence::Cadence;

/// A cadence, and when the last save was.
#[derive(Clone, Copy, Debug)]
pub struct SaveClock {
    cadence: Cadence,
    saved: Instant,
}

impl SaveClock {
    /// A clock that runs from now on.
    pub fn new(cadence: Cadence) -> Self {
        Self::from(cadence, Instant::now())
    }

    /// A clock that runs from some moment on.
    pub fn from(cadence: Cadence, now: Instant) -> Self {
        Self { cadence, saved: now }
    }

    /// The cadence.
    pub fn cadence(&self) -> Cadence {
        self.cadence
    }

    /// Whether a save is due after `step`.
    pub fn is_due(&self, step: u64, now: Instant) -> bool {
        self.cadence.is_due(step, now.saturating_duration_since(self.saved))
    }

    /// Counts the time from here on.
    pub fn saved(&mut self, now: Instant) {
        self.saved = now;
    }
}
