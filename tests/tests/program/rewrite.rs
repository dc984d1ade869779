//! `rewrite`: the same content in the layout that the reference library writes, or nothing at all.
//!
//! What a rewrite must never do is damage: a bad input, a full disk or a Ctrl-C leave the input and an old output as
//! they were, and no litter beside them.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use super::inspect::expected;
use super::{
    Ran, collect, finish, fixtures, names, program, run, run_in, skipped, sparse_model, sparse_tensor,
};

pub(super) fn sha256(path: &Path) -> String {
    let digest = Sha256::digest(fs::read(path).unwrap());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_bytes_are_those_of_the_reference_library() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("out.safetensors");
    let mut compared = 0;
    for folder in ["reference", "mlx", "candle", "burn"] {
        for (file, expected) in expected(folder) {
            let Some(canonical) = expected["canonical_sha256"].as_str() else { continue };
            let input = fixtures().join(folder).join(&file);
            let ran = run(["rewrite".as_ref(), input.as_os_str(), output.as_os_str()]);
            ran.expect(0);
            assert_eq!(sha256(&output), canonical, "{folder}/{file}");
            assert_eq!(run(["check".as_ref(), "--quiet".as_ref(), output.as_os_str()]).expect(0), "");
            compared += 1;
        }
    }
    assert!(compared > 40, "{compared}");
    assert_eq!(names(directory.path()), ["out.safetensors"]);
}

#[test]
fn what_is_said() {
    let directory = tempfile::tempdir().unwrap();
    fs::copy(fixtures().join("mlx/misaligned.safetensors"), directory.path().join("in")).unwrap();
    let ran = run_in(directory.path(), ["rewrite", "in", "out"]);
    let said = ran.expect(0);
    assert!(said.starts_with("out: written, ") && said.contains(" in canonical layout, "), "{said}");
    assert_eq!((said.lines().count(), ran.err.as_str()), (1, ""));
}

#[test]
fn in_place_through_a_link_with_the_permissions_it_had() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("store")).unwrap();
    fs::copy(fixtures().join("mlx/misaligned.safetensors"), at("store/model")).unwrap();
    fs::set_permissions(at("store/model"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("store/model", at("link")).unwrap();
    let canonical =
        expected("mlx")["misaligned.safetensors"]["canonical_sha256"].as_str().unwrap().to_string();
    assert_ne!(sha256(&at("link")), canonical);
    for _ in 0..2 {
        run_in(directory.path(), ["rewrite", "link", "link"]).expect(0);
        assert_eq!(sha256(&at("store/model")), canonical);
        assert_eq!(fs::metadata(at("store/model")).unwrap().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(
            (names(directory.path()), names(&at("store"))),
            (vec!["link".into(), "store".into()], vec![OsString::from("model")])
        );
    }
}

/// What stands in a directory: names and contents.
pub(super) fn image(directory: &Path) -> Vec<(OsString, Option<Vec<u8>>)> {
    names(directory)
        .into_iter()
        .map(|name| {
            let bytes = fs::read(directory.join(&name)).ok();
            (name, bytes)
        })
        .collect()
}

#[test]
fn what_cannot_be_done_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::copy(fixtures().join("rules/good_one.safetensors"), at("good")).unwrap();
    fs::copy(fixtures().join("rules/r5_surplus_one.safetensors"), at("bad")).unwrap();
    fs::write(at("old"), "the old output").unwrap();
    fs::create_dir(at("directory")).unwrap();
    assert!(Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
    symlink("loop", at("loop")).unwrap();
    let before = image_without_fifo(directory.path());

    let table: &[(&str, &str, i32, &str)] = &[
        ("bad", "old", 1, "bad: R5.surplus at byte "),
        ("bad", "new", 1, "bad: R5.surplus at byte "),
        ("bad", "bad", 1, "bad: R5.surplus at byte "),
        ("none", "old", 3, "safestep: cannot open none: No such file or directory"),
        ("directory", "old", 3, "safestep: cannot open directory: it is a directory, not a regular file"),
        ("fifo", "old", 3, "safestep: cannot open fifo: it is a FIFO, not a regular file"),
        ("loop", "old", 3, "safestep: cannot open loop: "),
        (
            "/dev/null",
            "old",
            3,
            "safestep: cannot open /dev/null: it is a character device, not a regular file",
        ),
        ("good", "directory", 3, "safestep: cannot write directory: it is a directory, not a regular file"),
        ("good", "new/", 3, "safestep: cannot write new/: it is a directory, not a regular file"),
        ("good", "fifo", 3, "safestep: cannot write fifo: it is a FIFO, not a regular file"),
        (
            "good",
            "/dev/null",
            3,
            "safestep: cannot write /dev/null: it is a character device, not a regular file",
        ),
        ("good", "loop", 3, "safestep: cannot write "),
        (
            "good",
            "none/new",
            3,
            "safestep: cannot create a temporary file beside none/new: No such file or directory",
        ),
        ("good", "good/new", 3, "safestep: cannot write good/new: Not a directory"),
        ("good", "/proc/new", 3, "safestep: cannot create a temporary file beside /proc/new: "),
    ];
    for (input, output, code, complaint) in table {
        let ran = run_in(directory.path(), ["rewrite", input, output]);
        assert_eq!(ran.expect(*code), "", "{input} {output}");
        assert!(
            ran.err.starts_with(complaint) && ran.err.lines().count() == 1,
            "{input} {output}: {}",
            ran.err
        );
        assert_eq!(image_without_fifo(directory.path()), before, "{input} {output}");
    }
}

/// Reading a FIFO would wait.
fn image_without_fifo(directory: &Path) -> Vec<(OsString, Option<Vec<u8>>)> {
    let fifo = directory.join("fifo");
    let hidden = directory.with_extension("fifo");
    fs::rename(&fifo, &hidden).unwrap();
    let image = image(directory);
    fs::rename(&hidden, &fifo).unwrap();
    image
}

#[test]
fn a_full_disk() {
    let directory = tempfile::tempdir().unwrap();
    let disk = directory.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m", "none"])
        .arg(&disk)
        .stderr(Stdio::null())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        skipped("a full disk: no small file system can be mounted without root");
        return;
    }
    let _mount = Mount(&disk);
    fs::write(disk.join("old.safetensors"), "the old output").unwrap();
    let input = directory.path().join("in.safetensors");
    sparse_model(&input, 2_000_000);
    let before = image(&disk);
    for output in ["new.safetensors", "old.safetensors"] {
        let ran = run(["rewrite".as_ref(), input.as_os_str(), disk.join(output).as_os_str()]);
        assert_eq!(ran.expect(3), "");
        assert!(ran.err.contains("No space left on device") && ran.err.lines().count() == 1, "{}", ran.err);
        assert_eq!(image(&disk), before);
    }
    // What fits still does.
    fs::copy(fixtures().join("rules/good_one.safetensors"), disk.join("small.safetensors")).unwrap();
    run_in(&disk, ["rewrite", "small.safetensors", "old.safetensors"]).expect(0);
}

pub(super) struct Mount<'p>(pub(super) &'p Path);

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

