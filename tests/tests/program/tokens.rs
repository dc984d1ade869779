//! `tokens`: shards are packed, shown, judged and read, and a run goes on from the cursor that was printed.
//!
//! What a script relies on is exact: the JSON lines of `windows`, the bytes that `pack` writes, the exit codes.

#[cfg(target_os = "linux")]
mod bar;
mod cursors;
mod signals;

use std::fs;
use std::path::{Path, PathBuf};

use safestep_tests::tokens::twin::shard_file;
use serde_json::{Value, json};

use super::{Ran, names, program, run_in};

/// A directory with the ten ids of the reference document's example.
fn ten() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ten.bin");
    fs::write(&path, shard_file(20_240_520, 1, 20, &(10..20).collect::<Vec<_>>())).unwrap();
    (directory, path)
}

fn windows(directory: &Path, more: &str) -> Ran {
    let fixed = ["tokens", "windows", "--seq-len", "3", "--json"];
    run_in(directory, fixed.into_iter().chain(more.split(' ')))
}

#[test]
fn windows_and_the_cursor_that_follows() {
    let (directory, _) = ten();
    // Seed 0 of sequence 54 draws the phases 1 and 0 of the worked example, or whichever seed does so first.
    let example = (0..100).find_map(|seed| {
        let ran = windows(directory.path(), &format!("ten.bin --batch 2 --batches 2 --seed {seed}"));
        let lines: Vec<&str> = ran.expect(0).lines().collect();
        let wanted = [
            r#"{"inputs":[[11,12,13],[14,15,16]],"targets":[[12,13,14],[15,16,17]]}"#,
            r#"{"inputs":[[10,11,12],[13,14,15]],"targets":[[11,12,13],[14,15,16]]}"#,
        ];
        (lines[..2] == wanted).then(|| lines[2].to_owned())
    });
    let cursor: Value = serde_json::from_str(&example.unwrap()).unwrap();
    assert_eq!((&cursor["cursor"]["shard"], &cursor["cursor"]["offset"]), (&json!(0), &json!(6)));
    assert_eq!(cursor["cursor"]["rng"]["inc"], "000000000000006d");

    // The default generator is that of seed 42 and sequence 54.
    let default = windows(directory.path(), "ten.bin --batch 2 --batches 3");
    let expected = "\
{\"inputs\":[[10,11,12],[13,14,15]],\"targets\":[[11,12,13],[14,15,16]]}
{\"inputs\":[[16,17,18],[10,11,12]],\"targets\":[[17,18,19],[11,12,13]]}
{\"inputs\":[[13,14,15],[16,17,18]],\"targets\":[[14,15,16],[17,18,19]]}
{\"cursor\":{\"shard\":0,\"offset\":9,\"rng\":{\"state\":\"8b33296d19bf5b4e\",\"inc\":\"000000000000006d\"}}}
";
    assert_eq!(default.expect(0), expected);
    let told = windows(directory.path(), "ten.bin --batch 2 --batches 3 --seed 42 --stream 54");
    assert_eq!(told.expect(0), expected);
    // Nothing read yet: the first phase is drawn.
    let none = windows(directory.path(), "ten.bin --batch 2 --batches 0");
    assert_eq!(
        none.expect(0),
        "{\"cursor\":{\"shard\":0,\"offset\":0,\"rng\":{\"state\":\"2b47fed88766bb05\",\"inc\":\"000000000000006d\"}}}\n"
    );
}

#[test]
fn a_run_goes_on_from_its_cursor() {
    let (directory, _) = ten();
    let at = directory.path();
    fs::write(at.join("more.bin"), shard_file(20_240_520, 2, 0, &(70_000..70_007).collect::<Vec<_>>()))
        .unwrap();
    let whole = windows(at, "ten.bin more.bin --batch 2 --batches 12");
    let whole: Vec<&str> = whole.expect(0).lines().collect();
    let (mut lines, mut cursor) = (Vec::new(), None::<String>);
    for _ in 0..12 {
        let mut command = program();
        command.current_dir(at).args([
            "tokens",
            "windows",
            "ten.bin",
            "more.bin",
            "--seq-len",
            "3",
            "--json",
        ]);
        command.args(["--batch", "2", "--batches", "1", "--fingerprint"]);
        if let Some(cursor) = &cursor {
            command.args(["--cursor", cursor]);
        }
        let ran = super::finish(&mut command);
        let mut said = ran.expect(0).lines().map(str::to_owned);
        lines.extend(said.next());
        cursor = said.next();
    }
    assert_eq!(lines, whole[..12]);
    let cursor = cursor.unwrap();
    let value: Value = serde_json::from_str(&cursor).unwrap();
    assert_eq!(value["cursor"]["shards"][1], json!({"name": "more.bin", "bytes": 1052, "ids": 7}));

    // Over other shards it is refused, and so is a place that is none.
    let args =
        ["tokens", "windows", "more.bin", "--seq-len", "3", "--batch", "2", "--batches", "1", "--cursor"];
    let ran = run_in(at, args.into_iter().chain([cursor.as_str()]));
    assert_eq!(ran.expect(1), "");
    assert!(
        ran.err.starts_with("safestep: cannot restore a cursor in more.bin: shard 0 was \"ten.bin\""),
        "{}",
        ran.err
    );
    let beyond = r#"{"shard":0,"offset":8,"rng":{"state":"0000000000000000","inc":"0000000000000001"}}"#;
    let ran = run_in(at, args.into_iter().chain([beyond]));
    assert_eq!(ran.expect(1), "");
    let complaint = "safestep: cannot restore a cursor in more.bin: expected an offset of at most 7, the ids of shard 0, found 8\n";
    assert_eq!(ran.err, complaint);
}

#[test]
fn names_in_a_cursor_do_not_drive_a_terminal() {
    let (directory, path) = ten();
    let name = "a\u{202e}\u{7f}\\\"é.bin";
    fs::rename(path, directory.path().join(name)).unwrap();
    let read = |cursor: &[&str]| {
        let fixed = ["tokens", "windows", name, "--seq-len", "3", "--batch", "1", "--batches", "1", "--json"];
        let ran = run_in(directory.path(), fixed.iter().chain(&["--fingerprint"]).chain(cursor));
        ran.expect(0).lines().last().unwrap().to_owned()
    };
    let cursor = read(&[]);
    assert!(cursor.contains(r#"{"name":"a\u202e\u007f\\\"é.bin","#), "{cursor}");
    read(&["--cursor", &cursor]);
}

#[test]
fn ranks_read_one_sequence() {
    let (directory, _) = ten();
    let rows = |text: &str| -> Vec<Value> {
        let lines = text.lines().filter(|line| line.starts_with("{\"inputs\""));
        lines.map(|line| serde_json::from_str::<Value>(line).unwrap()["inputs"].clone()).collect()
    };
    let whole = windows(directory.path(), "ten.bin --batch 6 --batches 4");
    let parts: Vec<Ran> = (0..3)
        .map(|rank| {
            windows(directory.path(), &format!("ten.bin --batch 2 --batches 4 --rank {rank} --ranks 3"))
        })
        .collect();
    for (step, whole) in rows(whole.expect(0)).iter().enumerate() {
        let parts: Vec<Value> =
            parts.iter().flat_map(|part| rows(part.expect(0))[step].as_array().unwrap().clone()).collect();
        assert_eq!(&Value::Array(parts), whole);
    }
    let last = |ran: &Ran| ran.out.lines().last().unwrap().to_owned();
    assert!(parts.iter().all(|part| last(part) == last(&whole)));
}

#[test]
fn windows_for_people() {
    let (directory, _) = ten();
    let ran = run_in(
        directory.path(),
        ["tokens", "windows", "ten.bin", "--seq-len", "3", "--batch", "2", "--batches", "1"],
    );
    let expected = "\
batch 1 (inputs | the last target)
  10 11 12 | 13
  13 14 15 | 16
cursor {\"shard\":0,\"offset\":6,\"rng\":{\"state\":\"2b47fed88766bb05\",\"inc\":\"000000000000006d\"}}
";
    assert_eq!(ran.expect(0), expected);
}

#[test]
fn inspect_and_check() {
    let (directory, _) = ten();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("bad_id.bin"), shard_file(20_240_801, 7, 15, &(10..20).collect::<Vec<_>>())).unwrap();
    fs::write(at("bad_magic.bin"), [0x93; 2000]).unwrap();
    fs::write(at("unsaid.bin"), shard_file(20_240_520, 1, 0, &[])).unwrap();
    fs::write(at("notes.txt"), "no shard").unwrap();
    let ran = run_in(directory.path(), ["tokens", "inspect", "--json", "."]);
    let found: Value = serde_json::from_str(ran.expect(1)).unwrap();
    let expected = json!({
        "shards": [
            {"path": "./bad_id.bin", "magic": 20240801, "version": 7, "width": 4, "ids": 10, "vocabulary": 15, "file_bytes": 1064},
            {"path": "./ten.bin", "magic": 20240520, "version": 1, "width": 2, "ids": 10, "vocabulary": 20, "file_bytes": 1044},
            {"path": "./unsaid.bin", "magic": 20240520, "version": 1, "width": 2, "ids": 0, "vocabulary": null, "file_bytes": 1024},
        ],
        "totals": {"shards": 3, "ids": 20, "bytes": 3132},
    });
    assert_eq!(found, expected);
    let magic = "./bad_magic.bin: T1.magic at byte 0: expected magic number 20240520 or 20240801, found -1819044973\n";
    assert_eq!(ran.err, magic);
    let table = run_in(directory.path(), ["tokens", "inspect", "ten.bin", "unsaid.bin"]);
    let expected = "\
shard          magic  version  ids  width  vocabulary   bytes
ten.bin     20240520        1   10      2          20  1.0 kB
unsaid.bin  20240520        1    0      2  not stated  1.0 kB
2 shards, 10 ids, 2.1 kB
";
    assert_eq!(table.expect(0), expected);

    let ran = run_in(directory.path(), ["tokens", "check", "."]);
    let expected = format!(
        "./bad_id.bin: T2.id at byte 1044: expected ids of at most 14, found 15 as id 5 of the shard\n{magic}\
         ./ten.bin: good, 10 ids, all below 20\n./unsaid.bin: good, 0 ids, of no stated vocabulary\n"
    );
    assert_eq!(ran.expect(1), expected);
    let ran = run_in(directory.path(), ["tokens", "check", "--json", "--quiet", "bad_id.bin", "ten.bin"]);
    let line: Value = serde_json::from_str(ran.expect(1)).unwrap();
    let message = "expected ids of at most 14, found 15 as id 5 of the shard";
    let expected = json!({
        "path": "bad_id.bin", "verdict": "bad", "rule": "T2.id", "offset": 1044, "index": 5, "message": message,
        "ids": null, "vocabulary": null,
    });
    assert_eq!(line, expected);
    let ran = run_in(directory.path(), ["tokens", "check", "--json", "ten.bin"]);
    let line: Value = serde_json::from_str(ran.expect(0)).unwrap();
    assert_eq!(
        (&line["verdict"], &line["ids"], &line["vocabulary"]),
        (&json!("good"), &json!(10), &json!(20))
    );
}

/// What llm.c writes states no vocabulary; then the caller can.
#[test]
fn a_vocabulary_that_no_header_states_can_be_given() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.bin"), shard_file(20_240_520, 1, 0, &[1, 2, 300, 3])).unwrap();
    let check = |more: &[&str]| run_in(directory.path(), [&["tokens", "check", "a.bin"], more].concat());
    check(&[]).expect(0);
    check(&["--vocab", "301"]).expect(0);
    assert!(check(&["--vocab", "300"]).expect(1).contains("T2.id at byte 1028"));
    // One that a header states is not talked away.
    fs::write(directory.path().join("a.bin"), shard_file(20_240_520, 1, 400, &[1, 2, 300, 3])).unwrap();
    check(&["--vocab", "400"]).expect(0);
    let refused = check(&["--vocab", "301"]);
    assert!(refused.err.contains("expected a vocabulary of 301, found one of 400"), "{}", refused.err);
    refused.expect(1);
    fs::write(directory.path().join("a.bin"), shard_file(20_240_520, 1, 0, &[1, 2, 300, 3])).unwrap();
    let windows =
        ["tokens", "windows", "a.bin", "--seq-len", "2", "--batch", "1", "--batches", "2", "--vocab"];
    run_in(directory.path(), [&windows[..], &["301"]].concat()).expect(0);
    run_in(directory.path(), [&windows[..], &["300"]].concat()).expect(1);
}

/// Of many bad ids in a file that is checked by many threads, the first is told.
#[test]
fn check_tells_the_first_bad_id() {
    let directory = tempfile::tempdir().unwrap();
    let mut ids = vec![1; 5_000_000];
    for place in [2_200_000, 2_200_001, 4_999_999] {
        ids[place] = 7;
    }
    fs::write(directory.path().join("a.bin"), shard_file(20_240_520, 1, 7, &ids)).unwrap();
    for _ in 0..5 {
        let ran = run_in(directory.path(), ["tokens", "check", "--json", "a.bin"]);
        let line: Value = serde_json::from_str(ran.expect(1)).unwrap();
        assert_eq!((&line["index"], &line["offset"]), (&json!(2_200_000), &json!(4_401_024)));
    }
}

#[test]
fn what_cannot_be_read_or_written() {
    let (directory, _) = ten();
    fs::create_dir(directory.path().join("empty")).unwrap();
    fs::write(directory.path().join("raw"), "abcd").unwrap();
    let some = "--seq-len 3 --batch 1 --batches 1";
    let table: &[(&str, i32, &str)] = &[
        ("inspect empty", 3, "safestep: cannot find a shard in empty: it holds no .bin file\n"),
        ("check empty", 3, "safestep: cannot find a shard in empty: it holds no .bin file\n"),
        (
            &format!("windows empty {some}"),
            3,
            "safestep: cannot find a shard in empty: it holds no .bin file\n",
        ),
        ("check none", 3, "safestep: cannot open none: No such file or directory (os error 2)\n"),
        (
            "inspect /dev/null",
            3,
            "safestep: cannot open /dev/null: it is a character device, not a regular file\n",
        ),
        (
            "pack none --out a --vocab 0",
            3,
            "safestep: cannot open none: No such file or directory (os error 2)\n",
        ),
        (
            "pack raw --out empty --vocab 0",
            3,
            "safestep: cannot write empty: it is a directory, not a regular file\n",
        ),
        (
            "pack raw --out a --vocab 98",
            1,
            "safestep: cannot pack raw: id 1, at byte 1, is 98: it is outside the vocabulary of 98\n",
        ),
        (
            "pack raw --out a --vocab 0 --from u32 --width 2",
            1,
            "safestep: cannot pack raw: id 0, at byte 0, is 1684234849: the largest id of 2 bytes is 65535\n",
        ),
        (
            "pack raw --out raw --vocab 0",
            1,
            "safestep: cannot pack raw: it would be replaced by the shard raw\n",
        ),
        (
            "pack ten.bin --out a --vocab 0",
            1,
            "safestep: cannot pack ten.bin: it is a shard, and its header would become ids: pack it from shard\n",
        ),
        (
            "pack raw --out a --vocab 0 --from shard",
            1,
            "raw: T1.short at byte 4: expected a header of 1024 bytes, found a file of 4\n",
        ),
        (
            "pack empty --out a --vocab 0 --from shard",
            3,
            "safestep: cannot find a shard in empty: it holds no .bin file\n",
        ),
        (
            "pack raw --out empty --vocab 0 --shard-tokens 2",
            3,
            "safestep: cannot write empty: it is a directory, not a regular file\n",
        ),
        (
            "windows ten.bin --seq-len 9 --batch 4194305 --batches 1 --rank 1 --ranks 2",
            1,
            "safestep: cannot take windows of ten.bin: expected 4194304 passes over the shards at most in a step, found up to 4194305 in the 4194305 windows of the other ranks\n",
        ),
        (
            "windows ten.bin --seq-len 10 --batch 1 --batches 1",
            1,
            "safestep: cannot take windows of ten.bin: expected 11 ids at least for a window, found 10 in shard 0\n",
        ),
        ("windows ten.bin --seq-len 9 --batch 4294967295 --batches 0", 0, ""),
    ];
    let before = names(directory.path());
    for (arguments, code, complaint) in table {
        let ran = run_in(directory.path(), ["tokens"].into_iter().chain(arguments.split(' ')));
        ran.expect(*code);
        assert_eq!(ran.err, *complaint, "{arguments}");
        assert_eq!(names(directory.path()), before, "{arguments}");
    }
}

#[test]
fn pack_writes_what_it_is_given() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let pack = |arguments: &str| {
        let ran = run_in(directory.path(), ["tokens", "pack"].into_iter().chain(arguments.split(' ')));
        ran.expect(0).to_owned()
    };
    fs::write(at("text"), "hé").unwrap();
    fs::write(at("ids"), "1 2\n70000").unwrap();
    assert_eq!(pack("text --out a.bin --vocab 256"), "a.bin: written, 1 shard, 3 ids, 1.0 kB\n");
    assert_eq!(fs::read(at("a.bin")).unwrap(), shard_file(20_240_520, 1, 256, &[104, 0xC3, 0xA9]));
    pack("ids ids --from text --out b.bin --vocab 70001");
    let ids = [1, 2, 70_000, 1, 2, 70_000];
    assert_eq!(fs::read(at("b.bin")).unwrap(), shard_file(20_240_520, 2, 70_001, &ids));
    pack("text --out c.bin --vocab 256 --width 4");
    assert_eq!(fs::read(at("c.bin")).unwrap(), shard_file(20_240_520, 2, 256, &[104, 0xC3, 0xA9]));
    let said = pack("ids ids --from text --out d.bin --vocab 0 --width 4 --shard-tokens 4");
    assert_eq!(said, "d_000000.bin to d_000001.bin: written, 2 shards, 6 ids, 2.1 kB\n");
    assert_eq!(fs::read(at("d_000001.bin")).unwrap(), shard_file(20_240_520, 2, 0, &ids[4..]));
    // Shards put together, of a directory, in name order; as narrow as they are.
    fs::remove_file(at("b.bin")).unwrap();
    fs::create_dir(at("set")).unwrap();
    for name in ["a.bin", "c.bin"] {
        fs::rename(at(name), at("set").join(name)).unwrap();
    }
    pack("set set/a.bin --from shard --out all.bin --vocab 0");
    let ids = [[104, 0xC3, 0xA9]; 3].concat();
    assert_eq!(fs::read(at("all.bin")).unwrap(), shard_file(20_240_520, 2, 0, &ids));
    pack("set/a.bin --from shard --out narrow.bin --vocab 0");
    assert_eq!(fs::read(at("narrow.bin")).unwrap(), shard_file(20_240_520, 1, 0, &ids[..3]));
}

/// Every vocabulary with every width and every source: what the width is when none is asked for, and whom an id that does not fit is
/// blamed on.
#[test]
fn vocabulary_width_and_source() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let write = |from: &str, ids: &[u32]| {
        let bytes = match from {
            "bytes" => ids.iter().map(|&id| u8::try_from(id).unwrap()).collect(),
            "u16" => ids.iter().flat_map(|&id| u16::try_from(id).unwrap().to_le_bytes()).collect(),
            "u32" => ids.iter().flat_map(|id| id.to_le_bytes()).collect(),
            "text" => ids.iter().map(|id| format!("{id} ")).collect::<String>().into_bytes(),
            "shard 2" => shard_file(20_240_520, 1, 0, ids),
            _ => shard_file(20_240_801, 7, 0, ids),
        };
        fs::write(at("in"), bytes).unwrap();
    };
    let sources = [
        ("bytes", 255),
        ("u16", 65_535),
        ("u32", u32::MAX),
        ("text", u32::MAX),
        ("shard 2", 65_535),
        ("shard 4", u32::MAX),
    ];
    let vocabularies = [0, 1, 2, 255, 256, 257, 65_535, 65_536, 65_537, 70_000, 2_147_483_647];
    let mut verdicts = std::collections::BTreeMap::new();
    for (source, holds) in sources {
        for vocabulary in vocabularies {
            for width in [None, Some(2), Some(4)] {
                let expected_width = width.unwrap_or(match (vocabulary, source) {
                    (0, "u32" | "text" | "shard 4") => 4,
                    (0, _) => 2,
                    (size, _) => {
                        if size <= 65_536 {
                            2
                        } else {
                            4
                        }
                    }
                });
                for id in [0, 1, 255, 256, 65_535, 65_536, 70_000, 2_147_483_647, u32::MAX] {
                    if id > holds {
                        continue;
                    }
                    write(source, &[0, id]);
                    let from = source.split(' ').next().unwrap();
                    let mut arguments =
                        format!("tokens pack in --out out --from {from} --vocab {vocabulary}");
                    if let Some(width) = width {
                        arguments += &format!(" --width {width}");
                    }
                    let ran = run_in(directory.path(), arguments.split(' '));
                    let widest = if expected_width == 2 { 65_535 } else { u32::MAX };
                    let blame = if vocabulary != 0 && id >= vocabulary {
                        Some(format!("is {id}: it is outside the vocabulary of {vocabulary}\n"))
                    } else if id > widest {
                        Some(format!("is {id}: the largest id of 2 bytes is 65535\n"))
                    } else {
                        None
                    };
                    let verdict =
                        (blame.is_some(), blame.as_ref().is_some_and(|blame| blame.contains("largest")));
                    *verdicts.entry(verdict).or_insert(0) += 1;
                    if let Some(blame) = blame {
                        ran.expect(1);
                        assert!(ran.err.ends_with(&blame), "{arguments}: {}", ran.err);
                        continue;
                    }
                    ran.expect(0);
                    let version = if expected_width == 2 { 1 } else { 2 };
                    let expected = shard_file(20_240_520, version, vocabulary as i32, &[0, id]);
                    assert!(fs::read(at("out")).unwrap() == expected, "{arguments}");
                }
            }
        }
    }
    assert!(verdicts.len() == 3 && verdicts.values().all(|&times| times > 20), "{verdicts:?}");
}
