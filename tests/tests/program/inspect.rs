//! `inspect`: what is in a file, for people as a table and for programs as one document.
//!
//! The document's form is a promise to scripts, so small ones are compared to the byte; that the numbers are right is
//! taken from what the reference library reads in the files of other programs.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{fixtures, models_of, run, run_in, skipped, sparse_model};

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    files: Vec<File>,
    totals: Totals,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    path: String,
    header_bytes: u64,
    data_bytes: u64,
    metadata: Option<BTreeMap<String, String>>,
    notes: Vec<BTreeMap<String, String>>,
    tensors: Vec<Tensor>,
}

#[derive(Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Tensor {
    name: String,
    dtype: String,
    shape: Vec<u64>,
    begin: u64,
    end: u64,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Totals {
    tensors: u64,
    parameters: u64,
    bytes: u64,
    by_dtype: BTreeMap<String, Sum>,
}

#[derive(Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Sum {
    tensors: u64,
    parameters: u64,
    bytes: u64,
}

impl Totals {
    /// Asserts that the sums are those over these tensors.
    fn assert_of<'t>(&self, tensors: impl Iterator<Item = &'t Tensor>) {
        let mut by_dtype = BTreeMap::<&str, Sum>::new();
        for tensor in tensors {
            let sum = by_dtype.entry(&tensor.dtype).or_default();
            sum.tensors += 1;
            sum.parameters += tensor.shape.iter().product::<u64>();
            sum.bytes += tensor.end - tensor.begin;
        }
        let found = self.by_dtype.iter().map(|(name, sum)| (name.as_str(), sum));
        assert!(found.eq(by_dtype.iter().map(|(name, sum)| (*name, sum))), "{self:?}");
        let all = |part: fn(&Sum) -> u64| by_dtype.values().map(part).sum::<u64>();
        assert_eq!(self.tensors, all(|sum| sum.tensors));
        assert_eq!(self.parameters, all(|sum| sum.parameters));
        assert_eq!(self.bytes, all(|sum| sum.bytes));
    }
}

/// What the reference library reads in the files of a folder, by file name.
pub(super) fn expected(folder: &str) -> BTreeMap<String, Value> {
    let text = fs::read_to_string(fixtures().join(folder).join("expected.json")).unwrap();
    let mut manifest: Value = serde_json::from_str(&text).unwrap();
    let files = manifest["files"].as_array_mut().unwrap();
    files.drain(..).map(|file| (file["file"].as_str().unwrap().to_string(), file)).collect()
}

#[test]
fn the_document_says_what_the_reference_library_reads() {
    for folder in ["reference", "mlx", "candle", "burn"] {
        let expected = expected(folder);
        let ran = run(["inspect", "--json", folder]);
        let document: Document = serde_json::from_str(ran.expect(0)).unwrap();
        assert_eq!(ran.err, "");
        assert_eq!(document.files.len(), models_of(folder).len());
        document.totals.assert_of(document.files.iter().flat_map(|file| &file.tensors));
        for file in &document.files {
            let name = file.path.strip_prefix(folder).unwrap().trim_start_matches('/');
            agree(file, &expected[name]);
        }
    }
}

/// A file of the document with what the library reads in it.
fn agree(file: &File, expected: &Value) {
    let about = &file.path;
    assert_eq!(json!(file.header_bytes), expected["header_bytes"], "{about}");
    assert_eq!(json!(8 + file.header_bytes + file.data_bytes), expected["bytes"], "{about}");
    assert_eq!(json!(file.metadata), expected["metadata"], "{about}");
    let mut tensors: Vec<Tensor> = expected["tensors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tensor| {
            let mut tensor = tensor.clone();
            tensor.as_object_mut().unwrap().remove("sha256");
            serde_json::from_value(tensor).unwrap()
        })
        .collect();
    assert!(file.tensors.is_sorted_by_key(|tensor| (tensor.begin, tensor.end)), "{about}");
    let mut found: Vec<&Tensor> = file.tensors.iter().collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    tensors.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(found.into_iter().eq(&tensors), "{about}");
    assert!(file.notes.iter().all(|note| note.keys().eq(["id", "message"])), "{about}");
}

