//! What the program says of itself, and of arguments that make no sense.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::run;

const COMMANDS: [&str; 16] = [
    "inspect",
    "show",
    "check",
    "rewrite",
    "convert",
    "tokens",
    "train",
    "snapshot",
    "history",
    "pivot",
    "steps",
    "verify",
    "prune",
    "demo",
    "completions",
    "man",
];

const GOOD_CURSOR: &str =
    r#"{"shard":0,"offset":0,"rng":{"state":"0000000000000000","inc":"0000000000000001"}}"#;

/// The subcommands of subcommands.
const NESTED: [(&str, &str); 9] = [
    ("tokens", "pack"),
    ("tokens", "inspect"),
    ("tokens", "check"),
    ("tokens", "windows"),
    ("train", "bigram"),
    ("snapshot", "inspect"),
    ("snapshot", "export"),
    ("snapshot", "import"),
    ("snapshot", "size"),
];

#[test]
fn short_help_is_one_screen_and_long_help_has_examples_and_exit_codes() {
    for command in [None].into_iter().chain(COMMANDS.map(Some)) {
        let short = run(command.into_iter().chain(["-h"]));
        let lines = short.expect(0).lines().count();
        // The list of all commands is longer than that of any one's options.
        assert!(lines <= if command.is_none() { 32 } else { 24 }, "{command:?}: {lines} lines");
        assert!(short.out.lines().all(|line| line.chars().count() <= 100), "{}", short.out);
        assert!(short.out.contains("Usage: safestep"), "{}", short.out);

        let long = run(command.into_iter().chain(["--help"]));
        assert!(long.expect(0).contains("Examples:\n  safestep "), "{}", long.out);
        assert!(long.out.lines().all(|line| line.chars().count() <= 100), "{}", long.out);
        let judges = !matches!(command, Some("demo" | "completions" | "man"));
        assert_eq!(long.out.contains("Exit codes:"), judges, "{}", long.out);
        assert_eq!((short.err.as_str(), long.err.as_str()), ("", ""));
    }
}

#[test]
fn the_subcommands_of_subcommands_have_help_of_the_same_kind() {
    for (above, command) in NESTED {
        let short = run([above, command, "-h"]);
        let lines: Vec<&str> = short.expect(0).lines().collect();
        assert!(
            lines.len() <= if above == "train" { 32 } else { 24 }
                && lines.iter().all(|line| line.chars().count() <= 100),
            "{}",
            short.out
        );
        assert!(short.out.contains(&format!("Usage: safestep {above} {command}")), "{}", short.out);
        let long = run([above, command, "--help"]);
        let example = format!("Examples:\n  safestep {above} {command} ");
        assert!(long.expect(0).contains(&example) && long.out.contains("Exit codes:"), "{}", long.out);
    }
}

#[test]
fn the_version_is_three_numbers() {
    for flag in ["-V", "--version"] {
        let ran = run([flag]);
        let version = ran.expect(0).strip_prefix("safestep ").and_then(|rest| rest.strip_suffix('\n'));
        let parts: Vec<_> = version.unwrap().split('.').collect();
        assert!(parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok()), "{ran:?}");
    }
}

