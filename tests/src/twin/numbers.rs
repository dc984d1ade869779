//! Turns codes into values by the definition of their format, and values into codes by looking for the nearest one.
//!
//! The slow way on purpose: every positive value of a format stands in a sorted table, and what lies between two of them
//! is held against their middle. All of it is exact in f64: a middle has at most twelve significant bits.

use std::sync::LazyLock;

/// What the uppermost codes of a format mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Top {
    /// The uppermost exponent is infinity and NaN.
    Infinity,
    /// The code of all ones is NaN.
    Nan,
    /// NaN stands where the negative zero would; there is none.
    NanForNegativeZero,
    /// All are numbers.
    Numbers,
}

/// A float format of 16 bits or less.
#[derive(Debug)]
pub struct Format {
    /// The dtype's name.
    pub dtype: &'static str,
    /// Whether there is a sign, before the exponent.
    pub sign: bool,
    /// The bits of the exponent.
    pub exponent_bits: u32,
    /// The bits of the mantissa.
    pub mantissa_bits: u32,
    /// What is taken off the exponent.
    pub bias: i32,
    /// What the uppermost codes mean.
    pub top: Top,
    /// The quiet NaN.
    pub nan: Option<u16>,
}

/// The formats, as FORMATS.md and the documents that it names define them.
pub static FORMATS: [Format; 10] = [
    format("F4", 2, 1, 1, Top::Numbers, None),
    format("F6_E2M3", 2, 3, 1, Top::Numbers, None),
    format("F6_E3M2", 3, 2, 3, Top::Numbers, None),
    format("F8_E5M2", 5, 2, 15, Top::Infinity, Some(0x7E)),
    format("F8_E4M3", 4, 3, 7, Top::Nan, Some(0x7F)),
    Format { sign: false, ..format("F8_E8M0", 8, 0, 127, Top::Nan, Some(0xFF)) },
    format("F8_E4M3FNUZ", 4, 3, 8, Top::NanForNegativeZero, Some(0x80)),
    format("F8_E5M2FNUZ", 5, 2, 16, Top::NanForNegativeZero, Some(0x80)),
    format("F16", 5, 10, 15, Top::Infinity, Some(0x7E00)),
    format("BF16", 8, 7, 127, Top::Infinity, Some(0x7FC0)),
];

/// Why a value has no code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoCode {
    /// It is beyond the largest.
    Range,
    /// It is NaN.
    Nan,
    /// It is not above zero.
    Sign,
}

const fn format(
    dtype: &'static str,
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    top: Top,
    nan: Option<u16>,
) -> Format {
    Format { dtype, sign: true, exponent_bits, mantissa_bits, bias, top, nan }
}

/// The format of that name.
#[must_use]
pub fn of(dtype: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.dtype == dtype)
}

impl Format {
    /// The value of a code: sign, exponent and mantissa, multiplied out.
    #[must_use]
    pub fn decode(&self, code: u16) -> f64 {
        let all = (1_u32 << (self.exponent_bits + self.mantissa_bits)) - 1;
        let magnitude = u32::from(code) & all;
        let negative = self.sign && u32::from(code) > all;
        let exponent = magnitude >> self.mantissa_bits;
        let mantissa = magnitude & ((1 << self.mantissa_bits) - 1);
        let value = match self.top {
            Top::Infinity if exponent == (1 << self.exponent_bits) - 1 && mantissa == 0 => f64::INFINITY,
            Top::Infinity if exponent == (1 << self.exponent_bits) - 1 => f64::NAN,
            Top::Nan if magnitude == all => f64::NAN,
            Top::NanForNegativeZero if magnitude == 0 && negative => return f64::NAN,
            // E8M0 has no mantissa, and so nothing but powers of two.
            _ if !self.sign => power_of_two(exponent.cast_signed() - self.bias),
            _ => {
                let lead = if exponent == 0 { 0.0 } else { 1.0 };
                let fraction = f64::from(mantissa) / f64::from(1 << self.mantissa_bits);
                (lead + fraction) * power_of_two(exponent.max(1).cast_signed() - self.bias)
            }
        };
        if negative { -value } else { value }
    }

    /// The largest finite value.
    #[must_use]
    pub fn largest(&self) -> f64 {
        self.positive().last().expect("a format has values").0
    }

