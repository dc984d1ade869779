//! Turns any bytes into elements of every dtype, and into values, and holds what the core makes of them against the twin.

use safestep::kernels::Level;
use safestep_core::Dtype;
use safestep_core::numbers::{
    BLOCK_ELEMENTS, Bf16, F4, F6E2M3, F6E3M2, F8E4M3, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E8M0, F16, Format,
    Number, NumbersError, OutOfRange, Refusal, code, decode_blocks, decode_bool, decode_complex, decode_f32,
    decode_f64, decode_i64, decode_u64, encode_blocks, encode_f32, encode_f64, number,
};

use crate::twin::numbers::{self as twin, NoCode};

/// One format of the core, one element at a time.
#[derive(Debug, Clone, Copy)]
pub struct Single {
    /// Its dtype.
    pub dtype: Dtype,
    /// [`Format::decode`].
    pub decode: fn(u16) -> f32,
    /// [`Format::encode`].
    pub encode: fn(f32, OutOfRange) -> Result<u16, Refusal>,
    /// [`Format::LARGEST`].
    pub largest: f32,
}

/// Every float format of 16 bits or less.
pub const FORMATS: [Single; 10] = [
    single::<F4>(),
    single::<F6E2M3>(),
    single::<F6E3M2>(),
    single::<F8E5M2>(),
    single::<F8E4M3>(),
    single::<F8E8M0>(),
    single::<F8E4M3Fnuz>(),
    single::<F8E5M2Fnuz>(),
    single::<F16>(),
    single::<Bf16>(),
];

/// The dtypes that are elements of blocks with a scale.
pub const BLOCK_DTYPES: [Dtype; 5] = [Dtype::F4, Dtype::F6E2M3, Dtype::F6E3M2, Dtype::F8E5M2, Dtype::F8E4M3];

const fn single<F: Format>() -> Single {
    Single { dtype: F::DTYPE, decode: F::decode, encode: F::encode, largest: F::LARGEST }
}

/// Any bytes as elements of each dtype, and as f32 and f64 values:
///
/// * each code decodes to what the twin says, alone and in a slice, to f32 and f64;
/// * decoded, encoded and decoded again, it is the same value; and the same code, if it is not NaN;
/// * each value becomes the code that the twin finds nearest, alone and in a slice, from f32 and from f64;
/// * what has no code is refused by each of them, for the same reason and at the same place;
/// * every level of the shell's kernels that this machine has says the same as the core, bit for bit.
///
/// # Panics
/// When any of this is not so.
pub fn codes_and_values(bytes: &[u8]) {
    let singles: Vec<f32> = bytes.as_chunks().0.iter().map(|word| f32::from_le_bytes(*word)).collect();
    let doubles: Vec<f64> = bytes.as_chunks().0.iter().map(|word| f64::from_le_bytes(*word)).collect();
    for dtype in Dtype::ALL {
        let whole = whole_elements(dtype, bytes.len());
        elements(dtype, whole, &bytes[..whole * dtype.bits() as usize / 8]);
    }
    for format in &FORMATS {
        let whole = whole_elements(format.dtype, bytes.len());
        codes(format, whole, &bytes[..whole * format.dtype.bits() as usize / 8]);
        for beyond in [OutOfRange::Refuse, OutOfRange::Saturate] {
            values(format, &singles, beyond);
            wide_values(format, &doubles, beyond);
        }
    }
    for dtype in BLOCK_DTYPES {
        blocks(dtype, bytes, &singles);
    }
    for level in Level::available() {
        kernels(level, bytes, &singles);
    }
}

