//! Steps and a policy become the steps that go. What cannot be deleted is reported and fails nothing.
//!
//! A step loses its name first, and that is made durable, before anything in it is deleted: so no crash leaves half a step
//! under a good name.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use safestep_core::checkpoint::{MANIFEST_NAME, StepName};

use super::lock::locked;
use super::names::temporary;
use super::protocol::Protocol;
use super::scan::{Scan, scan};
use crate::disk::Disk;
use crate::error::{Error, terminal_safe};

/// Which old steps stay. A step stays if any rule keeps it; without rules all stay.
///
/// Whatever it says, the step that `LATEST` names stays, the one that was just written too, and those newer than `LATEST`,
/// which belong to nobody yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// The last so many, the newest included.
    pub last: Option<u64>,
    /// Those whose step is a multiple of this.
    pub every: Option<u64>,
    /// Those that the caller ranks best by a metric: `ranked` from best to worst, and how many of them stay.
    pub best: usize,
    /// Steps from best to worst. Steps that are gone do not count.
    pub ranked: Vec<u64>,
    /// Those that stay in any case.
    pub pinned: BTreeSet<u64>,
}

/// What retention did, or would do.
#[derive(Debug, Default)]
pub struct Retained {
    /// The steps that went, in order.
    pub removed: Vec<StepName>,
    /// The steps that stayed, in order.
    pub kept: Vec<StepName>,
    /// What should have gone and did not.
    pub leftovers: Vec<Leftover>,
}

/// Something that could not be deleted: a step, or the very file or directory in one that stays.
#[derive(Debug)]
pub struct Leftover {
    /// Where it is.
    pub path: PathBuf,
    /// Why it is still there.
    pub because: io::Error,
}

impl Leftover {
    /// Why something else cannot take its place.
    fn into_reason(self) -> io::Error {
        let Self { path, because } = self;
        io::Error::new(because.kind(), format!("cannot clear {} first: {because}", terminal_safe(&path)))
    }
}

impl Retention {
    /// The last so many.
    pub fn last(count: u64) -> Self {
        Self { last: Some(count), ..Self::default() }
    }

    /// The steps that go, of those in `scan`; never `written`.
    pub fn doomed(&self, scan: &Scan, written: Option<StepName>) -> Vec<StepName> {
        let latest = scan.latest.step();
        let newest = latest.max(written);
        let has_rule = self.last.is_some() || self.every.is_some() || self.best > 0;
        // Without a step that is known to be done, nobody knows which ones are needed.
        let (true, Some(newest)) = (has_rule, newest) else { return Vec::new() };
        let done: Vec<StepName> = scan.steps.iter().copied().filter(|name| *name <= newest).collect();
        let last = usize::try_from(self.last.unwrap_or_default()).unwrap_or(usize::MAX);
        let last: BTreeSet<StepName> = done.iter().rev().take(last).copied().collect();
        let there = |step: &&u64| done.iter().any(|name| name.step() == **step);
        let best: BTreeSet<u64> = self.ranked.iter().filter(there).take(self.best).copied().collect();
        let keeps = |name: &StepName| {
            let step = name.step();
            last.contains(name)
                || self.every.is_some_and(|every| step.is_multiple_of(every))
                || best.contains(&step)
                || self.pinned.contains(&step)
                || [latest, written].contains(&Some(*name))
        };
        done.into_iter().filter(|name| !keeps(name)).collect()
    }
}

/// Deletes the steps of a checkpoint root that a policy does not keep, or only says which, if `dry`.
///
/// # Errors
/// As [`scan()`]; [`Cause::Locked`](crate::Cause::Locked) while a save is running.
pub fn retain<D: Disk>(disk: &D, root: &Path, policy: &Retention, dry: bool) -> Result<Retained, Error> {
    let _lock = if dry { None } else { Some(locked(disk, root)?) };
    let scan = scan(disk, root)?;
    let doomed = policy.doomed(&scan, None);
    let kept = scan.steps.iter().copied().filter(|name| !doomed.contains(name)).collect();
    if dry {
        return Ok(Retained { removed: doomed, kept, leftovers: Vec::new() });
    }
    let mut retained = Retained { kept, ..Retained::default() };
    remove_steps(disk, root, &doomed, Protocol::default(), &mut retained);
    Ok(retained)
}

