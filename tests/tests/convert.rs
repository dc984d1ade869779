//! Numbers on their way into a file: what the writer makes of them, and what a conversion makes of a whole model.
//!
//! A checkpoint that was narrowed by accident still loads, and its run still goes on, only worse. So values become what the
//! plan says and nothing else; a value that does not fit names itself, wherever a piece was cut; and the old file stays.

use std::cell::Cell;
use std::fs;
use std::path::Path;

use safestep::{
    Access, Blame, Cause, Converted, ConvertedPair, Error, FLOATS, Model, ModelWriter, TensorPlan, Values,
    convert,
};
use safestep_core::numbers::{self, Format, Number, OutOfRange, Refusal};
use safestep_core::{Dtype, Entry, Limits};
use safestep_tests::disk_faults::{EIO, ENOSPC, Fault, Image, SimulatedDisk, Standing};

fn tensor(name: &str, dtype: Dtype, shape: &[u64]) -> TensorPlan {
    TensorPlan { name: name.into(), dtype, shape: shape.to_vec() }
}

/// A disk on which an old model stands.
fn disk() -> SimulatedDisk {
    SimulatedDisk::holding([("model", Standing::File(b"old".to_vec()))])
}

/// The model on a disk that holds nothing else.
#[track_caller]
fn model_on(disk: &SimulatedDisk) -> Vec<u8> {
    let live: Image = disk.live();
    match live.into_iter().collect::<Vec<_>>().as_slice() {
        [(path, Standing::File(bytes))] if path == Path::new("model") => bytes.clone(),
        others => panic!("{others:?}"),
    }
}

/// The data of a file of one tensor.
fn data(file: &[u8]) -> &[u8] {
    let header = u64::from_le_bytes(file[..8].try_into().unwrap());
    &file[8 + usize::try_from(header).unwrap()..]
}

/// A file of one tensor with these bytes.
fn file_of(name: &str, dtype: Dtype, bytes: &[u8]) -> Vec<u8> {
    let disk = disk();
    let elements = bytes.len() as u64 * 8 / u64::from(dtype.bits());
    let metadata = [("format".to_string(), "pt".to_string())];
    let plan = [tensor(name, dtype, &[elements])];
    let mut writer = ModelWriter::create(&disk, "model", &plan, Some(&metadata)).unwrap();
    writer.write(bytes).unwrap();
    writer.finish().unwrap();
    model_on(&disk)
}

// --- the naive twin: one element at a time, one bit at a time --------------------------------------------------------

/// The code of one value; F64 is rounded once.
fn encode_one(value: Number, to: Dtype, beyond: OutOfRange) -> Result<u64, Refusal> {
    macro_rules! by_format {
        ($value:expr, $($name:ident)+) => {
            match to {
                $( dtype if dtype == numbers::$name::DTYPE => numbers::$name::encode($value, beyond).map(u64::from), )+
                _ => unreachable!("{to} is no float"),
            }
        };
    }
    let wide = match value {
        Number::F64(value) => value,
        Number::F32(value) => f64::from(value),
        _ => unreachable!("{value} is no float"),
    };
    match (value, to) {
        (Number::F32(value), Dtype::F32) => Ok(value.to_bits().into()),
        (Number::F32(value), Dtype::F64) if value.is_nan() => Ok(0x7FF8_0000_0000_0000),
        (Number::F64(value), Dtype::F32) if value.is_nan() => Ok(0x7FC0_0000),
        (_, Dtype::F64) => Ok(wide.to_bits()),
        (Number::F64(value), Dtype::F32) => {
            let saturated = value.clamp(f32::MIN.into(), f32::MAX.into());
            let value = if beyond == OutOfRange::Saturate { saturated } else { value };
            Ok((value as f32).to_bits().into())
        }
        (Number::F32(value), _) => by_format!(
            value,
            F4 F6E2M3 F6E3M2 F8E5M2 F8E4M3 F8E8M0 F8E4M3Fnuz F8E5M2Fnuz F16 Bf16
        ),
        _ => {
            let mut bytes = vec![0; usize::try_from(to.bits()).unwrap()];
            let mut values = [1.0; 8];
            values[0] = wide;
            match numbers::encode_f64(&values, to, &mut bytes, beyond) {
                Ok(()) => Ok(code(&bytes, to, 0)),
                Err(numbers::NumbersError::Value(error)) => Err(error.refusal),
                Err(error) => unreachable!("{error}"),
            }
        }
    }
}

