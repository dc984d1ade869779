//! The program as its users meet it: arguments in; an exit code, text on two streams and files out.
//!
//! Nothing here knows the program from inside. It is built once, by cargo, for the profile of this test.

mod check;
mod inspect;
mod show;
mod rewrite;
mod convert;
mod tokens;
mod demo;
mod help;
mod bad_input;
mod bad_output;
mod short_memory;
mod real_model;
mod runs;
mod steps;
mod verify;
mod prune;
mod train;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use safestep_tests::remarks::skipped;

/// What a run of the program left.
#[derive(Debug)]
struct Ran {
    status: ExitStatus,
    out: String,
    err: String,
}

impl Ran {
    /// Asserts the exit code; gives what stands on standard output.
    #[track_caller]
    fn expect(&self, code: i32) -> &str {
        assert_eq!(self.status.code(), Some(code), "{self:#?}");
        &self.out
    }
}

/// A command for the program; it runs in `fixtures/` unless told otherwise.
pub(crate) fn program() -> Command {
    let mut command = Command::new(binary());
    command.current_dir(fixtures()).stdin(Stdio::null());
    // The machine that runs the tests may have opinions about colours.
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR"] {
        command.env_remove(name);
    }
    command
}

/// Runs the program with arguments of any kind.
fn run<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Ran {
    finish(program().args(arguments))
}

/// The same in a directory.
fn run_in<A: AsRef<OsStr>>(directory: &Path, arguments: impl IntoIterator<Item = A>) -> Ran {
    finish(program().current_dir(directory).args(arguments))
}

/// Runs a command to its end. A program that waits is a failure.
fn finish(command: &mut Command) -> Ran {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    collect(child)
}

fn collect(mut child: Child) -> Ran {
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let out = thread::spawn(move || out.map(drain).unwrap_or_default());
    let err = thread::spawn(move || err.map(drain).unwrap_or_default());
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > Duration::from_secs(120) {
            child.kill().unwrap();
            panic!("the program waits");
        }
        thread::sleep(Duration::from_millis(2));
    };
    Ran { status, out: out.join().unwrap(), err: err.join().unwrap() }
}

/// What a stream holds; all that the program says is UTF-8.
fn drain(mut stream: impl std::io::Read) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn fixtures() -> PathBuf {
    safestep_tests::cases::fixtures().canonicalize().unwrap()
}

/// The paths of a folder's models from `fixtures/`, in name order.
fn models_of(folder: &str) -> Vec<PathBuf> {
    let entries = fixtures().join(folder).read_dir().unwrap();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| Path::new(folder).join(entry.unwrap().file_name()))
        .filter(|path| path.extension() == Some(OsStr::new("safetensors")))
        .collect();
    paths.sort();
    paths
}

/// The names in a directory.
fn names(directory: &Path) -> Vec<OsString> {
    let mut names: Vec<OsString> =
        directory.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

/// All that stands below a directory: inode, time of the last change, content.
type Standing = BTreeMap<PathBuf, (u64, (i64, i64), Vec<u8>)>;

fn image(directory: &Path) -> Standing {
    use std::os::unix::fs::MetadataExt as _;
    let mut found = BTreeMap::new();
    let mut folders = vec![directory.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let metadata = std::fs::symlink_metadata(&path).unwrap();
            let content = match () {
                () if metadata.is_dir() => {
                    folders.push(path.clone());
                    Vec::new()
                }
                () if metadata.is_symlink() => {
                    std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
                }
                () => std::fs::read(&path).unwrap(),
            };
            let changed = (metadata.mtime(), metadata.mtime_nsec());
            found.insert(path, (metadata.ino(), changed, content));
        }
    }
    found
}

/// A model of one tensor of `len` zeros, which take no room on the disk.
fn sparse_model(path: &Path, len: u64) {
    sparse_tensor(path, "U8", len, len);
}

/// The same of any dtype: so many elements in `len` bytes.
fn sparse_tensor(path: &Path, dtype: &str, elements: u64, len: u64) {
    let mut header =
        format!("{{\"w\":{{\"dtype\":\"{dtype}\",\"shape\":[{elements}],\"data_offsets\":[0,{len}]}}}}");
    while header.len() % 8 != 0 {
        header.push(' ');
    }
    std::fs::write(path, [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat()).unwrap();
    File::options().write(true).open(path).unwrap().set_len(8 + header.len() as u64 + len).unwrap();
}

/// The program, built for this test's profile, target and features.
pub(crate) fn binary() -> &'static Path {
    static BINARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    // It is not built again for each test.
    BINARY.get_or_init(|| built("--bin", "safestep")).as_deref().expect("the program cannot be built")
}

/// A program or an example of the shell, built for this test's profile, target and features. Cargo knows if it is built already.
pub(crate) fn built(kind: &str, name: &str) -> Option<PathBuf> {
    // TARGET_DIR [/ TRIPLE] / PROFILE / deps / integration-HASH
    let test = std::env::current_exe().unwrap();
    let profile_dir = test.parent().and_then(Path::parent).unwrap();
    let above = profile_dir.parent().unwrap();
    let profile = match profile_dir.file_name().and_then(OsStr::to_str).unwrap() {
        // Two profiles share this directory. Most of this one is built already, for the test itself.
        "debug" => "test",
        other => other,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    build.args(["build", "--quiet", "--package", "safestep", kind, name, "--profile", profile]);
    if above.join(".rustc_info.json").exists() {
        build.arg("--target-dir").arg(above);
    } else {
        build.arg("--target-dir").arg(above.parent().unwrap());
        build.arg("--target").arg(above.file_name().unwrap());
    }
    if !cfg!(feature = "fast") {
        build.args(["--no-default-features", "--features", "program"]);
    }
    let folder = if kind == "--example" { profile_dir.join("examples") } else { profile_dir.to_path_buf() };
    let built = build.status().unwrap().success();
    built.then(|| folder.join(name).with_extension(std::env::consts::EXE_EXTENSION))
}
