//! The text of a `state.json` becomes the hash of the config under which it was made.
//!
//! State of a former policy must not return under another one, so nobody gets at a state without the question. The rest
//! of the object is the trainer's own; it is checked to be JSON, words of Python's included. No heap, no panic.

use crate::history::{LineError, LineErrorKind, members};
use crate::json::{JsonStr, Kind, Scan};

/// The member that names the config.
pub const CONFIG_KEY: &str = "config_sha256";

/// The config's sha256 that a state carries, in 64 lower-case hexadecimal digits.
///
/// ```
/// use safestep_core::state::config_of;
/// let state = br#"{"arms":[3,1],"config_sha256":"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"}"#;
/// assert!(config_of(state)?.starts_with("001122"));
/// # Ok::<(), safestep_core::history::LineError>(())
/// ```
///
/// # Errors
/// [`LineErrorKind::ConfigMissing`], [`LineErrorKind::Config`] if it stands twice or is something else; otherwise as
/// [`Line::parse`](crate::history::Line::parse) of what is no object.
pub fn config_of(text: &[u8]) -> Result<&str, LineError> {
    let mut scan = Scan::new(text, 0);
    let (mut found, mut fault) = (None, None);
    members(&mut scan, text, |scan, key_at| {
        if !scan.string.is(CONFIG_KEY.as_bytes()) {
            return scan.python_value();
        }
        let depth = scan.depth;
        let kind = scan.python_token();
        let value = sha256(scan.string).filter(|_| kind == Kind::String && found.is_none());
        scan.python_leave(depth);
        if value.is_none() {
            fault = fault.or(Some(LineError::new(LineErrorKind::Config, key_at)));
        }
        found = value;
    })?;
    match (fault, found) {
        (Some(fault), _) => Err(fault),
        (None, Some(config)) => Ok(config),
        (None, None) => Err(LineError::new(LineErrorKind::ConfigMissing, 0)),
    }
}

/// The digits, if they are as a hash is spelled.
fn sha256(text: JsonStr<'_>) -> Option<&str> {
    text.as_plain().filter(|digits| is_sha256(digits))
}

/// Whether it is 64 lower-case hexadecimal digits.
#[must_use]
pub fn is_sha256(digits: &str) -> bool {
    digits.len() == 64 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}
