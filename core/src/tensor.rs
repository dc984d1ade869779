//! A frame becomes a header, its entries are judged by the rules, and the proven index gives views; tensors become a
//! layout and the bytes of a header.
//!
//! In the order of the data: each module uses only those before it.

pub(crate) mod frame;
pub(crate) mod verdict;
pub(crate) mod entry;
pub(crate) mod slot;
pub(crate) mod judge;
#[cfg(feature = "fast")]
pub(crate) mod fingerprint;
pub(crate) mod sort;
#[cfg(feature = "fast")]
pub(crate) mod table;
pub(crate) mod pairs;
pub(crate) mod names;
#[cfg(feature = "fast")]
pub(crate) mod chain;
#[cfg(feature = "fast")]
pub(crate) mod spelled;
#[cfg(feature = "fast")]
pub(crate) mod pattern;
pub(crate) mod header;
pub(crate) mod index;
pub(crate) mod in_order;
pub(crate) mod notes;
pub(crate) mod view;
mod values;
pub(crate) mod slice;
pub(crate) mod layout;
pub(crate) mod writer;
