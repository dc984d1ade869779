//! Tables of manifests: what is accepted, what is refused and where, and what differs.

extern crate std;
use super::*;
use crate::checkpoint::Sha256;
use std::format;
use std::string::{String, ToString as _};
use std::vec::Vec;

const SHA: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn entry(name: &str) -> String {
    format!(r#"{{"name":"{name}","sha256":"{SHA}","size":0}}"#)
}

fn manifest(files: &str) -> String {
    format!(r#"{{"files":[{files}],"step":5,"version":1}}"#)
}

#[test]
fn what_is_written_is_read() {
    let records = [
        FileRecord { name: "a\"\\\n\u{e9}", sha256: Sha256::of(b"1"), size: 1 },
        FileRecord { name: "config.json", sha256: Sha256::of(b""), size: 0 },
        FileRecord { name: "m", sha256: Sha256::of(b"2"), size: u64::MAX },
    ];
    for count in 0..=records.len() {
        let draft = ManifestDraft::of(u64::MAX, &records[..count]).unwrap();
        let mut text = Vec::new();
        let written: Result<(), ()> = draft.write(|piece| {
            text.extend_from_slice(piece);
            Ok(())
        });
        written.unwrap();
        let mut lent = [0; 1024];
        assert_eq!(draft.encode(&mut lent), Ok(&text[..]));
        assert_eq!(draft.encode(&mut lent[..text.len() - 1]), Err(ByteLen::new(text.len() as u64)));
        let read = Manifest::parse(&text).unwrap();
        assert_eq!((read.step(), read.len(), read.is_empty()), (u64::MAX, count as u64, count == 0));
        let listed: Vec<_> =
            read.files().map(|file| (file.name.to_string(), file.sha256, file.size)).collect();
        let expected: Vec<_> =
            records[..count].iter().map(|file| (file.name.to_string(), file.sha256, file.size)).collect();
        assert_eq!(listed, expected);
    }
}

#[test]
fn other_spellings_of_the_same_are_read() {
    let table = [
        format!(" {{ \"version\" : 1 , \"step\":5,\n\"files\" : [ {} ] }} \n", entry("a")),
        format!(r#"{{"\u0066iles":[{{"size":0,"name":"\u0061","sha256":"{SHA}"}}],"step":5,"version":1}}"#),
    ];
    for text in table {
        let manifest = Manifest::parse(text.as_bytes()).unwrap();
        assert!(manifest.files().eq([ListedFile {
            name: JsonStr::new(b"a"),
            sha256: Sha256::of(b""),
            size: 0
        }]));
    }
}

#[test]
fn what_is_refused() {
    let one = entry("a");
    let with = |from: &str, to: &str| manifest(&one.replacen(from, to, 1));
    let table: Vec<(String, &str)> = [
        (String::new(), "at byte 0: expected a JSON value, found the end"),
        ("[]".into(), "at byte 0: expected an object for the document, found an array"),
        ("{}".into(), "at byte 1: expected the key files, found the end of the object"),
        (manifest("") + "x", "at byte 33: expected only white space behind the document, found 'x'"),
        (manifest("") + "\0", "at byte 33: expected only white space behind the document, found '\\0'"),
        ("\u{feff}{}".into(), "at byte 0: expected a JSON value, found '\u{ef}'"),
        (manifest("").replace("step", "steps"), "at byte 12: expected only keys of the format"),
        (
            manifest("").replace("5,", "5,\"step\":5,"),
            "at byte 21: expected each key once, found one that stands at byte 12",
        ),
        (manifest("").replace(",\"version\":1", ""), "at byte 20: expected the key version"),
        (manifest("").replace(":1", ":2"), "at byte 31: expected version 1, found 2"),
        (
            manifest("").replace(":1", ":\"1\""),
            "expected an integer from 0 to 2^64 - 1 for version, found a string",
        ),
        (
            manifest("").replace(":5", ":-5"),
            "expected an integer from 0 to 2^64 - 1 for step, found a number",
        ),
        (manifest("").replace(":5", ":5.0"), "for step, found a number"),
        (manifest("").replace(":5", ":05"), "expected ',' or a closing bracket, found '5'"),
        (manifest("").replace(":5", ":18446744073709551616"), "for step, found a number"),
        (
            manifest("").replace("[]", "{}"),
            "at byte 9: expected an array of files for files, found an object",
        ),
        (
            manifest("1"),
            "at byte 10: expected an object with name, sha256 and size for a file, found an integer",
        ),
        (manifest("{}"), "at byte 11: expected the key name"),
        (manifest(&entry("")), "found an empty one"),
        (manifest(&entry(".")), "found one that means a directory"),
        (manifest(&entry("..")), "found one that means a directory"),
        (
            manifest(&entry("../x")),
            "at byte 18: expected the name of a file in the directory, found one with a slash",
        ),
        (manifest(&entry("a\\u002fb")), "found one with a slash"),
        (manifest(&entry("a\\u0000")), "found one with a NUL"),
        (manifest(&entry("MANIFEST.json")), "found that of the manifest"),
        (manifest(&entry("M\\u0041NIFEST.json")), "found that of the manifest"),
        (manifest(&[entry("b"), entry("a")].join(",")), "expected a name behind the one before it"),
        (manifest(&[entry("a"), entry("a")].join(",")), "expected a name behind the one before it"),
        (manifest(&[entry("a"), entry("\\u0061")].join(",")), "expected a name behind the one before it"),
        (with("e3b0", "E3b0"), "expected 64 lower-case hexadecimal digits for sha256, found another"),
        (with("e3b0", "e3b"), "for sha256, found another"),
        (with("e3b0", "e3b00"), "for sha256, found another"),
        (with("\"e3b0", "1,\"e"), "for sha256, found an integer"),
        (with(":0", ":0.5"), "for size, found a number"),
        (with("\"size\":0", "\"size\":0,\"mode\":0"), "expected only keys of the format"),
        (with("\"size\":0", "\"size\":0,\"size\":0"), "expected each key once"),
        (manifest(&(one.clone() + ",")), "expected a JSON value, found ']'"),
    ]
    .into();
    for (text, expected) in table {
        let error = Manifest::parse(text.as_bytes()).expect_err(&text);
        assert!(error.to_string().contains(expected), "{text}\n{error}\n{expected}");
    }
    let error = Manifest::parse(b"{\"files\xff").unwrap_err();
    assert_eq!(error.to_string(), "at byte 7: expected UTF-8, found byte 0xff");
    for len in 0..manifest(&one).len() {
        assert!(Manifest::parse(&manifest(&one).as_bytes()[..len]).is_err());
    }
}

#[test]
fn what_is_not_listed() {
    let record = |name| FileRecord { name, sha256: Sha256::of(b""), size: 0 };
    for name in ["", ".", "..", "a/b", "/", "a\0", "MANIFEST.json"] {
        assert!(matches!(ManifestDraft::of(1, &[record(name)]), Err(ManifestRefusal::Name { .. })), "{name}");
    }
    for names in [["b", "a"], ["a", "a"]] {
        let refused = ManifestDraft::of(1, &names.map(record)).map(drop);
        assert_eq!(refused, Err(ManifestRefusal::Order { name: "a" }));
    }
    assert!(ManifestDraft::of(1, &["...", "A", "MANIFEST.jso", "MANIFEST.json.x", "a"].map(record)).is_ok());
}

#[test]
fn every_difference_is_given() {
    let text = manifest(&[entry("a"), entry("b"), entry("\\u0063"), entry("d")].join(","));
    let manifest = Manifest::parse(text.as_bytes()).unwrap();
    let found = |name: &'static str, size, sha256| FoundFile { name: name.as_bytes(), size, sha256 };
    let shown = |files: &[FoundFile<'static>]| {
        let differences = manifest.compare(files.iter().copied());
        differences
            .map(|difference| match difference {
                Difference::Missing { name } => format!("-{name}"),
                Difference::Unlisted { name } => format!("+{}", String::from_utf8_lossy(name)),
                Difference::Size { name, expected, found } => format!("{name}:{expected}/{found}"),
                Difference::Sha256 { name, .. } => format!("#{name}"),
            })
            .collect::<Vec<_>>()
            .join(" ")
    };
    let (good, bad) = (Some(Sha256::of(b"")), Some(Sha256::of(b"x")));
    let table: [(&[FoundFile<'static>], &str); 6] = [
        (&[], "-a -b -c -d"),
        (&[found("a", 0, good), found("b", 0, None), found("c", 0, good), found("d", 0, good)], ""),
        (&[found("a", 0, bad), found("b", 1, bad), found("c", 0, good), found("d", 0, good)], "#a b:0/1"),
        (
            &[found("0", 9, None), found("b", 0, good), found("bb", 0, good), found("z", 0, good)],
            "+0 -a +bb -c -d +z",
        ),
        (&[found("d", 0, good)], "-a -b -c"),
        (&[found("e", 0, None), found("f", 0, None)], "-a -b -c -d +e +f"),
    ];
    for (files, expected) in table {
        assert_eq!(shown(files), expected);
    }
}
