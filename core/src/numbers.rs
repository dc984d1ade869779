//! Bytes of a dtype become numbers, and numbers become bytes: exactly, or with an error that names the value.
//!
//! One element at a time by a [`Format`] or by [`number`] and [`code`]; whole slices by [`decode_f32`], [`encode_f32`] and
//! their likes. Bytes stand at any alignment, little-endian, elements below a byte packed as the [`Dtype`](crate::Dtype) says. No
//! conversion is ever made that the caller did not name: the dtype is an argument, and so is saturation.
//!
//! The loops over slices are inlined where they are called, so that a caller who compiles for a larger machine has them
//! compiled for it.

/// The expression for the format of that dtype, or the other one if the dtype is no float of at most 16 bits.
macro_rules! with_format {
    ($dtype:expr, $format:ident => $then:expr, $otherwise:expr) => {
        with_format!(@ $dtype, $format, $then, $otherwise,
            F4 F6E2M3 F6E3M2 F8E5M2 F8E4M3 F8E8M0 F8E4M3Fnuz F8E5M2Fnuz F16 Bf16)
    };
    (@ $dtype:expr, $format:ident, $then:expr, $otherwise:expr, $($name:ident)+) => {
        match $dtype {
            $( Dtype::$name => { type $format = $name; $then } )+
            _ => $otherwise,
        }
    };
}

mod number;
mod error;
mod format;
mod minifloat;
mod bfloat;
mod scale;
mod packed;
mod float;
mod int;
mod element;
mod slice;
mod block;

pub use bfloat::Bf16;
pub use block::{BLOCK_ELEMENTS, decode_blocks, encode_blocks};
pub use element::{code, number};
pub use error::{NumbersError, Refusal, ValueError};
pub use format::{Format, OutOfRange, Packing};
pub use minifloat::{F4, F6E2M3, F6E3M2, F8E4M3, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F16};
pub use number::Number;
pub use scale::F8E8M0;
pub use slice::{
    decode_bool, decode_complex, decode_f32, decode_f64, decode_i64, decode_u64, encode_f32, encode_f64,
};

/// The loops over slices of one format, for who compiles them for a machine of their own choice.
pub mod portable {
    pub use super::float::{decode, encode};
    pub use super::slice::check;
}
