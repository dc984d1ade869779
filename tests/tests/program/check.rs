//! `check`: the contract of the reader rules once more, through the program's own words.
//!
//! A script acts on the exit code and on the JSON lines; a person on the text. All three must say of each file of the
//! case table what the table says, and one bad or unreadable file must not hide the next one.

use std::fs::{self, File};
use std::path::PathBuf;

use safestep_tests::cases::{Case, Verdict, cases};
use serde_json::{Value, json};

use super::{models_of, run, run_in};

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    path: String,
    verdict: String,
    rule: Option<String>,
    offset: Option<u64>,
    tensor: Option<String>,
    message: Option<String>,
    notes: Vec<Note>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    id: String,
    offset: u64,
    tensor: Option<String>,
    count: u64,
    message: String,
}

#[test]
fn every_case_of_the_table_in_one_run() {
    let directory = tempfile::tempdir().unwrap();
    let (mut paths, mut expected) = (Vec::new(), Vec::new());
    let mut too_long = 0;
    for case in cases() {
        // The program takes the limits that the format has.
        if case.limit_header_bytes.is_some() || case.allow_dtypes.is_some() {
            continue;
        }
        let Some(path) = at_full_length(&case, &directory) else {
            too_long += 1;
            continue;
        };
        paths.push(path);
        expected.push(case);
    }
    assert!(too_long <= 1 && expected.len() > 300, "{too_long} of {} left out", expected.len());

    let ran = run(["check".into(), "--json".into()].iter().chain(&paths));
    let lines: Vec<Line> = ran.expect(1).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), ran.err.as_str()), (expected.len(), ""));
    for ((line, case), path) in lines.iter().zip(&expected).zip(&paths) {
        assert_eq!(line.path, path.to_str().unwrap());
        agree(line, case);
    }
}

/// The case's file, or where only its header is kept, a sparse one with that header. No file system has the longest.
fn at_full_length(case: &Case, directory: &tempfile::TempDir) -> Option<PathBuf> {
    let Some(len) = case.file_len else { return Some(case.path()) };
    let path = directory.path().join(&case.name);
    fs::write(&path, case.bytes()).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(len).ok()?;
    Some(path)
}

fn agree(line: &Line, case: &Case) {
    let about = format!("{} ({}): {line:?}", case.name, case.about);
    let verdict = match case.verdict {
        Verdict::Good => "good",
        Verdict::Bad => "bad",
    };
    assert_eq!(line.verdict, verdict, "{about}");
    assert_eq!(line.message.is_some(), verdict == "bad", "{about}");
    assert_eq!(line.rule, case.rule, "{about}");
    assert_eq!(line.offset, case.offset, "{about}");
    assert_eq!(line.tensor, case.tensor, "{about}");
    assert!(line.notes.iter().map(|note| &note.id).eq(&case.notes), "{about}");
    assert!(line.notes.iter().all(|note| !note.message.is_empty()), "{about}");
    for expected in &case.note_details {
        let found = line.notes.iter().find(|note| note.id == expected.id).unwrap();
        assert_eq!((found.offset, &found.tensor), (expected.offset, &expected.tensor), "{about}");
        assert!(expected.count.is_none_or(|count| count == found.count), "{about}");
    }
    if let Some(seems) = &case.seems {
        let (_, word) = STRANGERS.iter().find(|(seems_so, _)| seems_so == seems).unwrap();
        assert!(line.message.as_deref().unwrap_or_default().contains(word), "{about}");
    }
}

/// What a message says of files of other formats.
const STRANGERS: [(&str, &str); 10] = [
    ("zip", "a zip archive"),
    ("pickle", "can run code"),
    ("pickle_frame", "can run code"),
    ("gguf", "a GGUF model"),
    ("git_lfs", "a git-lfs pointer"),
    ("html", "a web page"),
    ("gzip", "a gzip file"),
    ("npy", "a NumPy .npy array"),
    ("hdf5", "an HDF5 file"),
    ("onnx", "an ONNX model"),
];

/// Paths from `fixtures/`; what goes to standard output, and to standard error.
#[test]
fn what_a_person_reads() {
    let table: &[(&[&str], i32, &str, &str)] = &[
        (&["rules/good_one.safetensors"], 0, "rules/good_one.safetensors: good\n", ""),
        (
            &["rules/r4_size_too_long.safetensors"],
            1,
            "rules/r4_size_too_long.safetensors: R4.size at byte 55, tensor \"a\": \
             expected 4 bytes for this shape and dtype, found offsets that span 8: shape [1]\n",
            "",
        ),
        (
            &["rules/r2_duplicate_escape.safetensors"],
            1,
            "rules/r2_duplicate_escape.safetensors: R2.duplicate at byte 62, \"a\": \
             expected each key once, found one that stands at byte 9 too\n",
            "",
        ),
        (
            &["rules/stranger_pickle.safetensors"],
            1,
            "rules/stranger_pickle.safetensors: R1.too_large at byte 0: expected a header of at most 100000000 \
             bytes, found a stated length of 378233903972992; the file seems to be a Python pickle \
             (it can run code when it is loaded)\n",
            "",
        ),
        (
            &["rules/note_name_escape.safetensors", "rules/good_one.safetensors"],
            0,
            "rules/note_name_escape.safetensors: good\n  \
             note.name: 1 name is empty or holds control characters (\"\\u{1b}[2J\", byte 9)\n\
             rules/good_one.safetensors: good\n",
            "2 files: 2 good\n",
        ),
        (
            &["rules/r1_short_one.safetensors", "none", "rules/good_one.safetensors"],
            3,
            "rules/r1_short_one.safetensors: R1.short at byte 1: \
             expected 8 bytes of header length, found a file of 1\n\
             rules/good_one.safetensors: good\n",
            "safestep: cannot open none: No such file or directory (os error 2)\n\
             3 files: 1 good, 1 bad, 1 unreadable\n",
        ),
    ];
    for (paths, code, out, err) in table {
        let ran = run(["check"].iter().chain(*paths));
        assert_eq!((ran.expect(*code), ran.err.as_str()), (*out, *err), "{paths:?}");
    }
}

