//! Checkpoints and snapshots of each other: a bit that changes on the way, or an array that is left behind, is another run.

use std::fs;
use std::path::Path;

use safestep::checkpoint::{Checkpoint, Optimizer, SaveOptions, State, Tensor, TrainerState, load, save};
use safestep::run::{
    MappedSnapshot, Parameter, export_snapshot, import_snapshot, parameters_of, write_snapshot,
};
use safestep::{Blame, Cause, Error, OsDisk};
use safestep_core::Dtype;
use safestep_tests::disk_faults::{SimulatedDisk, Standing};

/// An array of a checkpoint to be.
struct Array(&'static str, Dtype, &'static [u64], Vec<u32>);

fn f32s(name: &'static str, shape: &'static [u64], bits: &[u32]) -> Array {
    Array(name, Dtype::F32, shape, bits.to_vec())
}

/// Bits that a careless copy would change: NaN with payloads, signed zeros, subnormals, infinities.
const ODD: [u32; 8] =
    [0x7FC0_0001, 0x7F80_0001, 0xFFBF_FFFF, 0x8000_0000, 1, 0x807F_FFFF, 0xFF80_0000, 0x7F7F_FFFF];

fn saved(root: &Path, step: u64, model: &[Array], optimizer: &[Array]) -> Checkpoint {
    let bytes_of = |arrays: &[Array]| -> Vec<Vec<u8>> {
        arrays.iter().map(|array| array.3.iter().flat_map(|bits| bits.to_le_bytes()).collect()).collect()
    };
    let (model_bytes, optimizer_bytes) = (bytes_of(model), bytes_of(optimizer));
    fn tensors<'a>(arrays: &[Array], bytes: &'a [Vec<u8>]) -> Vec<Tensor<'a>> {
        let pairs = arrays.iter().zip(bytes);
        pairs.map(|(of, bytes)| Tensor { name: of.0, dtype: of.1, shape: of.2, bytes }).collect()
    }
    let (model, arrays) = (tensors(model, &model_bytes), tensors(optimizer, &optimizer_bytes));
    let state = State {
        model: &model,
        optimizer: Optimizer { arrays: &arrays, state: "" },
        trainer: TrainerState { step, ..TrainerState::default() },
        config: None,
        files: &[],
    };
    save(&OsDisk, root, &state, &SaveOptions::default()).unwrap();
    load(&OsDisk, root).unwrap()
}

fn parameter(name: &str, shape: &[u64]) -> Parameter {
    Parameter { name: name.into(), shape: shape.into() }
}

/// Two parameters, whose names stand in another order than their numbers in the table of [`ODD`].
fn model() -> Vec<Array> {
    vec![f32s("b", &[2, 1], &ODD[..2]), f32s("a", &[], &ODD[2..3]), f32s("none", &[0, 7], &[])]
}

fn moments() -> Vec<Array> {
    vec![
        f32s("b.exp_avg", &[2, 1], &ODD[3..5]),
        f32s("a.exp_avg", &[], &ODD[5..6]),
        f32s("none.exp_avg", &[0, 7], &[]),
        f32s("b.exp_avg_sq", &[2, 1], &ODD[6..]),
        f32s("a.exp_avg_sq", &[], &ODD[..1]),
        f32s("none.exp_avg_sq", &[0, 7], &[]),
    ]
}

