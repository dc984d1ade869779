//! A checkpoint directory that nobody may write to: what reads works, what writes fails with a word about where, and every byte
//! stays.
//!
//! Such a directory is an archive, a snapshot of a file system, a disk that the kernel took from us after an error, or somebody
//! else's run.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use safestep_tests::remarks::skipped;

use super::{Trained, room};
use crate::program::program;

/// What is done to a run, and the exit code where it cannot be written.
const COMMANDS: [(&[&str], i32); 7] = [
    (&["steps", "RUN"], 0),
    (&["steps", "--json", "RUN"], 0),
    (&["verify", "RUN"], 0),
    (&["prune", "RUN", "--keep-last", "1", "--dry-run"], 0),
    (&["prune", "RUN", "--keep-last", "1"], 3),
    (&["prune", "RUN", "--keep-last", "1", "--json"], 3),
    (&["train"], 3),
];

/// A run of three steps, in which a save was cut off.
struct Archive {
    directory: tempfile::TempDir,
    trained: Trained,
}

impl Archive {
    fn new() -> Self {
        let archive = Self { directory: room(), trained: Trained::new() };
        let ran = archive.trained.command(&archive.run(), 3, &[]).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        fs::create_dir(archive.root().join("step-000004.tmp")).unwrap();
        fs::write(archive.root().join("step-000004.tmp/model.safetensors"), "half").unwrap();
        archive
    }

    fn run(&self) -> PathBuf {
        self.directory.path().join("run")
    }

    fn root(&self) -> PathBuf {
        self.run().join("ckpt")
    }

    /// All that stands in the checkpoint directory.
    fn image(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let (mut image, mut open) = (BTreeMap::new(), vec![self.root()]);
        while let Some(directory) = open.pop() {
            for path in directory.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
                image.insert(path.clone(), fs::read(&path).ok());
                open.extend(path.is_dir().then_some(path));
            }
        }
        image
    }

    fn command(&self, arguments: &[&str]) -> Command {
        if arguments == ["train"] {
            return self.trained.command(&self.run(), 4, &["--resume"]);
        }
        let mut command = program();
        let run = self.run();
        command
            .args(arguments.iter().map(|word| if *word == "RUN" { run.as_os_str() } else { word.as_ref() }));
        command
    }

    /// Tries everything, started by `start`; what fails says `words` about the checkpoint directory.
    fn try_all(&self, words: &str, start: impl Fn(Command) -> Command) {
        let before = self.image();
        for (arguments, code) in COMMANDS {
            let ran = start(self.command(arguments)).output().unwrap();
            assert_eq!(ran.status.code(), Some(code), "{arguments:?}: {ran:?}");
            if code != 0 {
                self.complains(&ran, words);
            }
            assert!(self.image() == before, "{arguments:?} changed something");
        }
    }

    fn complains(&self, ran: &Output, words: &str) {
        let err = String::from_utf8_lossy(&ran.stderr);
        let last = err.lines().rfind(|line| line.starts_with("safestep: ")).unwrap_or_default();
        assert!(last.contains(self.root().to_str().unwrap()) && last.contains(words), "{words}: {err}");
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A mount that ends with this.
struct Mount(PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_file_system_that_can_only_be_read() {
    let archive = Archive::new();
    let mount = |arguments: &[&str]| {
        let mounted = Command::new("mount").args(arguments).arg(archive.root()).output();
        mounted.is_ok_and(|output| output.status.success())
    };
    if !is_root() || !mount(&["--bind", archive.root().to_str().unwrap()]) {
        return skipped("a directory that can only be read: mounting needs root");
    }
    let _mount = Mount(archive.root());
    assert!(mount(&["-o", "remount,bind,ro"]));
    archive.try_all("Read-only file system", |command| command);
}

/// The same files and programs in the hands of a user who is not root.
struct Nobody {
    program: PathBuf,
}

const NOBODY: u32 = 65_534;

impl Nobody {
    /// Makes a directory and all in it nobody's; `None` if that cannot be.
    fn owning(archive: &Archive) -> Option<Self> {
        let copy = archive.directory.path().join("safestep");
        fs::copy(program().get_program(), &copy).unwrap();
        let mut open = vec![archive.directory.path().to_path_buf(), archive.trained.path().to_path_buf()];
        while let Some(path) = open.pop() {
            if is_root() {
                chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
            if path.is_dir() {
                open.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        let nobody = Self { program: copy };
        nobody
            .start(program())
            .arg("--version")
            .output()
            .is_ok_and(|ran| ran.status.success())
            .then_some(nobody)
    }

    /// The same command, as nobody.
    fn start(&self, command: Command) -> Command {
        if !is_root() {
            return command;
        }
        let mut by_nobody = Command::new("setpriv");
        by_nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&self.program);
        by_nobody.args(command.get_args()).current_dir("/");
        by_nobody
    }
}

/// Permissions that are as they were when this is gone, so that the directory can be removed.
struct Closed(PathBuf);

impl Closed {
    fn to(path: PathBuf, mode: u32) -> Self {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        Self(path)
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        let _ = fs::set_permissions(&self.0, Permissions::from_mode(0o755));
    }
}

#[test]
fn a_directory_without_permission_to_write() {
    let archive = Archive::new();
    let Some(nobody) = Nobody::owning(&archive) else {
        return skipped("a directory without permission: there is no setpriv that starts our program");
    };
    let _closed = Closed::to(archive.root(), 0o555);
    archive.try_all("Permission denied", |command| nobody.start(command));
}

/// What stands in the way in a step that is to go is named itself.
#[test]
fn a_directory_in_a_step_without_permission_to_look_into() {
    let archive = Archive::new();
    let deep = archive.root().join("step-000001/deep");
    fs::create_dir(&deep).unwrap();
    fs::write(deep.join("file"), "x").unwrap();
    let Some(nobody) = Nobody::owning(&archive) else {
        return skipped("a directory without permission: there is no setpriv that starts our program");
    };
    fs::set_permissions(&deep, Permissions::from_mode(0o000)).unwrap();
    let stays = archive.root().join("step-000001.tmp/deep");
    let ran = nobody.start(archive.command(&["prune", "RUN", "--keep-last", "1"])).output().unwrap();
    let err = String::from_utf8_lossy(&ran.stderr);
    let closed = Closed(stays.clone());
    assert!(
        ran.status.code() == Some(3) && err.contains(&format!("{}: Permission denied", stays.display())),
        "{err}"
    );
    assert_eq!(names_in(&archive.root()), "LATEST step-000001.tmp step-000003 step-000004.tmp");
    // Once it may be looked into, the next save clears it.
    drop(closed);
    let ran = nobody.start(archive.command(&["train"])).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(names_in(&archive.root()), "LATEST step-000003 step-000004");
}

fn names_in(directory: &Path) -> String {
    let mut names: Vec<_> = directory.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names.iter().map(|name| name.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
