//! A disk that says no: whichever call fails, the error comes back, older checkpoints are as they were, nothing is synced
//! twice, and the next save clears what is left.

use std::path::Path;

use super::power::{ROOT, all_at_once, disk_with, image_of_two, one_by_one, save_by, save_on};
use safestep::checkpoint::protocol::Protocol;
use safestep::checkpoint::{SaveOptions, save};
use safestep_tests::disk_faults::{Call, EINTR, EIO, ENOSPC, Fault, Image, SimulatedDisk};
use safestep_tests::remarks::remark;
use safestep_tests::runs::Run;

/// The files of a step, or of the root itself.
fn part(image: &Image, name: &str) -> Image {
    let part = image.iter().filter(|(path, _)| path.starts_with(Path::new(ROOT).join(name)));
    part.map(|(path, standing)| (path.clone(), standing.clone())).collect()
}

/// The ways of a save, and the calls that it makes; when threads make them the numbers change from run to run.
fn ways() -> [(SaveOptions, Vec<Call>); 2] {
    [one_by_one(Protocol::default()), all_at_once(Protocol::default())].map(|options| {
        let disk = disk_with(image_of_two());
        save_by(&disk, 30, &options).unwrap();
        (options, disk.calls())
    })
}

#[test]
fn an_error_at_any_call_leaves_older_checkpoints_whole() {
    let before = image_of_two();
    let (mut failed, mut cleared) = (0, 0);
    for (options, calls) in ways() {
        for (number, fault) in (0..calls.len()).flat_map(|number| FAULTS.map(|fault| (number, fault))) {
            let disk = disk_with(before.clone()).fail_at(number, fault);
            let answer = save_by(&disk, 30, &options);
            let (after, call) = (disk.live(), disk.calls().get(number).cloned());
            let declared = part(&after, "LATEST") != part(&before, "LATEST");
            match answer {
                // How often many threads ask for what is written to be brought to the disk is left to chance.
                Ok(_) if call.is_none() => continue,
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
            assert!(disk.live().keys().all(|path| !path.to_string_lossy().contains(".tmp")), "{call:?}");
            cleared += 1;
        }
    }
    remark(&format!("errors of a simulated disk: {failed} of {cleared} failed the save"));
    assert!(failed > 200, "{failed}");
}

const FAULTS: [Fault; 3] = [Fault::Error(EIO), Fault::Error(ENOSPC), Fault::Broken(EIO)];

#[test]
fn a_failed_sync_is_never_tried_again() {
    let mut looked_at = 0;
    for (options, calls) in ways() {
        for (number, errno) in (0..calls.len()).flat_map(|number| [(number, EIO), (number, EINTR)]) {
            let disk = disk_with(image_of_two()).fail_at(number, Fault::Error(errno));
            let answer = save_by(&disk, 30, &options);
            let calls = disk.calls();
            let Some((Call::Sync(file) | Call::WriteBack(file), later)) =
                calls.get(number..).and_then(<[Call]>::split_first)
            else {
                continue;
            };
            answer.expect_err("a failed sync was swallowed");
            let again = |call: &Call| [Call::Sync(*file), Call::WriteBack(*file)].contains(call);
            assert!(!later.iter().any(again), "{later:?}");
            looked_at += 1;
        }
    }
    assert!(looked_at > 24, "{looked_at}");
}

#[test]
fn signals_and_short_writes_are_no_errors() {
    let whole = disk_with(image_of_two());
    save_on(&whole, 30).unwrap();
    for (options, calls) in ways() {
        for number in 0..calls.len() {
            let disk = disk_with(image_of_two()).fail_at(number, Fault::Error(EINTR));
            let answer = save_by(&disk, 30, &options);
            if matches!(disk.calls().get(number), Some(Call::Write(_))) {
                answer.unwrap();
                assert_eq!(disk.live(), whole.live());
            }
        }
        for most_bytes in [1, 7, 100] {
            let disk = disk_with(image_of_two()).with_short_writes(most_bytes);
            save_by(&disk, 30, &options).unwrap();
            assert_eq!(disk.live(), whole.live());
        }
    }
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
