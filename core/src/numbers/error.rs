//! Why numbers do not become bytes, or bytes numbers.

use crate::dtype::Dtype;
use crate::numbers::number::Number;
use core::fmt;

/// Why a value has no code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is beyond the largest or the smallest value, or infinite where there is no infinity.
    OutOfRange,
    /// It is NaN, and there is none.
    NotANumber,
    /// It is zero or negative, and a scale is neither.
    NotPositive,
    /// It has a fraction, or is larger than what the type holds exactly; nothing is rounded to or from integers.
    Inexact,
    /// It is a byte other than 0 and 1.
    NotABool,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfRange => "it is out of range",
            Self::NotANumber => "there is no NaN",
            Self::NotPositive => "a scale is above zero",
            Self::Inexact => "it would not be exact",
            Self::NotABool => "a truth value is 0 or 1",
        })
    }
}

/// A value that was refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueError {
    /// The dtype that it was to be written as, or was read as.
    pub dtype: Dtype,
    /// Which element it is, from 0.
    pub index: u64,
    /// The value.
    pub value: Number,
    /// What is wrong with it.
    pub refusal: Refusal,
}

/// Why a slice was not converted. What was written to before the error is of no meaning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NumbersError {
    /// The bytes are not those of so many elements.
    Length {
        /// The dtype of the bytes.
        dtype: Dtype,
        /// How many elements there are.
        elements: u64,
        /// How many bytes they take; `None` if they end inside a byte, or are more than 2^64 - 1 bits.
        expected: Option<u64>,
        /// How many bytes there are.
        found: u64,
    },
    /// The scales are not those of so many elements, which have one for each block of 32.
    Scales {
        /// How many elements there are.
        elements: u64,
        /// How many scales they have; `None` if they end inside a block.
        expected: Option<u64>,
        /// How many scales there are.
        found: u64,
    },
    /// The dtype's elements do not become numbers of this type, or the other way round.
    Type {
        /// The dtype of the bytes.
        dtype: Dtype,
        /// The name of the Rust type.
        numbers: &'static str,
    },
    /// An element was refused.
    Value(ValueError),
}

impl core::error::Error for NumbersError {}

impl fmt::Display for NumbersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { dtype, elements, expected: Some(expected), found } => {
                write!(f, "expected {expected} bytes for {elements} elements of {dtype}, found {found}")
            }
            Self::Length { dtype, elements, expected: None, found } => match group(*dtype) {
                1 => write!(f, "expected elements of {dtype} in at most 2^64 - 1 bits, found {elements}"),
                group => write!(
                    f,
                    "expected a multiple of {group} elements of {dtype}, found {elements} for {found} bytes"
                ),
            },
            Self::Scales { elements, expected: Some(expected), found } => {
                let plural = if *expected == 1 { "" } else { "s" };
                write!(f, "expected {expected} scale{plural} for {elements} elements, found {found}")
            }
            Self::Scales { elements, expected: None, .. } => {
                write!(f, "expected a multiple of 32 elements, found {elements}")
            }
            Self::Type { dtype, numbers } => {
                write!(f, "expected numbers that {dtype} holds, found {numbers}")
            }
            Self::Value(error) => error.fmt(f),
        }
    }
}

/// How many elements fill whole bytes together.
const fn group(dtype: Dtype) -> u32 {
    8_u32.wrapping_shr(dtype.bits().trailing_zeros())
}

impl core::error::Error for ValueError {}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dtype, index, value, refusal } = self;
        write!(f, "expected a value of {dtype}, found {value} in element {index}: {refusal}")
    }
}
