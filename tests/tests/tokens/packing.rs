//! Ids become shards: what was given comes back, and what must not be is not begun.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use safestep::tokens::{IdSource, Packed, Packing, Shard, ShardKind, pack};
use safestep::{Access, Cause, Error, OsDisk};
use safestep_tests::disk_faults::{Call, ENOSPC, Fault, Image, SimulatedDisk, Standing, crash_at_every_call};
use safestep_tests::tokens::twin::shard_file;

fn packed(inputs: &[PathBuf], from: IdSource, out: &Path, packing: Packing) -> Result<Packed, Error> {
    let mut packed = Packed::default();
    pack(&OsDisk, inputs, from, out, packing, &mut packed, &mut |_, _| ()).map(|()| packed)
}

const NARROW: Packing = Packing { kind: ShardKind::Narrow, vocabulary: 300, shard_ids: None };

#[test]
fn every_source_gives_its_ids() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let long: Vec<u32> = (0..150_000).map(|id| id % 299).collect();
    let u16s: Vec<u8> = long.iter().flat_map(|&id| (id as u16).to_le_bytes()).collect();
    let u32s: Vec<u8> = long.iter().flat_map(|id| id.to_le_bytes()).collect();
    let text: String =
        long.iter().map(|id| format!("{id}{}", if id % 7 == 0 { "\r\n" } else { " " })).collect();
    type Row<'a> = (IdSource, &'a [&'a [u8]], &'a [u32]);
    let table: &[Row<'_>] = &[
        (IdSource::Bytes, &[b"abc", b"", b"\xff"], &[97, 98, 99, 255]),
        (IdSource::Bytes, &[b""], &[]),
        (IdSource::U16, &[&[1, 0, 2, 1]], &[1, 258]),
        (IdSource::U32, &[&[1, 0, 0, 0], &[2, 1, 0, 0]], &[1, 258]),
        (IdSource::Text, &[b"1 2\n\t299", b"  007", b" \n"], &[1, 2, 299, 7]),
        (IdSource::U16, &[&u16s], &long),
        (IdSource::U32, &[&u32s], &long),
        (IdSource::Text, &[text.as_bytes()], &long),
    ];
    for (place, (from, inputs, ids)) in table.iter().enumerate() {
        let mut paths = Vec::new();
        for (number, input) in inputs.iter().enumerate() {
            paths.push(at(&format!("in{number}")));
            fs::write(&paths[number], input).unwrap();
        }
        for (kind, magic, version) in [(ShardKind::Narrow, 20_240_520, 1), (ShardKind::Wide, 20_240_520, 2)] {
            let out = at("out.bin");
            let done = packed(&paths, *from, &out, Packing { kind, ..NARROW }).unwrap();
            assert_eq!(fs::read(&out).unwrap(), shard_file(magic, version, 300, ids), "{place}");
            assert_eq!((done.ids, done.shards), (ids.len() as u64, vec![out.clone()]));
            assert_eq!(done.bytes, fs::metadata(&out).unwrap().len());
        }
    }
}

#[test]
fn cut_into_shards() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("in"), (0..=255).cycle().take(200_000).collect::<Vec<u8>>()).unwrap();
    let packing = Packing { shard_ids: Some(70_000), ..NARROW };
    let done = packed(&[at("in")], IdSource::Bytes, &at("train.bin"), packing).unwrap();
    let names = ["train_000000.bin", "train_000001.bin", "train_000002.bin"].map(at);
    assert_eq!(done.shards, names);
    let counts = names.each_ref().map(|path| Shard::open(path, Access::Read).unwrap().header().ids());
    assert_eq!(counts, [70_000, 70_000, 60_000]);
    let mut first = [0_i64; 1];
    Shard::open(&names[1], Access::Map).unwrap().read_into(0, &mut first, None, &mut []).unwrap();
    assert_eq!(first, [70_000 % 256]);
    // A shorter set must not be left with the end of a longer one.
    let packing = Packing { shard_ids: Some(100_000), ..NARROW };
    let error = packed(&[at("in")], IdSource::Bytes, &at("train.bin"), packing).unwrap_err();
    let says = "train_000002.bin: it belongs to another set; this one has 2 shards";
    assert!(error.to_string().ends_with(says), "{error}");
    assert_eq!(Shard::open(&names[0], Access::Read).unwrap().header().ids(), 70_000);
    // Even shards have no empty one behind them, and no ids are one empty shard.
    for (len, shards) in [(0, 1), (1, 1), (9, 1), (10, 1), (11, 2), (20, 2)] {
        fs::write(at("few"), vec![1; len]).unwrap();
        let out = at(&format!("few{len}"));
        let packing = Packing { shard_ids: Some(10), ..NARROW };
        let done = packed(&[at("few")], IdSource::Bytes, &out, packing).unwrap();
        assert_eq!((done.shards.len(), done.ids), (shards, len as u64));
    }
}

