//! The reference document's section 3, and what its table asks of dtypes and the file, one test a row and in its order:
//! from `test_worked_example_bf16_bytes` to `test_v0_calls_still_work`.
//!
//! What the document's calls do in one step is two here: values become bytes by `numbers`, bytes a file by [`ModelWriter`].

use std::fs;
use std::path::Path;

use safestep::{Access, Model, ModelWriter, OsDisk, TensorPlan};
use safestep_core::numbers::{
    NumbersError, OutOfRange, Refusal, decode_bool, decode_complex, decode_f32, decode_f64, decode_i64,
    decode_u64, encode_f32, encode_f64,
};
use safestep_core::{Dtype, Frame, Limits};
use safestep_tests::cases::fixtures;
use safestep_tests::oracle::numbers::FORMATS;

/// The four values of section 3's tensor.
const W: [f32; 4] = [1.0, 2.0, 3.0, 4.0];

fn encode(values: &[f32], dtype: Dtype) -> Result<Vec<u8>, NumbersError> {
    let mut bytes = vec![0; values.len() * dtype.bits() as usize / 8];
    encode_f32(values, dtype, &mut bytes, OutOfRange::Refuse)?;
    Ok(bytes)
}

fn decode(dtype: Dtype, bytes: &[u8]) -> Result<Vec<f32>, NumbersError> {
    let mut values = vec![0.0; bytes.len() * 8 / dtype.bits() as usize];
    decode_f32(dtype, bytes, &mut values)?;
    Ok(values)
}

/// The file of these tensors, whatever order they come in.
fn file(tensors: &[(&str, Dtype, &[u64], &[u8])], metadata: Option<&[(String, String)]>) -> Vec<u8> {
    let room = tempfile::tempdir().unwrap();
    let path = room.path().join("model.safetensors");
    let plans: Vec<TensorPlan> = tensors
        .iter()
        .map(|(name, dtype, shape, _)| TensorPlan {
            name: (*name).into(),
            dtype: *dtype,
            shape: shape.to_vec(),
        })
        .collect();
    let mut writer = ModelWriter::create(&OsDisk, &path, &plans, metadata).unwrap();
    while let Some(next) = writer.next_tensor() {
        writer.write(tensors[next].3).unwrap();
    }
    writer.finish().unwrap();
    fs::read(path).unwrap()
}

fn tinyllm() -> [(String, String); 1] {
    [("format".into(), "tinyllm".into())]
}

fn golden(name: &str) -> std::path::PathBuf {
    fixtures().join("reference").join(name)
}

/// Each tensor of a file: name, dtype, shape, bytes.
fn tensors(path: &Path) -> Vec<(String, Dtype, Vec<u64>, Vec<u8>)> {
    let model = Model::open(path, Access::Read, Limits::default()).unwrap();
    let tensor = |entry: safestep_core::Entry<'_>| {
        let mut bytes = vec![0; usize::try_from(entry.span().len().value()).unwrap()];
        model.read_into(&entry, 0, &mut bytes).unwrap();
        (entry.name().to_string(), entry.dtype(), entry.shape().dims().collect(), bytes)
    };
    model.index().iter().map(tensor).collect()
}

/// `test_worked_example_bf16_bytes`.
#[test]
fn the_bf16_file_has_112_bytes() {
    let data = encode(&W, Dtype::Bf16).unwrap();
    assert_eq!(data, [0x80, 0x3F, 0x00, 0x40, 0x40, 0x40, 0x80, 0x40]);
    let header =
        br#"{"__metadata__":{"format":"tinyllm"},"w":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}"#;
    assert_eq!(header.len(), 93);
    let expected = [&[0x60, 0, 0, 0, 0, 0, 0, 0], &header[..], b"   ", &data].concat();
    assert_eq!(expected.len(), 112);
    assert_eq!(file(&[("w", Dtype::Bf16, &[2, 2], &data)], Some(&tinyllm())), expected);
}

