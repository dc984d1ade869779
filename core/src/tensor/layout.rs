//! Names, dtypes and shapes become a layout: the writer's order, offsets, and the header's length, before a byte is written.
//!
//! W1 orders, W5 refuses. Memory is lent: the specs are put in order where they are.

use crate::dtype::Dtype;
use crate::heap;
use crate::limits::HEADER_BYTES_MAX;
use crate::span::{ByteLen, Span};
use core::cmp::Ordering;
use core::fmt;

/// A tensor to be written: what it is called and what it is; its place comes from [`Layout::plan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorSpec<'a> {
    pub(crate) name: &'a str,
    pub(crate) dtype: Dtype,
    pub(crate) shape: &'a [u64],
    pub(crate) span: Span,
    pub(crate) place: usize,
}

impl<'a> TensorSpec<'a> {
    /// A tensor of that name, dtype and shape (outermost dimension first).
    #[must_use]
    pub fn new(name: &'a str, dtype: Dtype, shape: &'a [u64]) -> Self {
        Self { name, dtype, shape, span: Span::default(), place: 0 }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// What the elements are.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The dimensions, outermost first.
    #[must_use]
    pub fn shape(&self) -> &'a [u64] {
        self.shape
    }

    /// Its bytes in the data, once it is planned; empty before.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }

    /// Its place among the specs as the caller listed them, once it is planned; 0 before.
    #[must_use]
    pub fn place(&self) -> usize {
        self.place
    }
}

/// Why tensors are not written (rule W5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutError<'a> {
    /// Two tensors of one name.
    NameTwice {
        /// The name.
        name: &'a str,
    },
    /// The name `__metadata__`, which means something else.
    NameReserved,
    /// Two metadata keys that are equal.
    KeyTwice {
        /// The key.
        key: &'a str,
    },
    /// Elements that do not fill whole bytes.
    Bits {
        /// The tensor's name.
        name: &'a str,
        /// The total, in bits.
        found: u64,
    },
    /// A size that 64 bits cannot count.
    Overflow {
        /// The tensor's name.
        name: &'a str,
    },
    /// A header longer than readers accept.
    HeaderTooLong {
        /// Its length in bytes.
        found: u64,
    },
}

impl core::error::Error for LayoutError<'_> {}

impl fmt::Display for LayoutError<'_> {
    /// Names are given as they are; who prints to a terminal makes them safe for it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTwice { name } => write!(f, "W5: expected each name once, found {name:?} twice"),
            Self::NameReserved => f.write_str("W5: expected the name of a tensor, found __metadata__"),
            Self::KeyTwice { key } => write!(f, "W5: expected each metadata key once, found {key:?} twice"),
            Self::Bits { name, found } => {
                write!(f, "W5: expected a whole number of bytes for {name:?}, found {found} bits")
            }
            Self::Overflow { name } => {
                write!(f, "W5: expected a size that 64 bits can count, found {name:?} beyond")
            }
            Self::HeaderTooLong { found } => {
                write!(f, "W5: expected a header of at most {HEADER_BYTES_MAX} bytes, found {found}")
            }
        }
    }
}

/// Tensors in the writer's order, each with its place, and the metadata in order.
///
/// ```
/// use safestep_core::{Dtype, Layout, TensorSpec};
/// let mut specs = [TensorSpec::new("b", Dtype::U8, &[3]), TensorSpec::new("a", Dtype::F32, &[2])];
/// let layout = Layout::plan(&mut specs, None)?;
/// assert_eq!(layout.tensors()[0].name(), "a");
/// assert_eq!(layout.tensors()[1].span().begin().value(), 8);
///
/// let mut header = [0; 256];
/// let header = layout.encode(&mut header).unwrap();
/// assert_eq!(header.len() as u64, 8 + layout.header_len().value());
/// assert!(header[8..].starts_with(br#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b""#));
/// # Ok::<(), safestep_core::LayoutError<'_>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Layout<'t, 'a> {
    tensors: &'t [TensorSpec<'a>],
    metadata: Option<&'t [(&'a str, &'a str)]>,
    json_bytes: u64,
    data_bytes: u64,
}

