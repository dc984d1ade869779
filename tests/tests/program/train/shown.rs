//! What a trainer shows: a bar on a terminal that can draw one, plain lines everywhere else, no number that is none.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Bench, Ran, finish};
use crate::program::skipped;

/// The same command on a terminal of that kind; nothing where no terminal can be made.
fn on_a_terminal(command: &Command, kind: &str) -> Option<Ran> {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let line: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line.join(" "), "/dev/null"]);
    script.current_dir(command.get_current_dir().unwrap()).env("TERM", kind).stdin(Stdio::null());
    let there = Command::new("script").arg("--version").output().is_ok_and(|ran| ran.status.success());
    there.then(|| finish(&mut script))
}

#[test]
fn a_bar_where_one_can_be_drawn_and_lines_elsewhere() {
    let bench = Bench::new();
    for (kind, plain) in [("dumb", true), ("xterm-256color", false)] {
        let command = bench.command(kind, "--max-steps 30 --ckpt-every 10");
        let Some(ran) = on_a_terminal(&command, kind) else {
            skipped("a terminal: there is no script(1) to make one");
            return;
        };
        let said = ran.expect(0);
        for step in [10, 20, 30] {
            assert!(said.contains(&format!("saved {step}")), "{kind}: {said}");
            assert_eq!(said.contains(&format!("step {step}: loss ")), plain, "{kind}: {said}");
        }
        assert_eq!(said.contains("of 30 steps"), !plain, "{kind}: {said}");
        assert!(
            said.contains("finished 30, evaluation loss ") && (!plain || !said.contains('\u{1b}')),
            "{said}"
        );
    }
}

/// A run that saves once an hour says in the meantime that it lives.
#[test]
fn plain_lines_come_without_saves() {
    let bench = Bench::new();
    let said = bench.at("said");
    let mut command = bench.command("run", "--max-steps 1000000000 --ckpt-every 1000000000");
    let began = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(fs::File::create(&said).unwrap()).spawn().unwrap();
    while began.elapsed() < Duration::from_secs(60) && !fs::read_to_string(&said).unwrap().ends_with('\n') {
        assert_eq!(child.try_wait().unwrap(), None);
        thread::sleep(Duration::from_millis(20));
    }
    let took = began.elapsed();
    child.kill().unwrap();
    child.wait().unwrap();
    let said = fs::read_to_string(said).unwrap();
    assert!(
        said.starts_with("step ") && said.ends_with(" tokens/s\n") && said.lines().count() == 1,
        "{said}"
    );
    assert!(took >= Duration::from_secs(10), "{took:?}");
}

#[test]
fn no_steps_have_no_loss() {
    let bench = Bench::new();
    let ran = bench.train("run", "--max-steps 0 --ckpt-every 10");
    ran.expect(0);
    assert!(ran.err.starts_with("saved 0\nfinished 0, evaluation loss 3.4657\n"), "{}", ran.err);
}

#[test]
fn the_first_loss_that_is_no_number_is_told_of_once() {
    let bench = Bench::new();
    let ran = bench.train("run", "--max-steps 50 --ckpt-every 10 --optimizer sgd --lr 1e39");
    ran.expect(0);
    let told: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("safestep: ")).collect();
    assert!(matches!(told[..], [line] if line.starts_with("safestep: the loss of step ")), "{}", ran.err);
    assert!(ran.err.contains("finished 50, evaluation loss no number\n"), "{}", ran.err);
}
