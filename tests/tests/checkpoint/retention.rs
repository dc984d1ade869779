//! Old steps go by the policy, after the new one is safe, and never the one that a resume would take.

use std::fs;

use super::*;
use safestep::checkpoint::{StepName, retain, scan};

#[test]
fn keep_two_leaves_two_and_stale_directories_go() {
    let (_directory, root) = room();
    for step in 1..=3 {
        save_at(&root, step).unwrap();
    }
    fs::create_dir(root.join("step-000009.tmp")).unwrap();
    fs::write(root.join("step-000009.tmp/model.safetensors"), "half").unwrap();
    fs::write(root.join("LATEST.tmp"), "step-00").unwrap();
    for foreign in ["step-7", "step-0000008", "notes"] {
        fs::create_dir(root.join(foreign)).unwrap();
    }
    let before = scan(&OsDisk, &root).unwrap();
    assert_eq!(before.stale, ["LATEST.tmp", "step-000009.tmp"]);
    assert_eq!(before.foreign, ["notes", "step-0000008", "step-7"]);
    let saved = save_keeping(&root, 4, Retention::last(2));
    let shown = |steps: &[StepName]| -> Vec<u64> { steps.iter().map(StepName::step).collect() };
    assert_eq!((shown(&saved.retained.removed), shown(&saved.retained.kept)), (vec![1, 2], vec![3, 4]));
    assert!(saved.retained.leftovers.is_empty());
    assert_eq!(names(&root), ["LATEST", "notes", "step-0000008", "step-000003", "step-000004", "step-7"]);
}

#[test]
fn what_a_policy_keeps() {
    let policy = |last, every, best, ranked: &[u64], pinned: &[u64]| Retention {
        last,
        every,
        best,
        ranked: ranked.to_vec(),
        pinned: pinned.iter().copied().collect(),
    };
    let table = [
        (Retention::default(), vec![10, 20, 30, 40, 50, 60]),
        (Retention::last(1), vec![50, 60]),
        (Retention::last(0), vec![50, 60]),
        (Retention::last(2), vec![40, 50, 60]),
        (Retention::last(99), vec![10, 20, 30, 40, 50, 60]),
        (policy(None, Some(20), 0, &[], &[]), vec![20, 40, 50, 60]),
        (policy(None, Some(0), 0, &[], &[]), vec![50, 60]),
        (policy(Some(1), None, 0, &[], &[10]), vec![10, 50, 60]),
        (policy(None, None, 2, &[99, 30, 10, 20], &[]), vec![10, 30, 50, 60]),
        (policy(Some(1), Some(30), 1, &[20], &[40]), vec![20, 30, 40, 50, 60]),
        (policy(None, None, 0, &[], &[10]), vec![10, 20, 30, 40, 50, 60]),
    ];
    for (policy, expected) in table {
        let (_directory, root) = room();
        for step in [10, 20, 30, 40, 50, 60] {
            save_at(&root, step).unwrap();
        }
        // The newest was never declared done: nobody's, and not touched.
        fs::write(root.join("LATEST"), "step-000050\n").unwrap();
        let dry = retain(&OsDisk, &root, &policy, true).unwrap();
        assert_eq!(scan(&OsDisk, &root).unwrap().steps.len(), 6);
        let done = retain(&OsDisk, &root, &policy, false).unwrap();
        assert_eq!((&dry.removed, &dry.kept), (&done.removed, &done.kept), "{policy:?}");
        let left: Vec<u64> = scan(&OsDisk, &root).unwrap().steps.iter().map(StepName::step).collect();
        assert_eq!(left, expected, "{policy:?}");
        assert_eq!(loaded(&root).name.step(), 50);
    }
}

#[test]
fn without_a_latest_nothing_is_deleted() {
    let (_directory, root) = room();
    for step in 1..=3 {
        save_at(&root, step).unwrap();
    }
    fs::remove_file(root.join("LATEST")).unwrap();
    assert!(retain(&OsDisk, &root, &Retention::last(1), false).unwrap().removed.is_empty());
}

#[test]
fn what_cannot_be_deleted_is_reported_and_fails_nothing() {
    let (_directory, root) = room();
    save_at(&root, 1).unwrap();
    fs::create_dir(root.join("step-000001/deep")).unwrap();
    fs::create_dir_all(root.join("step-000007.tmp/deep")).unwrap();
    let saved = save_keeping(&root, 2, Retention::last(1));
    let left: Vec<_> = saved.retained.leftovers.iter().map(|leftover| leftover.path.clone()).collect();
    assert_eq!(left, [root.join("step-000007.tmp"), root.join("step-000001.tmp")]);
    assert_eq!(loaded(&root).name.step(), 2);
}