/// The bits of one element, low bits first.
fn code(bytes: &[u8], dtype: Dtype, element: usize) -> u64 {
    let bits = dtype.bits() as usize;
    (0..bits)
        .map(|bit| element * bits + bit)
        .enumerate()
        .fold(0, |code, (place, bit)| code | u64::from(bytes[bit / 8] >> (bit % 8) & 1) << place)
}

/// Elements, low bits first.
fn pack(codes: &[u64], dtype: Dtype) -> Vec<u8> {
    let bits = dtype.bits() as usize;
    let mut bytes = vec![0; codes.len() * bits / 8];
    for (element, code) in codes.iter().enumerate() {
        for place in 0..bits {
            let bit = element * bits + place;
            bytes[bit / 8] |= u8::from(code >> place & 1 == 1) << (bit % 8);
        }
    }
    bytes
}

/// All codes of a dtype; of the wide ones as many as there are upper halves, with lower ones on each side of a tie.
fn all_codes(dtype: Dtype) -> Vec<u64> {
    let beside = [0, 0x8000, 0x7FFF, 0x8001, 0xFFFF, 1];
    let singles = || (0..1 << 16_u32).map(|upper: u32| upper << 16 | beside[upper as usize % beside.len()]);
    match dtype {
        Dtype::F32 => singles().map(u64::from).collect(),
        Dtype::F64 => {
            let mut codes: Vec<u64> = singles()
                .map(|single| f64::from(f32::from_bits(single)).to_bits())
                .enumerate()
                .map(|(place, code)| code.wrapping_add((place as u64 % 3).wrapping_sub(1)))
                .collect();
            codes.extend([1e300, -1e300, 1e-300, -1e-300, f64::MIN_POSITIVE, 5e-324].map(f64::to_bits));
            codes.extend([0x7FF0_0000_0000_0001, 0xFFF8_DEAD_BEEF_0000]);
            codes
        }
        _ => (0..1 << dtype.bits()).collect(),
    }
}

fn number(code: u64, dtype: Dtype) -> Number {
    numbers::number(dtype, &[code.to_le_bytes(), [0; 8]].concat(), 0).unwrap()
}

// --- the tests -----------------------------------------------------------------------------------------------------------

/// Converts a file of one tensor.
fn converted(file: &[u8], to: Dtype, beyond: OutOfRange, onto: &SimulatedDisk) -> Result<Converted, Error> {
    let room = tempfile::tempdir().unwrap();
    let path = room.path().join("in");
    fs::write(&path, file).unwrap();
    let model = Model::open(&path, Access::Read, Limits::default()).unwrap();
    convert(onto, &model, Path::new("model"), &|_| to, beyond, &mut |_, _| ())
}

