//! A format and a size become aligned slices of values and codes, and a copy of as many bytes.

use std::hint::black_box;
use std::ops::{Deref, DerefMut};

use safestep::safestep_core::Dtype;
use safestep::safestep_core::numbers::{OutOfRange, encode_f32};

/// A slice that begins at a multiple of 64 bytes.
pub(crate) struct Aligned<T> {
    room: Vec<T>,
    begin: usize,
    len: usize,
}

impl<T: Clone + Default> Aligned<T> {
    pub(crate) fn new(len: usize) -> Self {
        let mut room = Vec::with_capacity(len + 64);
        // Written, one by one: pages that were never written to may all be the one page of zeros.
        room.resize_with(len + 64, || black_box(T::default()));
        let begin = room.as_ptr().align_offset(64);
        Self { room, begin, len }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.room[self.begin..][..self.len]
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.room[self.begin..][..self.len]
    }
}

/// What one row converts.
pub(crate) struct Buffers {
    pub(crate) values: Aligned<f32>,
    pub(crate) decoded: Aligned<f32>,
    pub(crate) codes: Aligned<u8>,
    pub(crate) encoded: Aligned<u8>,
    pub(crate) saturated: Aligned<u8>,
    /// What memcpy reads and writes: together as many bytes as a conversion reads and writes.
    pub(crate) copied: [Aligned<u8>; 2],
}

impl Buffers {
    /// Values as weights have them, in so many bytes of f32, and their codes.
    pub(crate) fn new(dtype: Dtype, value_bytes: usize) -> Self {
        let elements = value_bytes / 4;
        let code_bytes = elements * dtype.bits() as usize / 8;
        // A linear congruence; its upper bits are random enough.
        let mut state = 3_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as f32 / 16_777_216.0 - 0.5
        };
        let mut values = Aligned::new(elements);
        for value in values.iter_mut() {
            // A sum of uniform ones, near to a normal distribution; a scale has no sign.
            let normal = (0..4).map(|_| uniform()).sum::<f32>();
            *value = if dtype == Dtype::F8E8M0 { normal.abs() + 1e-3 } else { normal };
        }
        let mut codes = Aligned::new(code_bytes);
        encode_f32(&values, dtype, &mut codes, OutOfRange::Refuse).expect("values in range");
        let copied = [(); 2].map(|()| Aligned::new((value_bytes + code_bytes) / 2));
        let [encoded, saturated] = [(); 2].map(|()| Aligned::new(code_bytes));
        Self { values, decoded: Aligned::new(elements), codes, encoded, saturated, copied }
    }
}
