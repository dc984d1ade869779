//! Findings become text: for people, for programs, and for the one who waits.
//!
//! All printing goes through the [`Screen`], which decides once what the terminal can take. Names and messages come from
//! strangers, so whatever goes out has been made safe for a terminal.

mod words;

mod table;

mod totals;

mod numbers;

mod histogram;

pub(crate) mod human;

pub(crate) mod json;

pub(crate) mod show;

pub(crate) mod tokens;

mod curve;

pub(crate) mod run;

pub(crate) mod steps;

pub(crate) mod train;

pub(crate) mod tour;

use std::cmp::Reverse;
use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use clap::ColorChoice;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use safestep::{BadFile, Cause, Converted, ConvertedPair, Error, Model, terminal_safe};
use safestep_core::{Dtype, Entry, Notes};

pub(crate) use curve::Curve;
pub(crate) use show::{Form, Part, Picked};
pub(crate) use totals::Totals;
pub(crate) use words::{bytes, grouped, plural, shown as tensor_name};

/// What a report of `inspect` is told, in this order.
pub(crate) trait Inspecting {
    /// Before the first file.
    fn begin(&mut self, screen: &mut Screen) -> io::Result<()>;

    /// A good file.
    fn file(&mut self, screen: &mut Screen, shown: &Shown<'_>) -> io::Result<()>;

    /// After the last of `files` good files.
    fn end(&mut self, screen: &mut Screen, totals: &Totals, files: u64) -> io::Result<()>;
}

/// What a report of `check` is told.
pub(crate) trait Checking {
    /// A good file and its notes.
    fn good(&self, screen: &mut Screen, path: &Path, notes: Notes<'_>) -> io::Result<()>;

    /// A bad file.
    fn bad(&self, screen: &mut Screen, path: &Path, bad: &BadFile) -> io::Result<()>;

    /// All files were looked at: so many of each kind.
    fn end(&self, screen: &mut Screen, good: u64, bad: u64, unreadable: u64) -> io::Result<()>;
}

/// What a report of `convert` is told.
pub(crate) trait Converting {
    /// The new file is in its place.
    fn converted(&self, screen: &mut Screen, output: &Path, done: &Converted) -> io::Result<()>;
}

/// What a conversion did, the largest dtype first, and what was copied last.
fn in_order(done: &Converted) -> Vec<((Dtype, Dtype), ConvertedPair)> {
    let mut pairs: Vec<_> = done.pairs.iter().map(|(&dtypes, &pair)| (dtypes, pair)).collect();
    pairs.sort_by_key(|&((from, to), _)| (from == to, Reverse((from, to))));
    pairs
}

/// Why a report that reads while it prints could not be finished.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The file could not be read.
    Read(Error),
    /// The output could not be written.
    Write(io::Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Read(error)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// A file, and the tensors of it that are to be shown.
pub(crate) struct Shown<'a> {
    /// What the file is called.
    pub(crate) path: &'a Path,
    pub(crate) model: &'a Model,
    pub(crate) entries: &'a [Entry<'a>],
}

/// Standard output and standard error, and what they can take.
pub(crate) struct Screen {
    out: BufWriter<StdoutLock<'static>>,
    /// The colours of standard output.
    palette: Palette,
    /// The columns of standard output, if it is a terminal.
    width: Option<usize>,
    /// The colours of standard error.
    talk: Palette,
    /// Whether somebody watches standard error, on a terminal that can draw a bar.
    watched: bool,
}

impl Screen {
    /// Decides from the terminal, the environment (NO_COLOR and its like) and the flag.
    pub(crate) fn new(color: ColorChoice) -> Self {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let width = terminal_size::terminal_size_of(&stdout).map(|(width, _)| usize::from(width.0));
        Self {
            palette: Palette::new(color, AutoStream::choice(&stdout)),
            talk: Palette::new(color, AutoStream::choice(&stderr)),
            // A terminal that cannot draw (TERM=dumb) is talked to in plain lines.
            watched: stderr.is_terminal() && !ProgressDrawTarget::stderr().is_hidden(),
            width,
            out: BufWriter::new(stdout.lock()),
        }
    }

    /// Where data goes.
    pub(crate) fn out(&mut self) -> &mut impl Write {
        &mut self.out
    }