#[test]
fn every_float_becomes_every_other_as_the_naive_twin_says() {
    let mut refusals = 0;
    for from in FLOATS {
        for to in FLOATS {
            for beyond in [OutOfRange::Refuse, OutOfRange::Saturate] {
                let mut codes = all_codes(from);
                let one = encode_one(Number::F32(1.0), from, beyond).unwrap();
                let mut expected = Vec::new();
                let mut refused = None;
                let before = codes.clone();
                for (index, code) in codes.iter_mut().enumerate() {
                    let value = number(*code, from);
                    // The same dtype is copied, NaN payloads too.
                    let became = if from == to { Ok(*code) } else { encode_one(value, to, beyond) };
                    expected.push(became.unwrap_or_else(|refusal| {
                        refused.get_or_insert((index as u64, value, refusal));
                        *code = one;
                        encode_one(Number::F32(1.0), to, beyond).unwrap()
                    }));
                }
                if let Some((index, value, refusal)) = refused {
                    refusals += 1;
                    let disk = disk();
                    let error = converted(&file_of("w", from, &pack(&before, from)), to, beyond, &disk);
                    let error = error.expect_err("a value that is refused");
                    let Cause::Number(bad) = error.because() else { panic!("{error}") };
                    let found = (bad.error.dtype, bad.error.index, bad.error.refusal);
                    assert_eq!(found, (to, index, refusal), "{from} to {to}: {error}");
                    assert_eq!(format!("{:?}", bad.error.value), format!("{value:?}"), "{from} to {to}");
                    assert_eq!((bad.tensor.as_str(), error.blame()), ("w", Blame::Data));
                    assert_eq!(model_on(&disk), b"old");
                }
                let (disk, file) = (disk(), file_of("w", from, &pack(&codes, from)));
                let done = converted(&file, to, beyond, &disk).unwrap();
                let made = model_on(&disk);
                assert!(made == file_of("w", to, &pack(&expected, to)), "{from} to {to} {beyond:?}");
                let pair = ConvertedPair {
                    tensors: 1,
                    bytes_before: data(&file).len() as u64,
                    bytes_after: data(&made).len() as u64,
                };
                let pairs = [((from, to), pair)].into();
                let (bytes_before, bytes_after) = (file.len() as u64, made.len() as u64);
                assert_eq!(done, Converted { bytes_before, bytes_after, pairs });
            }
        }
    }
    assert!(refusals > 60, "{refusals}");
}

#[test]
fn each_tensor_is_asked_for_once() {
    let room = tempfile::tempdir().unwrap();
    let path = room.path().join("in");
    fs::write(&path, file_of("w", Dtype::F32, &[0; 8])).unwrap();
    let model = Model::open(&path, Access::Read, Limits::default()).unwrap();
    let asked = Cell::new(0);
    let target = |_: &Entry<'_>| {
        asked.set(asked.get() + 1);
        Dtype::F16
    };
    convert(&disk(), &model, Path::new("model"), &target, OutOfRange::Refuse, &mut |_, _| ()).unwrap();
    assert_eq!(asked.get(), 1);
}

/// Longer than all buffers, so that no place is special.
#[test]
fn a_long_tensor_is_cut_nowhere() {
    const ELEMENTS: usize = 400_004;
    let values: Vec<f32> = (0..ELEMENTS).map(|n| ((n * 7919 % 1201) as f32 - 600.0) / 100.0).collect();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let file = file_of("w", Dtype::F32, &bytes);
    for to in [Dtype::F64, Dtype::Bf16, Dtype::F8E5M2, Dtype::F6E3M2, Dtype::F4] {
        let codes: Vec<u64> = values
            .iter()
            .map(|&value| encode_one(Number::F32(value), to, OutOfRange::Saturate).unwrap())
            .collect();
        let (narrow, back) = (disk(), disk());
        converted(&file, to, OutOfRange::Saturate, &narrow).unwrap();
        assert!(data(&model_on(&narrow)) == pack(&codes, to), "{to}");
        converted(&model_on(&narrow), Dtype::F32, OutOfRange::Refuse, &back).unwrap();
        let decoded: Vec<u8> = codes
            .iter()
            .flat_map(|&code| {
                encode_one(number(code, to), Dtype::F32, OutOfRange::Refuse).unwrap().to_le_bytes()[..4]
                    .to_vec()
            })
            .collect();
        assert!(data(&model_on(&back)) == decoded, "{to}");
    }
    // The place of a value is counted over the whole tensor.
    for place in [0, 1, 65_535, 65_536, 131_073, ELEMENTS - 1] {
        for (to, from) in [(Dtype::F4, Dtype::F32), (Dtype::F8E4M3, Dtype::F64)] {
            let mut values: Vec<f64> = values.iter().map(|&value| value.into()).collect();
            values.iter_mut().for_each(|value| *value = value.clamp(-6.0, 6.0));
            values[place] = -1e9;
            let wide = |value: &f64| match from {
                Dtype::F64 => value.to_le_bytes().to_vec(),
                _ => (*value as f32).to_le_bytes().to_vec(),
            };
            let file = file_of("w", from, &values.iter().flat_map(wide).collect::<Vec<u8>>());
            let disk = disk();
            let error = converted(&file, to, OutOfRange::Refuse, &disk).unwrap_err().to_string();
            let words = format!(
                "\"w\": expected a value of {to}, found -1000000000.0 in element {place}: it is out of range"
            );
            assert!(error.ends_with(&words), "{error}");
            assert_eq!(model_on(&disk), b"old");
        }
    }
}

