//! A view becomes numbers, without a wish about its dtype.

use crate::numbers::{self, Number, NumbersError};
use crate::tensor::view::TensorView;

impl TensorView<'_, '_> {
    /// Element `index` in row-major order, as a number; `None` if there are not so many.
    ///
    /// ```
    /// use safestep_core::{Frame, Limits, numbers::Number};
    /// let file = b"\x40\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]}}           \x72";
    /// let judged = Frame::read(file, 73, Limits::default())?.header(&file[8..72])?.judge()?;
    /// let view = judged.get("w").unwrap().view(&file[72..]).unwrap();
    /// assert_eq!([view.number(0), view.number(1), view.number(2)], [Some(Number::F32(1.0)), Some(Number::F32(6.0)), None]);
    /// # Ok::<(), safestep_core::Error>(())
    /// ```
    #[must_use]
    pub fn number(&self, index: u64) -> Option<Number> {
        numbers::number(self.dtype(), self.bytes(), index)
    }

    /// All elements as f32, if that is exact: see [`numbers::decode_f32`].
    ///
    /// # Errors
    /// [`NumbersError`] if `values` are not as many as the elements, or the dtype or an element does not fit f32.
    pub fn decode_f32(&self, values: &mut [f32]) -> Result<(), NumbersError> {
        numbers::decode_f32(self.dtype(), self.bytes(), values)
    }

    /// All elements as f64, if that is exact: see [`numbers::decode_f64`].
    ///
    /// # Errors
    /// [`NumbersError`] if `values` are not as many as the elements, or the dtype or an element does not fit f64.
    pub fn decode_f64(&self, values: &mut [f64]) -> Result<(), NumbersError> {
        numbers::decode_f64(self.dtype(), self.bytes(), values)
    }
}
