//! Files in memory become durable files of a directory that has no good name yet, and digests of the same bytes.
//!
//! Small states are written one file after the other, and hashed then; large ones by a [crew](super::crew) of threads, if there is
//! more than one core.

use std::path::Path;

use safestep_core::checkpoint::Digest;

use super::contents::Content;
use super::crew::{Crew, How};
use super::pieces::{create, fill, hash};
use super::thresholds::Thresholds;
use crate::disk::Disk;
use crate::error::Error;

/// Writes all files into `directory`, and gives their digests.
pub(crate) fn write_all<D>(
    disk: &D,
    directory: &Path,
    contents: &[Content<'_>],
    how: &How,
) -> Result<Vec<Digest>, Error>
where
    D: Disk + Sync,
    D::File: Send + Sync,
{
    let total = contents.iter().fold(0_u64, |sum, content| sum.saturating_add(content.len_bytes));
    if how.threads >= 2 && total >= how.thresholds.parallel_bytes_min {
        return Crew::new(disk, directory, contents, *how).work();
    }
    for content in contents {
        write_file(disk, &directory.join(&*content.name), content, how.sync, &how.thresholds)?;
    }
    Ok(digests(contents))
}

/// The digests of all files, one after the other.
pub(crate) fn digests(contents: &[Content<'_>]) -> Vec<Digest> {
    contents.iter().map(|content| hash(content, &|| true)).collect()
}

/// Writes one file that is not large.
pub(crate) fn write_one<D: Disk>(
    disk: &D,
    path: &Path,
    content: &Content<'_>,
    sync: bool,
) -> Result<(), Error> {
    write_file(disk, path, content, sync, &Thresholds::default())
}

fn write_file<D: Disk>(
    disk: &D,
    path: &Path,
    content: &Content<'_>,
    sync: bool,
    thresholds: &Thresholds,
) -> Result<(), Error> {
    let file = create(disk, path, content)?;
    fill(disk, &file, content, thresholds, &mut |_| true).map_err(|error| Error::io("write", path, error))?;
    if sync { disk.sync(&file).map_err(|error| Error::io("sync", path, error)) } else { Ok(()) }
}
