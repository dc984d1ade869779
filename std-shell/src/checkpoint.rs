//! A training run's state becomes a checkpoint directory that survives the power going out, and comes back verified.
//!
//! ```text
//! run/ckpt/step-000050/   model.safetensors  optimizer.safetensors  trainer_state.json  config.json?  ...  MANIFEST.json
//! run/ckpt/LATEST         "step-000050\n"
//! ```
//!
//! At every instant each `step-…` directory is whole and `LATEST` names one of them, whatever stops the machine. Whoever loads
//! finds the old state or the new one, checked byte by byte against the digests of the manifest.
//!
//! ```
//! use safestep::OsDisk;
//! use safestep::checkpoint::{Optimizer, Retention, SaveOptions, State, Tensor, TrainerState, load, save};
//! use safestep_core::Dtype;
//!
//! let directory = tempfile::tempdir()?;
//! let root = directory.path().join("run/ckpt");
//! let weights: Vec<u8> = [1.5_f32, -2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
//! let weight = Tensor { name: "weight", dtype: Dtype::F32, shape: &[2], bytes: &weights };
//! let options = SaveOptions { retention: Retention::last(2), ..SaveOptions::default() };
//! for step in [50, 100, 150] {
//!     let state = State {
//!         model: &[weight],
//!         optimizer: Optimizer::default(),
//!         trainer: TrainerState { step, ..TrainerState::default() },
//!         config: None,
//!         files: &[],
//!     };
//!     save(&OsDisk, &root, &state, &options)?;
//! }
//!
//! let checkpoint = load(&OsDisk, &root)?;
//! assert_eq!(checkpoint.trainer.step, 150);
//! let entry = checkpoint.model.index().get("weight").unwrap();
//! assert_eq!(checkpoint.model.view(&entry).unwrap().elements::<f32>(), Ok(&[1.5, -2.0][..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`State`] -> [`save()`] -> directory -> [`scan()`], [`verify()`], [`retain`] -> [`load()`] -> [`Checkpoint`]

pub mod state;
pub mod protocol;
#[doc(hidden)]
pub mod thresholds;
mod names;
mod contents;
mod pieces;
mod crew;
mod stage;
mod lock;
pub mod scan;
pub mod retention;
pub mod verify;
pub mod save;
pub mod load;
pub mod background;

pub use safestep_core::checkpoint::{DataCursor, Digest, GitSha, RngState, StepName, TrainerState};

pub use background::BackgroundSaver;
pub use load::{Checkpoint, Skipped, load, load_step};
pub use retention::{Leftover, Retained, Retention, retain};
pub use save::{SaveOptions, Saved, save};
pub use scan::{Latest, Scan, root_of, scan};
pub use state::{Optimizer, State, Tensor};
pub use verify::{Flaw, FlawKind, Verdict, verify};
