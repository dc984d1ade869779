//! A new directory becomes a tour: what the program does, on small files of its own. The same each time.
//!
//! A step is a function. It shows something, and returns what the summary says of it.

mod broken;
mod disorder;
mod killed;
mod tiny;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use safestep::{Access, Cause, Error, Model, OsDisk, rewrite};
use safestep_core::{Entry, Limits};
use tempfile::TempDir;

use super::interrupt::Interrupt;
use super::{Exit, Failure};
use crate::report::{Checking as _, Inspecting as _, Screen, Shown, Totals, grouped, human, tour};

/// Take a tour with small files of its own
///
/// Writes a small model, inspects it, breaks copies of it and shows the verdicts, and repairs a file in disorder. Then it
/// trains a model, kills a second training with SIGKILL, resumes it, and compares the two byte for byte. It takes a moment
/// and touches nothing but its own directory.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// Make this directory and keep the files in it; without it, a temporary one is used and removed.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Examples:
  safestep demo
  safestep demo --dir tour && safestep check tour";

/// What the summary says of a step: a verb, and what was done.
type Done = (&'static str, String);

/// A part of the tour.
struct Step {
    title: &'static str,
    take: fn(&mut Tour<'_>) -> Result<Done, Failure>,
}

/// The steps, in order.
const STEPS: &[Step] = &[
    Step { title: "Write a small model with a tensor of every dtype", take: write_a_model },
    Step { title: "Inspect it", take: inspect_it },
    Step { title: "Break five copies of it, and judge them", take: break_copies },
    Step { title: "Repair a file that is good, but in disorder", take: repair },
    Step { title: "Pack a text into a shard of tokens", take: killed::pack_a_text },
    Step { title: "Train a model on it, undisturbed", take: killed::train },
    Step { title: "Train it again, killed on the way, and resumed", take: killed::be_killed },
    Step { title: "Compare the two runs, byte for byte", take: killed::compare },
    Step { title: "Break the newest checkpoint, and recover", take: killed::recover },
];

/// Where the tour is.
struct Tour<'s> {
    directory: &'s Path,
    screen: &'s mut Screen,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    let directory = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let interrupt = Interrupt::install()
        .map_err(|error| Error::io("catch signals while writing to", directory, error))?;
    let place = Place::make(arguments.dir.as_deref())?;
    tour::opening(screen, place.path(), arguments.dir.is_some())?;
    let mut summary = Vec::new();
    for (number, step) in (1..).zip(STEPS) {
        tour::step(screen, number, STEPS.len(), step.title)?;
        let mut tour = Tour { directory: place.path(), screen };
        summary.push((step.take)(&mut tour)?);
        if let Some(signal) = interrupt.signal() {
            let left = if arguments.dir.is_some() { "; what was written stays there" } else { "" };
            return Err(Failure::Interrupted { signal, left });
        }
    }
    tour::summary(screen, &summary)?;
    Ok(Exit::Good)
}

const MODEL: &str = "tiny.safetensors";

fn write_a_model(tour: &mut Tour<'_>) -> Result<Done, Failure> {
    let model = tiny::write(&tour.path(MODEL))?;
    tour.say(&format!(
        "{MODEL}: synced to the disk before it got its name, so it is there whole or not at all"
    ))?;
    Ok((
        "wrote",
        format!("{} tensors of {} dtypes, {} bytes", model.tensors, model.dtypes, grouped(model.file_bytes)),
    ))
}

fn inspect_it(tour: &mut Tour<'_>) -> Result<Done, Failure> {
    tour.command(&["inspect", MODEL])?;
    let model = Model::open(tour.path(MODEL), Access::Read, Limits::default())?;
    let entries: Vec<Entry<'_>> = model.index().iter().collect();
    let mut totals = Totals::default();
    entries.iter().for_each(|entry| totals.add(entry));
    let mut tables = human::Tables::new();
    tables.file(tour.screen, &Shown { path: Path::new(MODEL), model: &model, entries: &entries })?;
    tables.end(tour.screen, &totals, 1)?;
    let header = grouped(model.frame().header_len().value());
    Ok(("inspected", format!("it by the {header} bytes of its header alone; 100 GB of data take no longer")))
}

fn break_copies(tour: &mut Tour<'_>) -> Result<Done, Failure> {
    let whole = tour.read(MODEL)?;
    for case in broken::CASES {
        tour::pause(tour.screen)?;
        tour.say(case.story)?;
        tour.write(case.file, &(case.make)(&whole))?;
        tour.command(&["check", case.file])?;
        let judged = Model::open(tour.path(case.file), Access::Read, Limits::default());
        match judged.as_ref().map_err(Error::because) {
            Err(Cause::Bad(bad)) if bad.error.rule() == Some(case.rule) => {
                human::Lines.bad(tour.screen, Path::new(case.file), bad)?;
            }
            other => return Err(surprise(format!("{} should break {}: {other:?}", case.file, case.rule))),
        }
    }
    Ok(("caught", format!("{0} of {0} broken copies, by rule, byte and tensor", broken::CASES.len())))
}

const DISORDER: &str = "disorder.safetensors";
const REPAIRED: &str = "repaired.safetensors";

fn repair(tour: &mut Tour<'_>) -> Result<Done, Failure> {
    let whole = tour.read(MODEL)?;
    let model = Model::open(tour.path(MODEL), Access::Read, Limits::default())?;
    tour.write(DISORDER, &disorder::of(&model, &whole))?;
    tour.command(&["check", DISORDER])?;
    let odd = Model::open(tour.path(DISORDER), Access::Read, Limits::default())?;
    human::Lines.good(tour.screen, Path::new(DISORDER), odd.index().notes())?;

    tour.command(&["rewrite", DISORDER, REPAIRED])?;
    let rewritten =
        rewrite(&OsDisk, &tour.path(DISORDER), &tour.path(REPAIRED), Limits::default(), &mut |_, _| ())?;
    human::rewritten(tour.screen, Path::new(REPAIRED), &rewritten)?;
    if tour.read(REPAIRED)? != whole {
        return Err(surprise(format!("{REPAIRED} should be {MODEL} again")));
    }
    Ok(("repaired", format!("the one in disorder: byte for byte {MODEL} again")))
}

impl Tour<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, Failure> {
        let path = self.path(name);
        fs::read(&path).map_err(|error| Error::io("read", path, error).into())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.path(name);
        fs::write(&path, bytes).map_err(|error| Error::io("write", path, error).into())
    }

    fn say(&mut self, what: &str) -> Result<(), Failure> {
        Ok(tour::story(self.screen, what)?)
    }

    /// What to type for what follows.
    fn command(&mut self, words: &[&str]) -> Result<(), Failure> {
        Ok(tour::command(self.screen, words)?)
    }
}

fn surprise(what: String) -> Failure {
    Failure::Surprise(what)
}

/// The tour's directory.
enum Place {
    Kept(PathBuf),
    /// Removed when dropped.
    Temporary(TempDir),
}

impl Place {
    fn make(wanted: Option<&Path>) -> Result<Self, Error> {
        match wanted {
            Some(path) => match fs::create_dir(path) {
                Ok(()) => Ok(Self::Kept(path.to_path_buf())),
                Err(error) => Err(Error::io("create the directory", path, error)),
            },
            None => match tempfile::Builder::new().prefix("safestep-demo-").tempdir() {
                Ok(directory) => Ok(Self::Temporary(directory)),
                // Its own text would name the path once more.
                Err(error) => {
                    Err(Error::io("create a directory in", std::env::temp_dir(), error.kind().into()))
                }
            },
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(directory) => directory.path(),
        }
    }
}
