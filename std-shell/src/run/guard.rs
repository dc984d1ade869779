//! Cadence, clock and signals become one answer after each step: go on, save, or save and stop.
//!
//! ```
//! use safestep::run::{Cadence, Guard, Next, Signals};
//!
//! let mut guard = Guard::new(Cadence::default(), Signals::install()?);
//! for step in 1..=250 {
//!     // train a step
//!     match guard.after_step(step) {
//!         Next::Go => {}
//!         Next::Save => assert!(step % 100 == 0), // save; then stop too if `guard.signals().stop_asked()` by now
//!         Next::SaveAndStop => return Ok(()), // save, and exit with 0
//!     }
//! }
//! # Ok::<(), std::io::Error>(())
//! ```

use std::time::Instant;

use safestep_core::cadence::Cadence;

use super::cadence::SaveClock;
use super::signals::Signals;

/// What a training loop does after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// The next step.
    Go,
    /// A save, then the next step.
    Save,
    /// A save, then the end with exit code 0.
    SaveAndStop,
}

/// When a save that SIGUSR1 asks for is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDemand {
    /// After the step.
    #[default]
    AfterTheStep,
    /// At the next boundary of the cadence, so that snapshots stand at steps that others expect.
    AtTheBoundary,
}

/// Watches over a training loop.
#[derive(Debug)]
pub struct Guard {
    clock: SaveClock,
    signals: Signals,
    on_demand: OnDemand,
    /// A save was asked for and not done yet.
    asked: bool,
}

impl Guard {
    /// A guard whose clock runs from now on.
    pub fn new(cadence: Cadence, signals: Signals) -> Self {
        Self { clock: SaveClock::new(cadence), signals, on_demand: OnDemand::default(), asked: false }
    }

    /// Chooses when a save that SIGUSR1 asks for is done.
    #[must_use]
    pub fn on_demand(self, on_demand: OnDemand) -> Self {
        Self { on_demand, ..self }
    }

    /// The signals, to look at inside of a step that takes long.
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// What to do after `step`, the number of steps that are done. Who is told to save is taken to do it.
    pub fn after_step(&mut self, step: u64) -> Next {
        self.after_step_at(step, Instant::now())
    }

    /// The same at some moment.
    pub fn after_step_at(&mut self, step: u64, now: Instant) -> Next {
        self.asked |= self.signals.take_save();
        // Asked after that: a stop is never overlooked for a save.
        let stop = self.signals.stop_asked();
        if !stop && !self.clock.is_due(step, now) && !self.asked_for_now(step) {
            return Next::Go;
        }
        self.asked = false;
        self.clock.saved(now);
        if stop { Next::SaveAndStop } else { Next::Save }
    }

    fn asked_for_now(&self, step: u64) -> bool {
        self.asked
            && match self.on_demand {
                OnDemand::AfterTheStep => true,
                OnDemand::AtTheBoundary => self.clock.cadence().is_boundary(step),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU64;
    use std::time::Duration;

    /// Steps of a second each; who asks for what before which step; the answers other than `Go`.
    fn answers(
        cadence: Cadence,
        on_demand: OnDemand,
        saves: &[u64],
        stop: Option<u64>,
        steps: u64,
    ) -> Vec<(u64, Next)> {
        let signals = Signals::detached();
        let mut guard = Guard::new(cadence, signals.clone()).on_demand(on_demand);
        let began = Instant::now();
        let ask = |step| {
            saves.iter().filter(|&&at| at == step).for_each(|_| signals.ask_to_save());
            if stop == Some(step) {
                signals.ask_to_stop();
            }
        };
        let answers = (1..=steps).map(|step| {
            ask(step);
            (step, guard.after_step_at(step, began + Duration::from_secs(step)))
        });
        answers.filter(|(_, next)| *next != Next::Go).collect()
    }

    #[test]
    fn the_answers() {
        use Next::{Save, SaveAndStop};
        use OnDemand::{AfterTheStep, AtTheBoundary};
        let by_ten = Cadence::every(NonZeroU64::new(10).unwrap());
        let never = Cadence::every(NonZeroU64::MAX);
        let by_time = never.or_every(Duration::from_secs(7));
        let table = [
            (by_ten, AfterTheStep, &[][..], None, vec![(10, Save), (20, Save)]),
            (
                by_ten,
                AfterTheStep,
                &[3, 3, 3, 12, 20],
                None,
                vec![(3, Save), (10, Save), (12, Save), (20, Save)],
            ),
            (by_ten, AtTheBoundary, &[3, 3, 12], None, vec![(10, Save), (20, Save)]),
            (by_ten, AfterTheStep, &[4], Some(4), (4..=25).map(|step| (step, SaveAndStop)).collect()),
            (by_ten, AtTheBoundary, &[], Some(25), vec![(10, Save), (20, Save), (25, SaveAndStop)]),
            (never, AtTheBoundary, &[1], None, vec![]),
            (by_time, AfterTheStep, &[], None, vec![(7, Save), (14, Save), (21, Save)]),
            // A save starts the clock anew, whoever asked for it.
            (by_time, AfterTheStep, &[5], None, vec![(5, Save), (12, Save), (19, Save)]),
        ];
        for (cadence, on_demand, saves, stop, expected) in table {
            assert_eq!(answers(cadence, on_demand, saves, stop, 25), expected, "{saves:?} {stop:?}");
        }
    }
}