/// Deletes steps, as far as that works.
pub(crate) fn remove_steps<D: Disk>(
    disk: &D,
    root: &Path,
    doomed: &[StepName],
    protocol: Protocol,
    retained: &mut Retained,
) {
    let mut unnamed = Vec::new();
    for name in doomed {
        let (from, to) = (root.join(name.as_str()), root.join(temporary(*name)));
        if !protocol.unname_first {
            unnamed.push((*name, from));
            continue;
        }
        let answer =
            remove_tree(disk, &to).map_err(Leftover::into_reason).and_then(|()| disk.rename(&from, &to));
        match answer {
            Ok(()) => unnamed.push((*name, to)),
            Err(because) => retained.leftovers.push(Leftover { path: from, because }),
        }
    }
    if unnamed.is_empty() {
        return;
    }
    // Without this nothing is deleted: the names could come back.
    if protocol.unname_first
        && let Err(because) = disk.sync_dir(root)
    {
        return retained.leftovers.push(Leftover { path: root.to_path_buf(), because });
    }
    for (name, path) in unnamed {
        match remove_tree(disk, &path) {
            Ok(()) => retained.removed.push(name),
            Err(leftover) => retained.leftovers.push(leftover),
        }
    }
}

/// Deletes what stands at a path, a directory with all that is in it too; that there is nothing is fine. A symbolic link goes,
/// what it leads to stays. In each directory the manifest goes first: what is being taken apart shall not look whole.
///
/// How deep directories are is bounded by how long a path may be, and costs no stack. Whoever exchanges a directory for a link
/// while this is at work in it could delete through us: the root is meant to be its owner's.
pub(crate) fn remove_tree<D: Disk>(disk: &D, path: &Path) -> Result<(), Leftover> {
    let mut to_go = vec![(path.to_path_buf(), Known::Nothing)];
    while let Some((path, known)) = to_go.pop() {
        let removed = match known {
            Known::Nothing => remove_unless_full(disk, &path),
            Known::Listed => disk.remove_dir(&path).map(|()| true),
        };
        match removed {
            Ok(true) => {}
            Ok(false) => match disk.list(&path) {
                Ok(names) => {
                    let mut inner: Vec<PathBuf> = names.iter().map(|name| path.join(name)).collect();
                    // What stands last goes first.
                    inner.sort_by_key(|inner| inner.ends_with(MANIFEST_NAME));
                    to_go.push((path, Known::Listed));
                    to_go.extend(inner.into_iter().map(|inner| (inner, Known::Nothing)));
                }
                Err(because) => return Err(Leftover { path, because }),
            },
            Err(because) if because.kind() == io::ErrorKind::NotFound => {}
            Err(because) => return Err(Leftover { path, because }),
        }
    }
    Ok(())
}

/// What is known of something that is to go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    /// It is a directory, and all that was in it is gone.
    Listed,
}

/// Deletes a file, a link or an empty directory. `false`: it is a directory with something in it, by what `rmdir` says, which
/// follows no link.
fn remove_unless_full<D: Disk>(disk: &D, path: &Path) -> io::Result<bool> {
    match disk.remove(path) {
        Ok(()) => Ok(true),
        Err(error) if may_be_directory(&error) => match disk.remove_dir(path) {
            Ok(()) => Ok(true),
            Err(error) if is_full(&error) => Ok(false),
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// Whether that is how a system says no to `unlink` of a directory: by POSIX with EPERM, which Linux keeps for other things.
fn may_be_directory(error: &io::Error) -> bool {
    let by_posix = cfg!(not(target_os = "linux")) && error.kind() == io::ErrorKind::PermissionDenied;
    error.kind() == io::ErrorKind::IsADirectory || by_posix
}

/// By POSIX, ENOTEMPTY and EEXIST say the same of a directory.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
}