/// `test_matches_library_bytes`: the library's files again, from f32 values where the dtype has them.
#[test]
fn files_written_from_f32_values_are_the_librarys() {
    let mut dtypes = Vec::new();
    for name in ["numpy_dtypes", "numpy_ml_dtypes", "crate_packed", "metadata_one", "mixed", "ranks", "names"]
    {
        let path = golden(&format!("{name}.safetensors"));
        let model = Model::open(&path, Access::Read, Limits::default()).unwrap();
        let metadata: Option<Vec<(String, String)>> = model
            .index()
            .metadata()
            .map(|pairs| pairs.map(|(key, value)| (key.to_string(), value.to_string())).collect());
        let written: Vec<_> = tensors(&path)
            .into_iter()
            .map(|(name, dtype, shape, bytes)| {
                let values = decode(dtype, &bytes);
                let again = values.and_then(|values| encode(&values, dtype)).unwrap_or_else(|_| {
                    assert!(dtype == Dtype::Bool || dtype.bits() == 64, "{dtype} has no f32 values");
                    bytes.clone()
                });
                dtypes.push(dtype);
                (name, dtype, shape, again)
            })
            .collect();
        let lent: Vec<_> = written
            .iter()
            .map(|(name, dtype, shape, bytes)| (name.as_str(), *dtype, shape.as_slice(), bytes.as_slice()))
            .collect();
        assert!(file(&lent, metadata.as_deref()) == fs::read(&path).unwrap(), "{name}");
    }
    let missing: Vec<_> = Dtype::ALL.into_iter().filter(|dtype| !dtypes.contains(dtype)).collect();
    assert_eq!(missing, []);
}

/// `test_raw_bits_are_written_as_is`: NaN payloads too, which no value keeps.
#[test]
fn raw_codes_are_written_untouched() {
    let codes: Vec<u8> = (0..=255).collect();
    let halves: Vec<u8> =
        [0x7F81_u16, 0xFFFF, 0x8000, 0x0001].iter().flat_map(|code| code.to_le_bytes()).collect();
    let written = file(&[("f", Dtype::F8E4M3, &[256], &codes), ("h", Dtype::Bf16, &[4], &halves)], None);
    assert_eq!(written[written.len() - 264..], [halves, codes].concat());
}

/// `test_bf16_rounds_to_nearest_even`.
#[test]
fn bf16_rounds_to_nearest_even() {
    let cases: [(u32, u16); 8] = [
        (0x3F80_8000, 0x3F80), // 1 + 2^-8, a tie
        (0x3F81_8000, 0x3F82), // a tie above an odd code
        (0x3F80_7FFF, 0x3F80),
        (0x3F80_8001, 0x3F81),
        (0xBF80_8000, 0xBF80),
        (0x8000_0000, 0x8000),
        (0x7F7F_7FFF, 0x7F7F),
        (0x7F7F_8000, 0x7F80), // overflows to infinity
    ];
    for (bits, code) in cases {
        assert_eq!(encode(&[f32::from_bits(bits)], Dtype::Bf16).unwrap(), code.to_le_bytes(), "{bits:#x}");
    }
    assert_eq!(1.0 + 1.0 / 256.0, f32::from_bits(0x3F80_8000));
}

/// `test_f8_e4m3_codes`.
#[test]
fn f8_e4m3_has_these_codes() {
    let smallest = 1.0 / 512.0;
    let cases = [(0.0, 0x00), (smallest, 0x01), (1.0 / 64.0, 0x08), (1.0, 0x38), (448.0, 0x7E)];
    for (value, code) in cases {
        assert_eq!(encode(&[value, -value], Dtype::F8E4M3).unwrap(), [code, code | 0x80]);
        let decoded = decode(Dtype::F8E4M3, &[code, code | 0x80]).unwrap();
        assert_eq!(
            decoded.iter().map(|value| value.to_bits()).collect::<Vec<_>>(),
            [value, -value].map(f32::to_bits)
        );
    }
    assert!(decode(Dtype::F8E4M3, &[0x7F, 0xFF]).unwrap().into_iter().all(f32::is_nan));
    assert_eq!(decode(Dtype::F8E4M3, &[0x78, 0x80, 0xFE]).unwrap(), [256.0, -0.0, -448.0]);
}

