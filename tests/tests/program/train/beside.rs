//! What stands beside the checkpoints when a run goes on: samples that a pivot took away stay away, the last word is never that
//! of a shorter run, the commit is that of the run, and what is wrong there and ends nothing is said.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::{Bench, collect, json};
use crate::program::{names, run_in};

/// A pivot was once undone by the next resume: it wrote the samples of the old step anew.
#[test]
fn a_pivot_is_not_undone_by_a_resume() {
    let bench = Bench::new();
    let more = |steps: u32| format!("--max-steps {steps} --ckpt-every 10");
    let pivot = || {
        let ran = run_in(bench.directory.path(), ["pivot", "run"]);
        ran.expect(0).lines().count()
    };
    let samples = bench.at("run/.samples.json");
    bench.train("run", &more(20)).expect(0);
    fs::write(bench.at("run/.state.json"), "{}").unwrap();
    assert_eq!(pivot(), 2);
    // Without a step to do, twice.
    for _ in 0..2 {
        bench.train("run", &format!("{} --resume", more(20))).expect(0);
        assert!(!samples.exists());
        assert_eq!(pivot(), 0);
    }
    // With new steps, up to a crash before the next save, and beyond it.
    bench.train("run", &format!("{} --resume --sigkill-after 25", more(40)));
    assert!(!samples.exists());
    bench.train("run", &format!("{} --resume --sigkill-after 35", more(40)));
    assert_eq!(json(&samples)["step"], 30);
    assert_eq!(pivot(), 1);
    let whole = bench.whole(&more(40));
    bench.ends_like(&whole, "run", &more(40));
    assert_eq!(json(&samples)["step"], 40);
    assert_eq!(pivot(), 1);
    assert_eq!(names(&bench.at("run/archive")), ["20", "35", "40"]);
}

/// Samples are durable before their step is: a crash in between leaves those of a step that is not there.
#[test]
fn samples_of_a_step_that_is_not_there_are_replaced() {
    let (bench, more) = (Bench::new(), "--max-steps 20 --ckpt-every 10");
    let whole = bench.whole(more);
    bench.train("run", more).expect(0);
    for (text, replaced) in
        [("{\"samples\":[],\"step\":30}", true), ("{\"step\":20}", false), ("mine", false)]
    {
        fs::write(bench.at("run/.samples.json"), text).unwrap();
        bench.train("run", &format!("{more} --resume")).expect(0);
        let now = fs::read_to_string(bench.at("run/.samples.json")).unwrap();
        assert_eq!(now, if replaced { whole.samples.as_str() } else { text });
    }
    // On the way to their step they stay: after a pivot, those of the step that is resumed are of the old policy.
    let (later, longer) = ("{\"samples\":[],\"step\":30}", "--max-steps 40 --ckpt-every 10 --resume");
    fs::write(bench.at("run/.samples.json"), later).unwrap();
    bench.train("run", &format!("{longer} --sigkill-after 25"));
    assert_eq!(fs::read_to_string(bench.at("run/.samples.json")).unwrap(), later);
}

#[test]
fn a_pivot_waits_for_no_trainer_and_goes_beside_none() {
    let bench = Bench::new();
    let endless = "--max-steps 100000000 --ckpt-every 20";
    let mut child = bench.command("run", endless).spawn().unwrap();
    let began = Instant::now();
    while !bench.at("run/ckpt/LATEST").exists() {
        assert!(began.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(1));
    }
    let ran = run_in(bench.directory.path(), ["pivot", "run"]);
    let second = bench.train("run", &format!("{endless} --resume"));
    child.kill().unwrap();
    let pid = child.id();
    drop(collect(child));
    let who =
        if Path::new("/proc/locks").exists() { format!("process {pid}") } else { "another process".into() };
    assert_eq!(ran.expect(3), "");
    assert_eq!(ran.err, format!("safestep: cannot pivot beside run/.loss.json: {who} is saving there\n"));
    assert_eq!(second.expect(3), "");
    let told = format!("safestep: cannot append to run/.loss.json: {who} is saving there\n");
    assert!(second.err.ends_with(&told), "{}", second.err);
    assert!(!bench.at("run/archive").exists() && bench.at("run/.samples.json").exists());
    assert_eq!(run_in(bench.directory.path(), ["pivot", "run"]).expect(0).lines().count(), 1);
}

