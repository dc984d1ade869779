//! Every input that a fuzzer was started from or crashed on, once more: `fixtures/fuzz/<target>/`.
//!
//! A crash that was mended stays here, under a name that says what it was.

use safestep_tests::cases::fixtures;
use safestep_tests::oracle;

fn replay(target: &str, oracle: fn(&[u8], u64)) {
    replay_bytes(target, |input| oracle::over_recipe(oracle, input));
}

/// The same for targets whose input is a file as it stands.
fn replay_bytes(target: &str, oracle: impl Fn(&[u8])) {
    let mut inputs = 0;
    for input in std::fs::read_dir(fixtures().join("fuzz").join(target)).unwrap() {
        let path = input.unwrap().path();
        println!("{}", path.display());
        oracle(&std::fs::read(&path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "no inputs for {target}");
}

#[test]
fn kept_inputs_of_header() {
    replay("header", oracle::header);
}

#[test]
fn kept_inputs_of_index() {
    replay("index", oracle::index);
}

#[test]
fn kept_inputs_of_rewrite() {
    replay("rewrite", oracle::rewrite);
}

#[test]
fn kept_inputs_of_a_run() {
    for target in ["snapshot", "history"] {
        replay_bytes(target, oracle::run::snapshot);
        replay_bytes(target, oracle::run::history);
    }
}

/// An input for one target is an input for each.
#[test]
fn kept_inputs_of_one_target_for_the_others() {
    for target in ["header", "index", "rewrite"] {
        for oracle in [oracle::header, oracle::index, oracle::rewrite] {
            replay(target, oracle);
        }
    }
}