#[test]
fn a_checkpoint_becomes_a_snapshot_and_the_same_checkpoint() {
    let (directory, _) = super::run("");
    let at = |name: &str| directory.path().join(name);
    let checkpoint = saved(&at("one"), 50, &model(), &moments());
    let by_name = [parameter("a", &[]), parameter("b", &[2, 1]), parameter("none", &[0, 7])];
    assert_eq!(parameters_of(&checkpoint), by_name);
    let orders = [(by_name.clone(), [2, 0, 1, 5, 3, 4, 0, 6, 7]), {
        let [a, b, none] = by_name;
        ([none, b, a], [0, 1, 2, 3, 4, 5, 6, 7, 0])
    }];
    for (number, (order, places)) in orders.iter().enumerate() {
        let path = at("snapshot");
        let head = export_snapshot(&OsDisk, &checkpoint, order, &path).unwrap();
        assert_eq!((head.step(), head.parameters()), (50, 3));
        let mut expected = [50_i32.to_le_bytes(), 3_i32.to_le_bytes()].concat();
        expected.extend(places.iter().flat_map(|&place| ODD[place].to_le_bytes()));
        assert_eq!(fs::read(&path).unwrap(), expected);

        let root = at(&format!("two-{number}/ckpt"));
        import_snapshot(&OsDisk, &MappedSnapshot::open(&path).unwrap(), order, &root).unwrap();
        for file in ["model.safetensors", "optimizer.safetensors", "trainer_state.json", "MANIFEST.json"] {
            let read = |root: &Path| fs::read(root.join("step-000050").join(file)).unwrap();
            assert_eq!(read(&root), read(&at("one")), "{file}");
        }
        // And back again.
        let again = at("again");
        export_snapshot(&OsDisk, &load(&OsDisk, &root).unwrap(), order, &again).unwrap();
        assert_eq!(fs::read(&again).unwrap(), expected);
    }
}

#[test]
fn snapshots_at_the_edges_come_back_as_they_were() {
    let (directory, _) = super::run("");
    let at = |name: String| directory.path().join(name);
    let odd = ODD.map(f32::from_bits);
    let cases: [(u64, &[f32], &[Parameter]); 3] = [
        (0, &[], &[]),
        (2_147_483_647, &odd, &[parameter("a", &[2, 2]), parameter("b", &[0]), parameter("", &[4])]),
        (1, &odd[..1], &[parameter("scalar", &[])]),
    ];
    for (step, values, parameters) in cases {
        let (from, root, to) = (at(format!("{step}")), at(format!("{step}-root")), at(format!("{step}-to")));
        let back: Vec<f32> = values.iter().rev().copied().collect();
        write_snapshot(&OsDisk, &from, step, [values, &back, values]).unwrap();
        import_snapshot(&OsDisk, &MappedSnapshot::open(&from).unwrap(), parameters, &root).unwrap();
        let checkpoint = load(&OsDisk, &root).unwrap();
        assert_eq!((checkpoint.trainer.step, checkpoint.optimizer_state()), (step, "{}".into()));
        export_snapshot(&OsDisk, &checkpoint, parameters, &to).unwrap();
        assert_eq!(fs::read(to).unwrap(), fs::read(from).unwrap());
    }
}

#[test]
fn what_a_snapshot_cannot_hold_is_named_and_nothing_is_written() {
    let order = || vec![parameter("a", &[]), parameter("b", &[2, 1]), parameter("none", &[0, 7])];
    let without = |name: &str| moments().into_iter().filter(|array| array.0 != name).collect::<Vec<_>>();
    let instead = |array: Array| {
        let mut arrays = without(array.0);
        arrays.push(array);
        arrays
    };
    let more = || moments().into_iter().chain([f32s("b.max_exp_avg_sq", &[1], &[0])]).collect();
    let mut twice = order();
    twice.push(parameter("a", &[]));
    let table: Vec<(u64, Vec<Array>, Vec<Parameter>, &str)> = vec![
        (
            1,
            moments(),
            vec![parameter("c", &[])],
            "\"c\": expected in model.safetensors, found no such array",
        ),
        (
            1,
            moments(),
            order()[1..].to_vec(),
            "\"a\": expected no array without a place in the snapshot, found it in model.safetensors",
        ),
        (
            1,
            without("b.exp_avg"),
            order(),
            "\"b.exp_avg\": expected in optimizer.safetensors, found no such array",
        ),
        (
            1,
            without("a.exp_avg_sq"),
            order(),
            "\"a.exp_avg_sq\": expected in optimizer.safetensors, found no such array",
        ),
        (
            1,
            more(),
            order(),
            "\"b.max_exp_avg_sq\": expected no array without a place in the snapshot, found it in optimizer.safetensors",
        ),
        (
            1,
            instead(Array("a.exp_avg", Dtype::I32, &[], vec![1])),
            order(),
            "\"a.exp_avg\": expected F32, found I32, and nothing is converted unasked",
        ),
        (
            1,
            instead(f32s("b.exp_avg", &[2], &[0, 0])),
            order(),
            "\"b.exp_avg\": expected shape [2, 1], found [2]",
        ),
        (1, moments(), vec![parameter("a", &[1])], "\"a\": expected shape [1], found []"),
        (1, moments(), twice, "\"a\": expected each parameter once in the list, found it twice"),
        (
            1 << 31,
            moments(),
            order(),
            "S2.step at byte 0: expected a step of at most 2147483647, found 2147483648",
        ),
    ];
    for (step, optimizer, order, complaint) in table {
        let (directory, _) = super::run("");
        let checkpoint = saved(directory.path(), step, &model(), &optimizer);
        let disk = SimulatedDisk::holding::<&str>([]);
        let error = export_snapshot(&disk, &checkpoint, &order, "snapshot").unwrap_err();
        refused(&error, complaint);
        assert!(disk.calls().is_empty());
    }
}

