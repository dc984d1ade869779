//! The formats that are made like IEEE 754's: a sign, an exponent, a mantissa, and some codes with a meaning of their own.
//!
//! Sources: IEEE 754-2019 (F16); Micikevicius et al., "FP8 Formats for Deep Learning", 2022 (E5M2, E4M3); Noune et al.,
//! "8-bit Numerical Formats for Deep Neural Networks", 2022 (the FNUZ ones); OCP Microscaling Formats 1.0 (F6, F4).
//!
//! No table, and for plain numbers no branch and no subnormal f32 but those that come in, which are only added to: each step is
//! one that a compiler makes vectors of.

use crate::dtype::Dtype;
use crate::numbers::format::{
    Format, INFINITY, MAGNITUDE, OutOfRange, Packing, QUIET_NAN, SIGN, low_half, sealed,
};

/// Which codes are no plain numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Specials {
    /// The uppermost exponent is infinity, and NaN with a mantissa.
    Ieee,
    /// All ones are NaN.
    NanOnly,
    /// What would be the negative zero is NaN.
    NoNegativeZero,
    /// None.
    Finite,
}

/// Where the fields of a code stand, and what they mean.
#[derive(Clone, Copy)]
struct Layout {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: u32,
    specials: Specials,
    /// Its largest finite magnitude.
    largest: u32,
    /// Its quiet NaN, if it has one.
    nan: u32,
}

impl Layout {
    /// How far the mantissa is from that of an f32.
    const fn shift(self) -> u32 {
        23_u32.wrapping_sub(self.mantissa_bits)
    }

    const fn sign_shift(self) -> u32 {
        self.exponent_bits.wrapping_add(self.mantissa_bits)
    }

    /// All bits of a code below its sign.
    const fn magnitude(self) -> u32 {
        1_u32.wrapping_shl(self.sign_shift()).wrapping_sub(1)
    }

    /// The code behind the largest, where the format is IEEE's.
    const fn infinity(self) -> u32 {
        self.largest.wrapping_add(1)
    }

    /// An exponent of the format, in place as one of f32.
    const fn exponent(self, exponent: u32) -> u32 {
        exponent.wrapping_add(127).wrapping_sub(self.bias).wrapping_shl(23)
    }

    /// The value of a code that is [no special one](Self::is_special).
    #[inline(always)]
    const fn finite(self, code: u32) -> f32 {
        let shifted = (code & self.magnitude()).wrapping_shl(self.shift());
        let normal = f32::from_bits(shifted.wrapping_add(self.exponent(0)));
        // A subnormal counts in units of the smallest: with a leading one put before it, which is then taken away.
        let one = self.exponent(1);
        let subnormal = f32::from_bits(shifted.wrapping_add(one)) - f32::from_bits(one);
        // The wrong way of the two gives the larger value.
        let magnitude = if subnormal < normal { subnormal } else { normal };
        f32::from_bits(magnitude.to_bits() | self.sign(code))
    }

    /// The sign of a code, in place as one of f32.
    const fn sign(self, code: u32) -> u32 {
        code.wrapping_shl(31_u32.wrapping_sub(self.sign_shift())) & SIGN
    }

    /// Whether the code is infinity or NaN.
    #[inline(always)]
    const fn is_special(self, code: u32) -> bool {
        match self.specials {
            Specials::Ieee => code & self.magnitude() >= self.infinity(),
            Specials::NanOnly => code & self.magnitude() == self.nan,
            Specials::NoNegativeZero => code & self.sign_and_magnitude() == self.nan,
            Specials::Finite => false,
        }
    }

    #[inline(always)]
    const fn decode(self, code: u32) -> f32 {
        if !self.is_special(code) {
            return self.finite(code);
        }
        let magnitude = code & self.magnitude();
        f32::from_bits(match self.specials {
            Specials::NoNegativeZero => QUIET_NAN,
            Specials::Ieee if magnitude == self.infinity() => INFINITY | self.sign(code),
            // From the uppermost exponent to that of an f32; a NaN keeps its mantissa, and is quiet.
            Specials::Ieee => magnitude.wrapping_shl(self.shift()) | QUIET_NAN | self.sign(code),
            _ => QUIET_NAN | self.sign(code),
        })
    }

    const fn sign_and_magnitude(self) -> u32 {
        2_u32.wrapping_shl(self.sign_shift()).wrapping_sub(1)
    }

    /// The nearest code of a value that is [not odd](Self::is_odd).
    #[inline(always)]
    const fn nearest(self, value: f32) -> u32 {
        let bits = value.to_bits();
        // Behind the largest of an IEEE format all is infinity.
        let magnitude = match (self.specials, bits & MAGNITUDE) {
            (Specials::Ieee, magnitude) if magnitude > self.beyond() => self.beyond(),
            (_, magnitude) => magnitude,
        };
        // Next to a power of two whose last bit is that of the format, the addition itself rounds.
        let up = self.shift().wrapping_shl(23);
        let least = f32::from_bits(self.exponent(1).wrapping_add(up));
        let power = f32::from_bits(magnitude.wrapping_add(up) & INFINITY);
        let power = if power > least { power } else { least };
        let sum = (f32::from_bits(magnitude) + power).to_bits().wrapping_sub(least.to_bits());
        // Above is the exponent, below the mantissa with its leading one; what lies between is zero.
        let code = sum.wrapping_add(sum.wrapping_shr(self.shift()));
        let sign = (bits & SIGN).wrapping_shr(31_u32.wrapping_sub(self.sign_shift()));
        match self.specials {
            Specials::NoNegativeZero if sum == 0 => 0,
            _ => code | sign,
        }
    }

