//! A state that no reader would take is refused before anything is touched; so is a second saver, and a disk that is too full.
//!
//! Found out later, each of these would have cost the checkpoint that it was to replace, or a night of training after it.

use std::fs;

use super::*;
use safestep::checkpoint::{State, retain};
use safestep::disk::{Disk as _, Locked};
use safestep::error::Cause;
use safestep_core::checkpoint::{Digest, RngState};
use safestep_tests::disk_faults::{Call, Fault, SimulatedDisk, Standing};

fn refused(root: &Path, run: &Run) -> String {
    let error = run.with(|state| save(&OsDisk, root, state, &SaveOptions::default())).unwrap_err();
    assert!(matches!(error.because(), Cause::Refused(_)), "{error}");
    error.to_string()
}

#[test]
fn a_bad_state_is_refused_and_nothing_is_written() {
    let (directory, root) = room();
    type Spoil = fn(&mut Run);
    let table: [(&str, Spoil); 20] = [
        ("optimizer.safetensors: state: at byte 1: expected a key or '}', found 's'", |run| {
            run.optimizer_state = "{step:1}".into();
        }),
        ("state: at byte 10: expected a JSON value, found 'N'", |run| {
            run.optimizer_state = r#"{"a": [1, NaN]}"#.into();
        }),
        ("state: at byte 1: expected a JSON value, found the end", |run| run.optimizer_state = " ".into()),
        ("state: at byte 3: expected only white space behind the document", |run| {
            run.optimizer_state = "{} {}".into();
        }),
        ("an odd increment", |run| run.trainer.rng_state = Some(RngState { inc: 4, state: 1 })),
        ("a finite learning rate", |run| run.trainer.lr = Some(f64::NAN)),
        ("a finite learning rate", |run| run.trainer.lr = Some(f64::INFINITY)),
        ("the config with digest", |run| run.trainer.config_sha256 = Some(Digest::new([1; 32]))),
        ("\"weight\" twice", |run| run.model[1].name = "weight".into()),
        ("__metadata__", |run| run.model[0].name = "__metadata__".into()),
        ("expected 8 bytes for \"weight\", found 7", |run| run.model[0].bytes.truncate(7)),
        ("optimizer.safetensors: W5", |run| run.arrays[0].bytes.push(0)),
        ("an empty one", |run| run.files[0].0 = String::new()),
        ("a slash", |run| run.files[0].0 = "../x".into()),
        ("a slash", |run| run.files[0].0 = "/etc/passwd".into()),
        ("means a directory", |run| run.files[0].0 = "..".into()),
        ("a NUL", |run| run.files[0].0 = "a\0b".into()),
        ("that of the manifest", |run| run.files[0].0 = "MANIFEST.json".into()),
        ("\"model.safetensors\" out of it", |run| run.files[0].0 = "model.safetensors".into()),
        ("expected the name of a file", |run| run.files[0].0 = "n".repeat(256)),
    ];
    for (expected, spoil) in table {
        let mut run = Run::at(5);
        spoil(&mut run);
        let error = refused(&root, &run);
        assert!(error.contains(expected), "{error}\n{expected}");
        assert!(fs::read_dir(directory.path()).unwrap().next().is_none(), "{expected}");
    }
}

#[test]
fn a_step_that_was_declared_done_is_not_saved_again() {
    let (_directory, root) = room();
    for step in [1, 2] {
        save_at(&root, step).unwrap();
    }
    for step in [1, 2] {
        let error = save_at(&root, step).unwrap_err();
        assert!(matches!(error.because(), Cause::StepExists), "{error}");
    }
    // Without LATEST nobody knows which one a resume took.
    fs::remove_file(root.join("LATEST")).unwrap();
    assert!(matches!(save_at(&root, 2).unwrap_err().because(), Cause::StepExists));
    assert_eq!(
        (loaded(&root).name.step(), names(&root)),
        (2, vec!["step-000001".into(), "step-000002".into()])
    );
}

/// A run whose newest step is damaged goes on from an older one, and comes to the same step again.
#[test]
fn a_step_that_is_damaged_is_replaced() {
    let (_directory, root) = room();
    for step in [1, 2] {
        save_at(&root, step).unwrap();
    }
    let model = root.join("step-000002/model.safetensors");
    let mut bytes = fs::read(&model).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&model, bytes).unwrap();
    assert_eq!(loaded(&root).name.step(), 1);
    save_at(&root, 2).unwrap();
    assert_eq!(loaded(&root).name.step(), 2);
    assert_eq!(names(&root), ["LATEST", "step-000001", "step-000002"]);
    assert!(matches!(save_at(&root, 2).unwrap_err().because(), Cause::StepExists));
}

