//! A checkpoint root becomes one saver's own.

use std::path::Path;

use crate::disk::{Disk, Locked};
use crate::error::{Cause, Error};

/// Locks a root for one saver.
pub(crate) fn locked<D: Disk>(disk: &D, root: &Path) -> Result<D::Lock, Error> {
    match disk.lock(root).map_err(|error| Error::io("lock", root, error))? {
        Locked::Ours(lock) => Ok(lock),
        Locked::Theirs { pid } => Err(Error::new("save to", root, Cause::Locked { pid })),
    }
}
