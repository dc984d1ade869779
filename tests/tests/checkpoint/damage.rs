//! Bit rot, careless hands and other people's files: each kind of damage is found, named, and stepped over.
//!
//! The worst of it loads: training goes on from garbage, and nobody knows.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use safestep::checkpoint::{Latest, scan, verify};
use safestep::error::Cause;
use safestep_tests::remarks::skipped;

/// Steps 1 and 2, and a step 2 that was spoiled: what a load says of it, once it has taken step 1.
fn skipped_after(spoil: impl FnOnce(&Path)) -> String {
    let (_directory, root) = room();
    for step in [1, 2] {
        save_at(&root, step).unwrap();
    }
    let step = root.join("step-000002");
    spoil(&step);
    let verdict = verify(&step, &|_, _| {}).unwrap();
    let checkpoint = loaded(&root);
    assert_eq!((checkpoint.name.step(), checkpoint.skipped.len()), (1, 1));
    assert!(!verdict.is_whole() && verdict.flaws == checkpoint.skipped[0].flaws);
    checkpoint.skipped[0].to_string()
}

fn edit(path: PathBuf, edit: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(&path).unwrap();
    edit(&mut bytes);
    fs::write(path, bytes).unwrap();
}

const FILES: [&str; 6] = [
    "MANIFEST.json",
    "config.json",
    "model.safetensors",
    "optimizer.safetensors",
    "tokenizer.json",
    "trainer_state.json",
];

#[test]
fn a_flipped_bit_in_any_file_is_found() {
    for name in FILES {
        let len = Run::at(2).with(|state| {
            let (_directory, root) = room();
            let saved = save(&OsDisk, &root, state, &SaveOptions::default()).unwrap();
            fs::metadata(saved.path.join(name)).unwrap().len() as usize
        });
        for place in [0, len / 3, len / 2, len - 1] {
            let said = skipped_after(|step| edit(step.join(name), |bytes| bytes[place] ^= 0x10));
            assert!(said.contains(".json: ") || said.contains(&format!("{name}: expected sha256")), "{said}");
        }
    }
}

#[test]
fn a_file_that_is_cut_off_or_gone_is_found() {
    for name in FILES {
        for keep in [0, 1] {
            let said = skipped_after(|step| edit(step.join(name), |bytes| bytes.truncate(keep)));
            assert!(said.contains(&format!(": {name}: ")), "{said}");
        }
        let said = skipped_after(|step| fs::remove_file(step.join(name)).unwrap());
        assert!(said.ends_with(&format!("{name}: it is missing")), "{said}");
        let longer = skipped_after(|step| edit(step.join(name), |bytes| bytes.push(b'x')));
        assert!(longer.contains(&format!(": {name}: ")), "{longer}");
    }
}

#[test]
fn what_does_not_belong_there_is_found() {
    type Spoil = fn(&Path);
    let table: [(&str, Spoil); 8] = [
        ("extra: the manifest does not list it", |step| fs::write(step.join("extra"), "").unwrap()),
        ("MANIFEST.json.bak: the manifest does not list it", |step| {
            fs::write(step.join("MANIFEST.json.bak"), "").unwrap();
        }),
        ("deep: it is a directory, not a regular file", |step| fs::create_dir(step.join("deep")).unwrap()),
        ("link: it is ", |step| symlink("config.json", step.join("link")).unwrap()),
        ("config.json: it is a directory", |step| {
            fs::remove_file(step.join("config.json")).unwrap();
            fs::create_dir(step.join("config.json")).unwrap();
        }),
        ("config.json: it is ", |step| {
            fs::rename(step.join("config.json"), step.with_file_name("elsewhere")).unwrap();
            symlink("../elsewhere", step.join("config.json")).unwrap();
        }),
        ("MANIFEST.json: it is missing", |step| fs::remove_file(step.join("MANIFEST.json")).unwrap()),
        ("MANIFEST.json: it is missing", |step| {
            fs::remove_dir_all(step).unwrap();
            fs::create_dir(step).unwrap();
        }),
    ];
    for (expected, spoil) in table {
        let said = skipped_after(spoil);
        assert!(said.contains(expected), "{said}\n{expected}");
    }
    use std::os::unix::ffi::OsStringExt as _;
    let strange = std::ffi::OsString::from_vec(b"\xff\x1b".to_vec());
    let said = skipped_after(|step| fs::write(step.join(strange), "").unwrap());
    assert!(said.contains(r"\xff\u{1b}: the manifest does not list it"), "{said}");
}

