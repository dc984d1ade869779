//! Memory that is short: a header may be 100 MB long, and what is made of it longer still. That ends a file, with an
//! error and exit code 3; not the process, and not the files behind it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Ran, finish, fixtures, names, program};

/// A model of so many tensors without elements.
fn crowd(path: &Path, tensors: usize) {
    let mut header = String::from("{");
    for number in 0..tensors {
        let separator = if number == 0 { "" } else { "," };
        write!(
            header,
            "{separator}\"{number:07}\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}"
        )
        .unwrap();
    }
    header.push('}');
    fs::write(path, [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat()).unwrap();
}

/// Runs the program in a directory with so much address space.
fn run_within(kib: usize, directory: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {kib} && exec \"$0\" \"$@\"")]);
    finish(command.arg(program().get_program()).args(arguments).current_dir(directory))
}

/// The least address space, in steps of 1 MiB, with which the program can say its version.
fn least(directory: &Path) -> usize {
    let starts = |mib: &usize| run_within(mib << 10, directory, &["--version"]).status.success();
    (2..200).find(starts).expect("the program starts in 200 MiB") << 10
}

#[test]
fn a_header_too_large_for_memory_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    crowd(&directory.path().join("crowd.safetensors"), 40_000);
    fs::copy(fixtures().join("rules/good_one.safetensors"), directory.path().join("last.safetensors"))
        .unwrap();
    let long = format!("{{\"{}\":{{}}}}", "n".repeat(4_000_000));
    let long = [&(long.len() as u64).to_le_bytes(), long.as_bytes()].concat();
    fs::write(directory.path().join("bad.safetensors"), long).unwrap();
    let before = names(directory.path());
    let least = least(directory.path());
    let table: &[(&[&str], i32)] = &[
        (&["check", "crowd.safetensors", "last.safetensors"], 0),
        (&["check", "bad.safetensors", "last.safetensors"], 1),
        (&["inspect", "crowd.safetensors", "last.safetensors"], 0),
        (&["inspect", "--sort", "size", "crowd.safetensors", "last.safetensors"], 0),
        (&["inspect", "--json", "crowd.safetensors", "last.safetensors"], 0),
        (&["rewrite", "crowd.safetensors", "new.safetensors"], 0),
    ];
    for (arguments, enough) in table {
        let (mut short, mut done) = (0, 0);
        for room in 0..24 {
            let ran = run_within(least + room * 1024, directory.path(), arguments);
            assert!(ran.out.contains("last.safetensors") || arguments[0] == "rewrite", "{room} MiB: {ran:?}");
            if ran.status.code() == Some(*enough) {
                let _ = fs::remove_file(directory.path().join("new.safetensors"));
                done += 1;
                continue;
            }
            ran.expect(3);
            assert!(ran.err.starts_with("safestep: cannot ") && ran.err.contains("out of memory"), "{ran:?}");
            assert_eq!(names(directory.path()), before, "{room} MiB: {ran:?}");
            short += 1;
        }
        assert!(short > 2 && done > 2, "{arguments:?}: {short} times too short, {done} times enough");
    }
}
