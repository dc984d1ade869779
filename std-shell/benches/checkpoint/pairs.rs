//! Two contenders become the median of the ratios of their times.

use std::time::{Duration, Instant};

use crate::report::{self, Report};

/// How many times as long `yardstick` takes as `ours`: the median over so many pairs, and the middle half of them. Both are done once
/// before that, untimed.
pub(crate) fn ratio(
    rounds: usize,
    mut ours: impl FnMut() -> Duration,
    mut yardstick: impl FnMut() -> Duration,
) -> Ratio {
    ours();
    yardstick();
    let mut ratios = Vec::new();
    let mut seconds = Vec::new();
    for round in 0..rounds {
        let (one, other) = if round % 2 == 0 {
            let one = ours();
            (one, yardstick())
        } else {
            let other = yardstick();
            (ours(), other)
        };
        ratios.push(other.as_secs_f64() / one.as_secs_f64());
        seconds.push(one.as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    seconds.sort_by(f64::total_cmp);
    let at = |part: usize| ratios[(ratios.len() - 1) * part / 4];
    Ratio { median: at(2), low: at(1), high: at(3), seconds: seconds[seconds.len() / 2] }
}

/// A median of ratios.
pub(crate) struct Ratio {
    pub(crate) median: f64,
    /// Where the middle half of the ratios begins.
    pub(crate) low: f64,
    /// Where it ends.
    pub(crate) high: f64,
    /// The median time of ours, for orientation only.
    pub(crate) seconds: f64,
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { median, low, high, seconds } = self;
        write!(f, "{median:.2}  ({low:.2} to {high:.2}; ours {})", report::time(seconds * 1e9))
    }
}

impl Ratio {
    /// Prints it, and notes it for the JSON file.
    pub(crate) fn tell(&self, section: &str, name: &str, over: &str, report: &mut Report) {
        println!("  {section}, over {over}: {self}");
        let Self { median, low, high, .. } = *self;
        report.note(
            &format!("{section}, over {over}"),
            name,
            &[("median", median), ("low", low), ("high", high)],
        );
    }
}

/// How long something takes.
pub(crate) fn timed(work: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}
