//! Steps and the time since the last save become the question whether to save now.
//!
//! Whoever asks brings the time: there is no clock here, no heap and no panic.

use core::num::NonZeroU64;
use core::time::Duration;

/// When to save: after every K-th step and, if wished, when so much time has gone since the last save.
///
/// ```
/// use core::time::Duration;
/// use safestep_core::cadence::Cadence;
/// let cadence = Cadence::default().or_every(Duration::from_secs(900));
/// assert!(cadence.is_due(200, Duration::ZERO) && !cadence.is_due(201, Duration::from_secs(899)));
/// assert!(cadence.is_due(201, Duration::from_secs(900)));
/// assert_eq!(cadence.boundary_after(112_619), Some(112_700));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cadence {
    steps: NonZeroU64,
    time: Option<Duration>,
}

/// Every 100 steps.
impl Default for Cadence {
    fn default() -> Self {
        Self { steps: STEPS_DEFAULT, time: None }
    }
}

impl Cadence {
    /// After each step whose number is a multiple of `steps`.
    #[must_use]
    pub const fn every(steps: NonZeroU64) -> Self {
        Self { steps, time: None }
    }

    /// And when `time` has gone since the last save; after the next step, for nothing is saved inside of one.
    #[must_use]
    pub const fn or_every(self, time: Duration) -> Self {
        Self { time: Some(time), ..self }
    }

    /// The number of steps.
    #[must_use]
    pub const fn steps(&self) -> NonZeroU64 {
        self.steps
    }

    /// Whether to save after `step`, when the last save was so long ago. Nothing is to be saved before the first step.
    #[must_use]
    pub fn is_due(&self, step: u64, since_save: Duration) -> bool {
        self.is_boundary(step) || step > 0 && self.time.is_some_and(|time| since_save >= time)
    }

    /// Whether the number of steps alone asks for a save after `step`.
    #[must_use]
    pub fn is_boundary(&self, step: u64) -> bool {
        step > 0 && self.past_boundary(step) == 0
    }

    /// The next boundary behind `step`; `None` beyond `u64::MAX`.
    #[must_use]
    pub fn boundary_after(&self, step: u64) -> Option<u64> {
        step.wrapping_sub(self.past_boundary(step)).checked_add(self.steps.get())
    }

    /// How many steps it is since the boundary before.
    fn past_boundary(&self, step: u64) -> u64 {
        step.checked_rem(self.steps.get()).unwrap_or_default()
    }
}

const STEPS_DEFAULT: NonZeroU64 = NonZeroU64::MIN.saturating_add(99);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_are_multiples() {
        for steps in [1, 2, 3, 100, 1 << 40, u64::MAX] {
            let cadence = Cadence::every(NonZeroU64::new(steps).unwrap());
            let around = [0, 1, 2, 3, 99, 100, 101, steps - 1, steps, steps.saturating_add(1), u64::MAX];
            for step in around {
                assert_eq!(cadence.is_boundary(step), step > 0 && step % steps == 0, "{step} by {steps}");
                let next = (u128::from(step / steps) + 1) * u128::from(steps);
                assert_eq!(
                    cadence.boundary_after(step).map(u128::from),
                    u64::try_from(next).ok().map(u128::from)
                );
            }
        }
    }

    #[test]
    fn time_counts_from_the_last_save() {
        let second = Duration::from_secs(1);
        let plain = Cadence::default();
        assert_eq!(plain.steps().get(), 100);
        let timed = plain.or_every(second);
        for (step, since, by_time) in [
            (0, Duration::MAX, false),
            (1, Duration::ZERO, false),
            (1, second - Duration::from_nanos(1), false),
            (1, second, true),
            (u64::MAX, Duration::MAX, true),
        ] {
            assert_eq!((plain.is_due(step, since), timed.is_due(step, since)), (false, by_time), "{step}");
        }
        assert!(plain.or_every(Duration::ZERO).is_due(1, Duration::ZERO));
    }
}
