//! `snapshot`, `history` and `pivot`: the files beside a run, as people and programs are shown them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{names, run, run_in};

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A run that was killed after step 60 and resumed from 50.
fn resumed_run(directory: &Path, name: &str) {
    let mut text = String::new();
    let mut put = |steps: std::ops::RangeInclusive<u32>| {
        for step in steps {
            text += &format!("{{\"loss\": {}.5, \"step\": {step}, \"note\": \"\u{9b}31m\"}}\n", 200 - step);
        }
    };
    put(1..=60);
    text += "{\"resume\":50}\n";
    let mut put = |steps: std::ops::RangeInclusive<u32>| {
        for step in steps {
            text += &format!("{{\"loss\":{}.25,\"step\":{step}}}\n", 200 - step);
        }
    };
    put(51..=99);
    text += "{\"loss\":NaN,\"step\":100}\n";
    fs::write(directory.join(name), text).unwrap();
}

#[test]
fn sizes_of_snapshots() {
    let ran = run(["snapshot", "size", "--params", "12.8M"]);
    let said = ran.expect(0);
    assert!(
        said.starts_with("12.8M parameters: 8 + 12 x 12800000 = 153,600,008 bytes, 153.6 MB or 146.48 MiB\n"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 6);
    let ran = run(["snapshot", "size", "--params", "120M"]);
    let expected = "120M parameters: 8 + 12 x 120000000 = 1,440,000,008 bytes, 1.44 GB or 1.34 GiB\n";
    assert!(ran.expect(0).starts_with(expected), "{}", ran.out);
    let ran = run(["snapshot", "size", "--params", "120M", "--json"]);
    let expected =
        json!({"parameters": 120_000_000, "bytes": 1_440_000_008_u64, "region_bytes": 480_000_000});
    assert_eq!(json_lines(ran.expect(0)), [expected]);
    for (number, complaint) in [
        ("2147483648", "a snapshot holds at most 2147483647 parameters"),
        ("1.5", "expected a whole number such as 12800000 or 12.8M"),
        ("many", "expected a whole number"),
        ("-1", "unexpected argument '-1'"),
        ("", "expected a whole number"),
    ] {
        let ran = run(["snapshot", "size", "--params", number]);
        assert!(ran.expect(2).is_empty() && ran.err.contains(complaint), "{}", ran.err);
    }
    assert!(run(["snapshot"]).expect(2).is_empty());
}

#[test]
fn snapshots_are_inspected_without_being_read() {
    let directory = tempfile::tempdir().unwrap();
    let head = |step: i32, count: i32| [step.to_le_bytes(), count.to_le_bytes()].concat();
    let path = directory.path().join("step_112700.bin");
    fs::write(&path, head(112_700, 12_800_000)).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(153_600_008).unwrap();
    let ran = run_in(directory.path(), ["snapshot", "inspect", "step_112700.bin"]);
    let said = ran.expect(0);
    assert!(said.starts_with("step_112700.bin: step 112,700, 12.8 million parameters, 153.6 MB\n"), "{said}");
    assert!(said.contains("  v        12,800,000  51.2 MB  102,400,008\n"), "{said}");
    let ran = run_in(directory.path(), ["snapshot", "inspect", "--json", "step_112700.bin"]);
    let region = |name: &str, begin: u64| json!({"name": name, "begin": begin, "end": begin + 51_200_000});
    let regions = [region("weights", 8), region("m", 51_200_008), region("v", 102_400_008)];
    let expected = json!({"path": "step_112700.bin", "step": 112_700, "parameters": 12_800_000, "bytes": 153_600_008, "regions": regions});
    assert_eq!(json_lines(ran.expect(0)), [expected]);

    fs::write(directory.path().join("bad"), head(1, -1)).unwrap();
    let ran = run_in(directory.path(), ["snapshot", "inspect", "bad"]);
    assert!(ran.expect(1).is_empty());
    assert_eq!(
        ran.err,
        "safestep: cannot accept bad: S2.count at byte 4: expected a parameter count from 0 on, found -1\n"
    );
    assert!(run(["snapshot", "inspect", "none"]).expect(3).is_empty());
}

#[test]
fn a_snapshot_becomes_a_checkpoint_and_the_same_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let bits = [0x7F80_0001_u32, 0x8000_0000, 1, 0xFFC0_1234, 2, 3, 4, 5, 0xFF80_0000];
    let snapshot: Vec<u8> = [50, 3].into_iter().chain(bits).flat_map(u32::to_le_bytes).collect();
    fs::write(at("s.bin"), &snapshot).unwrap();
    fs::write(at("order.json"), r#"[{"name":"b","shape":[2]},{"name":"a","shape":[]}]"#).unwrap();
    let go = |arguments: &str| run_in(directory.path(), arguments.split(' '));
    let ran = go("snapshot import s.bin --params order.json --out run");
    let said = ran.expect(0);
    assert_eq!(
        ran.err,
        "a snapshot has no cursor and no config: 'train --resume' refuses what was made of it\n"
    );
    assert!(said.starts_with("run/ckpt/step-000050: written, step 50, 3 parameters, "), "{said}");
    assert!(said.ends_with(", from s.bin\n"), "{said}");
    go("snapshot import s.bin --params order.json --out run").expect(2);

    for from in ["run", "run/ckpt", "run/ckpt/step-000050"] {
        let ran = go(&format!("snapshot export {from} --out t.bin --order order.json"));
        assert_eq!(ran.expect(0), "t.bin: written, step 50, 3 parameters, 44 B, from run/ckpt/step-000050\n");
        assert_eq!(fs::read(at("t.bin")).unwrap(), snapshot);
    }
    // By default by name, and said so that it can be read again.
    let ran = go("snapshot export run --out t.bin --json");
    let order = json!([{"name": "a", "shape": []}, {"name": "b", "shape": [2]}]);
    let expected = json!({"path": "t.bin", "checkpoint": "run/ckpt/step-000050", "step": 50, "parameters": 3, "bytes": 44, "order": order});
    assert_eq!(json_lines(ran.expect(0)), [expected]);
    fs::write(at("by-name.json"), order.to_string()).unwrap();
    let ran = go("snapshot import t.bin --params by-name.json --out other --json");
    assert_eq!(json_lines(ran.expect(0))[0]["checkpoint"], "other/ckpt/step-000050");
    for file in ["model.safetensors", "optimizer.safetensors", "MANIFEST.json"] {
        let read = |run: &str| fs::read(at(run).join("ckpt/step-000050").join(file)).unwrap();
        assert_eq!(read("run"), read("other"), "{file}");
    }

    fs::write(at("short.json"), r#"[{"name":"b","shape":[2]}]"#).unwrap();
    fs::write(at("odd.json"), r#"[{"name":"b","shape":2}]"#).unwrap();
    for (arguments, code, complaint) in [
        (
            "import s.bin --params short.json --out new",
            1,
            "expected 2 numbers in each region up to \"b\", found 3",
        ),
        (
            "import s.bin --params odd.json --out new",
            2,
            "expected a JSON list of {\"name\",\"shape\"} in odd.json",
        ),
        ("import s.bin --params none.json --out new", 3, "cannot read none.json"),
        ("import order.json --params order.json --out new", 1, "S3.length"),
        ("export run --order short.json --out new", 1, "\"a\": expected no array without a place"),
        ("export none --out new", 3, "none"),
        ("export run/ckpt/step-000051 --out new", 3, "step-000051"),
    ] {
        let ran = go(&format!("snapshot {arguments}"));
        assert!(ran.expect(code).is_empty() && ran.err.contains(complaint), "{arguments}: {}", ran.err);
        assert!(!at("new").exists());
    }
}

#[test]
fn the_history_is_the_canonical_one() {
    let directory = tempfile::tempdir().unwrap();
    resumed_run(directory.path(), ".loss.json");
    let ran = run_in(directory.path(), ["history", "."]);
    let said = ran.expect(0);
    assert!(
        said.starts_with("./.loss.json: 100 entries, steps 1 to 100 (10 superseded, 1 resumed)\n"),
        "{said}"
    );
    assert!(said.contains("  loss  first 199.5000, last NaN, least 101.2500 at step 99\n"), "{said}");
    assert!(said.contains("  note  1 loss not finite, left out of the curve\n"), "{said}");
    assert!(said.lines().count() > 15 && said.contains('\u{2800}'), "{said}");
    assert!(said.ends_with("100\n") && !said.contains(['\u{1b}', '\u{9b}']), "{said}");

    let ran = run_in(directory.path(), ["history", "--json", "."]);
    assert!(!ran.out.contains('\u{9b}'));
    let entries = json_lines(ran.expect(0));
    assert!(entries.iter().map(|entry| entry["step"].as_u64().unwrap()).eq(1..=100));
    assert_eq!(entries[50], json!({"loss": 149.25, "step": 51}));
    assert_eq!(entries[49], json!({"loss": 150.5, "step": 50, "note": "\u{9b}31m"}));
    assert_eq!(entries[99], json!({"loss": "NaN", "step": 100}));
    assert_eq!(names(directory.path()), [".loss.json"]);
}

#[test]
fn a_drawing_is_committed() {
    let directory = tempfile::tempdir().unwrap();
    resumed_run(directory.path(), "one.loss.json");
    fs::write(directory.path().join("loss.svg"), "old").unwrap();
    let ran = run_in(directory.path(), ["history", ".", "--plot", "loss.svg"]);
    assert!(ran.expect(0).ends_with("loss.svg: written\n"), "{ran:?}");
    let drawing = fs::read_to_string(directory.path().join("loss.svg")).unwrap();
    assert!(drawing.starts_with("<svg") && drawing.contains("polyline") && drawing.contains("one.loss.json"));
    assert_eq!(names(directory.path()), ["loss.svg", "one.loss.json"]);
    let ran = run_in(directory.path(), ["history", ".", "--json", "--plot", "none/loss.svg"]);
    ran.expect(3);
    assert!(ran.err.contains("none/loss.svg"), "{}", ran.err);
}

#[test]
fn which_history_is_meant() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("a.loss.json"), "[{\"loss\":1,\"step\":1}]").unwrap();
    let steps = |arguments: &[&str], code| {
        let ran = run_in(directory.path(), ["history", "--json"].iter().chain(arguments));
        let steps =
            json_lines(ran.expect(code)).iter().map(|entry| entry["step"].as_u64().unwrap()).collect();
        (steps, ran.err)
    };
    let quiet = |steps: &[u64]| (steps.to_vec(), String::new());
    assert_eq!(steps(&["."], 0), quiet(&[1]));
    assert_eq!(steps(&["--stem", "a", "."], 0), quiet(&[1]));
    assert_eq!(steps(&["a.loss.json"], 0), quiet(&[1]));
    fs::write(at("b.loss.json"), "{\"loss\":1,\"step\":2}\n{\"loss\":1,\"st").unwrap();
    assert_eq!(
        steps(&["."], 3).1,
        "safestep: cannot open ./.loss.json: No such file or directory (os error 2)\n"
    );
    assert_eq!(
        steps(&["--stem", "b", "."], 0),
        (vec![2], "./b.loss.json: the last line, from byte 20 on, is cut off and left out\n".into())
    );
    fs::write(at(".loss.json"), "{\"loss\":1,\"step\":3}\n{\"loss\":1}\n").unwrap();
    assert_eq!(
        steps(&["."], 1),
        (
            vec![3],
            "safestep: cannot accept ./.loss.json: line 2: H2.missing at byte 30: expected step, found the end of the entry\n"
                .into()
        )
    );
    fs::write(at(".loss.json"), "").unwrap();
    assert_eq!(run_in(directory.path(), ["history", "."]).expect(0), "./.loss.json: no entries\n");
    steps(&["--stem", "x/y", "."], 3);
}

/// What breaks a rule is named, line by line, and what does not is shown.
#[test]
fn a_bad_line_hides_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(".loss.json");
    let entry = |step: u32| format!("{{\"loss\":0.5,\"step\":{step}}}");
    let [one, two, three] = [1, 2, 3].map(entry);
    let long = "x".repeat(3 << 20);
    let many = format!("{one}\n{}{two}\n", "bad\n".repeat(150));
    let table: &[(String, &[u64], &[&str])] = &[
        (format!("{one}\n{{\"loss\":1,\"st{two}\n{three}\n"), &[1, 3], &["line 2: H1.json"]),
        (format!("null\n{one}\nnull\n\n{two}\n{{}}\n"), &[1, 2], &["line 1: H1", "line 3: H1", "line 6: H2"]),
        (format!("{one}\n{{\"resume\":-1}}\n{one}\n{two}\n"), &[1, 2], &["line 2: H2.value"]),
        (format!("{one}\n{long}\n{two}\n"), &[1, 2], &["line 2: H1.long"]),
        (format!("{one}\n{two}\n{long}"), &[1, 2], &["line 3: H1.long"]),
        (format!("[{one},null,{two}]"), &[1, 2], &["line 2: H1.object"]),
        (format!("[{one},{two}"), &[1], &["it begins as a JSON array and does not end as one"]),
        (format!("[{one},\"{long}\",{two}]"), &[1], &["line 2: H1.long", "what follows it is not read"]),
        ("[".into(), &[], &["does not end as one"]),
    ];
    for (text, expected, complaints) in table {
        fs::write(&path, text).unwrap();
        let ran = run_in(directory.path(), ["history", "--json", "."]);
        let entries = json_lines(ran.expect(1));
        let steps = entries.iter().map(|entry| entry["step"].as_u64().unwrap());
        assert_eq!(steps.collect::<Vec<_>>(), *expected, "{complaints:?}");
        let said: Vec<&str> = ran.err.lines().collect();
        assert_eq!(said.len(), complaints.len(), "{}", ran.err);
        for (said, complaint) in said.iter().zip(*complaints) {
            let begins = said.starts_with("safestep: cannot accept ./.loss.json: ");
            assert!(begins && said.contains(complaint), "{complaint}: {said}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), *text);
    }
    fs::write(&path, many).unwrap();
    let ran = run_in(directory.path(), ["history", "."]);
    let said = ran.expect(1);
    assert!(said.starts_with("./.loss.json: 2 entries, steps 1 to 2 (150 bad)\n"), "{said}");
    assert!(ran.err.lines().count() == 101 && ran.err.ends_with("./.loss.json: 50 more bad lines\n"));
}

#[test]
fn too_few_losses_make_no_curve() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(".loss.json");
    for (losses, note) in [
        (&["1"][..], "  note  1 finite loss makes no curve\n"),
        (&["NaN", "1", "Infinity"], "  note  1 finite loss makes no curve\n"),
        (&["NaN", "NaN"], "  note  no finite loss makes no curve\n"),
    ] {
        let lines =
            losses.iter().zip(1..).map(|(loss, step)| format!("{{\"loss\":{loss},\"step\":{step}}}\n"));
        fs::write(&path, lines.collect::<String>()).unwrap();
        let ran = run_in(directory.path(), ["history", "."]);
        assert!(ran.expect(0).ends_with(note) && !ran.out.contains('\u{2800}'), "{}", ran.out);
    }
}

/// A history once became a drawing of itself, and a checkpoint damaged by a file that was put into it.
#[test]
fn outputs_replace_nothing_that_a_run_needs() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let snapshot: Vec<u8> = [60, 1, 2, 3, 4].into_iter().flat_map(u32::to_le_bytes).collect();
    fs::write(at("s.bin"), &snapshot).unwrap();
    fs::write(at("order.json"), r#"[{"name":"a","shape":[]}]"#).unwrap();
    let go = |arguments: &str| run_in(directory.path(), arguments.split(' '));
    go("snapshot import s.bin --params order.json --out run").expect(0);
    resumed_run(&at("run"), ".loss.json");
    let step = "run/ckpt/step-000060";
    fs::hard_link(at(step).join("model.safetensors"), at("twin")).unwrap();
    fs::write(at("losses"), "{\"loss\":1,\"step\":1}\n").unwrap();
    for (name, to) in
        [("link", "run/.loss.json"), ("way", step), ("end", "run/final.json"), ("to.bin", "order.json")]
    {
        std::os::unix::fs::symlink(to, at(name)).unwrap();
    }
    fs::create_dir_all(at("other/ckpt/step-000060")).unwrap();
    fs::copy(at("s.bin"), at("other/ckpt/step-000060/s.bin")).unwrap();
    let image = |directory: &Path| crate::program::image(directory);
    let before = image(directory.path());
    let outputs: &[(&str, &str)] = &[
        ("run/.loss.json", "loss history"),
        ("run/x.loss.json", "loss history"),
        ("run/.loss.json.cut-17", "cut off from a loss history"),
        ("link", "loss history"),
        ("run/.samples.json", "samples"),
        ("p.state.json", "state"),
        ("run/final.json", "last word"),
        ("end", "last word"),
        ("run/ckpt/LATEST", "pointer to the newest checkpoint"),
        ("run/ckpt/step-000060/x.bin", "one in the checkpoint"),
        ("run/ckpt/step-000060/model.safetensors", "one in the checkpoint"),
        ("run/ckpt/step-000061.tmp/x.bin", "one in the checkpoint"),
        ("way/x.bin", "one in the checkpoint"),
    ];
    let commands = outputs.iter().flat_map(|(out, found)| {
        let of_both = [format!("history run --plot {out}"), format!("snapshot export run --out {out}")];
        of_both.map(|command| (command, *found))
    });
    let more = [
        ("history losses --plot ./losses", "the input losses"),
        ("snapshot export run --out order.json --order order.json", "the input order.json"),
        ("snapshot export run --out to.bin --order order.json", "the input order.json"),
        ("snapshot export run --out twin", "the input run/ckpt/step-000060/model.safetensors"),
        ("snapshot import s.bin --params order.json --out run/ckpt/step-000060", "one in the checkpoint"),
        ("snapshot import other/ckpt/step-000060/s.bin --params order.json --out other", "is in it"),
    ];
    for (command, found) in commands.chain(more.map(|(command, found)| (command.to_owned(), found))) {
        let ran = go(&command);
        assert_eq!(ran.expect(2), "", "{command}");
        assert!(ran.err.starts_with("safestep: cannot write "), "{command}: {}", ran.err);
        assert!(ran.err.contains(found) && ran.err.lines().count() == 1, "{command}: {}", ran.err);
        assert!(image(directory.path()) == before, "{command}");
    }
    // What looks alike is free.
    for command in ["history run --plot run/loss.json.svg", "snapshot export run --out run/step_000060.bin"] {
        go(command).expect(0);
    }
}

/// A step that is imported does not send a run back in silence.
#[test]
fn an_older_snapshot_is_not_the_newest_step_unasked() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("order.json"), r#"[{"name":"a","shape":[]}]"#).unwrap();
    for step in [50_u32, 60, 70] {
        let snapshot: Vec<u8> = [step, 1, 2, 3, 4].into_iter().flat_map(u32::to_le_bytes).collect();
        fs::write(at(&format!("{step}.bin")), snapshot).unwrap();
    }
    let import = |step: u32, more: &[&str]| {
        let file = format!("{step}.bin");
        let words = ["snapshot", "import", &file, "--params", "order.json", "--out", "run"];
        run_in(directory.path(), [&words[..], more].concat())
    };
    let latest = || fs::read_to_string(at("run/ckpt/LATEST")).unwrap();
    import(60, &[]).expect(0);
    let before = crate::program::image(directory.path());
    let refused = |found: &str| {
        let ran = import(50, &[]);
        assert_eq!(ran.expect(2), "");
        assert_eq!(
            ran.err,
            format!(
                "safestep: cannot write run/ckpt/step-000050: expected the newest step, found {found}; \
                 --replace-latest makes LATEST go back\n"
            )
        );
    };
    refused("step-000060");
    assert!(crate::program::image(directory.path()) == before);
    // Without LATEST it is the newest one that is resumed.
    fs::remove_file(at("run/ckpt/LATEST")).unwrap();
    refused("step-000060");
    import(50, &["--replace-latest"]).expect(0);
    assert_eq!(latest(), "step-000050\n");
    import(70, &[]).expect(0);
    assert_eq!(latest(), "step-000070\n");
}