/// `test_f8_rounds_to_nearest_even`.
#[test]
fn f8_rounds_to_nearest_even() {
    let cases = [
        (1.0625, 0x38), // a tie between 1 and 1.125
        (1.1875, 0x3A), // a tie between 1.125 and 1.25
        (250.0, 0x78),  // above the middle 248
        (248.0, 0x78),  // the middle of 240 (odd) and 256
        (247.99, 0x77),
        (1.0 / 1024.0, 0x00), // a tie between zero and the smallest
        (3.0 / 1024.0, 0x02), // a tie between 2^-9 and 2^-8
        (-0.0, 0x80),
        (-1.0 / 1024.0, 0x80),
    ];
    for (value, code) in cases {
        assert_eq!(encode(&[value], Dtype::F8E4M3).unwrap(), [code], "{value}");
    }
}

/// `test_f8_rejects_out_of_range`.
#[test]
fn f8_refuses_what_is_out_of_range() {
    for value in [449.0, -449.0, 448.0_f32.next_up(), f32::MAX, f32::INFINITY, f32::NEG_INFINITY] {
        let Err(NumbersError::Value(error)) = encode(&[0.0, value], Dtype::F8E4M3) else { panic!("{value}") };
        assert_eq!((error.index, error.refusal), (1, Refusal::OutOfRange));
        let mut bytes = [0];
        encode_f32(&[value], Dtype::F8E4M3, &mut bytes, OutOfRange::Saturate).unwrap();
        assert_eq!(bytes, [if value > 0.0 { 0x7E } else { 0xFE }]);
    }
    assert_eq!(encode(&[f32::NAN, -f32::NAN], Dtype::F8E4M3).unwrap(), [0x7F, 0x7F]);
}

/// `test_dtype_order_then_name`.
#[test]
fn tensors_lie_by_dtype_and_then_by_name() {
    let tensors: [(&str, Dtype, &[u64], &[u8]); 5] = [
        ("a", Dtype::U8, &[1], &[5]),
        ("b", Dtype::I32, &[1], &[4, 0, 0, 0]),
        ("d", Dtype::F32, &[1], &[3, 0, 0, 0]),
        ("c", Dtype::F32, &[1], &[2, 0, 0, 0]),
        ("é", Dtype::F32, &[0], &[]),
    ];
    let written = file(&tensors, None);
    let frame = Frame::read(&written, written.len() as u64, Limits::default()).unwrap();
    let judged = frame.header(frame.header_span().of(&written).unwrap()).unwrap().judge().unwrap();
    let names: Vec<String> = judged.iter().map(|entry| entry.name().to_string()).collect();
    assert_eq!(names, ["c", "d", "é", "b", "a"]);
    assert_eq!(frame.data_span().of(&written).unwrap(), [2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5]);
}

/// `test_save_rejects_bad_dtypes`: nothing becomes what it is not. Values have their Rust type, and the dtype is named;
/// between the two stand no others than these. A dtype for a tensor that is not there, and f64 or half values for
/// another dtype, belong to the writer of typed tensors in the shell, and are tested there.
#[test]
fn nothing_is_converted_silently() {
    for name in ["float32", "bf16", "F8", "f32", "F32 ", ""] {
        assert_eq!(Dtype::from_name(name), None, "{name}");
    }
    let mut bytes = [0; 8];
    for dtype in [Dtype::I64, Dtype::U64, Dtype::C64] {
        let error = encode_f32(&[1.0], dtype, &mut bytes, OutOfRange::Refuse);
        assert_eq!(error, Err(NumbersError::Type { dtype, numbers: "f32" }));
        let error = encode_f64(&[1.0], dtype, &mut bytes, OutOfRange::Saturate);
        assert_eq!(error, Err(NumbersError::Type { dtype, numbers: "f64" }));
    }
    for dtype in [Dtype::F64, Dtype::I64, Dtype::U64, Dtype::C64] {
        let error = decode_f32(dtype, &bytes, &mut [0.0]);
        assert_eq!(error, Err(NumbersError::Type { dtype, numbers: "f32" }));
    }
    assert_eq!(
        decode_f32(Dtype::F64, &bytes, &mut [0.0]).unwrap_err().to_string(),
        "expected numbers that F64 holds, found f32"
    );
}

