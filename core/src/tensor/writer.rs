//! A layout becomes the bytes of a header: compact JSON in the reference writer's spelling, padded to a multiple of 8.

use crate::span::{ByteLen, count};
use crate::tensor::layout::{Layout, TensorSpec};
use core::convert::Infallible;

impl Layout<'_, '_> {
    /// Hands the file's first 8 + N bytes over in pieces: the length, the JSON, the padding.
    ///
    /// # Errors
    /// The first error of `sink`, which then gets nothing more.
    pub fn write_header<E>(&self, mut sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        sink(&self.header_len().value().to_le_bytes())?;
        self.write_json(&mut sink)?;
        let padding = self.header_len().value().wrapping_sub(self.json_len());
        (0..padding & 7).try_for_each(|_| sink(b" "))
    }

    /// The file's first 8 + N bytes, in memory that is lent.
    ///
    /// # Errors
    /// The length needed, if `out` is shorter.
    pub fn encode<'o>(&self, out: &'o mut [u8]) -> Result<&'o [u8], ByteLen> {
        let needed = self.header_len().value().saturating_add(8);
        let Some(out) = usize::try_from(needed).ok().and_then(|needed| out.get_mut(..needed)) else {
            return Err(ByteLen::new(needed));
        };
        let mut rest = &mut *out;
        self.write_header(|piece| {
            // The pieces are as long together as `needed` says, so nothing is cut off.
            let taken = core::mem::take(&mut rest);
            let (to, tail) = taken.split_at_mut_checked(piece.len()).ok_or(ByteLen::new(needed))?;
            to.iter_mut().zip(piece).for_each(|(to, from)| *to = *from);
            rest = tail;
            Ok(())
        })?;
        Ok(out)
    }

    /// The length of the JSON alone.
    pub(crate) fn count_json(&self) -> u64 {
        let mut total = 0_u64;
        let counted: Result<(), Infallible> = self.write_json(&mut |piece: &[u8]| {
            total = total.saturating_add(count(piece.len()));
            Ok(())
        });
        match counted {
            Ok(()) => total,
        }
    }

    fn write_json<E>(&self, sink: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        sink(b"{")?;
        let mut separator: &[u8] = b"";
        if let Some(pairs) = self.metadata() {
            sink(b"\"__metadata__\":{")?;
            for (key, value) in pairs {
                sink(separator)?;
                separator = b",";
                string(key, sink)?;
                sink(b":")?;
                string(value, sink)?;
            }
            sink(b"}")?;
            separator = b",";
        }
        for tensor in self.tensors() {
            sink(separator)?;
            separator = b",";
            entry(tensor, sink)?;
        }
        sink(b"}")
    }
}

fn entry<E>(tensor: &TensorSpec<'_>, sink: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    string(tensor.name(), sink)?;
    sink(b":{\"dtype\":\"")?;
    sink(tensor.dtype().name().as_bytes())?;
    sink(b"\",\"shape\":[")?;
    let mut separator: &[u8] = b"";
    for &dim in tensor.shape() {
        sink(separator)?;
        separator = b",";
        integer(dim, sink)?;
    }
    sink(b"],\"data_offsets\":[")?;
    integer(tensor.span().begin().value(), sink)?;
    sink(b",")?;
    integer(tensor.span().end().value(), sink)?;
    sink(b"]}")
}

/// W3: escaped are only the quote, the backslash and bytes below 0x20.
pub(crate) fn string<E>(text: &str, sink: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    sink(b"\"")?;
    let mut rest = text.as_bytes();
    while let Some(place) = rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20) {
        let Some((plain, tail)) = rest.split_at_checked(place) else { break };
        sink(plain)?;
        let Some((&byte, tail)) = tail.split_first() else { break };
        rest = tail;
        match byte {
            b'"' => sink(b"\\\"")?,
            b'\\' => sink(b"\\\\")?,
            0x08 => sink(b"\\b")?,
            b'\t' => sink(b"\\t")?,
            b'\n' => sink(b"\\n")?,
            0x0C => sink(b"\\f")?,
            b'\r' => sink(b"\\r")?,
            _ => sink(&[b'\\', b'u', b'0', b'0', hex(byte >> 4), hex(byte)])?,
        }
    }
    sink(rest)?;
    sink(b"\"")
}

#[expect(clippy::indexing_slicing, reason = "a nibble is always a place of 16")]
pub(crate) fn hex(nibble: u8) -> u8 {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    DIGITS[usize::from(nibble & 15)]
}

/// A number in decimal.
pub(crate) fn integer<E>(value: u64, sink: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    let mut digits = [b'0'; 20];
    let mut rest = value;
    let mut used = 0_usize;
    for digit in digits.iter_mut().rev() {
        let [units, ..] = (rest % 10).to_le_bytes();
        *digit = b'0' | units;
        rest /= 10;
        used = used.wrapping_add(1);
        if rest == 0 {
            break;
        }
    }
    sink(digits.get(digits.len().wrapping_sub(used)..).unwrap_or_default())
}
