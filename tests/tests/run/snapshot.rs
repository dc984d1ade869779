//! Five-region snapshots: without m and v a resume jumps, and with a single bit changed it is another run.

use std::fs::{self, File};
use std::path::Path;

use safestep::error::{Cause, Error};
use safestep::run::{MappedSnapshot, SnapshotWriter, snapshot_name, write_snapshot};
use safestep::{Blame, OsDisk};
use safestep_core::snapshot::{Region, Snapshot, SnapshotErrorKind};
use safestep_tests::disk_faults::{ENOSPC, Fault, SimulatedDisk, Standing, crash_at_every_call};

/// Numbers whose bits a careless copy would change.
fn odd_numbers() -> Vec<f32> {
    let bits = [
        0x7FC0_0001,
        0xFFC0_0000,
        0x7F80_0001,
        0xFFBF_FFFF, // quiet and signalling NaN with payloads
        0x8000_0000,
        0,
        1,
        0x807F_FFFF, // zeros and subnormals
        0x7F80_0000,
        0xFF80_0000,
        0x7F7F_FFFF,
        0x3F80_0000,
    ];
    bits.map(f32::from_bits).to_vec()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn the_arithmetic_of_the_third_document() {
    let table: &[(u64, u64)] = &[
        (0, 8),
        (1, 20),
        (12_800_000, 153_600_008),
        (120_000_000, 1_440_000_008),
        (2_147_483_647, 25_769_803_772),
    ];
    for &(parameters, bytes) in table {
        assert_eq!(Snapshot::new(0, parameters).unwrap().file_len().value(), bytes);
    }
    assert_eq!(
        [0, 7, 112_700, 999_999, 1_000_000].map(snapshot_name),
        ["step_000000.bin", "step_000007.bin", "step_112700.bin", "step_999999.bin", "step_1000000.bin"]
    );
}

#[test]
fn every_bit_survives() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(snapshot_name(112_700));
    let weights = odd_numbers();
    let (m, v): (Vec<f32>, Vec<f32>) =
        (weights.iter().rev().copied().collect(), weights.iter().map(|value| -value).collect());
    write_snapshot(&OsDisk, &path, 112_700, [&weights, &m, &v]).unwrap();
    let whole = fs::read(&path).unwrap();
    let snapshot = MappedSnapshot::open(&path).unwrap();
    assert_eq!((snapshot.head().step(), snapshot.head().parameters()), (112_700, 12));
    for (region, expected) in Region::ALL.into_iter().zip([&weights, &m, &v]) {
        assert_eq!(bits(snapshot.region(region).floats().unwrap()), bits(expected));
    }
    // In pieces of any size, across regions, it is the same file.
    let all = [weights, m, v].concat();
    for size in [1, 5, 7, 36] {
        let mut writer = SnapshotWriter::create(&OsDisk, &path, 112_700, 12).unwrap();
        all.chunks(size).for_each(|piece| writer.write(piece).unwrap());
        writer.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole);
    }
    assert_eq!(super::names(directory.path()), ["step_112700.bin"]);
}

#[test]
fn a_byte_short_or_long_and_bad_heads() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("snapshot");
    write_snapshot(&OsDisk, &path, 50, [&[1.0], &[2.0], &[3.0]]).unwrap();
    let good = fs::read(&path).unwrap();
    let head = |step: i32, count: i32| [step.to_le_bytes(), count.to_le_bytes()].concat();
    let table: Vec<(Vec<u8>, &str)> = vec![
        (good[..19].to_vec(), "S3.length at byte 19: expected 20 bytes, found 19: 1 short"),
        ([&good[..], &[0]].concat(), "S3.length at byte 20: expected 20 bytes, found 21: 1 surplus"),
        (
            good[..7].to_vec(),
            "S1.short at byte 7: expected 8 bytes of step and parameter count, found a file of 7",
        ),
        (Vec::new(), "S1.short at byte 0: expected 8 bytes of step and parameter count, found a file of 0"),
        (head(-1, 0), "S2.step at byte 0: expected a step from 0 on, found -1"),
        (head(i32::MIN, -1), "S2.step at byte 0: expected a step from 0 on, found -2147483648"),
        (head(0, -1), "S2.count at byte 4: expected a parameter count from 0 on, found -1"),
        (head(0, i32::MAX), "S3.length at byte 8: expected 25769803772 bytes, found 8: 25769803764 short"),
    ];
    for (bytes, complaint) in table {
        fs::write(&path, bytes).unwrap();
        let error = MappedSnapshot::open(&path).unwrap_err();
        assert!(error.to_string().ends_with(complaint), "{error}");
        assert_eq!(error.blame(), Blame::Data);
    }
    fs::write(&path, head(i32::MAX, 0)).unwrap();
    let snapshot = MappedSnapshot::open(&path).unwrap();
    assert_eq!(snapshot.head().step(), 2_147_483_647);
    assert_eq!(snapshot.region(Region::SecondMoment).floats(), Ok(&[][..]));
}

