//! Model files through the library: what opens by map opens by `pread` with the same answer; what streams out arrives
//! whole or not at all, whatever the sizes of the pieces and whichever call to the disk fails.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use safestep::{Access, Blame, Cause, Error, Model, ModelWriter, OsDisk, Refusal, TensorPlan, rewrite};
use safestep_core::{Dtype, DtypeSet, Frame, Limits};
use safestep_tests::cases::{Case, Verdict, cases};
use safestep_tests::disk_faults::{EIO, ENOSPC, Fault, SimulatedDisk, Standing};

fn limits(case: &Case) -> Limits {
    let mut limits = Limits::default();
    if let Some(bytes) = case.limit_header_bytes {
        limits = limits.header_bytes(bytes);
    }
    if let Some(names) = &case.allow_dtypes {
        let dtypes: Vec<Dtype> = names.iter().map(|name| Dtype::from_name(name).unwrap()).collect();
        limits = limits.dtypes(DtypeSet::of(&dtypes));
    }
    limits
}

/// All that an opened file says, or its verdict.
fn answer(path: &Path, access: Access, limits: Limits) -> String {
    let model = match Model::open(path, access, limits) {
        Ok(model) => model,
        Err(error) => {
            assert_eq!(error.blame(), Blame::Data, "{error}");
            return error.to_string();
        }
    };
    let index = model.index();
    let mut answer = format!("{:?} {:?}", model.frame(), index.notes().collect::<Vec<_>>());
    answer += &format!("{:?}", index.metadata().map(Iterator::collect::<Vec<_>>));
    for entry in index.iter() {
        let mut bytes = vec![0; usize::try_from(entry.span().len().value()).unwrap()];
        model.read_into(&entry, 0, &mut bytes).unwrap();
        if let Some(view) = model.view(&entry) {
            assert_eq!(view.bytes(), bytes);
        }
        answer += &format!("{entry:?} {bytes:?}");
    }
    answer
}

#[test]
fn a_map_and_pread_give_the_same_answer() {
    let mut good = 0;
    for case in cases().iter().filter(|case| case.file_len.is_none()) {
        let mapped = answer(&case.path(), Access::Map, limits(case));
        assert_eq!(mapped, answer(&case.path(), Access::Read, limits(case)), "{}", case.name);
        match case.verdict {
            Verdict::Good => good += 1,
            Verdict::Bad => {
                assert!(mapped.contains(case.rule.as_deref().unwrap()), "{}: {mapped}", case.name);
            }
        }
        if case.seems.is_some() {
            assert!(mapped.contains("seems to be"), "{}: {mapped}", case.name);
        }
    }
    assert!(good > 100);
}

fn plan() -> Vec<TensorPlan> {
    let tensor =
        |name: &str, dtype, shape: &[u64]| TensorPlan { name: name.into(), dtype, shape: shape.to_vec() };
    vec![
        tensor("codes", Dtype::U8, &[5]),
        tensor("empty", Dtype::F32, &[3, 0]),
        tensor("weight", Dtype::Bf16, &[50, 400]),
        tensor("step", Dtype::I64, &[]),
        tensor("nibbles", Dtype::F4, &[2]),
    ]
}

/// The data of [`plan`] in the order of the layout: step, empty, weight, codes, nibbles.
fn data() -> Vec<u8> {
    (0..8 + 50 * 400 * 2 + 5 + 1_u32).map(|n| ((n * 7919) >> 3) as u8).collect()
}

fn write(disk: &impl safestep::Disk, path: &Path, pieces: usize) -> Result<(), Error> {
    let mut writer = ModelWriter::create(disk, path, &plan(), Some(&[("format".into(), "pt".into())]))?;
    for piece in data().chunks(pieces) {
        writer.write(piece)?;
    }
    assert_eq!(writer.next_tensor(), None);
    writer.finish()
}

#[test]
fn the_size_of_the_pieces_does_not_matter() {
    let room = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for pieces in [1, 7, 8, 4096, 1 << 20] {
        let path = room.path().join(format!("{pieces}"));
        write(&OsDisk, &path, pieces).unwrap();
        files.push(fs::read(path).unwrap());
    }
    assert!(files.iter().all(|file| *file == files[0]));
    let frame = Frame::read(&files[0], files[0].len() as u64, Limits::default()).unwrap();
    assert_eq!(frame.data_span().of(&files[0]).unwrap(), data());
    let header = frame.header(frame.header_span().of(&files[0]).unwrap()).unwrap();
    let judged = header.judge().unwrap();
    assert_eq!(
        judged.iter().map(|entry| entry.name().to_string()).collect::<Vec<_>>(),
        ["step", "empty", "weight", "codes", "nibbles"]
    );
    assert_eq!(judged.notes().count(), 0);
    // With one metadata key, the reference library writes the same bytes.
    let tensors = safetensors::SafeTensors::deserialize(&files[0]).unwrap();
    let metadata = [("format".to_string(), "pt".to_string())].into_iter().collect();
    assert_eq!(safetensors::serialize(tensors.tensors(), Some(metadata)).unwrap(), files[0]);
}

