//! Whatever fails in a save, a load or a verification, no file stays open and no map stays there.
//!
//! A run fails to save for hours before somebody makes room. If each attempt kept a descriptor, it would end for want of them,
//! and a directory that is held open by nobody's hand cannot be unmounted. Looked at is what leads into the directory of the
//! test, so that tests beside it do not disturb.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use safestep::checkpoint::{load_step, retain, verify};
use safestep::disk::{DirectoryLock, Disk, Found, Locked, Ownership};
use safestep_tests::disk_faults::EIO;
use safestep_tests::remarks::remark;
use safestep_tests::runs::in_portions;

/// The real disk, of which one call fails, by its number, or none.
struct Failing {
    calls: AtomicUsize,
    at: usize,
}

impl Failing {
    fn call(&self) -> io::Result<OsDisk> {
        match self.calls.fetch_add(1, Ordering::Relaxed) {
            call if call == self.at => Err(io::Error::from_raw_os_error(EIO)),
            _ => Ok(OsDisk),
        }
    }
}

impl Disk for Failing {
    type File = File;
    type Lock = DirectoryLock;

    fn look(&self, path: &Path) -> io::Result<Found> {
        self.call()?.look(path)
    }

    fn create(&self, path: &Path, ownership: Option<&Ownership>) -> io::Result<File> {
        self.call()?.create(path, ownership)
    }

    fn allocate(&self, file: &File, len_bytes: u64) -> io::Result<()> {
        self.call()?.allocate(file, len_bytes)
    }

    fn write(&self, file: &File, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.call()?.write(file, pieces)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.call()?.sync(file)
    }

    fn write_back(&self, file: &File) -> io::Result<()> {
        self.call()?.write_back(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call()?.rename(from, to)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        self.call()?.sync_dir(directory)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call()?.remove(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        self.call()?.list(directory)
    }

    fn read(&self, path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
        self.call()?.read(path, most_bytes)
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        self.call()?.make_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.call()?.remove_dir(path)
    }

    fn lock(&self, directory: &Path) -> io::Result<Locked<DirectoryLock>> {
        self.call()?.lock(directory)
    }

    fn free_bytes(&self, directory: &Path) -> io::Result<u64> {
        self.call()?.free_bytes(directory)
    }
}

/// What this process holds open or mapped below a directory.
fn held(directory: &Path) -> Vec<String> {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap();
    // The descriptor of this very listing is gone by then, and others may go at any time.
    let paths = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let mut held: Vec<String> =
        paths.filter(|path| path.starts_with(directory)).map(|path| path.display().to_string()).collect();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    held.extend(maps.lines().filter(|map| map.contains(directory.to_str().unwrap())).map(str::to_owned));
    held
}

/// Two steps, and what others have left.
fn littered_room() -> (TempDir, PathBuf) {
    // In memory, where syncs cost nothing.
    let memory = Path::new("/dev/shm");
    let directory = tempfile::tempdir_in(if memory.is_dir() { memory } else { Path::new("/tmp") }).unwrap();
    let root = directory.path().join("run/ckpt");
    for step in [1, 2] {
        save_at(&root, step).unwrap();
    }
    fs::create_dir_all(root.join("step-000007.tmp/deep")).unwrap();
    fs::write(root.join("step-000007.tmp/deep/file"), "x").unwrap();
    (directory, root)
}

#[test]
fn what_is_held_is_seen() {
    let (directory, root) = littered_room();
    assert!(held(directory.path()).is_empty());
    let Locked::Ours(lock) = OsDisk.lock(&root).unwrap() else { panic!("nobody else is there") };
    assert_eq!(held(directory.path()), [root.display().to_string()]);
    drop(lock);
    let checkpoint = loaded(&root);
    assert!(held(directory.path()).len() >= 5, "{:?}", held(directory.path()));
    drop(checkpoint);
    assert!(held(directory.path()).is_empty());
}

/// Makes each call of a job fail in turn: how many there are. `job` says whether it made it.
fn fail_at_every_call(job: impl Fn(&Failing, &Path) -> bool) -> usize {
    for number in 0.. {
        let (directory, root) = littered_room();
        let disk = Failing { calls: AtomicUsize::new(0), at: number };
        let done = job(&disk, &root);
        assert_eq!(held(directory.path()), [""; 0], "call {number}");
        if disk.calls.into_inner() <= number {
            assert!(done, "the job fails on a sound disk");
            return number;
        }
    }
    unreachable!("a job has an end")
}

#[test]
fn nothing_is_held_after_any_failure_of_the_disk() {
    for (way, options) in [("one by one", SaveOptions::default()), ("all at once", in_portions(64))] {
        let options = SaveOptions { retention: Retention::last(1), ..options };
        let calls = fail_at_every_call(|disk, root| {
            Run::at(3).with(|state| save(disk, root, state, &options)).is_ok()
        });
        remark(&format!("descriptors: a save, {way}: {calls} calls, each of which failed"));
    }
    let loads = fail_at_every_call(|disk, root| load(disk, root).is_ok());
    let single = fail_at_every_call(|disk, root| load_step(disk, root, 1).is_ok());
    let prunes = fail_at_every_call(|disk, root| retain(disk, root, &Retention::last(1), false).is_ok());
    assert!(loads > 3 && single > 3 && prunes > 10, "{loads} {single} {prunes}");
}

#[test]
fn nothing_is_held_after_damage_is_found() {
    type Spoil = fn(&Path);
    let table: [Spoil; 6] = [
        |step| fs::write(step.join("model.safetensors"), "").unwrap(),
        |step| fs::write(step.join("MANIFEST.json"), "{}").unwrap(),
        |step| fs::remove_file(step.join("config.json")).unwrap(),
        |step| fs::create_dir(step.join("deep")).unwrap(),
        |step| fs::write(step.join("extra"), "").unwrap(),
        |step| {
            let path = step.join("optimizer.safetensors");
            let mut bytes = fs::read(&path).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(path, bytes).unwrap();
        },
    ];
    for spoil in table {
        let (directory, root) = littered_room();
        for step in ["step-000001", "step-000002"] {
            spoil(&root.join(step));
            assert!(!verify(&root.join(step), &|_, _| {}).unwrap().is_whole());
            assert!(held(directory.path()).is_empty(), "{:?}", held(directory.path()));
        }
        load(&OsDisk, &root).unwrap_err();
        load_step(&OsDisk, &root, 2).unwrap_err();
        assert!(held(directory.path()).is_empty(), "{:?}", held(directory.path()));
    }
}