#[test]
fn what_a_program_reads() {
    let table: &[(&str, i32, Value)] = &[
        (
            "rules/good_one.safetensors",
            0,
            json!({"path": "rules/good_one.safetensors", "verdict": "good", "rule": null, "offset": null,
                "tensor": null, "message": null, "notes": []}),
        ),
        (
            "rules/r4_size_too_long.safetensors",
            1,
            json!({"path": "rules/r4_size_too_long.safetensors", "verdict": "bad", "rule": "R4.size", "offset": 55,
                "tensor": "a", "message": "expected 4 bytes for this shape and dtype, found offsets that span 8: shape [1]",
                "notes": []}),
        ),
        (
            "rules/note_name_escape.safetensors",
            0,
            json!({"path": "rules/note_name_escape.safetensors", "verdict": "good", "rule": null, "offset": null,
                "tensor": null, "message": null, "notes": [{"id": "note.name", "offset": 9, "tensor": "\u{1b}[2J",
                "count": 1,
                "message": "1 name is empty or holds control characters (\"\\u{1b}[2J\", byte 9)"}]}),
        ),
    ];
    for (path, code, line) in table {
        let ran = run(["check", "--json", path]);
        let out = ran.expect(*code);
        assert_eq!(serde_json::from_str::<Value>(out).unwrap(), *line);
        assert!(out.ends_with("}\n") && out.lines().count() == 1, "{out}");
    }
    // The order of the keys, for those who read with their eyes.
    let ran = run(["check", "--json", "rules/good_one.safetensors"]);
    assert_eq!(
        ran.expect(0),
        "{\"path\":\"rules/good_one.safetensors\",\"verdict\":\"good\",\"rule\":null,\"offset\":null,\
         \"tensor\":null,\"message\":null,\"notes\":[]}\n"
    );
}

#[test]
fn quiet_is_silent_on_success_only() {
    let table: &[(&[&str], i32, usize, usize)] = &[
        (&["-q", "candle", "burn", "reference/empty.safetensors"], 0, 0, 0),
        (&["-q", "mlx"], 0, 0, 0),
        (&["--quiet", "--json", "candle"], 0, 0, 0),
        (&["--quiet", "candle", "rules/r1_short_one.safetensors"], 1, 1, 0),
        (&["--quiet", "--json", "candle", "rules/r1_short_one.safetensors"], 1, 1, 0),
        (&["-q", "candle", "none"], 3, 0, 1),
    ];
    for (arguments, code, out, err) in table {
        let ran = run(["check"].iter().chain(*arguments));
        assert_eq!((ran.expect(*code).lines().count(), ran.err.lines().count()), (*out, *err), "{ran:?}");
    }
}

#[test]
fn directories_are_their_models_in_name_order() {
    let paths = |ran: &super::Ran| -> Vec<String> {
        ran.out.lines().map(|line| serde_json::from_str::<Line>(line).unwrap().path).collect()
    };
    let ran = run(["check", "--json", "mlx"]);
    ran.expect(0);
    assert_eq!(paths(&ran), models_of("mlx").iter().map(|path| path.to_str().unwrap()).collect::<Vec<_>>());

    let directory = tempfile::tempdir().unwrap();
    let good = fs::read(super::fixtures().join("rules/good_one.safetensors")).unwrap();
    for (name, bytes) in [
        ("b.safetensors", good.as_slice()),
        ("a.safetensors", b"bad"),
        ("deep/er/c.safetensors", &good),
        ("deep/d.safetensors", &good),
        ("a.directory.safetensors/e.safetensors", &good),
        ("notes.txt", b"no model"),
        ("b.safetensors.tmp", b"no model"),
        ("empty/notes.txt", b"no model"),
    ] {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    std::os::unix::fs::symlink("deep/d.safetensors", directory.path().join("link.safetensors")).unwrap();
    std::os::unix::fs::symlink("..", directory.path().join("deep/loop")).unwrap();

    let ran = run_in(directory.path(), ["check", "--json", "."]);
    ran.expect(1);
    assert_eq!(paths(&ran), ["./a.safetensors", "./b.safetensors", "./link.safetensors"]);
    let ran = run_in(directory.path(), ["check", "--json", "--recursive", "."]);
    ran.expect(1);
    let all = [
        "./a.directory.safetensors/e.safetensors",
        "./a.safetensors",
        "./b.safetensors",
        "./deep/d.safetensors",
        "./deep/er/c.safetensors",
        "./link.safetensors",
    ];
    assert_eq!(paths(&ran), all);

    let table = [
        (vec!["check", "empty"], " (--recursive looks into its directories too)"),
        (vec!["check", "-r", "empty"], ""),
        (vec!["inspect", "empty"], " (--recursive looks into its directories too)"),
    ];
    for (arguments, hint) in table {
        let ran = run_in(directory.path(), &arguments);
        assert!(ran.expect(3).is_empty(), "{ran:?}");
        let complaint =
            format!("safestep: cannot find a model in empty: it holds no .safetensors file{hint}\n");
        assert_eq!(ran.err, complaint);
    }
}
