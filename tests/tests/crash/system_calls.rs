//! Any system call of a save fails, is interrupted, does less than it was asked for, or is the last one.
//!
//! `strace` notes the calls of a save that have to do with its directory, and then runs the same save once for each call and
//! each way to fail. The save is of step 3, over steps 1 and 2, of which it deletes one, and over what two other saves have
//! left. It has to end with success, or with exit code 3 and a line that says where it failed; what is loaded is step 3 or step
//! 2; the next save clears the rest. A sync that has failed is never tried again: the second one may say that all is well about
//! bytes that are lost.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use safestep::OsDisk;
use safestep::checkpoint::{Retention, SaveOptions, load, save};
use safestep_tests::runs::Run;

use super::{every_step_is_whole, judge, reported, room, saver};
use safestep_tests::remarks::skipped;

/// The calls that change something, and the one that opens.
const CALLS: &str = "write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,rename,renameat,renameat2,open,openat,unlink,\
                     unlinkat,rmdir,mkdir,mkdirat,fallocate,ftruncate";
/// Ways to fail for every call.
const FAULTS: [&str; 4] = ["error=EIO", "error=ENOSPC", "error=EINTR", "signal=KILL"];
/// A write that does nothing, and a kernel that lies: it says that it wrote a byte, and has not.
const WRITE_FAULTS: [&str; 2] = ["retval=0", LIE];
const LIE: &str = "retval=1";

const LEN_BYTES: usize = 70_000;

/// A root with steps 1 and 2, and what two saves have left that did not come to their end.
struct Room {
    directory: tempfile::TempDir,
    files: Vec<(PathBuf, Vec<u8>)>,
    len_bytes: usize,
}

impl Room {
    fn new(len_bytes: usize) -> Self {
        let directory = room();
        let root = directory.path().join("ckpt");
        for step in [1, 2] {
            let options = SaveOptions { retention: Retention::last(2), ..SaveOptions::default() };
            Run::sized(step, len_bytes).with(|state| save(&OsDisk, &root, state, &options)).unwrap();
        }
        let mut files = Vec::new();
        for step in ["step-000001", "step-000002"] {
            let entries = fs::read_dir(root.join(step)).unwrap().map(|entry| entry.unwrap().path());
            files.extend(entries.map(|path| (path.clone(), fs::read(path).unwrap())));
        }
        for (name, bytes) in [
            ("LATEST", &b"step-000002\n"[..]),
            ("LATEST.tmp", b"step-00"),
            ("step-000003.tmp/model.safetensors", b"half"),
            ("step-000007.tmp/model.safetensors", b"half"),
        ] {
            files.push((root.join(name), bytes.to_vec()));
        }
        Self { directory, files, len_bytes }
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("ckpt")
    }