/// Values in pieces of any size are the same file; also where a piece ends inside a byte.
#[test]
fn the_size_of_the_pieces_does_not_matter() {
    const ELEMENTS: usize = 48;
    let values: Vec<f32> = (0..ELEMENTS).map(|n| [0.5, 1.0, 2.0, 4.0, 1.0][n % 5]).collect();
    let doubles: Vec<f64> = values.iter().map(|&value| value.into()).collect();
    let numbers = [Dtype::U8, Dtype::I8, Dtype::U16, Dtype::I16, Dtype::U32, Dtype::I32];
    for dtype in FLOATS.into_iter().chain(numbers) {
        let whole = if FLOATS.contains(&dtype) { &values[..] } else { &[3.0; ELEMENTS] };
        let (first, second) = (tensor("a", dtype, &[4, 12]), tensor("b", dtype, &[48]));
        let plan = [second, tensor("none", dtype, &[0]), first];
        let mut files = Vec::new();
        for size in 1..=ELEMENTS {
            let disk = disk();
            let mut writer = ModelWriter::create(&disk, "model", &plan, None).unwrap();
            for piece in whole.chunks(size) {
                writer.write_values(Values::F32(piece), OutOfRange::Refuse).unwrap();
                writer.write_values(Values::F32(&[]), OutOfRange::Refuse).unwrap();
            }
            assert_eq!(writer.next_tensor(), Some(0));
            for piece in doubles.chunks(size).filter(|_| FLOATS.contains(&dtype)) {
                writer.write_values(Values::Rounded(piece), OutOfRange::Refuse).unwrap();
            }
            for piece in whole.chunks(size).filter(|_| !FLOATS.contains(&dtype)) {
                writer.write_values(Values::F32(piece), OutOfRange::Refuse).unwrap();
            }
            writer.finish().unwrap();
            files.push(model_on(&disk));
        }
        let codes = |value: &f32| encode_one(Number::F32(*value), dtype, OutOfRange::Refuse).unwrap();
        if FLOATS.contains(&dtype) {
            let tensor = pack(&whole.iter().map(codes).collect::<Vec<_>>(), dtype);
            assert_eq!(data(&files[0]), [&tensor[..], &tensor[..]].concat(), "{dtype}");
        }
        assert!(files.iter().all(|file| *file == files[0]), "{dtype}");
    }
}

/// Elements, and what comes of them as one tensor of eight.
type Refused<'a> = (Dtype, &'a [Values<'a>], &'a str);

