//! Decimal numbers become the nearest `f64`, and an `f64` the shortest decimal that becomes it again.
//!
//! One exact comparison does it all: a decimal against m x 2^e, both as whole numbers of some thousand bits. The `f64`
//! nearest to a decimal is found by bisection, its order being that of its bits; so are the digits of an `f64`. That takes
//! microseconds, which is enough for one number a document; `str::parse` and the printers of `core` and of the known crates
//! link ways to panic.

use core::cmp::Ordering;

/// The `f64` nearest to a JSON number, ties to even; `None` if that is infinite.
pub(crate) fn nearest(number: &[u8]) -> Option<f64> {
    let (negative, digits) = match number {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let sign = if negative { SIGN } else { 0 };
    let decimal = Decimal::read(digits);
    // The number is below 10^top and, unless it is zero, not below 10^(top - 1).
    let top = decimal.exponent.saturating_add(decimal.digits);
    if decimal.big.len == 0 || top < -330 {
        return Some(f64::from_bits(sign));
    }
    if top > 310 {
        return None;
    }
    let bits = last(0, INFINITY.wrapping_sub(1), |bits| {
        let (m, e) = parts(bits);
        decimal.cmp(m, e).is_ge()
    });
    let (m, e) = parts(bits);
    let odd = bits & 1 == 1;
    let up = match decimal.cmp(m.wrapping_mul(2).wrapping_add(1), e.wrapping_sub(1)) {
        Ordering::Greater => true,
        Ordering::Equal => odd,
        Ordering::Less => false,
    };
    let bits = bits.wrapping_add(u64::from(up));
    if bits == INFINITY { None } else { Some(f64::from_bits(bits | sign)) }
}

/// The shortest decimal that is nearest to no other `f64`, and of those the one nearest to it, as JSON: `0.0003`, `1e-7`,
/// `1.0`. Nothing for what is not finite.
pub(crate) struct Shortest {
    text: [u8; TEXT_BYTES_MAX],
    len: usize,
}

impl Shortest {
    pub(crate) fn of(value: f64) -> Self {
        let mut shortest = Self { text: [0; TEXT_BYTES_MAX], len: 0 };
        let bits = value.to_bits();
        let magnitude = bits & !SIGN;
        if magnitude >= INFINITY {
            return shortest;
        }
        if bits & SIGN != 0 {
            shortest.push(b'-');
        }
        let (digits, exponent) = if magnitude == 0 { (0, 0) } else { shortest_digits(magnitude) };
        shortest.spell(digits, exponent);
        shortest
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.text.get(..self.len).unwrap_or_default()
    }

    /// The way `serde_json` spells it, and most others: plain from 1e-5 up to below 1e16, else with an exponent.
    fn spell(&mut self, digits: u64, exponent: i32) {
        let mut buffer = [0; 20];
        let digits = decimal_digits(digits, &mut buffer);
        let count = i32::try_from(digits.len()).unwrap_or_default();
        let point = count.wrapping_add(exponent);
        let plain = (-4..=16).contains(&point);
        let whole = usize::try_from(if plain { point } else { 1 }).unwrap_or_default();
        if plain && point <= 0 {
            self.push(b'0');
            self.push(b'.');
            (point..0).for_each(|_| self.push(b'0'));
        }
        let (before, behind) = digits.split_at_checked(whole).unwrap_or((digits, &[]));
        before.iter().for_each(|digit| self.push(*digit));
        if !before.is_empty() && !behind.is_empty() {
            self.push(b'.');
        }
        behind.iter().for_each(|digit| self.push(*digit));
        if plain && exponent >= 0 {
            (0..exponent).for_each(|_| self.push(b'0'));
            self.push(b'.');
            self.push(b'0');
        }
        if !plain {
            self.push(b'e');
            let power = point.wrapping_sub(1);
            if power < 0 {
                self.push(b'-');
            }
            let mut buffer = [0; 20];
            let digits = decimal_digits(u64::from(power.unsigned_abs()), &mut buffer);
            digits.iter().for_each(|digit| self.push(*digit));
        }
    }

    fn push(&mut self, byte: u8) {
        if let Some(to) = self.text.get_mut(self.len) {
            *to = byte;
            self.len = self.len.wrapping_add(1);
        }
    }
}

/// The digits and the power of ten of their last one, for what is neither zero nor infinite.
fn shortest_digits(bits: u64) -> (u64, i32) {
    let (m, e) = parts(bits);
    // 10^power <= value < 10^(power + 1).
    let power = last_power(|power| Decimal::new(1, power).cmp(m, e).is_le());
    let unit = power.wrapping_sub(16);
    let longest =
        last(DIGITS_16, DIGITS_16.wrapping_mul(10), |digits| Decimal::new(digits, unit).cmp(m, e).is_le());
    let (mut scale, mut exponent) = (DIGITS_16, power);
    loop {
        let below = longest.checked_div(scale).unwrap_or_default();
        let above = below.wrapping_add(1);
        let fits = [below, above].map(|digits| becomes(digits, exponent, bits));
        let chosen = match fits {
            [true, true] => {
                let twice_middle = Decimal::new(below.wrapping_mul(2).wrapping_add(1), exponent);
                match twice_middle.cmp(m, e.wrapping_add(1)) {
                    Ordering::Greater => Some(below),
                    Ordering::Equal => Some(below.wrapping_add(below & 1)),
                    Ordering::Less => Some(above),
                }
            }
            [true, false] => Some(below),
            [false, true] => Some(above),
            [false, false] => None,
        };
        if let Some(mut digits) = chosen {
            while digits % 10 == 0 && digits > 0 {
                digits /= 10;
                exponent = exponent.wrapping_add(1);
            }
            return (digits, exponent);
        }
        if scale <= 1 {
            // Seventeen digits always suffice.
            return (longest, unit);
        }
        scale /= 10;
        exponent = exponent.wrapping_sub(1);
    }
}

/// Whether a decimal is nearest to this value and to no other.
fn becomes(digits: u64, exponent: i32, bits: u64) -> bool {
    let (m, e) = parts(bits);
    let decimal = Decimal::new(digits, exponent);
    // Below a power of two the values stand twice as close.
    let (low, low_e) = if bits & FRACTION == 0 && bits > FRACTION.wrapping_add(1) {
        (m.wrapping_mul(4).wrapping_sub(1), e.wrapping_sub(2))
    } else {
        (m.wrapping_mul(2).wrapping_sub(1), e.wrapping_sub(1))
    };
    let (high, high_e) = (m.wrapping_mul(2).wrapping_add(1), e.wrapping_sub(1));
    let (low, high) = (decimal.cmp(low, low_e), decimal.cmp(high, high_e));
    if bits & 1 == 0 { low.is_ge() && high.is_le() } else { low.is_gt() && high.is_lt() }
}

/// The last number from `low` to `high` of which something holds that holds of the first ones only.
fn last(mut low: u64, mut high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while low < high {
        let middle = high.wrapping_sub(high.wrapping_sub(low) >> 1);
        if holds(middle) {
            low = middle;
        } else {
            high = middle.wrapping_sub(1);
        }
    }
    low
}

/// The same for powers of ten.
fn last_power(holds: impl Fn(i32) -> bool) -> i32 {
    const LOWEST: i32 = -330;
    let power = |steps: u64| LOWEST.wrapping_add(i32::try_from(steps).unwrap_or_default());
    power(last(0, 640, |steps| holds(power(steps))))
}

/// A finite value as m x 2^e; infinity as the power of two that it stands for.
fn parts(bits: u64) -> (u64, i32) {
    let field = i32::try_from(bits >> 52).unwrap_or_default();
    let fraction = bits & FRACTION;
    if field == 0 { (fraction, -1074) } else { (fraction | HIDDEN, field.wrapping_sub(1075)) }
}

fn decimal_digits(value: u64, buffer: &mut [u8; 20]) -> &[u8] {
    let mut rest = value;
    let mut begin = buffer.len();
    for digit in buffer.iter_mut().rev() {
        let [units, ..] = (rest % 10).to_le_bytes();
        *digit = b'0' | units;
        rest /= 10;
        begin = begin.wrapping_sub(1);
        if rest == 0 {
            break;
        }
    }
    buffer.get(begin..).unwrap_or_default()
}

/// A whole number times a power of ten.
struct Decimal {
    big: Big,
    exponent: i64,
    /// How many digits the whole number has.
    digits: i64,
}

impl Decimal {
    fn new(digits: u64, exponent: i32) -> Self {
        Self { big: Big::new(digits), exponent: i64::from(exponent), digits: 20 }
    }

    /// The number that JSON spells so, without its sign. Of digits beyond the limit it counts only whether one is not zero.
    fn read(number: &[u8]) -> Self {
        let mut decimal = Self { big: Big::new(0), exponent: 0, digits: 0 };
        let mut power: i64 = 0;
        let (mut behind_point, mut in_power, mut power_negative, mut sticky) = (false, false, false, false);
        for &byte in number {
            match byte {
                b'.' => behind_point = true,
                b'e' | b'E' => in_power = true,
                b'-' => power_negative = true,
                b'0'..=b'9' if in_power => {
                    power = power.saturating_mul(10).saturating_add(i64::from(byte & 15));
                }
                b'0'..=b'9' => {
                    if decimal.digits < DIGITS_MAX {
                        decimal.big.multiply(10, u32::from(byte & 15));
                        decimal.digits = decimal.digits.wrapping_add(i64::from(decimal.big.len > 0));
                    } else {
                        sticky |= byte != b'0';
                        decimal.exponent = decimal.exponent.wrapping_add(1);
                    }
                    decimal.exponent = decimal.exponent.wrapping_sub(i64::from(behind_point));
                }
                _ => {}
            }
        }
        if sticky {
            decimal.big.multiply(10, 1);
            decimal.digits = decimal.digits.wrapping_add(1);
            decimal.exponent = decimal.exponent.wrapping_sub(1);
        }
        let power = if power_negative { 0_i64.saturating_sub(power) } else { power };
        decimal.exponent = decimal.exponent.saturating_add(power);
        decimal
    }

    /// Against m x 2^e. Exact for what is between 10^-330 and 10^310.
    fn cmp(&self, m: u64, e: i32) -> Ordering {
        let (mut decimal, mut binary) = (self.big.clone(), Big::new(m));
        decimal.times_ten(self.exponent);
        binary.times_ten(0_i64.saturating_sub(self.exponent));
        decimal.times_two(0_i32.saturating_sub(e));
        binary.times_two(e);
        decimal.cmp(&binary)
    }
}

/// A whole number, its lowest 32 bits first, without leading zeros.
#[derive(Clone)]
struct Big {
    limbs: [u32; LIMBS],
    len: usize,
}

impl Big {
    fn new(value: u64) -> Self {
        let mut big = Self { limbs: [0; LIMBS], len: 0 };
        let (low, high) = halves(value);
        let len = if high > 0 { 2 } else { usize::from(low > 0) };
        big.limbs.iter_mut().zip([low, high]).for_each(|(to, half)| *to = half);
        big.len = len;
        big
    }

    /// Multiplies by what is not zero, and adds.
    fn multiply(&mut self, factor: u32, addend: u32) {
        let mut carry = addend;
        for limb in self.limbs.get_mut(..self.len).unwrap_or_default() {
            let wide = u64::from(*limb).wrapping_mul(u64::from(factor)).wrapping_add(u64::from(carry));
            (*limb, carry) = halves(wide);
        }
        if carry > 0
            && let Some(next) = self.limbs.get_mut(self.len)
        {
            *next = carry;
            self.len = self.len.wrapping_add(1);
        }
    }

    fn times_ten(&mut self, mut power: i64) {
        while power >= 9 {
            self.multiply(1_000_000_000, 0);
            power = power.wrapping_sub(9);
        }
        (0..power).for_each(|_| self.multiply(10, 0));
    }

    fn times_two(&mut self, mut power: i32) {
        while power >= 31 {
            self.multiply(1 << 31, 0);
            power = power.wrapping_sub(31);
        }
        (0..power).for_each(|_| self.multiply(2, 0));
    }

    fn cmp(&self, other: &Self) -> Ordering {
        let limbs = |big: &Self| big.len;
        limbs(self).cmp(&limbs(other)).then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev()))
    }
}