/// Begins a rewrite or a conversion that takes a while, disturbs it as soon as its temporary file is there, and looks at what is left:
/// the output as it was, and nothing new. A machine that is too busy to disturb it in time tries again.
///
/// `before` is a program that starts ours, with its arguments, or nothing.
pub(super) fn disturbed(before: &[&str], command: &[&str], disturb: impl Fn(&Child, &Path)) -> Ran {
    for _ in 0..10 {
        let directory = tempfile::tempdir().unwrap();
        let input = directory.path().join("in.safetensors");
        sparse_tensor(&input, "F32", 100_000_000, 400_000_000);
        fs::write(directory.path().join("out.safetensors"), "the old output").unwrap();
        let child = started_by(before)
            .current_dir(directory.path())
            .args(command)
            .args(["in.safetensors", "out.safetensors"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let began = Instant::now();
        while names(directory.path()).len() == 2 && began.elapsed() < Duration::from_secs(30) {
            thread::sleep(Duration::from_micros(200));
        }
        disturb(&child, &input);
        let ran = collect(child);
        assert_eq!(names(directory.path()), ["in.safetensors", "out.safetensors"], "{ran:?}");
        if !ran.status.success() {
            assert_eq!(fs::read(directory.path().join("out.safetensors")).unwrap(), b"the old output");
            return ran;
        }
    }
    panic!("each was over before it was disturbed");
}

/// The program, as another one starts it.
fn started_by(before: &[&str]) -> Command {
    let Some((first, rest)) = before.split_first() else { return program() };
    let mut command = Command::new(first);
    command.args(rest).arg(program().get_program());
    command
}

pub(super) fn send(signal: &str, child: &Child) {
    assert!(Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_signal_leaves_nothing_behind() {
    // Whoever runs the tests may have ignored them.
    let heard = ["env", "--default-signal=HUP,INT,TERM"];
    for (signal, code) in [("HUP", 129), ("INT", 130), ("TERM", 143)] {
        let ran = disturbed(&heard, &["rewrite"], |child, _| send(signal, child));
        assert_eq!(ran.expect(code), "");
        assert_eq!(ran.err, "safestep: interrupted; nothing was changed\n");
    }
}

/// As `nohup` starts it.
#[test]
fn a_hangup_that_was_ignored_stays_ignored() {
    let directory = tempfile::tempdir().unwrap();
    sparse_model(&directory.path().join("in"), 100_000_000);
    let child = started_by(&["env", "--ignore-signal=HUP"])
        .current_dir(directory.path())
        .args(["rewrite", "in", "out"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while names(directory.path()).len() == 1 {
        thread::sleep(Duration::from_micros(200));
    }
    send("HUP", &child);
    collect(child).expect(0);
    assert_eq!(names(directory.path()), ["in", "out"]);
}

/// The kernel says so by a signal that would end us.
#[test]
fn a_file_larger_than_the_process_may_write() {
    let directory = tempfile::tempdir().unwrap();
    sparse_model(&directory.path().join("in"), 4_000_000);
    fs::write(directory.path().join("out"), "the old output").unwrap();
    let before = image(directory.path());
    let limited = ["sh", "-c", "ulimit -f 1000 && exec \"$0\" \"$@\""];
    let ran = finish(started_by(&limited).current_dir(directory.path()).args(["rewrite", "in", "out"]));
    assert_eq!(ran.expect(3), "");
    assert!(ran.err.contains("out: File too large") && ran.err.lines().count() == 1, "{ran:?}");
    assert_eq!(image(directory.path()), before);
}

#[test]
fn an_input_that_shrinks_meanwhile() {
    let ran = disturbed(&[], &["rewrite"], |_, input| {
        fs::File::options().write(true).open(input).unwrap().set_len(1000).unwrap();
    });
    assert_eq!(ran.expect(3), "");
    assert_eq!(
        ran.err,
        "safestep: cannot read in.safetensors: it shrank from 400000080 to 1000 bytes while it was in use\n"
    );
}
