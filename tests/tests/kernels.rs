//! The levels of the kernels: each gives the bits that the core's own loops give, and refuses what they refuse.
//!
//! A kernel takes many elements at once, at any address, and leaves what is rare to the core. So the lengths around its
//! blocks, the addresses around its vectors and the values around its limits are tried one by one. What the machine at hand
//! does not have is not tried: `-- --nocapture` shows what that was.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::Once;

use safestep::kernels::{Level, decode_f32, encode_f32};
use safestep::safestep_core::Dtype;
use safestep::safestep_core::numbers::{self, NumbersError, OutOfRange};
use safestep_tests::remarks::remark;

const SMALL: [Dtype; 10] = [
    Dtype::F4,
    Dtype::F6E2M3,
    Dtype::F6E3M2,
    Dtype::F8E5M2,
    Dtype::F8E4M3,
    Dtype::F8E8M0,
    Dtype::F8E4M3Fnuz,
    Dtype::F8E5M2Fnuz,
    Dtype::F16,
    Dtype::Bf16,
];

const BEYOND: [OutOfRange; 2] = [OutOfRange::Refuse, OutOfRange::Saturate];

/// The levels of this machine; the others are named, once.
fn levels() -> impl Iterator<Item = Level> {
    static NAMED: Once = Once::new();
    NAMED.call_once(|| {
        for level in Level::ALL.iter().filter(|level| !level.is_available()) {
            remark(&format!("skipped: this machine has no {level:?}, so its kernels are not tried"));
        }
    });
    Level::available()
}

/// Numbers that only look random.
struct Mixer(u64);

impl Mixer {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 ^ self.0 >> 29) >> 32) as u32
    }
}

