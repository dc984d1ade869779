//! `verify`: a checkpoint is whole, or each flaw has its line, the file, the reason, and exit code 1.

use std::fs;

use serde_json::{Value, json};

use super::steps::{DAMAGES, run_of};
use super::{finish, program, run_in};

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn runs_and_single_steps_that_are_whole() {
    let (directory, root) = run_of(&[1, 2]);
    let whole = |paths: &[&str], count: usize| {
        let ran = run_in(directory.path(), ["verify"].iter().chain(paths));
        assert!(
            ran.expect(0).lines().all(|line| line.contains(": whole, 1.") && line.ends_with(" kB")),
            "{}",
            ran.out
        );
        assert_eq!(ran.out.lines().count(), count, "{paths:?}");
        let ran = run_in(directory.path(), ["verify", "--quiet"].iter().chain(paths));
        assert_eq!((ran.expect(0), ran.err.as_str()), ("", ""));
        let ran = run_in(directory.path(), ["verify", "--json"].iter().chain(paths));
        assert_eq!(json_lines(ran.expect(0)).len(), count);
    };
    whole(&["run"], 2);
    whole(&["run/ckpt"], 2);
    whole(&["run/ckpt/step-000001"], 1);
    whole(&["run/ckpt/step-000001/", "run"], 3);
    let ran = run_in(&root.join("step-000002"), ["verify", "--json", "."]);
    assert_eq!(json_lines(ran.expect(0))[0]["step"], 2);
    let ran = run_in(directory.path(), ["verify", "run"]);
    assert_eq!(ran.err, "2 looked at: 2 whole\n");
    assert!(ran.out.starts_with("run/ckpt/step-000001: whole, "), "{}", ran.out);
}

#[test]
fn damage_of_each_kind_is_named() {
    for (kind, spoil, words) in DAMAGES {
        let (directory, root) = run_of(&[1, 2]);
        spoil(&root.join("step-000002"));
        for path in ["run", "run/ckpt", "run/ckpt/step-000002"] {
            let ran = run_in(directory.path(), ["verify", "--quiet", path]);
            let said = ran.expect(1);
            assert!(said.starts_with(&format!("run/ckpt/step-000002: {words}")), "{kind}: {said}");
            assert!(said.lines().count() == 1 && !said.contains(['\u{1b}', '\u{9b}']) && ran.err.is_empty());
        }
        let ran = run_in(directory.path(), ["verify", "--json", "run"]);
        let lines = json_lines(ran.expect(1));
        assert_eq!((&lines[0]["valid"], &lines[0]["flaws"]), (&json!(true), &json!([])), "{kind}");
        assert_eq!((&lines[1]["path"], &lines[1]["valid"]), (&json!("run/ckpt/step-000002"), &json!(false)));
        let flaw = &lines[1]["flaws"][0];
        let reason = flaw["reason"].as_str().unwrap();
        assert!(
            words.contains(": ")
                && words.split_once(": ").is_some_and(|(_, words)| reason.starts_with(words))
        );
    }
}

#[test]
fn every_flaw_has_its_line() {
    let (directory, root) = run_of(&[1]);
    let step = root.join("step-000001");
    fs::remove_file(step.join("config.json")).unwrap();
    fs::write(step.join("extra"), "").unwrap();
    let ran = run_in(directory.path(), ["verify", "run", "none", "run/ckpt/step-000001"]);
    let both = "run/ckpt/step-000001: config.json: it is missing\n\
        run/ckpt/step-000001: extra: the manifest does not list it\n";
    assert_eq!(ran.expect(3), both.repeat(2));
    assert!(ran.err.contains("safestep: cannot list none: No such file"), "{}", ran.err);
    assert!(ran.err.ends_with("3 looked at: 0 whole, 2 bad, 1 unreadable\n"), "{}", ran.err);
}

#[test]
fn a_latest_that_cannot_be_followed_is_a_flaw_of_the_run() {
    for (text, reason) in
        [("step-000009\n", "it names step-000009, which is not there"), ("x", "it names no step: \"x\"")]
    {
        let (directory, root) = run_of(&[1]);
        fs::write(root.join("LATEST"), text).unwrap();
        let ran = run_in(directory.path(), ["verify", "--quiet", "run"]);
        assert_eq!(ran.expect(1), format!("run/ckpt: LATEST: {reason}\n"));
        let ran = run_in(directory.path(), ["verify", "--quiet", "--json", "run"]);
        let flaws = json!([{"file": "LATEST", "reason": reason}]);
        let expected =
            json!({"path": "run/ckpt", "step": null, "bytes": null, "valid": false, "flaws": flaws});
        assert_eq!(json_lines(ran.expect(1)), [expected]);
        // A single step is none the worse for it.
        run_in(directory.path(), ["verify", "run/ckpt/step-000001"]).expect(0);
    }
}

#[test]
fn nothing_to_verify_is_no_success() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("run")).unwrap();
    let ran = run_in(directory.path(), ["verify", "run"]);
    assert_eq!(
        (ran.expect(3), ran.err.as_str()),
        ("", "safestep: cannot verify run: there is no checkpoint\n")
    );
}

/// Looking changes nothing, so it needs no right to.
#[test]
fn a_read_only_disk_is_enough() {
    let (directory, root) = run_of(&[1]);
    let read_only = |path: &std::path::Path, mode: u32| {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let paths = [root.join("step-000001"), root, directory.path().join("run")];
    paths.iter().for_each(|path| read_only(path, 0o555));
    for command in [&["verify", "run"][..], &["steps", "run"], &["prune", "run", "--keep-last", "1", "-n"]] {
        finish(program().current_dir(directory.path()).args(command)).expect(0);
    }
    paths.iter().rev().for_each(|path| read_only(path, 0o755));
}
