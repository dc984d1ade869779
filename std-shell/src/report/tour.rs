//! The demo's progress becomes a story.

use std::io::{self, Write as _};
use std::path::Path;

use safestep::terminal_safe;

use super::{Palette, Screen};

/// The first lines.
pub(crate) fn opening(screen: &mut Screen, directory: &Path, kept: bool) -> io::Result<()> {
    let Palette { strong, .. } = screen.palette;
    let fate = if kept { "the files stay there" } else { "removed at the end; --dir DIR keeps the files" };
    writeln!(screen.out, "{strong}A tour of safestep{strong:#}, in {} ({fate})", terminal_safe(directory))
}

/// A step begins.
pub(crate) fn step(screen: &mut Screen, number: usize, of: usize, title: &str) -> io::Result<()> {
    let Palette { strong, .. } = screen.palette;
    writeln!(screen.out, "\n{strong}[{number}/{of}] {title}{strong:#}")?;
    screen.flush()
}

/// A line of the story.
pub(crate) fn story(screen: &mut Screen, what: &str) -> io::Result<()> {
    writeln!(screen.out, "{}", terminal_safe(what))
}

/// A breath.
pub(crate) fn pause(screen: &mut Screen) -> io::Result<()> {
    writeln!(screen.out)
}

/// A command that the reader could type for what follows.
pub(crate) fn command(screen: &mut Screen, words: &[&str]) -> io::Result<()> {
    let Palette { dim, .. } = screen.palette;
    writeln!(screen.out, "{dim}$ safestep {}{dim:#}", words.join(" "))
}

/// The end: a verb, and what was done, for each step.
pub(crate) fn summary(screen: &mut Screen, done: &[(&str, String)]) -> io::Result<()> {
    let Palette { strong, good, dim, .. } = screen.palette;
    writeln!(screen.out, "\n{strong}All went as it should:{strong:#}")?;
    for (verb, what) in done {
        writeln!(screen.out, "  {good}{verb:<9}{good:#}  {what}")?;
    }
    writeln!(screen.out, "\nNow with your own files:")?;
    for command in [
        "safestep inspect MODEL.safetensors",
        "safestep check --recursive DIRECTORY",
        "safestep train bigram --help",
    ] {
        writeln!(screen.out, "  {dim}$ {command}{dim:#}")?;
    }
    for command in OF_A_RUN {
        writeln!(screen.out, "  {dim}$ safestep {command}{dim:#}")?;
    }
    writeln!(screen.out, "  {dim}$ safestep --help{dim:#}")
}

/// What to do with a run.
const OF_A_RUN: [&str; 4] = ["history RUN", "steps RUN", "snapshot export RUN --out step.bin", "pivot RUN"];
