//! Any system call of a save fails, is interrupted, does less than it was asked for, or is the last one.
//!
//! `strace` notes the calls of a save that have to do with its directory, and then runs the same save once for each call and
//! each way to fail. The save is of step 3, over steps 1 and 2, of which it deletes one, and over what two other saves have
//! left. It has to end with success, or with exit code 3 and a line that says where it failed; what is loaded is step 3 or step
//! 2; the next save clears the rest. A sync that has failed is never tried again: the second one may say that all is well about
//! bytes that are lost. Whatever was opened is closed before the end.
//!
//! The program saves, and then an example that writes a small state as large ones are written. `strace` counts the calls of each
//! thread: where there are many, the same call fails in each of them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use safestep::OsDisk;
use safestep::checkpoint::{Retention, SaveOptions, load, save};
use safestep_tests::remarks::{remark, skipped};
use safestep_tests::runs::Run;

use super::{Trained, Who, every_step_is_whole, judge, reported, room, saver};
use crate::program::program;

/// The calls that change something, and the one that opens.
const CALLS: &str = "write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,rename,renameat,renameat2,open,openat,unlink,\
                     unlinkat,rmdir,mkdir,mkdirat,fallocate,ftruncate";
/// Ways to fail for every call.
const FAULTS: [&str; 4] = ["error=EIO", "error=ENOSPC", "error=EINTR", "signal=KILL"];

const LEN_BYTES: usize = 70_000;

/// Who saves step 3.
enum Job {
    Program(Trained),
    /// The example, with as many threads as a large state has.
    ManyThreads,
}

/// A root with steps 1 and 2, and what two saves have left that did not come to their end.
struct Room {
    directory: tempfile::TempDir,
    files: Vec<(PathBuf, Vec<u8>)>,
    job: Job,
}

/// A call that may fail.
type Place = (String, usize);

impl Room {
    fn new(job: Job) -> Self {
        let mut room = Self { directory: room(), files: Vec::new(), job };
        match &room.job {
            Job::Program(trained) => {
                let begun = trained.command(&room.run(), 2, &[]).output().unwrap();
                assert!(begun.status.success(), "{begun:?}");
            }
            Job::ManyThreads => {
                for step in [1, 2] {
                    let options = SaveOptions { retention: Retention::last(2), ..SaveOptions::default() };
                    let run = Run::sized(step, LEN_BYTES);
                    run.with(|state| save(&OsDisk, &room.root(), state, &options)).unwrap();
                }
            }
        }
        room.files = files_in(&room.run());
        for (name, bytes) in [
            ("LATEST.tmp", "step-00"),
            ("step-000003.tmp/model.safetensors", "half"),
            ("step-000007.tmp/deep/model.safetensors", "half"),
        ] {
            room.files.push((room.root().join(name), bytes.into()));
        }
        room
    }

    fn run(&self) -> PathBuf {
        self.directory.path().join("run")
    }

    fn root(&self) -> PathBuf {
        self.run().join("ckpt")
    }

