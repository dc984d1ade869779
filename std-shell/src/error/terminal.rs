//! Text from strangers becomes text that a terminal can print.

use std::ffi::OsStr;
use std::fmt::{self, Write as _};

/// Text that can be printed to a terminal whatever stands in it: on one line, and without driving
/// the terminal.
///
/// Control characters (C0, DEL, C1), line and paragraph separators and the characters that change
/// the writing direction are escaped as Rust would (`\n`, `\u{202e}`), bytes that are no UTF-8 as
/// `\xNN`. All else, a backslash too, stays as it is, so the result is for the eye and cannot be
/// turned back.
///
/// ```
/// assert_eq!(safestep::terminal_safe("a\u{1b}[2J\nb").to_string(), r"a\u{1b}[2J\nb");
/// ```
pub fn terminal_safe<S: AsRef<OsStr> + ?Sized>(text: &S) -> TerminalSafe<'_> {
    TerminalSafe(text.as_ref())
}

/// The answer of [`terminal_safe`]: displays the text with its dangerous characters escaped.
#[derive(Clone, Copy, Debug)]
pub struct TerminalSafe<'a>(&'a OsStr);

impl fmt::Display for TerminalSafe<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.as_encoded_bytes().utf8_chunks() {
            for character in chunk.valid().chars() {
                if drives_a_terminal(character) {
                    write!(f, "{}", character.escape_default())?;
                } else {
                    f.write_char(character)?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Characters that move the cursor, end the line or turn the writing direction.
fn drives_a_terminal(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' // direction marks
            | '\u{2028}' | '\u{2029}' // line and paragraph separator
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') // embeddings, overrides, isolates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_drive_a_terminal() {
        let table: &[(&str, &str)] = &[
            ("", ""),
            ("model.safetensors", "model.safetensors"),
            ("a b\\c\"d", "a b\\c\"d"),
            ("größe-模型-😀", "größe-模型-😀"),
            ("\0\t\n\r", r"\u{0}\t\n\r"),
            ("\u{1b}]0;title\u{7}", r"\u{1b}]0;title\u{7}"),
            ("\u{7f}", r"\u{7f}"),
            ("\u{80}\u{9b}31m\u{9f}", r"\u{80}\u{9b}31m\u{9f}"),
            ("\u{a0}", "\u{a0}"),
            ("\u{200d}\u{200e}\u{200f}\u{2010}", "\u{200d}\\u{200e}\\u{200f}\u{2010}"),
            ("\u{61c}\u{2028}\u{2029}", r"\u{61c}\u{2028}\u{2029}"),
            ("\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}", r"\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}"),
            ("\u{2066}\u{2067}\u{2068}\u{2069}\u{206a}", "\\u{2066}\\u{2067}\\u{2068}\\u{2069}\u{206a}"),
        ];
        for (name, shown) in table {
            assert_eq!(terminal_safe(name).to_string(), *shown, "{name:?}");
        }
        for character in (0..=0x9f).filter_map(char::from_u32) {
            let shown = terminal_safe(&character.to_string()).to_string();
            assert!(!shown.chars().any(char::is_control), "{character:?} is shown as {shown:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_numbers() {
        use std::os::unix::ffi::OsStrExt as _;
        let table: &[(&[u8], &str)] = &[
            (b"\xff", r"\xff"),
            (b"a\xc3(b", r"a\xc3(b"),
            (b"\xe2\x80", r"\xe2\x80"),
            (b"\xed\xa0\x80", r"\xed\xa0\x80"),
            (b"\x9b1m \xc2\x9b1m", r"\x9b1m \u{9b}1m"),
        ];
        for (name, shown) in table {
            assert_eq!(terminal_safe(OsStr::from_bytes(name)).to_string(), *shown, "{name:?}");
        }
    }
}
