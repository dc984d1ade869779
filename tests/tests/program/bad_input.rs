//! Paths that are no model files, and names that would drive a terminal.
//!
//! Whatever a path leads to, the program answers: it does not wait for a FIFO, does not touch a device, and what it
//! prints of a stranger's names is text.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::{finish, fixtures, program, run, run_in, skipped};

#[test]
fn what_is_no_regular_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("empty")).unwrap();
    assert!(Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
    let _listener = UnixListener::bind(at("socket")).unwrap();
    for (link, to) in [("loop", "loop"), ("dangling", "none"), ("to_fifo", "fifo")] {
        std::os::unix::fs::symlink(to, at(link)).unwrap();
    }
    let table = [
        ("empty", "cannot find a model in empty: it holds no .safetensors file"),
        ("fifo", "cannot open fifo: it is a FIFO, not a regular file"),
        ("to_fifo", "cannot open to_fifo: it is a FIFO, not a regular file"),
        ("socket", "cannot open socket: it is a socket, not a regular file"),
        ("/dev/null", "cannot open /dev/null: it is a character device, not a regular file"),
        ("/dev/zero", "cannot open /dev/zero: it is a character device, not a regular file"),
        ("none", "cannot open none: No such file or directory"),
        ("dangling", "cannot open dangling: No such file or directory"),
        ("loop", "cannot open loop: Too many levels of symbolic links"),
    ];
    for (path, complaint) in table {
        for arguments in [vec!["check"], vec!["check", "--json"], vec!["inspect"]] {
            let ran = run_in(directory.path(), arguments.iter().chain(&[path]));
            assert_eq!(ran.expect(3), "", "{path}");
            assert!(
                ran.err.starts_with(&format!("safestep: {complaint}")) && ran.err.lines().count() == 1,
                "{ran:?}"
            );
        }
    }
}

#[test]
fn files_of_the_kernel_that_say_they_are_empty() {
    if fs::metadata("/proc/version").is_ok() {
        let ran = run(["check", "/proc/version"]);
        assert!(ran.expect(1).starts_with("/proc/version: R1.short at byte 0: "), "{ran:?}");
    }
}

#[test]
fn a_file_without_permission() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("secret.safetensors");
    fs::copy(fixtures().join("rules/good_one.safetensors"), &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = program();
    if fs::metadata(directory.path()).unwrap().uid() == 0 {
        // Root may read everything. Nobody may not, and needs a copy of the program where he may go.
        let copy = directory.path().join("program");
        assert!(
            Command::new("cp").args([command.get_program(), copy.as_os_str()]).status().unwrap().success()
        );
        command = Command::new(copy);
        command.uid(65534).gid(65534);
    }
    command.current_dir("/").arg("check").arg(&path);
    let ran = finish(&mut command);
    assert_eq!(ran.expect(3), "");
    assert!(ran.err.ends_with("secret.safetensors: Permission denied (os error 13)\n"), "{ran:?}");
}

#[test]
fn paths_that_are_no_text() {
    let directory = tempfile::tempdir().unwrap();
    let name = OsString::from_vec(b"mod\xffel\n.safetensors".to_vec());
    if fs::copy(fixtures().join("rules/good_one.safetensors"), directory.path().join(&name)).is_err() {
        skipped("the file system takes only names that are text");
        return;
    }
    let ran = run_in(directory.path(), [OsStr::new("check"), &name]);
    assert_eq!(ran.expect(0), "mod\\xffel\\n.safetensors: good\n");
    let ran = run_in(directory.path(), ["inspect", "."]);
    assert!(ran.expect(0).starts_with("./mod\\xffel\\n.safetensors: 1 tensor"), "{ran:?}");
    for command in ["check", "inspect"] {
        let ran = run_in(directory.path(), [OsStr::new(command), OsStr::new("--json"), &name]);
        assert!(ran.expect(0).contains("\"path\":\"mod\u{fffd}el\\n.safetensors\""), "{ran:?}");
    }
    let missing = OsStr::from_bytes(b"\xff\x1b[2J");
    let ran = run_in(directory.path(), [OsStr::new("check"), missing]);
    assert_eq!(ran.expect(3), "");
    assert!(ran.err.starts_with("safestep: cannot open \\xff\\u{1b}[2J: "), "{ran:?}");
    run_in(directory.path(), [OsStr::new("rewrite"), &name, OsStr::from_bytes(b"out\xfe")]).expect(0);
    assert!(directory.path().join(OsStr::from_bytes(b"out\xfe")).exists());
}

