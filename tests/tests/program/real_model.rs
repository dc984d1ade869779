//! One real model of 90 MB, fetched by `fixtures/fetch_real.sh`, against what the reference library says of it.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use super::inspect::expected;
use super::rewrite::sha256;
use super::{fixtures, run, skipped};

const MODEL: &str = "real/model.safetensors";

#[test]
fn inspect_check_and_rewrite_a_real_model() {
    if !fixtures().join(MODEL).exists() {
        skipped("the real model is not there; sh fixtures/fetch_real.sh fetches it");
        return;
    }
    let expected = expected("real").remove("model.safetensors").unwrap();

    let ran = run(["check", MODEL]);
    assert_eq!(ran.expect(0), format!("{MODEL}: good\n"));

    let ran = run(["inspect", "--json", MODEL]);
    let document: Value = serde_json::from_str(ran.expect(0)).unwrap();
    let file = &document["files"][0];
    for key in ["header_bytes", "metadata"] {
        assert_eq!(file[key], expected[key], "{key}");
    }
    let mut tensors = expected["tensors"].clone();
    for tensor in tensors.as_array_mut().unwrap() {
        tensor.as_object_mut().unwrap().remove("sha256");
    }
    assert_eq!(by_name(&file["tensors"]), by_name(&tensors));
    assert_eq!(document["totals"]["tensors"], json!(tensors.as_array().unwrap().len()));
    assert_eq!(document["totals"]["bytes"], file["data_bytes"]);

    let ran = run(["inspect", MODEL]);
    assert!(
        ran.expect(0).starts_with(&format!("{MODEL}: 104 tensors, 22.7 million parameters, 90.9 MB ")),
        "{ran:?}"
    );

    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("out.safetensors");
    let ran = run(["rewrite".as_ref(), MODEL.as_ref(), output.as_os_str()]);
    ran.expect(0);
    assert_eq!(json!(sha256(&output)), expected["canonical_sha256"]);
    assert!(fs::read(&output).unwrap() == fs::read(fixtures().join("real/canonical.safetensors")).unwrap());
}

fn by_name(tensors: &Value) -> BTreeMap<&str, &Value> {
    tensors.as_array().unwrap().iter().map(|tensor| (tensor["name"].as_str().unwrap(), tensor)).collect()
}
