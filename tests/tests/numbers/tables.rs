//! Integers, truth values, complex numbers, packing, lengths, and what errors say, as tables.

use safestep_core::Dtype;
use safestep_core::numbers::{
    Number, NumbersError, OutOfRange, Refusal, code, decode_blocks, decode_bool, decode_complex, decode_f32,
    decode_f64, decode_i64, decode_u64, encode_blocks, encode_f32, encode_f64, number,
};
use safestep_tests::oracle::numbers::{BLOCK_DTYPES, FORMATS};

use Dtype::{I8, I16, I32, I64, U8, U16, U32, U64};
use OutOfRange::{Refuse, Saturate};
use Refusal::{Inexact, NotANumber, OutOfRange as Range};

/// The integer in the bytes of one element.
fn integer(dtype: Dtype, bytes: &[u8]) -> i128 {
    match number(dtype, bytes, 0) {
        Some(Number::Signed(integer)) => integer.into(),
        Some(Number::Unsigned(integer)) => integer.into(),
        other => panic!("{other:?}"),
    }
}

/// One f64 as an integer, from f32 too where it is one.
fn encoded(value: f64, dtype: Dtype, beyond: OutOfRange) -> Result<i128, Refusal> {
    let mut bytes = vec![0; dtype.bits() as usize / 8];
    let refusal = |found| match found {
        Ok(()) => Ok(()),
        Err(NumbersError::Value(error)) => Err(error.refusal),
        Err(error) => panic!("{error}"),
    };
    let found = refusal(encode_f64(&[value], dtype, &mut bytes, beyond)).map(|()| integer(dtype, &bytes));
    if f64::from(value as f32) == value || value.is_nan() {
        let narrow = refusal(encode_f32(&[value as f32], dtype, &mut bytes, beyond));
        assert_eq!(narrow.map(|()| integer(dtype, &bytes)), found, "{value} as {dtype}");
    }
    found
}

#[test]
fn floats_become_integers_only_where_they_are_some() {
    let ranges: [(Dtype, f64, f64); 6] = [
        (I8, -128.0, 127.0),
        (U8, 0.0, 255.0),
        (I16, -32_768.0, 32_767.0),
        (U16, 0.0, 65_535.0),
        (I32, -2_147_483_648.0, 2_147_483_647.0),
        (U32, 0.0, 4_294_967_295.0),
    ];
    for (dtype, least, largest) in ranges {
        let (low, high) = (least as i128, largest as i128);
        // The value; what it becomes; what it becomes with saturation.
        type Answer = Result<i128, Refusal>;
        let cases: Vec<(f64, Answer, Answer)> = vec![
            (0.0, Ok(0), Ok(0)),
            (-0.0, Ok(0), Ok(0)),
            (1.0, Ok(1), Ok(1)),
            (100.0, Ok(100), Ok(100)),
            (least, Ok(low), Ok(low)),
            (largest, Ok(high), Ok(high)),
            (largest - 1.0, Ok(high - 1), Ok(high - 1)),
            (least + 1.0, Ok(low + 1), Ok(low + 1)),
            (least - 1.0, Err(Range), Ok(low)),
            (largest + 1.0, Err(Range), Ok(high)),
            (f64::INFINITY, Err(Range), Ok(high)),
            (f64::NEG_INFINITY, Err(Range), Ok(low)),
            (f64::MAX, Err(Range), Ok(high)),
            (f64::NAN, Err(NotANumber), Err(NotANumber)),
            (0.5, Err(Inexact), Err(Inexact)),
            (1.000_000_1, Err(Inexact), Err(Inexact)),
            (99.99, Err(Inexact), Err(Inexact)),
            (f64::MIN_POSITIVE, Err(Inexact), Err(Inexact)),
            (largest + 0.5, Err(Inexact), Err(Inexact)),
        ];
        for (value, refused, saturated) in cases {
            assert_eq!(encoded(value, dtype, Refuse), refused, "{value} as {dtype}");
            assert_eq!(encoded(value, dtype, Saturate), saturated, "{value} as {dtype}");
        }
        let mut bytes = vec![0; dtype.bits() as usize / 8 * 3];
        let error =
            encode_f64(&[f64::MAX], dtype, &mut bytes[..dtype.bits() as usize / 8], Refuse).unwrap_err();
        let expected = format!(
            "expected a value of {dtype}, found 1.7976931348623157e308 in element 0: it is out of range"
        );
        assert_eq!(error.to_string(), expected);
        let error = encode_f64(&[1.0, 2.0, 2.5], dtype, &mut bytes, Refuse).unwrap_err();
        let expected = format!("expected a value of {dtype}, found 2.5 in element 2: it would not be exact");
        assert_eq!(error.to_string(), expected);
        let error =
            encode_f32(&[1.0, 2.5], dtype, &mut bytes[..dtype.bits() as usize / 4], Saturate).unwrap_err();
        let expected = format!("expected a value of {dtype}, found 2.5 in element 1: it would not be exact");
        assert_eq!(error.to_string(), expected);
    }
}

