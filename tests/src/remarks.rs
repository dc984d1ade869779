//! What a test has to tell becomes a line that is seen, also where a test that passes is to be silent.

use std::io::{self, Write as _};

/// Says something on standard error itself: what `println!` and `eprintln!` say is kept back.
pub fn remark(line: &str) {
    // A line at a time, so that lines of tests beside this one do not get into it. Where nobody reads nobody is told.
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Says that a test did not happen; where that must not be, fails.
///
/// # Panics
/// With `CI=true`.
pub fn skipped(why: &str) {
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "with CI=true nothing may be skipped: {why}"
    );
    remark(&format!("skipped: {why}"));
}
