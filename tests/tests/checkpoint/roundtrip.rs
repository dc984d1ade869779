//! What is saved is loaded, bit for bit, from a directory that is laid out as the format page says.
//!
//! If a byte of it changed its place, other programs would not find it; if a bit changed its value, a resumed run would not be
//! the run that was stopped.

use std::fs;

use super::*;
use safestep::checkpoint::load_step;
use safestep_core::checkpoint::{Manifest, Sha256, StepName, TrainerState};
use safestep_tests::runs::Array;

#[test]
fn a_checkpoint_comes_back_bit_for_bit() {
    let (_directory, root) = room();
    let saved = save_at(&root, 7).unwrap();
    assert_eq!((saved.name, saved.path), (StepName::of(7), root.join("step-000007")));
    assert_eq!(names(&root), ["LATEST", "step-000007"]);
    assert_eq!(fs::read(root.join("LATEST")).unwrap(), b"step-000007\n");
    let checkpoint = loaded(&root);
    assert!(checkpoint.skipped.is_empty() && checkpoint.name == StepName::of(7));
    assert_eq!(checkpoint.file_names().collect::<Vec<_>>(), ["config.json", "tokenizer.json"]);
}

#[test]
fn the_directory_is_laid_out_as_the_formats_say() {
    let (_directory, root) = room();
    let saved = save_at(&root, 50).unwrap();
    let files = names(&saved.path);
    assert_eq!(
        files,
        [
            "MANIFEST.json",
            "config.json",
            "model.safetensors",
            "optimizer.safetensors",
            "tokenizer.json",
            "trainer_state.json"
        ]
    );
    let read = |name: &str| fs::read(saved.path.join(name)).unwrap();
    let manifest = read("MANIFEST.json");
    assert!(manifest.starts_with(br#"{"files":[{"name":"config.json","sha256":""#));
    assert!(manifest.ends_with(br#"],"step":50,"version":1}"#));
    let manifest = Manifest::parse(&manifest).unwrap();
    let mut total = read("MANIFEST.json").len() as u64;
    for (listed, name) in manifest.files().zip(&files[1..]) {
        assert!(listed.name == name.as_str());
        assert_eq!((listed.sha256, listed.size), (Sha256::of(&read(name)), read(name).len() as u64));
        total += listed.size;
    }
    assert_eq!((manifest.len(), saved.bytes), (5, total));

    let state = String::from_utf8(read("trainer_state.json")).unwrap();
    let config = Sha256::of(&read("config.json"));
    assert!(
        state.starts_with(&format!(
            r#"{{"config_sha256":"{config}","data_cursor":{{"offset":300,"shard":2}},"#
        ))
    );
    assert!(
        state.contains(r#""rng_state":{"inc":"000000000000006d","state":""#)
            && state.contains(r#""step":50,"#)
    );
    let checkpoint = loaded(&root);
    let arrays: Vec<String> =
        checkpoint.optimizer.index().iter().map(|entry| entry.name().to_string()).collect();
    assert_eq!(arrays, ["bias.exp_avg", "bias.exp_avg_sq", "weight.exp_avg", "weight.exp_avg_sq"]);

    // A file that the manifest does not list makes the directory invalid.
    fs::write(saved.path.join("notes.txt"), "hello").unwrap();
    let error = load(&OsDisk, &root).unwrap_err();
    assert!(error.to_string().contains("notes.txt: the manifest does not list it"), "{error}");
}

#[test]
fn a_minimal_run_has_defaults() {
    let (_directory, root) = room();
    let run = Run {
        trainer: TrainerState { step: 1, ..TrainerState::default() },
        model: vec![],
        arrays: vec![],
        optimizer_state: "{}".into(),
        config: None,
        files: vec![],
    };
    run.with(|state| save(&OsDisk, &root, state, &SaveOptions::default())).unwrap();
    let checkpoint = load(&OsDisk, &root).unwrap();
    assert_eq!(run.differs_from(&checkpoint), None);
    assert_eq!(checkpoint.trainer.config_sha256, None);
    assert_eq!(
        fs::read_to_string(checkpoint.path.join("trainer_state.json")).unwrap(),
        r#"{"config_sha256":null,"data_cursor":null,"git_sha":null,"lr":null,"rng_state":null,"step":1,"tokens_seen":0}"#
    );
}

/// What an optimizer holds beside its arrays is JSON, whoever asks.
#[test]
fn an_optimizer_without_a_state_has_an_empty_object() {
    let (_directory, root) = room();
    for (step, state, expected) in
        [(1, "", "{}"), (2, "{}", "{}"), (3, " [1.50, \"\\u00e9\u{e9}\"]\n", " [1.50, \"\\u00e9\u{e9}\"]\n")]
    {
        let mut run = Run::at(step);
        run.optimizer_state = state.into();
        run.with(|state| save(&OsDisk, &root, state, &SaveOptions::default())).unwrap();
        let checkpoint = load(&OsDisk, &root).unwrap();
        assert_eq!(checkpoint.optimizer_state(), expected);
        let pairs = checkpoint.optimizer.index().metadata().into_iter().flatten();
        let pairs: Vec<_> = pairs.map(|(key, value)| (key.to_string(), value.to_string())).collect();
        assert_eq!(pairs, [("state".to_owned(), expected.to_owned())]);
    }
}

#[test]
fn momentum_of_sgd_is_stored_by_parameter() {
    let (_directory, root) = room();
    let mut run = Run::at(3);
    run.arrays = vec![
        Array::f32("weight.momentum_buffer", &[1, 2], &[0.25, -0.5]),
        Array::f32("bias.momentum_buffer", &[1], &[f32::MIN_POSITIVE / 2.0]),
    ];
    run.with(|state| save(&OsDisk, &root, state, &SaveOptions::default())).unwrap();
    let checkpoint = load(&OsDisk, &root).unwrap();
    assert_eq!(run.differs_from(&checkpoint), None);
    assert!(checkpoint.optimizer.index().get("weight.momentum_buffer").is_some());
}

/// One step of training: what comes out depends on every bit that a checkpoint holds.
fn train(run: &mut Run) {
    let mix = run.trainer.rng_state.as_mut().unwrap();
    mix.state = mix.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(mix.inc);
    let noise = (mix.state >> 40) as f32 / 1e9;
    let lr = run.trainer.lr.unwrap() as f32;
    for array in run.model.iter_mut().chain(&mut run.arrays) {
        for bytes in array.bytes.as_chunks_mut::<4>().0 {
            *bytes = (f32::from_le_bytes(*bytes) * (1.0 - lr) + noise).to_le_bytes();
        }
    }
    run.trainer.lr = run.trainer.lr.map(|lr| lr * 0.9);
    run.trainer.step += 1;
}

#[test]
fn a_resumed_run_is_the_run_that_was_stopped() {
    let (_directory, root) = room();
    let mut whole = Run::at(0);
    (0..6).for_each(|_| train(&mut whole));

    let mut first = Run::at(0);
    (0..3).for_each(|_| train(&mut first));
    first.with(|state| save(&OsDisk, &root, state, &SaveOptions::default())).unwrap();
    let checkpoint = load(&OsDisk, &root).unwrap();
    let mut second = Run { trainer: checkpoint.trainer, ..Run::at(0) };
    for (arrays, model) in
        [(&mut second.model, &checkpoint.model), (&mut second.arrays, &checkpoint.optimizer)]
    {
        for array in arrays {
            let entry = model.index().get(&array.name).unwrap();
            array.bytes = model.view(&entry).unwrap().bytes().to_vec();
        }
    }
    (0..3).for_each(|_| train(&mut second));
    assert_eq!((&second.model, &second.arrays), (&whole.model, &whole.arrays));
    assert_eq!(second.trainer.lr, whole.trainer.lr);
}

#[test]
fn newer_than_latest_is_ignored() {
    let (_directory, root) = room();
    for step in [1, 2, 3] {
        save_at(&root, step).unwrap();
    }
    fs::write(root.join("LATEST"), "step-000002\n").unwrap();
    assert_eq!(loaded(&root).name.step(), 2);
    fs::remove_file(root.join("LATEST")).unwrap();
    assert_eq!(loaded(&root).name.step(), 3);
    fs::remove_file(root.join("step-000003/MANIFEST.json")).unwrap();
    let checkpoint = loaded(&root);
    assert_eq!((checkpoint.name.step(), checkpoint.skipped.len()), (2, 1));
    assert_eq!(checkpoint.skipped[0].to_string(), "step-000003: MANIFEST.json: it is missing");
}

#[test]
fn a_step_by_number_is_loaded_or_an_error() {
    let (_directory, root) = room();
    for step in [1, 2] {
        save_at(&root, step).unwrap();
    }
    assert_eq!(Run::at(1).differs_from(&load_step(&OsDisk, &root, 1).unwrap()), None);
    assert!(load_step(&OsDisk, &root, 3).unwrap_err().to_string().contains("No such file"));
    fs::write(root.join("step-000002/config.json"), "x").unwrap();
    let error = load_step(&OsDisk, &root, 2).unwrap_err().to_string();
    assert!(error.contains("config.json: expected 13 bytes, found 1"), "{error}");
}

#[test]
fn order_is_by_number_beyond_six_digits() {
    let (_directory, root) = room();
    for step in [999_999, 1_000_000, 12_345_678] {
        save_at(&root, step).unwrap();
    }
    assert_eq!(names(&root)[1..], ["step-1000000", "step-12345678", "step-999999"]);
    fs::remove_file(root.join("LATEST")).unwrap();
    assert_eq!(loaded(&root).name.step(), 12_345_678);
    fs::write(root.join("LATEST"), "step-1000000\n").unwrap();
    assert_eq!(loaded(&root).name.step(), 1_000_000);
}

/// As large as it takes for all threads to have work.
#[test]
fn large_states_are_saved_by_many_threads_and_are_the_same() {
    let (_directory, root) = room();
    let mut run = Run::at(9);
    let bytes: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    run.model.push(Array {
        name: "big".into(),
        dtype: safestep_core::Dtype::U32,
        shape: vec![3_000_000],
        bytes,
    });
    run.arrays.extend((0..300).map(|place| Array::f32(&format!("small.{place}"), &[], &[place as f32])));
    for (step, threads) in [(1, 1), (2, 2), (3, 8), (4, 0)] {
        run.trainer.step = step;
        let options = SaveOptions { threads, ..SaveOptions::default() };
        run.with(|state| save(&OsDisk, &root, state, &options)).unwrap();
        assert_eq!(run.differs_from(&load(&OsDisk, &root).unwrap()), None);
    }
}