    /// All as it was.
    fn tidy(&self) {
        let _ = fs::remove_dir_all(self.root());
        for (path, bytes) in &self.files {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }

    /// Saves step 3 under strace: how that ended, and the calls.
    fn save(&self, inject: Option<&str>) -> (Output, String) {
        self.tidy();
        let (log, saver) = (self.directory.path().join("calls"), saver(&self.root(), 3, 1, self.len_bytes));
        let mut strace = Command::new("strace");
        strace.args(["-f", "-y", "-qq", "-s", "0", "-e", &format!("trace={CALLS}"), "-e", "signal=none"]);
        strace.args(inject.iter().flat_map(|fault| ["-e", fault])).arg("-o").arg(&log);
        let output = strace.arg(saver.get_program()).args(saver.get_args()).output().unwrap();
        (output, fs::read_to_string(log).unwrap())
    }

    /// Each call that has to do with the root: its name, and the how manieth of that name it is.
    fn calls(&self) -> Vec<(String, usize)> {
        let (output, log) = self.save(None);
        assert!(output.status.success(), "{output:?}");
        let (root, mut counts, mut calls) = (self.root(), BTreeMap::<String, usize>::new(), Vec::new());
        for line in log.lines() {
            let Some((_, call)) = line.split_once(' ') else { continue };
            let name = call.trim_start().split('(').next().unwrap_or_default().to_owned();
            let count = counts.entry(name.clone()).or_default();
            *count += 1;
            if call.contains(root.to_str().unwrap()) {
                calls.push((name, *count));
            }
        }
        calls
    }

    /// One save with one fault; whether it succeeded.
    fn attempt(&self, call: &str, place: usize, fault: &str) -> Result<bool, String> {
        let (output, log) = self.save(Some(&format!("inject={call}:{fault}:when={place}")));
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        let told = reported(&String::from_utf8_lossy(&output.stdout)) == Some(3);
        let injected = log.contains("(INJECTED)") || output.status.signal() == Some(9);
        if !injected {
            return Err("nothing was injected".to_owned());
        }
        no_second_sync(&log)?;
        let root = self.root();
        if fault == LIE && told {
            return self.lied(&root).map(|()| true);
        }
        match (output.status.code(), output.status.signal()) {
            (Some(0), _) if told => judge(&root, 3, self.len_bytes).map(drop)?,
            (Some(3), _) if !told && err.contains(root.to_str().unwrap()) => self.failed(&root, &err)?,
            (_, Some(9)) => judge(&root, if told { 3 } else { 2 }, self.len_bytes).map(drop)?,
            _ => return Err(format!("{output:?}")),
        }
        Ok(told)
    }

    /// A save that says it failed: the old steps are all there, and step 3 only if the error says so.
    fn failed(&self, root: &Path, err: &str) -> Result<(), String> {
        let in_place = err.contains("make durable");
        every_step_is_whole(root)?;
        for step in [1, 2].iter().filter(|_| !in_place) {
            if !root.join(format!("step-00000{step}")).is_dir() {
                return Err(format!("step {step} is gone: {err}"));
            }
        }
        let found = judge(root, 2, self.len_bytes)?;
        if (found == 3) != in_place { Err(format!("{found} was loaded: {err}")) } else { Ok(()) }
    }

    /// The kernel lost a byte and said nothing: what is loaded is right all the same.
    fn lied(&self, root: &Path) -> Result<(), String> {
        let checkpoint = load(&OsDisk, root).map_err(|error| error.to_string())?;
        let step = checkpoint.name.step();
        match Run::sized(step, self.len_bytes).differs_from(&checkpoint) {
            None if [2, 3].contains(&step) => Ok(()),
            difference => Err(format!("{step} was loaded, with {difference:?}")),
        }
    }
}

/// Whether no file was synced again after that had failed.
fn no_second_sync(log: &str) -> Result<(), String> {
    let synced = log.lines().filter_map(|line| {
        let call = line.split_once(' ')?.1.trim_start();
        let file = call.strip_prefix("fsync(").or_else(|| call.strip_prefix("fdatasync("))?;
        let path = file.split_once('<')?.1.split_once('>')?.0;
        Some((path, call.contains(" = -1 ")))
    });
    let mut failed = Vec::new();
    for (path, fails) in synced {
        if failed.contains(&path) {
            return Err(format!("{path} was synced again"));
        }
        failed.extend(fails.then_some(path));
    }
    Ok(())
}

fn has_strace() -> bool {
    Command::new("strace").arg("-V").output().is_ok_and(|output| output.status.success())
}

#[test]
fn any_call_may_fail() {
    if !has_strace() {
        return skipped("there is no strace");
    }
    let (began, room) = (Instant::now(), Room::new(LEN_BYTES));
    let calls = room.calls();
    assert!(calls.len() > 50, "{calls:?}");
    let (mut attempts, mut successes) = (0, 0);
    for (call, place) in &calls {
        let more = if call == "write" { &WRITE_FAULTS[..] } else { &[] };
        for fault in FAULTS.iter().chain(more) {
            let ended = room.attempt(call, *place, fault);
            let told = ended.unwrap_or_else(|complaint| panic!("{call} {place}, {fault}: {complaint}"));
            attempts += 1;
            successes += usize::from(told);
        }
    }
    let (calls, seconds) = (calls.len(), began.elapsed().as_secs_f64());
    println!("{calls} calls, {attempts} faults, {successes} saves went through, {seconds:.1} s");
}

/// A file that is large enough is brought to the disk while it is being written, by other threads.
#[test]
fn any_call_of_the_helping_threads_may_fail() {
    if !has_strace() {
        return skipped("there is no strace");
    }
    let room = Room::new(68 << 20);
    for (call, fault) in [
        ("fdatasync", "error=EIO"),
        ("fdatasync", "error=EINTR"),
        ("fdatasync", "signal=KILL"),
        ("fallocate", "error=ENOSPC"),
    ] {
        let told = room.attempt(call, 1, fault);
        assert_eq!(told, Ok(false), "{call}, {fault}");
    }
}