/// The reference's `test_save_rejects_bad_dtypes`, and what else is no number of the tensor.
#[test]
fn what_nobody_asked_for_is_not_converted() {
    let unasked = |expected: &str, found: &str| {
        format!("\"w\": expected elements of {expected}, found {found}, and nothing is converted unasked")
    };
    let refused = |words: &str| format!("\"w\": expected a value of {words}");
    let (eight, wide, halves) = ([1.0_f32; 8], [1.0_f64; 8], [0x3C_u8; 16]);
    let table: &[Refused<'_>] = &[
        (Dtype::F32, &[Values::F64(&wide)], &unasked("F32", "F64")),
        (Dtype::Bf16, &[Values::F64(&wide)], &unasked("BF16", "F64")),
        (Dtype::Bf16, &[Values::Codes(Dtype::F16, &halves)], &unasked("BF16", "F16")),
        (Dtype::F16, &[Values::Codes(Dtype::Bf16, &halves)], &unasked("F16", "BF16")),
        (Dtype::F16, &[Values::Codes(Dtype::U16, &halves)], &unasked("F16", "U16")),
        (Dtype::F32, &[Values::Codes(Dtype::I32, &[0; 32])], &unasked("F32", "I32")),
        (Dtype::F32, &[Values::Codes(Dtype::F64, &[0; 64])], &unasked("F32", "F64")),
        (Dtype::U8, &[Values::Codes(Dtype::I8, &[0; 8])], &unasked("U8", "I8")),
        (Dtype::I64, &[Values::F32(&eight)], &unasked("I64", "F32")),
        (Dtype::U64, &[Values::F32(&eight)], &unasked("U64", "F32")),
        (Dtype::Bool, &[Values::F32(&eight)], &unasked("BOOL", "F32")),
        (Dtype::C64, &[Values::F32(&eight)], &unasked("C64", "F32")),
        (Dtype::I64, &[Values::Rounded(&wide)], &unasked("I64", "F64")),
        (Dtype::C64, &[Values::F64(&wide)], &unasked("C64", "F64")),
        (
            Dtype::F8E4M3,
            &[Values::F32(&[1.0, 449.0])],
            &refused("F8_E4M3, found 449.0 in element 1: it is out of range"),
        ),
        (
            Dtype::F8E4M3,
            &[Values::F32(&eight[..5]), Values::F32(&[f32::INFINITY])],
            &refused("F8_E4M3, found inf in element 5"),
        ),
        (
            Dtype::F8E4M3,
            &[Values::Codes(Dtype::F8E4M3, &[0; 3]), Values::F32(&[-449.0])],
            &refused("F8_E4M3, found -449.0 in element 3"),
        ),
        (Dtype::F4, &[Values::F32(&[f32::NAN])], &refused("F4, found NaN in element 0: there is no NaN")),
        (
            Dtype::F4,
            &[Values::F32(&eight[..3]), Values::F32(&[7.5])],
            &refused("F4, found 7.5 in element 3: it is out of range"),
        ),
        (
            Dtype::F6E2M3,
            &[Values::F32(&eight[..5]), Values::F32(&[9.0])],
            &refused("F6_E2M3, found 9.0 in element 5: it is out of range"),
        ),
        (
            Dtype::F6E2M3,
            &[Values::F32(&eight[..2]), Values::Rounded(&[1.0, 1.0, 1.0, 9.5])],
            &refused("F6_E2M3, found 9.5 in element 5"),
        ),
        (
            Dtype::F8E8M0,
            &[Values::F32(&[1.0, 0.0])],
            &refused("F8_E8M0, found 0.0 in element 1: a scale is above zero"),
        ),
        (
            Dtype::U8,
            &[Values::F32(&[1.0, 2.5])],
            &refused("U8, found 2.5 in element 1: it would not be exact"),
        ),
        (
            Dtype::I8,
            &[Values::Rounded(&[128.0])],
            &refused("I8, found 128.0 in element 0: it is out of range"),
        ),
        (Dtype::F32, &[Values::F32(&[1.0; 9])], "W5: expected at most 8 more elements for \"w\", found 9"),
        (
            Dtype::F4,
            &[Values::F32(&eight[..1]), Values::F32(&eight)],
            "W5: expected at most 7 more elements for \"w\", found 8",
        ),
        (
            Dtype::F16,
            &[Values::Codes(Dtype::F16, &[0; 17])],
            "W5: expected at most 16 more bytes for \"w\", found 17",
        ),
        (
            Dtype::F16,
            &[Values::Codes(Dtype::F16, &[0; 3]), Values::F32(&[1.0])],
            "W5: expected the rest of what was begun of \"w\", found 1 elements",
        ),
        (
            Dtype::F6E3M2,
            &[Values::Codes(Dtype::F6E3M2, &[0; 2]), Values::F32(&[1.0])],
            "W5: expected the rest of what was begun of \"w\", found 1 elements",
        ),
        (
            Dtype::F4,
            &[Values::F32(&eight[..1]), Values::Codes(Dtype::F4, &[0])],
            "W5: expected the rest of what was begun of \"w\", found 1 bytes",
        ),
        (Dtype::F4, &[Values::F32(&eight[..7])], "W5: expected 4 bytes for \"w\", found 3"),
        (
            Dtype::F32,
            &[Values::F32(&eight), Values::F32(&[1.0])],
            "W5: expected no more data, found 1 elements behind the last tensor",
        ),
        (
            Dtype::F32,
            &[Values::F32(&eight), Values::Codes(Dtype::F32, &[0])],
            "W5: expected no more data, found 1 bytes behind the last tensor",
        ),
    ];
    for (dtype, pieces, words) in table {
        let disk = disk();
        let mut writer = ModelWriter::create(&disk, "model", &[tensor("w", *dtype, &[8])], None).unwrap();
        let written = pieces.iter().try_for_each(|&piece| writer.write_values(piece, OutOfRange::Refuse));
        // After an error nothing is taken any more, good as it may be.
        let again =
            written.is_err().then(|| writer.write_values(Values::F32(&eight[..1]), OutOfRange::Refuse));
        if let Some(again) = again {
            assert!(matches!(again.unwrap_err().because(), Cause::Abandoned), "{dtype} {pieces:?}");
            assert!(matches!(writer.write(&[0]).unwrap_err().because(), Cause::Abandoned));
        }
        let finished = writer.finish();
        let error = written.and(finished).expect_err(words);
        let number = matches!(error.because(), Cause::Number(_));
        assert_eq!(error.blame(), if number { Blame::Data } else { Blame::Caller });
        assert!(
            error.to_string().starts_with("cannot write model: ") && error.to_string().contains(words),
            "{error}"
        );
        assert_eq!(model_on(&disk), b"old", "{dtype} {pieces:?}");
    }
}

