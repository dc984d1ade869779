//! Old steps go by the policy, after the new one is safe, and never the one that a resume would take.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use safestep::checkpoint::{Retained, State, StepName, retain, scan};
use safestep_tests::disk_faults::{Call, EACCES, Fault, Image, SimulatedDisk, Standing};

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

/// Puts into a directory what no save leaves there, and makes it if it is not there.
fn litter(directory: &Path, elsewhere: &Path) {
    let mut deep = directory.join("deep");
    for _ in 0..200 {
        deep.push("deeper");
    }
    fs::create_dir_all(&deep).unwrap();
    for path in [deep.join("MANIFEST.json"), directory.join("deep/file"), directory.join("-rf *")] {
        fs::write(path, "x").unwrap();
    }
    fs::create_dir(directory.join("empty")).unwrap();
    let links =
        [("to a directory", elsewhere), ("to a file", &elsewhere.join("kept")), ("up", "..".as_ref())];
    for (name, to) in links.into_iter().chain([("to nothing", "none".as_ref()), ("round", "round".as_ref())])
    {
        symlink(to, directory.join(name)).unwrap();
        symlink(to, deep.join(name)).unwrap();
    }
}

/// A directory in a step, which somebody put there, is no reason to keep the step, or to let nobody save it again.
#[test]
fn what_goes_goes_with_all_that_is_in_it_and_links_are_not_followed() {
    let (directory, root) = room();
    let elsewhere = directory.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("kept"), "bytes").unwrap();
    let elsewhere_is_as_it_was = || {
        assert_eq!(names(&elsewhere), ["kept"]);
        assert_eq!(fs::read(elsewhere.join("kept")).unwrap(), b"bytes");
    };
    for step in [1, 2] {
        save_at(&root, step).unwrap();
    }
    // To be pruned; in the way of that; to be saved; left by others, as a directory, as a link and as a file.
    for litterbox in ["step-000001", "step-000001.tmp", "step-000003.tmp", "step-000007.tmp", "LATEST.tmp"] {
        litter(&root.join(litterbox), &elsewhere);
    }
    symlink(&elsewhere, root.join("step-000000")).unwrap();
    symlink(&elsewhere, root.join("step-000008.tmp")).unwrap();
    fs::write(root.join("step-000009.tmp"), "").unwrap();
    let saved = save_keeping(&root, 3, Retention::last(2));
    assert!(saved.retained.leftovers.is_empty(), "{:?}", saved.retained.leftovers);
    assert_eq!(names(&root), ["LATEST", "step-000002", "step-000003"]);
    assert_eq!(loaded(&root).name.step(), 3);
    elsewhere_is_as_it_was();

    litter(&root.join("step-000002"), &elsewhere);
    symlink(&elsewhere, root.join("step-000002.tmp")).unwrap();
    let retained = retain(&OsDisk, &root, &Retention::last(1), false).unwrap();
    assert!(retained.leftovers.is_empty(), "{:?}", retained.leftovers);
    assert_eq!(names(&root), ["LATEST", "step-000003"]);
    elsewhere_is_as_it_was();
}

/// Steps 1 and 2, with what others have left, in directories of their own.
fn littered() -> Image {
    let disk = SimulatedDisk::holding::<&str>([]);
    for step in [1, 2] {
        let save = |state: &State<'_>| save(&disk, Path::new("ckpt"), state, &SaveOptions::default());
        Run::at(step).with(save).unwrap();
    }
    let mut image = disk.live();
    for name in ["step-000001/deep/file", "step-000001.tmp/deep/file", "step-000007.tmp/deep/file"] {
        image.insert(Path::new("ckpt").join(name), Standing::File(b"x".to_vec()));
    }
    image
}

/// What cannot be deleted by a job on such a disk when a call is denied, and why.
fn leftovers_when(
    denied: &Call,
    job: impl Fn(&SimulatedDisk) -> Result<Retained, Error>,
) -> Vec<(PathBuf, String)> {
    let whole = SimulatedDisk::holding(littered());
    assert!(job(&whole).unwrap().leftovers.is_empty());
    let failing = whole.calls().iter().position(|call| call == denied).unwrap();
    let disk = SimulatedDisk::holding(littered()).fail_at(failing, Fault::Error(EACCES));
    let leftovers = job(&disk).unwrap().leftovers;
    leftovers.into_iter().map(|leftover| (leftover.path, leftover.because.to_string())).collect()
}

#[test]
fn what_cannot_be_deleted_is_named_and_fails_nothing() {
    let root = Path::new("ckpt");
    let saves = |disk: &SimulatedDisk| {
        let save = |state: &State<'_>| save(disk, root, state, &SaveOptions::default());
        Run::at(3).with(save).map(|saved| saved.retained)
    };
    let prunes = |disk: &SimulatedDisk| retain(disk, root, &Retention::last(1), false);
    let denied = |place: &Path| {
        let file = place.join("file");
        [
            (Call::List(place.into()), place.to_path_buf()),
            (Call::RemoveDirectory(place.into()), place.to_path_buf()),
            (Call::Remove(file.clone()), file),
        ]
    };
    for (call, place) in denied(&root.join("step-000007.tmp/deep")) {
        let because = "Permission denied (os error 13)".to_owned();
        assert_eq!(leftovers_when(&call, saves), [(place, because)], "{call:?}");
    }
    // A step that stays because the name is taken that it would have for its end.
    for (call, place) in denied(&root.join("step-000001.tmp/deep")) {
        let because = format!("cannot clear {} first: Permission denied (os error 13)", place.display());
        assert_eq!(leftovers_when(&call, prunes), [(root.join("step-000001"), because)], "{call:?}");
    }
}
