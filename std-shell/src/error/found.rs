//! A verdict and the header it is about -> the words of the header that say more: what stands at the place, the shape.
//!
//! The header was judged, so what stands there is JSON wherever one of these verdicts is possible; other bytes give
//! fewer words and do no harm. No word is longer than a line, and none is held longer than that.

use std::collections::VecDeque;
use std::fmt::{self, Display, Write as _};

use safestep_core::{Error, ErrorKind, JsonStr, Kind, Shape};

/// The value at an error's place, for the kinds of error whose own words do not hold it.
pub(super) fn word_at(error: Error, header: &[u8]) -> Option<String> {
    match error.kind() {
        ErrorKind::Shape { found: Kind::Null } | ErrorKind::Offsets { found: Kind::Null } => return None,
        ErrorKind::DtypeUnknown
        | ErrorKind::FieldUnknown
        | ErrorKind::Shape { .. }
        | ErrorKind::Offsets { .. } => {}
        _ => return None,
    }
    let at = usize::try_from(error.at().value()).ok()?.checked_sub(8)?;
    let (value, _) = value(header.get(at..)?)?;
    Some(ends(&str::from_utf8(value).ok()?, WORD_CHARS))
}

/// The shape of the tensor, for the kinds of error that come from it.
pub(super) fn shape_of(error: Error, header: &[u8]) -> Option<String> {
    let (ErrorKind::Overflow | ErrorKind::Bits { .. } | ErrorKind::Size { .. }) = error.kind() else {
        return None;
    };
    let name_end = usize::try_from(error.name_in_header()?.end().value()).ok()?;
    // Behind the name and its quote stand a colon and the entry's brace.
    let mut rest = behind(header.get(name_end.checked_add(1)?..)?, b":{");
    loop {
        let (key, tail) = value(rest)?;
        let (field, tail) = value(behind(tail, b":"))?;
        if JsonStr::new(key.strip_prefix(b"\"")?.strip_suffix(b"\"")?) == "shape" {
            return Some(ends(&Shape::new(field), SHAPE_CHARS));
        }
        rest = behind(tail, b",");
    }
}

/// The JSON value that `text` begins with, and what follows it; `None` where none begins.
fn value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut depth, mut quoted, mut escaped) = (0_u32, false, false);
    for (at, &byte) in text.iter().enumerate() {
        let inner = match byte {
            _ if escaped => {
                escaped = false;
                true
            }
            b'\\' if quoted => {
                escaped = true;
                true
            }
            b'"' => {
                quoted = !quoted;
                quoted || depth > 0
            }
            _ if quoted => true,
            b'[' | b'{' => {
                depth = depth.saturating_add(1);
                true
            }
            b']' | b'}' if depth > 0 => {
                depth = depth.saturating_sub(1);
                depth > 0
            }
            b']' | b'}' | b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => {
                return text.split_at_checked(at).filter(|_| at > 0);
            }
            _ => true,
        };
        if !inner {
            return text.split_at_checked(at.saturating_add(1));
        }
    }
    None
}

/// What follows white space and these marks.
fn behind<'t>(text: &'t [u8], marks: &[u8]) -> &'t [u8] {
    let passed = text.iter().take_while(|byte| b" \t\n\r".contains(byte) || marks.contains(byte)).count();
    text.get(passed..).unwrap_or_default()
}

/// What something displays: whole, or its two ends with an ellipsis between them, in at most so many characters.
///
/// For what comes from strangers and may be of any length: only what is kept takes memory.
///
/// ```
/// assert_eq!(safestep::ends(&"attention", 9), "attention");
/// assert_eq!(safestep::ends(&"attention", 6), "at…ion");
/// ```
pub fn ends(shown: &impl Display, chars: usize) -> String {
    let mut ends = Ends { chars, head: String::new(), tail: VecDeque::new(), passed: 0 };
    // Nothing here can fail.
    let _ = write!(ends, "{shown}");
    let Ends { mut head, tail, passed, .. } = ends;
    if passed <= chars {
        head.extend(tail);
        return head;
    }
    let room = chars.saturating_sub(1);
    let kept = tail.len().saturating_sub(room - room / 2);
    head.chars().take(room / 2).chain(['…']).chain(tail.into_iter().skip(kept)).collect()
}