#[test]
fn what_cannot_be_planned_begins_nothing() {
    let table = [
        (Dtype::I64, 8, Dtype::F32, "\"w\": expected elements of F32, found I64"),
        (Dtype::F32, 8, Dtype::I32, "\"w\": expected elements of I32, found F32"),
        (Dtype::Bool, 8, Dtype::U8, "\"w\": expected elements of U8, found BOOL"),
        (Dtype::F32, 4, Dtype::F4, "W5: expected a whole number of bytes for \"w\", found 4 bits"),
        (Dtype::Bf16, 4, Dtype::F6E2M3, "W5: expected a whole number of bytes for \"w\", found 12 bits"),
    ];
    for (from, bytes, to, words) in table {
        let (untouched, disk) = (disk(), disk());
        let error =
            converted(&file_of("w", from, &vec![0; bytes]), to, OutOfRange::Saturate, &disk).unwrap_err();
        assert!(error.to_string().contains(words) && error.blame() == Blame::Caller, "{error}");
        assert_eq!((disk.calls(), disk.live()), (untouched.calls(), untouched.live()));
    }
}

#[test]
fn whichever_call_fails_the_old_file_stays() {
    let bytes: Vec<u8> = (0..300_000_u32).flat_map(|n| (n as f32).to_le_bytes()).collect();
    let file = file_of("w", Dtype::F32, &bytes);
    let run = |disk: &SimulatedDisk| converted(&file, Dtype::Bf16, OutOfRange::Refuse, disk);
    let undisturbed = disk();
    run(&undisturbed).unwrap();
    let calls = undisturbed.calls().len();
    assert!(calls >= 14, "{calls}");
    for call in 0..calls {
        for errno in [EIO, ENOSPC] {
            let disk = disk().fail_at(call, Fault::Error(errno));
            let error = run(&disk).expect_err("a call that failed");
            assert_eq!(error.blame(), Blame::Machine);
            let expected = if error.is_in_place() { undisturbed.live() } else { self::disk().live() };
            assert_eq!(disk.live(), expected, "call {call}: {error}");
        }
        let disk = disk().fail_at(call, Fault::PowerFailure);
        run(&disk).expect_err("the power went");
        for image in disk.after_power_failure(64) {
            let Some(Standing::File(bytes)) = image.get(Path::new("model")) else {
                panic!("call {call}: it is gone")
            };
            assert!(bytes == b"old" || *bytes == model_on(&undisturbed), "call {call}");
        }
    }
}