#[test]
fn small_documents_to_the_byte() {
    let table = [
        (
            vec!["reference/metadata_one.safetensors"],
            r#"{"files":[{"path":"reference/metadata_one.safetensors","header_bytes":152,"data_bytes":36,"metadata":{"format":"pt"},"notes":[],"tensors":[{"name":"bias","dtype":"F32","shape":[3],"begin":0,"end":12},{"name":"weight","dtype":"F32","shape":[2,3],"begin":12,"end":36}]}],"totals":{"tensors":2,"parameters":9,"bytes":36,"by_dtype":{"F32":{"tensors":2,"parameters":9,"bytes":36}}}}"#,
        ),
        (
            vec!["--filter", "w*", "reference/metadata_one.safetensors", "reference/empty.safetensors"],
            r#"{"files":[{"path":"reference/metadata_one.safetensors","header_bytes":152,"data_bytes":36,"metadata":{"format":"pt"},"notes":[],"tensors":[{"name":"weight","dtype":"F32","shape":[2,3],"begin":12,"end":36}]},{"path":"reference/empty.safetensors","header_bytes":8,"data_bytes":0,"metadata":null,"notes":[],"tensors":[]}],"totals":{"tensors":1,"parameters":6,"bytes":24,"by_dtype":{"F32":{"tensors":1,"parameters":6,"bytes":24}}}}"#,
        ),
        (
            vec!["rules/good_metadata_empty.safetensors", "rules/note_null_metadata.safetensors"],
            r#"{"files":[{"path":"rules/good_metadata_empty.safetensors","header_bytes":72,"data_bytes":4,"metadata":{},"notes":[],"tensors":[{"name":"a","dtype":"F32","shape":[1],"begin":0,"end":4}]},{"path":"rules/note_null_metadata.safetensors","header_bytes":80,"data_bytes":4,"metadata":null,"notes":[{"id":"note.null_metadata","message":"__metadata__ is null (byte 24)"}],"tensors":[{"name":"a","dtype":"F32","shape":[1],"begin":0,"end":4}]}],"totals":{"tensors":2,"parameters":2,"bytes":8,"by_dtype":{"F32":{"tensors":2,"parameters":2,"bytes":8}}}}"#,
        ),
        (
            vec!["rules/note_name_escape.safetensors"],
            r#"{"files":[{"path":"rules/note_name_escape.safetensors","header_bytes":64,"data_bytes":4,"metadata":null,"notes":[{"id":"note.name","message":"1 name is empty or holds control characters (\"\\u{1b}[2J\", byte 9)"}],"tensors":[{"name":"\u001b[2J","dtype":"F32","shape":[1],"begin":0,"end":4}]}],"totals":{"tensors":1,"parameters":1,"bytes":4,"by_dtype":{"F32":{"tensors":1,"parameters":1,"bytes":4}}}}"#,
        ),
    ];
    for (arguments, document) in table {
        let ran = run(["inspect", "--json"].iter().chain(&arguments));
        assert_eq!(ran.expect(0), format!("{document}\n"));
    }
}

#[test]
fn a_bad_file_is_reported_and_the_good_ones_are_shown() {
    let ran = run(["inspect", "--json", "rules/r1_short_one.safetensors", "reference/empty.safetensors"]);
    let document: Document = serde_json::from_str(ran.expect(1)).unwrap();
    assert_eq!(document.files.len(), 1);
    assert!(ran.err.starts_with("rules/r1_short_one.safetensors: R1.short at byte 1: "), "{}", ran.err);

    let ran = run(["inspect", "--json", "none", "rules/r1_short_one.safetensors"]);
    let empty = "{\"files\":[],\"totals\":{\"tensors\":0,\"parameters\":0,\"bytes\":0,\"by_dtype\":{}}}\n";
    assert_eq!(ran.expect(3), empty);
    assert_eq!(ran.err.lines().count(), 2, "{}", ran.err);

    let ran = run(["inspect", "none", "rules/r1_short_one.safetensors"]);
    assert_eq!(ran.expect(3), "");
}

