//! Maps, commits and prints.

pub mod error;

pub mod disk;

pub mod read_at;

pub mod mapped;

pub mod commit;

pub mod model;

pub use commit::Commit;
pub use disk::Disk;
#[cfg(unix)]
pub use disk::OsDisk;
pub use error::{BadFile, Blame, Cause, Error, FileKind, terminal_safe};
pub use mapped::Mapped;
pub use model::{Access, Model, ModelWriter, Rewritten, TensorPlan, Watch, rewrite};
pub use read_at::{FileReader, ReadAt};
