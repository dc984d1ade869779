//! Places and lengths in a file: different types, 64 bits wide on every target, checked arithmetic only.

use core::fmt;

/// A place, in bytes from the start of whatever is measured (the file, unless the item says otherwise).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(u64);

/// A length in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteLen(u64);

/// The bytes from `begin` up to, not including, `end`; `begin <= end` always holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    begin: Offset,
    end: Offset,
}

impl Offset {
    /// The place `bytes` from the start.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes before this place.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The place `len` further on, or `None` beyond `u64::MAX`.
    #[must_use]
    pub const fn checked_add(self, len: ByteLen) -> Option<Self> {
        match self.0.checked_add(len.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }
}

impl ByteLen {
    /// A length of `bytes` bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl Span {
    /// The bytes from `begin` up to `end`, or `None` if they stand the wrong way round.
    #[must_use]
    pub const fn new(begin: u64, end: u64) -> Option<Self> {
        if begin <= end { Some(Self { begin: Offset(begin), end: Offset(end) }) } else { None }
    }

    /// `len` bytes from `begin` on, or `None` beyond `u64::MAX`.
    #[must_use]
    pub const fn at(begin: Offset, len: ByteLen) -> Option<Self> {
        match begin.checked_add(len) {
            Some(end) => Some(Self { begin, end }),
            None => None,
        }
    }

    /// The first byte.
    #[must_use]
    pub const fn begin(self) -> Offset {
        self.begin
    }

    /// The first byte that no longer belongs to it.
    #[must_use]
    pub const fn end(self) -> Offset {
        self.end
    }

    /// The bytes of a tensor, whose begin is not behind its end by the rules.
    pub(crate) const fn proven(begin: u64, end: u64) -> Self {
        Self { begin: Offset(begin), end: Offset(end) }
    }

    /// How many bytes.
    #[must_use]
    pub const fn len(self) -> ByteLen {
        ByteLen(self.end.0.wrapping_sub(self.begin.0))
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.end.0 == self.begin.0
    }

    /// These bytes of `whole`, or `None` if it does not reach that far (or the machine cannot address it).
    #[must_use]
    pub fn of(self, whole: &[u8]) -> Option<&[u8]> {
        let begin = usize::try_from(self.begin.0).ok()?;
        let end = usize::try_from(self.end.0).ok()?;
        whole.get(begin..end)
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ByteLen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A place inside a header; headers are shorter than `u32::MAX` by [`limits`](crate::limits).
pub(crate) fn narrow(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// The same place as an index.
pub(crate) fn widen(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

/// A count of things in memory, as the `u64` that interfaces speak.
pub(crate) fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// Multiplies a count in place and adds to it; `false`, and no change, if 64 bits do not hold what comes out.
#[inline]
pub(crate) fn multiply(value: &mut u64, factor: u64, addend: u8) -> bool {
    let result = if cfg!(feature = "fast") {
        value.checked_mul(factor).and_then(|product| product.checked_add(u64::from(addend)))
    } else {
        multiply_by_doubling(*value, factor, addend)
    };
    if let Some(result) = result {
        *value = result;
    }
    result.is_some()
}

/// The same for machines that do not multiply 64 bits, in a fifth of the code that the compiler makes of it.
fn multiply_by_doubling(mut value: u64, mut factor: u64, addend: u8) -> Option<u64> {
    let mut sum = u64::from(addend);
    loop {
        if factor & 1 == 1 {
            sum = sum.checked_add(value)?;
        }
        factor >>= 1;
        if factor == 0 {
            return Some(sum);
        }
        value = value.checked_add(value)?;
    }
}

/// The lower half of 64 bits.
#[cfg(feature = "fast")]
#[inline(always)]
pub(crate) fn low_half(wide: u64) -> u32 {
    let [a, b, c, d, ..] = wide.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// The upper half of 64 bits.
#[cfg(feature = "fast")]
#[inline(always)]
pub(crate) fn high_half(wide: u64) -> u32 {
    let [.., a, b, c, d] = wide.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::string::ToString;

    #[test]
    fn spans_end_where_64_bits_do() {
        // A begin, a length, and the end if there is one.
        const CASES: [(u64, u64, Option<u64>); 6] = [
            (0, 0, Some(0)),
            (3, 0, Some(3)),
            (3, 4, Some(7)),
            (u64::MAX, 0, Some(u64::MAX)),
            (u64::MAX - 1, 1, Some(u64::MAX)),
            (u64::MAX, 1, None),
        ];
        for (begin, len, end) in CASES {
            let told = (begin.to_string(), len.to_string());
            let (offset, len) = (Offset::new(begin), ByteLen::new(len));
            assert_eq!((offset.to_string(), len.to_string()), told);
            assert_eq!(offset.checked_add(len), end.map(Offset::new));
            let span = Span::at(offset, len);
            assert_eq!(span, end.and_then(|end| Span::new(begin, end)));
            assert_eq!(span.map(Span::begin), end.map(|_| offset));
            assert_eq!(span.map(Span::end), end.map(Offset::new));
            assert_eq!(span.map(Span::len), end.map(|_| len));
            assert_eq!(span.map(Span::is_empty), end.map(|_| len.value() == 0));
        }
        assert_eq!(Span::new(4, 3), None);
    }

    #[test]
    fn doubling_multiplies() {
        const FACTORS: [u64; 12] =
            [0, 1, 2, 3, 10, 64, 0xFFFF_FFFF, 1 << 32, (1 << 32) + 1, 1 << 63, u64::MAX / 3, u64::MAX];
        for value in FACTORS {
            for factor in FACTORS {
                for addend in [0, 1, 9] {
                    let expected =
                        value.checked_mul(factor).and_then(|product| product.checked_add(addend.into()));
                    let found = multiply_by_doubling(value, factor, addend);
                    assert_eq!(found, expected, "{value} x {factor} + {addend}");
                }
            }
        }
    }
}
