//! The memory that a caller lends for one tensor.

use crate::dtype::Dtype;
use crate::json::JsonStr;
use crate::span::{narrow, widen};

/// Memory for one tensor of an [`Index`](crate::Index): 48 bytes, of which the caller need not know more.
///
/// ```
/// assert!(size_of::<safestep_core::Slot>() <= 48);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Links of the tables of begins and of names, or a key to sort by. With the feature `fast` only, and zero in between.
    pub(crate) key: u64,
    /// The first byte of the name, behind its quote.
    pub(crate) name_at: u32,
    pub(crate) name_len: u32,
    pub(crate) shape_at: u32,
    /// While sorting: the number of a slot. Afterwards: a fingerprint, or the slot that is this one in name order.
    pub(crate) link: u32,
    /// The number of the slot that follows in data order. Before that, a link of the table of begins.
    pub(crate) order: u32,
    pub(crate) dtype: Dtype,
    pub(crate) escaped: bool,
}

impl Slot {
    /// A slot that holds nothing yet.
    pub const EMPTY: Self = Self {
        begin: 0,
        end: 0,
        key: 0,
        name_at: 0,
        name_len: 0,
        shape_at: 0,
        link: 0,
        order: 0,
        dtype: Dtype::Bool,
        escaped: false,
    };

    /// Puts a key there, which is in no table yet.
    #[inline]
    pub(crate) fn put_key(&mut self, key: JsonStr<'_>, key_at: u32) {
        self.name_at = key_at.wrapping_add(1);
        self.name_len = narrow(key.as_spelled().len());
        self.escaped = key.is_escaped();
        if cfg!(feature = "fast") {
            self.key = 0;
        }
    }

    #[cfg_attr(feature = "fast", inline)]
    #[cfg_attr(not(feature = "fast"), inline(never))]
    pub(crate) fn name<'h>(&self, text: &'h [u8]) -> JsonStr<'h> {
        let begin = widen(self.name_at);
        let end = begin.wrapping_add(widen(self.name_len));
        JsonStr::scanned(text.get(begin..end).unwrap_or_default(), u32::from(self.escaped))
    }

    pub(crate) fn name_span(&self) -> (u32, u32) {
        (self.name_at, self.name_at.wrapping_add(self.name_len))
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// Slots of keys alone, for those who test what is done with names.
#[cfg(all(test, feature = "fast"))]
pub(crate) mod tests {
    use super::*;
    extern crate std;
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    /// A text of quoted strings, and the places of the names in it.
    pub(crate) fn slots_of(names: &[&str]) -> (String, Vec<Slot>) {
        let (mut text, mut slots) = (String::new(), Vec::new());
        for name in names {
            let mut slot = Slot::EMPTY;
            slot.put_key(JsonStr::new(name.as_bytes()), narrow(text.len()));
            text.push_str(&format!("\"{name}\""));
            slots.push(slot);
        }
        (text, slots)
    }
}
