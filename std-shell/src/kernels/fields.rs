//! A format becomes the numbers that its kernels are made of.

use safestep_core::Dtype;
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
        let (exponent_bits, mantissa_bits, bias) = match F::DTYPE {
            Dtype::F16 => (5, 10, 15),
            Dtype::F8E5M2 => (5, 2, 15),
            Dtype::F8E5M2Fnuz => (5, 2, 16),
            Dtype::F8E4M3 => (4, 3, 7),
            Dtype::F8E4M3Fnuz => (4, 3, 8),
            Dtype::F6E3M2 => (3, 2, 3),
            Dtype::F6E2M3 => (2, 3, 1),
            Dtype::F4 => (2, 1, 1),
            Dtype::F8E8M0 => (8, 0, 127),
            _ => (8, 7, 127),
        };
        Self { bits: F::DTYPE.bits(), exponent_bits, mantissa_bits, bias }
    }

    /// How far the mantissa is from that of an f32.
    pub(super) const fn shift(self) -> u32 {
        23 - self.mantissa_bits
    }

    /// The exponent of the format's subnormals, in place as one of f32.
    pub(super) const fn least(self) -> u32 {
        (128 - self.bias) << 23
    }

    /// What, added to the exponent of an f32, gives a power of two next to which the last bit is the format's.
    pub(super) const fn coarse(self) -> u32 {
        self.shift() << 23
    }

    /// What a code is too large by when it is put together from the sum's exponent: zero would come out as this.
    pub(super) const fn surplus(self) -> u32 {
        (self.least() + self.coarse()) >> self.shift()
    }
}
