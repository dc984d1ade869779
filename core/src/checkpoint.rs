//! Step names, manifests, trainer states and digests: the small documents of a checkpoint directory become values, and
//! values become the same bytes for everybody.
//!
//! ```text
//! step-000050/                 StepName
//!   model.safetensors          Sha256 -> Digest, over the bytes of each file
//!   trainer_state.json         TrainerState
//!   optimizer.safetensors      its JSON text, by check_optimizer_state
//!   MANIFEST.json              Manifest, compared with what the directory holds
//! ```
//!
//! Strict: what is accepted is written back as the same value, and nothing is passed over. Memory is lent, nothing panics.
//! Nothing here reads or writes files, or knows in which order they become durable.

mod error;
mod step_name;
mod digest;
mod decimal;
mod document;
mod manifest;
mod trainer_state;
mod optimizer_state;

pub use digest::{Digest, GitSha, Sha256};
pub use error::{DocumentError, DocumentErrorKind, NameFault};
pub use manifest::{
    Difference, FileRecord, FoundFile, ListedFile, MANIFEST_NAME, Manifest, ManifestDraft, ManifestRefusal,
};
pub use optimizer_state::{OPTIMIZER_STATE_NONE, check_optimizer_state};
pub use step_name::StepName;
pub use trainer_state::{DataCursor, RngState, TrainerState, TrainerStateRefusal};