/// The lower and the upper half of 64 bits.
fn halves(wide: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = wide.to_le_bytes();
    (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]))
}

const SIGN: u64 = 1 << 63;
const INFINITY: u64 = 0x7FF0_0000_0000_0000;
const HIDDEN: u64 = 1 << 52;
const FRACTION: u64 = HIDDEN - 1;
/// 10^16, the least number of seventeen digits.
const DIGITS_16: u64 = 10_000_000_000_000_000;
/// The middle between two neighbours has at most 767 digits: what comes behind so many only tells above from equal.
const DIGITS_MAX: i64 = 770;
/// 771 digits times 2^1075, or 2^1024 times 10^1101, and a little: not more than 4700 bits.
const LIMBS: usize = 160;
/// `-1.2345678901234567e-308`
const TEXT_BYTES_MAX: usize = 25;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;
    use std::string::String;

    fn shortest(value: f64) -> String {
        String::from_utf8(Shortest::of(value).as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn spelled_as_json_mostly_is() {
        let table = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-2.5, "-2.5"),
            (0.0003, "0.0003"),
            (0.000_01, "0.00001"),
            (0.000_001, "1e-6"),
            (1.5e-7, "1.5e-7"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e16"),
            (123_456_789_012_345.6, "123456789012345.6"),
            (5e-324, "5e-324"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (f64::MAX, "1.7976931348623157e308"),
            (9_007_199_254_740_993.0, "9007199254740992.0"),
            (f64::INFINITY, ""),
            (f64::NAN, ""),
        ];
        for (value, text) in table {
            assert_eq!(shortest(value), text, "{value:e}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "long arithmetic takes minutes there, and is nothing but arithmetic")]
    fn shortest_and_nearest_are_those_of_std() {
        let mut seed = 0x5afe_57e9_u64;
        for round in 0..3000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bits = match round % 4 {
                // Around powers of two, where neighbours are not equally far.
                0 => (seed >> 53 << 52).wrapping_add(round % 3).wrapping_sub(1),
                1 => seed >> (seed & 63),
                _ => seed,
            };
            let value = f64::from_bits(bits & !SIGN);
            if !value.is_finite() {
                continue;
            }
            let own: f64 = shortest(value).parse().unwrap();
            assert_eq!(own.to_bits(), value.to_bits());
            let digits =
                |text: &str| text.split(['e', 'E']).next().unwrap().replace('.', "").trim_matches('0').len();
            let std = format!("{value:e}");
            assert_eq!(digits(&shortest(value)), digits(&std), "{std}");
            for text in [std, format!("{value:.20e}"), format!("{value}"), format!("{value:.3e}")] {
                let expected: f64 = text.parse().unwrap();
                let found = nearest(text.as_bytes()).unwrap_or(f64::INFINITY);
                assert_eq!(found.to_bits(), expected.to_bits(), "{text}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "long arithmetic takes minutes there, and is nothing but arithmetic")]
    fn hard_decimals_become_what_std_says() {
        let many = |digit: &str, count: usize, tail: &str| format!("{}{tail}", digit.repeat(count));
        let table = [
            String::from("9007199254740993"),
            String::from("9007199254740993.00000000000000000000000000000000000000000000001"),
            String::from("2.4703282292062327208e-324"),
            String::from("2.4703282292062328e-324"),
            String::from("1.7976931348623158e308"),
            String::from("1.7976931348623159e308"),
            String::from("1e309"),
            String::from("1e-400"),
            String::from("1e99999999999999999999999"),
            String::from("1e-99999999999999999999999"),
            String::from("0e99999999999999999999999"),
            String::from("0.000000000000000000000000000000e5"),
            String::from("2.2250738585072011e-308"),
            many("1", 2000, "e-1990"),
            many("9", 400, ""),
            format!("0.{}1", "0".repeat(1000)),
            format!("0.{}1e1000", "0".repeat(1000)),
            format!("9007199254740993.{}1", "0".repeat(1500)),
            // The middle between the two smallest values, to the last of its 767 digits, and a little beyond.
            format!("{:.1100e}", f64::from_bits(1)),
        ];
        for text in table {
            let expected: f64 = text.parse().unwrap();
            let found = nearest(text.as_bytes()).unwrap_or(f64::INFINITY);
            assert_eq!(found.to_bits(), expected.to_bits(), "{text}");
        }
    }
}
