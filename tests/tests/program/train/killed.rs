//! SIGKILL: after a step of our choice, and from outside at any moment.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::thread;
use std::time::{Duration, Instant};

use safestep_tests::tokens::twin::Generator;

use super::{Bench, Outcome, collect};
use crate::program::names;

/// Begins a run, kills it after each of these steps in turn, and goes on to the end.
fn survives(bench: &Bench, whole: &Outcome, more: &str, kills: &[u64]) {
    bench.remove("run");
    let mut resume = "";
    for step in kills {
        let ran = bench.train("run", &format!("{more} --sigkill-after {step} {resume}"));
        assert_eq!(ran.status.signal(), Some(9), "{more} {kills:?}: {ran:?}");
        resume = "--resume";
    }
    bench.ends_like(whole, "run", more);
}

#[test]
fn the_milestone() {
    for more in ["", "--optimizer sgd", "--method counts"] {
        let (bench, more) = (Bench::new(), format!("--max-steps 100 --ckpt-every 50 {more}"));
        let whole = bench.whole(&more);
        assert!(whole.last_word.contains("\"steps\":100"), "{}", whole.last_word);
        survives(&bench, &whole, &more, &[60]);
        survives(&bench, &whole, &more, &[60, 60]);

        bench.remove("run");
        let killed = bench.train("run", &format!("{more} --sigkill-after 60"));
        assert!(killed.err.lines().any(|line| line == "saved 50"), "{}", killed.err);
        let resumed = bench.ends_like(&whole, "run", &more);
        assert!(resumed.err.starts_with("resumed 50\n"), "{}", resumed.err);
    }
}

fn twenty_random_steps(more: &str, seed: u64) {
    const EVERY: u64 = 25;
    let (bench, more) = (Bench::new(), format!("--max-steps 100 --ckpt-every {EVERY} {more}"));
    let whole = bench.whole(&more);
    let mut random = Generator::seed(seed, 54);
    for _ in 0..20 {
        let first = 1 + random.below(100) as u64;
        // The step after a kill is done again, unless it was saved before the kill.
        let saved = (first - 1) / EVERY * EVERY;
        let second = saved + 1 + random.below(u128::from(100 - saved)) as u64;
        survives(&bench, &whole, &more, &[first, second]);
    }
}

#[test]
fn at_twenty_random_steps_twice_in_a_row_under_adamw() {
    twenty_random_steps("--optimizer adamw", 1);
}

#[test]
fn at_twenty_random_steps_twice_in_a_row_under_sgd() {
    twenty_random_steps("--optimizer sgd", 2);
}

/// Where a kill has struck, by what it has left.
fn fell_into_a_save(bench: &Bench) -> bool {
    let root = bench.at("run/ckpt");
    if !root.exists() {
        return false;
    }
    let names: Vec<String> = names(&root).into_iter().map(|name| name.into_string().unwrap()).collect();
    // A directory or pointer in the making, or a step that was not declared done.
    let latest = fs::read_to_string(root.join("LATEST")).unwrap_or_default();
    let steps = names.iter().filter(|name| name.starts_with("step-"));
    names.iter().any(|name| name.ends_with(".tmp")) || steps.max().is_some_and(|step| *step > latest)
}

/// Each is killed at some moment of its life: while it starts, steps, saves or ends. Luck has to strike often enough.
#[test]
fn from_outside_at_random_moments() {
    const KILLS: u32 = 24;
    const IN_SAVES: u32 = 5;
    const CHILDREN_MAX: u32 = 400;
    let (bench, more) = (Bench::new(), "--max-steps 60 --ckpt-every 2");
    let began = Instant::now();
    let whole = bench.whole(more);
    let life = began.elapsed().as_micros();
    let mut random = Generator::seed(3, 54);
    let (mut children, mut kills, mut in_saves) = (0, 0, 0);
    while kills < KILLS || in_saves < IN_SAVES {
        bench.remove("run");
        for _ in 0..4 {
            let mut child = bench.command("run", &format!("{more} --resume")).spawn().unwrap();
            thread::sleep(Duration::from_micros(random.below(life.min(500_000)) as u64));
            child.kill().unwrap();
            let ran = collect(child);
            let killed = ran.status.signal() == Some(9);
            assert!(killed || ran.status.success(), "{ran:?}");
            children += 1;
            kills += u32::from(killed);
            in_saves += u32::from(killed && fell_into_a_save(&bench));
        }
        bench.ends_like(&whole, "run", more);
        assert!(children < CHILDREN_MAX, "{kills} kills, {in_saves} in saves");
    }
    println!("{kills} kills of {children} trainers, {in_saves} in saves");
}
