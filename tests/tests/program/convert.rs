//! `convert`: the same tensors in other floating dtypes, or nothing at all.
//!
//! What it must never do is change what nobody named, round in silence what cannot be rounded, or harm the old output.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use safestep::{Access, Model, ModelWriter, OsDisk, TensorPlan};
use safestep_core::{Dtype, Limits};
use serde_json::{Value, json};

use super::rewrite::{disturbed, image, send};
use super::{fixtures, names, run_in, skipped};

/// Writes a model: names, dtypes, shapes, bytes in the order of the layout.
fn write_model(path: &Path, tensors: &[(&str, Dtype, &[u64])], data: &[u8]) {
    let plan: Vec<TensorPlan> = tensors
        .iter()
        .map(|&(name, dtype, shape)| TensorPlan { name: name.into(), dtype, shape: shape.to_vec() })
        .collect();
    let metadata = [("format".to_string(), "pt".to_string()), ("note".to_string(), "größe".to_string())];
    let mut writer = ModelWriter::create(&OsDisk, path, &plan, Some(&metadata)).unwrap();
    writer.write(data).unwrap();
    writer.finish().unwrap();
}

/// What is in a model: `name dtype bytes` for each tensor, and the metadata.
fn content(path: &Path) -> Vec<String> {
    let model = Model::open(path, Access::Map, Limits::default()).unwrap();
    let index = model.index();
    let metadata = index.metadata().into_iter().flatten().map(|(key, value)| format!("{key}={value}"));
    let tensors = index.iter().map(|entry| {
        let bytes = model.view(&entry).unwrap().bytes();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{} {} {hex}", entry.name(), entry.dtype())
    });
    metadata.chain(tensors).collect()
}

/// A model with floats of four kinds, and with what is none.
fn mixed(path: &Path) {
    let tensors: &[(&str, Dtype, &[u64])] = &[
        ("step", Dtype::I64, &[]),
        ("double", Dtype::F64, &[2]),
        ("layer.0.norm", Dtype::F32, &[2]),
        ("layer.0.weight", Dtype::F32, &[1, 2]),
        ("half", Dtype::Bf16, &[2]),
        ("scale", Dtype::F8E8M0, &[2]),
        ("mask", Dtype::Bool, &[2]),
    ];
    let mut data = 7_i64.to_le_bytes().to_vec();
    // Just above a tie of BF16: rounded to F32 first, it would be a tie and fall.
    data.extend([1.003_906_250_000_1_f64, -2.0].iter().flat_map(|value| value.to_le_bytes()));
    data.extend(
        [1.5_f32, f32::from_bits(0x7FC0_1234), 0.5, -3.0].iter().flat_map(|value| value.to_le_bytes()),
    );
    data.extend([0xC1, 0x7F, 0x40, 0x40]);
    data.extend([127, 128, 1, 0]);
    write_model(path, tensors, &data);
}