    /// The power of two behind the largest value, where the format is IEEE's.
    const fn beyond(self) -> u32 {
        self.exponent(self.infinity().wrapping_shr(self.mantissa_bits))
    }

    #[inline(always)]
    const fn round(self, value: f32) -> u32 {
        if value.to_bits() & MAGNITUDE > INFINITY { self.nan } else { self.nearest(value) }
    }

    /// Whether the value is a NaN, or refused.
    #[inline(always)]
    fn is_odd(self, value: f32, largest: f32, beyond: OutOfRange) -> bool {
        let limit = match (self.specials, beyond) {
            (Specials::Ieee, _) | (_, OutOfRange::Saturate) => INFINITY,
            (_, OutOfRange::Refuse) => largest.to_bits(),
        };
        value.to_bits() & MAGNITUDE > limit
    }

    #[inline(always)]
    fn refuses(self, value: f32, largest: f32, beyond: OutOfRange) -> bool {
        let magnitude = value.to_bits() & MAGNITUDE;
        let too_large = magnitude > largest.to_bits();
        let nan = magnitude > INFINITY;
        match (self.specials, beyond) {
            (Specials::Ieee, _) => false,
            (Specials::Finite, OutOfRange::Refuse) => too_large,
            (Specials::Finite, OutOfRange::Saturate) => nan,
            (_, OutOfRange::Refuse) => too_large & !nan,
            (_, OutOfRange::Saturate) => false,
        }
    }
}

macro_rules! minifloats {
    ($( $(#[$doc:meta])* $name:ident $packing:ident $layout:expr; )+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name;

        impl $name {
            const LAYOUT: Layout = $layout;
        }

        impl sealed::Sealed for $name {}

        impl Format for $name {
            const DTYPE: Dtype = Dtype::$name;
            const PACKING: Packing = Packing::$packing;
            const LARGEST: f32 = Self::LAYOUT.decode(Self::LAYOUT.largest);
            const EXPONENT_BITS: u32 = Self::LAYOUT.exponent_bits;
            const MANTISSA_BITS: u32 = Self::LAYOUT.mantissa_bits;
            const BIAS: u32 = Self::LAYOUT.bias;

            #[inline(always)]
            fn decode(code: u16) -> f32 {
                const { Self::LAYOUT }.decode(u32::from(code))
            }

            #[inline(always)]
            fn finite(code: u16) -> f32 {
                const { Self::LAYOUT }.finite(u32::from(code))
            }

            #[inline(always)]
            fn is_special(code: u16) -> bool {
                const { Self::LAYOUT }.is_special(u32::from(code))
            }

            #[inline(always)]
            fn round(value: f32) -> u16 {
                low_half(const { Self::LAYOUT }.round(value))
            }

            #[inline(always)]
            fn nearest(value: f32) -> u16 {
                low_half(const { Self::LAYOUT }.nearest(value))
            }

            #[inline(always)]
            fn is_odd(value: f32, beyond: OutOfRange) -> bool {
                const { Self::LAYOUT }.is_odd(value, Self::LARGEST, beyond)
            }

            #[inline(always)]
            fn refuses(value: f32, beyond: OutOfRange) -> bool {
                const { Self::LAYOUT }.refuses(value, Self::LARGEST, beyond)
            }
        }
    )+ };
}

/// The layout with fields of those sizes, whose special codes are the uppermost.
const fn layout(exponent_bits: u32, mantissa_bits: u32, bias: u32, specials: Specials) -> Layout {
    let all = 1_u32.wrapping_shl(exponent_bits.wrapping_add(mantissa_bits)).wrapping_sub(1);
    let mantissa = 1_u32.wrapping_shl(mantissa_bits).wrapping_sub(1);
    let (largest, nan) = match specials {
        // The quiet one has the uppermost bit of the mantissa.
        Specials::Ieee => ((all ^ mantissa).wrapping_sub(1), (all ^ mantissa) | (mantissa ^ mantissa >> 1)),
        Specials::NanOnly => (all.wrapping_sub(1), all),
        Specials::NoNegativeZero => (all, all.wrapping_add(1)),
        Specials::Finite => (all, 0),
    };
    Layout { exponent_bits, mantissa_bits, bias, specials, largest, nan }
}

minifloats! {
    /// IEEE 754 half precision. Largest 65 504, smallest 2^-24; quiet NaN 0x7E00.
    F16 Pair layout(5, 10, 15, Specials::Ieee);
    /// IEEE-like: largest 57 344, smallest 2^-16, with infinity; quiet NaN 0x7E.
    F8E5M2 Byte layout(5, 2, 15, Specials::Ieee);
    /// "fn", finite: largest 448, smallest 2^-9, no infinity; NaN 0x7F.
    F8E4M3 Byte layout(4, 3, 7, Specials::NanOnly);
    /// Largest 57 344, smallest 2^-17, neither infinity nor negative zero; NaN 0x80.
    F8E5M2Fnuz Byte layout(5, 2, 16, Specials::NoNegativeZero);
    /// Largest 240, smallest 2^-10, neither infinity nor negative zero; NaN 0x80.
    F8E4M3Fnuz Byte layout(4, 3, 8, Specials::NoNegativeZero);
    /// Largest 7.5, smallest 0.125, neither infinity nor NaN.
    F6E2M3 FourInThree layout(2, 3, 1, Specials::Finite);
    /// Largest 28, smallest 0.0625, neither infinity nor NaN.
    F6E3M2 FourInThree layout(3, 2, 3, Specials::Finite);
    /// Largest 6, smallest 0.5, neither infinity nor NaN.
    F4 TwoInOne layout(2, 1, 1, Specials::Finite);
}