/// Each row: the integer, and whether there is an f32, an f64, an i64 and a u64 of it.
#[test]
fn integers_become_floats_only_where_nothing_is_lost() {
    let rows: &[(Dtype, i128, bool, bool, bool, bool)] = &[
        (I8, -128, true, true, true, false),
        (U8, 255, true, true, true, true),
        (I16, -32_768, true, true, true, false),
        (U16, 65_535, true, true, true, true),
        (I32, 16_777_216, true, true, true, true),
        (I32, 16_777_217, false, true, true, true),
        (I32, -16_777_217, false, true, true, false),
        (I32, 16_777_218, true, true, true, true),
        (I32, i32::MIN as i128, true, true, true, false),
        (I32, i32::MAX as i128, false, true, true, true),
        (U32, u32::MAX as i128, false, true, true, true),
        (U32, 0xFFFF_FF00, true, true, true, true),
        (I64, -1, false, true, true, false),
        (I64, (1 << 53) + 1, false, false, true, true),
        (I64, -(1 << 53) - 1, false, false, true, false),
        (I64, 1 << 53, false, true, true, true),
        (I64, i64::MIN as i128, false, true, true, false),
        (I64, i64::MAX as i128, false, false, true, true),
        (U64, u64::MAX as i128, false, false, false, true),
        (U64, 1 << 63, false, true, false, true),
        (U64, (1 << 63) - 1, false, false, true, true),
        (U64, 0xFFFF_FFFF_FFFF_F800, false, true, false, true),
        (U64, 7, false, true, true, true),
    ];
    for (dtype, value, single, double, signed, unsigned) in rows {
        let bytes = &value.to_le_bytes()[..dtype.bits() as usize / 8];
        let (mut f32s, mut f64s, mut i64s, mut u64s) = ([0.0], [0.0], [0], [0]);
        let found = (
            decode_f32(*dtype, bytes, &mut f32s),
            decode_f64(*dtype, bytes, &mut f64s),
            decode_i64(*dtype, bytes, &mut i64s),
            decode_u64(*dtype, bytes, &mut u64s),
        );
        assert_eq!((found.0.is_ok(), found.1.is_ok()), (*single, *double), "{value} of {dtype}");
        assert_eq!((found.2.is_ok(), found.3.is_ok()), (*signed, *unsigned), "{value} of {dtype}");
        assert!(!single || f64::from(f32s[0]) as i128 == *value);
        assert!(!double || f64s[0] as i128 == *value);
        assert!(!signed || i128::from(i64s[0]) == *value);
        assert!(!unsigned || i128::from(u64s[0]) == *value);
        assert_eq!(integer(*dtype, bytes), *value);
    }
}

#[test]
fn truth_values_are_0_and_1() {
    let mut values = [false; 3];
    assert_eq!(decode_bool(Dtype::Bool, &[1, 0, 1], &mut values), Ok(()));
    assert_eq!(values, [true, false, true]);
    let error = decode_bool(Dtype::Bool, &[1, 0, 2], &mut values).unwrap_err();
    assert_eq!(error.to_string(), "expected a value of BOOL, found 2 in element 2: a truth value is 0 or 1");
    // One element alone is the number that it is.
    let numbers = [
        (0, Number::Bool(false)),
        (1, Number::Bool(true)),
        (2, Number::Unsigned(2)),
        (255, Number::Unsigned(255)),
    ];
    for (byte, expected) in numbers {
        assert_eq!(number(Dtype::Bool, &[0, byte], 1), Some(expected));
    }
    assert_eq!(
        decode_bool(U8, &[1], &mut values[..1]),
        Err(NumbersError::Type { dtype: U8, numbers: "bool" })
    );
}

