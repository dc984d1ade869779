//! Shards as llm.c's own scripts write them, by numpy: read by us; and ours, read as they read them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use safestep::Access;
use safestep::tokens::{IdSource, Packed, Packing, Shard, ShardKind, pack};

/// As `write_datafile` of llm.c's `dev/data/data_common.py` does it, and as its loaders read it.
const SCRIPT: &str = r#"
import sys
import numpy as np

def write(path, magic, version, dtype, ids):
    header = np.zeros(256, dtype=np.int32)
    header[0] = magic
    header[1] = version
    header[2] = len(ids)
    with open(path, "wb") as file:
        file.write(header.tobytes())
        file.write(np.array(ids, dtype=dtype).tobytes())

def read(path, dtype):
    with open(path, "rb") as file:
        header = np.frombuffer(file.read(256 * 4), dtype=np.int32)
        ids = np.frombuffer(file.read(), dtype=dtype)
    assert header[2] == len(ids), path
    return header, ids

folder = sys.argv[1]
ids = [(7 * i) % 50257 for i in range(5000)]
write(f"{folder}/gpt2.bin", 20240520, 1, np.uint16, ids)
write(f"{folder}/llama3.bin", 20240801, 7, np.uint32, [2 * id for id in ids])
for name, dtype, version in [("ours2.bin", np.uint16, 1), ("ours4.bin", np.uint32, 2)]:
    header, found = read(f"{folder}/{name}", dtype)
    assert header[:4].tolist() == [20240520, version, 5000, 50257] and not header[4:].any(), header
    assert found.tolist() == ids, name
"#;

/// A python with numpy: the one on the path, or that of `fixtures/fetch_real.sh`.
fn python() -> Option<PathBuf> {
    let kept = safestep_tests::cases::fixtures().join("real/venv/bin/python");
    let named = std::env::var_os("PYTHON").map(PathBuf::from);
    named.into_iter().chain([PathBuf::from("python3"), kept]).find(|python| {
        let asked = Command::new(python).args(["-c", "import numpy"]).output();
        asked.is_ok_and(|answer| answer.status.success())
    })
}

#[test]
fn llm_c_and_numpy_both_ways() {
    let Some(python) = python() else {
        return safestep_tests::remarks::skipped("no python3 with numpy");
    };
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let ids: Vec<u32> = (0..5000).map(|id| 7 * id % 50_257).collect();
    fs::write(at("ids"), ids.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    for (kind, name) in [(ShardKind::Narrow, "ours2.bin"), (ShardKind::Wide, "ours4.bin")] {
        let packing = Packing { kind, vocabulary: 50_257, shard_ids: None };
        let mut done = Packed::default();
        pack(&safestep::OsDisk, &[at("ids")], IdSource::U32, &at(name), packing, &mut done, &mut |_, _| ())
            .unwrap();
    }
    let ran = Command::new(python).arg("-c").arg(SCRIPT).arg(directory.path()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(read(&at("gpt2.bin")), (ShardKind::Narrow, None, ids.clone()));
    assert_eq!(read(&at("llama3.bin")), (ShardKind::Llama3, None, ids.iter().map(|id| 2 * id).collect()));
}

fn read(path: &Path) -> (ShardKind, Option<u32>, Vec<u32>) {
    let shard = Shard::open(path, Access::Map).unwrap();
    let mut ids = vec![0; usize::try_from(shard.header().ids()).unwrap()];
    shard.read_into(0, &mut ids, None, &mut []).unwrap();
    (shard.header().kind(), shard.header().vocabulary(), ids)
}