/// The elements in the bytes, and the codes of the values, repeated until a kernel takes them, against the core's.
fn kernels(level: Level, bytes: &[u8], values: &[f32]) {
    // A kernel takes up to 64 elements at once, and what is odd in one block must not be in the next.
    let bytes = bytes.repeat(1 + 256 / bytes.len().max(1));
    let values = values.repeat(1 + 256 / values.len().max(1));
    for format in &FORMATS {
        let dtype = format.dtype;
        let count = whole_elements(dtype, bytes.len());
        let bytes = &bytes[..count * dtype.bits() as usize / 8];
        let (mut found, mut expected) = (vec![1.0; count], vec![2.0; count]);
        let answers = [level.decode_f32(dtype, bytes, &mut found), decode_f32(dtype, bytes, &mut expected)];
        assert_eq!(answers, [Ok(()), Ok(())], "{level:?} {dtype}");
        let same = found.iter().map(Bits::bits).eq(expected.iter().map(Bits::bits));
        assert!(same, "{level:?} {dtype}: {found:?}, the core: {expected:?}");

        let values = &values[..whole_values(dtype, values.len())];
        let len = values.len() * dtype.bits() as usize / 8;
        for beyond in [OutOfRange::Refuse, OutOfRange::Saturate] {
            let (mut found, mut expected) = (vec![1; len], vec![2; len]);
            let answer = level.encode_f32(values, dtype, &mut found, beyond);
            let wanted = encode_f32(values, dtype, &mut expected, beyond);
            // A NaN in an error is equal to none.
            assert_eq!(format!("{answer:?}"), format!("{wanted:?}"), "{level:?} {dtype} {beyond:?}");
            assert!(wanted.is_err() || found == expected, "{level:?} {dtype} {beyond:?} {values:?}");
        }
    }
}

/// The most elements that fill whole bytes, of no more than so many.
fn whole_elements(dtype: Dtype, bytes: usize) -> usize {
    let group = match dtype.bits() {
        4 => 2,
        6 => 4,
        _ => 1,
    };
    bytes * 8 / dtype.bits() as usize / group * group
}

/// Elements one at a time against slices of each type.
fn elements(dtype: Dtype, count: usize, bytes: &[u8]) {
    let numbers: Vec<Number> = (0..count as u64)
        .map(|index| {
            assert_eq!(code(dtype, bytes, index), twin::code(dtype.bits(), bytes, index), "{dtype} {index}");
            number(dtype, bytes, index).expect("an element")
        })
        .collect();
    // A truth value, or the number that the byte is; in slices neither becomes any other number.
    let numbers: Vec<Number> = match dtype {
        Dtype::Bool => numbers.iter().zip(bytes).map(|(number, byte)| truth(*number, *byte)).collect(),
        _ => numbers,
    };
    for index in [count as u64, u64::MAX / 8, u64::MAX] {
        assert_eq!((code(dtype, bytes, index), number(dtype, bytes, index)), (None, None), "{dtype} {index}");
    }
    let mut floats = vec![0.0; count];
    slice(dtype, &numbers, decode_f32(dtype, bytes, &mut floats), &floats, |number| match dtype {
        Dtype::I64 | Dtype::U64 => Wanted::No,
        _ => f32_of(number),
    });
    let mut doubles = vec![0.0; count];
    slice(dtype, &numbers, decode_f64(dtype, bytes, &mut doubles), &doubles, f64_of);
    let mut signed = vec![0; count];
    slice(dtype, &numbers, decode_i64(dtype, bytes, &mut signed), &signed, |number| match integer(number) {
        Some(integer) => Wanted::of(i64::try_from(integer).ok(), |integer| *integer as u64),
        None => Wanted::No,
    });
    let mut unsigned = vec![0; count];
    slice(dtype, &numbers, decode_u64(dtype, bytes, &mut unsigned), &unsigned, |number| {
        match integer(number) {
            Some(integer) => Wanted::of(u64::try_from(integer).ok(), |integer| *integer),
            None => Wanted::No,
        }
    });
    let mut bools = vec![false; count];
    let found = decode_bool(dtype, bytes, &mut bools);
    match bytes.iter().position(|byte| *byte > 1).filter(|_| dtype == Dtype::Bool) {
        _ if dtype != Dtype::Bool => refused_type(found),
        Some(place) => {
            refused_value(found, place, Refusal::NotABool);
        }
        None => assert!(found.is_ok() && bools.iter().zip(bytes).all(|(value, byte)| *value == (*byte == 1))),
    }
    let mut complex = vec![[0.0; 2]; count];
    let found = decode_complex(dtype, bytes, &mut complex);
    if dtype == Dtype::C64 {
        assert_eq!(found, Ok(()));
        for (value, number) in complex.iter().zip(&numbers) {
            let Number::Complex(expected) = number else { panic!("{number:?} of C64") };
            assert_eq!(value.map(f32::to_bits), expected.map(f32::to_bits));
        }
    } else {
        refused_type(found);
    }
}