    fn who(&self) -> Who<'_> {
        match &self.job {
            Job::Program(trained) => Who::Program(trained),
            Job::ManyThreads => Who::Saver(LEN_BYTES),
        }
    }

    /// All as it was.
    fn tidy(&self) {
        let _ = fs::remove_dir_all(self.run());
        for (path, bytes) in &self.files {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }

    /// Saves step 3 under strace: how that ended, and the calls.
    fn save(&self, inject: Option<&str>) -> (Output, Vec<Call>) {
        self.tidy();
        let log = self.directory.path().join("calls");
        let command = match &self.job {
            Job::Program(trained) => trained.command(&self.run(), 3, &["--resume", "--keep-last", "2"]),
            Job::ManyThreads => {
                let mut saver = saver(&self.root(), 3, 1, LEN_BYTES);
                saver.args(["--portions", "16384"]);
                saver
            }
        };
        let mut strace = Command::new("strace");
        strace.args([
            "-f",
            "-y",
            "-qq",
            "-s",
            "0",
            "-e",
            &format!("trace=close,clone,clone3,{CALLS}"),
            "-e",
            "signal=none",
        ]);
        strace.args(inject.iter().flat_map(|fault| ["-e", fault])).arg("-o").arg(&log);
        let output = strace.arg(command.get_program()).args(command.get_args()).output().unwrap();
        (output, whole_calls(&fs::read_to_string(log).unwrap()))
    }

    /// Each call of the save that has to do with the root, by its name and the how manieth of that name and thread it is; and how
    /// many bytes it writes, if it does.
    fn places(&self) -> BTreeMap<Place, u64> {
        let (output, calls) = self.save(None);
        assert!(output.status.success(), "{output:?}");
        let root = self.root().to_str().unwrap().to_owned();
        assert!(all_is_closed(&calls, &root).unwrap() > 10, "nothing was opened: {calls:#?}");
        let reads = |call: &Call, step: &str| call.text.contains(step) && call.text.contains("O_RDONLY");
        // The program has loaded step 2 before, and looks at step 3 afterwards.
        let begin = calls.iter().rposition(|call| reads(call, "step-000002/")).map_or(0, |last| last + 1);
        let end = calls.iter().position(|call| reads(call, "step-000003/")).unwrap_or(calls.len());
        let (mut counts, mut places) = (BTreeMap::new(), BTreeMap::new());
        for (at, call) in calls.iter().enumerate() {
            let count = counts.entry((&call.thread, call.name())).or_insert(0);
            *count += 1;
            if (begin..end).contains(&at) && call.text.contains(&root) && call.name() != "close" {
                let len = places.entry((call.name().to_owned(), *count)).or_insert(0);
                *len = call.answer().max(*len);
            }
        }
        places
    }

    /// One save with one fault; whether it succeeded, if there was one.
    fn attempt(&self, (call, place): &Place, fault: &str) -> Result<Option<bool>, String> {
        let (output, calls) = self.save(Some(&format!("inject={call}:{fault}:when={place}")));
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let told = match &self.job {
            Job::Program(_) => err.lines().any(|line| line == "saved 3"),
            // The kernel may have lied about the report, too.
            Job::ManyThreads => reported(&out) == Some(3) || output.status.success(),
        };
        let killed = output.status.signal() == Some(9);
        if !killed && !calls.iter().any(|call| call.text.contains("(INJECTED)")) {
            // Which thread makes how many calls is left to chance.
            return if told { Ok(None) } else { Err("nothing was injected".to_owned()) };
        }
        no_second_sync(&calls)?;
        let (root, who) = (self.root(), self.who());
        if !killed {
            all_is_closed(&calls, root.to_str().unwrap())?;
        }
        if is_lie(fault) && told {
            return self.lied(&root).map(|()| Some(true));
        }
        match output.status.code() {
            None if killed => judge(&root, if told { 3 } else { 2 }, who).map(drop)?,
            Some(0) if told => judge(&root, 3, who).map(drop)?,
            Some(3) if !told && err.contains(root.to_str().unwrap()) => self.failed(&root, &err)?,
            _ => return Err(format!("{output:?}")),
        }
        Ok(Some(told))
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
        let found = judge(root, 2, self.who())?;
        if (found == 3) != in_place { Err(format!("{found} was loaded: {err}")) } else { Ok(()) }
    }

    /// The kernel lost bytes and said nothing: what is loaded is right all the same.
    fn lied(&self, root: &Path) -> Result<(), String> {
        let checkpoint = load(&OsDisk, root).map_err(|error| error.to_string())?;
        let step = checkpoint.name.step();
        match self.who().differs_from(&checkpoint) {
            None if [2, 3].contains(&step) => Ok(()),
            difference => Err(format!("{step} was loaded, with {difference:?}")),
        }
    }

    /// Each fault at each place: a line about it.
    fn try_all(&self, who: &str) {
        let (began, places) = (Instant::now(), self.places());
        assert!(places.len() > 40, "{places:?}");
        let (mut attempts, mut successes) = (0, 0);
        for (place, len) in &places {
            let faults = FAULTS.map(str::to_owned).into_iter().chain(lies(&place.0, *len));
            for fault in faults {
                let ended = self.attempt(place, &fault);
                let told = ended.unwrap_or_else(|complaint| panic!("{place:?}, {fault}: {complaint}"));
                attempts += usize::from(told.is_some());
                successes += usize::from(told == Some(true));
            }
        }
        let (places, seconds) = (places.len(), began.elapsed().as_secs_f64());
        remark(&format!(
            "system calls of {who}: {places}, {attempts} faults, {successes} saves went through, {seconds:.1} s"
        ));
        assert!(attempts > 150, "{attempts}");
    }
}

/// A write that does nothing; and a kernel that lies: it says that it wrote some bytes, and has not.
fn lies(call: &str, len: u64) -> Vec<String> {
    let mut counts = if call == "writev" { vec![0, 1, len / 2, len.saturating_sub(1)] } else { Vec::new() };
    counts.sort_unstable();
    counts.dedup();
    counts.into_iter().map(|count| format!("retval={count}")).collect()
}

