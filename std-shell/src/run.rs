//! A run directory becomes the files beside a run's checkpoints, and a loop that knows when to save them.
//!
//! ```text
//! run/<stem>.loss.json      one line a step, appended, never rewritten, never archived      history
//! run/<stem>.samples.json   recent samples, replaced whole                                  satellites
//! run/<stem>.state.json     the trainer's own, under the config that it was made by         satellites
//! run/archive/<step>/       samples and state of a former policy                            satellites
//! run/step_NNNNNN.bin       weights, m and v in five regions                                snapshot
//! ```
//!
//! [`Guard`] ties [`Cadence`], [`SaveClock`] and [`Signals`] together: after each step it says go on, save, or save and stop.

pub mod snapshot;
pub mod convert;
pub mod history;
pub mod satellites;
pub mod cadence;
pub mod signals;
pub mod guard;

pub use cadence::SaveClock;
pub use convert::{Parameter, export_snapshot, import_snapshot, parameters_of};
pub use guard::{Guard, Next, OnDemand};
pub use history::{Canonical, Entries, History, Repair, Summary, Value, loss_value};
pub use safestep_core::cadence::Cadence;
pub use satellites::{Pivoted, pivot, replace_samples, replace_state, state, state_of_any_config};
pub use signals::Signals;
pub use snapshot::{MappedSnapshot, SnapshotWriter, snapshot_name, write_snapshot};

use std::io;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Where the files of a run are.
///
/// ```
/// use safestep::run::RunFiles;
///
/// let files = RunFiles::new("runs/one", "")?;
/// assert_eq!(files.loss().to_str(), Some("runs/one/.loss.json"));
/// let files = RunFiles::new("runs/one", "polish")?;
/// assert_eq!(files.state().to_str(), Some("runs/one/polish.state.json"));
/// # Ok::<(), safestep::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFiles {
    directory: PathBuf,
    stem: String,
}

impl RunFiles {
    /// The files in a run's directory under a stem, which may be empty.
    ///
    /// # Errors
    /// [`Cause::Io`](crate::Cause::Io) if the stem is no part of a file's name: it leads into a directory, or holds a NUL.
    pub fn new(directory: impl Into<PathBuf>, stem: impl Into<String>) -> Result<Self, Error> {
        let files = Self { directory: directory.into(), stem: stem.into() };
        if files.stem.contains(['/', '\\', '\0']) {
            let because =
                io::Error::new(io::ErrorKind::InvalidFilename, "the stem is no part of a file name");
            return Err(Error::io("use", files.directory.join(&files.stem), because));
        }
        Ok(files)
    }

    /// The run's directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What the names begin with.
    pub fn stem(&self) -> &str {
        &self.stem
    }

    /// The loss history.
    pub fn loss(&self) -> PathBuf {
        self.named("loss.json")
    }

    /// The samples.
    pub fn samples(&self) -> PathBuf {
        self.named("samples.json")
    }

    /// The state.
    pub fn state(&self) -> PathBuf {
        self.named("state.json")
    }

    /// Where a pivot at this step puts samples and state.
    pub fn archive(&self, step: u64) -> PathBuf {
        self.directory.join("archive").join(step.to_string())
    }

    fn named(&self, ending: &str) -> PathBuf {
        self.directory.join(format!("{}.{ending}", self.stem))
    }
}