#[test]
fn complex_numbers_are_two_f32() {
    let bytes = [1.5_f32, -2.0].map(f32::to_le_bytes).concat();
    let mut values = [[0.0; 2]];
    assert_eq!(decode_complex(Dtype::C64, &bytes, &mut values), Ok(()));
    assert_eq!(values, [[1.5, -2.0]]);
    assert_eq!(number(Dtype::C64, &bytes, 0), Some(Number::Complex([1.5, -2.0])));
    let error = decode_complex(Dtype::F64, &bytes, &mut values);
    assert_eq!(error, Err(NumbersError::Type { dtype: Dtype::F64, numbers: "complex" }));
}

#[test]
fn f64_becomes_f32_by_rounding_once() {
    let rows = [
        (1.0 + 2_f64.powi(-24), Refuse, 1.0),
        (1.0 + 2_f64.powi(-24) + 2_f64.powi(-50), Refuse, 1.0 + f32::EPSILON),
        (f64::MAX, Refuse, f32::INFINITY),
        (f64::MAX, Saturate, f32::MAX),
        (-f64::MAX, Saturate, f32::MIN),
        (f64::INFINITY, Refuse, f32::INFINITY),
        (f64::NEG_INFINITY, Saturate, f32::MIN),
        (-0.0, Saturate, -0.0),
        (f64::MIN_POSITIVE, Refuse, 0.0),
        (1.5, Saturate, 1.5),
    ];
    for (value, beyond, expected) in rows {
        let mut bytes = [0; 4];
        assert_eq!(encode_f64(&[value], Dtype::F32, &mut bytes, beyond), Ok(()));
        assert_eq!(f32::from_le_bytes(bytes).to_bits(), expected.to_bits(), "{value} {beyond:?}");
    }
    let mut bytes = [0; 8];
    for bits in [0x7FF8_0000_0000_1234, 0xFFF0_0000_0000_0000, 1] {
        assert_eq!(encode_f64(&[f64::from_bits(bits)], Dtype::F64, &mut bytes, Saturate), Ok(()));
        assert_eq!(u64::from_le_bytes(bytes), bits);
    }
    assert_eq!(encode_f32(&[1.5], Dtype::F64, &mut bytes, Refuse), Ok(()));
    assert_eq!(f64::from_le_bytes(bytes), 1.5);
}

/// Between the two, NaN becomes the quiet NaN, whatever the machine makes of it.
#[test]
fn nan_becomes_the_quiet_nan_of_the_other_dtype() {
    let (quiet_single, quiet_double) = (0x7FC0_0000_u32, 0x7FF8_0000_0000_0000_u64);
    for beyond in [Refuse, Saturate] {
        for double in
            [quiet_double, 0x7FF8_DEAD_BEEF_1234, 0xFFF8_0000_0000_0000, 0x7FF0_0000_0000_0001, u64::MAX]
        {
            let mut bytes = [0; 4];
            assert_eq!(encode_f64(&[f64::from_bits(double)], Dtype::F32, &mut bytes, beyond), Ok(()));
            assert_eq!(u32::from_le_bytes(bytes), quiet_single, "{double:#x}");
        }
        for single in [quiet_single, 0x7FC0_1234, 0xFFC0_0000, 0x7F80_0001, u32::MAX] {
            let mut bytes = [0; 8];
            assert_eq!(encode_f32(&[f32::from_bits(single)], Dtype::F64, &mut bytes, beyond), Ok(()));
            assert_eq!(u64::from_le_bytes(bytes), quiet_double, "{single:#x}");
            let mut values = [0.0];
            assert_eq!(decode_f64(Dtype::F32, &single.to_le_bytes(), &mut values), Ok(()));
            assert_eq!(values[0].to_bits(), quiet_double, "{single:#x}");
        }
    }
    for (dtype, code) in [(Dtype::F16, 0xFDAB_u16), (Dtype::Bf16, 0xFFAB), (Dtype::Bf16, 0x7F81)] {
        let mut values = [0.0];
        assert_eq!(decode_f64(dtype, &code.to_le_bytes(), &mut values), Ok(()));
        assert_eq!(values[0].to_bits(), quiet_double, "{dtype} {code:#x}");
    }
}

