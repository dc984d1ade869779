//! Shards of tokens once more, naively: the second opinion on headers, windows and cursors, and the oracles over both.
//!
//! [`twin`] has lists and large integers where the core has arithmetic; [`text`] reads cursors with `serde_json`. What is held against
//! them is in [`oracle`], over [`case`]s that any bytes stand for.

pub mod case;
pub mod oracle;
pub mod text;
pub mod twin;
