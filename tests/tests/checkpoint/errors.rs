//! A disk that says no: whichever call fails, the error comes back, older checkpoints are as they were, nothing is synced
//! twice, and the next save clears what is left.

use std::path::Path;

use super::power::{ROOT, disk_with, image_of_two, save_on};
use safestep::checkpoint::{SaveOptions, save};
use safestep_tests::disk_faults::{Call, EINTR, EIO, ENOSPC, Fault, Image, SimulatedDisk};
use safestep_tests::runs::Run;

/// The files of a step, or of the root itself.
fn part(image: &Image, name: &str) -> Image {
    let part = image.iter().filter(|(path, _)| path.starts_with(Path::new(ROOT).join(name)));
    part.map(|(path, standing)| (path.clone(), standing.clone())).collect()
}

fn calls() -> Vec<Call> {
    let disk = disk_with(image_of_two());
    save_on(&disk, 30).unwrap();
    disk.calls()
}

#[test]
fn an_error_at_any_call_leaves_older_checkpoints_whole() {
    let before = image_of_two();
    let (mut failed, mut cleared) = (0, 0);
    for (number, call) in calls().iter().enumerate() {
        for fault in [Fault::Error(EIO), Fault::Error(ENOSPC), Fault::Broken(EIO)] {
            let disk = disk_with(before.clone()).fail_at(number, fault);
            let answer = save_on(&disk, 30);
            let after = disk.live();
            let declared = part(&after, "LATEST") != part(&before, "LATEST");
            match answer {
                // What comes after LATEST fails nothing.
                Ok(saved) => {
                    assert!(declared && !saved.retained.leftovers.is_empty(), "{call:?} was swallowed");
                }
                Err(error) => {
                    failed += 1;
                    assert!(error.to_string().contains("os error"), "{error}");
                    assert_eq!(error.is_in_place(), declared, "{error}");
                    for step in ["step-000010", "step-000020"] {
                        assert_eq!(part(&after, step), part(&before, step), "{call:?}");
                    }
                    let remains = |name| !part(&after, name).is_empty();
                    let left = remains("step-000030.tmp") || remains("LATEST.tmp");
                    assert!(!left || matches!(fault, Fault::Broken(_)), "{call:?} leaves {after:?}");
                }
            }
            // A whole disk again: the next save works and clears.
            let disk = SimulatedDisk::holding(after);
            save_on(&disk, 40).unwrap();
            assert!(disk.live().keys().all(|path| !path.to_string_lossy().ends_with(".tmp")), "{call:?}");
            cleared += 1;
        }
    }
    println!("{failed} errors, {cleared} next saves");
    assert!(failed > 90, "{failed}");
}

#[test]
fn a_failed_sync_is_never_tried_again() {
    for (number, call) in calls().iter().enumerate() {
        if let Call::Sync(file) = call {
            for errno in [EIO, EINTR] {
                let disk = disk_with(image_of_two()).fail_at(number, Fault::Error(errno));
                save_on(&disk, 30).expect_err("a failed sync was swallowed");
                let again = disk.calls().iter().filter(|call| **call == Call::Sync(*file)).count();
                assert_eq!(again, 1, "{call:?}");
            }
        }
    }
}

#[test]
fn signals_and_short_writes_are_no_errors() {
    for (number, call) in calls().iter().enumerate() {
        if matches!(call, Call::Write(_)) {
            let disk = disk_with(image_of_two()).fail_at(number, Fault::Error(EINTR));
            save_on(&disk, 30).unwrap();
        }
    }
    let disk = disk_with(image_of_two()).with_short_writes(7);
    save_on(&disk, 30).unwrap();
    let whole = disk_with(image_of_two());
    save_on(&whole, 30).unwrap();
    assert_eq!(disk.live(), whole.live());
}

/// A state that all threads work on: one write after the other fails, on whichever thread it comes.
#[test]
fn threads_fail_together() {
    let mut run = Run::at(30);
    for (name, len) in [("big", 5 << 20), ("other", 3 << 20)] {
        let bytes = vec![7; len];
        run.files.push((name.to_owned(), bytes));
    }
    let options = SaveOptions { threads: 4, ..SaveOptions::default() };
    let save_all = |disk: &SimulatedDisk| run.with(|state| save(disk, Path::new(ROOT), state, &options));
    let whole = disk_with(image_of_two());
    save_all(&whole).unwrap();
    let calls = whole.calls();
    let begin = calls.iter().position(|call| matches!(call, Call::MakeDirectory(_))).unwrap();
    let end = calls.iter().position(|call| matches!(call, Call::Rename(..))).unwrap();
    assert!(end - begin > 30, "{}", end - begin);
    for number in begin..end {
        let disk = disk_with(image_of_two()).fail_at(number, Fault::Error(ENOSPC));
        let error = save_all(&disk).expect_err("an error was swallowed").to_string();
        assert!(error.contains("os error 28"), "{error}");
        assert_eq!(disk.live(), image_of_two());
    }
    let steps = part(&whole.live(), "step-000030");
    assert_eq!(steps.len(), 9);
    let again = disk_with(image_of_two());
    save_all(&again).unwrap();
    assert_eq!(part(&again.live(), "step-000030"), steps);
}
