//! The commit path against a disk that fails.
//!
//! A file is replaced in five steps: make a temporary file, write it, sync it, rename it, sync the
//! directory. Leave one out or put two in the wrong order and everything goes on working, until the
//! power fails at the wrong moment: then the name leads to an empty file, or to the old one
//! although success was reported. So the plug is pulled here at every call that a commit makes, and
//! every image that may be left is looked at. Each sync is then taken out in turn, and the same
//! search must complain: a test that cannot fail is none. The other half are errors: whichever call
//! fails, the old file is as it was and the temporary one is gone.

use std::path::Path;

use safestep::commit::Commit;
use safestep::disk::Ownership;
use safestep::error::{Cause, Error, FileKind};
use safestep_tests::disk_faults::{
    Call, EACCES, EEXIST, EINTR, EIO, ENOSPC, Fault, Image, Searched, SimulatedDisk, Standing,
    crash_at_every_call,
};
use safestep_tests::remarks::remark;

const TARGET: &str = "run/model";
const OLD: &[u8] = b"the old content";

/// Larger than the commit's buffer, and no part of it looks like another.
fn new_content() -> Vec<u8> {
    (0..50_000_u32).flat_map(u32::to_le_bytes).collect()
}

/// A disk with the old file, or with none.
fn disk(old: bool) -> SimulatedDisk {
    let mut standing = vec![("run", Standing::Directory), ("run/other", Standing::File(b"other".to_vec()))];
    if old {
        standing.push((TARGET, Standing::File(OLD.to_vec())));
    }
    SimulatedDisk::holding(standing)
}

/// Writes the new content, small pieces and large ones.
fn commit(disk: &SimulatedDisk, target: &str) -> Result<(), Error> {
    let content = new_content();
    let mut commit = Commit::begin(disk, Path::new(target))?;
    commit.allocate(content.len() as u64)?;
    let (small, large) = content.split_at(1000);
    for piece in small.chunks(7).chain([large]) {
        commit.write(piece)?;
    }
    commit.finish()
}

/// What is wrong with an image: the target must be old or new, new if success was reported, all
/// else as it was but for a temporary file.
fn judge(image: &Image, success: bool, old: bool) -> Result<(), String> {
    let expected = disk(old).live();
    let found = image.get(Path::new(TARGET));
    let is_new = found == Some(&Standing::File(new_content()));
    let is_old = found == expected.get(Path::new(TARGET));
    if success && !is_new {
        return Err("the new file is not there although success was reported".into());
    }
    if !is_new && !is_old {
        return Err("the file is neither the old nor the new one".into());
    }
    for (path, standing) in expected.iter().filter(|(path, _)| *path != Path::new(TARGET)) {
        if image.get(path) != Some(standing) {
            return Err(format!("{path:?} has changed"));
        }
    }
    let foreign = image.keys().find(|path| !expected.contains_key(*path) && !is_temporary(path));
    foreign
        .filter(|path| *path != Path::new(TARGET))
        .map_or(Ok(()), |path| Err(format!("{path:?} has come up")))
}

fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(".model.") && name.ends_with(".tmp")
}

/// Pulls the plug at every call of a commit, with one sync ignored or none.
fn search(old: bool, ignored_sync: Option<usize>) -> Result<Searched, String> {
    let setup = || match ignored_sync {
        Some(sync) => disk(old).ignore_sync(sync),
        None => disk(old),
    };
    crash_at_every_call(
        4096,
        setup,
        |disk| commit(disk, TARGET).is_ok(),
        |image, success| judge(image, success, old),
    )
}

/// The calls of a commit that nothing disturbs.
fn calls_of_a_commit() -> Vec<Call> {
    let disk = disk(true);
    commit(&disk, TARGET).unwrap();
    disk.calls()
}

#[test]
fn a_power_failure_leaves_the_old_file_or_the_new_one() {
    for old in [true, false] {
        let searched = search(old, None).unwrap();
        remark(&format!("power: a commit, {}: {searched}", if old { "over a file" } else { "of a new one" }));
        assert!(searched.calls >= 8 && searched.images > 2 * searched.calls, "{searched:?}");
        assert_eq!(searched.syncs, 2);
    }
}

#[test]
fn every_sync_is_needed() {
    for old in [true, false] {
        let syncs = search(old, None).unwrap().syncs;
        for sync in 0..syncs {
            let complaint = search(old, Some(sync)).expect_err("nobody noticed that a sync was missing");
            println!("without sync {sync}: {complaint}");
        }
        assert_eq!(search(old, Some(syncs)), search(old, None));
    }
}

#[test]
fn the_steps_come_in_their_order() {
    let calls = calls_of_a_commit();
    let steps: Vec<_> =
        calls.iter().map(|call| format!("{call:?}").split('(').next().unwrap().to_owned()).collect();
    assert_eq!(steps, ["Look", "Create", "Allocate", "Write", "Write", "Sync", "Rename", "SyncDirectory"]);
    assert_eq!(calls.last(), Some(&Call::SyncDirectory("run".into())));
}

#[test]
fn an_error_at_any_call_leaves_the_old_file_and_no_other() {
    for old in [true, false] {
        for (number, call) in calls_of_a_commit().iter().enumerate() {
            for errno in [EIO, ENOSPC, EACCES] {
                let disk = disk(old).fail_at(number, Fault::Error(errno));
                let before = disk.live();
                let error = commit(&disk, TARGET).expect_err("an error was swallowed");
                assert_eq!(error.path(), Path::new(TARGET));
                assert!(error.to_string().contains(&format!("os error {errno}")), "{error}");

                let in_place = matches!(call, Call::SyncDirectory(_));
                assert_eq!(error.is_in_place(), in_place, "{call:?}: {error}");
                let mut expected = before;
                if in_place {
                    expected.insert(TARGET.into(), Standing::File(new_content()));
                }
                assert!(disk.live() == expected, "{call:?} {errno}");
            }
        }
    }
}

