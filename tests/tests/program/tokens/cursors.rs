//! The forms in which `windows` takes a cursor: as JSON, in the object it was printed in, from a file, from standard input.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use super::super::{Ran, collect, program};
use super::ten;

const BARE: &str = r#"{"shard":0,"offset":6,"rng":{"state":"2b47fed88766bb05","inc":"000000000000006d"}}"#;

/// The answer to a cursor, with this on standard input.
fn answer(directory: &std::path::Path, cursor: &str, input: &[u8]) -> Ran {
    let mut command = program();
    command.current_dir(directory);
    command.args([
        "tokens",
        "windows",
        "ten.bin",
        "--seq-len",
        "3",
        "--batch",
        "1",
        "--batches",
        "1",
        "--json",
    ]);
    command.args(["--cursor", cursor]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Who takes no input closes it.
    let _ = child.stdin.take().unwrap().write_all(input);
    collect(child)
}

#[test]
fn every_form_of_a_cursor() {
    let (directory, _) = ten();
    let at = directory.path();
    let expected = answer(at, BARE, b"");
    let expected = expected.expect(0);
    assert!(expected.starts_with(r#"{"inputs":[[16,17,18]]"#), "{expected}");
    let good = [
        BARE.to_owned(),
        format!("\n {BARE}\t\r\n"),
        format!(r#"{{"cursor":{BARE}}}"#),
        format!("\n{{ \"cursor\" :\n {BARE}\n}} \n"),
        format!(r#"{{"\u0063ursor":{BARE}}}"#),
        BARE.replace(':', " : "),
    ];
    for text in &good {
        assert_eq!(answer(at, text, b"").expect(0), expected, "{text}");
        fs::write(at.join("place é.json"), text).unwrap();
        assert_eq!(answer(at, "@place é.json", b"").expect(0), expected, "{text}");
        assert_eq!(answer(at, "-", text.as_bytes()).expect(0), expected, "{text}");
    }
    let unknown = "at byte 1 of the cursor: expected the keys of a cursor, found another one";
    let bad = [
        (format!(r#"{{"cursor":{BARE},"cursor":{BARE}}}"#), unknown),
        (format!(r#"{{"cursor":{BARE},"more":1}}"#), unknown),
        (format!(r#"{{"cursor":{{"cursor":{BARE}}}}}"#), unknown),
        (format!(r#"{{"Cursor":{BARE}}}"#), unknown),
        (format!("[{BARE}]"), "expected an object, found an array"),
        (format!(r#"{{"cursor":{BARE}"#), "found the end"),
        (format!(r#"{{"cursor":{BARE}}}}}"#), "expected nothing after the closing brace, found byte 0x7d"),
        (r#"{"cursor":7}"#.to_owned(), "expected an object, found an integer"),
        (r#"{"cursor":{}}"#.to_owned(), "expected the key \"shard\", found the end of the object"),
        ("{}".to_owned(), "expected the key \"shard\""),
        ("null".to_owned(), "expected an object"),
        (format!("{BARE}\n{BARE}"), "expected nothing after the closing brace"),
    ];
    for (text, says) in &bad {
        let ran = answer(at, text, b"");
        assert!(ran.err.contains(says) && ran.expect(2).is_empty(), "{text}: {}", ran.err);
        fs::write(at.join("place"), text).unwrap();
        for (form, name) in [("@place", "place"), ("-", "standard input")] {
            let ran = answer(at, form, text.as_bytes());
            assert_eq!(ran.expect(1), "");
            let begin = format!("safestep: cannot read a cursor from {name}: at byte ");
            assert!(ran.err.starts_with(&begin) && ran.err.contains(says), "{text}: {}", ran.err);
        }
    }
    let unreadable = [
        ("@none", 3, "safestep: cannot read a cursor from none: No such file or directory (os error 2)\n"),
        ("@.", 3, "safestep: cannot read a cursor from .: Is a directory (os error 21)\n"),
        ("@", 3, "safestep: cannot read a cursor from \"\": No such file or directory (os error 2)\n"),
        (
            "-",
            1,
            "safestep: cannot read a cursor from standard input: at byte 0 of the cursor: expected a JSON value, found the end\n",
        ),
    ];
    for (cursor, code, says) in unreadable {
        let ran = answer(at, cursor, b"");
        assert_eq!((ran.expect(code), ran.err.as_str()), ("", says));
    }
    fs::write(at.join("place"), b"{\"\xff\":1}").unwrap();
    let ran = answer(at, "@place", b"");
    assert!(ran.expect(1).is_empty() && ran.err.contains("expected UTF-8"), "{}", ran.err);
    // Endless input is no cursor, and is not read to its end.
    let ran = answer(at, "@/dev/zero", b"");
    assert!(
        ran.expect(3).is_empty() && ran.err.ends_with("it has more than 134217728 bytes\n"),
        "{}",
        ran.err
    );
}

/// What is printed is what is read, through a pipe as through a file; of more shards than an argument can tell.
#[test]
fn a_cursor_too_long_for_an_argument() {
    let (directory, path) = ten();
    let at = directory.path();
    let set = at.join("set");
    fs::create_dir(&set).unwrap();
    for number in 0..1500 {
        fs::hard_link(&path, set.join(format!("{}{number:06}.bin", "long".repeat(40)))).unwrap();
    }
    let windows = |more: &[&str]| {
        let fixed = ["tokens", "windows", "set", "--seq-len", "3", "--batch", "5", "--json", "--fingerprint"];
        super::run_in(at, fixed.iter().chain(more))
    };
    let whole = windows(&["--batches", "4"]);
    let first = windows(&["--batches", "2"]);
    let lines: Vec<&str> = first.expect(0).lines().collect();
    assert!(lines[2].len() > 200_000, "{}", lines[2].len());
    fs::write(at.join("place"), lines[2]).unwrap();
    let second = windows(&["--batches", "2", "--cursor", "@place"]);
    let together = [lines[0], lines[1]].into_iter().chain(second.expect(0).lines());
    assert!(together.eq(whole.expect(0).lines()));
}
