//! One number of any kind, as it stood in a file or is to stand there.

use core::fmt;

/// The value of one element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A truth value: a byte that is not 0.
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
    /// The shortest text that reads back as the same number: `1.5`, `-0`, `inf`, `NaN`, `true`, `1-2i`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Unsigned(value) => value.fmt(f),
            Self::Signed(value) => value.fmt(f),
            Self::F32(value) => value.fmt(f),
            Self::F64(value) => value.fmt(f),
            Self::Complex([real, imaginary]) => write!(f, "{real}{imaginary:+}i"),
        }
    }
}
