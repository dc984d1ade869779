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
//! [`State`] -> [`save`] -> directory -> [`scan`], [`verify`], [`retain`] -> [`load`] -> [`Checkpoint`]

pub mod state;
pub mod protocol;
mod names;
mod contents;
mod stage;
mod lock;
pub mod scan;
pub mod retention;
pub mod save;
pub mod verify;
pub mod load;
pub mod background;

pub use background::BackgroundSaver;
pub use load::{Checkpoint, Skipped, load, load_step};
pub use retention::{Leftover, Retained, Retention, retain};
pub use save::{SaveOptions, Saved, save};
pub use scan::{Latest, Scan, root_of, scan};
pub use state::{Optimizer, State, Tensor};
pub use verify::{Flaw, Verdict, verify};