    /// Lets go of what was printed.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Says on standard error that something went wrong; after what was printed before it.
    pub(crate) fn complain(&mut self, what: &str) {
        // Whoever reads our output learns of its end from the next write to it.
        let _ = self.out.flush();
        let Palette { bad, .. } = self.talk;
        say(&format!("{bad}safestep{bad:#}: {}\n", terminal_safe(what)));
    }

    /// The same of a file.
    pub(crate) fn complain_of(&mut self, error: &Error) {
        let _ = self.out.flush();
        match error.because() {
            Cause::Bad(bad) => say(&human::verdict(error.path(), bad, &self.talk)),
            Cause::BadShard(bad) => say(&tokens::verdict(error.path(), bad, &self.talk)),
            _ => self.complain(&error.to_string()),
        }
    }

    /// Says something on standard error that is nothing wrong.
    pub(crate) fn remark(&mut self, what: &str) {
        let _ = self.out.flush();
        let Palette { dim, .. } = self.talk;
        say(&format!("{dim}{what}{dim:#}\n"));
    }

    /// A bar that shows how far a long piece of work is, if somebody watches.
    pub(crate) fn bar(&self) -> Bar {
        Bar { watched: self.watched, begun: None }
    }
}

/// Says something on standard error. If nobody listens, nothing is lost.
pub(crate) fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// The same of several lines that come from elsewhere.
pub(crate) fn say_lines(text: &str) {
    for line in text.lines() {
        say(&format!("{}\n", terminal_safe(line)));
    }
}

/// The colours, or none.
#[derive(Clone, Copy, Debug, Default)]
struct Palette {
    strong: Style,
    dim: Style,
    good: Style,
    bad: Style,
    note: Style,
}

impl Palette {
    /// The flag's word counts; if it leaves it open, that of the stream.
    fn new(flag: ColorChoice, stream: anstream::ColorChoice) -> Self {
        let colours = match flag {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => stream != anstream::ColorChoice::Never,
        };
        if !colours {
            return Self::default();
        }
        Self {
            strong: Style::new().bold(),
            dim: Style::new().dimmed(),
            good: AnsiColor::Green.on_default(),
            bad: AnsiColor::Red.on_default().bold(),
            note: AnsiColor::Yellow.on_default(),
        }
    }
}

/// How far a rewrite or a conversion is, on standard error. What is over in a moment gets no bar.
pub(crate) struct Bar {
    watched: bool,
    begun: Option<Begun>,
}

/// A bar from the beginning of the work on, so that its rate is the work's; it is seen only after a moment.
struct Begun {
    at: Instant,
    bar: ProgressBar,
    shown: bool,
}

impl Bar {
    /// Takes the bar away.
    pub(crate) fn clear(&mut self) {
        if let Some(begun) = self.begun.take() {
            begun.bar.finish_and_clear();
        }
    }

    /// `done` of `total` bytes are through.
    pub(crate) fn progress(&mut self, done: u64, total: u64) {
        if !self.watched {
            return;
        }
        let begun = self.begun.get_or_insert_with(|| {
            let style = ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar());
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
            Begun { at: Instant::now(), bar: bar.with_style(style), shown: false }
        });
        if !begun.shown && begun.at.elapsed() > MOMENT {
            begun.bar.set_draw_target(ProgressDrawTarget::stderr());
            begun.shown = true;
        }
        begun.bar.set_position(done);
    }
}

const MOMENT: Duration = Duration::from_millis(300);

const BAR: &str = "{wide_bar} {percent:>3} %  {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left";

#[cfg(test)]
mod tests {
    use super::*;

    /// What was done before the bar was seen was not done in no time.
    #[test]
    fn the_rate_of_a_bar_is_that_of_the_work() {
        let mut bar = Bar { watched: true, begun: None };
        let began = Instant::now();
        bar.progress(0, 1 << 40);
        while began.elapsed() < MOMENT * 2 {
            std::thread::sleep(Duration::from_millis(20));
            let done = (began.elapsed().as_secs_f64() * 1e9) as u64;
            bar.progress(done, 1 << 40);
            let rate = bar.begun.as_ref().map_or(0.0, |begun| begun.bar.per_sec());
            assert!(rate < 2e9, "{rate}");
        }
        assert!(bar.begun.as_ref().is_some_and(|begun| begun.shown));
        bar.clear();
        let mut unwatched = Bar { watched: false, begun: None };
        unwatched.progress(1, 2);
        assert!(unwatched.begun.is_none());
    }
}