#[test]
fn wrong_usage_is_2_with_silence_on_standard_output() {
    let table: &[(&[&str], &str)] = &[
        (&[], "Usage: safestep"),
        (&["judge"], "unrecognized subcommand 'judge'"),
        (&["inspect"], "<PATH>..."),
        (&["check"], "<PATH>..."),
        (&["rewrite", "in"], "<OUT>"),
        (&["rewrite", "in", ""], "a value is required for '<OUT>'"),
        (&["check", ""], "a value is required for '<PATH>...'"),
        (&["rewrite", "in", "out", "more"], "unexpected argument 'more'"),
        (&["check", "--fast", "x"], "unexpected argument '--fast'"),
        (&["inspect", "--sort", "colour", "x"], "invalid value 'colour'"),
        (&["inspect", "--json", "--sort", "name", "x"], "cannot be used with"),
        (&["inspect", "--color", "pink", "x"], "invalid value 'pink'"),
        (&["convert", "in", "out"], "<--to <DTYPE>|--tensor <GLOB=DTYPE>>"),
        (&["convert", "in", "out", "--to", "I32"], "invalid value 'I32' for '--to <DTYPE>'"),
        (&["convert", "in", "out", "--to", "b16"], "[possible values: F64, F32, BF16, F16, "),
        (&["convert", "in", "out", "--tensor", "BF16"], "expected GLOB=DTYPE, found no '='"),
        (&["convert", "in", "out", "--tensor", "w=I32"], "expected a floating dtype (F64, F32, BF16, F16, "),
        (&["convert", "in", "out", "--tensor", "w=half"], "found \"half\""),
        (&["convert", "in", "out", "--tensor", "[=F32"], "unclosed character class"),
        (&["completions", "dos"], "invalid value 'dos'"),
        (&["man", "judge"], "invalid value 'judge'"),
        (&["steps"], "<RUN>"),
        (&["verify"], "<PATH>..."),
        (&["prune", "run"], "<--keep-last <N>|--keep-every <K>>"),
        (&["prune", "run", "--keep-last", "0"], "invalid value '0'"),
        (&["prune", "run", "--keep-every", "0"], "invalid value '0'"),
        (&["prune", "run", "--keep-last", "-1"], "unexpected argument '-1'"),
        (&["tokens"], "Usage: safestep tokens"),
        (&["tokens", "judge"], "unrecognized subcommand 'judge'"),
        (&["tokens", "check"], "<SHARD>..."),
        (&["tokens", "pack", "in", "--out", "out"], "--vocab <N>"),
        (&["tokens", "pack", "in", "--vocab", "9"], "--out <SHARD>"),
        (&["tokens", "pack", "in", "--out", "out", "--vocab", "2147483648"], "invalid value '2147483648'"),
        (&["tokens", "pack", "in", "--out", "out", "--vocab", "-1"], "unexpected argument '-1'"),
        (&["tokens", "pack", "in", "--out", "out", "--vocab", "9", "--width", "3"], "invalid value '3'"),
        (&["tokens", "pack", "in", "--out", "out", "--vocab", "9", "--from", "u64"], "invalid value 'u64'"),
        (
            &["tokens", "pack", "in", "--out", "out", "--vocab", "9", "--shard-tokens", "0"],
            "invalid value '0'",
        ),
        (
            &["tokens", "windows", "x", "--seq-len", "0", "--batch", "1", "--batches", "1"],
            "invalid value '0'",
        ),
        (
            &["tokens", "windows", "x", "--seq-len", "1", "--batch", "0", "--batches", "1"],
            "invalid value '0'",
        ),
        (&["tokens", "windows", "x", "--seq-len", "1", "--batch", "1"], "--batches <N>"),
        (
            &["tokens", "windows", "x", "--seq-len", "1", "--batch", "1", "--batches", "1", "--ranks", "2"],
            "--rank <r>",
        ),
        (
            &["tokens", "windows", "x", "--seq-len", "1", "--batch", "1", "--batches", "1", "--rank", "0"],
            "--ranks <R>",
        ),
        (
            &[
                "tokens",
                "windows",
                "x",
                "--seq-len",
                "1",
                "--batch",
                "1",
                "--batches",
                "1",
                "--rank",
                "2",
                "--ranks",
                "2",
            ],
            "expected a rank below 2, found 2",
        ),
        (
            &["tokens", "windows", "x", "--seq-len", "1", "--batch", "1", "--batches", "1", "--cursor", "{}"],
            "expected the key \"shard\"",
        ),
        (
            &[
                "tokens",
                "windows",
                "x",
                "--seq-len",
                "1",
                "--batch",
                "1",
                "--batches",
                "1",
                "--cursor",
                GOOD_CURSOR,
                "--seed",
                "1",
            ],
            "cannot be used with",
        ),
        (&["snapshot", "export", "run"], "--out <FILE>"),
        (&["snapshot", "import", "s.bin", "--out", "run"], "--params <FILE>"),
        (&["check", "--\u{1b}[2J\u{9b}31m", "x"], "unexpected argument '--\\u{9b}31m'"),
    ];
    for (arguments, complaint) in table {
        let ran = run(*arguments);
        assert_eq!(ran.expect(2), "", "{arguments:?}");
        assert!(ran.err.contains(complaint), "{arguments:?}: {}", ran.err);
        assert!(!ran.err.contains(['\u{1b}', '\u{9b}']), "{:?}", ran.err);
    }
}

/// What surprises somebody once should have been said before.
#[test]
fn long_help_says_what_might_surprise() {
    let table = [
        ("rewrite", "in place, too, a second copy of the file"),
        ("rewrite", "Other hard links to an old OUT keep the old content"),
        ("check", "links to directories are not"),
        ("inspect", "A directory that holds none counts as a file that could not be read (exit code 3)"),
    ];
    for (command, words) in table {
        let ran = run([command, "--help"]);
        let text = ran.expect(0).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(words), "{command}: {words}: {text}");
    }
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ran = run(["completions", shell]);
        let script = ran.expect(0);
        let words = ["recursive", "quiet", "filter", "seq-len", "shard-tokens"];
        for word in COMMANDS.iter().chain(NESTED.iter().map(|(_, command)| command)).chain(&words) {
            assert!(script.contains(word), "{shell}: {word}");
        }
        if shell == "bash"
            && let Ok(mut bash) = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn()
        {
            bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
            assert!(bash.wait().unwrap().success());
        }
    }
}

#[test]
fn manual_pages() {
    assert!(run(["man"]).expect(0).contains(".TH safestep 1"));
    let nested = NESTED.map(|(above, command)| format!("{above}-{command}"));
    for command in COMMANDS.into_iter().chain(nested.iter().map(String::as_str)) {
        let ran = run(["man", command]);
        let page = ran.expect(0);
        assert!(
            page.contains(&format!(".TH safestep-{command} 1")) && page.contains(".SH EXAMPLES"),
            "{page}"
        );
    }
}
