//! Every input that a fuzzer was started from or crashed on, once more: `fixtures/fuzz/<target>/`.
//!
//! A crash that was mended stays here, under a name that says what it was.

use safestep_tests::cases::fixtures;
use safestep_tests::oracle;

fn replay(target: &str, oracle: impl Fn(&[u8])) {
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
    replay("header", |input| oracle::over_recipe(oracle::header, input));
}

#[test]
fn kept_inputs_of_index() {
    replay("index", |input| oracle::over_recipe(oracle::index, input));
}

#[test]
fn kept_inputs_of_rewrite() {
    replay("rewrite", |input| oracle::over_recipe(oracle::rewrite, input));
}

/// Bytes of tensors and values; no recipes.
#[test]
fn kept_inputs_of_dtype() {
    replay("dtype", oracle::dtype);
}

#[test]
fn kept_inputs_of_a_run() {
    for target in ["snapshot", "history"] {
        replay(target, oracle::run::snapshot);
        replay(target, oracle::run::history);
    }
}

/// An input for one target is an input for each.
#[test]
fn kept_inputs_of_one_target_for_the_others() {
    for target in ["header", "index", "rewrite"] {
        for oracle in [oracle::header, oracle::index, oracle::rewrite] {
            replay(target, |input| oracle::over_recipe(oracle, input));
        }
    }
}

/// Documents are not files of tensors: their inputs are the text itself.
#[test]
fn kept_inputs_of_documents() {
    for target in ["manifest", "trainer_state"] {
        let inputs = std::fs::read_dir(fixtures().join("fuzz").join(target)).unwrap();
        let mut count = 0;
        for input in inputs {
            let path = input.unwrap().path();
            println!("{}", path.display());
            let text = std::fs::read(path).unwrap();
            oracle::documents::manifest(&text);
            oracle::documents::trainer_state(&text);
            count += 1;
        }
        assert!(count > 3, "no inputs for {target}");
    }
}
