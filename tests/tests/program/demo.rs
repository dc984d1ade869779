//! `demo`: the first thing that a newcomer runs. It has to end well, say the same each time and leave nothing behind.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::rewrite::send;
use super::{collect, finish, names, program, run_in};

#[test]
fn it_keeps_what_it_is_told_to_keep_and_is_the_same_each_time() {
    let directory = tempfile::tempdir().unwrap();
    let mut tours = Vec::new();
    for name in ["one", "two"] {
        let ran = run_in(directory.path(), ["demo", "--dir", name]);
        tours.push(ran.expect(0).replace(&format!(" in {name} "), " in DIR "));
        assert_eq!(ran.err, "");
    }
    assert_eq!(tours[0], tours[1]);
    let [one, two] = ["one", "two"].map(|name| directory.path().join(name));
    assert_eq!(names(&one), names(&two));
    assert!(names(&one).len() >= 8, "{:?}", names(&one));
    assert_eq!(contents(&one), contents(&two));
    let tour = &tours[0];
    assert!(tour.lines().all(|line| !line.contains('\u{1b}')), "{tour}");
    for word in [
        "[1/9] ",
        "[9/9] ",
        "R5.past_end",
        "R4.dtype",
        "R2.duplicate",
        "R4.size",
        "R1.too_large",
        "note.order",
        "killed by SIGKILL after step 60",
        "resumed 50",
        "skipped step-000100: model.safetensors",
        "100 losses whole/.loss.json, as 'safestep history' tells it",
        "$ safestep history RUN",
        "$ safestep steps RUN",
        "$ safestep snapshot export RUN",
        "$ safestep pivot RUN",
    ] {
        assert!(tour.contains(word), "{word} is missing in {tour}");
    }

    // The model is what the tour says of it, and the broken ones are broken.
    let ran = run_in(&one, ["inspect", "--json", "tiny.safetensors"]);
    let document: serde_json::Value = serde_json::from_str(ran.expect(0)).unwrap();
    assert_eq!(document["totals"]["by_dtype"].as_object().unwrap().len(), 22);
    let ran = run_in(&one, ["check", "--json", "."]);
    assert_eq!(ran.expect(1).matches("\"verdict\":\"bad\"").count(), 5);

    // A directory that is there belongs to somebody.
    let ran = run_in(directory.path(), ["demo", "--dir", "one"]);
    assert_eq!(ran.expect(3), "");
    assert!(ran.err.starts_with("safestep: cannot create the directory one: File exists"), "{}", ran.err);
}

/// Every file below a directory, with its bytes.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![directory.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(directory).unwrap().to_path_buf(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn it_tidies_up() {
    let temporary = tempfile::tempdir().unwrap();
    let ran = finish(program().arg("demo").env("TMPDIR", temporary.path()));
    assert!(ran.expect(0).contains(temporary.path().to_str().unwrap()), "{ran:?}");
    assert!(names(temporary.path()).is_empty(), "{:?}", names(temporary.path()));
}

/// The tour stops at its first line, for which there is no room in the pipe, and is interrupted there.
#[test]
fn it_tidies_up_when_it_is_interrupted() {
    let temporary = tempfile::tempdir().unwrap();
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&[b'.'; PIPE_BYTES]).unwrap();
    let mut command = program();
    command.arg("demo").env("TMPDIR", temporary.path()).stdout(writer).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command);
    while names(temporary.path()).is_empty() {
        thread::sleep(Duration::from_millis(1));
    }
    send("INT", &child);
    let drain = thread::spawn(move || reader.read_to_end(&mut Vec::new()));
    let ran = collect(child);
    drain.join().unwrap().unwrap();
    ran.expect(130);
    assert_eq!(ran.err, "safestep: interrupted\n");
    assert!(names(temporary.path()).is_empty(), "{:?}", names(temporary.path()));
}

/// What a new pipe holds.
const PIPE_BYTES: usize = 65_536;

#[test]
fn a_directory_that_cannot_be_made_is_named_once() {
    let ran = finish(program().arg("demo").env("TMPDIR", "/nonexistent"));
    assert_eq!(ran.expect(3), "");
    assert_eq!(ran.err, "safestep: cannot create a directory in /nonexistent: entity not found\n");
}