#[test]
fn a_manifest_that_lies_is_found() {
    let table = [
        ("{\"files\"", "{\"files\":[],\"files\"", "expected each key once"),
        ("\"config.json\"", "\"../config.json\"", "found one with a slash"),
        ("\"config.json\"", "\"MANIFEST.json\"", "found that of the manifest"),
        ("\"model.safetensors\"", "\"config.json\"", "expected a name behind the one before it"),
        ("\"step\":2", "\"step\":3", "MANIFEST.json: expected step 2, found 3"),
        ("\"version\":1", "\"version\":2", "expected version 1, found 2"),
        ("\"version\":1}", "\"version\":1}x", "found 'x'"),
        ("\"size\":13", "\"size\":12", "config.json: expected 12 bytes, found 13"),
    ];
    for (from, to, expected) in table {
        let said = skipped_after(|step| {
            let path = step.join("MANIFEST.json");
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains(from), "{text}");
            fs::write(path, text.replacen(from, to, 1)).unwrap();
        });
        assert!(said.contains(expected), "{said}\n{expected}");
    }
    let said = skipped_after(|step| {
        // Whole, but another step's.
        let other = step.with_file_name("step-000001");
        fs::remove_dir_all(step).unwrap();
        fs::create_dir(step).unwrap();
        for name in FILES {
            fs::copy(other.join(name), step.join(name)).unwrap();
        }
    });
    assert!(said.contains("MANIFEST.json: expected step 2, found 1"), "{said}");
}

/// Replaces a file of a step, and what its manifest says of it.
fn replace(step: &Path, name: &str, text: &[u8]) {
    use safestep_core::checkpoint::{Manifest, Sha256};
    let manifest = fs::read(step.join("MANIFEST.json")).unwrap();
    let listed = Manifest::parse(&manifest).unwrap().files().find(|file| file.name == name).unwrap();
    let (old, new) = (listed.sha256.to_string(), Sha256::of(text).to_string());
    let size = |size: u64, sha: &str| format!("{sha}\",\"size\":{size}");
    let manifest = String::from_utf8_lossy(&manifest);
    let lying = manifest.replace(&size(listed.size, &old), &size(text.len() as u64, &new));
    assert_ne!(lying, *manifest);
    fs::write(step.join("MANIFEST.json"), lying).unwrap();
    fs::write(step.join(name), text).unwrap();
}

