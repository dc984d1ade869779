//! `prune`: what the rules do not keep goes, and nothing else. The worst of it would be to delete what a resume needs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::rewrite::Mount;
use super::steps::run_of;
use super::{names, run_in, skipped};

fn document(directory: &Path, arguments: &[&str], code: i32) -> Value {
    let ran = run_in(directory, ["prune", "run", "--json"].iter().chain(arguments));
    serde_json::from_str(ran.expect(code)).unwrap()
}

/// Everything under a directory, with its bytes.
fn image(directory: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for name in names(directory) {
        let path = directory.join(name);
        if path.is_dir() {
            found.extend(image(&path));
        } else {
            found.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    found
}

#[test]
fn what_the_rules_keep_stays_and_a_dry_run_says_so_before() {
    let steps = [10, 20, 30, 40, 50];
    let table: [(&[&str], &[u64]); 6] = [
        (&["--keep-last", "2"], &[40, 50]),
        (&["--keep-last", "9"], &[10, 20, 30, 40, 50]),
        (&["--keep-every", "20"], &[20, 40, 50]),
        (&["--keep-last", "1", "--keep-every", "30"], &[30, 50]),
        (&["--keep-every", "7"], &[50]),
        (&["--keep-last", "18446744073709551615", "--keep-every", "1"], &[10, 20, 30, 40, 50]),
    ];
    for (rules, kept) in table {
        let (directory, root) = run_of(&steps);
        fs::create_dir(root.join("step-7")).unwrap();
        let removed: Vec<u64> = steps.into_iter().filter(|step| !kept.contains(step)).collect();
        let before = image(&root);
        let dry: Vec<&str> = rules.iter().copied().chain(["--dry-run"]).collect();
        let expected = |dry: bool| json!({"dry_run": dry, "removed": removed, "kept": kept, "leftovers": []});
        assert_eq!(document(directory.path(), &dry, 0), expected(true));
        let ran = run_in(directory.path(), ["prune", "run"].iter().chain(&dry));
        let said: String =
            removed.iter().map(|step| format!("step-0000{step}: would be deleted\n")).collect();
        assert_eq!(ran.expect(0), said);
        assert!(image(&root) == before, "a dry run has changed something");

        assert_eq!(document(directory.path(), rules, 0), expected(false));
        let left: Vec<String> = kept.iter().map(|step| format!("step-0000{step}")).collect();
        let others = ["LATEST".to_owned()].into_iter().chain(left).chain(["step-7".to_owned()]);
        assert!(names(&root).into_iter().eq(others.map(std::ffi::OsString::from)));
    }
}

#[test]
fn for_people() {
    let (directory, _) = run_of(&[1, 2, 3]);
    let ran = run_in(directory.path(), ["prune", "run/ckpt", "--keep-last", "2"]);
    assert_eq!(
        (ran.expect(0), ran.err.as_str()),
        ("step-000001: deleted\n", "1 deleted, 2 checkpoints kept\n")
    );
    let ran = run_in(directory.path(), ["prune", "run", "--keep-last", "2"]);
    assert_eq!((ran.expect(0), ran.err.as_str()), ("", "0 deleted, 2 checkpoints kept\n"));
}

#[test]
fn what_a_resume_needs_never_goes() {
    type Spoil = fn(&Path);
    let table: [(&str, Spoil, &[u64]); 5] = [
        ("LATEST is older", |root| fs::write(root.join("LATEST"), "step-000002\n").unwrap(), &[2, 3, 4]),
        // All that stands there but the one that is not whole is too old to be kept.
        (
            "LATEST is broken",
            |root| fs::write(root.join("step-000004/model.safetensors"), "").unwrap(),
            &[3, 4],
        ),
        (
            "the last two are broken",
            |root| {
                [3, 4]
                    .iter()
                    .for_each(|step| fs::write(root.join(format!("step-00000{step}/x")), "").unwrap());
            },
            &[2, 4],
        ),
        ("there is no LATEST", |root| fs::remove_file(root.join("LATEST")).unwrap(), &[1, 2, 3, 4]),
        ("LATEST names nothing", |root| fs::write(root.join("LATEST"), "x").unwrap(), &[1, 2, 3, 4]),
    ];
    for (kind, spoil, kept) in table {
        let (directory, root) = run_of(&[1, 2, 3, 4]);
        spoil(&root);
        assert_eq!(document(directory.path(), &["--keep-last", "1"], 0)["kept"], json!(kept), "{kind}");
    }
}

#[test]
fn what_cannot_be_deleted_is_reported() {
    let (directory, root) = run_of(&[1, 2, 3]);
    fs::create_dir(root.join("step-000001/deep")).unwrap();
    // Nobody can delete the place of a mount.
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "none"]).arg(root.join("step-000001/deep")).stderr(Stdio::null());
    if !mount.status().is_ok_and(|status| status.success()) {
        return skipped("what cannot be deleted: no file system can be mounted without root");
    }
    let moved = root.join("step-000001.tmp/deep");
    let mount = Mount(&moved);
    let ran = run_in(directory.path(), ["prune", "run", "--json", "--keep-last", "1"]);
    let document: Value = serde_json::from_str(ran.expect(3)).unwrap();
    assert_eq!((&document["removed"], &document["kept"]), (&json!([2]), &json!([3])));
    assert_eq!(document["leftovers"][0]["path"], "run/ckpt/step-000001.tmp/deep");
    assert!(ran.err.starts_with("safestep: cannot delete run/ckpt/step-000001.tmp/deep: "), "{}", ran.err);
    drop(mount);
    // What is left has lost its name: nobody takes it for a step.
    let ran = run_in(directory.path(), ["steps", "run", "--json"]);
    let document: Value = serde_json::from_str(ran.expect(0)).unwrap();
    assert_eq!((&document["load"], &document["stale"]), (&json!(3), &json!(["step-000001.tmp"])));
}

#[test]
fn nothing_goes_while_a_save_is_running() {
    use safestep::{Disk as _, OsDisk};
    let (directory, root) = run_of(&[1, 2]);
    let lock = OsDisk.lock(&root).unwrap();
    let ran = run_in(directory.path(), ["prune", "run", "--keep-last", "1"]);
    assert_eq!(ran.expect(3), "");
    let pid = std::process::id();
    assert_eq!(ran.err, format!("safestep: cannot save to run/ckpt: process {pid} is saving there\n"));
    run_in(directory.path(), ["prune", "run", "--keep-last", "1", "--dry-run"]).expect(0);
    drop(lock);
    run_in(directory.path(), ["prune", "run", "--keep-last", "1"]).expect(0);
    assert_eq!(names(&root), ["LATEST", "step-000002"]);
}

#[test]
fn a_run_without_checkpoints_has_nothing_to_prune() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("run")).unwrap();
    let nothing = json!({"dry_run": false, "removed": [], "kept": [], "leftovers": []});
    assert_eq!(document(directory.path(), &["--keep-last", "1"], 0), nothing);
    let ran = run_in(directory.path(), ["prune", "none", "--keep-last", "1"]);
    assert!(ran.expect(3).is_empty() && ran.err.contains("cannot list none: No such file"), "{}", ran.err);
}
