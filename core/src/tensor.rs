//! A frame becomes a header, its entries are judged by the rules, and the proven index gives views.

#[cfg(feature = "fast")]
mod chain;
pub(crate) mod entry;
pub(crate) mod frame;
pub(crate) mod header;
pub(crate) mod in_order;
pub(crate) mod index;
pub(crate) mod judge;
pub(crate) mod names;
pub(crate) mod sort;
#[cfg(feature = "fast")]
mod spelled;
pub(crate) mod view;
pub(crate) mod layout;
pub(crate) mod notes;
pub(crate) mod slice;
mod writer;