/// An optimizer's file without arrays.
fn optimizer(metadata: &str) -> Vec<u8> {
    let header = format!("{{\"__metadata__\":{metadata}}}");
    [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat()
}

/// The rest of an optimizer's state that is no JSON would be found out by the optimizer, when all is loaded and the older steps
/// are gone.
#[test]
fn an_optimizer_state_that_is_no_json_is_found() {
    for (metadata, expected) in [
        (r#"{"state":""}"#, "state: at byte 0: expected a JSON value, found the end"),
        (r#"{"state":"{\"step\":1"}"#, "state: at byte 9: expected ',' or a closing bracket, found the end"),
        (r#"{"state":"{}x"}"#, "state: at byte 2: expected only white space behind the document, found 'x'"),
    ] {
        let said = skipped_after(|step| replace(step, "optimizer.safetensors", &optimizer(metadata)));
        assert!(said.ends_with(&format!(": optimizer.safetensors: {expected}")), "{said}\n{expected}");
    }
    // Who holds nothing beside arrays may have left it out.
    let (_directory, root) = room();
    let saved = save_at(&root, 1).unwrap();
    replace(&saved.path, "optimizer.safetensors", &optimizer(r#"{"format":"pt"}"#));
    assert_eq!(load(&OsDisk, &root).unwrap().optimizer_state(), "{}");
}

/// A manifest that is right about files that are wrong themselves.
#[test]
fn digests_do_not_excuse_malformed_files() {
    for (name, text, expected) in [
        ("model.safetensors", &b"not a model"[..], "model.safetensors: R1"),
        ("optimizer.safetensors", b"", "optimizer.safetensors: R1.short"),
        ("trainer_state.json", b"{}", "trainer_state.json: at byte 1: expected the key config_sha256"),
    ] {
        let said = skipped_after(|step| replace(step, name, text));
        assert!(said.contains(expected), "{said}\n{expected}");
    }
}

#[test]
fn a_latest_that_cannot_be_followed() {
    type Spoil = fn(&Path);
    // What is loaded, and what LATEST is said to be.
    let table: [(&str, Spoil, u64, &str); 12] = [
        ("empty", |latest| fs::write(latest, "").unwrap(), 3, "it names no step: \"\""),
        ("no newline", |latest| fs::write(latest, "step-000002").unwrap(), 2, "step-000002"),
        ("two newlines", |latest| fs::write(latest, "step-000002\n\n").unwrap(), 3, "it names no step"),
        ("naming nothing", |latest| fs::write(latest, "step-000009\n").unwrap(), 3, "step-000009"),
        ("naming an older nothing", |latest| fs::write(latest, "step-000000\n").unwrap(), 0, ""),
        ("foreign", |latest| fs::write(latest, "step-2\n").unwrap(), 3, "it names no step"),
        ("escaping", |latest| fs::write(latest, "../../x\n").unwrap(), 3, "it names no step"),
        ("not text", |latest| fs::write(latest, b"\xff\xfe").unwrap(), 3, "it names no step"),
        ("long", |latest| fs::write(latest, "x".repeat(10_000)).unwrap(), 3, "large"),
        ("a directory", |latest| fs::create_dir(latest).unwrap(), 3, "not a regular file"),
        ("a loop", |latest| symlink("LATEST", latest).unwrap(), 3, "symbolic links"),
        ("dangling", |latest| symlink("none", latest).unwrap(), 3, "No such file"),
    ];
    for (case, spoil, step, said) in table {
        let (_directory, root) = room();
        for step in [1, 2, 3] {
            save_at(&root, step).unwrap();
        }
        fs::remove_file(root.join("LATEST")).unwrap();
        spoil(&root.join("LATEST"));
        if step == 0 {
            // All that stands there is newer than what was declared done.
            let error = load(&OsDisk, &root).unwrap_err();
            assert!(error.to_string().contains("step-000000: it is missing"), "{error}");
            continue;
        }
        assert_eq!(loaded(&root).name.step(), step, "{case}");
        let latest = scan(&OsDisk, &root).unwrap().latest;
        assert!(latest.to_string().contains(said), "{case}: {latest}");
        // The next save puts it right.
        if case != "a directory" {
            save_at(&root, 4).unwrap();
            assert_eq!(
                loaded(&root).latest,
                Latest::Step(safestep_core::checkpoint::StepName::of(4)),
                "{case}"
            );
        }
    }
}

#[test]
fn with_nothing_whole_there_is_no_checkpoint() {
    let (_directory, root) = room();
    let error = load(&OsDisk, &root).unwrap_err();
    assert!(matches!(error.because(), Cause::NoCheckpoint { skipped } if skipped.is_empty()), "{error}");
    for step in [1, 2] {
        save_at(&root, step).unwrap();
        edit(root.join(format!("step-00000{step}/model.safetensors")), |bytes| bytes[100] ^= 1);
    }
    let error = load(&OsDisk, &root).unwrap_err();
    assert!(matches!(error.because(), Cause::NoCheckpoint { skipped } if skipped.len() == 2), "{error}");
    assert!(error.to_string().contains("step-000001: model.safetensors: expected sha256"), "{error}");
}

/// Neither names nor choices look at a clock.
#[test]
fn a_clock_that_goes_backwards_changes_nothing() {
    let (_directory, root) = room();
    for step in [1, 2, 3] {
        save_at(&root, step).unwrap();
        let past = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1000 - step);
        for name in FILES {
            let path = root.join(format!("step-00000{step}")).join(name);
            fs::File::open(path).unwrap().set_modified(past).unwrap();
        }
    }
    assert_eq!(loaded(&root).name.step(), 3);
    save_keeping(&root, 4, Retention::last(2));
    assert_eq!(names(&root), ["LATEST", "step-000003", "step-000004"]);
}

/// A thread that is lost says nothing about the bytes: that is an error of the machine, not a flaw of the checkpoint.
#[test]
fn a_thread_that_is_lost_is_no_damage() {
    use std::thread;
    use std::time::{Duration, Instant};
    if thread::available_parallelism().map_or(1, std::num::NonZero::get) < 2 {
        return skipped("one core: nobody helps to hash");
    }
    let (_directory, root) = room();
    let saved = save_at(&root, 1).unwrap();
    let (ours, came) = (thread::current().id(), AtomicBool::new(false));
    // This thread waits at its first file until another one is at work, which then panics.
    let progress = |done: u64, _| {
        if thread::current().id() != ours {
            came.store(true, Ordering::Relaxed);
            panic!("a thread is lost, as planned");
        }
        let began = Instant::now();
        while done > 0 && !came.load(Ordering::Relaxed) && began.elapsed() < Duration::from_secs(20) {
            thread::yield_now();
        }
    };
    let error = verify(&saved.path, &progress).unwrap_err();
    assert!(matches!(error.because(), Cause::ThreadLost), "{error}");
    assert_eq!(error.blame(), safestep::Blame::Machine);
    assert_eq!(loaded(&root).name.step(), 1);
}

#[test]
fn verify_tells_how_far_it_is() {
    let (_directory, root) = room();
    let saved = save_at(&root, 1).unwrap();
    let last = std::sync::Mutex::new((0, 0));
    let verdict = verify(&saved.path, &|done, total| {
        let mut last = last.lock().unwrap();
        *last = (done.max(last.0), total);
    });
    let verdict = verdict.unwrap();
    let (done, total) = last.into_inner().unwrap();
    let manifest = fs::metadata(saved.path.join("MANIFEST.json")).unwrap().len();
    assert_eq!((done, total, verdict.bytes), (total, saved.bytes - manifest, saved.bytes));
    assert_eq!(verdict.step, Some(1));
}
