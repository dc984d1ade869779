//! A disk that can no longer read some of a step's bytes: the step is passed over with that reason, nothing is killed by SIGBUS.

use std::process::Command;

use safestep::OsDisk;
use safestep::checkpoint::{FlawKind, SaveOptions, load, save, verify};
use safestep_tests::remarks::skipped;
use safestep_tests::runs::Run;

use super::volume::{KINDS, Volume, missing};

const LEN_BYTES: usize = 3 << 20;

/// Each file of a step in turn.
#[test]
fn a_step_on_bad_sectors_is_passed_over() {
    if let Some(why) = missing() {
        return skipped(&why);
    }
    for file in ["model.safetensors", "optimizer.safetensors", "trainer_state.json", "MANIFEST.json"] {
        passed_over(file);
    }
}

fn passed_over(file: &str) {
    let volume = Volume::new(KINDS[0]);
    volume.format();
    let mounted = volume.mount().unwrap();
    let root = mounted.path().join("ckpt");
    for step in [1, 2] {
        let run = Run::sized(step, LEN_BYTES);
        run.with(|state| save(&OsDisk, &root, state, &SaveOptions::default())).unwrap();
    }
    let damaged = root.join("step-000002");
    // A block in the middle of the file.
    let bytes = std::fs::read(damaged.join(file)).unwrap();
    let mark = bytes.chunks(4096).nth(bytes.len() / 4096 / 2).unwrap();
    // Nothing of it may be left in the kernel's memory.
    drop(mounted);
    let mounted = volume.mount().unwrap();
    assert_eq!(volume.device.spoil(mark), 1, "{file}");

    let checkpoint = load(&OsDisk, &root).unwrap();
    assert_eq!(checkpoint.name.step(), 1, "{file}");
    assert_eq!(Run::sized(1, LEN_BYTES).differs_from(&checkpoint), None);
    let skipped: Vec<String> = checkpoint.skipped.iter().map(|skipped| format!("{skipped:?}")).collect();
    assert_eq!(skipped.len(), 1, "{file}: {skipped:?}");
    drop(checkpoint);

    let verdict = verify(&damaged, &|_, _| {}).unwrap();
    let unreadable = verdict.flaws.iter().filter(|flaw| matches!(flaw.kind, FlawKind::Unreadable(_)));
    assert_eq!(unreadable.map(|flaw| flaw.file.to_str()).collect::<Vec<_>>(), [Some(file)], "{verdict:?}");

    let output = Command::new(crate::program::binary()).arg("verify").arg(&damaged).output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code().is_some_and(|code| code != 0) && said.contains(file), "{file}: {output:?}");
    drop(mounted);
}