/// What is stored is stored as it is: a payload, a signed zero, infinity.
#[test]
fn f32_stays_as_it_is() {
    for bits in [0x7FC0_1234_u32, 0x7F80_0001, 0x8000_0000, 0x7F80_0000, 1] {
        for beyond in [Refuse, Saturate] {
            let mut bytes = [0; 4];
            assert_eq!(encode_f32(&[f32::from_bits(bits)], Dtype::F32, &mut bytes, beyond), Ok(()));
            assert_eq!(u32::from_le_bytes(bytes), bits);
            let mut values = [0.0];
            assert_eq!(decode_f32(Dtype::F32, &bytes, &mut values), Ok(()));
            assert_eq!(values[0].to_bits(), bits);
        }
    }
}

/// Every number of elements, every position in its byte, every value of the other elements' bits.
#[test]
fn sub_byte_elements_stand_low_bits_first() {
    for dtype in [Dtype::F4, Dtype::F6E2M3, Dtype::F6E3M2] {
        let format = FORMATS.iter().find(|format| format.dtype == dtype).unwrap();
        let bits = dtype.bits();
        let group = if bits == 4 { 2 } else { 4 };
        for elements in (0..200).step_by(group) {
            let codes: Vec<u16> =
                (0..elements).map(|index| (index * 7 + 3) as u16 & ((1 << bits) - 1)).collect();
            let values: Vec<f32> = codes.iter().map(|code| (format.decode)(*code)).collect();
            let mut bytes = vec![0; elements * bits as usize / 8];
            encode_f32(&values, dtype, &mut bytes, Refuse).unwrap();
            let mut stream = codes.iter().flat_map(|code| (0..bits).map(move |bit| code >> bit & 1));
            for byte in &bytes {
                assert_eq!(
                    u16::from(*byte),
                    (0..8).fold(0, |byte, bit| byte | stream.next().unwrap() << bit)
                );
            }
            for (index, expected) in codes.iter().enumerate() {
                assert_eq!(code(dtype, &bytes, index as u64), Some((*expected).into()));
                assert_eq!(number(dtype, &bytes, index as u64), Some(Number::F32(values[index])));
            }
            let mut decoded = vec![9.0; elements];
            decode_f32(dtype, &bytes, &mut decoded).unwrap();
            assert_eq!(decoded, values);
        }
    }
}

/// Bytes that do not fit say which number would.
#[test]
fn wrong_lengths_say_which_size_fits() {
    for dtype in Dtype::ALL {
        for elements in 0..70_usize {
            let bits = elements * dtype.bits() as usize;
            let expected = bits.is_multiple_of(8).then_some(bits as u64 / 8);
            for found in [0, bits / 8, bits / 8 + 1, (bits / 8).saturating_sub(1)] {
                let mut bytes = vec![0; found];
                let length =
                    NumbersError::Length { dtype, elements: elements as u64, expected, found: found as u64 };
                let fits = expected == Some(found as u64);
                let check = |found: Result<(), NumbersError>, what| {
                    let is_length = found == Err(length);
                    assert_eq!(is_length, !fits, "{what} {dtype} {elements}: {found:?}");
                };
                check(decode_f32(dtype, &bytes, &mut vec![0.0; elements]), "f32");
                check(decode_f64(dtype, &bytes, &mut vec![0.0; elements]), "f64");
                check(decode_i64(dtype, &bytes, &mut vec![0; elements]), "i64");
                check(decode_u64(dtype, &bytes, &mut vec![0; elements]), "u64");
                check(decode_bool(dtype, &bytes, &mut vec![false; elements]), "bool");
                check(decode_complex(dtype, &bytes, &mut vec![[0.0; 2]; elements]), "complex");
                check(encode_f32(&vec![1.0; elements], dtype, &mut bytes, Refuse), "from f32");
                check(encode_f64(&vec![1.0; elements], dtype, &mut bytes, Refuse), "from f64");
            }
        }
    }
    let texts = [
        (Dtype::Bf16, 3, 5, "expected 6 bytes for 3 elements of BF16, found 5"),
        (Dtype::F4, 3, 2, "expected a multiple of 2 elements of F4, found 3 for 2 bytes"),
        (Dtype::F6E3M2, 2, 2, "expected a multiple of 4 elements of F6_E3M2, found 2 for 2 bytes"),
        (Dtype::F6E2M3, 4, 2, "expected 3 bytes for 4 elements of F6_E2M3, found 2"),
    ];
    for (dtype, elements, bytes, text) in texts {
        assert_eq!(
            decode_f32(dtype, &vec![0; bytes], &mut vec![0.0; elements]).unwrap_err().to_string(),
            text
        );
    }
}

