//! A state becomes a checkpoint: durable and declared done, or not there at all.
//!
//! ```text
//! 1  step-<n>.tmp/ and every file in it: write, sync
//! 2  MANIFEST.json last: write, sync; sync the directory
//! 3  rename it to step-<n>; sync the root
//! 4  LATEST.tmp: write, sync; rename it to LATEST; sync the root
//! 5  only now delete what other saves have left, and the steps that the policy does not keep
//! ```
//!
//! After any failed write or sync the attempt is over: nothing is tried twice (a second sync can lie), the error goes to the
//! caller, older checkpoints are as they were. What is left is removed if that works; if not, the next save clears it.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use safestep_core::checkpoint::{Digest, StepName};

use super::contents::{self, Content};
use super::crew::How;
use super::lock::locked;
use super::names::{LATEST, LATEST_TMP, temporary};
use super::protocol::Protocol;
use super::retention::{Leftover, Retained, Retention, remove_steps, remove_tree};
use super::scan::{Latest, Scan, scan};
use super::stage;
use super::state::State;
use super::thresholds::Thresholds;
use super::verify::{FlawKind, Inspected};
use crate::disk::{Disk, Found};
use crate::error::{Cause, Error, FileKind, Refusal};

/// How to save.
#[derive(Clone, Debug, Default)]
pub struct SaveOptions {
    /// Which old steps stay.
    pub retention: Retention,
    /// How many threads write and hash a large state; 0 means as many as there are cores. One more waits for the disk.
    pub threads: usize,
    #[doc(hidden)]
    pub protocol: Protocol,
    #[doc(hidden)]
    pub thresholds: Thresholds,
}

/// A checkpoint that was saved.
#[derive(Debug)]
pub struct Saved {
    /// Its directory.
    pub path: PathBuf,
    /// Its name.
    pub name: StepName,
    /// The length of all its files in bytes.
    pub bytes: u64,
    /// What became of the older steps, and of what other saves had left.
    pub retained: Retained,
}

/// Saves a state under `root`, which is made if it is not there.
///
/// A step that stands there already is an error, and stays, if it was declared done (it is not newer than the one that
/// `LATEST` names, or there is no `LATEST`) and is whole. A newer one is left from a save that was cut off just before its end,
/// and no load ever looks at it; one that is damaged is stepped over by every load, and a run that went on from an older one
/// comes to it again. Both are replaced.
///
/// # Errors
/// [`Cause::Refused`] for a state that readers would refuse, before anything is touched; [`Cause::Locked`] while another save
/// is at work there; [`Cause::StepExists`]; [`Cause::NoSpace`]; [`Cause::NotDurable`] when all is in place but only the last
/// sync failed; [`Cause::ThreadLost`]; otherwise [`Cause::Io`].
pub fn save<D>(disk: &D, root: &Path, state: &State<'_>, options: &SaveOptions) -> Result<Saved, Error>
where
    D: Disk + Sync,
    D::File: Send + Sync,
{
    let name = StepName::of(state.trainer.step);
    let contents = contents::of(state).map_err(|refusal| {
        Error::new("save", root.join(name.as_str()), Cause::Refused(Refusal::State(refusal)))
    })?;
    make_root(disk, root, is_first(disk, root)?, options.protocol)?;
    let _lock = locked(disk, root)?;
    let attempt = Attempt { disk, root, name, contents: &contents, options };
    let scan = attempt.make_way()?;
    attempt.check_space(&scan)?;
    let bytes =
        attempt.stage().and_then(|bytes| attempt.declare(&scan).map(|()| bytes)).inspect_err(|_| {
            // The first error is the one to tell; what stays is cleared by the next save.
            let _ = remove_tree(disk, &attempt.staging());
            let _ = remove_tree(disk, &root.join(LATEST_TMP));
        })?;
    let retained = attempt.tidy();
    Ok(Saved { path: root.join(name.as_str()), name, bytes, retained })
}

/// Makes the root, and the directories on the way to it, and makes each durable where it was made. The innermost one that is
/// there already may be left from a first save that was cut off before it was durable; as long as nothing was declared done
/// it is made so now.
fn make_root<D: Disk>(disk: &D, root: &Path, is_first: bool, protocol: Protocol) -> Result<(), Error> {
    let sync = |parent: &Path| disk.sync_dir(parent).map_err(|error| Error::io("sync", parent, error));
    let standing = disk.look(root).map_err(|error| Error::io("look at", root, error))?;
    let parent = match root.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => Some(parent),
        _ => None,
    };
    match (standing, parent) {
        (Found::Other(FileKind::Directory), Some(parent)) if is_first && protocol.sync_parent => {
            return match sync(parent) {
                // A directory that we may not even read was not made by a save of ours.
                Err(error) if is_denied(&error) => Ok(()),
                answer => answer,
            };
        }
        (Found::Other(FileKind::Directory), _) => return Ok(()),
        (Found::Nothing, _) => {}
        _ => return Err(Error::io("save to", root, io::ErrorKind::NotADirectory.into())),
    }
    let parent = parent.unwrap_or(Path::new("."));
    make_root(disk, parent, is_first, protocol)?;
    match disk.make_dir(root) {
        // Another saver was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        answer => answer.map_err(|error| Error::io("make the directory", root, error))?,
    }
    if protocol.sync_parent { sync(parent) } else { Ok(()) }
}

