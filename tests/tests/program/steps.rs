//! `steps`: what a run has to come back to, and what is in the way. The worst of it would be to say that a broken checkpoint is
//! whole, or to name another one than a resume takes.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use safestep::OsDisk;
use safestep::checkpoint::{SaveOptions, load, save};
use safestep_tests::runs::Run;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{names, run_in};

/// A run with checkpoints of these steps in a directory that vanishes; and where they are.
pub(super) fn run_of(steps: &[u64]) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("run/ckpt");
    for step in steps {
        Run::at(*step).with(|state| save(&OsDisk, &root, state, &SaveOptions::default())).unwrap();
    }
    (directory, root)
}

/// Everything that can happen to step 2 of a run: what is done to its directory, and the words for it.
pub(super) type Damage = (&'static str, fn(&Path), &'static str);

pub(super) const DAMAGES: [Damage; 8] = [
    (
        "a flipped bit",
        |step| {
            let mut bytes = fs::read(step.join("model.safetensors")).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(step.join("model.safetensors"), bytes).unwrap();
        },
        "model.safetensors: expected sha256 ",
    ),
    (
        "a short file",
        |step| fs::write(step.join("config.json"), "").unwrap(),
        "config.json: expected 13 bytes, found 0",
    ),
    (
        "a missing file",
        |step| fs::remove_file(step.join("optimizer.safetensors")).unwrap(),
        "optimizer.safetensors: it is missing",
    ),
    (
        "an extra file",
        |step| fs::write(step.join(OsStr::from_bytes(b"\xff\x1b")), "").unwrap(),
        r"\xff\u{1b}: the manifest does not list it",
    ),
    (
        "no manifest",
        |step| fs::remove_file(step.join("MANIFEST.json")).unwrap(),
        "MANIFEST.json: it is missing",
    ),
    (
        "a bad manifest",
        |step| fs::write(step.join("MANIFEST.json"), "{\"\u{9b}31m").unwrap(),
        "MANIFEST.json: at byte ",
    ),
    (
        "a directory",
        |step| fs::create_dir(step.join("deep")).unwrap(),
        "deep: it is a directory, not a regular file",
    ),
    (
        "a link",
        |step| {
            fs::rename(step.join("config.json"), step.with_file_name("moved")).unwrap();
            symlink("../moved", step.join("config.json")).unwrap();
        },
        "config.json: it is ",
    ),
];