#[test]
fn blocks_have_32_elements_and_a_scale_each() {
    for dtype in BLOCK_DTYPES {
        for (elements, scales) in
            [(0, 0), (32, 1), (96, 3), (32, 0), (32, 2), (64, 1), (48, 1), (48, 2), (1024, 32)]
        {
            let bytes_len = elements * dtype.bits() as usize / 8;
            let fits = elements == 32 * scales;
            let expected = (elements % 32 == 0).then_some(elements as u64 / 32);
            let length = NumbersError::Scales { elements: elements as u64, expected, found: scales as u64 };
            let wanted = if fits { Ok(()) } else { Err(length) };
            let mut codes = vec![127; scales];
            let mut bytes = vec![0; bytes_len];
            let mut values = vec![1.0; elements];
            assert_eq!(encode_blocks(&values, dtype, &mut codes, &mut bytes), wanted, "{dtype} {elements}");
            assert_eq!(decode_blocks(dtype, &codes, &bytes, &mut values), wanted, "{dtype} {elements}");
            if fits {
                assert!(values.iter().all(|value| *value == 1.0));
                let longer = vec![0; bytes_len + 1];
                let found = decode_blocks(dtype, &codes, &longer, &mut values);
                assert!(matches!(found, Err(NumbersError::Length { dtype: of, .. }) if of == dtype));
            }
        }
    }
    let texts = [
        (32, 2, 16, "expected 1 scale for 32 elements, found 2"),
        (64, 1, 32, "expected 2 scales for 64 elements, found 1"),
        (33, 1, 17, "expected a multiple of 32 elements, found 33"),
        (32, 1, 17, "expected 16 bytes for 32 elements of F4, found 17"),
    ];
    for (elements, scales, bytes, text) in texts {
        let found = decode_blocks(Dtype::F4, &vec![0; scales], &vec![0; bytes], &mut vec![0.0; elements]);
        assert_eq!(found.unwrap_err().to_string(), text);
        let found = encode_blocks(&vec![0.0; elements], Dtype::F4, &mut vec![0; scales], &mut vec![0; bytes]);
        assert_eq!(found.unwrap_err().to_string(), text);
    }
    for dtype in Dtype::ALL.into_iter().filter(|dtype| !BLOCK_DTYPES.contains(dtype)) {
        let mut bytes = vec![0; 4 * dtype.bits() as usize];
        let wanted = Err(NumbersError::Type { dtype, numbers: "blocks with a scale" });
        assert_eq!(decode_blocks(dtype, &[127], &bytes, &mut [0.0; 32]), wanted);
        assert_eq!(encode_blocks(&[0.0; 32], dtype, &mut [0], &mut bytes), wanted);
    }
    let mut bytes = [0; 16];
    let mut values = [1.0; 64];
    values[40] = f32::NAN;
    let error = encode_blocks(&values, Dtype::F4, &mut [0; 2], &mut [0; 32]).unwrap_err();
    assert_eq!(error.to_string(), "expected a value of F4, found NaN in element 40: there is no NaN");
    values[3] = f32::NEG_INFINITY;
    let error = encode_blocks(&values, Dtype::F8E4M3, &mut [0; 2], &mut [0; 64]).unwrap_err();
    assert_eq!(error.to_string(), "expected a value of F8_E4M3, found -inf in element 3: it is out of range");
    // The largest exponent there is, and zeros: the greatest and the least scale.
    let mut scales = [9];
    assert_eq!(encode_blocks(&[f32::MAX; 32], Dtype::F4, &mut scales, &mut bytes), Ok(()));
    assert_eq!((scales, bytes), ([252], [0x77; 16]));
    assert_eq!(encode_blocks(&[0.0; 32], Dtype::F4, &mut scales, &mut bytes), Ok(()));
    assert_eq!((scales, bytes), ([0], [0; 16]));
}

