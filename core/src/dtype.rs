//! The dtypes: a name in a header becomes an element type with a size and a rank in the writer's order.

#[cfg(feature = "fast")]
mod quoted;

use crate::json::JsonStr;
use crate::span::multiply;
use core::fmt;

macro_rules! dtypes {
    ($( $(#[$doc:meta])* $variant:ident $name:literal $bits:literal ),+ $(,)?) => {
        /// What the elements of a tensor are.
        ///
        /// The variants stand in the order of the reference library (by alignment, smallest first); `Ord` follows it,
        /// and a writer lays tensors out in the reverse of it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Dtype { $( $(#[$doc])* $variant ),+ }

        impl Dtype {
            /// All dtypes, in order.
            pub const ALL: [Self; 22] = [ $( Self::$variant ),+ ];

            /// The name in a header.
            ///
            /// ```
            /// assert_eq!(safestep_core::Dtype::F8E4M3.name(), "F8_E4M3");
            /// ```
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name ),+ }
            }

            /// All names in order, each followed by a space: shorter than as many slices.
            const NAMES: &str = concat!($( $name, " " ),+);

            /// The size of one element, in bits.
            #[must_use]
            pub const fn bits(self) -> u32 {
                let bits: u8 = match self { $( Self::$variant => $bits ),+ };
                bits as u32
            }
        }
    };
}

dtypes! {
    /// A truth value in a byte: 0 or 1.
    Bool "BOOL" 8,
    /// OCP MX E2M1, two a byte, the low nibble first.
    F4 "F4" 4,
    /// OCP MX E2M3, four in three bytes, low bits first.
    F6E2M3 "F6_E2M3" 6,
    /// OCP MX E3M2, four in three bytes, low bits first.
    F6E3M2 "F6_E3M2" 6,
    /// Unsigned byte.
    U8 "U8" 8,
    /// Signed byte.
    I8 "I8" 8,
    /// IEEE-like 8-bit float with infinities.
    F8E5M2 "F8_E5M2" 8,
    /// The finite 8-bit float ("fn"): largest 448, no infinity.
    F8E4M3 "F8_E4M3" 8,
    /// A power-of-two scale, 2^(code - 127).
    F8E8M0 "F8_E8M0" 8,
    /// E4M3 with bias 8 and a single zero.
    F8E4M3Fnuz "F8_E4M3FNUZ" 8,
    /// E5M2 with bias 16 and a single zero.
    F8E5M2Fnuz "F8_E5M2FNUZ" 8,
    /// Signed 16-bit integer.
    I16 "I16" 16,
    /// Unsigned 16-bit integer.
    U16 "U16" 16,
    /// IEEE 754 half precision.
    F16 "F16" 16,
    /// The upper half of an F32.
    Bf16 "BF16" 16,
    /// Signed 32-bit integer.
    I32 "I32" 32,
    /// Unsigned 32-bit integer.
    U32 "U32" 32,
    /// IEEE 754 single precision.
    F32 "F32" 32,
    /// A complex number of two F32: real, imaginary.
    C64 "C64" 64,
    /// IEEE 754 double precision.
    F64 "F64" 64,
    /// Signed 64-bit integer.
    I64 "I64" 64,
    /// Unsigned 64-bit integer.
    U64 "U64" 64,
}

impl Dtype {
    /// The dtype of that name; case counts.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::from_json(JsonStr::scanned(name.as_bytes(), 0))
    }

    /// The dtype of the name that a header spells.
    pub(crate) fn from_json(name: JsonStr<'_>) -> Option<Self> {
        let mut names = Self::NAMES.as_bytes();
        Self::ALL.iter().copied().find(|_| {
            let end = names.iter().position(|&byte| byte == b' ').unwrap_or_default();
            let known = names.get(..end).unwrap_or_default();
            names = names.get(end.wrapping_add(1)..).unwrap_or_default();
            name.is(known)
        })
    }

    /// The size in bits of `elements` elements, or `None` beyond `u64::MAX`.
    #[must_use]
    pub fn total_bits(self, elements: u64) -> Option<u64> {
        let mut bits = elements;
        multiply(&mut bits, u64::from(self.bits()), 0).then_some(bits)
    }

    /// The alignment, in bytes, that typed access to the elements wants: the element's size, at least 1.
    #[must_use]
    pub const fn alignment_bytes(self) -> u32 {
        match self.bits() {
            64 => 8,
            32 => 4,
            16 => 2,
            _ => 1,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A set of dtypes, for a caller that can use only some.
///
/// ```
/// use safestep_core::{Dtype, DtypeSet};
/// let halves = DtypeSet::of(&[Dtype::F16, Dtype::Bf16]);
/// assert!(halves.contains(Dtype::F16) && !halves.contains(Dtype::F32));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DtypeSet(u32);

impl DtypeSet {
    /// Every dtype.
    pub const ALL: Self = Self((1 << 22) - 1);

    /// The dtypes in the list.
    #[must_use]
    pub const fn of(dtypes: &[Dtype]) -> Self {
        let mut set = 0;
        let mut rest = dtypes;
        while let [first, tail @ ..] = rest {
            set |= Self::bit(*first);
            rest = tail;
        }
        Self(set)
    }

    /// Whether the dtype is in the set.
    #[must_use]
    pub const fn contains(self, dtype: Dtype) -> bool {
        self.0 & Self::bit(dtype) != 0
    }

    const fn bit(dtype: Dtype) -> u32 {
        1_u32.wrapping_shl(dtype as u32)
    }
}

impl Default for DtypeSet {
    fn default() -> Self {
        Self::ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sizes_round_trip() {
        for (place, dtype) in Dtype::ALL.into_iter().enumerate() {
            assert_eq!(dtype as usize, place);
            assert_eq!(Dtype::from_name(dtype.name()), Some(dtype));
            assert!(DtypeSet::ALL.contains(dtype));
            for other in Dtype::ALL {
                assert_eq!(DtypeSet::of(&[dtype]).contains(other), dtype == other);
            }
        }
        assert!(Dtype::ALL.is_sorted_by_key(|dtype| dtype.alignment_bytes()));
    }

    #[test]
    fn other_names_are_unknown() {
        for name in ["", "f32", "F32 ", "F3", "F322", "BOOL\0", "F8_E4M3FN", "float32", "Bf16"] {
            assert_eq!(Dtype::from_name(name), None, "{name:?}");
        }
    }
}
