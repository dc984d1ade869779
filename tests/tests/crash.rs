//! The machine stops in the middle of a save: what is loaded afterwards is the old state or the new one, bit for bit.
//!
//! `checkpoint::power` shows it for every disk that the rules allow, on a model. Here are real processes: on real file systems
//! that lose power, on a disk that can no longer read, under a kernel that fails any call of theirs, and killed at any time. The
//! program is one of them; another is the example `saver`, which can do what the program has no options for: leave out a rule,
//! write small states like large ones, wait between two saves.

mod device;
mod volume;
mod trained;
mod file_systems;
mod bad_sectors;
mod system_calls;
mod kills;
mod denied;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use safestep::OsDisk;
use safestep::checkpoint::{Checkpoint, Latest, Retention, SaveOptions, load, save, scan, verify};
use safestep::error::Cause;
use safestep_tests::runs::Run;

use trained::Trained;

/// Whose steps they are, and so what has to be in them.
#[derive(Clone, Copy)]
enum Who<'t> {
    /// Those of the example, of so many bytes.
    Saver(usize),
    /// Those of the program.
    Program(&'t Trained),
}

impl Who<'_> {
    /// What is not the same, bit for bit, in what was loaded.
    fn differs_from(self, checkpoint: &Checkpoint) -> Option<String> {
        match self {
            Self::Saver(len_bytes) => Run::sized(checkpoint.name.step(), len_bytes).differs_from(checkpoint),
            Self::Program(trained) => trained.differs_from(checkpoint),
        }
    }
}

/// A command for the example: so many steps of so many bytes each, from `first` on.
fn saver(root: &Path, first: u64, count: u64, len_bytes: usize) -> Command {
    let mut command = Command::new(saver_path());
    command.arg(root).args([first.to_string(), count.to_string(), len_bytes.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn saver_path() -> &'static Path {
    static SAVER: OnceLock<Option<std::path::PathBuf>> = OnceLock::new();
    let built = SAVER.get_or_init(|| crate::program::built("--example", "saver"));
    built.as_deref().expect("the example cannot be built")
}

/// The steps that a saver has reported.
fn reported(out: &str) -> Option<u64> {
    let whole = out.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    whole.filter_map(|line| line.strip_prefix("saved ")?.parse().ok()).next_back()
}

/// Whether a root is as it must be after the machine has stopped: `durable` is the last step that was reported (0: none), at
/// most the one after it was on its way. The step that is loaded.
fn judge(root: &Path, durable: u64, who: Who<'_>) -> Result<u64, String> {
    let step = loaded(root, durable, who)?;
    every_step_is_whole(root)?;
    next_save(root, step + 1)?;
    Ok(step)
}

fn loaded(root: &Path, durable: u64, who: Who<'_>) -> Result<u64, String> {
    let checkpoint = match load(&OsDisk, root) {
        Ok(checkpoint) => checkpoint,
        Err(error) => {
            let none = matches!(error.because(), Cause::NoCheckpoint { skipped } if skipped.is_empty());
            return if none && durable == 0 { Ok(0) } else { Err(error.to_string()) };
        }
    };
    let step = checkpoint.name.step();
    if ![durable, durable + 1].contains(&step) {
        return Err(format!("{step} was loaded, after {durable} was reported"));
    }
    if let Some(difference) = who.differs_from(&checkpoint) {
        return Err(format!("{difference} at {step}"));
    }
    // Before the first LATEST there is none.
    let first = durable == 0 && checkpoint.latest == Latest::Absent;
    if !checkpoint.skipped.is_empty() || (checkpoint.latest != Latest::Step(checkpoint.name) && !first) {
        return Err(format!("LATEST says {}, not {step}", checkpoint.latest));
    }
    Ok(step)
}

fn every_step_is_whole(root: &Path) -> Result<(), String> {
    let Ok(scan) = scan(&OsDisk, root) else { return Ok(()) };
    for name in scan.steps {
        let verdict = verify(&root.join(name.as_str()), &|_, _| {}).map_err(|error| error.to_string())?;
        if let Some(flaw) = verdict.flaws.first() {
            return Err(format!("{name} is not whole: {flaw}"));
        }
    }
    Ok(())
}

/// The run goes on: the next save works, and leaves nothing but what it should.
fn next_save(root: &Path, step: u64) -> Result<(), String> {
    let options = SaveOptions { retention: Retention::last(2), ..SaveOptions::default() };
    let saved = Run::sized(step, NEXT_BYTES).with(|state| save(&OsDisk, root, state, &options));
    let saved = saved.map_err(|error| format!("the next save: {error}"))?;
    let scan = scan(&OsDisk, root).map_err(|error| error.to_string())?;
    let others = [&scan.stale[..], &scan.foreign[..]].concat();
    if !saved.retained.leftovers.is_empty() || !others.is_empty() || scan.steps.len() > 2 {
        return Err(format!("the next save leaves {:?} {others:?}", saved.retained.leftovers));
    }
    match loaded(root, step, Who::Saver(NEXT_BYTES))? {
        found if found == step => Ok(()),
        found => Err(format!("the next save was of {step}, and {found} is loaded")),
    }
}

/// The next save is of a small state, whoever saved before.
const NEXT_BYTES: usize = 3_000;

/// A place for files, in memory where there is one.
fn room() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    tempfile::tempdir_in(if memory.is_dir() { memory } else { Path::new("/tmp") }).unwrap()
}