#[test]
fn what_cannot_be_written_is_refused_and_leaves_the_old_file() {
    let disk = || SimulatedDisk::holding([("run/s", Standing::File(b"old".to_vec()))]);
    let refused = |disk: &SimulatedDisk, made: Result<(), Error>| {
        let error = made.unwrap_err();
        assert_eq!(disk.live(), self::disk_with_old().live(), "{error}");
        error
    };
    for (step, count) in [(1 << 31, 0), (u64::MAX, 0), (0, 1 << 31), (0, u64::MAX)] {
        let disk = disk();
        let error = refused(&disk, SnapshotWriter::create(&disk, "run/s", step, count).map(drop));
        let Cause::Snapshot(broken) = error.because() else { panic!("{error}") };
        let expected = [
            SnapshotErrorKind::StepTooLarge { found: step },
            SnapshotErrorKind::CountTooLarge { found: count },
        ];
        assert!(expected.contains(&broken.kind()));
        assert_eq!(disk.calls().len(), 0);
    }
    let disk = disk();
    refused(&disk, write_snapshot(&disk, "run/s", 1, [&[1.0], &[], &[1.0]]));
    refused(&disk, write_snapshot(&disk, "run/s", 1, [&[1.0], &[1.0], &[1.0, 2.0]]));
    for (numbers, complaint) in [
        (5, "expected 6 numbers in three regions, found 1 fewer"),
        (7, "expected 6 numbers in three regions, found 1 more"),
    ] {
        let made = || {
            let mut writer = SnapshotWriter::create(&disk, "run/s", 1, 2)?;
            writer.write(&vec![0.0; numbers])?;
            writer.finish()
        };
        let error = refused(&disk, made());
        assert!(error.to_string().ends_with(complaint), "{error}");
    }
    // The disk is full: told before the regions are written.
    let disk = disk_with_old().fail_at(2, Fault::Error(ENOSPC));
    refused(&disk, write_snapshot(&disk, "run/s", 1, [&[1.0]; 3]));
}

fn disk_with_old() -> SimulatedDisk {
    SimulatedDisk::holding([("run/s", Standing::File(b"old".to_vec()))])
}

#[test]
fn a_power_failure_leaves_the_old_snapshot_or_the_new_one() {
    let values = vec![0.25_f32; 30_000];
    let write = |disk: &SimulatedDisk| write_snapshot(disk, "run/s", 9, [&values; 3]);
    let sound = disk_with_old();
    write(&sound).unwrap();
    let new = sound.live();
    let judge = |image: &safestep_tests::disk_faults::Image, success: bool| {
        let found = image.get(Path::new("run/s"));
        let is_new = found == new.get(Path::new("run/s"));
        let is_old = found == Some(&Standing::File(b"old".to_vec()));
        if is_new || is_old && !success { Ok(()) } else { Err("neither old nor new".into()) }
    };
    crash_at_every_call(4096, disk_with_old, |disk| write(disk).is_ok(), judge).unwrap();
}

/// As large as the format allows, 25.8 GB, most of which were never written and take no room.
#[test]
fn more_bytes_than_memory_are_mapped_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("step_000001.bin");
    let head = Snapshot::new(1, 2_147_483_647).unwrap();
    fs::write(&path, head.head()).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    if file.set_len(head.file_len().value()).is_err() {
        return safestep_tests::remarks::skipped("the file system takes no file of 26 GB");
    }
    use std::os::unix::fs::FileExt as _;
    file.write_all_at(&1.5_f32.to_le_bytes(), head.file_len().value() - 4).unwrap();
    let snapshot = MappedSnapshot::open(&path).unwrap();
    let v = snapshot.region(Region::SecondMoment);
    assert_eq!(v.values().len(), 2_147_483_647);
    assert_eq!((v.floats().unwrap().last(), v.floats().unwrap().first()), (Some(&1.5), Some(&0.0)));
}
