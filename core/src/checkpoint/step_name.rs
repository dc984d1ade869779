//! A step becomes the name of its directory, and a name its step, or it is foreign.
//!
//! `step-` and the step in decimal, padded with zeros to six digits, longer from 1 000 000 on. Each step has one name, so
//! `step-7` and `step-0000007` are nobody's.

use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

/// The name of a checkpoint directory. Order is that of the steps, not of the text.
///
/// ```
/// use safestep_core::checkpoint::StepName;
/// assert_eq!(StepName::of(50).as_str(), "step-000050");
/// assert_eq!(StepName::parse("step-1000000").map(|name| name.step()), Some(1_000_000));
/// assert_eq!(StepName::parse("step-50"), None);
/// ```
#[derive(Clone, Copy)]
pub struct StepName {
    step: u64,
    text: [u8; TEXT_BYTES_MAX],
    len: u8,
}

impl StepName {
    /// The name of a step.
    #[must_use]
    pub fn of(step: u64) -> Self {
        let mut text = [0; TEXT_BYTES_MAX];
        let mut rest = step;
        let mut digits = [b'0'; DIGITS_MAX];
        let mut used = 0_usize;
        for digit in digits.iter_mut().rev() {
            if rest == 0 && used >= DIGITS_MIN {
                break;
            }
            let [units, ..] = (rest % 10).to_le_bytes();
            *digit = b'0' | units;
            rest /= 10;
            used = used.wrapping_add(1);
        }
        let written = digits.get(DIGITS_MAX.wrapping_sub(used)..).unwrap_or_default();
        let mut len = 0_u8;
        for (to, from) in text.iter_mut().zip(PREFIX.iter().chain(written)) {
            *to = *from;
            len = len.wrapping_add(1);
        }
        Self { step, text, len }
    }

    /// The step name that this is, or `None` if it is a foreign name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let digits = name.as_bytes().strip_prefix(PREFIX)?;
        let mut step = 0_u64;
        for byte in digits {
            let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
            step = step.checked_mul(10)?.checked_add(u64::from(digit))?;
        }
        // There is one spelling of each step; any other, of too few or too many digits, is foreign.
        Some(Self::of(step)).filter(|own| own.as_str() == name)
    }

    /// The step.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let text = self.text.get(..usize::from(self.len)).unwrap_or_default();
        core::str::from_utf8(text).unwrap_or_default()
    }
}

impl PartialEq for StepName {
    fn eq(&self, other: &Self) -> bool {
        self.step == other.step
    }
}

impl Eq for StepName {}

impl PartialOrd for StepName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for StepName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.step.cmp(&other.step)
    }
}

impl Hash for StepName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.step.hash(state);
    }
}

impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

const PREFIX: &[u8; 5] = b"step-";
const DIGITS_MIN: usize = 6;
/// Those of `u64::MAX`.
const DIGITS_MAX: usize = 20;
const TEXT_BYTES_MAX: usize = PREFIX.len() + DIGITS_MAX;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString as _;

    #[test]
    fn steps_have_one_name_each() {
        let table = [
            (0, "step-000000"),
            (7, "step-000007"),
            (50, "step-000050"),
            (999_999, "step-999999"),
            (1_000_000, "step-1000000"),
            (12_345_678, "step-12345678"),
            (u64::MAX, "step-18446744073709551615"),
        ];
        for (step, name) in table {
            assert_eq!(StepName::of(step).to_string(), name);
            assert_eq!(StepName::parse(name).unwrap().step(), step);
        }
    }

    #[test]
    fn other_names_are_foreign() {
        let table = [
            "",
            "step-",
            "step-7",
            "step-00007",
            "step-0000007",
            "step-01000000",
            "step-00000a",
            "step-00000:",
            "step-+00007",
            "step--00007",
            "step-000007 ",
            " step-000007",
            "step-000007.tmp",
            "Step-000007",
            "step_000007",
            "step-18446744073709551616",
            "step-99999999999999999999999",
            "LATEST",
            "step-00000\u{661}",
        ];
        for name in table {
            assert_eq!(StepName::parse(name), None, "{name}");
        }
    }

    #[test]
    fn order_is_by_number() {
        assert!(StepName::of(999_999) < StepName::of(1_000_000));
        assert!(StepName::of(999_999).as_str() > StepName::of(1_000_000).as_str());
    }
}
