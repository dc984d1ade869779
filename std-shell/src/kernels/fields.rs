//! A format becomes the numbers that its kernels are made of.

use safestep_core::numbers::Format;

/// The infinity of an f32.
pub(super) const INFINITY: u32 = 0x7F80_0000;

/// Where the fields of a small float stand, and which f32 are plain work for it.
#[derive(Clone, Copy)]
pub(super) struct Fields {
    pub(super) bits: u32,
    pub(super) exponent_bits: u32,
    pub(super) mantissa_bits: u32,
    pub(super) bias: u32,
}

impl Fields {
    pub(super) const fn of<F: Format>() -> Self {
        Self {
            bits: F::DTYPE.bits(),
            exponent_bits: F::EXPONENT_BITS,
            mantissa_bits: F::MANTISSA_BITS,
            bias: F::BIAS,
        }
    }

    /// How far the mantissa is from that of an f32.
    pub(super) const fn shift(self) -> u32 {
        23 - self.mantissa_bits
    }

    /// The exponent of the format's subnormals, in place as one of f32.
    pub(super) const fn least(self) -> u32 {
        (128 - self.bias) << 23
    }

    /// So many times the power of two at or below an f32 is one next to which the last bit is the format's.
    pub(super) const fn coarse(self) -> f32 {
        f32::from_bits((127 + self.shift()) << 23)
    }

    /// What a code is too large by when it is put together from the sum's exponent: zero would come out as this.
    pub(super) const fn surplus(self) -> u32 {
        (self.least() >> self.shift()) + (self.shift() << self.mantissa_bits)
    }
}
