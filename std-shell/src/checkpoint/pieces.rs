//! The pieces of a file become bytes on a disk, or a digest; whoever waits for them may stop that between two portions.

use std::io::{self, IoSlice};
use std::path::Path;

use safestep_core::checkpoint::{Digest, Sha256};

use super::contents::Content;
use super::thresholds::Thresholds;
use crate::commit::write_all;
use crate::disk::Disk;
use crate::error::Error;

/// Makes a file with room for all its bytes.
pub(super) fn create<D: Disk>(disk: &D, path: &Path, content: &Content<'_>) -> Result<D::File, Error> {
    let file = disk.create(path, None).map_err(|error| Error::io("create", path, error))?;
    disk.allocate(&file, content.len_bytes).map_err(|error| Error::io("reserve space for", path, error))?;
    Ok(file)
}

/// Writes all pieces to a file, many of them at once: the kernel keeps what comes together in larger blocks, which makes writing
/// and reading again faster. After each portion `goes_on` is told how much that was, and says whether there is to be more.
pub(super) fn fill<D: Disk>(
    disk: &D,
    file: &D::File,
    content: &Content<'_>,
    thresholds: &Thresholds,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> io::Result<()> {
    let mut batch = Vec::new();
    batch.try_reserve_exact(PIECES_MAX)?;
    let mut batch_bytes = 0_usize;
    for portion in portions(content, thresholds.portion_bytes) {
        batch.push(IoSlice::new(portion));
        batch_bytes = batch_bytes.saturating_add(portion.len());
        if batch_bytes >= thresholds.portion_bytes || batch.len() == PIECES_MAX {
            write_all(disk, file, &mut batch)?;
            if !goes_on(u64::try_from(batch_bytes).unwrap_or_default()) {
                return Ok(());
            }
            batch.clear();
            batch_bytes = 0;
        }
    }
    write_all(disk, file, &mut batch)
}

/// The digest of all pieces; of those so far, if `goes_on` says that there is no use in more.
pub(super) fn hash(content: &Content<'_>, goes_on: &dyn Fn() -> bool) -> Digest {
    let mut hash = Sha256::new();
    portions(content, HASHED_BYTES).take_while(|_| goes_on()).for_each(|portion| hash.update(portion));
    hash.digest()
}

fn portions<'c>(content: &'c Content<'_>, most_bytes: usize) -> impl Iterator<Item = &'c [u8]> {
    content.pieces.iter().flat_map(move |piece| piece.chunks(most_bytes.max(1)))
}

/// How many pieces are written at once; the kernel takes no more (`UIO_MAXIOV`).
const PIECES_MAX: usize = 1024;

/// How much is hashed at once.
const HASHED_BYTES: usize = 1 << 20;