#[test]
fn a_disk_that_stays_broken_changes_nothing_but_a_temporary_name() {
    for (number, call) in calls_of_a_commit().iter().enumerate() {
        let disk = disk(true).fail_at(number, Fault::Broken(EIO));
        let error = commit(&disk, TARGET).expect_err("an error was swallowed");
        judge(&disk.live(), error.is_in_place(), true)
            .unwrap_or_else(|complaint| panic!("{call:?}: {complaint}"));
    }
}

#[test]
fn a_failed_sync_is_never_tried_again() {
    for (number, call) in calls_of_a_commit().iter().enumerate() {
        if matches!(call, Call::Sync(_) | Call::SyncDirectory(_)) {
            for errno in [EIO, EINTR] {
                let disk = disk(true).fail_at(number, Fault::Error(errno));
                commit(&disk, TARGET).expect_err("a failed sync was swallowed");
                let again = disk.calls().into_iter().filter(|other| other == call).count();
                assert_eq!(again, 1, "{call:?}");
            }
        }
    }
}

#[test]
fn after_an_error_nothing_more_is_written() {
    let disk = disk(true).fail_at(2, Fault::Error(ENOSPC));
    let mut commit = Commit::begin(&disk, Path::new(TARGET)).unwrap();
    let error = commit.write(&new_content()).unwrap_err();
    assert!(error.to_string().starts_with("cannot write run/model: "), "{error}");
    assert!(matches!(disk.calls().last(), Some(Call::Remove(path)) if path == commit.temporary_path()));

    let calls = disk.calls();
    for refused in [commit.write(b"x"), commit.allocate(1), commit.finish()] {
        assert!(matches!(refused.unwrap_err().because(), Cause::Abandoned));
    }
    assert_eq!(disk.calls(), calls);
}

#[test]
fn signals_and_short_writes_are_no_errors() {
    for (number, call) in calls_of_a_commit().iter().enumerate() {
        if matches!(call, Call::Write(_)) {
            let disk = disk(true).fail_at(number, Fault::Error(EINTR));
            commit(&disk, TARGET).unwrap();
            judge(&disk.live(), true, true).unwrap();
        }
    }
    for most_bytes in [1000, 4095, 65_537] {
        let disk = disk(true).with_short_writes(most_bytes);
        commit(&disk, TARGET).unwrap();
        judge(&disk.live(), true, true).unwrap();
    }
    let disk = disk(true).with_short_writes(0);
    assert!(commit(&disk, TARGET).is_err());
    assert_eq!(disk.live(), self::disk(true).live());
}

#[test]
fn a_taken_temporary_name_is_left_alone() {
    let disk = disk(true).fail_at(1, Fault::Error(EEXIST));
    commit(&disk, TARGET).unwrap();
    let made: Vec<_> = disk.calls().into_iter().filter(|call| matches!(call, Call::Create(_))).collect();
    assert!(made.len() == 2 && made[0] != made[1], "{made:?}");

    let disk = self::disk(true).fail_at(1, Fault::Broken(EEXIST));
    let error = commit(&disk, TARGET).unwrap_err();
    assert!(error.to_string().starts_with("cannot create a temporary file beside run/model: "), "{error}");
}

#[test]
fn links_are_followed_also_where_a_crash_may_come() {
    let setup = || {
        SimulatedDisk::holding([
            ("run/other", Standing::File(b"other".to_vec())),
            ("run/model", Standing::File(OLD.to_vec())),
            ("links/one", Standing::Link("two".into())),
            ("links/two", Standing::Link("../run/model".into())),
        ])
    };
    let judge_all = |image: &Image, success| {
        let mut image = image.clone();
        let links = [image.remove(Path::new("links/one")), image.remove(Path::new("links/two"))];
        image.remove(Path::new("links"));
        if links != [Some(Standing::Link("two".into())), Some(Standing::Link("../run/model".into()))] {
            return Err(format!("the links became {links:?}"));
        }
        judge(&image, success, true)
    };
    crash_at_every_call(4096, setup, |disk| commit(disk, "links/one").is_ok(), judge_all).unwrap();
}

#[test]
fn what_is_no_place_for_a_file_is_refused_before_anything_is_made() {
    let disk = || {
        SimulatedDisk::holding([
            ("deep/file", Standing::File(OLD.to_vec())),
            ("loop", Standing::Link("loop".into())),
            ("to deep", Standing::Link("deep".into())),
            ("fifo", Standing::Other(FileKind::Fifo)),
        ])
    };
    for target in ["deep", "to deep", "fifo", "loop", "new/", "deep/file/x", "none/x", "", ".."] {
        let disk = disk();
        let before = disk.live();
        let error = commit(&disk, target).unwrap_err();
        assert_eq!(disk.live(), before, "{target}: {error}");
    }
}

#[test]
fn the_new_file_takes_over_the_permissions() {
    use safestep::disk::{Disk as _, Found};
    let secret = Ownership { mode: 0o600, owner: 7, group: 8 };
    let disk = disk(false);
    disk.create(Path::new(TARGET), Some(&secret)).unwrap();
    commit(&disk, TARGET).unwrap();
    assert_eq!(disk.look(Path::new(TARGET)).unwrap(), Found::File(secret));
}
