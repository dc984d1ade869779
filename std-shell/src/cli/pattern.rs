//! The text of a pattern becomes what tells which names match it.

use globset::{GlobBuilder, GlobMatcher};

/// A pattern in which `*` stands for any characters, also for dots and slashes.
pub(super) fn parse(text: &str) -> Result<GlobMatcher, String> {
    GlobBuilder::new(text)
        .backslash_escape(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| error.kind().to_string())
}