/// Names with every character that a terminal obeys, in good files and in bad ones, as tensors, keys and values.
#[test]
fn no_name_drives_a_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let evil: String = (0..0xa0)
        .chain([0x61c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202e, 0x2066, 0x2069])
        .filter_map(char::from_u32)
        .collect();
    // As escapes, and raw where JSON allows it.
    let spelled = serde_json::to_string(&evil).unwrap();
    let entry = "{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}";
    let headers = [
        ("good", format!("{{\"__metadata__\":{{{spelled}:{spelled}}},{spelled}:{entry}}}")),
        ("size", format!("{{{spelled}:{}}}", entry.replace("[0,1]", "[0,2]"))),
        ("dtype", format!("{{\"a\":{}}}", entry.replace("\"U8\"", &spelled))),
        ("dtype_c1", format!("{{\"a\":{}}}", entry.replace("\"U8\"", "\"\u{9b}31m\u{202e}\""))),
        ("field", format!("{{\"a\":{}}}", entry.replace("\"dtype\"", "\"\u{9b}31m\u{85}\""))),
        ("duplicate", format!("{{{spelled}:{entry},{spelled}:{entry}}}")),
        ("metadata", format!("{{\"__metadata__\":{{{spelled}:1}},\"a\":{entry}}}")),
        ("json", "{\"a\u{9b}2J\"\u{9b}:}".to_string()),
        ("start", "\u{1b}[2J".to_string()),
    ];
    for (name, header) in headers {
        let path = directory.path().join(format!("\u{1b}]0;{name}\u{7}\u{9b}.safetensors"));
        fs::write(&path, [&(header.len() as u64).to_le_bytes(), header.as_bytes(), b"\x01"].concat())
            .unwrap();
    }
    let path = OsStr::new(".");
    for arguments in [
        vec!["check"],
        vec!["check", "--json"],
        vec!["inspect"],
        vec!["inspect", "--json"],
        vec!["check", "--color", "always"],
        vec!["inspect", "--color", "always"],
    ] {
        let ran = run_in(directory.path(), arguments.iter().map(OsStr::new).chain([path]));
        assert!(ran.out.len() > 500, "{ran:?}");
        ran.expect(1);
        for stream in [&ran.out, &ran.err] {
            let stream = if arguments.contains(&"always") { without_colours(stream) } else { stream.clone() };
            let bad = stream.chars().find(|char| {
                *char != '\n' && (char.is_control() || evil.contains(*char) && !char.is_ascii())
            });
            assert_eq!(bad, None, "{arguments:?}: {stream:?}");
        }
        if arguments.contains(&"--json") {
            assert!(
                ran.out.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()),
                "{}",
                ran.out
            );
        }
    }
    // What is exact stays exact.
    let ran = run_in(directory.path(), ["inspect", "--json", "."]);
    let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let good = &document["files"][0];
    assert_eq!(
        (good["tensors"][0]["name"].as_str(), good["metadata"][&evil].as_str()),
        (Some(&*evil), Some(&*evil))
    );
}

/// The text without the sequences that set colours, which are ours.
fn without_colours(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        let digits = after.trim_start_matches(|char: char| char.is_ascii_digit() || char == ';');
        rest = digits.strip_prefix('m').unwrap_or("\u{1b} was no colour");
    }
    out + rest
}

#[test]
fn one_name_cannot_bury_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let name = "n".repeat(1_000_000);
    let ones = vec!["1"; 500_000].join(",");
    let header = format!("{{\"{name}\":{{\"dtype\":\"U8\",\"shape\":[{ones}],\"data_offsets\":[0,1]}}}}");
    let mut bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), b"\x01"].concat();
    fs::write(directory.path().join("good.safetensors"), &bytes).unwrap();
    bytes.pop();
    fs::write(directory.path().join("short.safetensors"), &bytes).unwrap();
    for command in ["check", "inspect"] {
        let ran = run_in(directory.path(), [command, "."]);
        ran.expect(1);
        assert!(ran.out.len() + ran.err.len() < 3000, "{}", ran.out.len());
    }
    let ran = run_in(directory.path(), ["inspect", "--json", "."]);
    assert!(ran.expect(1).contains(&name) && ran.out.contains(&ones));
}
