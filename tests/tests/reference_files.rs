//! Files that other programs wrote, against what the reference library reads in them.
//!
//! `expected.json` beside the files was made by the library: names, dtypes, shapes, offsets, metadata, and the SHA-256
//! of every tensor's bytes. That guards against a reader and a twin that agree in an error. The last column is the
//! checksum of what the library writes for the same content: the rewriter has to come to the same bytes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use safestep::{Access, Model, OsDisk};
use safestep_core::{Entry, Limits};
use safestep_tests::cases::fixtures;
use safestep_tests::oracle;
use sha2::{Digest, Sha256};

#[derive(serde::Deserialize)]
struct Manifest {
    files: Vec<Expected>,
}

#[derive(serde::Deserialize)]
struct Expected {
    file: String,
    bytes: u64,
    sha256: String,
    header_bytes: u64,
    canonical_sha256: Option<String>,
    metadata: Option<BTreeMap<String, String>>,
    tensors: Vec<Tensor>,
}

#[derive(Debug, PartialEq, Eq, serde::Deserialize)]
struct Tensor {
    name: String,
    dtype: String,
    shape: Vec<u64>,
    begin: u64,
    end: u64,
    sha256: String,
}

/// How many files a folder holds at least, so that an empty manifest is no success.
const FOLDERS: [(&str, usize); 4] = [("reference", 25), ("mlx", 8), ("candle", 5), ("burn", 4)];

fn manifest(folder: &str) -> Vec<Expected> {
    let text = std::fs::read_to_string(fixtures().join(folder).join("expected.json")).unwrap();
    serde_json::from_str::<Manifest>(&text).unwrap().files
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// What a tensor is, its bytes read in pieces of an odd size.
fn read(model: &Model, entry: &Entry<'_>) -> Tensor {
    let mut bytes = vec![0; usize::try_from(entry.span().len().value()).unwrap()];
    for (number, piece) in bytes.chunks_mut(1_021).enumerate() {
        model.read_into(entry, 1_021 * number as u64, piece).unwrap();
    }
    if let Some(view) = model.view(entry) {
        assert!(view.bytes() == bytes);
    }
    Tensor {
        name: entry.name().to_string(),
        dtype: entry.dtype().to_string(),
        shape: entry.shape().dims().collect(),
        begin: entry.span().begin().value(),
        end: entry.span().end().value(),
        sha256: sha256(&bytes),
    }
}

/// The manifest's order, in which tensors at one place stand by name and not by their place in the header.
fn sorted(mut tensors: Vec<Tensor>) -> Vec<Tensor> {
    tensors.sort_by(|one, other| (one.begin, one.end, &one.name).cmp(&(other.begin, other.end, &other.name)));
    tensors
}

#[test]
fn files_of_other_programs_are_read_as_the_reference_reads_them() {
    for (folder, files_min) in FOLDERS {
        let files = manifest(folder);
        assert!(files.len() >= files_min, "{folder}: {}", files.len());
        for expected in files {
            let path = fixtures().join(folder).join(&expected.file);
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!((bytes.len() as u64, sha256(&bytes)), (expected.bytes, expected.sha256));
            for access in [Access::Map, Access::Read] {
                let model = Model::open(&path, access, Limits::default()).unwrap();
                assert_eq!(model.frame().header_len().value(), expected.header_bytes);
                let index = model.index();
                let metadata = index.metadata().map(|pairs| {
                    pairs.map(|(key, value)| (key.to_string(), value.to_string())).collect::<BTreeMap<_, _>>()
                });
                assert_eq!(metadata, expected.metadata, "{}", path.display());
                let tensors = sorted(index.iter().map(|entry| read(&model, &entry)).collect());
                assert_eq!(tensors, expected.tensors, "{}", path.display());
                for tensor in &tensors {
                    assert_eq!(
                        index.get(&tensor.name).map(|entry| read(&model, &entry)).as_ref(),
                        Some(tensor)
                    );
                }
            }
        }
    }
}

#[test]
fn files_of_other_programs_go_through_the_oracles() {
    for (folder, _) in FOLDERS {
        for expected in manifest(folder) {
            let bytes = std::fs::read(fixtures().join(folder).join(&expected.file)).unwrap();
            oracle::header(&bytes, bytes.len() as u64);
            oracle::index(&bytes, bytes.len() as u64);
            oracle::rewrite(&bytes, bytes.len() as u64);
        }
    }
}

#[test]
fn files_of_other_programs_are_rewritten_as_the_reference_writes_them() {
    let directory = tempfile::tempdir().unwrap();
    let mut same = 0;
    for (folder, _) in FOLDERS {
        for expected in manifest(folder) {
            let path = fixtures().join(folder).join(&expected.file);
            let Some(canonical_sha256) = expected.canonical_sha256 else { continue };
            let output = directory.path().join("output");
            rewrite(&path, &output);
            let bytes = std::fs::read(&output).unwrap();
            assert_eq!(sha256(&bytes), canonical_sha256, "{}", path.display());
            // What is canonical stays as it is, also when it is written over itself.
            rewrite(&output, &output);
            assert!(std::fs::read(&output).unwrap() == bytes);
            same += 1;
        }
    }
    println!("{same} files rewritten");
    assert!(same > 40, "{same}");
}

fn rewrite(input: &Path, output: &Path) {
    safestep::rewrite(&OsDisk, input, output, Limits::default(), &mut |_, _| ()).unwrap();
}