fn truth(number: Number, byte: u8) -> Number {
    let expected = if byte > 1 { Number::Unsigned(byte.into()) } else { Number::Bool(byte == 1) };
    assert_eq!(number, expected);
    Number::Bool(byte > 0)
}

/// What a number is to become.
enum Wanted {
    /// The value with these bits.
    Bits(u64),
    /// Nothing: it would not be exact.
    Inexact,
    /// Nothing: numbers of this dtype never become that type.
    No,
}

impl Wanted {
    fn of<T>(value: Option<T>, bits: impl Fn(&T) -> u64) -> Self {
        value.as_ref().map_or(Self::Inexact, |value| Self::Bits(bits(value)))
    }
}

/// A slice that was decoded, or the error, against what each number is to become.
fn slice<T: Bits>(
    dtype: Dtype,
    numbers: &[Number],
    found: Result<(), NumbersError>,
    values: &[T],
    wanted: impl Fn(&Number) -> Wanted,
) {
    for (index, (number, value)) in numbers.iter().zip(values).enumerate() {
        match wanted(number) {
            Wanted::Bits(bits) => assert_eq!(value.bits(), bits, "{dtype} {number:?} in element {index}"),
            Wanted::Inexact => return refused_value(found, index, Refusal::Inexact),
            Wanted::No => return refused_type(found),
        }
    }
    assert!(found.is_ok() || numbers.is_empty(), "{dtype} {found:?}");
}

fn refused_type(found: Result<(), NumbersError>) {
    assert!(matches!(found, Err(NumbersError::Type { .. })), "{found:?}");
}

fn refused_value(found: Result<(), NumbersError>, place: usize, refusal: Refusal) {
    let Err(NumbersError::Value(error)) = found else { panic!("{found:?} for element {place}") };
    assert_eq!((error.index, error.refusal), (place as u64, refusal), "{error:?}");
}

/// The bits of a value, so that NaN and signed zeros are told apart.
trait Bits {
    fn bits(&self) -> u64;
}

impl Bits for f32 {
    fn bits(&self) -> u64 {
        self.to_bits().into()
    }
}

impl Bits for f64 {
    fn bits(&self) -> u64 {
        self.to_bits()
    }
}

impl Bits for i64 {
    fn bits(&self) -> u64 {
        self.cast_unsigned()
    }
}

impl Bits for u64 {
    fn bits(&self) -> u64 {
        *self
    }
}

fn integer(number: &Number) -> Option<i128> {
    match number {
        Number::Signed(integer) => Some((*integer).into()),
        Number::Unsigned(integer) => Some((*integer).into()),
        _ => None,
    }
}

/// An integer is an f32 if no more than 24 bits lie between its first and its last one.
fn f32_of(number: &Number) -> Wanted {
    match number {
        Number::F32(value) => Wanted::Bits(value.bits()),
        Number::F64(_) | Number::Bool(_) | Number::Complex(_) => Wanted::No,
        Number::Signed(_) | Number::Unsigned(_) => {
            let integer = integer(number).expect("an integer");
            Wanted::of(fits(integer, 24).then_some(integer as f32), Bits::bits)
        }
    }
}