#[test]
fn a_list_that_does_not_fit_a_snapshot_is_named_and_nothing_is_written() {
    let (directory, _) = super::run("");
    let path = directory.path().join("snapshot");
    write_snapshot(&OsDisk, &path, 50, [&[1.0; 12]; 3]).unwrap();
    let snapshot = MappedSnapshot::open(&path).unwrap();
    let (a, b) = (parameter("a", &[2, 5]), parameter("b\u{1b}", &[3]));
    let huge = parameter("huge", &[1 << 40, 1 << 40]);
    let table: Vec<(Vec<Parameter>, &str)> = vec![
        (vec![], "expected 0 numbers in each region, found 12"),
        (vec![a.clone()], "expected 10 numbers in each region up to \"a\", found 12"),
        (vec![a.clone(), b.clone()], "expected 13 numbers in each region up to \"b\\u{1b}\", found 12"),
        (
            vec![a.clone(), huge, b],
            "expected 18446744073709551615 numbers in each region up to \"huge\", found 12",
        ),
        (vec![a.clone(), a], "\"a\": expected each parameter once in the list, found it twice"),
    ];
    for (parameters, complaint) in table {
        let disk = SimulatedDisk::holding::<&str>([]);
        refused(&import_snapshot(&disk, &snapshot, &parameters, Path::new("root")).unwrap_err(), complaint);
        assert!(disk.calls().is_empty());
    }
}

#[track_caller]
fn refused(error: &Error, complaint: &str) {
    assert!(error.to_string().ends_with(complaint), "{error}");
    assert_eq!(error.blame(), Blame::Data);
    assert!(matches!(error.because(), Cause::BadArrays(_) | Cause::Snapshot(_)));
}

/// What the guide for trainers says of syncs.
#[test]
fn a_save_syncs_as_often_as_the_guide_says() {
    let disk = SimulatedDisk::holding([("run/ckpt/LATEST.tmp", Standing::File(Vec::new()))]);
    let state = |step| State {
        model: &[],
        optimizer: Optimizer::default(),
        trainer: TrainerState { step, ..TrainerState::default() },
        config: None,
        files: &[],
    };
    let mut before = 0;
    for step in 1..=3 {
        save(&disk, Path::new("run/ckpt"), &state(step), &SaveOptions::default()).unwrap();
        // As long as nothing is declared done, the root may be left over from a save that was cut off.
        assert_eq!(disk.syncs() - before, if step == 1 { 9 } else { 8 });
        before = disk.syncs();
    }
    let with_config = State { config: Some(b"{}"), files: &[("ema", b"")], ..state(4) };
    save(&disk, Path::new("run/ckpt"), &with_config, &SaveOptions::default()).unwrap();
    assert_eq!(disk.syncs() - before, 10);
}