/// W5, and data that does not fit: nothing appears, the old file stays.
#[test]
fn what_does_not_fit_is_refused_and_leaves_nothing() {
    let tensor =
        |name: &str, dtype, shape: &[u64]| TensorPlan { name: name.into(), dtype, shape: shape.to_vec() };
    let u8 = |name: &str| tensor(name, Dtype::U8, &[1]);
    let pair = |key: &str| (key.to_string(), String::new());
    let one = vec![u8("a")];
    type Refused<'a> = (Vec<TensorPlan>, Vec<(String, String)>, usize, Refusal, &'a str);
    let named = |name: &str| name.to_string();
    let cases: Vec<Refused<'_>> = vec![
        (vec![u8("a"), u8("b"), u8("a")], vec![], 3, Refusal::NameTwice { name: named("a") }, "twice"),
        (
            vec![u8("a"), tensor("a", Dtype::F32, &[1])],
            vec![],
            5,
            Refusal::NameTwice { name: named("a") },
            "twice",
        ),
        (vec![u8("__metadata__")], vec![], 1, Refusal::NameReserved, "__metadata__"),
        (
            vec![tensor("n", Dtype::F4, &[3])],
            vec![],
            2,
            Refusal::Bits { name: named("n"), found: 12 },
            "12 bits",
        ),
        (
            vec![tensor("n", Dtype::F6E2M3, &[2])],
            vec![],
            2,
            Refusal::Bits { name: named("n"), found: 12 },
            "12 bits",
        ),
        (
            vec![tensor("n", Dtype::U8, &[1 << 40, 1 << 40])],
            vec![],
            0,
            Refusal::Overflow { name: named("n") },
            "64 bits",
        ),
        (
            vec![tensor("n", Dtype::F64, &[1 << 62])],
            vec![],
            0,
            Refusal::Overflow { name: named("n") },
            "64 bits",
        ),
        (
            vec![tensor("n", Dtype::U8, &[u64::MAX])],
            vec![],
            0,
            Refusal::Overflow { name: named("n") },
            "64 bits",
        ),
        (one.clone(), vec![pair("k"), pair("k")], 1, Refusal::KeyTwice { key: named("k") }, "key"),
        (
            one.clone(),
            vec![(String::new(), "x".repeat(100_000_000))],
            1,
            Refusal::HeaderTooLong { found: 100_000_080 },
            "100000000",
        ),
        (
            one.clone(),
            vec![],
            0,
            Refusal::DataShort { name: named("a"), expected: 1, found: 0 },
            "1 bytes for \"a\", found 0",
        ),
        (one, vec![], 2, Refusal::DataSurplus { unit: "bytes", found: 1 }, "1 bytes behind the last"),
    ];
    for (plan, metadata, bytes, refusal, words) in cases {
        let disk = SimulatedDisk::holding([("model", Standing::File(b"old".to_vec()))]);
        let made = ModelWriter::create(&disk, "model", &plan, Some(&metadata)).and_then(|mut writer| {
            writer.write(&vec![0; bytes])?;
            writer.finish()
        });
        let error = made.expect_err(words);
        assert!(matches!(error.because(), Cause::Refused(found) if *found == refusal), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(error.blame(), Blame::Caller);
        assert_eq!(disk.live(), SimulatedDisk::holding([("model", Standing::File(b"old".to_vec()))]).live());
    }
}