/// `test_load_decodes_every_dtype`: the library wrote 0 to 5 in each, and special values.
#[test]
fn every_dtype_of_the_librarys_files_is_decoded() {
    let counting: Vec<f64> = (0..6).map(f64::from).collect();
    let mut seen = Vec::new();
    for name in ["numpy_dtypes.safetensors", "numpy_ml_dtypes.safetensors"] {
        for (_, dtype, shape, bytes) in tensors(&golden(name)) {
            assert_eq!(shape, [2, 3]);
            let mut values = vec![7.0; 6];
            match dtype {
                Dtype::Bool => {
                    let mut truths = [false; 6];
                    decode_bool(dtype, &bytes, &mut truths).unwrap();
                    assert_eq!(truths, [false, true, true, true, true, true]);
                    continue;
                }
                Dtype::C64 => {
                    let mut pairs = [[7.0; 2]; 6];
                    decode_complex(dtype, &bytes, &mut pairs).unwrap();
                    values = pairs
                        .map(|[real, imaginary]| f64::from(real) + 100.0 * f64::from(imaginary))
                        .to_vec();
                }
                _ => decode_f64(dtype, &bytes, &mut values).unwrap(),
            }
            if dtype == Dtype::F8E8M0 {
                // Powers of two only: 0 became NaN, 3 and 5 the nearest.
                assert!(values[0].is_nan() && values[1..] == [1.0, 2.0, 4.0, 4.0, 4.0]);
            } else {
                assert_eq!(values, counting, "{dtype}");
            }
            let (mut signed, mut unsigned) = ([7; 6], [7; 6]);
            if decode_i64(dtype, &bytes, &mut signed).is_ok() {
                decode_u64(dtype, &bytes, &mut unsigned).unwrap();
                assert_eq!((signed, unsigned), ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]));
                seen.push("integers");
            }
            seen.push(dtype.name());
        }
    }
    assert_eq!(seen.len(), 18 + 8, "{seen:?}");
    for (name, dtype, _, bytes) in tensors(&golden("special_values.safetensors")) {
        match name.as_str() {
            "f32" => {
                let bits = decode(dtype, &bytes).unwrap().into_iter().map(f32::to_bits);
                assert!(bits.eq(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word))));
            }
            "f16" => {
                let values = decode(dtype, &bytes).unwrap();
                assert!(values[0].to_bits() == 0 && values[1].to_bits() == 0x8000_0000);
                assert_eq!(
                    values[2..8],
                    [
                        2_f32.powi(-24),
                        -1023.0 * 2_f32.powi(-24),
                        2_f32.powi(-14),
                        65504.0,
                        f32::INFINITY,
                        f32::NEG_INFINITY
                    ]
                );
                assert!(values[8..].iter().all(|value| value.is_nan()));
            }
            "int64" => {
                let mut values = [0; 4];
                decode_i64(dtype, &bytes, &mut values).unwrap();
                assert_eq!(values, [i64::MIN, 0, 1, i64::MAX]);
            }
            "uint64" => {
                let mut values = [0; 4];
                decode_u64(dtype, &bytes, &mut values).unwrap();
                assert_eq!(values, [u64::MIN, 0, 1, u64::MAX]);
            }
            _ => {}
        }
    }
}

