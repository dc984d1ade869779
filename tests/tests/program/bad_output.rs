//! Readers that go away and disks that are full: the program ends, quietly or with a reason, and never with a panic.

use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;

use super::{collect, program};

const COMMANDS: &[&[&str]] = &[
    &["inspect", "reference"],
    &["inspect", "--json", "reference"],
    &["show", "mlx/dtypes.safetensors", "float32"],
    &["show", "mlx/dtypes.safetensors", "float32", "--json"],
    &["show", "mlx/dtypes.safetensors", "float32", "--stats"],
    &["check", "rules"],
    &["check", "--json", "rules"],
    &["tokens", "inspect", "fuzz/shard/narrow"],
    &["tokens", "check", "--json", "fuzz/shard/narrow"],
    &["tokens", "windows", "fuzz/shard/narrow", "--seq-len", "1", "--batch", "9", "--batches", "99"],
    &["demo"],
    &["completions", "bash"],
    &["man"],
    &["--help"],
    &["check", "--help"],
    &["--version"],
];

/// As `safestep … | head -0`. A part of the answer must not pass for a success.
#[test]
fn a_closed_pipe_ends_quietly() {
    const SIGPIPE: i32 = 13;
    for arguments in COMMANDS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = program().args(*arguments).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let ran = collect(child);
        assert_eq!(ran.err, "", "{arguments:?}");
        assert_eq!(ran.status.signal(), Some(SIGPIPE), "{arguments:?}: {:?}", ran.status);
    }
}

#[test]
fn closed_standard_error_does_not_matter() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let child =
        program().args(["check", "none", "rules"]).stdout(Stdio::piped()).stderr(writer).spawn().unwrap();
    let ran = collect(child);
    assert!(ran.expect(3).lines().count() > 100, "{ran:?}");
    for arguments in [vec!["no such command"], vec!["inspect", "none"]] {
        let (_, writer) = std::io::pipe().unwrap();
        let child = program().args(&arguments).stdout(Stdio::piped()).stderr(writer).spawn().unwrap();
        let ran = collect(child);
        assert!(matches!(ran.status.code(), Some(2 | 3)), "{arguments:?}: {ran:?}");
    }
}

#[test]
fn a_full_disk_under_standard_output_is_said() {
    let Ok(full) = File::options().write(true).open("/dev/full") else { return };
    for arguments in COMMANDS {
        let full = full.try_clone().unwrap();
        let child = program().args(*arguments).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let ran = collect(child);
        ran.expect(3);
        assert!(ran.err.starts_with("safestep: cannot write the output: No space left on device"), "{ran:?}");
    }
}
