//! Steps of a training become a bar with loss and tokens a second, or plain lines where nobody watches.

use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use super::{Screen, say};

/// How far a training is, on standard error.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    began: Instant,
    max_steps: u64,
    tokens: u64,
    loss: f64,
}

impl Progress {
    /// A training of `max_steps` steps, of which some are done.
    pub(crate) fn new(screen: &Screen, step: u64, max_steps: u64) -> Self {
        let bar = screen.watched.then(|| {
            let style = ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(max_steps).with_style(style).with_position(step)
        });
        Self { bar, began: Instant::now(), max_steps, tokens: 0, loss: f64::NAN }
    }

    /// A step is done.
    pub(crate) fn step(&mut self, step: u64, loss: f64, tokens: u64) {
        (self.tokens, self.loss) = (self.tokens.saturating_add(tokens), loss);
        if let Some(bar) = &self.bar {
            bar.set_position(step);
            bar.set_message(self.figures());
        }
    }

    /// A step is durable.
    pub(crate) fn saved(&self, step: u64) {
        if self.bar.is_none() {
            say(&format!("step {step}: {}\n", self.figures()));
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

    fn figures(&self) -> String {
        let rate = self.tokens as f64 / self.began.elapsed().as_secs_f64().max(1e-9);
        format!("loss {:.4}, {rate:.0} tokens/s", self.loss)
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

const BAR: &str = "{wide_bar} {pos} of {len} steps, {msg}, {eta} left";