#[test]
fn bad_ids_are_told_with_their_place_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("out.bin"), "old").unwrap();
    let good = vec![b'1'; 70_000].chunks(1).collect::<Vec<_>>().join(&b' ');
    let late = [&good[..], b" 300"].concat();
    let table: &[(IdSource, &[u8], u32, &str)] = &[
        (IdSource::Bytes, b"ab\xff", 255, "id 2, at byte 2, is 255: it is outside the vocabulary of 255"),
        (IdSource::U16, &[0, 0, 44, 1], 300, "id 1, at byte 2, is 300: it is outside the vocabulary of 300"),
        (IdSource::U32, &[0, 0, 1, 0], 0, "id 0, at byte 0, is 65536: the largest id of 2 bytes is 65535"),
        (IdSource::U32, &[0, 0, 1, 0], 70_000, "the largest id of 2 bytes is 65535"),
        (IdSource::U32, &[0, 0, 1, 0], 300, "is 65536: it is outside the vocabulary of 300"),
        (IdSource::U32, &[0, 0, 1, 0], 65_536, "is 65536: it is outside the vocabulary of 65536"),
        (IdSource::U32, &[0, 0, 1, 0], 65_537, "is 65536: the largest id of 2 bytes is 65535"),
        (IdSource::Text, b"1 22 300", 300, "id 2, at byte 5, is 300: it is outside"),
        (IdSource::Text, &late, 300, "id 70000, at byte 140000, is 300: it is outside"),
        (IdSource::Text, b"1 2,3", 300, "white space between them, found byte 0x2c at byte 3"),
        (IdSource::Text, b"1 -2", 300, "found byte 0x2d at byte 2"),
        (IdSource::Text, b"7 4294967296", 0, "the number at byte 2 is above 4294967295"),
        (IdSource::U16, b"abc", 0, "expected ids of 2 bytes each, found 3 bytes"),
        (IdSource::U16, b"a", 0, "expected ids of 2 bytes each, found 1 byte"),
        (IdSource::U32, b"abcdef", 0, "expected ids of 4 bytes each, found 6 bytes"),
    ];
    for (from, input, vocabulary, says) in table {
        fs::write(at("in"), input).unwrap();
        let packing = Packing { vocabulary: *vocabulary, ..NARROW };
        let error = packed(&[at("in")], *from, &at("out.bin"), packing).unwrap_err();
        assert!(matches!(error.because(), Cause::BadIds(_)), "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(error.path(), at("in"));
        assert_eq!(fs::read(at("out.bin")).unwrap(), b"old");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}

/// More ids than a header can count, from a sparse file: refused before a byte is written.
#[test]
fn more_ids_than_a_shard_can_have() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::File::create(at("in")).unwrap().set_len(1 << 31).unwrap();
    let error = packed(&[at("in")], IdSource::Bytes, &at("out.bin"), NARROW).unwrap_err();
    assert!(error.to_string().contains("2147483648 ids are more than a shard can have"), "{error}");
    assert!(!at("out.bin").exists());
}

/// Shards are an input of their own, and no other: as raw numbers their headers would be ids.
#[test]
fn shards_from_shards() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let forms = [("narrow", 20_240_520, 1), ("wide", 20_240_520, 2), ("llama", 20_240_801, 7)];
    let paths = forms.map(|(name, ..)| at(name));
    let mut all = Vec::new();
    for ((_, magic, version), path) in forms.iter().zip(&paths) {
        let ids: Vec<u32> = (0..40_000).map(|place| place * *version as u32 % 299).collect();
        fs::write(path, shard_file(*magic, *version, 0, &ids)).unwrap();
        all.extend(ids);
    }
    for (kind, version) in [(ShardKind::Narrow, 1), (ShardKind::Wide, 2)] {
        let done = packed(&paths, IdSource::Shard, &at("out"), Packing { kind, ..NARROW }).unwrap();
        assert_eq!(done.ids, 120_000);
        assert!(fs::read(at("out")).unwrap() == shard_file(20_240_520, version, 300, &all));
    }
    let packing = Packing { vocabulary: 298, ..NARROW };
    let error = packed(&paths[1..], IdSource::Shard, &at("bad"), packing).unwrap_err();
    let says = "wide: id 149, at byte 1620, is 298: it is outside the vocabulary of 298";
    assert!(error.to_string().ends_with(says), "{error}");

    let whole = fs::read(&paths[0]).unwrap();
    fs::write(at("short"), &whole[..5000]).unwrap();
    fs::write(at("front"), &whole[..1024]).unwrap();
    fs::write(at("no shard"), &whole[..1020]).unwrap();
    for from in [IdSource::Bytes, IdSource::U16, IdSource::U32] {
        for name in ["narrow", "wide", "llama", "short", "front"] {
            let wide = Packing { kind: ShardKind::Wide, vocabulary: 0, shard_ids: None };
            let error = packed(&[at(name)], from, &at("bad"), wide).unwrap_err();
            let says = format!("{name}: it is a shard, and its header would become ids: pack it from shard");
            assert!(error.to_string().ends_with(&says), "{error}");
        }
    }
    packed(&[at("no shard")], IdSource::Bytes, &at("out"), NARROW).unwrap();
    for (name, says) in [("short", "T1.size at byte 5000"), ("no shard", "T1.short at byte 1020")] {
        let error = packed(&[at(name)], IdSource::Shard, &at("bad"), NARROW).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
    assert!(!at("bad").exists());
}