fn is_lie(fault: &str) -> bool {
    fault.starts_with("retval=") && fault != "retval=0"
}

/// The files below a directory.
fn files_in(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut files, mut open) = (Vec::new(), vec![directory.to_path_buf()]);
    while let Some(directory) = open.pop() {
        for path in directory.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else {
                files.push((path.clone(), fs::read(path).unwrap()));
            }
        }
    }
    files
}

/// A call as `strace` tells of it.
#[derive(Debug)]
struct Call {
    thread: String,
    text: String,
}

impl Call {
    fn name(&self) -> &str {
        self.text.split('(').next().unwrap_or_default()
    }

    /// What it returned, if that is a count.
    fn answer(&self) -> u64 {
        let answer = self.text.rsplit_once(" = ").map(|(_, answer)| answer);
        answer.and_then(|answer| answer.split(' ').next()?.parse().ok()).unwrap_or_default()
    }
}

/// The calls in the order in which they came back; one that another thread interrupts takes two lines.
fn whole_calls(log: &str) -> Vec<Call> {
    let (mut begun, mut calls) = (BTreeMap::new(), Vec::new());
    for line in log.lines() {
        let Some((thread, text)) = line.split_once(' ') else { continue };
        let text = text.trim_start();
        if let Some(beginning) = text.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, beginning);
            continue;
        }
        let text = match text.strip_prefix("<... ").and_then(|text| text.split_once(" resumed>")) {
            Some((_, end)) => format!("{}{end}", begun.remove(thread).unwrap_or_default()),
            None => text.to_owned(),
        };
        calls.push(Call { thread: thread.to_owned(), text });
    }
    calls
}

/// Whether no file was synced again after that had failed.
fn no_second_sync(calls: &[Call]) -> Result<(), String> {
    let mut failed = Vec::new();
    for call in calls.iter().filter(|call| ["fsync", "fdatasync"].contains(&call.name())) {
        let path = call.text.split_once('<').and_then(|(_, path)| path.split_once('>')).map(|(path, _)| path);
        if failed.contains(&path) {
            return Err(format!("{path:?} was synced again"));
        }
        failed.extend(call.text.contains(" = -1 ").then_some(path));
    }
    Ok(())
}

/// Whether all that was opened below the root was closed again; how much that was.
fn all_is_closed(calls: &[Call], root: &str) -> Result<usize, String> {
    let of_root = |call: &&Call| call.text.contains(root);
    let opened = |call: &&Call| {
        let answer = call.text.rsplit_once(" = ").map(|(_, answer)| answer);
        call.name().starts_with("open") && answer.is_some_and(|answer| !answer.starts_with('-'))
    };
    let opens = calls.iter().filter(of_root).filter(opened).count();
    let closes = calls.iter().filter(of_root).filter(|call| call.name() == "close").count();
    if opens == closes { Ok(opens) } else { Err(format!("{opens} were opened, {closes} closed: {calls:#?}")) }
}

fn has_strace() -> bool {
    Command::new("strace").arg("-V").output().is_ok_and(|output| output.status.success())
}

#[test]
fn any_call_of_the_program_may_fail() {
    if !has_strace() {
        return skipped("there is no strace");
    }
    Room::new(Job::Program(Trained::new())).try_all("the program");
}

#[test]
fn any_call_of_many_threads_may_fail() {
    if !has_strace() {
        return skipped("there is no strace");
    }
    let room = Room::new(Job::ManyThreads);
    assert!(
        room.places().keys().any(|(call, _)| call == "fdatasync"),
        "nobody helps to bring bytes to the disk"
    );
    room.try_all("many threads");
}

/// Where no thread can be made, those that are there do the work.
#[test]
fn no_thread_can_be_made() {
    if !has_strace() {
        return skipped("there is no strace");
    }
    let room = Room::new(Job::ManyThreads);
    let (output, calls) = room.save(Some("inject=clone,clone3:error=EAGAIN"));
    assert!(output.status.success(), "{output:?}");
    assert!(calls.iter().any(|call| call.text.contains("EAGAIN")), "nobody wanted a thread");
    for arguments in [["verify", "--quiet"], ["steps", "--json"]] {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-e", "trace=clone,clone3", "-e", "inject=clone,clone3:error=EAGAIN"]);
        let ran = strace.arg(program().get_program()).args(arguments).arg(room.root()).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
    }
    judge(&room.root(), 3, room.who()).unwrap();
}