/// The first and the last characters of a text, each as many as half of `chars`.
struct Ends {
    chars: usize,
    head: String,
    tail: VecDeque<char>,
    passed: usize,
}

impl fmt::Write for Ends {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        for char in piece.chars() {
            self.passed = self.passed.saturating_add(1);
            if self.passed <= self.chars / 2 {
                self.head.push(char);
                continue;
            }
            if self.tail.len() > self.chars / 2 {
                self.tail.pop_front();
            }
            self.tail.push_back(char);
        }
        Ok(())
    }
}

/// Longer than the name of any dtype or field.
const WORD_CHARS: usize = 40;

/// Enough for rank 8 and large dimensions; `inspect` cuts at the same width.
const SHAPE_CHARS: usize = 64;

#[cfg(test)]
mod tests {
    use crate::error::BadFile;
    use safestep_core::{Frame, Limits};

    /// What is said of a tensor `a` with these fields.
    fn said(dtype: &str, shape: &str, offsets: &str) -> String {
        let header =
            format!("{{\"a\" : {{\"dtype\":{dtype},\"sh\\u0061pe\": {shape},\"data_offsets\":{offsets}}}}}");
        let file = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[0; 8]].concat();
        let frame = Frame::read(&file, file.len() as u64, Limits::default()).unwrap();
        let error = frame.header(header.as_bytes()).unwrap().judge().unwrap_err();
        BadFile::new(error, &file, header.as_bytes()).message()
    }

    #[test]
    fn the_found_word_is_whole_or_cut_where_it_can_be() {
        let dtypes = [
            (r#""F32 ""#, r#"an unknown one: "F32 ""#),
            (r#""F\"32""#, r#"an unknown one: "F\"32""#),
            (r#""F\\""#, r#"an unknown one: "F\\""#),
            (r#""a]},b""#, r#"an unknown one: "a]},b""#),
            (&format!("\"{}\"", "é".repeat(30)), &format!("an unknown one: \"{}\"", "é".repeat(30))),
            (&format!("\"{}\"", "é".repeat(38)), &format!("an unknown one: \"{}\"", "é".repeat(38))),
            (
                &format!("\"{}\"", "é".repeat(39)),
                &format!("an unknown one: \"{}…{}\"", "é".repeat(18), "é".repeat(19)),
            ),
        ];
        for (dtype, found) in dtypes {
            let said = said(dtype, "[1]", "[0,8]");
            assert!(said.ends_with(&format!(", found {found}")), "{dtype}: {said}");
        }
        let shapes = [
            ("[[1,2]]", "an array: [1,2]"),
            ("[[[1],{\"]\":2}] ]", "an array: [[1],{\"]\":2}]"),
            ("[{\"a\":[1,2]}]", "an object: {\"a\":[1,2]}"),
            ("null", "null"),
            ("[null]", "null"),
            ("true", "a truth value: true"),
            ("[1.5\t]", "a number that is no such integer: 1.5"),
            ("[1e3\r\n]", "a number that is no such integer: 1e3"),
            ("[-1,2]", "a number that is no such integer: -1"),
            ("\"[2,\\\"3]\"", "a string: \"[2,\\\"3]\""),
        ];
        for (shape, found) in shapes {
            let said = said("\"U8\"", shape, "[0,8]");
            assert!(said.ends_with(&format!(", found {found}")), "{shape}: {said}");
        }
        let said = said("\"U8\"", "[8]", "[0, \"8\" ]");
        assert!(said.ends_with(", found a string: \"8\""), "{said}");
    }

    #[test]
    fn sizes_are_said_with_their_shape() {
        let ones = vec!["1"; 1000].join(",");
        let table = [
            ("\"U8\"", "[2, 5]", "found offsets that span 8: shape [2, 5]"),
            ("\"F32\"", "[ ]", "found offsets that span 8: shape []"),
            ("\"F4\"", "[3,\n1]", "found 12 bits: shape [3, 1]"),
            ("\"F64\"", "[4294967296,4294967296]", "found a shape beyond: [4294967296, 4294967296]"),
            (
                "\"U8\"",
                &format!("[{ones},7]"),
                &format!("found offsets that span 8: shape [{0}…{0}7]", "1, ".repeat(10)),
            ),
        ];
        for (dtype, shape, found) in table {
            let said = said(dtype, shape, "[0,8]");
            assert!(said.ends_with(found), "{shape}: {said}");
        }
    }
}