/// An input is not what is written, by whatever name: the file that holds the only copy of the ids must not be replaced by them.
#[test]
fn an_input_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let files = ["in.bin", "a_000000.bin", "a_000002.bin"];
    for name in files {
        fs::write(at(name), [1; 30]).unwrap();
    }
    symlink("in.bin", at("link.bin")).unwrap();
    fs::hard_link(at("in.bin"), at("hard.bin")).unwrap();
    symlink("a_000002.bin", at("b_000001.bin")).unwrap();
    let before = fs::read_dir(directory.path()).unwrap().count();
    // The input, the output, after how many ids it is cut, and which of the shards is the input.
    let table: &[(&str, &str, Option<u32>, Option<&str>)] = &[
        ("in.bin", "in.bin", None, Some("in.bin")),
        ("in.bin", "link.bin", None, Some("link.bin")),
        ("in.bin", "hard.bin", None, Some("hard.bin")),
        ("link.bin", "in.bin", None, Some("in.bin")),
        ("a_000000.bin", "a.bin", Some(30), Some("a_000000.bin")),
        ("a_000002.bin", "a.bin", Some(10), Some("a_000002.bin")),
        ("a_000002.bin", "b.bin", Some(15), Some("b_000001.bin")),
    ];
    for (input, output, shard_ids, culprit) in table {
        let packing = Packing { shard_ids: *shard_ids, ..NARROW };
        for from in [IdSource::Bytes, IdSource::Text] {
            let ids = if from == IdSource::Text { b"1\n".repeat(30) } else { vec![1; 30] };
            fs::write(at(input), &ids).unwrap();
            let error = packed(&[at("link.bin"), at(input)][1..], from, &at(output), packing).unwrap_err();
            let says = format!("it would be replaced by the shard {}", at(culprit.unwrap()).display());
            assert!(error.to_string().ends_with(&says), "{input} {output}: {error}");
            assert_eq!((error.path(), fs::read(at(input)).unwrap()), (at(input).as_path(), ids));
        }
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), before);
    // A third shard that is not written is no matter; that it belongs to another set is.
    let packing = Packing { shard_ids: Some(15), ..NARROW };
    fs::write(at("a_000002.bin"), [1; 30]).unwrap();
    let error = packed(&[at("a_000002.bin")], IdSource::Bytes, &at("a.bin"), packing).unwrap_err();
    assert!(error.to_string().contains("a_000002.bin: it belongs to another set"), "{error}");
    packed(&[at("a_000002.bin")], IdSource::Bytes, &at("c.bin"), packing).unwrap();
}

/// As many digits as the last number has, so that a reader in name order meets the shards in theirs.
#[test]
fn more_than_a_million_shards() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("in");
    let packing = Packing { shard_ids: Some(1), ..NARROW };
    let try_on = |disk: &SimulatedDisk| {
        let (mut packed, inputs) = (Packed::default(), [input.clone()]);
        let done = pack(
            disk,
            &inputs,
            IdSource::Bytes,
            Path::new("run/a.bin"),
            packing,
            &mut packed,
            &mut |_, _| (),
        );
        done.unwrap_err().to_string()
    };
    // On a disk that makes no file the first one says what it is called.
    for (shards, first, behind) in [
        (1_000_000, "run/a_000000.bin", "run/a_1000000.bin"),
        (1_000_001, "run/a_0000000.bin", "run/a_1000001.bin"),
    ] {
        fs::File::create(&input).unwrap().set_len(shards).unwrap();
        let disk = SimulatedDisk::holding([("other", Standing::Directory)]);
        let error = try_on(&disk);
        assert!(error.contains(first), "{error}");
        assert!(disk.calls().contains(&Call::Look(behind.into())), "{error}");
    }
    // Sets with other digits would be read between ours.
    for (shards, other) in [(3, "run/a_0000000.bin"), (3, "run/a_0000000000.bin"), (3, "run/a_000003.bin")] {
        fs::File::create(&input).unwrap().set_len(shards).unwrap();
        let error = try_on(&SimulatedDisk::holding([(other, Standing::File(Vec::new()))]));
        assert!(
            error.contains(&format!("{other}: it belongs to another set; this one has 3 shards")),
            "{error}"
        );
    }
}