fn f64_of(number: &Number) -> Wanted {
    match number {
        Number::F32(value) if value.is_nan() => Wanted::Bits(0x7FF8_0000_0000_0000),
        Number::F32(value) => Wanted::Bits(f64::from(*value).bits()),
        Number::F64(value) => Wanted::Bits(value.bits()),
        Number::Bool(_) | Number::Complex(_) => Wanted::No,
        Number::Signed(_) | Number::Unsigned(_) => {
            let integer = integer(number).expect("an integer");
            Wanted::of(fits(integer, 53).then_some(integer as f64), Bits::bits)
        }
    }
}

fn fits(integer: i128, bits: u32) -> bool {
    let magnitude = integer.unsigned_abs();
    magnitude == 0 || 128 - magnitude.leading_zeros() - magnitude.trailing_zeros() <= bits
}

/// Decode, encode, decode is stable.
fn codes(format: &Single, count: usize, bytes: &[u8]) {
    let dtype = format.dtype;
    let twin = twin::of(dtype.name()).expect("a format of the twin");
    let mut values = vec![0.0; count];
    assert_eq!(decode_f32(dtype, bytes, &mut values), Ok(()));
    for (index, value) in values.iter().enumerate() {
        let stored =
            code(dtype, bytes, index as u64).and_then(|code| u16::try_from(code).ok()).expect("a code");
        let expected = twin.decode(stored) as f32;
        assert!(
            value.bits() == expected.bits() || value.is_nan() && expected.is_nan(),
            "{dtype} {stored:#x}"
        );
        assert_eq!((format.decode)(stored).bits(), value.bits(), "{dtype} {stored:#x}");
        let again = twin.nan.filter(|_| value.is_nan()).unwrap_or(stored);
        assert_eq!((format.encode)(*value, OutOfRange::Refuse), Ok(again), "{dtype} {stored:#x}");
    }
    let mut encoded = vec![0; bytes.len()];
    assert_eq!(encode_f32(&values, dtype, &mut encoded, OutOfRange::Refuse), Ok(()));
    let mut again = vec![0.0; count];
    assert_eq!(decode_f32(dtype, &encoded, &mut again), Ok(()));
    for (one, other) in values.iter().zip(&again) {
        assert!(one.bits() == other.bits() || one.is_nan() && other.is_nan(), "{dtype} {one} {other}");
    }
    let mut stable = vec![0; bytes.len()];
    assert_eq!(encode_f32(&again, dtype, &mut stable, OutOfRange::Refuse), Ok(()));
    assert_eq!(stable, encoded, "{dtype}");
}

/// What the twin makes of each value, and the index of the first that it refuses.
fn expected(dtype: Dtype, values: &[f64], beyond: OutOfRange) -> (Vec<u16>, Option<(usize, Refusal)>) {
    let twin = twin::of(dtype.name()).expect("a format of the twin");
    let mut codes = Vec::new();
    let mut first = None;
    for (index, value) in values.iter().enumerate() {
        match twin.encode(*value, beyond == OutOfRange::Saturate) {
            Ok(code) => codes.push(code),
            Err(why) => {
                let refusal = match why {
                    NoCode::Range => Refusal::OutOfRange,
                    NoCode::Nan => Refusal::NotANumber,
                    NoCode::Sign => Refusal::NotPositive,
                };
                first = first.or(Some((index, refusal)));
                codes.push(0);
            }
        }
    }
    (codes, first)
}

/// As many values as fill whole bytes, alone and in slices.
///
/// # Panics
/// When a code is not the twin's.
pub fn values(format: &Single, values: &[f32], beyond: OutOfRange) {
    let dtype = format.dtype;
    let values = &values[..whole_values(dtype, values.len())];
    let doubles: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
    let (codes, first) = expected(dtype, &doubles, beyond);
    for ((value, code), index) in values.iter().zip(&codes).zip(0..) {
        match (format.encode)(*value, beyond) {
            Ok(found) => assert_eq!(found, *code, "{dtype} {value:e} {beyond:?}"),
            Err(refusal) => {
                let (place, expected) = first.expect("the twin refuses one");
                assert!(
                    index > place || index == place && refusal == expected,
                    "{dtype} {value:e} {beyond:?}"
                );
            }
        }
    }
    encoded(dtype, &codes, first, |bytes| encode_f32(values, dtype, bytes, beyond));
    encoded(dtype, &codes, first, |bytes| encode_f64(&doubles, dtype, bytes, beyond));
}