/// `test_read_header_checks_without_reading`: the header and the file's length are enough.
#[test]
fn a_header_is_judged_without_the_data() {
    let bytes = file(&[("w", Dtype::Bf16, &[2, 2], &[0; 8])], Some(&tinyllm()));
    let front = &bytes[..104];
    let judge = |front: &[u8], file_len| {
        let frame = Frame::read(front, file_len, Limits::default())?;
        let judged = frame.header(frame.header_span().of(front).unwrap())?.judge()?;
        let entry = judged.get("w").unwrap();
        assert_eq!((entry.dtype(), entry.shape().dims().collect::<Vec<_>>()), (Dtype::Bf16, vec![2, 2]));
        Ok::<_, safestep_core::Error>(())
    };
    assert_eq!(judge(front, 112), Ok(()));
    let rule = |front: &[u8], file_len| judge(front, file_len).unwrap_err().rule().unwrap().to_string();
    assert_eq!(rule(front, 113), "R5.surplus");
    assert_eq!(rule(front, 111), "R5.past_end");
    let huge = [&100_000_001_u64.to_le_bytes(), &front[8..]].concat();
    assert_eq!(rule(&huge, 112), "R1.too_large");
}

/// `test_load_rejects_unknown_dtypes`: case counts, the caller may allow fewer, and the size must fit.
#[test]
fn dtypes_are_known_allowed_and_as_long_as_they_should_be() {
    let rule = |dtype: &str, end: u64, limits: Limits| {
        let text = format!(r#"{{"w":{{"dtype":"{dtype}","shape":[2],"data_offsets":[0,{end}]}}}}"#);
        let bytes = [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
        let frame = Frame::read(&bytes, bytes.len() as u64 + end, limits).unwrap();
        let header = frame.header(text.as_bytes()).unwrap();
        header.judge().err().map(|error| error.rule().unwrap().to_string())
    };
    let course = safestep_core::DtypeSet::of(&[Dtype::F32, Dtype::Bf16, Dtype::F8E4M3]);
    let course = || Limits::default().dtypes(course);
    assert_eq!(rule("BF16", 4, course()), None);
    for (dtype, end) in [("F64", 16), ("BOOL", 2), ("bf16", 4)] {
        assert_eq!(rule(dtype, end, course()).as_deref(), Some("R4.dtype"));
    }
    assert_eq!(rule("BF16", 8, course()).as_deref(), Some("R4.size"));
    assert_eq!(rule("F64", 16, Limits::default()), None);
}

/// `test_raw_codes_roundtrip`: codes to values to codes gives the same file, for every code that is a number.
#[test]
fn codes_to_values_to_codes_is_the_same_file() {
    for format in FORMATS {
        let numbers: Vec<u16> = (0..1_u32 << format.dtype.bits())
            .map(|code| u16::try_from(code).unwrap())
            .filter(|code| !(format.decode)(*code).is_nan())
            .collect();
        let numbers = &numbers[..numbers.len() / 4 * 4];
        let bytes = match format.dtype.bits() {
            16 => numbers.iter().flat_map(|code| code.to_le_bytes()).collect::<Vec<u8>>(),
            8 => numbers.iter().map(|code| code.to_le_bytes()[0]).collect(),
            // Below a byte there is no NaN, and each byte pattern is good.
            _ => (0..=254).collect(),
        };
        let values = decode(format.dtype, &bytes).unwrap();
        let again = encode(&values, format.dtype).unwrap();
        let shape = [values.len() as u64];
        let of = |bytes: &[u8]| file(&[("w", format.dtype, &shape, bytes)], None);
        assert!(of(&again) == of(&bytes), "{}", format.dtype);
    }
}

/// `test_v0_calls_still_work`: the F32 file.
#[test]
fn the_f32_file_has_120_bytes() {
    let data = encode(&W, Dtype::F32).unwrap();
    let header =
        br#"{"__metadata__":{"format":"tinyllm"},"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}"#;
    let expected = [&[0x60, 0, 0, 0, 0, 0, 0, 0], &header[..], b"   ", &data].concat();
    assert_eq!(expected.len(), 120);
    let written = file(&[("w", Dtype::F32, &[2, 2], &data)], Some(&tinyllm()));
    assert_eq!(written, expected);
    assert_eq!(decode(Dtype::F32, &written[104..]).unwrap(), W);
}