#[test]
fn the_table_is_aligned_sorted_and_filtered() {
    let mixed = "reference/mixed.safetensors";
    let names = |arguments: &[&str]| -> Vec<String> {
        let ran = run(["inspect", mixed].iter().chain(arguments));
        let table = ran.expect(0).split("\n\n").nth(1).unwrap().to_string();
        table.lines().skip(1).map(|line| line.split_whitespace().next().unwrap().to_string()).collect()
    };
    let sizes = |arguments: &[&str]| -> Vec<u64> {
        let ran = run(["inspect", "--json", mixed]);
        let document: Document = serde_json::from_str(ran.expect(0)).unwrap();
        let size = |name: &String| {
            let tensor = document.files[0].tensors.iter().find(|tensor| tensor.name == *name).unwrap();
            tensor.end - tensor.begin
        };
        names(arguments).iter().map(size).collect()
    };
    let mut all = names(&[]);
    assert_eq!(names(&["--sort", "offset"]), all);
    all.sort();
    assert_eq!(names(&["--sort", "name"]), all);
    assert!(sizes(&["-s", "size"]).is_sorted_by(|one, other| one >= other));
    assert_eq!(sizes(&["-s", "size"]).len(), all.len());
}

#[test]
fn a_small_table_to_the_byte() {
    let ran = run(["inspect", "reference/metadata_one.safetensors"]);
    let whole = "\
reference/metadata_one.safetensors: 2 tensors, 9 parameters, 196 B (header 152 B, data from byte 160)
  metadata  format: pt

  name    dtype  shape   parameters  bytes  offset
  bias    F32    [3]              3   12 B       0
  weight  F32    [2, 3]           6   24 B      12

  total  tensors  parameters  bytes
  F32          2           9     36  36 B
  all          2           9     36  36 B
";
    assert_eq!(ran.expect(0), whole);

    let ran = run(["inspect", "-f", "[bc]*", "-f", "{x,y}", "reference/metadata_one.safetensors"]);
    let filtered = "\
reference/metadata_one.safetensors: 2 tensors, 9 parameters, 196 B (header 152 B, data from byte 160)
  filter    1 tensor of them
  metadata  format: pt

  name  dtype  shape  parameters  bytes  offset
  bias  F32    [3]             3   12 B       0

  total  tensors  parameters  bytes
  F32          1           3     12  12 B
  all          1           3     12  12 B
";
    assert_eq!(ran.expect(0), filtered);

    let ran = run(["inspect", "reference/empty.safetensors", "rules/note_name_escape.safetensors"]);
    let two = "\
reference/empty.safetensors: 0 tensors, 0 parameters, 16 B (header 8 B, data from byte 16)

rules/note_name_escape.safetensors: 1 tensor, 1 parameter, 76 B (header 64 B, data from byte 72)
  note      1 name is empty or holds control characters (\"\\u{1b}[2J\", byte 9)

  name       dtype  shape  parameters  bytes  offset
  \\u{1b}[2J  F32    [1]             1    4 B       0

  total of 2 files  tensors  parameters  bytes
  F32                     1           1      4  4 B
  all                     1           1      4  4 B
";
    assert_eq!(ran.expect(0), two);
}

#[test]
fn patterns_are_of_whole_names() {
    let count = |pattern: &str| {
        let ran = run(["inspect", "--json", "--filter", pattern, "reference/transformer_297.safetensors"]);
        serde_json::from_str::<Document>(ran.expect(0)).unwrap().files[0].tensors.len()
    };
    let all = count("*");
    assert!(all > 250, "{all}");
    for (pattern, expected) in [("", 0), ("weight", 0), ("?*", all), ("no such name", 0), ("{*,x}", all)] {
        assert_eq!(count(pattern), expected, "{pattern:?}");
    }
    let weights = count("*.weight");
    assert!(0 < weights && weights <= all, "{weights}");
    // What is no pattern is wrong usage.
    let ran = run(["inspect", "--filter", "[", "reference/empty.safetensors"]);
    assert!(ran.expect(2).is_empty() && ran.err.contains("unclosed"), "{ran:?}");
}

#[test]
fn a_file_of_100_gigabytes_answers_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let len = 100_000_000_000;
    let path = directory.path().join("large.safetensors");
    if fs::File::create(&path).and_then(|file| file.set_len(len)).is_err() {
        skipped("the file system has no files of 100 GB");
        return;
    }
    sparse_model(&path, len);
    let began = Instant::now();
    let ran = run_in(directory.path(), ["inspect", "large.safetensors"]);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(
        ran.expect(0).starts_with("large.safetensors: 1 tensor, 100.0 billion parameters, 100.0 GB "),
        "{ran:?}"
    );
}