#[test]
fn a_pivot_leaves_the_history() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let ran = run_in(directory.path(), ["pivot", "."]);
    assert_eq!(
        (ran.expect(0), ran.err.as_str()),
        ("", "neither samples nor state are there; nothing was archived\n")
    );
    resumed_run(directory.path(), ".loss.json");
    let before = fs::read(at(".loss.json")).unwrap();
    for round in 1..=2 {
        fs::write(at(".samples.json"), format!("[{round}]")).unwrap();
        fs::write(at(".state.json"), "{}").unwrap();
        let ran = run_in(directory.path(), ["pivot", ".", "--json"]);
        let number = if round == 1 { "" } else { ".2" };
        let moved = ["samples", "state"].map(|name| {
            json!({"from": format!("./.{name}.json"), "to": format!("./archive/100/.{name}{number}.json")})
        });
        let expected = json!({"step": 100, "archive": "./archive/100", "moved": moved});
        assert_eq!(json_lines(ran.expect(0)), [expected]);
    }
    fs::write(at("x.state.json"), "{}").unwrap();
    let ran = run_in(directory.path(), ["pivot", ".", "--stem", "x", "--step", "7"]);
    assert_eq!(ran.expect(0), "./x.state.json: archived as ./archive/7/x.state.json\n");
    assert_eq!(fs::read(at(".loss.json")).unwrap(), before);
    assert_eq!(names(directory.path()), [".loss.json", "archive"]);
    assert_eq!(fs::read_to_string(at("archive/100/.samples.json")).unwrap(), "[1]");
    run_in(directory.path(), ["pivot", "none"]).expect(3);
    fs::write(at(".loss.json"), "bad\n").unwrap();
    run_in(directory.path(), ["pivot", "."]).expect(1);
}
