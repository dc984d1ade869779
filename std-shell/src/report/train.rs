//! Steps of a training become a bar with loss and tokens a second, or plain lines where nobody watches.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::{Screen, say};

/// How far a training is, on standard error.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    began: Instant,
    max_steps: u64,
    tokens: u64,
    /// That of the last step, if there was one.
    loss: Option<f64>,
    /// Some loss was not finite, which was said.
    diverged: bool,
    pace: Pace,
}

impl Progress {
    /// A training of `max_steps` steps, of which some are done.
    pub(crate) fn new(screen: &Screen, step: u64, max_steps: u64) -> Self {
        let bar = screen.watched.then(|| {
            let style = ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(max_steps).with_style(style).with_position(step)
        });
        let began = Instant::now();
        Self { bar, began, max_steps, tokens: 0, loss: None, diverged: false, pace: Pace(began) }
    }

    /// A step is done.
    pub(crate) fn step(&mut self, step: u64, loss: f64, tokens: u64) {
        (self.tokens, self.loss) = (self.tokens.saturating_add(tokens), Some(loss));
        match &self.bar {
            Some(bar) => {
                bar.set_position(step);
                bar.set_message(self.figures().unwrap_or_default());
            }
            None if self.pace.is_due(Instant::now()) => self.plain(step),
            None => {}
        }
        if !loss.is_finite() && !self.diverged {
            self.diverged = true;
            self.complain(&format!("the loss of step {step} is {loss}; later ones are not told of"));
        }
    }

    /// A step is durable.
    pub(crate) fn saved(&mut self, step: u64) {
        if self.bar.is_none() {
            self.plain(step);
        }
        self.line(&format!("saved {step}"));
    }

    /// The run was asked to stop.
    pub(crate) fn stopped(&self, step: u64) {
        self.clear();
        self.line(&format!("stopped after step {step} of {}; --resume goes on", self.max_steps));
    }

    /// All steps are done.
    pub(crate) fn finished(&self, step: u64, eval_loss: Option<f64>) {
        self.clear();
        let loss = eval_loss.map_or("no number".into(), |loss| format!("{loss:.4}"));
        self.line(&format!("finished {step}, evaluation loss {loss}"));
    }

    /// Something went wrong that ends nothing.
    pub(crate) fn complain(&self, what: &str) {
        self.line(&format!("safestep: {}", safestep::terminal_safe(what)));
    }

    /// Loss and rate; nothing before the first step.
    fn figures(&self) -> Option<String> {
        let rate = self.tokens as f64 / self.began.elapsed().as_secs_f64().max(1e-9);
        self.loss.map(|loss| format!("loss {loss:.4}, {rate:.0} tokens/s"))
    }

    fn plain(&mut self, step: u64) {
        if let Some(figures) = self.figures() {
            say(&format!("step {step}: {figures}\n"));
        }
        self.pace = Pace(Instant::now());
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say(&format!("{text}\n"))),
            None => say(&format!("{text}\n")),
        }
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// When the last plain line was said.
struct Pace(Instant);

impl Pace {
    fn is_due(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.0) >= PLAIN_EVERY
    }
}

/// A log of a day has some thousand lines then.
const PLAIN_EVERY: Duration = Duration::from_secs(10);

const BAR: &str = "{wide_bar} {pos} of {len} steps, {msg}, {eta} left";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_lines_are_paced() {
        let began = Instant::now();
        for (ms, due) in [(0, false), (9_999, false), (10_000, true), (60_000, true)] {
            assert_eq!(Pace(began).is_due(began + Duration::from_millis(ms)), due, "{ms}");
        }
    }

    #[test]
    fn no_figures_before_the_first_step() {
        let bar = None;
        let began = Instant::now();
        let mut progress =
            Progress { bar, began, max_steps: 0, tokens: 0, loss: None, diverged: false, pace: Pace(began) };
        assert_eq!(progress.figures(), None);
        progress.step(1, 2.0, 8);
        assert!(progress.figures().is_some_and(|figures| figures.starts_with("loss 2.0000, ")));
    }
}
