//! Which runs are gone on with, which are refused and in which words, and what a checkpoint says of its run.

use std::fs;

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::{Bench, GIT_SHA, json};
use crate::program::{image, names, run_in};

/// A refused resume once repaired the history and made one where there was none, before it looked whose run it was.
#[test]
fn another_run_is_not_gone_on_with() {
    let bench = Bench::new();
    let steps = "--max-steps 20 --ckpt-every 10";
    bench.train("run", steps).expect(0);
    bench.pack("other", 300);
    let history = bench.at("run/.loss.json");
    let good = fs::read(&history).unwrap();
    let refused = |more: &str, differs: &str| {
        let before = image(&bench.at("run"));
        let ran = bench.train("run", &format!("{more} --resume"));
        assert_eq!(ran.expect(2), "");
        assert!(ran.err.starts_with("safestep: run") && ran.err.contains(differs), "{more}: {}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
        assert!(image(&bench.at("run")) == before, "{more}");
    };
    let cut = [&good[..], b"{\"loss\":1.0,\"st"].concat();
    for text in [Some(&good), Some(&cut), None] {
        match text {
            Some(text) => fs::write(&history, text).unwrap(),
            None => fs::remove_file(&history).unwrap(),
        }
        for (more, differs) in [
            ("--lr 0.5", "lr: it has 0.05, this is 0.5"),
            ("--seed 43", "seed: it has 42, this is 43"),
            ("--batch 5", "batch: it has 4, this is 5"),
            ("--seq-len 9", "seq_len: it has 8, this is 9"),
            ("--optimizer sgd", "lr: it has 0.05, this is 5.0; optimizer: it has \"adamw\", this is \"sgd\""),
            ("--method counts", "method: it has \"gradient\", this is \"counts\""),
            ("--data other.bin", "shards: it has [{"),
            ("--batch 5 --seq-len 9", "batch: it has 4, this is 5; seq_len: it has 8, this is 9"),
        ] {
            refused(&format!("{steps} {more}"), " is of another run: ");
            refused(&format!("{steps} {more}"), differs);
        }
        for steps in [0, 10, 19] {
            let told = format!("run is already at step 20, beyond --max-steps {steps}\n");
            refused(&format!("--max-steps {steps} --ckpt-every 10"), &told);
        }
    }
    fs::write(&history, &good).unwrap();
    // A shard of the same name and length that begins otherwise.
    let shard = fs::read(bench.at("ids.bin")).unwrap();
    let mut other = shard.clone();
    other[1024] ^= 1;
    fs::write(bench.at("ids.bin"), other).unwrap();
    refused(steps, "shards: it has [{");
    fs::write(bench.at("ids.bin"), shard).unwrap();
    // How long it is and how often it is saved may change.
    let whole = bench.whole("--max-steps 40 --ckpt-every 20");
    let longer = bench.ends_like(&whole, "run", "--max-steps 40 --ckpt-every 7");
    assert!(longer.err.contains("resumed 20\n") && longer.err.contains("saved 28\n"), "{}", longer.err);
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is no part of the config, and decides on the bytes all the same: it stands with the optimizer.
#[test]
fn another_optimizer_is_not_gone_on_with() {
    let steps = "--max-steps 10 --ckpt-every 10";
    for (more, from, to, differs) in [
        ("--optimizer adamw", "0.999]", "0.998]", "betas: it has [0.9,0.998], this is [0.9,0.999]"),
        (
            "--optimizer adamw",
            "weight_decay\\\":0.01",
            "weight_decay\\\":0.02",
            "weight_decay: it has 0.02, this is 0.01",
        ),
        ("--optimizer adamw", "1e-8", "1e-7", "eps: it has 1e-7, this is 1e-8"),
        ("--optimizer sgd", "momentum\\\":0.9", "momentum\\\":0.8", "momentum: it has 0.8, this is 0.9"),
        ("--optimizer sgd", "step\\\":10", "step\\\":11", "step: it has 11, this is 10"),
        ("--method counts", "counts\\\"}", "sounds\\\"}", "algorithm: it has \"sounds\", this is \"counts\""),
    ] {
        let bench = Bench::new();
        bench.train("run", &format!("{steps} {more}")).expect(0);
        let [optimizer, manifest] = ["optimizer.safetensors", "MANIFEST.json"]
            .map(|name| bench.at("run/ckpt/step-000010").join(name));
        let old = fs::read(&optimizer).unwrap();
        let places: Vec<usize> =
            (0..old.len()).filter(|&place| old[place..].starts_with(from.as_bytes())).collect();
        let mut new = old.clone();
        new[places[0]..places[0] + from.len()].copy_from_slice(to.as_bytes());
        fs::write(&optimizer, &new).unwrap();
        let text = fs::read_to_string(&manifest).unwrap();
        assert!(text.contains(&hex(&old)));
        fs::write(&manifest, text.replace(&hex(&old), &hex(&new))).unwrap();
        let before = image(&bench.at("run"));
        let ran = bench.train("run", &format!("--max-steps 20 --ckpt-every 10 {more} --resume"));
        assert_eq!(ran.expect(2), "");
        let expected = format!("safestep: run/ckpt/step-000010 is of another run: {differs}\n");
        assert_eq!(ran.err, expected);
        assert!(image(&bench.at("run")) == before);
    }
}

#[test]
fn a_checkpoint_without_a_cursor_is_not_gone_on_with() {
    let bench = Bench::new();
    let more = "--max-steps 10 --ckpt-every 10";
    bench.train("run", more).expect(0);
    let go = |arguments: &str| run_in(bench.directory.path(), arguments.split(' '));
    let exported = go("snapshot export run --out s.bin --json");
    let order = &serde_json::from_str::<serde_json::Value>(exported.expect(0)).unwrap()["order"];
    fs::write(bench.at("order.json"), order.to_string()).unwrap();
    go("snapshot import s.bin --params order.json --out made").expect(0);
    let before = image(&bench.at("made"));
    let ran = bench.train("made", &format!("{more} --resume"));
    assert_eq!(ran.expect(2), "");
    assert_eq!(
        ran.err,
        "safestep: made/ckpt/step-000010 is of another run: it has no config, as one that was made of a snapshot\n"
    );
    assert!(image(&bench.at("made")) == before);
}

/// The vocabulary is a number in a file of a kilobyte; the table of it is its square.
#[test]
fn a_table_that_does_not_fit_is_refused_before_it_is_made() {
    let bench = Bench::new();
    for (vocabulary, more) in [(1_000_000, ""), (2_000_000_000, ""), (4_294_967_295_u32, "--method counts")] {
        let more = format!("--max-steps 10 --ckpt-every 10 --vocab {vocabulary} {more}");
        let mut shard = fs::read(bench.at("ids.bin")).unwrap();
        shard[12..16].fill(0);
        fs::write(bench.at("ids.bin"), shard).unwrap();
        let ran = bench.train("run", &more);
        assert_eq!(ran.expect(2), "");
        let told = format!("safestep: a table of {vocabulary} x {vocabulary} ");
        assert!(ran.err.starts_with(&told) && ran.err.lines().count() == 1, "{}", ran.err);
        assert!(!bench.at("run").exists());
    }
}

#[test]
fn no_checkpoint_yet_and_none_that_is_whole() {
    let (bench, more) = (Bench::new(), "--max-steps 20 --ckpt-every 10");
    let whole = bench.whole(more);
    for before in ["", "--sigkill-after 5"] {
        bench.remove("run");
        if !before.is_empty() {
            bench.train("run", &format!("{more} {before}"));
        }
        let ran = bench.ends_like(&whole, "run", more);
        assert!(ran.err.starts_with("no checkpoint yet: from step 0\n"), "{}", ran.err);
    }
    for step in bench.steps("run") {
        fs::write(bench.at("run/ckpt").join(step).join("model.safetensors"), "broken").unwrap();
    }
    let before = image(&bench.at("run"));
    let ran = bench.train("run", &format!("{more} --resume"));
    assert_eq!(ran.expect(1), "");
    assert!(image(&bench.at("run")) == before);
    assert!(ran.err.starts_with("safestep: ") && ran.err.contains("run/ckpt"), "{}", ran.err);
}

/// The newest one that is whole is taken, which one was not is said, and it is whole again once the run has come to its step.
#[test]
fn a_broken_checkpoint_is_passed_over() {
    let (bench, more) = (Bench::new(), "--max-steps 30 --ckpt-every 10");
    let longer = "--max-steps 40 --ckpt-every 10";
    let whole = bench.whole(longer);
    bench.train("good", more).expect(0);
    let step = |run: &str| bench.at(run).join("ckpt/step-000030");
    let files = |run: &str| -> Vec<Vec<u8>> {
        names(&step(run)).iter().map(|name| fs::read(step(run).join(name)).unwrap()).collect()
    };
    let passes_over = |what: &str, skipped: &str| {
        let ran = bench.ends_like(&whole, "run", longer);
        let told = format!("safestep: skipped {skipped}");
        assert!(ran.err.starts_with(&told), "{what}: {}", ran.err);
        assert_eq!(ran.err.matches("safestep: ").count(), 1, "{what}: {}", ran.err);
        assert_eq!((names(&step("run")), files("run")), (names(&step("whole")), files("whole")), "{what}");
        assert_eq!(names(&bench.at("run/ckpt")), names(&bench.at("whole/ckpt")), "{what}");
        ran
    };
    let mut cases = 0;
    for name in names(&step("good")) {
        let bytes = fs::read(step("good").join(&name)).unwrap();
        let name = name.to_str().unwrap();
        let flipped = |place: usize| {
            let mut bytes = bytes.clone();
            bytes[place] ^= 1;
            bytes
        };
        let (first, last) = (flipped(0), flipped(bytes.len() - 1));
        let (short, long) = (bytes[..bytes.len() - 1].to_vec(), [&bytes[..], b"x"].concat());
        for (what, bytes) in [
            ("first", Some(first)),
            ("last", Some(last)),
            ("short", Some(short)),
            ("long", Some(long)),
            ("gone", None),
        ] {
            bench.copy("good", "run");
            let file = step("run").join(name);
            match bytes {
                Some(bytes) => fs::write(file, bytes).unwrap(),
                None => fs::remove_file(file).unwrap(),
            }
            let ran = passes_over(&format!("{name} {what}"), &format!("step-000030: {name}"));
            assert!(ran.err.contains("\nresumed 20\n"), "{name} {what}: {}", ran.err);
            cases += 1;
        }
    }
    assert_eq!(cases, 5 * 5);

    bench.copy("good", "run");
    fs::remove_dir_all(step("run")).unwrap();
    let ran = passes_over("all of it", "step-000030");
    assert!(ran.err.contains("\nresumed 20\n"), "{}", ran.err);
    // A pointer that points nowhere hides no step that is whole.
    bench.copy("good", "run");
    fs::write(bench.at("run/ckpt/LATEST"), "step-000035\n").unwrap();
    let ran = passes_over("LATEST", "step-000035");
    assert!(ran.err.contains("\nresumed 30\n"), "{}", ran.err);
    for garbage in ["", "step-30\n", "\0\0\0\0", "step-000010\nstep-000030\n"] {
        bench.copy("good", "run");
        fs::write(bench.at("run/ckpt/LATEST"), garbage).unwrap();
        let ran = bench.ends_like(&whole, "run", longer);
        assert!(ran.err.starts_with("resumed 30\n"), "{garbage:?}: {}", ran.err);
    }
}

#[test]
fn what_is_there_is_not_trained_over() {
    let (bench, more) = (Bench::new(), "--max-steps 3 --ckpt-every 10");
    fs::create_dir(bench.at("run")).unwrap();
    bench.train("run", more).expect(0);
    let before = bench.outcome("run");
    let ran = bench.train("run", more);
    assert_eq!(ran.expect(2), "");
    assert_eq!(ran.err, "safestep: run holds something; --resume goes on with a run\n");
    assert_eq!(bench.outcome("run"), before);
    fs::create_dir(bench.at("taken")).unwrap();
    fs::write(bench.at("taken/note"), "mine").unwrap();
    bench.train("taken", more).expect(2);
    fs::create_dir(bench.at("step-000001")).unwrap();
    let ran = bench.train("step-000001/run", more);
    assert_eq!(ran.expect(2), "");
    assert!(ran.err.contains("found one in the checkpoint"), "{}", ran.err);
    assert!(names(&bench.at("step-000001")).is_empty());
    assert_eq!(names(&bench.at("taken")), ["note"]);
}

#[test]
fn methods_and_their_names() {
    let (bench, steps) = (Bench::new(), "--max-steps 20 --ckpt-every 10");
    let whole = bench.whole(steps);
    for name in ["gradient", "autograd"] {
        bench.train(name, &format!("{steps} --method {name}")).expect(0);
        assert_eq!(bench.outcome(name), whole);
    }
    bench.train("counts", &format!("{steps} --method counts")).expect(0);
    let loss = |run: &str| json(&bench.at(run).join("final.json"))["eval_loss"].as_f64().unwrap();
    // Both have learned: 32 ids that come alike are worth ln 32.
    assert!(loss("counts") < 32_f64.ln() - 0.5 && loss("whole") < 32_f64.ln() - 0.5);
    let ran = bench.train("none", &format!("{steps} --method magic"));
    assert!(ran.expect(2).is_empty() && !bench.at("none").exists());
}

#[test]
fn what_a_checkpoint_says_of_its_run() {
    let bench = Bench::new();
    let ran = bench.train("run", "--max-steps 50 --ckpt-every 50 --lr 0.25");
    ran.expect(0);
    assert!(ran.err.lines().any(|line| line == "saved 50"), "{}", ran.err);
    let checkpoint = bench.at("run/ckpt").join(bench.steps("run").pop().unwrap());
    let config = fs::read(checkpoint.join("config.json")).unwrap();
    let sha256 = hex(&config);
    let state = json(&checkpoint.join("trainer_state.json"));
    let plain = ["step", "tokens_seen", "lr", "config_sha256", "git_sha"].map(|key| &state[key]);
    assert_eq!(
        plain.map(ToString::to_string),
        [json!(50), json!(50 * 4 * 8), json!(0.25), json!(sha256), json!(GIT_SHA)]
            .map(|value| value.to_string())
    );
    assert!(state["data_cursor"]["offset"].is_u64() && state["data_cursor"]["shard"] == 0, "{state}");
    assert!(!state["rng_state"]["state"].is_null() && !state["rng_state"]["inc"].is_null(), "{state}");

    let last_word = fs::read_to_string(bench.at("run/final.json")).unwrap();
    let model = crate::program::rewrite::sha256(&checkpoint.join("model.safetensors"));
    let loss = &json(&bench.at("run/final.json"))["eval_loss"];
    let expected =
        format!("{{\"eval_loss\":{loss},\"model_sha256\":\"{model}\",\"steps\":50,\"tokens_seen\":1600}}\n");
    assert_eq!(last_word, expected);
    assert_eq!(json(&bench.at("run/.samples.json"))["step"], 50);
}
