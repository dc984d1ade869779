//! The formats against `ml_dtypes`: `fixtures/numbers/make.py` says what each checksum is over, and where the project's
//! rules differ from the library's.

use std::fmt::Write as _;

use safestep_core::Dtype;
use safestep_core::numbers::{
    BLOCK_ELEMENTS, OutOfRange, decode_blocks, decode_f32, encode_blocks, encode_f32, encode_f64,
};
use safestep_tests::cases::fixtures;
use safestep_tests::headers::random::Random;
use safestep_tests::oracle::numbers::{BLOCK_DTYPES, FORMATS, Single};
use sha2::{Digest, Sha256};

/// What stands for a value that has no code.
const REFUSED: u16 = 0xFFFF;
const RANDOM: usize = 10_000_000;
const NEAR: usize = 1_000_000;
const BLOCKS: usize = 2_000;
/// How many values go through the test at once.
const CHUNK: usize = 50_000;

#[derive(serde::Deserialize)]
struct Expected {
    dtype: String,
    seed: u64,
    decoded: Option<Vec<String>>,
    decoded_sha256: String,
    midpoints_sha256: String,
    random_sha256: String,
    near_first: u32,
    near_count: u32,
    near_sha256: String,
    blocks: Option<Blocks>,
}

#[derive(serde::Deserialize)]
struct Blocks {
    scales_sha256: String,
    bytes_sha256: String,
    decoded_sha256: String,
}

/// Each format with what is expected of it.
fn formats() -> Vec<(Single, Expected)> {
    let text = std::fs::read_to_string(fixtures().join("numbers/expected.json")).unwrap();
    let expected: Vec<Expected> = serde_json::from_str(&text).unwrap();
    assert_eq!(expected.len(), FORMATS.len());
    let of =
        |expected: &Expected| *FORMATS.iter().find(|format| format.dtype.name() == expected.dtype).unwrap();
    expected.into_iter().map(|expected| (of(&expected), expected)).collect()
}