fn document(directory: &Path, run: impl AsRef<OsStr>) -> Value {
    let ran = run_in(directory, [OsStr::new("steps"), OsStr::new("--json"), run.as_ref()]);
    let text = ran.expect(0);
    assert!(!text.contains(|char: char| char.is_control() && char != '\n'), "{text:?}");
    assert_eq!((text.lines().count(), ran.err.as_str()), (1, ""));
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_run_is_listed_for_people() {
    let (directory, root) = run_of(&[50, 1_000_000, 100]);
    fs::create_dir(root.join("step-7")).unwrap();
    fs::create_dir(root.join("step-000150.tmp")).unwrap();
    for run in ["run", "run/ckpt", "run/", "run/ckpt/"] {
        let ran = run_in(directory.path(), ["steps", run]);
        let said = ran.expect(0);
        let mut lines = said.lines();
        let head = lines.next().unwrap();
        assert!(
            head.ends_with("ckpt: 3 checkpoints, a resume takes step 100") || head.contains("ckpt/: 3 "),
            "{head}"
        );
        let table: Vec<Vec<&str>> = lines.map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(table[1], ["step", "bytes", "age", "verified"]);
        assert_eq!((table[2][0], table[2][5..].join(" ")), ("step-000050", "yes".into()));
        assert_eq!((table[3][0], table[3][5..].join(" ")), ("step-000100", "yes LATEST, resume".into()));
        assert_eq!((table[4][0], table[4][5..].join(" ")), ("step-1000000", "yes not declared done".into()));
        assert!(said.ends_with(
            "\n  foreign  step-7 (is never touched)\n  stale    step-000150.tmp (the next save clears it)\n"
        ));
        assert_eq!(ran.err, "");
    }
}

#[test]
fn a_run_is_one_document_for_programs() {
    let (directory, root) = run_of(&[1, 2]);
    fs::write(root.join("notes\u{9b}"), "").unwrap();
    fs::create_dir(root.join("step-000003.tmp")).unwrap();
    let bytes = |step: &str| -> u64 {
        names(&root.join(step)).iter().map(|name| root.join(step).join(name).metadata().unwrap().len()).sum()
    };
    let step =
        |step: u64, name: &str| json!({"step": step, "bytes": bytes(name), "valid": true, "reason": null});
    let expected = json!({
        "latest": "step-000002",
        "load": 2,
        "steps": [step(1, "step-000001"), step(2, "step-000002")],
        "foreign": ["notes\u{9b}"],
        "stale": ["step-000003.tmp"],
    });
    for run in ["run", "run/ckpt"] {
        assert_eq!(document(directory.path(), run), expected);
    }
    assert_eq!(document(&root, "."), expected);
}

#[test]
fn a_run_without_checkpoints_has_nothing_to_resume() {
    let directory = tempfile::tempdir().unwrap();
    let run = directory.path().join("run");
    fs::create_dir(&run).unwrap();
    fs::write(run.join("x.loss.json"), "").unwrap();
    let nothing = json!({"latest": null, "load": null, "steps": [], "foreign": [], "stale": []});
    assert_eq!(document(directory.path(), "run"), nothing);
    assert_eq!(run_in(directory.path(), ["steps", "run"]).expect(0), "run: 0 checkpoints\n");
    fs::create_dir(run.join("ckpt")).unwrap();
    assert_eq!(document(directory.path(), "run"), nothing);
    fs::write(run.join("ckpt/x"), "").unwrap();
    for (place, run) in [("run", "ckpt"), ("run/ckpt", ".")] {
        assert_eq!(document(&directory.path().join(place), run)["foreign"], json!(["x"]));
    }
    for missing in ["none", "none/ckpt", "run/x.loss.json"] {
        let ran = run_in(directory.path(), ["steps", "--json", missing]);
        assert_eq!(ran.expect(3), "");
        assert!(ran.err.starts_with(&format!("safestep: cannot list {missing}: ")), "{}", ran.err);
    }
}

#[test]
fn damage_of_each_kind_is_shown_and_stepped_over() {
    for (kind, spoil, words) in DAMAGES {
        let (directory, root) = run_of(&[1, 2]);
        spoil(&root.join("step-000002"));
        let document = document(directory.path(), "run");
        assert_eq!((&document["latest"], &document["load"]), (&json!("step-000002"), &json!(1)), "{kind}");
        let step = &document["steps"][1];
        assert_eq!((&step["valid"], &document["steps"][0]["valid"]), (&json!(false), &json!(true)), "{kind}");
        assert!(step["reason"].as_str().unwrap().starts_with(words), "{kind}: {step}");
        assert_eq!(load(&OsDisk, &root).unwrap().name.step(), 1);
        let ran = run_in(directory.path(), ["steps", "run"]);
        assert!(ran.expect(0).contains(&format!("\n  step-000002: {words}")), "{}", ran.out);
        assert!(
            ran.out.contains("  no        LATEST\n") && !ran.out.contains(['\u{1b}', '\u{9b}']),
            "{}",
            ran.out
        );
    }
}

#[test]
fn what_a_resume_takes_is_what_load_takes() {
    type Spoil = fn(&Path);
    let table: [(&str, Spoil, Value, Option<&str>); 8] = [
        ("whole", |_| (), json!("step-000003"), None),
        (
            "older",
            |root| fs::write(root.join("LATEST"), "step-000002\n").unwrap(),
            json!("step-000002"),
            None,
        ),
        (
            "gone",
            |root| fs::write(root.join("LATEST"), "step-000009\n").unwrap(),
            json!("step-000009"),
            Some("it names step-000009, which is not there"),
        ),
        ("absent", |root| fs::remove_file(root.join("LATEST")).unwrap(), Value::Null, None),
        (
            "empty",
            |root| fs::write(root.join("LATEST"), "").unwrap(),
            Value::Null,
            Some("it names no step: \"\""),
        ),
        (
            "hostile",
            |root| fs::write(root.join("LATEST"), "\u{1b}]0;x\u{7}").unwrap(),
            Value::Null,
            Some(r#"it names no step: "\u{1b}]0;x\u{7}""#),
        ),
        (
            "a directory",
            |root| {
                fs::remove_file(root.join("LATEST")).unwrap();
                fs::create_dir(root.join("LATEST")).unwrap();
            },
            Value::Null,
            Some("it is not a regular file"),
        ),
        (
            "nothing whole",
            |root| {
                for step in 1..=3 {
                    fs::remove_file(root.join(format!("step-00000{step}/MANIFEST.json"))).unwrap();
                }
            },
            json!("step-000003"),
            None,
        ),
    ];
    for (kind, spoil, latest, flaw) in table {
        let (directory, root) = run_of(&[1, 2, 3]);
        spoil(&root);
        let document = document(directory.path(), "run");
        let taken = load(&OsDisk, &root).ok().map(|checkpoint| checkpoint.name.step());
        assert_eq!((&document["latest"], &document["load"]), (&latest, &json!(taken)), "{kind}");
        let ran = run_in(directory.path(), ["steps", "run"]);
        let said = ran.expect(0).lines().find_map(|line| line.strip_prefix("  LATEST: "));
        assert_eq!(said, flaw, "{kind}");
        assert_eq!(ran.out.contains("a resume finds none that is whole"), taken.is_none(), "{kind}");
    }
}

/// The order is by the number of the step, and an age that makes no sense is said to make none.
#[test]
fn a_clock_that_goes_backwards() {
    let (directory, root) = run_of(&[1, 2]);
    for (step, seconds) in [(1, 1_u64 << 33), (2, 1000)] {
        let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let manifest = root.join(format!("step-00000{step}/MANIFEST.json"));
        fs::File::open(manifest).unwrap().set_modified(then).unwrap();
    }
    assert_eq!(document(directory.path(), "run")["load"], 2);
    let ran = run_in(directory.path(), ["steps", "run"]);
    let lines: Vec<&str> = ran.expect(0).lines().skip(3).collect();
    assert!(lines[0].contains("  in the future  yes") && lines[1].contains(" days  yes"), "{lines:?}");
}

#[test]
fn paths_of_all_kinds() {
    let (directory, _) = run_of(&[1]);
    let strange = OsStr::from_bytes(b"r\xff\x1b[2J");
    fs::rename(directory.path().join("run"), directory.path().join(strange)).unwrap();
    assert_eq!(document(directory.path(), strange)["load"], 1);
    let ran = run_in(directory.path(), [OsStr::new("steps"), strange]);
    assert!(
        ran.expect(0).starts_with(r"r\xff\u{1b}[2J/ckpt: 1 checkpoint, a resume takes step 1"),
        "{}",
        ran.out
    );

    // Longer than any path can be, and as long as names can be.
    let long = "x/".repeat(3000);
    let ran = run_in(directory.path(), ["steps", long.as_str()]);
    assert!(ran.expect(3).is_empty() && ran.err.contains("File name too long"), "{}", ran.err);
    let name = "n".repeat(255);
    fs::write(directory.path().join(strange).join("ckpt").join(&name), "").unwrap();
    assert_eq!(document(directory.path(), strange)["foreign"], json!([name]));
}
