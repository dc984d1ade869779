//! An entry and the data become a view: the tensor's bytes, and its elements where alignment allows it.

use crate::dtype::Dtype;
use crate::tensor::entry::{Entry, Shape};
use zerocopy::{FromBytes, Immutable};

/// The bytes of a tensor with their meaning. Their number is that of shape x dtype.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a, 'h> {
    dtype: Dtype,
    shape: Shape<'h>,
    bytes: &'a [u8],
}

/// A Rust type whose memory is that of a dtype's elements on a little-endian machine.
///
/// Every bit pattern is a value of it, so a file cannot hold a wrong one.
pub trait Element: FromBytes + Immutable + Copy {
    /// The dtypes whose elements it can hold: the same size, the same meaning, or plain codes.
    const DTYPES: &'static [Dtype];
}

macro_rules! elements {
    ($($type:ty: $($dtype:ident)+;)+) => { $( impl Element for $type { const DTYPES: &'static [Dtype] = &[$(Dtype::$dtype),+]; } )+ };
}

// Formats without a Rust type of their own are lent as codes in the unsigned integer of their size.
elements! {
    u8: U8 Bool F8E5M2 F8E4M3 F8E8M0 F8E4M3Fnuz F8E5M2Fnuz;
    i8: I8;
    u16: U16 F16 Bf16;
    i16: I16;
    u32: U32;
    i32: I32;
    f32: F32;
    [f32; 2]: C64;
    u64: U64;
    i64: I64;
    f64: F64;
}

/// Why elements are not lent as a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewError {
    /// The type does not hold elements of this dtype.
    Dtype {
        /// The tensor's dtype.
        found: Dtype,
    },
    /// The bytes do not stand at a multiple of the element's size; [`TensorView::bytes`] is still there.
    Misaligned {
        /// The alignment that the type wants, in bytes.
        expected: usize,
    },
    /// The machine is big-endian and the elements are longer than a byte.
    Endian,
}

impl core::error::Error for ViewError {}

impl core::fmt::Display for ViewError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Dtype { found } => write!(f, "expected a type for {found}, found one for another dtype"),
            Self::Misaligned { expected } => {
                write!(f, "expected bytes at a multiple of {expected}, found them elsewhere")
            }
            Self::Endian => f.write_str("expected a little-endian machine for elements of several bytes"),
        }
    }
}

impl<'h> Entry<'h> {
    /// Its bytes in `data`, the bytes behind the header, or `None` if `data` does not hold them.
    #[must_use]
    pub fn view<'a>(&self, data: &'a [u8]) -> Option<TensorView<'a, 'h>> {
        Some(TensorView::proven(self.dtype, self.shape, self.span.of(data)?))
    }
}

impl<'a, 'h> TensorView<'a, 'h> {
    /// A view of bytes whose number the rules have proven.
    pub(crate) fn proven(dtype: Dtype, shape: Shape<'h>, bytes: &'a [u8]) -> Self {
        Self { dtype, shape, bytes }
    }

    /// What the elements are.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The dimensions, outermost first.
    #[must_use]
    pub fn shape(&self) -> Shape<'h> {
        self.shape
    }

    /// The bytes, little-endian, row-major, at any alignment.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The elements in place, without a copy.
    ///
    /// # Errors
    /// [`ViewError`] if `T` is no type for this dtype or the bytes are not aligned for it: nothing is converted.
    ///
    /// ```
    /// use safestep_core::{Frame, Limits};
    /// let file = b"\x40\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}           \x07\x09";
    /// let judged = Frame::read(file, 74, Limits::default())?.header(&file[8..72])?.judge()?;
    /// let view = judged.get("w").unwrap().view(&file[72..]).unwrap();
    /// assert_eq!(view.elements::<u8>(), Ok(&[7, 9][..]));
    /// assert!(view.elements::<i8>().is_err());
    /// # Ok::<(), safestep_core::Error>(())
    /// ```
    pub fn elements<T: Element>(&self) -> Result<&'a [T], ViewError> {
        if !T::DTYPES.contains(&self.dtype) {
            return Err(ViewError::Dtype { found: self.dtype });
        }
        // Nothing stands anywhere.
        if self.bytes.is_empty() {
            return Ok(&[]);
        }
        if cfg!(target_endian = "big") && size_of::<T>() > 1 {
            return Err(ViewError::Endian);
        }
        <[T]>::ref_from_bytes(self.bytes).map_err(|_| ViewError::Misaligned { expected: align_of::<T>() })
    }
}
