//! What an optimizer holds beside its arrays becomes a verdict: JSON text, or the place where it stops being that.
//!
//! What the text says is between those who write optimizers and those who read them.

use crate::checkpoint::document::Document;
use crate::checkpoint::error::DocumentError;

/// The text of an optimizer that holds nothing beside its arrays.
pub const OPTIMIZER_STATE_NONE: &str = "{}";

/// Checks that a text is one JSON value.
///
/// ```
/// use safestep_core::checkpoint::{OPTIMIZER_STATE_NONE, check_optimizer_state};
/// check_optimizer_state(br#"{"betas":[0.9,0.999],"step":50}"#)?;
/// check_optimizer_state(OPTIMIZER_STATE_NONE.as_bytes())?;
/// let error = check_optimizer_state(b"{step:50}").unwrap_err();
/// assert_eq!(error.to_string(), "at byte 1: expected a key or '}', found 's'");
/// # Ok::<(), safestep_core::checkpoint::DocumentError>(())
/// ```
///
/// # Errors
/// The first thing that is wrong, and where.
pub fn check_optimizer_state(text: &[u8]) -> Result<(), DocumentError> {
    Document::check(text)
}
