//! Samples and state: replaced whole, bound to a config, archived by a pivot; the loss history never is. A bandit arm whose
//! data source was gone once came back out of a `state.json` of a former run: that zombie is what the config's hash is for.

use std::fs;
use std::path::Path;

use safestep::error::Cause;
use safestep::run::{History, RunFiles, pivot, replace_samples, replace_state, state, state_of_any_config};
use safestep::{Blame, OsDisk};
use safestep_tests::disk_faults::{EIO, Fault, Image, SimulatedDisk, Standing, crash_at_every_call};

use super::{names, run};

const ONE: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const OTHER: &str = "22222222222222222222222222222222222222222222222222222222222222ab";

#[test]
fn a_state_is_bound_to_its_config() {
    let (_directory, files) = run("x");
    assert_eq!((state(&files, ONE).unwrap(), state_of_any_config(&files).unwrap()), (None, None));
    for (text, stored) in [
        ("{}", format!("{{\"config_sha256\":\"{ONE}\"}}")),
        (" { } ", format!("{{\"config_sha256\":\"{ONE}\" }} ")),
        ("{\"arms\":[1,2]}", format!("{{\"config_sha256\":\"{ONE}\",\"arms\":[1,2]}}")),
        ("{\"ema\":NaN}\n", format!("{{\"config_sha256\":\"{ONE}\",\"ema\":NaN}}\n")),
    ] {
        replace_state(&OsDisk, &files, ONE, text).unwrap();
        assert_eq!(fs::read_to_string(files.state()).unwrap(), stored);
        assert_eq!(state(&files, ONE).unwrap().as_deref(), Some(stored.as_str()));
        let error = state(&files, OTHER).unwrap_err();
        assert!(
            matches!(error.because(), Cause::OtherConfig { expected, found } if expected == OTHER && found == ONE)
        );
        assert_eq!(error.blame(), Blame::Data);
        assert!(error.to_string().contains(ONE) && error.to_string().contains(OTHER), "{error}");
        assert_eq!(state_of_any_config(&files).unwrap(), Some(stored));
    }
}

#[test]
fn what_is_no_state_is_refused_and_changes_nothing() {
    let (directory, files) = run("");
    replace_state(&OsDisk, &files, ONE, "{\"old\":1}").unwrap();
    let before = fs::read(files.state()).unwrap();
    for (config, text) in [
        (ONE, ""),
        (ONE, "[]"),
        (ONE, "{\"a\":1"),
        (ONE, "{\"a\":1}}"),
        (ONE, "{\"a\":01}"),
        (ONE, "{\"config_sha256\":\"x\"}"),
        (ONE, &format!("{{\"config_sha256\":\"{ONE}\"}}")),
        ("", "{}"),
        (&ONE[1..], "{}"),
        (&OTHER.to_uppercase(), "{}"),
    ] {
        let error = replace_state(&OsDisk, &files, config, text).unwrap_err();
        assert_ne!(error.blame(), Blame::Machine, "{text}");
        assert_eq!(fs::read(files.state()).unwrap(), before);
    }
    for (text, complaint) in [
        ("", "H1.object"),
        ("{}", "H2.config at byte 0: expected config_sha256, found none"),
        ("{\"config_sha256\":null}", "H2.config at byte 1"),
        ("{\"config_sha256\":\"1\"}", "H2.config at byte 1"),
        (&format!("{{\"config_sha256\":\"{ONE}\",\"config_sha256\":\"{ONE}\"}}"), "H2.config at byte 84"),
        ("{\"a\":\"\u{0}\"}", "H1.json"),
    ] {
        fs::write(files.state(), text).unwrap();
        for error in [state(&files, ONE).unwrap_err(), state_of_any_config(&files).unwrap_err()] {
            assert!(error.to_string().contains(complaint), "{error}");
        }
    }
    assert_eq!(names(directory.path()), [".state.json"]);
}

#[test]
fn a_pivot_archives_samples_and_state_and_nothing_else() {
    for stem in ["", "polish"] {
        let (directory, files) = run(stem);
        fs::write(files.loss(), "{\"loss\":1,\"step\":112700}\n").unwrap();
        fs::write(directory.path().join("step_112700.bin"), "weights").unwrap();
        for round in 1..=3 {
            replace_samples(&OsDisk, &files, &format!("[{round}]")).unwrap();
            replace_state(&OsDisk, &files, ONE, &format!("{{\"round\":{round}}}")).unwrap();
            let done = pivot(&OsDisk, &files, 112_700).unwrap();
            assert_eq!((done.directory.as_path(), done.moved.len()), (files.archive(112_700).as_path(), 2));
            assert!(fs::read_to_string(&done.moved[0].1).unwrap() == format!("[{round}]"));
            let loss = format!("{stem}.loss.json");
            assert_eq!(names(directory.path()).len(), 3);
            assert!(names(directory.path()).contains(&loss));
            assert_eq!(state(&files, ONE).unwrap(), None);
        }
        let archived = ["samples.2", "samples.3", "samples", "state.2", "state.3", "state"];
        assert_eq!(names(&files.archive(112_700)), archived.map(|name| format!("{stem}.{name}.json")));
    }
}

#[test]
fn a_pivot_where_files_are_missing() {
    let (directory, files) = run("");
    let done = pivot(&OsDisk, &files, 7).unwrap();
    assert!(done.moved.is_empty() && names(directory.path()).is_empty());
    replace_samples(&OsDisk, &files, "[]").unwrap();
    assert_eq!(pivot(&OsDisk, &files, 7).unwrap().moved.len(), 1);
    replace_state(&OsDisk, &files, ONE, "{}").unwrap();
    pivot(&OsDisk, &files, 7).unwrap();
    pivot(&OsDisk, &files, 7).unwrap();
    assert_eq!(names(&files.archive(7)), [".samples.json", ".state.json"]);
    fs::create_dir(files.state()).unwrap();
    assert!(matches!(pivot(&OsDisk, &files, 7).unwrap_err().because(), Cause::NotRegular(_)));
}

/// Whoever has the history open itself knows what it does; for another process see `program::train`.
#[test]
fn a_trainer_may_pivot_between_two_of_its_steps() {
    let (_directory, files) = run("");
    let mut history = History::open(&OsDisk, &files).unwrap();
    history.append(1, 1.0, &[]).unwrap();
    replace_samples(&OsDisk, &files, "[]").unwrap();
    if Path::new("/proc/locks").exists() {
        assert_eq!(pivot(&OsDisk, &files, 1).unwrap().moved.len(), 1);
    }
    history.append(2, 1.0, &[]).unwrap();
}

/// Old or new, never half.
#[test]
fn a_power_failure_leaves_the_old_state_or_the_new_one() {
    let files = RunFiles::new("run", "").unwrap();
    let old = || SimulatedDisk::holding([("run/.state.json", Standing::File(b"old".to_vec()))]);
    let write = |disk: &SimulatedDisk| replace_state(disk, &files, ONE, "{\"a\":1}").is_ok();
    let new = format!("{{\"config_sha256\":\"{ONE}\",\"a\":1}}").into_bytes();
    let judge = |image: &Image, success: bool| match image.get(Path::new("run/.state.json")) {
        Some(Standing::File(bytes)) if *bytes == new || !success && bytes == b"old" => Ok(()),
        found => Err(format!("{found:?}")),
    };
    crash_at_every_call(4096, old, write, judge).unwrap();
    for call in 0..5 {
        let disk = old().fail_at(call, Fault::Error(EIO));
        assert!(!write(&disk));
        assert_eq!(disk.live(), old().live());
    }
}
