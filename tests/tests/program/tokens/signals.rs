//! A signal, or a directory in the way, while shards are written: what is there afterwards is whole, and is told.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::super::{Ran, collect, names, program};

/// Zeros, which take no room as an input; as shards they do.
fn sparse(path: &Path, len: u64) {
    fs::File::create(path).unwrap().set_len(len).unwrap();
}

fn pack(directory: &Path, more: &[&str]) -> Child {
    let mut command = program();
    command.current_dir(directory).args(["tokens", "pack", "in", "--out", "out.bin", "--vocab", "256"]);
    command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until a name like that is there, or the program has ended.
fn wait_for(directory: &Path, child: &mut Child, wanted: impl Fn(&str) -> bool) {
    let began = Instant::now();
    while !names(directory).iter().any(|name| wanted(&name.to_string_lossy())) {
        assert!(began.elapsed() < Duration::from_secs(60), "no such name: {:?}", names(directory));
        if child.try_wait().unwrap().is_some() {
            return;
        }
        thread::sleep(Duration::from_micros(200));
    }
}

/// Packs and disturbs, until it was disturbed in time.
fn disturbed(directory: &Path, more: &[&str], disturb: impl Fn(&mut Child)) -> Ran {
    for _ in 0..10 {
        let mut child = pack(directory, more);
        disturb(&mut child);
        let ran = collect(child);
        if !ran.status.success() {
            return ran;
        }
        for name in names(directory).iter().filter(|name| *name != "in") {
            fs::remove_file(directory.join(name)).unwrap();
        }
    }
    panic!("all was packed before it was disturbed");
}

fn signal(child: &Child, name: &str) {
    Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap();
}

/// One shard, or the first, the third or the last of several: nothing has its name yet, and what was begun is gone.
#[test]
fn a_signal_leaves_no_shard_of_a_set() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    sparse(&at.join("in"), 200_000_000);
    let cut = ["--shard-tokens", "50000000"];
    let table: &[(&str, i32, &[&str], &str)] = &[
        ("INT", 130, &[], ".out.bin."),
        ("INT", 130, &cut, ".out_000000.bin."),
        ("TERM", 143, &cut, ".out_000002.bin."),
        ("HUP", 129, &cut, ".out_000002.bin."),
        ("TERM", 143, &cut, ".out_000003.bin."),
    ];
    for (name, code, more, begun) in table {
        let ran = disturbed(at, more, |child| {
            wait_for(at, child, |name| name.starts_with(begun));
            signal(child, name);
        });
        assert_eq!(ran.expect(*code), "");
        assert_eq!(ran.err, "safestep: interrupted; nothing was changed\n", "{name} {begun}");
        assert_eq!(names(at), ["in"], "{name} {begun}");
    }
}

/// While every id is looked at, nothing is written, and yet a signal is heard.
#[test]
fn a_signal_is_heard_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    sparse(&at.join("in"), 1 << 40);
    let child = pack(at, &["--shard-tokens", "2000000000"]);
    // It has caught its signals long before.
    thread::sleep(Duration::from_millis(500));
    signal(&child, "TERM");
    let began = Instant::now();
    let ran = collect(child);
    assert!(began.elapsed() < Duration::from_secs(20));
    ran.expect(143);
    assert_eq!(
        (ran.err.as_str(), names(at)),
        ("safestep: interrupted; nothing was changed\n", vec!["in".into()])
    );
}

/// The third of four cannot get its name: the first two have theirs and are told, and nothing else is left.
#[test]
fn what_is_in_place_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    sparse(&at.join("in"), 200_000_000);
    let ran = disturbed(at, &["--shard-tokens", "50000000"], |child| {
        wait_for(at, child, |name| name.starts_with(".out_000003.bin."));
        let _ = fs::create_dir(at.join("out_000002.bin"));
    });
    assert_eq!(ran.expect(3), "");
    let told = "out_000000.bin to out_000001.bin: in place, 2 new shards, no more\n\
        safestep: cannot put the new file at out_000002.bin: Is a directory (os error 21)\n";
    assert_eq!(ran.err, told);
    let left = ["in", "out_000000.bin", "out_000001.bin", "out_000002.bin"].map(OsString::from);
    assert_eq!(names(at), left);
}
