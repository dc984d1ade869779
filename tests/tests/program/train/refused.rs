//! Which runs are gone on with, which are refused and in which words, and what a checkpoint says of its run.

use std::fs;

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::{Bench, GIT_SHA, json};

#[test]
fn another_run_is_not_gone_on_with() {
    let bench = Bench::new();
    let steps = "--max-steps 20 --ckpt-every 10";
    bench.train("run", steps).expect(0);
    bench.pack("other", 300);
    let before = bench.outcome("run");
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
        let ran = bench.train("run", &format!("{steps} {more} --resume"));
        assert_eq!(ran.expect(2), "");
        let words = ["safestep: run/ckpt/step-", " is of another run: ", differs];
        assert!(words.iter().all(|word| ran.err.contains(word)), "{more}: {}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
        assert_eq!(bench.outcome("run"), before, "{more}");
    }
    // How long it is and how often it is saved may change.
    let whole = bench.whole("--max-steps 40 --ckpt-every 20");
    let longer = bench.ends_like(&whole, "run", "--max-steps 40 --ckpt-every 7");
    assert!(longer.err.contains("resumed 20\n") && longer.err.contains("saved 28\n"), "{}", longer.err);
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
    let ran = bench.train("run", &format!("{more} --resume"));
    assert_eq!(ran.expect(1), "");
    assert!(ran.err.starts_with("safestep: ") && ran.err.contains("run/ckpt"), "{}", ran.err);
}

/// The newest one that is whole is taken; which one was not is said.
#[test]
fn a_broken_checkpoint_is_passed_over() {
    let (bench, more) = (Bench::new(), "--max-steps 30 --ckpt-every 10");
    let whole = bench.whole("--max-steps 40 --ckpt-every 10");
    bench.train("run", more).expect(0);
    let last = bench.steps("run").pop().unwrap();
    fs::remove_dir_all(bench.at("run/ckpt").join(&last)).unwrap();
    let ran = bench.ends_like(&whole, "run", "--max-steps 40 --ckpt-every 10");
    assert!(ran.err.contains("resumed 20\n"), "{}", ran.err);
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
    assert_eq!(super::names(&bench.at("taken")), ["note"]);
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
    let sha256: String = Sha256::digest(config).iter().map(|byte| format!("{byte:02x}")).collect();
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