#[test]
fn the_last_word_is_not_that_of_a_shorter_run() {
    let bench = Bench::new();
    let more = |steps: u32| format!("--max-steps {steps} --ckpt-every 10");
    let whole = bench.whole(&more(40));
    bench.train("run", &more(20)).expect(0);
    let last_word = bench.at("run/final.json");
    let before = fs::read(&last_word).unwrap();
    bench.train("run", &format!("{} --resume", more(20))).expect(0);
    assert_eq!(fs::read(&last_word).unwrap(), before);
    bench.train("run", &format!("{} --resume --sigkill-after 21", more(40)));
    assert!(!last_word.exists());
    bench.ends_like(&whole, "run", &more(40));
}

/// A run that was resumed elsewhere once named another commit in its checkpoints.
#[test]
fn the_commit_is_that_of_the_run() {
    let bench = Bench::new();
    let shas = ["0123456789abcdef0123456789abcdef01234567", "fedcba9876543210fedcba9876543210fedcba98"];
    let train = |steps: u32, sha: Option<&str>, more: &[&str]| {
        let (steps, mut command) = (steps.to_string(), crate::program::program());
        command.current_dir(bench.directory.path());
        command.args([
            "train",
            "bigram",
            "--data",
            "ids.bin",
            "--out",
            "run",
            "--batch",
            "4",
            "--seq-len",
            "8",
        ]);
        command.args(["--ckpt-every", "10", "--max-steps", &steps]).args(more);
        command.args(sha.iter().flat_map(|sha| ["--git-sha", sha]));
        crate::program::finish(&mut command).expect(0);
        let state = bench.at(&format!("run/ckpt/step-0000{steps}/trainer_state.json"));
        json(&state)["git_sha"].as_str().map(str::to_owned)
    };
    assert_eq!(train(10, Some(shas[0]), &[]).as_deref(), Some(shas[0]));
    // Inside of another repository, as far as git is there.
    let git = |words: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.current_dir(bench.directory.path())
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(words);
        let _ = git.output();
    };
    git(&["init", "--quiet"]);
    git(&["commit", "--quiet", "--allow-empty", "--message", "x"]);
    assert_eq!(train(20, None, &["--resume"]).as_deref(), Some(shas[0]));
    assert_eq!(train(30, Some(shas[1]), &["--resume"]).as_deref(), Some(shas[1]));
    assert_eq!(train(40, None, &["--resume"]).as_deref(), Some(shas[1]));
}

#[test]
fn a_bad_line_of_the_history_is_told_of_when_a_run_goes_on() {
    let bench = Bench::new();
    bench.train("run", "--max-steps 10 --ckpt-every 10").expect(0);
    let path = bench.at("run/.loss.json");
    let text = fs::read_to_string(&path).unwrap();
    let bad = text.replacen("\"step\":4", "\"step\":-4", 1);
    fs::write(&path, &bad).unwrap();
    let ran = bench.train("run", "--max-steps 20 --ckpt-every 10 --resume");
    ran.expect(0);
    let told = "safestep: cannot accept run/.loss.json: line 4: H2.value at byte ";
    assert!(ran.err.starts_with(told) && ran.err.contains("\nresumed 10\n"), "{}", ran.err);
    assert!(fs::read_to_string(&path).unwrap().starts_with(&bad));
    let ran = run_in(bench.directory.path(), ["history", "run", "--json"]);
    assert_eq!(ran.expect(1).lines().count(), 19);
}

#[test]
fn samples_that_cannot_be_kept_end_nothing() {
    let (bench, more) = (Bench::new(), "--max-steps 20 --ckpt-every 10");
    bench.train("run", "--max-steps 10 --ckpt-every 10").expect(0);
    fs::remove_file(bench.at("run/.samples.json")).unwrap();
    fs::create_dir(bench.at("run/.samples.json")).unwrap();
    let ran = bench.train("run", &format!("{more} --resume"));
    ran.expect(0);
    let told = "safestep: cannot write run/.samples.json: it is a directory, not a regular file\n";
    assert_eq!((ran.err.matches("safestep: ").count(), ran.err.matches(told).count()), (1, 1), "{}", ran.err);
    assert!(ran.err.contains("saved 20\n") && ran.err.contains("finished 20"), "{}", ran.err);
}