    /// The code of a value; with saturation the largest stands for what is beyond it, infinity too.
    ///
    /// # Errors
    /// If there is none.
    pub fn encode(&self, value: f64, saturate: bool) -> Result<u16, NoCode> {
        if value.is_nan() {
            return self.nan.ok_or(NoCode::Nan);
        }
        if !self.sign && value <= 0.0 {
            return Err(NoCode::Sign);
        }
        let largest = self.largest();
        if value.abs() > largest && self.top != Top::Infinity && !saturate {
            return Err(NoCode::Range);
        }
        let magnitude = if saturate { value.abs().min(largest) } else { value.abs() };
        let code = self.nearest(magnitude);
        let negative = value.is_sign_negative() && !(self.top == Top::NanForNegativeZero && code == 0);
        Ok(if negative { code | 1 << (self.exponent_bits + self.mantissa_bits) } else { code })
    }

    /// The code nearest to a value that is not negative. Of two that are as near, the even one; of two powers of two,
    /// the greater.
    fn nearest(&self, magnitude: f64) -> u16 {
        let steps = self.positive();
        let above = steps.partition_point(|(value, _)| *value <= magnitude);
        let Some(below) = above.checked_sub(1) else { return steps[0].1 };
        let (low, code) = steps[below];
        if magnitude == low {
            return code;
        }
        // Behind the largest comes infinity, where the next value would be.
        let high = if above < steps.len() { steps[above].0 } else { 2.0 * low - steps[below - 1].0 };
        let middle = f64::midpoint(low, high);
        let up = magnitude > middle || magnitude == middle && (!self.sign || code & 1 == 1);
        code + u16::from(up)
    }

    /// Zero and the positive values, ascending, with their codes, which are numbered in that order.
    fn positive(&self) -> &'static [(f64, u16)] {
        static ALL: LazyLock<Vec<Vec<(f64, u16)>>> = LazyLock::new(|| {
            let finite = |format: &Format| {
                let codes = 0..1_u16 << (format.exponent_bits + format.mantissa_bits);
                let steps = codes.map(|code| (format.decode(code), code));
                steps.filter(|(value, _)| value.is_finite()).collect()
            };
            FORMATS.iter().map(finite).collect()
        });
        &ALL[FORMATS.iter().position(|format| std::ptr::eq(format, self)).expect("one of the table")]
    }
}

/// Two to that power.
#[must_use]
pub fn power_of_two(exponent: i32) -> f64 {
    2_f64.powi(exponent)
}

/// The code that starts at that bit: the bits one by one.
#[must_use]
pub fn code(bits: u32, bytes: &[u8], index: u64) -> Option<u64> {
    let first = index.checked_mul(bits.into())?;
    let bit = |place: u64| {
        let byte = bytes.get(usize::try_from(place / 8).ok()?)?;
        Some(u64::from(byte >> (place % 8) & 1))
    };
    (0..bits.into()).try_fold(0, |code, place| Some(code | bit(first.checked_add(place)?)? << place))
}

/// A block of OCP MX: its scale's code, and the codes of its elements (OCP Microscaling Formats 1.0, 6.3).
///
/// # Errors
/// If a value is infinite, or NaN and the format has none: its index.
pub fn encode_block(format: &Format, values: &[f32]) -> Result<(u8, Vec<u16>), usize> {
    let refused = |value: &f32| value.is_infinite() || value.is_nan() && format.nan.is_none();
    if let Some(index) = values.iter().position(refused) {
        return Err(index);
    }
    let largest =
        values.iter().filter(|value| !value.is_nan()).fold(0.0, |most, value| value.abs().max(most));
    let scale = (floor_log2(largest.into()) - floor_log2(format.largest())).max(-127);
    let codes = values.iter().map(|value| format.encode(f64::from(*value) / power_of_two(scale), true));
    Ok((
        u8::try_from(scale + 127).expect("a scale"),
        codes.map(|code| code.expect("it is saturated")).collect(),
    ))
}

/// The exponent of the largest power of two that is no greater, of an f32 as f64: there it stands in the uppermost bits.
/// Zero has a very small one.
fn floor_log2(value: f64) -> i32 {
    i32::try_from(value.to_bits() >> 52).expect("eleven bits") - 1023
}
