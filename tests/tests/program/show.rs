//! `show`: the values of one tensor, for people as a table and for programs as one document; and statistics of them.
//!
//! Numbers are exact, of every dtype; only what is shown is read; and what cannot be shown is said.

mod slices;
mod stats;
mod tables;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{collect, program, run, run_in, skipped};

/// A model of tensors with these names, dtypes, shapes and bytes, which belong together.
struct Made {
    directory: TempDir,
}

type Tensor<'t> = (&'t str, &'t str, &'t [u64], Vec<u8>);

const FILE: &str = "m.safetensors";

impl Made {
    fn of(tensors: &[Tensor<'_>]) -> Self {
        let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
        for (name, dtype, shape, bytes) in tensors {
            let begin = data.len();
            data.extend(bytes);
            let entry = json!({"dtype": dtype, "shape": shape, "data_offsets": [begin, data.len()]});
            header.insert((*name).to_string(), entry);
        }
        let header = serde_json::to_string(&header).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat();
        fs::write(directory.path().join(FILE), bytes).unwrap();
        Self { directory }
    }

    fn show(&self, arguments: &[&str]) -> super::Ran {
        run_in(self.directory.path(), ["show", FILE].iter().chain(arguments))
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.show(&[arguments, &["--json"]].concat());
        let out = ran.expect(0);
        assert_eq!(ran.err, "");
        assert_eq!(out.lines().count(), 1, "{out}");
        serde_json::from_str(out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }
}

fn bytes<const N: usize, T>(values: &[T], encode: impl Fn(&T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(encode).collect()
}

fn f32s(values: &[f32]) -> Vec<u8> {
    bytes(values, |value| value.to_le_bytes())
}

/// A tensor in which each element is its own place.
fn places(shape: &[u64]) -> Vec<u8> {
    (0..shape.iter().product::<u64>()).flat_map(|place| u32::try_from(place).unwrap().to_le_bytes()).collect()
}

/// The dtype, the bytes of four elements, their values and their codes. Worked out from the formats, by hand.
#[test]
fn every_dtype() {
    let two_two = |values: Value| {
        let mut values = values.as_array().unwrap().clone();
        json!([values.drain(..2).collect::<Vec<_>>(), values])
    };
    let table: Vec<(&str, Vec<u8>, Value, Value)> = vec![
        ("BOOL", vec![0, 1, 1, 0], json!([false, true, true, false]), json!([0, 1, 1, 0])),
        ("F4", vec![0x52, 0xF8], json!([1.0, 3.0, -0.0, -6.0]), json!([2, 5, 8, 15])),
        ("F6_E2M3", vec![0x48, 0xF0, 0x81], json!([1.0, 0.125, 7.5, -0.0]), json!([8, 1, 31, 32])),
        ("F6_E3M2", vec![0x4C, 0xF0, 0x81], json!([1.0, 0.0625, 28.0, -0.0]), json!([12, 1, 31, 32])),
        ("U8", vec![0, 1, 128, 255], json!([0, 1, 128, 255]), json!([0, 1, 128, 255])),
        ("I8", vec![0, 1, 128, 255], json!([0, 1, -128, -1]), json!([0, 1, 128, 255])),
        (
            "F8_E5M2",
            vec![0x3C, 0x80, 0xFC, 0x7F],
            json!([1.0, -0.0, "-Infinity", "NaN"]),
            json!([60, 128, 252, 127]),
        ),
        (
            "F8_E4M3",
            vec![0x38, 0x80, 0x7E, 0xFF],
            json!([1.0, -0.0, 448.0, "NaN"]),
            json!([56, 128, 126, 255]),
        ),
        (
            "F8_E8M0",
            vec![127, 128, 120, 255],
            json!([1.0, 2.0, 0.0078125, "NaN"]),
            json!([127, 128, 120, 255]),
        ),
        (
            "F8_E4M3FNUZ",
            vec![0x40, 0xC0, 0x7F, 0x80],
            json!([1.0, -1.0, 240.0, "NaN"]),
            json!([64, 192, 127, 128]),
        ),
        (
            "F8_E5M2FNUZ",
            vec![0x40, 0xC0, 0x7F, 0x80],
            json!([1.0, -1.0, 57344.0, "NaN"]),
            json!([64, 192, 127, 128]),
        ),
        (
            "I16",
            bytes(&[0, -1, i16::MIN, i16::MAX], |value: &i16| value.to_le_bytes()),
            json!([0, -1, -32768, 32767]),
            json!([0, 65535, 32768, 32767]),
        ),
        (
            "U16",
            bytes(&[0, 1, 32768, u16::MAX], |value| value.to_le_bytes()),
            json!([0, 1, 32768, 65535]),
            json!([0, 1, 32768, 65535]),
        ),
        (
            "F16",
            bytes(&[0x3C00_u16, 0x8000, 0x7BFF, 0x7C00], |code| code.to_le_bytes()),
            json!([1.0, -0.0, 65504.0, "Infinity"]),
            json!([0x3C00, 0x8000, 0x7BFF, 0x7C00]),
        ),
        (
            "BF16",
            bytes(&[0x3F80_u16, 0x8000, 0x3DCD, 0xFF80], |code| code.to_le_bytes()),
            json!([1.0, -0.0, 0.100097656, "-Infinity"]),
            json!([0x3F80, 0x8000, 0x3DCD, 0xFF80]),
        ),
        (
            "I32",
            bytes(&[0, -1, i32::MIN, i32::MAX], |value: &i32| value.to_le_bytes()),
            json!([0, -1, i32::MIN, i32::MAX]),
            json!([0, u32::MAX, 1_u32 << 31, i32::MAX]),
        ),
        (
            "U32",
            bytes(&[0, 1, 2, u32::MAX], |value| value.to_le_bytes()),
            json!([0, 1, 2, u32::MAX]),
            json!([0, 1, 2, u32::MAX]),
        ),
        (
            "F32",
            f32s(&[0.1, -0.0, f32::MAX, f32::NAN]),
            json!([0.1, -0.0, 3.4028235e38, "NaN"]),
            json!([0x3DCC_CCCD_u32, 1_u32 << 31, 0x7F7F_FFFF, 0x7FC0_0000]),
        ),
        (
            "C64",
            f32s(&[1.0, -2.0, 0.0, f32::INFINITY, f32::NAN, 0.5, -0.0, 0.1]),
            json!([[1.0, -2.0], [0.0, "Infinity"], ["NaN", 0.5], [-0.0, 0.1]]),
            json!([
                [0x3F80_0000, 0xC000_0000_u32],
                [0, 0x7F80_0000],
                [0x7FC0_0000, 0x3F00_0000],
                [1_u32 << 31, 0x3DCC_CCCD]
            ]),
        ),
        (
            "F64",
            bytes(&[0.1, -0.0, f64::MAX, f64::NEG_INFINITY], |value| value.to_le_bytes()),
            json!([0.1, -0.0, f64::MAX, "-Infinity"]),
            json!([0.1_f64.to_bits(), 1_u64 << 63, f64::MAX.to_bits(), f64::NEG_INFINITY.to_bits()]),
        ),
        (
            "I64",
            bytes(&[0, -1, i64::MIN, i64::MAX], |value: &i64| value.to_le_bytes()),
            json!([0, -1, i64::MIN, i64::MAX]),
            json!([0, u64::MAX, 1_u64 << 63, i64::MAX]),
        ),
        (
            "U64",
            bytes(&[0, 1, 1 << 63, u64::MAX], |value: &u64| value.to_le_bytes()),
            json!([0, 1, 1_u64 << 63, u64::MAX]),
            json!([0, 1, 1_u64 << 63, u64::MAX]),
        ),
    ];
    let known: Vec<&str> = safestep_tests::twin::dtypes::DTYPES.iter().map(|(name, _)| *name).collect();
    assert_eq!(table.iter().map(|(dtype, ..)| *dtype).collect::<Vec<_>>(), known);
    let tensors: Vec<Tensor<'_>> =
        table.iter().map(|(dtype, bytes, ..)| (*dtype, *dtype, &[2, 2][..], bytes.clone())).collect();
    let made = Made::of(&tensors);
    for (dtype, _, values, codes) in &table {
        let (values, codes) = (two_two(values.clone()), two_two(codes.clone()));
        let document = made.json(&[dtype]);
        let head = json!({"name": dtype, "dtype": dtype, "shape": [2, 2], "slice_shape": [2, 2]});
        let with = |key: &str, value: &Value| {
            let mut head = head.clone();
            head[key] = value.clone();
            // As text, for `==` takes -0.0 and 0.0 as the same.
            head.to_string()
        };
        assert_eq!(document.to_string(), with("values", &values));
        assert_eq!(made.json(&[dtype, "--raw"]).to_string(), with("codes", &codes));

        // One element in the middle of a byte, or of all.
        let one = made.json(&[dtype, "--slice", "1,0"]);
        assert_eq!(one["values"].to_string(), values[1][0].to_string(), "{dtype}");

        // People get each number, and of each code as many digits as there can be.
        let ran = made.show(&[dtype]);
        assert_eq!(ran.expect(0).lines().count(), 5, "{}", ran.out);
        let ran = made.show(&[dtype, "--raw"]);
        let row = ran.expect(0).lines().last().unwrap();
        let bits = safestep_tests::twin::dtypes::bits(dtype).unwrap();
        let texts: Vec<&str> = row.split_whitespace().skip(1).collect();
        let digits = if *dtype == "C64" { 8 } else { bits.div_ceil(4) as usize };
        assert!(texts.iter().all(|text| text.len() == digits), "{dtype}: {row}");
        let code = u64::from_str_radix(texts.last().unwrap(), 16).unwrap();
        let last = if *dtype == "C64" { &codes[1][1][1] } else { &codes[1][1] };
        assert_eq!(last.as_u64(), Some(code), "{dtype}");
        made.show(&[dtype, "--stats"]).expect(0);
    }
}

#[test]
fn floats_read_back_as_the_same() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let singles: Vec<f32> = (0..20_000).map(|_| f32::from_bits(random() as u32)).collect();
    let doubles: Vec<f64> = (0..20_000).map(|_| f64::from_bits(random())).collect();
    let made = Made::of(&[
        ("f32", "F32", &[20_000], f32s(&singles)),
        ("f64", "F64", &[20_000], bytes(&doubles, |value| value.to_le_bytes())),
    ]);
    // The texts themselves: a JSON library may round as it likes.
    let texts = |name: &str| {
        let ran = made.show(&[name, "--json"]);
        let list = ran.expect(0).split("\"values\":[").nth(1).unwrap().strip_suffix("]}\n").unwrap();
        list.split(',').map(|text| text.trim_matches('"').to_string()).collect::<Vec<_>>()
    };
    for (text, value) in texts("f32").iter().zip(&singles) {
        let read: f32 = text.parse().unwrap();
        assert!(read.to_bits() == value.to_bits() || read.is_nan() && value.is_nan(), "{text} {value}");
    }
    for (text, value) in texts("f64").iter().zip(&doubles) {
        let read: f64 = text.parse().unwrap();
        assert!(read.to_bits() == value.to_bits() || read.is_nan() && value.is_nan(), "{text} {value}");
    }
}

#[test]
fn a_name_that_is_not_there() {
    let made = Made::of(&[
        ("h.0.weight", "U8", &[1], vec![1]),
        ("h.0.bias", "U8", &[1], vec![1]),
        ("evil\u{1b}[2J", "U8", &[1], vec![1]),
        ("", "U8", &[1], vec![1]),
    ]);
    let table = [
        ("h.0.wieght", "m.safetensors has no tensor \"h.0.wieght\"; did you mean \"h.0.weight\"?\n"),
        ("bias", "m.safetensors has no tensor \"bias\"; did you mean \"h.0.bias\"?\n"),
        ("H.0", "m.safetensors has no tensor \"H.0\"; did you mean \"h.0.bias\" or \"h.0.weight\"?\n"),
        ("evil", "m.safetensors has no tensor \"evil\"; did you mean \"evil\\u{1b}[2J\"?\n"),
        ("\u{9b}31m", "m.safetensors has no tensor \"\\u{9b}31m\"; 'safestep inspect' lists what it has\n"),
    ];
    for (name, complaint) in table {
        let ran = made.show(&[name]);
        assert_eq!(ran.expect(2), "", "{name}");
        assert_eq!(ran.err, format!("safestep: {complaint}"));
    }
    // A byte that is no truth value is a number for programs.
    let odd = Made::of(&[("odd", "BOOL", &[3], vec![0, 1, 2])]);
    assert_eq!(odd.json(&["odd"])["values"], json!([false, true, 2]));
    assert_eq!(odd.json(&["odd", "--raw"])["codes"], json!([0, 1, 2]));
    // The empty name is one.
    made.show(&[""]).expect(0);
    let ran = run(["show", "reference/empty.safetensors", "w"]);
    assert!(ran.expect(2).is_empty() && ran.err.ends_with("has no tensor \"w\"; it has none\n"), "{ran:?}");
}

#[test]
fn files_that_are_bad_or_cannot_be_read() {
    let ran = run(["show", "rules/r1_short_one.safetensors", "w"]);
    assert_eq!(ran.expect(1), "");
    assert!(ran.err.starts_with("rules/r1_short_one.safetensors: R1.short at byte 1: "), "{ran:?}");
    for file in ["none", "reference"] {
        let ran = run(["show", file, "w"]);
        assert_eq!(ran.expect(3), "");
        assert!(ran.err.starts_with("safestep: cannot open "), "{ran:?}");
    }
}

/// A model of one tensor of 100 GB, which takes no room on the disk.
fn huge(directory: &Path, shape: &str) -> bool {
    const LEN: u64 = 100_000_000_000;
    let path = directory.join(FILE);
    if fs::File::create(&path).and_then(|file| file.set_len(LEN)).is_err() {
        skipped("the file system has no files of 100 GB");
        return false;
    }
    let header = format!("{{\"w\":{{\"dtype\":\"U8\",\"shape\":{shape},\"data_offsets\":[0,{LEN}]}}}}");
    let header = format!("{header:width$}", width = header.len().next_multiple_of(8));
    fs::write(&path, [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat()).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(8 + header.len() as u64 + LEN).unwrap();
    true
}

#[test]
fn of_100_gigabytes_only_what_is_shown_is_read() {
    let directory = tempfile::tempdir().unwrap();
    if !huge(directory.path(), "[1000, 100, 1000000]") {
        return;
    }
    let table: &[&[&str]] = &[
        &[],
        &["--raw"],
        &["--slice", "-1"],
        &["--slice", ":,5,::1000"],
        &["--json", "--slice", ":,-1,0"],
        &["--json", "--slice", "::10,::10,::100000"],
        &["--stats", "--slice", "7,::9,:1000"],
        &["--stats", "--slice", ":,3,:2"],
    ];
    for arguments in table {
        let began = Instant::now();
        let ran = run_in(directory.path(), ["show", FILE, "w"].iter().chain(*arguments));
        assert!(!ran.expect(0).is_empty());
        assert!(began.elapsed() < Duration::from_secs(5), "{arguments:?}: {:?}", began.elapsed());
    }
}

#[test]
fn an_interrupt_ends_statistics() {
    let directory = tempfile::tempdir().unwrap();
    if !huge(directory.path(), "[100000000000]") {
        return;
    }
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        // A signal that comes before the program is ready for it ends it as any other.
        let ran = (1..=10).map(|patience: u64| {
            let mut command = program();
            command.current_dir(directory.path()).args(["show", FILE, "w", "--stats"]);
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            thread::sleep(Duration::from_millis(100 * patience));
            Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
            collect(child)
        });
        let ran = ran.into_iter().find(|ran| ran.status.code().is_some()).unwrap();
        assert_eq!(ran.expect(code), "");
        assert_eq!(ran.err, "safestep: interrupted\n");
    }
}
