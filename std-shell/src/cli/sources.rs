//! PATHs become the files that they mean: a file is itself, a directory is the models in it.
//!
//! Nothing is opened here but directories.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use safestep::{Cause, Error};
use walkdir::{DirEntry, WalkDir};

/// What files to look at.
#[derive(Debug, Args)]
pub(super) struct Sources {
    /// Model files, and directories: of those, every *.safetensors file in name order.
    ///
    /// A directory that holds none counts as a file that could not be read (exit code 3).
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Look into the directories of directories too.
    ///
    /// Links to files are followed, links to directories are not, unless they are given as a PATH.
    #[arg(short, long)]
    recursive: bool,
}

impl Sources {
    /// The files, or why a directory has none.
    pub(super) fn files(&self) -> impl Iterator<Item = Result<PathBuf, Error>> {
        self.paths.iter().flat_map(|path| {
            if path.is_dir() { in_directory(path, self.recursive) } else { vec![Ok(path.clone())] }
        })
    }
}

fn in_directory(directory: &Path, recursive: bool) -> Vec<Result<PathBuf, Error>> {
    let depth = if recursive { usize::MAX } else { 1 };
    let entries = WalkDir::new(directory).min_depth(1).max_depth(depth).sort_by_file_name();
    let mut files = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) if is_model(&entry) => files.push(Ok(entry.into_path())),
            Ok(_) => {}
            Err(error) => files.push(Err(unreadable(directory, error))),
        }
    }
    if files.is_empty() {
        let hint = if recursive { "" } else { " (--recursive looks into its directories too)" };
        let because = io::Error::other(format!("it holds no .safetensors file{hint}"));
        files.push(Err(Error::io("find a model in", directory, because)));
    }
    files
}

/// Anything of that name but a directory; what is no regular file has to be complained of, not passed over.
fn is_model(entry: &DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().ends_with(b".safetensors") && !entry.path().is_dir()
}

fn unreadable(directory: &Path, error: walkdir::Error) -> Error {
    let path = error.path().unwrap_or(directory).to_path_buf();
    let because = error.into_io_error().unwrap_or_else(|| io::Error::other("its links go round in a loop"));
    Error::new("read", path, Cause::Io(because))
}
