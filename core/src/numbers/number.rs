//! One number of any kind, as it stood in a file or is to stand there.

use core::fmt;

/// The value of one element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A truth value: a byte of 0 or 1.
    Bool(bool),
    /// An unsigned integer.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A float of at most 32 bits.
    F32(f32),
    /// A float of 64 bits.
    F64(f64),
    /// A complex number: real, imaginary.
    Complex([f32; 2]),
}

impl fmt::Display for Number {
    /// The shortest text that reads back as the same number: `1.5`, `-0.0`, `1e300`, `inf`, `NaN`, `true`, `1.0-2.0i`.
    ///
    /// A float has a point or an exponent, so that one sees what it is, and no more than a few digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Unsigned(value) => value.fmt(f),
            Self::Signed(value) => value.fmt(f),
            Self::F32(value) => write!(f, "{value:?}"),
            Self::F64(value) => write!(f, "{value:?}"),
            Self::Complex([real, imaginary]) => {
                // NaN is printed without a sign.
                let sign = if imaginary.is_sign_negative() && !imaginary.is_nan() { "" } else { "+" };
                write!(f, "{real:?}{sign}{imaginary:?}i")
            }
        }
    }
}
