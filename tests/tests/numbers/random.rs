//! The core against the twin that looks for the nearest value: random bytes, values of both widths near every code.

use safestep_core::numbers::OutOfRange;
use safestep_tests::headers::random::Random;
use safestep_tests::oracle;
use safestep_tests::oracle::numbers::{BLOCK_DTYPES, FORMATS, blocks, values, wide_values};
use safestep_tests::twin::numbers::{of, power_of_two};

const BOTH: [OutOfRange; 2] = [OutOfRange::Refuse, OutOfRange::Saturate];

#[test]
fn any_bytes_are_what_the_twin_says() {
    let mut random = Random::new(3);
    for length in (0..130).chain((0..40).map(|_| random.below(2_000)).collect::<Vec<_>>()) {
        let bytes: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
        oracle::dtype(&bytes);
    }
}

/// Values that are refused must not hide behind one another, so each goes alone, with zeros (or ones) to fill its byte.
fn alone(format: &oracle::numbers::Single, value: f64) {
    let filler = if of(format.dtype.name()).unwrap().sign { 0.0 } else { 1.0 };
    for beyond in BOTH {
        wide_values(format, &[value, filler, filler, filler], beyond);
        let [filler, value] = [filler as f32, value as f32];
        values(format, &[filler, filler, value, filler], beyond);
    }
}

/// An f64 that is rounded to f32 first, and then to the format, can come out one code off: the first rounding lands on
/// the middle between two codes, and the second takes that for a tie.
#[test]
fn f64_is_rounded_once() {
    let mut doubly_rounded = 0;
    for format in &FORMATS {
        let twin = of(format.dtype.name()).unwrap();
        let codes = 1_u32 << format.dtype.bits();
        let mut random = Random::new(11);
        let some = (0..codes).filter(|code| codes <= 256 || random.chance(2) || codes - code < 40);
        for code in some.collect::<Vec<_>>() {
            let code = u16::try_from(code).unwrap();
            let value = twin.decode(code);
            let after = twin.decode(code.wrapping_add(1));
            if value.is_nan() {
                continue;
            }
            let middle = f64::midpoint(value, after);
            let little = middle.abs() * power_of_two(-40);
            let mut near = vec![value, value.next_up(), value.next_down(), value * 1.25];
            if middle.is_finite() {
                near.extend([middle, middle.next_up(), middle.next_down(), middle + little, middle - little]);
            }
            for value in near {
                alone(format, value);
                let twice = twin.encode(f64::from(value as f32), true);
                doubly_rounded += usize::from(twice != twin.encode(value, true));
            }
        }
        for value in
            [f64::MAX, f64::MIN_POSITIVE, f64::from_bits(1), f64::INFINITY, f64::NAN, 0.0, 448.0, 449.0]
        {
            alone(format, value);
            alone(format, -value);
        }
        for exponent in -160..130 {
            let power = power_of_two(exponent);
            for value in [power, 1.5 * power, (1.5 * power).next_down(), (2.0 * power).next_down()] {
                alone(format, value);
                alone(format, -value);
            }
        }
    }
    assert!(doubly_rounded > 1_000, "{doubly_rounded} values only where two roundings are not one");
}

/// Blocks of any magnitude: scales at their least, elements that saturate, NaN, zeros of both signs.
#[test]
fn blocks_are_what_the_twin_says() {
    let mut random = Random::new(5);
    for dtype in BLOCK_DTYPES {
        for round in 0..400 {
            let exponent = random.below(270) as i32 - 145;
            let scale = power_of_two(exponent) as f32;
            let mut block: Vec<f32> = (0..96)
                .map(|_| {
                    let value = scale * (random.below(1 << 24) as f32 / 8_388_608.0 - 1.0);
                    random.pick(&[value, value, value, value / 64.0, -0.0, scale])
                })
                .collect();
            match round % 8 {
                0 => block[random.below(96)] = f32::NAN,
                1 => block[random.below(96)] = f32::INFINITY,
                2 => block[32..64].fill(0.0),
                3 => block[32..64].fill(-0.0),
                4 => block[64..].fill(f32::NAN),
                _ => {}
            }
            let bytes: Vec<u8> = (0..33 * 3).map(|_| random.bits() as u8).collect();
            blocks(dtype, &bytes, &block);
        }
    }
}

/// A value that is refused is named by its place wherever it stands: in the first look of the loop, in a later one, last.
#[test]
fn the_place_of_what_is_refused_is_right_in_long_slices() {
    for format in FORMATS.iter().filter(|format| (format.encode)(f32::INFINITY, OutOfRange::Refuse).is_err())
    {
        for length in [4, 64, 68, 128, 200] {
            for place in (0..length).filter(|place| length == 200 || place % 3 == 0) {
                let mut slice = vec![1.0; length];
                slice[place] = f32::INFINITY;
                values(format, &slice, OutOfRange::Refuse);
                slice[length - 1] = f32::NEG_INFINITY;
                values(format, &slice, OutOfRange::Refuse);
                if !of(format.dtype.name()).unwrap().sign {
                    slice[place] = 0.0;
                    values(format, &slice, OutOfRange::Saturate);
                }
            }
        }
    }
}
