//! The loss history: the one file of a run that must never lose a line, whoever kills the trainer and wherever.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Instant;

use safestep::error::{Cause, Error};
use safestep::run::{Canonical, History, RunFiles, Value, loss_value};
use safestep::{Blame, OsDisk};
use safestep_tests::twin::run as twin;

use super::{names, run};

/// The canonical entries: step, loss, text.
fn canonical(path: &Path) -> Result<Vec<(u64, f64, String)>, Error> {
    let canonical = Canonical::open(path)?;
    let (mut entries, mut found) = (canonical.entries(), Vec::new());
    while let Some(entry) = entries.next()? {
        let text = String::from_utf8(entry.text().to_vec()).unwrap();
        found.push((entry.step(), loss_value(entry.loss()), text));
    }
    assert_eq!(canonical.first_step(), found.first().map(|(step, ..)| *step));
    assert_eq!(canonical.last_step()?, found.last().map(|(step, ..)| *step));
    Ok(found)
}

fn steps(path: &Path) -> Vec<u64> {
    canonical(path).unwrap().into_iter().map(|(step, ..)| step).collect()
}

fn open(files: &RunFiles) -> History {
    History::open(&OsDisk, files).unwrap()
}

#[test]
fn a_line_is_what_the_format_says() {
    let (_directory, files) = run("");
    let mut history = open(&files);
    history.append(1, 5.5, &[]).unwrap();
    history.append(2, f64::NAN, &[("lr", Value::Number(3e-4)), ("tokens", Value::Count(u64::MAX))]).unwrap();
    let more = [
        ("a\"b", Value::Text("x\ny")),
        ("n", Value::Integer(-7)),
        ("norm", Value::Number(f64::NEG_INFINITY)),
        ("ok", Value::Bool(true)),
    ];
    history.append(3, f64::INFINITY, &more).unwrap();
    history.append(4, -0.0, &[]).unwrap();
    history.append(5, 1e-320, &[]).unwrap();
    history.append(u64::MAX, 1e300, &[]).unwrap();
    history.resume(1).unwrap();
    history.sync().unwrap();
    let expected = "\
{\"loss\":5.5,\"step\":1}
{\"loss\":\"NaN\",\"step\":2,\"lr\":0.0003,\"tokens\":18446744073709551615}
{\"loss\":\"Infinity\",\"step\":3,\"a\\\"b\":\"x\\ny\",\"n\":-7,\"norm\":\"-Infinity\",\"ok\":true}
{\"loss\":-0.0,\"step\":4}
{\"loss\":1e-320,\"step\":5}
{\"loss\":1e300,\"step\":18446744073709551615}
{\"resume\":1}
";
    assert_eq!(fs::read_to_string(files.loss()).unwrap(), expected);
    for line in expected.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn every_float_comes_back() {
    let (_directory, files) = run("");
    let mut history = open(&files);
    let mut bits = 0x9E37_79B9_7F4A_7C15_u64;
    let losses: Vec<f64> = (0..2000)
        .map(|_| {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            f64::from_bits(bits)
        })
        .collect();
    for (step, loss) in losses.iter().enumerate() {
        history.append(step as u64, *loss, &[]).unwrap();
    }
    for ((_, found, _), expected) in canonical(&files.loss()).unwrap().iter().zip(&losses) {
        assert!(found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan());
    }
}

#[test]
fn lines_that_could_not_be_read_are_not_written() {
    let (_directory, files) = run("");
    let mut history = open(&files);
    let long = "x".repeat(1 << 20);
    for name in ["loss", "step", "resume", long.as_str()] {
        let error = history.append(1, 1.0, &[(name, Value::Integer(1))]).unwrap_err();
        assert!(matches!(error.because(), Cause::Line { .. }), "{error}");
    }
    assert_eq!(fs::read(files.loss()).unwrap(), b"");
    history.append(1, 1.0, &[]).unwrap();
    assert_eq!(steps(&files.loss()), [1]);
}

/// Three lines before, and the last one cut at every byte.
#[test]
fn a_history_cut_at_every_byte_of_its_last_line() {
    let before = "{\"loss\":3.0,\"step\":1}\n{\"loss\":2.0,\"step\":2}\n";
    let last = "{\"loss\":1.5,\"step\":3,\"note\":\"größe\"}\n";
    for cut in 0..=last.len() {
        let (directory, files) = run("x");
        let fragment = &last.as_bytes()[..cut];
        fs::write(files.loss(), [before.as_bytes(), fragment].concat()).unwrap();
        let whole = cut + 1 >= last.len();
        // A reader leaves it out and says so.
        let read = Canonical::open(&files.loss()).unwrap().summary();
        assert_eq!(read.cut_at, (cut > 0 && !whole).then_some(before.len() as u64), "{cut}");
        assert_eq!(steps(&files.loss()), if whole { vec![1, 2, 3] } else { vec![1, 2] });

        let inode = fs::metadata(files.loss()).unwrap().ino();
        let mut history = open(&files);
        let repair = history.repair().cloned();
        assert_eq!(fs::metadata(files.loss()).unwrap().ino(), inode, "it is never rewritten");
        history.resume(2).unwrap();
        history.append(3, 0.5, &[]).unwrap();
        drop(history);
        let kept = if whole { last } else { "" };
        let expected = format!("{before}{kept}{{\"resume\":2}}\n{{\"loss\":0.5,\"step\":3}}\n");
        assert_eq!(fs::read_to_string(files.loss()).unwrap(), expected, "{cut}");
        if cut == 0 || whole {
            assert_eq!((repair, names(directory.path())), (None, vec!["x.loss.json".into()]));
            continue;
        }
        let repair = repair.unwrap();
        let name = format!("x.loss.json.cut-{}", before.len());
        assert_eq!((repair.at, repair.len_bytes), (before.len() as u64, cut as u64));
        assert_eq!(repair.moved_to, directory.path().join(&name));
        assert_eq!(fs::read(&repair.moved_to).unwrap(), fragment);
        assert_eq!(names(directory.path()), ["x.loss.json", name.as_str()]);
        assert!(open(&files).repair().is_none());
    }
}

/// A repair is a copy, made durable, then a shorter history, made durable. A crash leaves what stands in this table, and the next
/// open ends where an undisturbed one does.
#[test]
fn a_crash_in_a_repair_loses_nothing() {
    let (before, cut) = ("{\"loss\":3.0,\"step\":1}\n", "{\"loss\":2.0,\"st");
    let whole = format!("{before}{cut}");
    let name = format!(".loss.json.cut-{}", before.len());
    let temporary = format!(".{name}.4711-0123456789abcdef.tmp");
    type Moment<'a> = (&'a str, &'a [(&'a str, &'a str)], bool);
    let table: &[Moment<'_>] = &[
        ("before all", &[(".loss.json", &whole)], true),
        ("the copy is begun", &[(".loss.json", &whole), (&temporary, "")], true),
        ("the copy is half", &[(".loss.json", &whole), (&temporary, "{\"loss")], true),
        ("the copy has its bytes", &[(".loss.json", &whole), (&temporary, cut)], true),
        ("the copy has its name", &[(".loss.json", &whole), (&name, cut)], true),
        ("the history is shorter", &[(".loss.json", before), (&name, cut)], false),
    ];
    for (moment, standing, repairs) in table {
        let (directory, files) = run("");
        for (name, text) in *standing {
            fs::write(directory.path().join(name), text).unwrap();
        }
        for again in [*repairs, false] {
            let mut history = open(&files);
            assert_eq!(history.repair().is_some(), again, "{moment}");
            history.sync().unwrap();
        }
        assert_eq!(fs::read_to_string(files.loss()).unwrap(), before, "{moment}");
        assert_eq!(fs::read_to_string(directory.path().join(&name)).unwrap(), cut, "{moment}");
        // One copy, whichever crash it was.
        let cuts = names(directory.path()).into_iter().filter(|found| found.starts_with(".loss.json.cut-"));
        assert_eq!(cuts.count(), 1, "{moment}");
    }
}

#[test]
fn cut_lines_at_one_place_are_all_kept() {
    let (directory, files) = run("");
    for fragment in ["{\"loss\":1", "{\"loss\":2", "{\"loss\":1", "\0\0\0"] {
        fs::write(files.loss(), fragment).unwrap();
        assert!(open(&files).repair().is_some());
        assert_eq!(fs::read(files.loss()).unwrap(), b"");
    }
    let expected = [".loss.json", ".loss.json.cut-0", ".loss.json.cut-0-2", ".loss.json.cut-0-3"];
    assert_eq!(names(directory.path()), expected);
    assert_eq!(fs::read(directory.path().join(".loss.json.cut-0-3")).unwrap(), b"\0\0\0");
    // What a power failure leaves can be long.
    fs::write(files.loss(), [b"{\"resume\":1}\n".as_slice(), &vec![0; 3 << 20]].concat()).unwrap();
    let repaired = open(&files).repair().cloned().unwrap();
    assert_eq!((repaired.at, repaired.len_bytes), (13, 3 << 20));
    assert_eq!(fs::read(files.loss()).unwrap(), b"{\"resume\":1}\n");
}

#[test]
fn two_resumes_to_the_same_step() {
    let (_directory, files) = run("");
    let mut history = open(&files);
    for (from, to, resume) in [(1, 60, Some(50)), (51, 57, Some(50)), (51, 70, None)] {
        for step in from..=to {
            history.append(step, to as f64 + 0.25, &[]).unwrap();
        }
        if let Some(step) = resume {
            drop(history);
            history = open(&files);
            history.resume(step).unwrap();
        }
    }
    let entries = canonical(&files.loss()).unwrap();
    let expected: Vec<(u64, f64)> =
        (1..=70).map(|step| (step, if step <= 50 { 60.25 } else { 70.25 })).collect();
    assert_eq!(entries.iter().map(|(step, loss, _)| (*step, *loss)).collect::<Vec<_>>(), expected);
    let summary = Canonical::open(&files.loss()).unwrap().summary();
    assert_eq!((summary.entries, summary.resumes, summary.cut_at), (60 + 7 + 20, 2, None));
}

/// What a resumed run shows is what one shows that nobody disturbed, line for line.
#[test]
fn the_canonical_history_of_a_resumed_run_is_that_of_an_undisturbed_one() {
    let texts = |kills: &[(u64, u64)]| {
        let (_directory, files) = run("");
        let (mut history, mut step, mut kills) = (open(&files), 0_u64, kills.iter());
        let mut kill = kills.next();
        while step < 200 {
            step += 1;
            history.append(step, 1.0 / step as f64, &[("lr", Value::Number(0.1))]).unwrap();
            if let Some(&(at, back)) = kill
                && at == step
            {
                drop(history);
                history = open(&files);
                history.resume(back).unwrap();
                (step, kill) = (back, kills.next());
            }
        }
        canonical(&files.loss()).unwrap().into_iter().map(|(.., text)| text).collect::<Vec<_>>()
    };
    let undisturbed = texts(&[]);
    assert_eq!(undisturbed.len(), 200);
    for kills in
        [&[(60, 50)][..], &[(60, 50), (60, 50)], &[(1, 0)], &[(150, 100), (101, 100), (199, 0), (200, 200)]]
    {
        assert_eq!(texts(kills), undisturbed, "{kills:?}");
    }
}

#[test]
fn other_writers_files() {
    let line = |step: u64, loss: &str| format!("{{\"step\": {step}, \"loss\": {loss}}}");
    let [one, two, three] = [line(1, "1.5"), line(2, "NaN"), line(3, "-Infinity")];
    let table: Vec<(String, &[u64])> = vec![
        (String::new(), &[]),
        ("\n \n".into(), &[]),
        (format!("{one}\n{two}\n{three}"), &[1, 2, 3]),
        (format!("{one}\r\n\r\n{two}\r\n"), &[1, 2]),
        (format!("[{one},{two},{three}]"), &[1, 2, 3]),
        (format!(" [\n  {one},\n  {two}\n]\n\n"), &[1, 2]),
        ("[]".into(), &[]),
        ("\n[ \n ]\n".into(), &[]),
        (
            format!("[{one},{two},{{\"resume\":1}},{three},{{\"loss\":1,\"step\":9,\"x\":\"],[\\\"\"}}]"),
            &[1, 3, 9],
        ),
        // No mark, and yet the run went back.
        (format!("{one}\n{two}\n{three}\n{two}\n"), &[1, 2]),
        (format!("{three}\n{{\"resume\":0}}\n"), &[]),
    ];
    for (text, expected) in table {
        let (_directory, files) = run("");
        fs::write(files.loss(), &text).unwrap();
        assert_eq!(steps(&files.loss()), expected, "{text}");
        let array = text.trim_start().starts_with('[');
        let opened = History::open(&OsDisk, &files);
        assert_eq!(opened.is_err(), array, "{text}");
        if let Ok(mut history) = opened {
            history.append(1000, 1.0, &[]).unwrap();
            assert_eq!(steps(&files.loss()).last(), Some(&1000));
        }
        let kept = fs::read_to_string(files.loss()).unwrap();
        assert!(kept.starts_with(&text), "{text}");
    }
}

#[test]
fn a_bad_history_is_told_by_line_and_byte() {
    let table: &[(&str, &str)] = &[
        (
            "{\"loss\":1,\"step\":1}\n{\"loss\":1,\"st{\"loss\":1,\"step\":3}\n",
            "line 2: H1.json at byte 35: expected ':', found byte 0x6c",
        ),
        ("\n\n{\"step\":1}\n", "line 3: H2.missing at byte 12: expected loss, found the end of the entry"),
        ("{\"loss\":null,\"step\":1}\n", "line 1: H2.value at byte 8: expected a number as loss, found null"),
        (
            "{\"loss\":1,\"step\":-1}\n",
            "line 1: H2.value at byte 17: expected step to be an integer from 0 to 2^64 - 1, found another number",
        ),
        (
            "{\"loss\":1,\"step\":1,\"step\":1}\n",
            "line 1: H2.duplicate at byte 19: expected step once, found it twice",
        ),
        (
            "{\"loss\":\"nan\",\"step\":1}\n",
            "line 1: H2.value at byte 8: expected a loss, found a string that is none of \"NaN\", \"Infinity\", \"-Infinity\"",
        ),
        ("[{\"loss\":1,\"step\":1},]", "line 2: H1.object at byte 21: expected an object, found nothing"),
        ("[{\"loss\":1,\"step\":1}", "it begins as a JSON array and does not end as one"),
        (
            "[{\"loss\":1,\"step\":1}]\n{\"loss\":1,\"step\":2}\n",
            "something stands behind the JSON array that it begins with",
        ),
        ("[1]", "line 1: H1.object at byte 1: expected an object, found byte 0x31"),
    ];
    for (text, complaint) in table {
        let (_directory, files) = run("");
        fs::write(files.loss(), text).unwrap();
        let error = canonical(&files.loss()).unwrap_err();
        assert!(error.to_string().ends_with(complaint), "{error}");
        assert_eq!(error.blame(), Blame::Data);
    }
    let (_directory, files) = run("");
    for text in ["x".repeat(2 << 20) + "\n", format!("[\"{}\"]", "x".repeat(2 << 20))] {
        fs::write(files.loss(), text).unwrap();
        let error = canonical(&files.loss()).unwrap_err();
        assert!(error.to_string().contains("line 1: H1.long"), "{error}");
    }
}

#[test]
fn random_histories_mean_what_the_twin_says() {
    let mut seed = 7_u64;
    let mut below = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    for round in 0..300 {
        let (mut step, mut text, mut lines) = (0, String::new(), Vec::new());
        for number in 0..below(60) {
            let (line, shown) = match below(8) {
                0 => {
                    step = below(step + 2);
                    (twin::Line::Resume(step), format!("{{\"resume\":{step}}}"))
                }
                1 => {
                    step = below(12);
                    (
                        twin::Line::Entry(step, Ok(number as f64)),
                        format!("{{\"loss\":{number},\"step\":{step}}}"),
                    )
                }
                _ => {
                    step += 1;
                    (
                        twin::Line::Entry(step, Ok(number as f64)),
                        format!("{{\"loss\":{number},\"step\":{step}}}"),
                    )
                }
            };
            writeln!(text, "{shown}").unwrap();
            lines.push(line);
        }
        let expected: Vec<(u64, f64)> = twin::canonical(&lines)
            .into_iter()
            .map(|place| match &lines[place] {
                twin::Line::Entry(step, Ok(loss)) => (*step, *loss),
                other => unreachable!("{other:?}"),
            })
            .collect();
        let (_directory, files) = run("");
        let array = format!("[{}]", text.trim_end().replace('\n', ","));
        for text in [&text, &array] {
            fs::write(files.loss(), text).unwrap();
            let found: Vec<(u64, f64)> =
                canonical(&files.loss()).unwrap().into_iter().map(|(step, loss, _)| (step, loss)).collect();
            assert_eq!(found, expected, "round {round}: {text}");
        }
        // Bad lines in between change nothing, and are told one by one.
        let (mut mixed, mut bad) = (String::new(), 0);
        for line in text.lines() {
            for _ in 0..below(3) {
                mixed += ["{}\n", "x\n", "{\"resume\":-1}\n", "{\"loss\":1,\"st{\"loss\":1,\"step\":3}\n"]
                    [usize::try_from(below(4)).unwrap()];
                bad += 1;
            }
            mixed += &format!("{line}\n");
        }
        fs::write(files.loss(), mixed).unwrap();
        let mut told = 0;
        let lenient = Canonical::open_leniently(&files.loss(), &mut |_| told += 1).unwrap();
        let (mut entries, mut found) = (lenient.entries(), Vec::new());
        while let Some(entry) = entries.next().unwrap() {
            found.push((entry.step(), loss_value(entry.loss())));
        }
        assert_eq!((found, told, lenient.summary().bad), (expected, bad, bad), "round {round}");
    }
}

#[test]
fn a_million_lines() {
    let (_directory, files) = run("");
    let mut text = String::new();
    for step in 1..=1_000_000 {
        writeln!(text, "{{\"loss\":{}.25,\"step\":{step},\"lr\":0.0003}}", step % 7).unwrap();
        if step % 100_000 == 0 {
            writeln!(text, "{{\"resume\":{}}}", step - 1).unwrap();
            writeln!(text, "{{\"loss\":0.5,\"step\":{step}}}").unwrap();
        }
    }
    fs::write(files.loss(), &text).unwrap();
    let began = Instant::now();
    let canonical = Canonical::open(&files.loss()).unwrap();
    let (mut entries, mut count) = (canonical.entries(), 0);
    while let Some(entry) = entries.next().unwrap() {
        count += 1;
        assert_eq!(entry.step(), count);
        assert!(count % 100_000 != 0 || loss_value(entry.loss()) == 0.5);
    }
    println!("{} bytes, read twice in {:?}", text.len(), began.elapsed());
    assert_eq!((count, canonical.summary().entries), (1_000_000, 1_000_010));
}

#[test]
fn one_trainer_at_a_time() {
    let (_directory, files) = run("");
    let history = open(&files);
    let error = History::open(&OsDisk, &files).unwrap_err();
    let ours = Some(std::process::id()).filter(|_| Path::new("/proc/locks").exists());
    assert!(matches!(error.because(), Cause::Locked { pid } if *pid == ours), "{error}");
    assert!(error.to_string().starts_with("cannot append to "), "{error}");
    drop(history);
    open(&files);
}

#[test]
fn what_is_no_file_is_refused() {
    let (_directory, files) = run("");
    fs::create_dir(files.loss()).unwrap();
    let error = History::open(&OsDisk, &files).unwrap_err();
    assert!(error.to_string().ends_with("it is a directory, not a regular file"), "{error}");
    let nowhere = RunFiles::new("/nowhere/at/all", "").unwrap();
    assert!(matches!(History::open(&OsDisk, &nowhere).unwrap_err().because(), Cause::Io(_)));
}

const FULL: &str = "SAFESTEP_TEST_FULL";

/// Appends until the disk is full; a test in name only.
#[test]
#[ignore = "the next test starts it, with a limit on the size of files"]
fn append_until_it_is_full() {
    let Some(run) = std::env::var_os(FULL) else { return };
    let mut history = open(&RunFiles::new(run, "").unwrap());
    let mut step = 1;
    let error = loop {
        match history.append(step, 1.0, &[]) {
            Ok(()) => step += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error.because(), Cause::Io(_)), "{error}");
    for error in [history.append(step, 1.0, &[]), history.resume(1), history.sync()].map(Result::unwrap_err) {
        assert!(matches!(error.because(), Cause::Abandoned), "{error}");
    }
    println!("\nfull at {step}");
}

/// A full disk cuts a line: that is told, nothing is written behind it, and the next open moves it out of the way.
#[test]
fn a_full_disk_ends_the_history_and_the_next_open_goes_on() {
    let (_directory, files) = run("");
    let shell = "trap '' XFSZ; ulimit -f 8; exec \"$@\"";
    let child = std::process::Command::new("sh")
        .args(["-c", shell, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["run::history::append_until_it_is_full", "--exact", "--ignored", "--nocapture"])
        .env(FULL, files.directory())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(child.status.success(), "{said}{}", String::from_utf8_lossy(&child.stderr));
    let full = said.lines().find_map(|line| line.strip_prefix("full at ")).unwrap().parse::<u64>().unwrap();
    let summary = Canonical::open(&files.loss()).unwrap().summary();
    assert_eq!((summary.entries, summary.cut_at.is_some()), (full - 1, true));
    let mut history = open(&files);
    assert_eq!(history.repair().map(|repair| Some(repair.at)), Some(summary.cut_at));
    history.append(full, 1.0, &[]).unwrap();
    assert_eq!(steps(&files.loss()), (1..=full).collect::<Vec<_>>());
}