/// Whether nothing was declared done there yet.
fn is_first<D: Disk>(disk: &D, root: &Path) -> Result<bool, Error> {
    match disk.list(root) {
        Ok(names) => Ok(!names.iter().any(|name| name == LATEST)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(true)
        }
        Err(error) => Err(Error::io("look into", root, error)),
    }
}

fn is_denied(error: &Error) -> bool {
    matches!(error.because(), Cause::Io(error) if error.kind() == io::ErrorKind::PermissionDenied)
}

/// Whether a step was read and is not what its manifest says. What cannot be read may be whole.
fn is_damaged(directory: &Path) -> bool {
    let flaws =
        Inspected::of(directory, &|_, _| {}).map(|inspected| inspected.open().err().unwrap_or_default());
    flaws.is_ok_and(|flaws| {
        !flaws.is_empty() && !flaws.iter().any(|flaw| matches!(flaw.kind, FlawKind::Unreadable(_)))
    })
}

/// One try to save one step.
struct Attempt<'s, 'a, D> {
    disk: &'s D,
    root: &'s Path,
    name: StepName,
    contents: &'s [Content<'a>],
    options: &'s SaveOptions,
}

impl<D> Attempt<'_, '_, D>
where
    D: Disk + Sync,
    D::File: Send + Sync,
{
    fn staging(&self) -> PathBuf {
        self.root.join(temporary(self.name))
    }

    fn target(&self) -> PathBuf {
        self.root.join(self.name.as_str())
    }

    /// Clears the names that this save needs, if they are nobody's.
    fn make_way(&self) -> Result<Scan, Error> {
        let (staging, target) = (self.staging(), self.target());
        let found = scan(self.disk, self.root)?;
        let clear = |path: &Path| {
            remove_tree(self.disk, path).map_err(|left| Error::io("clear", left.path, left.because))
        };
        clear(&staging)?;
        clear(&self.root.join(LATEST_TMP))?;
        let standing = self.disk.look(&target).map_err(|error| Error::io("look at", &target, error))?;
        if standing == Found::Nothing {
            return Ok(found);
        }
        let undeclared =
            found.steps.contains(&self.name) && found.latest.step().is_some_and(|latest| latest < self.name);
        let damaged = || found.steps.contains(&self.name) && is_damaged(&target);
        if !(undeclared || damaged()) {
            return Err(Error::new("save", target, Cause::StepExists));
        }
        self.disk.rename(&target, &staging).map_err(|error| Error::io("clear", &target, error))?;
        // Durable before anything in it goes: half a step must not come back under a good name.
        self.disk.sync_dir(self.root).map_err(|error| Error::io("sync", self.root, error))?;
        clear(&staging)?;
        Ok(found)
    }

    /// Looks for space before the first byte. What other saves have left may be in the way; then it goes now.
    fn check_space(&self, scan: &Scan) -> Result<(), Error> {
        let files = self.contents.iter().map(|content| content.len_bytes.saturating_add(FILE_SLACK_BYTES));
        let needed_bytes = files.fold(SLACK_BYTES, u64::saturating_add);
        let free =
            || self.disk.free_bytes(self.root).map_err(|error| Error::io("ask for space", self.root, error));
        if free()? >= needed_bytes {
            return Ok(());
        }
        for name in &scan.stale {
            let _ = remove_tree(self.disk, &self.root.join(name));
        }
        match free()? {
            free_bytes if free_bytes >= needed_bytes => Ok(()),
            free_bytes => Err(Error::new("save", self.target(), Cause::NoSpace { needed_bytes, free_bytes })),
        }
    }

    /// Steps 1 and 2: all files, durable, under a name that nobody looks at. Says how many bytes that were.
    fn stage(&self) -> Result<u64, Error> {
        let (disk, directory, protocol) = (self.disk, self.staging(), self.options.protocol);
        disk.make_dir(&directory).map_err(|error| Error::io("make the directory", &directory, error))?;
        let threads = match self.options.threads {
            0 => thread::available_parallelism().map_or(1, std::num::NonZero::get),
            threads => threads,
        };
        let mut manifest_bytes = 0;
        if !protocol.manifest_last {
            let digests = stage::digests(self.contents);
            manifest_bytes = self.write_manifest(&directory, &digests)?;
        }
        let how = How { sync: protocol.sync_files, threads, thresholds: self.options.thresholds };
        let digests = stage::write_all(disk, &directory, self.contents, &how)?;
        if protocol.manifest_last {
            manifest_bytes = self.write_manifest(&directory, &digests)?;
        }
        if protocol.sync_step {
            disk.sync_dir(&directory).map_err(|error| Error::io("sync", &directory, error))?;
        }
        let lengths = self.contents.iter().map(|content| content.len_bytes);
        Ok(lengths.fold(manifest_bytes, u64::saturating_add))
    }

    fn write_manifest(&self, directory: &Path, digests: &[Digest]) -> Result<u64, Error> {
        let manifest = contents::manifest(self.name.step(), self.contents, digests)
            .map_err(|refusal| Error::new("save", self.target(), Cause::Refused(Refusal::State(refusal))))?;
        let path = directory.join(&*manifest.name);
        stage::write_one(self.disk, &path, &manifest, self.options.protocol.sync_manifest)?;
        Ok(manifest.len_bytes)
    }

    /// Steps 3 and 4: the good name, and `LATEST`.
    fn declare(&self, scan: &Scan) -> Result<(), Error> {
        let protocol = self.options.protocol;
        if !protocol.delete_last {
            let mut after = scan.clone();
            after.steps.push(self.name);
            after.latest = Latest::Step(self.name);
            self.remove_old(&after, &mut Retained::default());
        }
        if !protocol.latest_after_step {
            self.move_latest()?;
        }
        let target = self.target();
        self.disk
            .rename(&self.staging(), &target)
            .map_err(|error| Error::io("put in place", &target, error))?;
        if protocol.sync_root_for_step {
            self.disk.sync_dir(self.root).map_err(|error| Error::io("sync", self.root, error))?;
        }
        if protocol.latest_after_step { self.move_latest() } else { Ok(()) }
    }

    fn move_latest(&self) -> Result<(), Error> {
        let (disk, protocol) = (self.disk, self.options.protocol);
        let (from, to) = (self.root.join(LATEST_TMP), self.root.join(LATEST));
        let content = Content::new(LATEST_TMP, vec![format!("{}\n", self.name).into_bytes().into()]);
        stage::write_one(disk, &from, &content, protocol.sync_latest)?;
        disk.rename(&from, &to).map_err(|error| Error::io("put in place", &to, error))?;
        if protocol.sync_root_for_latest {
            let not_durable = |error| Error::new("make durable", &to, Cause::NotDurable(error));
            disk.sync_dir(self.root).map_err(not_durable)?;
        }
        Ok(())
    }

    /// Step 5: what other saves have left, and old steps. The save is done; nothing here fails it.
    fn tidy(&self) -> Retained {
        let mut retained = Retained::default();
        match scan(self.disk, self.root) {
            Ok(scan) => {
                for path in scan.stale.iter().map(|name| self.root.join(name)) {
                    retained.leftovers.extend(remove_tree(self.disk, &path).err());
                }
                self.remove_old(&scan, &mut retained);
            }
            Err(error) => {
                let because = io::Error::other(error.to_string());
                retained.leftovers.push(Leftover { path: self.root.to_path_buf(), because });
            }
        }
        retained
    }

    fn remove_old(&self, scan: &Scan, retained: &mut Retained) {
        let doomed = self.options.retention.doomed(scan, Some(self.name));
        retained.kept = scan.steps.iter().copied().filter(|name| !doomed.contains(name)).collect();
        remove_steps(self.disk, self.root, &doomed, self.options.protocol, retained);
    }
}

/// What a file takes beyond its bytes: its last block, its inode, its name.
const FILE_SLACK_BYTES: u64 = 8 << 10;

/// What the directory, the manifest and `LATEST` take.
const SLACK_BYTES: u64 = 64 << 10;