fn bytes_of(dtype: Dtype, elements: usize) -> Option<usize> {
    let bits = elements * dtype.bits() as usize;
    bits.is_multiple_of(8).then_some(bits / 8)
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// The level's bits are the core's, at this address.
fn decodes(level: Level, dtype: Dtype, bytes: &[u8], elements: usize, shift: usize) {
    let mut expected = vec![0.0; elements];
    numbers::decode_f32(dtype, bytes, &mut expected).unwrap();
    let mut room = vec![0xA5; shift];
    room.extend(bytes);
    let mut found = vec![7.0; shift + elements + 1];
    level.decode_f32(dtype, &room[shift..], &mut found[shift..][..elements]).unwrap();
    assert_eq!(bits(&found[shift..][..elements]), bits(&expected), "{level:?} {dtype} {elements} at {shift}");
    assert_eq!((found[..shift].iter().all(|&value| value == 7.0), found.last()), (true, Some(&7.0)));
}

/// The level's bytes, or its error, are the core's, at this address.
fn encodes(level: Level, values: &[f32], dtype: Dtype, beyond: OutOfRange, shift: usize) {
    let Some(len) = bytes_of(dtype, values.len()) else { return };
    let mut expected = vec![0; len];
    let answer = numbers::encode_f32(values, dtype, &mut expected, beyond);
    let mut room = vec![7.0; shift];
    room.extend(values);
    let mut found = vec![0xA5; shift + len + 1];
    let what = format!("{level:?} {dtype} {beyond:?} {} at {shift}", values.len());
    // A NaN in an error is equal to none.
    let shown = |answer: &Result<(), NumbersError>| format!("{answer:?}");
    let found_answer = level.encode_f32(&room[shift..], dtype, &mut found[shift..][..len], beyond);
    assert_eq!(shown(&found_answer), shown(&answer), "{what}");
    if answer.is_ok() {
        assert_eq!(found[shift..][..len], expected, "{what}");
    }
    assert_eq!((found[..shift].iter().all(|&byte| byte == 0xA5), found.last()), (true, Some(&0xA5)));
}

#[test]
fn every_code_decodes_as_the_core_says() {
    for level in levels() {
        for dtype in SMALL {
            // All codes in order: all bytes, all pairs, and all threes of a step that is no power of two.
            let bytes: Vec<u8> = match dtype.bits() {
                16 => (0..=u16::MAX).flat_map(u16::to_le_bytes).collect(),
                6 => (0..1_u32 << 24)
                    .step_by(97)
                    .flat_map(|code| code.to_le_bytes().into_iter().take(3))
                    .collect(),
                _ => (0..=u8::MAX).collect(),
            };
            let whole = bytes.len() / 12 * 12;
            let elements = whole * 8 / dtype.bits() as usize;
            decodes(level, dtype, &bytes[..whole], elements, 0);
            let last = &bytes[bytes.len() - 192..];
            decodes(level, dtype, last, 192 * 8 / dtype.bits() as usize, 0);
        }
    }
}

#[test]
fn every_length_at_every_address() {
    let mut mixer = Mixer(1);
    let codes: Vec<u8> = (0..1024).map(|_| mixer.next() as u8).collect();
    for level in levels() {
        for dtype in SMALL {
            for elements in 0..=300 {
                let Some(len) = bytes_of(dtype, elements) else { continue };
                let values: Vec<f32> =
                    (0..elements).map(|_| (mixer.next() >> 8) as f32 / 16_777_216.0 + 0.1).collect();
                for shift in 0..if elements < 70 { 64 } else { 4 } {
                    decodes(level, dtype, &codes[shift..][..len], elements, shift);
                    encodes(level, &values, dtype, OutOfRange::Refuse, shift);
                }
            }
        }
    }
}

/// Any bits, among them NaNs with payloads, subnormals and values far out of range; and those that are near to the format's.
#[test]
fn any_value_encodes_as_the_core_says() {
    let mut mixer = Mixer(2);
    for level in levels() {
        for dtype in SMALL {
            for beyond in BEYOND {
                for round in 0..1_500 {
                    let values: Vec<f32> = (0..256)
                        .map(|_| {
                            let bits = mixer.next();
                            // In three of four rounds an exponent near to one's, in one a short mantissa too: ties.
                            let near = bits & 0x83FF_FFFF | (0x3000_0000 + ((mixer.next() % 6) << 26));
                            f32::from_bits(match round % 4 {
                                0 => bits,
                                1 => near & 0xFFFC_0000,
                                2 => near & 0xFFFF_8000 | mixer.next() & 1,
                                _ => near,
                            })
                        })
                        .collect();
                    let values: Vec<f32> = match dtype {
                        Dtype::F8E8M0 if round % 4 > 0 => values.iter().map(|value| value.abs()).collect(),
                        _ => values,
                    };
                    encodes(level, &values, dtype, beyond, 0);
                    let limit = largest(dtype);
                    let within: Vec<f32> = values.iter().map(|value| value.clamp(-limit, limit)).collect();
                    encodes(level, &within, dtype, beyond, 0);
                }
            }
        }
    }
}

fn largest(dtype: Dtype) -> f32 {
    match dtype {
        Dtype::F4 => 6.0,
        Dtype::F6E2M3 => 7.5,
        Dtype::F6E3M2 => 28.0,
        Dtype::F8E4M3 => 448.0,
        Dtype::F8E4M3Fnuz => 240.0,
        Dtype::F8E5M2 | Dtype::F8E5M2Fnuz => 57_344.0,
        Dtype::F16 => 65_504.0,
        _ => f32::MAX,
    }
}

/// The codes of a format, the middles between them and their neighbours come back from every level.
#[test]
fn codes_and_middles_encode_as_the_core_says() {
    for level in levels() {
        for dtype in SMALL {
            let codes: Vec<u8> = match dtype.bits() {
                16 => (0..=u16::MAX).flat_map(u16::to_le_bytes).collect(),
                6 => (0..64_u32)
                    .flat_map(|code| {
                        (code | code << 6 | code << 12 | code << 18).to_le_bytes().into_iter().take(3)
                    })
                    .collect(),
                _ => (0..=u8::MAX).collect(),
            };
            let mut values = vec![0.0; codes.len() * 8 / dtype.bits() as usize];
            numbers::decode_f32(dtype, &codes, &mut values).unwrap();
            values.retain(|value| value.is_finite());
            values.sort_by(f32::total_cmp);
            let middles: Vec<f32> = values.windows(2).map(|pair| pair[0] / 2.0 + pair[1] / 2.0).collect();
            let around =
                values.iter().chain(&middles).flat_map(|value| [value.next_down(), *value, value.next_up()]);
            let limit = largest(dtype);
            let mut around: Vec<f32> = around.filter(|value| value.abs() <= limit).collect();
            around.truncate(around.len() / 64 * 64);
            for beyond in BEYOND {
                encodes(level, &around, dtype, beyond, 0);
            }
        }
    }
}

/// One value that is no plain work, at every place of a slice: the same error, or the same code.
#[test]
fn one_odd_value_at_every_place() {
    let odd = [
        f32::NAN,
        f32::from_bits(0xFFC0_1234),
        f32::from_bits(0x7F80_0001),
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        -65_520.0,
        449.0,
        241.0,
        -6.5,
        1e-40,
        -1e-45,
        0.0,
        -0.0,
    ];
    for level in levels() {
        for dtype in SMALL {
            for (value, beyond) in odd.iter().flat_map(|&value| BEYOND.map(|beyond| (value, beyond))) {
                for place in 0..140 {
                    let mut values = vec![1.5; 200];
                    values[place] = value;
                    encodes(level, &values, dtype, beyond, 0);
                }
            }
        }
    }
}

/// From some size on a kernel writes past the caches, line by line; where the first line begins is not where the slice does.
#[test]
fn what_is_larger_than_the_caches() {
    let mut mixer = Mixer(3);
    let elements = (4 << 20) + 1_004;
    let codes: Vec<u8> = (0..elements * 2).map(|_| mixer.next() as u8).collect();
    let mut values: Vec<f32> = (0..elements * 2).map(|_| (mixer.next() >> 8) as f32 / 16_777_216.0).collect();
    values[5_000_003] = f32::NAN;
    for level in levels().filter(|level| *level != Level::Portable) {
        for dtype in SMALL {
            for shift in [0, 1, 4] {
                decodes(level, dtype, &codes[..bytes_of(dtype, elements).unwrap()], elements, shift);
            }
        }
        for dtype in [Dtype::F16, Dtype::Bf16] {
            for (shift, beyond) in
                [(0, OutOfRange::Refuse), (1, OutOfRange::Saturate), (8, OutOfRange::Saturate)]
            {
                encodes(level, &values, dtype, beyond, shift);
            }
        }
    }
}

/// What no kernel takes is the core's: other dtypes, and lengths that do not fit.
#[test]
fn the_rest_is_as_in_the_core() {
    for level in levels() {
        for (dtype, len) in
            [(Dtype::F4, 3), (Dtype::F6E2M3, 4), (Dtype::Bf16, 9), (Dtype::F32, 11), (Dtype::I64, 32)]
        {
            let (mut one, mut other) = ([0.0; 4], [0.0; 4]);
            let bytes = vec![1; len];
            let answers =
                [level.decode_f32(dtype, &bytes, &mut one), numbers::decode_f32(dtype, &bytes, &mut other)];
            assert!(answers[0].is_err() && answers[0] == answers[1], "{level:?} {dtype}");
            let (mut one, mut other) = (bytes.clone(), bytes);
            let beyond = OutOfRange::Refuse;
            let answers = [
                level.encode_f32(&[1.0; 4], dtype, &mut one, beyond),
                numbers::encode_f32(&[1.0; 4], dtype, &mut other, beyond),
            ];
            assert!(answers[0].is_err() && answers[0] == answers[1], "{level:?} {dtype}");
        }
        let (mut values, mut bytes) = ([0.0; 2], [0; 8]);
        level.decode_f32(Dtype::I16, &[1, 0, 255, 255], &mut values).unwrap();
        level.encode_f32(&values, Dtype::F32, &mut bytes, OutOfRange::Refuse).unwrap();
        assert_eq!((values, bytes), ([1.0, -1.0], [0, 0, 128, 63, 0, 0, 128, 191]));
    }
}

#[test]
fn the_best_level_is_the_last_available() {
    let available: Vec<Level> = Level::available().collect();
    assert_eq!(available.first(), Some(&Level::Portable));
    assert_eq!(available.last(), Some(&Level::best()));
    let mut values = [0.0; 64];
    decode_f32(Dtype::F8E4M3, &[0x38; 64], &mut values).unwrap();
    let mut bytes = [0; 32];
    encode_f32(&values, Dtype::F4, &mut bytes, OutOfRange::Refuse).unwrap();
    assert_eq!((values, bytes), ([1.0; 64], [0x22; 32]));
}

/// The compiler may use whatever a feature implies, so the machine is asked for that too.
#[test]
fn a_level_asks_for_all_that_its_features_imply() {
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../std-shell/src/kernels");
    let asked = fs::read_to_string(format!("{sources}.rs")).unwrap();
    let asked = |level: &str| {
        let (_, list) = asked.split_once(&format!("Self::{level} => ")).unwrap();
        let (_, list) = list.split_once("detected!(").unwrap();
        let (list, _) = list.split_once(')').unwrap();
        list.split_whitespace().map(|word| word.trim_matches('"').to_string()).collect::<BTreeSet<_>>()
    };
    let implied = |features: &str| {
        let features = features.split(',').map(|feature| format!("+{feature}")).collect::<Vec<_>>().join(",");
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
        rustc.args(["--print", "cfg", "--target", "x86_64-unknown-linux-gnu", "-C"]);
        let printed = rustc.arg(format!("target-feature={features}")).output().unwrap();
        let printed = String::from_utf8(printed.stdout).unwrap();
        let words = printed.lines().filter_map(|line| line.strip_prefix("target_feature="));
        words.map(|word| word.trim_matches('"').to_string()).collect::<BTreeSet<_>>()
    };
    let baseline = implied("sse2");
    assert!(baseline.contains("sse2"), "{baseline:?}");
    let mut all = BTreeSet::new();
    for (level, file) in [("Avx2", "avx2.rs"), ("Avx512", "avx512.rs")] {
        // The wider one asks for the narrower one first.
        all.append(&mut asked(level));
        let source = fs::read_to_string(format!("{sources}/{file}")).unwrap();
        let named = source.split("target_feature(enable = \"").skip(1);
        let named: BTreeSet<&str> = named.map(|rest| rest.split('"').next().unwrap()).collect();
        let wanted: BTreeSet<String> = named.iter().flat_map(|features| implied(features)).collect();
        let wanted: BTreeSet<String> = wanted.difference(&baseline).cloned().collect();
        assert_eq!(all, wanted, "{level}");
    }
}