/// A first save fails at the sync that would have made its root durable; the next one has to do that.
#[test]
fn a_root_that_is_left_over_becomes_durable() {
    let fresh = || SimulatedDisk::holding([("work", Standing::Directory)]);
    let root = Path::new("work/run/ckpt");
    let save_to =
        |disk: &SimulatedDisk| Run::at(1).with(|state| save(disk, root, state, &SaveOptions::default()));
    let whole = fresh();
    save_to(&whole).unwrap();
    let made = |call: &Call| matches!(call, Call::SyncDirectory(path) if path == Path::new("work/run"));
    let failing = whole.calls().iter().position(made).unwrap();
    let disk = fresh().fail_at(failing, Fault::Error(5));
    save_to(&disk).unwrap_err();
    save_to(&disk).unwrap();
    for image in disk.after_power_failure(64) {
        assert!(image.contains_key(&root.join("LATEST")), "{:?}", image.keys());
    }
}

#[test]
fn a_step_that_was_never_declared_done_is_replaced() {
    let (_directory, root) = room();
    for step in [1, 2, 3] {
        save_at(&root, step).unwrap();
    }
    fs::write(root.join("LATEST"), "step-000001\n").unwrap();
    let mut run = Run::at(2);
    run.files.clear();
    run.with(|state| save(&OsDisk, &root, state, &SaveOptions::default())).unwrap();
    let checkpoint = load(&OsDisk, &root).unwrap();
    assert_eq!((checkpoint.name.step(), run.differs_from(&checkpoint)), (2, None));
    assert_eq!(names(&root), ["LATEST", "step-000001", "step-000002", "step-000003"]);
}

#[test]
fn one_saver_at_a_time_and_the_second_hears_who_is_first() {
    let (_directory, root) = room();
    save_at(&root, 1).unwrap();
    let Locked::Ours(lock) = OsDisk.lock(&root).unwrap() else { panic!("nobody else is there") };
    for error in
        [save_at(&root, 2).unwrap_err(), retain(&OsDisk, &root, &Retention::last(1), false).unwrap_err()]
    {
        let Cause::Locked { pid } = error.because() else { panic!("{error}") };
        assert_eq!(*pid, Some(std::process::id()));
        assert!(error.to_string().contains(&format!("process {} is saving there", std::process::id())));
    }
    assert_eq!(loaded(&root).name.step(), 1);
    drop(lock);
    save_at(&root, 2).unwrap();
    assert_eq!(names(&root), ["LATEST", "step-000001", "step-000002"]);
}

/// The lock is the kernel's: it names another process, and goes with it, however that ends.
#[test]
fn a_dead_process_holds_no_lock() {
    let (_directory, root) = room();
    save_at(&root, 1).unwrap();
    // `flock` of util-linux, which becomes the `sleep`.
    let mut command = std::process::Command::new("flock");
    let mut other =
        command.args(["--exclusive", "--no-fork"]).arg(&root).args(["sleep", "60"]).spawn().unwrap();
    let started = std::time::Instant::now();
    loop {
        match OsDisk.lock(&root).unwrap() {
            Locked::Ours(lock) => drop(lock),
            Locked::Theirs { pid } => break assert_eq!(pid, Some(other.id())),
        }
        assert!(started.elapsed().as_secs() < 20, "it never took the lock");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let error = save_at(&root, 2).unwrap_err().to_string();
    assert!(error.contains(&format!("process {} is saving there", other.id())), "{error}");
    other.kill().unwrap();
    other.wait().unwrap();
    save_at(&root, 2).unwrap();
    assert_eq!(loaded(&root).name.step(), 2);
}

#[test]
fn space_is_looked_for_before_the_first_byte() {
    let disk = SimulatedDisk::holding::<&str>([]).with_free_bytes(70_000);
    let save = |state: &State<'_>| save(&disk, Path::new("ckpt"), state, &SaveOptions::default());
    let error = Run::at(1).with(save).unwrap_err();
    let Cause::NoSpace { needed_bytes, free_bytes: 70_000 } = error.because() else { panic!("{error}") };
    assert!(error.to_string().contains(&format!("{needed_bytes} bytes are needed and 70000 are free")));
    assert!(disk.calls().iter().all(|call| !matches!(call, Call::Write(_) | Call::Create(_))));
    assert_eq!(disk.live().keys().collect::<Vec<_>>(), [Path::new("ckpt")]);
}

#[test]
fn a_root_that_is_no_directory_and_a_disk_that_cannot_be_written_are_errors() {
    let (directory, root) = room();
    fs::write(directory.path().join("run"), "").unwrap();
    let error = save_at(&root, 1).unwrap_err();
    assert!(error.to_string().to_lowercase().contains("not a directory"), "{error}");
    // /proc takes no directories, from root neither.
    let error = save_at(Path::new("/proc/safestep"), 1).unwrap_err();
    assert!(matches!(error.because(), Cause::Io(_)), "{error}");
}

#[test]
fn paths_may_be_long_and_need_not_be_text() {
    use std::os::unix::ffi::OsStringExt as _;
    let directory = tempfile::tempdir().unwrap();
    let strange = std::ffi::OsString::from_vec(b"\xff\n\x1b[2J".to_vec());
    let long = "d".repeat(250);
    let deep: PathBuf = [&long, &long, &long, &long, &long].iter().collect();
    for path in [directory.path().join(strange).join("ckpt"), directory.path().join(deep)] {
        save_at(&path, 1).unwrap();
        assert_eq!(loaded(&path).name.step(), 1);
    }
}