/// A directory is no name of shards: they would stand beside it.
#[test]
fn a_directory_is_no_name() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("in"), [1; 30]).unwrap();
    fs::create_dir(at("deep")).unwrap();
    symlink("deep", at("link")).unwrap();
    for output in ["deep", "link", "deep/", "new/", "new/.", "..", "."] {
        for shard_ids in [None, Some(10)] {
            let error = packed(&[at("in")], IdSource::Bytes, &at(output), Packing { shard_ids, ..NARROW });
            let error = error.unwrap_err().to_string();
            assert!(error.ends_with("it is a directory, not a regular file"), "{output}: {error}");
        }
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3);
}

/// Three shards of which the second replaces a file, on a disk in memory.
fn packed_on(disk: &SimulatedDisk, input: &Path) -> (Result<(), Error>, Packed) {
    let packing = Packing { shard_ids: Some(40_000), ..NARROW };
    let (mut packed, inputs) = (Packed::default(), [input.to_path_buf()]);
    let output = Path::new("run/a.bin");
    let done = pack(disk, &inputs, IdSource::Bytes, output, packing, &mut packed, &mut |_, _| ());
    (done, packed)
}

fn old_disk() -> SimulatedDisk {
    SimulatedDisk::holding([
        ("run", Standing::Directory),
        ("run/a_000001.bin", Standing::File(b"old".to_vec())),
    ])
}

/// Under the name of a shard stands a whole one, what stood there before, or nothing; all of them after a success.
fn judge(image: &Image, success: bool, content: &[u8]) -> Result<(), String> {
    let ids: Vec<u32> = content.iter().map(|&byte| byte.into()).collect();
    for (number, ids) in ids.chunks(40_000).enumerate() {
        let path = format!("run/a_{number:06}.bin");
        match image.get(Path::new(&path)) {
            Some(Standing::File(bytes)) if *bytes == shard_file(20_240_520, 1, 300, ids) => {}
            Some(Standing::File(bytes)) if number == 1 && bytes == b"old" && !success => {}
            None if number != 1 && !success => {}
            other => return Err(format!("{path}: {:?}", other.is_some())),
        }
    }
    Ok(())
}

#[test]
fn a_disk_that_fails_or_loses_power_leaves_whole_shards() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("in");
    let content: Vec<u8> = (0..100_000_u32).map(|place| (place * 7 % 251) as u8).collect();
    fs::write(&input, &content).unwrap();
    let job = |disk: &SimulatedDisk| packed_on(disk, &input).0.is_ok();
    let searched =
        crash_at_every_call(64, old_disk, job, |image, success| judge(image, success, &content)).unwrap();
    assert!(searched.syncs == 4 && searched.images > searched.calls, "{searched:?}");
    let shards = [0, 1, 2].map(|number| PathBuf::from(format!("run/a_{number:06}.bin")));
    let mut seen = [0; 4];
    for call in 0..searched.calls {
        let disk = old_disk().fail_at(call, Fault::Error(ENOSPC));
        let (done, packed) = packed_on(&disk, &input);
        done.unwrap_err();
        let image = disk.live();
        judge(&image, false, &content).unwrap();
        assert!(image.keys().all(|path| !path.to_string_lossy().ends_with(".tmp")), "{call}");
        // None of the set is there before the first gets its name, and those that are there are told.
        let new =
            |path: &&PathBuf| matches!(image.get(*path), Some(Standing::File(bytes)) if bytes != b"old");
        let there: Vec<PathBuf> = shards.iter().filter(new).cloned().collect();
        assert_eq!(packed.shards, there, "{call}");
        assert_eq!(packed.ids, [0, 40_000, 80_000, 100_000][there.len()], "{call}");
        seen[there.len()] += 1;
        // What stays is durable, whatever was lost.
        let kept = disk
            .after_power_failure(64)
            .iter()
            .all(|image| shards[..there.len()].iter().all(|path| image.contains_key(path)));
        assert!(kept || there.len() == 3, "{call}");
    }
    assert!(seen[0] > 20 && seen[1..] == [1, 1, 1], "{seen:?}");
}