impl<'t, 'a> Layout<'t, 'a> {
    /// Puts tensors and metadata in the writer's order and gives each tensor its place.
    ///
    /// `metadata` of `Some` with no pairs is written as `{}`; `None` is not written at all.
    ///
    /// # Errors
    /// [`LayoutError`]: what rule W5 refuses.
    pub fn plan(
        tensors: &'t mut [TensorSpec<'a>],
        metadata: Option<&'t mut [(&'a str, &'a str)]>,
    ) -> Result<Self, LayoutError<'a>> {
        let mut place = 0_usize;
        for tensor in &mut *tensors {
            tensor.place = place;
            place = place.wrapping_add(1);
        }
        sort(tensors, |one, other| one.name.cmp(other.name));
        for pair in tensors.windows(2) {
            if let [one, other] = pair
                && one.name == other.name
            {
                return Err(LayoutError::NameTwice { name: one.name });
            }
        }
        // The reference library sorts by dtype from the last row of its table to the first, then by name (W1).
        sort(tensors, |one, other| other.dtype.cmp(&one.dtype).then_with(|| one.name.cmp(other.name)));
        let mut data_bytes = 0_u64;
        for tensor in &mut *tensors {
            let name = tensor.name;
            if name == "__metadata__" {
                return Err(LayoutError::NameReserved);
            }
            let elements = tensor.shape.iter().try_fold(1, |product: u64, &dim| product.checked_mul(dim));
            let Some(bits) = elements.and_then(|elements| tensor.dtype.total_bits(elements)) else {
                return Err(LayoutError::Overflow { name });
            };
            if bits & 7 != 0 {
                return Err(LayoutError::Bits { name, found: bits });
            }
            let end = data_bytes.checked_add(bits >> 3).ok_or(LayoutError::Overflow { name })?;
            tensor.span = Span::new(data_bytes, end).unwrap_or_default();
            data_bytes = end;
        }
        let metadata = match metadata {
            Some(pairs) => Some(order_metadata(pairs)?),
            None => None,
        };
        let mut layout = Self { tensors, metadata, json_bytes: 0, data_bytes };
        layout.json_bytes = layout.count_json();
        let found = layout.header_len().value();
        if found > HEADER_BYTES_MAX {
            return Err(LayoutError::HeaderTooLong { found });
        }
        if layout.checked_file_len().is_none() {
            return Err(LayoutError::Overflow { name: layout.tensors.last().map_or("", |last| last.name) });
        }
        Ok(layout)
    }

    /// The tensors in the order of their data.
    #[must_use]
    pub fn tensors(&self) -> &'t [TensorSpec<'a>] {
        self.tensors
    }

    /// The metadata, its keys in order.
    #[must_use]
    pub fn metadata(&self) -> Option<&'t [(&'a str, &'a str)]> {
        self.metadata
    }

    /// N: the header with its padding, without the eight bytes before it. Always a multiple of 8 (W4).
    #[must_use]
    pub fn header_len(&self) -> ByteLen {
        ByteLen::new(self.json_bytes.saturating_add(7) & !7)
    }

    /// The bytes of all tensors.
    #[must_use]
    pub fn data_len(&self) -> ByteLen {
        ByteLen::new(self.data_bytes)
    }

    /// The whole file.
    #[must_use]
    pub fn file_len(&self) -> ByteLen {
        ByteLen::new(self.checked_file_len().unwrap_or(u64::MAX))
    }

    fn checked_file_len(&self) -> Option<u64> {
        self.data_bytes.checked_add(self.header_len().value())?.checked_add(8)
    }

    /// The header without its padding, in bytes.
    pub(crate) fn json_len(&self) -> u64 {
        self.json_bytes
    }
}

fn order_metadata<'t, 'a>(
    pairs: &'t mut [(&'a str, &'a str)],
) -> Result<&'t [(&'a str, &'a str)], LayoutError<'a>> {
    sort(pairs, |one, other| one.0.cmp(other.0));
    for pair in pairs.windows(2) {
        if let [(one, _), (other, _)] = pair
            && one == other
        {
            return Err(LayoutError::KeyTwice { key: one });
        }
    }
    Ok(pairs)
}

/// Sorts in place; what is in order already costs n comparisons.
fn sort<T: Copy>(items: &mut [T], order: impl Fn(&T, &T) -> Ordering) {
    if items.is_sorted_by(|one, other| order(one, other).is_le()) {
        return;
    }
    let len = items.len();
    let before = |items: &[T], one: usize, other: usize| match (items.get(one), items.get(other)) {
        (Some(one), Some(other)) => order(one, other).is_lt(),
        _ => false,
    };
    heap::sort(items, len, before, swap);
}

fn swap<T: Copy>(items: &mut [T], one: usize, other: usize) {
    let (Some(&first), Some(&second)) = (items.get(one), items.get(other)) else { return };
    if let Some(place) = items.get_mut(one) {
        *place = second;
    }
    if let Some(place) = items.get_mut(other) {
        *place = first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::string::ToString;

    /// What stands around a name in the header of one tensor without dimensions.
    const AROUND: &str = r#"{"":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}"#;

    #[test]
    fn a_header_may_be_as_long_as_readers_accept() {
        let longest = usize::try_from(HEADER_BYTES_MAX).unwrap();
        let name = "n".repeat(longest + 1 - AROUND.len());
        let plan = |name: &str| {
            let mut specs = [TensorSpec::new(name, Dtype::U8, &[])];
            Layout::plan(&mut specs, None)
                .map(|layout| layout.header_len().value())
                .map_err(|error| error.to_string())
        };
        assert_eq!(plan(&name[1..]), Ok(HEADER_BYTES_MAX));
        let refused = "W5: expected a header of at most 100000000 bytes, found 100000008";
        assert_eq!(plan(&name), Err(refused.to_string()));
    }

    #[test]
    fn refusals_say_what_was_expected_and_found() {
        let name = "a\n";
        let cases = [
            (LayoutError::NameTwice { name }, r#"each name once, found "a\n" twice"#),
            (LayoutError::NameReserved, "the name of a tensor, found __metadata__"),
            (LayoutError::KeyTwice { key: name }, r#"each metadata key once, found "a\n" twice"#),
            (LayoutError::Bits { name, found: 12 }, r#"a whole number of bytes for "a\n", found 12 bits"#),
            (LayoutError::Overflow { name }, r#"a size that 64 bits can count, found "a\n" beyond"#),
            (
                LayoutError::HeaderTooLong { found: 100_000_008 },
                "a header of at most 100000000 bytes, found 100000008",
            ),
        ];
        for (error, words) in cases {
            assert_eq!(error.to_string().strip_prefix("W5: expected "), Some(words));
        }
    }
}
