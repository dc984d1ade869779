//! Numbers and names become words.

use std::fmt::Display;

use safestep::{ends, terminal_safe};
use safestep_core::{Note, NoteKind, Shape};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// A number of bytes as people say it, in decimal units: `90.9 MB`.
pub(crate) fn bytes(count: u64) -> String {
    scaled(count, [" B", " kB", " MB", " GB", " TB", " PB", " EB"])
}

/// A large number as people say it: `22.7 million`.
pub(crate) fn about(count: u64) -> String {
    let names = ["", " thousand", " million", " billion", " trillion", " quadrillion", " quintillion"];
    scaled(count, names)
}

/// Three digits and the unit; below the first step the number itself.
fn scaled(count: u64, units: [&str; 7]) -> String {
    // Exact up to 2^53, and four digits are shown.
    let (mut value, mut units) = (count as f64, units.into_iter());
    let mut unit = units.next().unwrap_or_default();
    if count < 1000 {
        return format!("{count}{unit}");
    }
    while value >= 999.95
        && let Some(larger) = units.next()
    {
        value /= 1000.0;
        unit = larger;
    }
    format!("{value:.1}{unit}")
}

/// A number with its digits in groups: `22,713,728`.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 tensor`, `2 tensors`.
pub(crate) fn plural(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// Text from a file as a person gets it: safe for a terminal, and without its middle if it is longer than any honest
/// name. Otherwise one hostile name would bury everything else.
pub(crate) fn shown(text: &impl Display) -> String {
    // Characters that take no column are not endless either.
    shortened(&terminal_safe(&ends(text, 4 * LONGEST)).to_string(), LONGEST)
}

/// A shape, of which a hostile one has millions of dimensions.
pub(super) fn shape(shape: &Shape<'_>) -> String {
    ends(shape, LONGEST_SHAPE)
}

/// A note in words, with its first place.
pub(super) fn note(note: &Note<'_>) -> String {
    let place = match (note.kind, &note.name) {
        (NoteKind::HeaderLength, _) => String::new(),
        (_, None) => format!(" (byte {})", note.at),
        (_, Some(name)) if note.count == 1 => format!(" (\"{}\", byte {})", shown(name), note.at),
        (_, Some(name)) => format!(" (first \"{}\", byte {})", shown(name), note.at),
    };
    format!("{note}{place}")
}

/// The text, or its two ends with an ellipsis between them, in at most that many columns.
pub(super) fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_string();
    }
    let room = width.saturating_sub(1);
    let head = fitting(text.chars(), room / 2);
    let tail: Vec<char> = fitting(text.chars().rev(), room - room / 2);
    head.into_iter().chain(['…']).chain(tail.into_iter().rev()).collect()
}

/// The first characters that fit in that many columns.
fn fitting(chars: impl Iterator<Item = char>, width: usize) -> Vec<char> {
    let mut left = width;
    let fits = |char: &char| match left.checked_sub(char.width().unwrap_or_default()) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    chars.take_while(fits).collect()
}

/// Names of 150 characters exist.
const LONGEST: usize = 256;

/// Enough for rank 8 and large dimensions.
const LONGEST_SHAPE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let table: &[(u64, &str, &str, &str)] = &[
            (0, "0 B", "0", "0"),
            (999, "999 B", "999", "999"),
            (1000, "1.0 kB", "1,000", "1.0 thousand"),
            (11_416, "11.4 kB", "11,416", "11.4 thousand"),
            (999_949, "999.9 kB", "999,949", "999.9 thousand"),
            (999_950, "1.0 MB", "999,950", "1.0 million"),
            (90_868_376, "90.9 MB", "90,868,376", "90.9 million"),
            (100_000_000_000, "100.0 GB", "100,000,000,000", "100.0 billion"),
            (u64::MAX, "18.4 EB", "18,446,744,073,709,551,615", "18.4 quintillion"),
        ];
        for &(count, in_bytes, in_groups, in_words) in table {
            assert_eq!(
                (bytes(count), grouped(count), about(count)),
                (in_bytes.into(), in_groups.into(), in_words.into())
            );
        }
    }

    #[test]
    fn a_name_keeps_its_ends() {
        let table = [
            ("abcdefgh", 8, "abcdefgh"),
            ("abcdefgh", 7, "abc…fgh"),
            ("abcdefgh", 4, "a…gh"),
            ("abcdefgh", 1, "…"),
            ("模型模型", 7, "模…型"),
            ("a\u{301}bc\u{301}defg", 5, "a\u{301}b…fg"),
        ];
        for (text, width, short) in table {
            assert_eq!(shortened(text, width), short, "{text} in {width}");
        }
    }
}