fn hex(digest: Sha256) -> String {
    digest.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn sha256(bytes: impl IntoIterator<Item = u8>) -> String {
    hex(Sha256::new_with_prefix(bytes.into_iter().collect::<Vec<_>>()))
}

fn f32_sha256(values: &[f32]) -> String {
    let canonical = |value: &f32| if value.is_nan() { 0x7FC0_0000 } else { value.to_bits() };
    sha256(values.iter().flat_map(|value| canonical(value).to_le_bytes()))
}

/// The codes of all values, each encoded alone; those that are not refused once more in a slice, from f32 and from f64.
fn encode_all(format: &Single, values: &[f32], digest: &mut Sha256) {
    let codes: Vec<u16> =
        values.iter().map(|value| (format.encode)(*value, OutOfRange::Refuse).unwrap_or(REFUSED)).collect();
    digest.update(codes.iter().flat_map(|code| code.to_le_bytes()).collect::<Vec<_>>());
    let mut pairs: Vec<(f32, u16)> =
        values.iter().copied().zip(codes).filter(|(_, code)| *code != REFUSED).collect();
    pairs.truncate(pairs.len() / 4 * 4);
    let (values, codes): (Vec<f32>, Vec<u16>) = pairs.into_iter().unzip();
    let mut bytes = vec![0; values.len() * format.dtype.bits() as usize / 8];
    encode_f32(&values, format.dtype, &mut bytes, OutOfRange::Refuse).unwrap();
    assert!(bytes == packed(format.dtype, &codes), "{}", format.dtype);
    let wide: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
    bytes.fill(0);
    encode_f64(&wide, format.dtype, &mut bytes, OutOfRange::Refuse).unwrap();
    assert!(bytes == packed(format.dtype, &codes), "{} from f64", format.dtype);
}

/// The codes one behind the other, low bits first.
fn packed(dtype: Dtype, codes: &[u16]) -> Vec<u8> {
    let byte = |byte: u32| u8::try_from(byte & 0xFF).unwrap();
    let word =
        |codes: &[u16]| codes.iter().rev().fold(0, |word, code| word << dtype.bits() | u32::from(*code));
    match dtype.bits() {
        4 => codes.chunks(2).map(|two| byte(word(two))).collect(),
        6 => codes.chunks(4).flat_map(|four| [0, 8, 16].map(|shift| byte(word(four) >> shift))).collect(),
        8 => codes.iter().map(|code| byte((*code).into())).collect(),
        _ => codes.iter().flat_map(|code| code.to_le_bytes()).collect(),
    }
}

#[test]
fn every_code_decodes_as_the_library_decodes_it_and_encodes_to_itself() {
    for (format, expected) in formats() {
        let codes: Vec<u16> =
            (0..1_u32 << format.dtype.bits()).map(|code| code.try_into().unwrap()).collect();
        let singles: Vec<f32> = codes.iter().map(|code| (format.decode)(*code)).collect();
        if let Some(decoded) = &expected.decoded {
            for ((value, code), bits) in singles.iter().zip(&codes).zip(decoded) {
                let found = if value.is_nan() { 0x7FC0_0000 } else { value.to_bits() };
                assert_eq!(format!("{found:08x}"), *bits, "{} {code:#x}", expected.dtype);
            }
        }
        assert_eq!(f32_sha256(&singles), expected.decoded_sha256, "{}", expected.dtype);
        let mut slice = vec![0.0; codes.len()];
        decode_f32(format.dtype, &packed(format.dtype, &codes), &mut slice).unwrap();
        assert!(slice.iter().map(|value| value.to_bits()).eq(singles.iter().map(|value| value.to_bits())));
        let nans: Vec<u16> = singles
            .iter()
            .zip(&codes)
            .filter_map(|(value, code)| {
                let again = (format.encode)(*value, OutOfRange::Refuse);
                if value.is_nan() {
                    return again.ok();
                }
                assert_eq!(again, Ok(*code), "{}", expected.dtype);
                None
            })
            .collect();
        let quiet = nans.first().copied().unwrap_or_default();
        assert!(nans.iter().all(|nan| *nan == quiet) && (nans.is_empty() || (format.decode)(quiet).is_nan()));
    }
}

#[test]
fn middles_between_codes_go_where_the_library_rounds_them() {
    for (format, expected) in formats() {
        let codes = 0..1_u32 << format.dtype.bits();
        let mut steps: Vec<f64> = codes
            .map(|code| f64::from((format.decode)(code.try_into().unwrap())))
            .filter(|value| value.is_finite() && value.is_sign_positive())
            .collect();
        steps.sort_by(f64::total_cmp);
        let largest = steps[steps.len() - 1];
        let last = steps[steps.len() - 2];
        steps.push(if steps[0] == 0.0 { 2.0 * largest - last } else { 2.0 * largest });
        let values: Vec<f32> = steps
            .windows(2)
            .map(|pair| f64::midpoint(pair[0], pair[1]) as f32)
            .flat_map(|middle| [middle.next_down(), middle, middle.next_up()])
            .flat_map(|value| [value, -value])
            .collect();
        let mut digest = Sha256::new();
        encode_all(&format, &values, &mut digest);
        assert_eq!(hex(digest), expected.midpoints_sha256, "{}", expected.dtype);
    }
}

/// The patterns of a seed, as `make.py` draws them.
fn patterns(seed: u64, count: usize) -> impl Iterator<Item = Vec<u32>> {
    let mut random = Random::new(seed);
    (0..count / CHUNK).map(move |_| {
        let words = (0..CHUNK / 2).map(|_| random.bits());
        words.flat_map(|word| [word as u32, (word >> 32) as u32]).collect()
    })
}

/// The same near the values of a format.
fn near(expected: &Expected) -> impl Iterator<Item = Vec<f32>> {
    let (first, count) = (expected.near_first, expected.near_count);
    let near = move |bits: u32| bits & 0x807F_FFFF | (first + (bits >> 23 & 0xFF) % count) << 23;
    patterns(expected.seed, NEAR)
        .map(move |bits| bits.into_iter().map(|bits| f32::from_bits(near(bits))).collect())
}

fn random_patterns(format: &Single, expected: &Expected) {
    let mut digest = Sha256::new();
    for bits in patterns(expected.seed, RANDOM) {
        encode_all(format, &bits.into_iter().map(f32::from_bits).collect::<Vec<_>>(), &mut digest);
    }
    assert_eq!(hex(digest), expected.random_sha256, "{}", expected.dtype);
    let mut digest = Sha256::new();
    near(expected).for_each(|values| encode_all(format, &values, &mut digest));
    assert_eq!(hex(digest), expected.near_sha256, "{} near its values", expected.dtype);
}

#[test]
fn ten_million_patterns_are_encoded_as_the_library_encodes_them() {
    std::thread::scope(|scope| {
        for (format, expected) in formats() {
            scope.spawn(move || random_patterns(&format, &expected));
        }
    });
}

#[test]
fn blocks_are_those_of_the_specification_by_the_library() {
    let mut seen = 0;
    for (format, expected) in formats() {
        let Some(blocks) = &expected.blocks else { continue };
        let mut values: Vec<f32> = near(&expected).flatten().take(BLOCKS * BLOCK_ELEMENTS).collect();
        let finite = |value: f32, other| if value.is_finite() { value } else { other };
        for (block, number) in values.chunks_mut(BLOCK_ELEMENTS).zip(0..) {
            let factor = 2_f32.powi(number % 200 - 100);
            for value in block {
                let moved = finite(finite(*value, 1.0) * factor, 2.0);
                *value = if number % 50 == 0 { 0.0 } else { moved };
            }
        }
        let mut scales = vec![0; BLOCKS];
        let mut bytes = vec![0; values.len() * format.dtype.bits() as usize / 8];
        encode_blocks(&values, format.dtype, &mut scales, &mut bytes).unwrap();
        let mut decoded = vec![0.0; values.len()];
        decode_blocks(format.dtype, &scales, &bytes, &mut decoded).unwrap();
        assert_eq!(sha256(scales), blocks.scales_sha256, "{}", expected.dtype);
        assert_eq!(sha256(bytes), blocks.bytes_sha256, "{}", expected.dtype);
        assert_eq!(f32_sha256(&decoded), blocks.decoded_sha256, "{}", expected.dtype);
        seen += 1;
    }
    assert_eq!(seen, BLOCK_DTYPES.len());
}