/// After the first error a writer refuses everything, whatever is asked of it.
#[test]
fn a_writer_that_has_refused_writes_no_more() {
    let old = || SimulatedDisk::holding([("model", Standing::File(b"old".to_vec()))]);
    let plan = [TensorPlan { name: "a".into(), dtype: Dtype::U8, shape: vec![4] }];
    let disk = old();
    let mut writer = ModelWriter::create(&disk, "model", &plan, None).unwrap();
    let error = writer.write(&[0; 5]).unwrap_err();
    assert!(matches!(error.because(), Cause::Refused(Refusal::DataSurplus { found: 1, .. })), "{error}");
    assert_eq!(disk.live(), old().live());
    assert!(writer.write(&[0]).is_err());
    let error = writer.finish().unwrap_err();
    assert!(matches!(error.because(), Cause::Abandoned), "{error}");
    assert_eq!(disk.live(), old().live());

    // A disk that fails ends it too; nobody is blamed for the bytes that are missing then.
    let long = [TensorPlan { shape: vec![1 << 20], ..plan[0].clone() }];
    let calls = |disk: &SimulatedDisk| disk.calls().len();
    let begun = old();
    drop(ModelWriter::create(&begun, "model", &long, None).unwrap());
    // The last call was the removal; in its place stands the first write.
    let disk = old().fail_at(calls(&begun) - 1, Fault::Error(EIO));
    let mut writer = ModelWriter::create(&disk, "model", &long, None).unwrap();
    let error = writer.write(&[0; 1 << 19]).unwrap_err();
    assert!(matches!(error.because(), Cause::Io(_)), "{error}");
    let error = writer.finish().unwrap_err();
    assert!(matches!(error.because(), Cause::Abandoned), "{error}");
    assert_eq!(disk.live(), old().live());
}

#[test]
fn whichever_call_fails_the_old_file_stays() {
    let old = || SimulatedDisk::holding([("model", Standing::File(b"old".to_vec()))]);
    let undisturbed = old();
    write(&undisturbed, Path::new("model"), 1000).unwrap();
    let calls = undisturbed.calls().len();
    assert!(calls >= 7, "{calls}");
    for call in 0..calls {
        for errno in [EIO, ENOSPC] {
            let disk = old().fail_at(call, Fault::Error(errno));
            match write(&disk, Path::new("model"), 1000) {
                // The directory could not be synced: the new file is there, and the error says so.
                Err(error) if error.is_in_place() => assert_eq!(disk.live(), undisturbed.live()),
                Err(error) => {
                    assert_eq!(error.blame(), Blame::Machine);
                    assert_eq!(disk.live(), old().live(), "call {call}: {error}");
                }
                // A disk may have no way to make room ahead, and nothing else may fail unnoticed.
                Ok(()) => panic!("call {call} failed with {errno} and nobody said so"),
            }
        }
    }
}

#[test]
fn a_model_is_rewritten_in_place_through_a_link_with_its_mode() {
    let room = tempfile::tempdir().unwrap();
    let (model, link) = (room.path().join("model.safetensors"), room.path().join("link"));
    // Out of order, misaligned and oddly padded.
    let header = b"{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]}}\n\n";
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header);
    file.extend([9, 1, 2, 3, 4]);
    fs::write(&model, file).unwrap();
    fs::set_permissions(&model, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("model.safetensors", &link).unwrap();
    let before = Model::open(&link, Access::Read, Limits::default()).unwrap();
    let notes: Vec<_> = before.index().notes().map(|note| note.kind.id()).collect();
    assert_eq!(notes, ["note.header_length", "note.alignment", "note.padding", "note.order"]);
    drop(before);

    let done = rewrite(&OsDisk, &link, &link, Limits::default(), &mut |_, _| ()).unwrap();
    assert_eq!((done.tensors, done.data_bytes), (2, 5));
    let found = fs::metadata(&model).unwrap();
    assert_eq!((found.len(), found.mode() & 0o777), (done.file_bytes, 0o640));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let model = Model::open(&link, Access::Map, Limits::default()).unwrap();
    assert_eq!(model.index().notes().count(), 0);
    let bytes = |name| model.view(&model.index().get(name).unwrap()).unwrap().bytes().to_vec();
    assert_eq!((bytes("a"), bytes("b")), (vec![1, 2, 3, 4], vec![9]));
    assert_eq!(fs::read_dir(room.path()).unwrap().count(), 2);
}

#[test]
fn a_file_that_shrinks_is_an_error_and_the_output_stays() {
    let room = tempfile::tempdir().unwrap();
    let path = room.path().join("model");
    write(&OsDisk, &path, 1 << 20).unwrap();
    let model = Model::open(&path, Access::Read, Limits::default()).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(model.frame().file_len().value() - 3).unwrap();
    let entry = model.index().get("nibbles").unwrap();
    let error = model.read_into(&entry, 0, &mut [0]).unwrap_err();
    assert!(matches!(error.because(), Cause::Shrank { .. }), "{error}");
    let error = model.read_into(&entry, 0, &mut [0; 2]).unwrap_err();
    assert!(matches!(error.because(), Cause::PastEnd { .. }), "{error}");

    // Shorter from the start: bad data, and no output.
    let out = room.path().join("out");
    let error = rewrite(&OsDisk, &path, &out, Limits::default(), &mut |_, _| ()).unwrap_err();
    assert!(error.to_string().contains("R5.past_end") && !out.exists(), "{error}");
}