#[test]
fn codes_beyond_the_bytes_are_none() {
    let bytes = [0x21, 0x43, 0x65, 0x87, 0xA9, 0xCB, 0xED, 0x0F];
    let rows = [
        (Dtype::F4, 0, Some(1)),
        (Dtype::F4, 15, Some(0)),
        (Dtype::F4, 16, None),
        (Dtype::F6E2M3, 0, Some(0x21)),
        (Dtype::F6E2M3, 1, Some(0x0C)),
        (Dtype::F6E2M3, 9, Some(0x3F)),
        (Dtype::F6E2M3, 10, None), // four of its bits are there
        (U16, 3, Some(0x0FED)),
        (U16, 4, None),
        (U32, 1, Some(0x0FED_CBA9)),
        (U64, 0, Some(0x0FED_CBA9_8765_4321)),
        (U64, 1, None),
        (U64, 1 << 61, None),
        (U8, u64::MAX, None),
        (I64, u64::MAX, None),
    ];
    for (dtype, index, expected) in rows {
        assert_eq!(code(dtype, &bytes, index), expected, "{dtype} {index}");
        assert_eq!(number(dtype, &bytes, index).is_some(), expected.is_some(), "{dtype} {index}");
    }
    let signed = [(I8, -1_i64), (I16, -1), (I32, -1), (I64, -1)];
    for (dtype, value) in signed {
        assert_eq!(number(dtype, &[0xFF; 8], 0), Some(Number::Signed(value)), "{dtype}");
    }
    assert_eq!(number(Dtype::F64, &1.5_f64.to_le_bytes(), 0), Some(Number::F64(1.5)));
    assert_eq!(number(Dtype::F32, &1.5_f32.to_le_bytes(), 0), Some(Number::F32(1.5)));
}

#[test]
fn numbers_and_refusals_are_shown_in_few_words() {
    let numbers = [
        (Number::Bool(true), "true"),
        (Number::Unsigned(u64::MAX), "18446744073709551615"),
        (Number::Signed(-1), "-1"),
        (Number::F32(0.1), "0.1"),
        (Number::F32(-0.0), "-0.0"),
        (Number::F32(449.0), "449.0"),
        (Number::F32(f32::MAX), "3.4028235e38"),
        (Number::F64(5e-324), "5e-324"),
        (Number::F64(1e16), "1e16"),
        (Number::F64(f64::INFINITY), "inf"),
        (Number::F64(0.1), "0.1"),
        (Number::F32(f32::NAN), "NaN"),
        (Number::Complex([1.0, -2.0]), "1.0-2.0i"),
        (Number::Complex([1.5, 2.0]), "1.5+2.0i"),
        (Number::Complex([0.0, f32::NAN]), "0.0+NaNi"),
    ];
    for (number, text) in numbers {
        assert_eq!(number.to_string(), text);
    }
    let error = |value: f32, dtype| {
        let mut bytes = [0; 3];
        let found =
            encode_f32(&[1.0, value, 1.0, 1.0], dtype, &mut bytes[..dtype.bits() as usize / 2], Refuse);
        found.unwrap_err().to_string()
    };
    for (value, reason) in
        [(f32::NAN, "NaN in element 1: there is no NaN"), (7.6, "7.6 in element 1: it is out of range")]
    {
        assert_eq!(error(value, Dtype::F6E2M3), format!("expected a value of F6_E2M3, found {reason}"));
    }
    let mut bytes = [0; 2];
    let rows = [
        (0.0, "0.0 in element 1: a scale is above zero"),
        (-1.0, "-1.0 in element 1: a scale is above zero"),
        (f32::NEG_INFINITY, "-inf in element 1: a scale is above zero"),
        (f32::INFINITY, "inf in element 1: it is out of range"),
    ];
    for (value, reason) in rows {
        let found = encode_f32(&[1.0, value], Dtype::F8E8M0, &mut bytes, Refuse).unwrap_err();
        assert_eq!(found.to_string(), format!("expected a value of F8_E8M0, found {reason}"));
    }
}