/// The same from f64.
///
/// # Panics
/// When a code is not the twin's.
pub fn wide_values(format: &Single, values: &[f64], beyond: OutOfRange) {
    let dtype = format.dtype;
    let values = &values[..whole_values(dtype, values.len())];
    let (codes, first) = expected(dtype, values, beyond);
    encoded(dtype, &codes, first, |bytes| encode_f64(values, dtype, bytes, beyond));
}

/// The bytes of a slice, or the error, against the codes.
fn encoded(
    dtype: Dtype,
    codes: &[u16],
    first: Option<(usize, Refusal)>,
    encode: impl Fn(&mut [u8]) -> Result<(), NumbersError>,
) {
    let mut bytes = vec![0xAA; codes.len() * dtype.bits() as usize / 8];
    let found = encode(&mut bytes);
    if let Some((place, refusal)) = first {
        return refused_value(found, place, refusal);
    }
    assert_eq!(found, Ok(()));
    for (code, index) in codes.iter().zip(0..) {
        let found = twin::code(dtype.bits(), &bytes, index);
        assert_eq!(found, Some((*code).into()), "{dtype} element {index}");
    }
}

/// So many values, less those that end inside a byte.
fn whole_values(dtype: Dtype, values: usize) -> usize {
    values - values % if dtype.bits() < 8 { 4 } else { 1 }
}

/// Whole blocks of an element format, decoded from the bytes and encoded from the values.
///
/// # Panics
/// When a block is not the twin's.
pub fn blocks(dtype: Dtype, bytes: &[u8], values: &[f32]) {
    let twin = twin::of(dtype.name()).expect("a format of the twin");
    let block_bytes = BLOCK_ELEMENTS * dtype.bits() as usize / 8;
    // A scale each, then the elements of each.
    let count = bytes.len() / (block_bytes + 1);
    let (scales, elements) = bytes[..count * (block_bytes + 1)].split_at(count);
    let mut decoded = vec![0.0; count * BLOCK_ELEMENTS];
    assert_eq!(decode_blocks(dtype, scales, elements, &mut decoded), Ok(()));
    for (value, index) in decoded.iter().zip(0..) {
        let code = twin::code(dtype.bits(), elements, index).and_then(|code| u16::try_from(code).ok());
        let scale = scales[index as usize / BLOCK_ELEMENTS];
        let scale = if scale == 0xFF { f64::NAN } else { twin::power_of_two(i32::from(scale) - 127) };
        let expected = (twin.decode(code.expect("a code")) * scale) as f32;
        assert!(
            value.bits() == expected.bits() || value.is_nan() && expected.is_nan(),
            "{dtype} {value} {expected}"
        );
    }
    let (blocks, _) = values.as_chunks::<BLOCK_ELEMENTS>();
    let mut scales = vec![0xAA; blocks.len()];
    let mut bytes = vec![0xAA; blocks.len() * block_bytes];
    let found = encode_blocks(blocks.as_flattened(), dtype, &mut scales, &mut bytes);
    for (block, place) in blocks.iter().zip(0..) {
        match twin::encode_block(twin, block) {
            Ok((scale, codes)) => {
                // What was written before an error is of no meaning.
                if found.is_ok() {
                    assert_eq!(scales[place], scale, "{dtype} {block:?}");
                    let first = (place * BLOCK_ELEMENTS) as u64;
                    for (code, index) in codes.iter().zip(first..) {
                        assert_eq!(twin::code(dtype.bits(), &bytes, index), Some((*code).into()), "{dtype}");
                    }
                }
            }
            Err(index) => {
                let refusal = if block[index].is_nan() { Refusal::NotANumber } else { Refusal::OutOfRange };
                return refused_value(found, place * BLOCK_ELEMENTS + index, refusal);
            }
        }
    }
    assert_eq!(found, Ok(()));
}