#[test]
fn each_tensor_becomes_what_was_asked_for_it() {
    let metadata = ["format=pt", "note=größe"];
    let step = "step I64 0700000000000000";
    let double = "double F64 c20100000010f03f00000000000000c0";
    let norm = "layer.0.norm F32 0000c03f3412c07f";
    let weight = "layer.0.weight F32 0000003f000040c0";
    let half = "half BF16 c17f4040";
    let (scale, mask) = ("scale F8_E8M0 7f80", "mask BOOL 0100");
    type Wish<'a> = (&'a [&'a str], &'a [&'a str]);
    let table: &[Wish<'_>] = &[
        (
            &["--to", "BF16"],
            &[
                step,
                "double BF16 813f00c0",
                half,
                "layer.0.norm BF16 c03fc07f",
                "layer.0.weight BF16 003f40c0",
                scale,
                mask,
            ],
        ),
        (
            &["--to", "F32"],
            &[step, "double F32 0080803f000000c0", "half F32 0000c17f00004040", norm, weight, scale, mask],
        ),
        // The last pattern that matches counts; what has its dtype already is as it was.
        (
            &["--to", "F16", "--tensor", "layer.*=F64", "--tensor", "*.norm=F32", "--tensor", "double=F64"],
            &[
                step,
                double,
                "layer.0.weight F64 000000000000e03f00000000000008c0",
                norm,
                "half F16 007e0042",
                scale,
                mask,
            ],
        ),
        // Without --to, all others stay; a scale is converted when it is named.
        (
            &["--tensor", "scale=BF16", "--tensor", "layer.?.{weight,bias}=F8_E4M3"],
            &[step, double, norm, half, "scale BF16 803f0040", "layer.0.weight F8_E4M3 30c4", mask],
        ),
    ];
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    mixed(&at("in"));
    assert_eq!(content(&at("in"))[2..], [step, double, norm, weight, half, scale, mask]);
    for (wish, expected) in table {
        run_in(directory.path(), ["convert", "in", "out"].iter().chain(*wish)).expect(0);
        assert_eq!(run_in(directory.path(), ["check", "out"]).expect(0), "out: good\n");
        let found = content(&at("out"));
        assert_eq!(found[..2], metadata);
        let mut expected = expected.to_vec();
        let mut found: Vec<&str> = found[2..].iter().map(String::as_str).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{wish:?}");
    }
    assert_eq!(names(directory.path()), ["in", "out"]);
}

/// A pattern for all names is one for all floats; what else it names is left alone, and that is said.
#[test]
fn a_pattern_that_names_more_than_floats() {
    let directory = tempfile::tempdir().unwrap();
    mixed(&directory.path().join("in"));
    let ran =
        run_in(directory.path(), ["convert", "in", "out", "--tensor", "*=f64", "--tensor", "*.norm=f32"]);
    ran.expect(0);
    assert_eq!(ran.err, "left as it was: 2 tensors that a --tensor names, but no float\n");
    let found = content(&directory.path().join("out"));
    let dtype = |name: &str| found.iter().find_map(|line| line.strip_prefix(name)?.split(' ').nth(1));
    let dtypes = ["step", "double", "layer.0.norm", "layer.0.weight", "half", "scale", "mask"].map(dtype);
    assert_eq!(dtypes, ["I64", "F64", "F32", "F64", "F64", "F64", "BOOL"].map(Some));
    // A tensor that ends inside a byte stays when it is named, as the hint says.
    write_model(&directory.path().join("odd"), &[("w[0]", Dtype::F16, &[3])], &[0; 6]);
    run_in(directory.path(), ["convert", "odd", "out", "--to", "f4", "--tensor", "w[[]0[]]=F16"]).expect(0);
}

#[test]
fn what_is_said() {
    let directory = tempfile::tempdir().unwrap();
    mixed(&directory.path().join("in"));
    let wish = ["convert", "in", "out", "--to", "BF16"];
    let ran = run_in(directory.path(), wish);
    let (before, after) = (
        fs::metadata(directory.path().join("in")).unwrap().len(),
        fs::metadata(directory.path().join("out")).unwrap().len(),
    );
    let expected = format!(
        "\
out: written, 3 of 7 tensors converted, {before} B became {after} B

  from     to         tensors  before  after
  F64      BF16             1    16 B    4 B
  F32      BF16             2    16 B    8 B
  I64      as it was        1     8 B    8 B
  BF16     as it was        1     4 B    4 B
  F8_E8M0  as it was        1     2 B    2 B
  BOOL     as it was        1     2 B    2 B
"
    );
    assert_eq!((ran.expect(0), ran.err.as_str()), (expected.as_str(), ""));

    let ran = run_in(directory.path(), wish.iter().chain(&["--json"]));
    let row = |from: &str, to: &str, tensors: u64, before: u64, after: u64| json!({"from": from, "to": to, "tensors": tensors, "bytes_before": before, "bytes_after": after});
    let expected = json!({
        "path": "out", "bytes_before": before, "bytes_after": after,
        "tensors": [
            row("F64", "BF16", 1, 16, 4), row("F32", "BF16", 2, 16, 8), row("I64", "I64", 1, 8, 8),
            row("BF16", "BF16", 1, 4, 4), row("F8_E8M0", "F8_E8M0", 1, 2, 2), row("BOOL", "BOOL", 1, 2, 2),
        ],
    });
    assert_eq!(serde_json::from_str::<Value>(ran.expect(0)).unwrap(), expected);
    assert_eq!(ran.out.lines().count(), 1);

    // A model without tensors is one all the same.
    write_model(&directory.path().join("none"), &[], &[]);
    let ran = run_in(directory.path(), ["convert", "none", "out", "--to", "F4"]);
    assert!(ran.expect(0).starts_with("out: written, 0 tensors converted, ") && ran.out.lines().count() == 1);
}

#[test]
fn in_place_through_a_link_with_the_permissions_it_had() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("store")).unwrap();
    write_model(&at("store/model"), &[("w", Dtype::F32, &[2])], &[0, 0, 0x80, 0x3F, 0, 0, 0, 0x80]);
    fs::set_permissions(at("store/model"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("store/model", at("link")).unwrap();
    for (to, word) in
        [("F16", "003c0080"), ("F16", "003c0080"), ("F8_E5M2", "3c80"), ("F32", "0000803f00000080")]
    {
        run_in(directory.path(), ["convert", "link", "link", "--to", to]).expect(0);
        assert_eq!(content(&at("link"))[2], format!("w {to} {word}"));
        assert_eq!(fs::metadata(at("store/model")).unwrap().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!((names(directory.path()).len(), names(&at("store")).len()), (2, 1));
    }
}

#[test]
fn what_cannot_be_done_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    mixed(&at("in"));
    let singles = [1.0_f32, 2.0, 448.0, 449.0, f32::INFINITY, f32::NAN, 0.0, -0.0];
    let singles: Vec<u8> = singles.iter().flat_map(|value| value.to_le_bytes()).collect();
    write_model(&at("large"), &[("a\u{1b}[2J", Dtype::F32, &[2, 4])], &singles);
    write_model(&at("odd"), &[("w[0]", Dtype::F16, &[3])], &[0; 6]);
    fs::write(at("bad"), "no model at all").unwrap();
    fs::write(at("old"), "the old output").unwrap();
    let before = image(directory.path());
    let number = "safestep: cannot write old: \"a\\u{1b}[2J\": expected a value of ";
    type Refusal<'a> = (&'a [&'a str], i32, &'a str, &'a str);
    let table: &[Refusal<'_>] = &[
        (&["bad", "old", "--to", "F16"], 1, "bad: R1", ""),
        (&["none", "old", "--to", "F16"], 3, "safestep: cannot open none: No such file", ""),
        (&["in", ".", "--to", "F16"], 3, "safestep: cannot write .: it is a directory", ""),
        (
            &["in", "none/old", "--to", "F16"],
            3,
            "safestep: cannot create a temporary file beside none/old",
            "",
        ),
        (
            &["odd", "old", "--to", "F4"],
            2,
            "safestep: cannot write old: W5: expected a whole number of bytes for \"w[0]\", found 12 bits",
            "\nwith --tensor 'w[[]0[]]=F16' it stays as it is",
        ),
        (
            &["odd", "old", "--to", "F6_E2M3"],
            2,
            "safestep: cannot write old: W5: expected a whole number of bytes for \"w[0]\", found 18 bits",
            "\nwith --tensor ",
        ),
        (
            &["large", "old", "--to", "F8_E4M3"],
            1,
            number,
            "F8_E4M3, found 449.0 in element 3, [0, 3]: it is out of range\nwith --saturate ",
        ),
        (
            &["large", "large", "--to", "F4"],
            1,
            "safestep: cannot write large: ",
            "F4, found 448.0 in element 2, [0, 2]: it is out of range\nwith --saturate ",
        ),
        (
            &["large", "old", "--to", "F6_E3M2", "--saturate"],
            1,
            number,
            "F6_E3M2, found NaN in element 5, [1, 1]: there is no NaN\n",
        ),
        (
            &["in", "old", "--to", "F8_E8M0"],
            1,
            "safestep: cannot write old: \"double\": expected a value of F8_E8M0, found -2.0 in element 1: a scale is above zero\n",
            "",
        ),
        (
            &["in", "old", "--to", "F16", "--tensor", "layer=F32"],
            2,
            "safestep: --tensor 'layer=F32': no tensor has such a name\n",
            "",
        ),
        (
            &["in", "old", "--to", "F16", "--tensor", "st*=F32"],
            2,
            "safestep: --tensor 'st*=F32': \"step\" is I64, and only floats become other floats\n",
            "",
        ),
        (
            &["in", "old", "--tensor", "half=F32", "--tensor", "mask=F32"],
            2,
            "safestep: --tensor 'mask=F32': \"mask\" is BOOL, and",
            "",
        ),
    ];
    for (arguments, code, complaint, more) in table {
        let ran = run_in(directory.path(), ["convert"].iter().chain(*arguments));
        assert_eq!(ran.expect(*code), "", "{arguments:?}");
        assert!(ran.err.starts_with(complaint) && ran.err.contains(more), "{arguments:?}: {}", ran.err);
        assert_eq!(ran.err.lines().count(), 1 + usize::from(more.contains("\nwith --")), "{}", ran.err);
        assert!(!ran.err.contains('\u{1b}'));
        assert_eq!(image(directory.path()), before, "{arguments:?}");
    }
    // The same, saturated by name.
    run_in(directory.path(), ["convert", "large", "old", "--to", "F8_E4M3", "--saturate"]).expect(0);
    assert_eq!(content(&at("old"))[2], "a\u{1b}[2J F8_E4M3 38407e7e7e7f0080");
}

#[test]
fn a_signal_leaves_nothing_behind() {
    let heard = ["env", "--default-signal=HUP,INT,TERM"];
    for (signal, code) in [("HUP", 129), ("INT", 130), ("TERM", 143)] {
        let ran = disturbed(&heard, &["convert", "--to", "BF16"], |child, _| send(signal, child));
        assert_eq!(ran.expect(code), "");
        assert_eq!(ran.err, "safestep: interrupted; nothing was changed\n");
    }
}

#[test]
fn an_input_that_shrinks_meanwhile() {
    let ran = disturbed(&[], &["convert", "--to", "BF16"], |_, input| {
        fs::File::options().write(true).open(input).unwrap().set_len(1000).unwrap();
    });
    assert_eq!(ran.expect(3), "");
    assert!(
        ran.err.contains("cannot read in.safetensors: it shrank from 400000080 to 1000 bytes"),
        "{}",
        ran.err
    );
}

/// Every weight of a real model, rounded by the textbook: half of the last place is added, less one if it is even.
#[test]
fn a_real_model_to_bf16_and_back() {
    let input = fixtures().join("real/model.safetensors");
    if !input.exists() {
        skipped("the real model is not there; sh fixtures/fetch_real.sh fetches it");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let to = |from: &str, to: &str, dtype: &str| {
        run_in(directory.path(), ["convert", from, to, "--to", dtype]).expect(0).to_string()
    };
    let said = to(input.to_str().unwrap(), "narrow", "BF16");
    assert!(
        said.starts_with("narrow: written, 103 of 104 tensors converted, 90.9 MB became 45.4 MB\n"),
        "{said}"
    );
    to("narrow", "back", "F32");
    let open = |path: &Path| Model::open(path, Access::Map, Limits::default()).unwrap();
    let (before, after) = (open(&input), open(&directory.path().join("back")));
    for entry in before.index().iter() {
        let bytes = before.view(&entry).unwrap().bytes();
        let expected = match entry.dtype() {
            Dtype::F32 => bytes.as_chunks::<4>().0.iter().flat_map(|&single| rounded(single)).collect(),
            _ => bytes.to_vec(),
        };
        let found = after.index().get(&entry.name().to_string()).unwrap();
        assert!(after.view(&found).unwrap().bytes() == expected, "{}", entry.name());
    }
    // A weight of 7.9 is too much for three bits of mantissa and two of exponent.
    let ran = run_in(directory.path(), ["convert", "back", "narrow", "--to", "F6_E2M3"]);
    assert_eq!(ran.expect(1), "");
    assert!(ran.err.contains("\"encoder.layer.0.output.dense.weight\": expected a value of F6_E2M3, found 7.90625 in element 152920"), "{}", ran.err);
}

/// An f32 with the lower half rounded away.
fn rounded(single: [u8; 4]) -> [u8; 4] {
    let bits = u32::from_le_bytes(single);
    let half = 0x7FFF + (bits >> 16 & 1);
    ((bits + half) & 0xFFFF_0000).to_le_bytes()
}