/// NaN is decoded to a quiet NaN of the same sign; F16 and F8_E5M2 keep its payload, and BF16 every bit.
#[test]
fn nan_is_decoded_to_these_bits() {
    let rows = [
        (Dtype::F16, 0x7E00, 0x7FC0_0000),
        (Dtype::F16, 0x7C01, 0x7FC0_2000),
        (Dtype::F16, 0xFFFF, 0xFFFF_E000),
        (Dtype::Bf16, 0x7F81, 0x7F81_0000),
        (Dtype::Bf16, 0xFFC0, 0xFFC0_0000),
        (Dtype::F8E5M2, 0x7D, 0x7FE0_0000),
        (Dtype::F8E5M2, 0xFE, 0xFFC0_0000),
        (Dtype::F8E4M3, 0x7F, 0x7FC0_0000),
        (Dtype::F8E4M3, 0xFF, 0xFFC0_0000),
        (Dtype::F8E8M0, 0xFF, 0x7FC0_0000),
        (Dtype::F8E4M3Fnuz, 0x80, 0x7FC0_0000),
        (Dtype::F8E5M2Fnuz, 0x80, 0x7FC0_0000),
    ];
    for (dtype, code, bits) in rows {
        let format = FORMATS.iter().find(|format| format.dtype == dtype).unwrap();
        assert_eq!((format.decode)(code).to_bits(), bits, "{dtype} {code:#x}");
        let mut values = [0.0];
        let bytes = &code.to_le_bytes()[..dtype.bits() as usize / 8];
        decode_f32(dtype, bytes, &mut values).unwrap();
        assert_eq!(values[0].to_bits(), bits, "{dtype} {code:#x} in a slice");
    }
}

/// The error names the dtype and the Rust type, with elements or without.
#[test]
fn types_that_do_not_meet_are_both_named() {
    let wrong = |dtype, numbers| Err(NumbersError::Type { dtype, numbers });
    for elements in [0, 4] {
        for dtype in Dtype::ALL {
            let mut bytes = vec![0; elements * dtype.bits() as usize / 8];
            let wide = matches!(dtype, I64 | U64 | Dtype::C64 | Dtype::Bool);
            let integers = matches!(dtype, I8 | U8 | I16 | U16 | I32 | U32 | I64 | U64);
            if wide || dtype == Dtype::F64 {
                assert_eq!(decode_f32(dtype, &bytes, &mut vec![0.0; elements]), wrong(dtype, "f32"));
            }
            if matches!(dtype, Dtype::C64 | Dtype::Bool) {
                assert_eq!(decode_f64(dtype, &bytes, &mut vec![0.0; elements]), wrong(dtype, "f64"));
            }
            if !integers {
                assert_eq!(decode_i64(dtype, &bytes, &mut vec![0; elements]), wrong(dtype, "i64"));
                assert_eq!(decode_u64(dtype, &bytes, &mut vec![0; elements]), wrong(dtype, "u64"));
            }
            if wide {
                let ones = vec![1.0; elements];
                assert_eq!(encode_f32(&ones, dtype, &mut bytes, Refuse), wrong(dtype, "f32"));
                let ones = vec![1.0; elements];
                assert_eq!(encode_f64(&ones, dtype, &mut bytes, Refuse), wrong(dtype, "f64"));
            }
        }
    }
}
