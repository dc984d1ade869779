//! Findings become what a program reads.
//!
//! Strings are exact. Characters that drive a terminal are spelled as escapes, which mean the same.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use safestep::{BadFile, terminal_safe};
use safestep_core::{Dtype, JsonStr, Metadata, Notes, Rule, Shape};
use serde::Serialize;
use serde::ser::Serializer;
use serde_json::ser::{CompactFormatter, Formatter};

use super::totals::Sum;
use super::{Checking, Inspecting, Screen, Shown, Totals, words};

/// The report of `inspect`: one document, of which each file is printed as it comes.
#[derive(Debug)]
pub(crate) struct Document {
    separator: &'static str,
}

impl Document {
    pub(crate) fn new() -> Self {
        Self { separator: "" }
    }
}

impl Inspecting for Document {
    fn begin(&mut self, screen: &mut Screen) -> io::Result<()> {
        write!(screen.out, "{{\"files\":[")
    }

    fn file(&mut self, screen: &mut Screen, shown: &Shown<'_>) -> io::Result<()> {
        write!(screen.out, "{}", std::mem::replace(&mut self.separator, ","))?;
        let (frame, index) = (shown.model.frame(), shown.model.index());
        let tensors = shown.entries.iter().map(|entry| Tensor {
            name: Text(entry.name()),
            dtype: entry.dtype().name(),
            shape: Dims(entry.shape()),
            begin: entry.span().begin().value(),
            end: entry.span().end().value(),
        });
        let notes = index.notes();
        let file = File {
            path: &shown.path.to_string_lossy(),
            header_bytes: frame.header_len().value(),
            data_bytes: frame.data_len().value(),
            metadata: index.metadata().map(Pairs),
            notes: notes.map(|note| BareNote { id: note.kind.id(), message: words::note(&note) }).collect(),
            tensors: tensors.collect(),
        };
        put(&mut screen.out, &file)
    }

    fn end(&mut self, screen: &mut Screen, totals: &Totals, _files: u64) -> io::Result<()> {
        write!(screen.out, "],\"totals\":")?;
        let Sum { tensors, parameters, bytes } = totals.all;
        put(&mut screen.out, &Sums { tensors, parameters, bytes, by_dtype: ByDtype(totals) })?;
        writeln!(screen.out, "}}")
    }
}

#[derive(Serialize)]
struct File<'a> {
    path: &'a str,
    header_bytes: u64,
    data_bytes: u64,
    metadata: Option<Pairs<'a>>,
    notes: Vec<BareNote>,
    tensors: Vec<Tensor<'a>>,
}

#[derive(Serialize)]
struct BareNote {
    id: &'static str,
    message: String,
}

#[derive(Serialize)]
struct Tensor<'a> {
    name: Text<'a>,
    dtype: &'static str,
    shape: Dims<'a>,
    begin: u64,
    end: u64,
}

#[derive(Serialize)]
struct Sums<'a> {
    tensors: u64,
    parameters: u64,
    bytes: u64,
    by_dtype: ByDtype<'a>,
}

/// A string of the header, unescaped on the way.
struct Text<'a>(JsonStr<'a>);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_plain() {
            Some(plain) => serializer.serialize_str(plain),
            None => serializer.serialize_str(&self.0.to_string()),
        }
    }
}

struct Dims<'a>(Shape<'a>);

impl Serialize for Dims<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.dims())
    }
}

/// Metadata in the order of the header.
struct Pairs<'a>(Metadata<'a>);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.clone().map(|(key, value)| (Text(key), Text(value))))
    }
}

struct ByDtype<'a>(&'a Totals);

impl Serialize for ByDtype<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.by_dtype.iter().map(|(dtype, sum)| (Dtype::name(*dtype), sum)))
    }
}

/// The report of `check`: an object a line.
#[derive(Debug)]
pub(crate) struct Lines;

impl Checking for Lines {
    fn good(&self, screen: &mut Screen, path: &Path, notes: Notes<'_>) -> io::Result<()> {
        let notes = notes.map(|note| FullNote {
            id: note.kind.id(),
            offset: note.at.value(),
            tensor: note.name.map(Text),
            count: note.count,
            message: words::note(&note),
        });
        put_line(screen, &Line { verdict: "good", notes: notes.collect(), ..Line::of(path) })
    }

    fn bad(&self, screen: &mut Screen, path: &Path, bad: &BadFile) -> io::Result<()> {
        let line = Line {
            verdict: "bad",
            rule: bad.error.rule().map(Rule::id),
            offset: Some(bad.error.at().value()),
            tensor: bad.name.as_deref(),
            message: Some(bad.message()),
            ..Line::of(path)
        };
        put_line(screen, &line)
    }

    fn end(&self, _screen: &mut Screen, _good: u64, _bad: u64, _unreadable: u64) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Serialize)]
struct Line<'a> {
    path: Cow<'a, str>,
    verdict: &'static str,
    rule: Option<&'static str>,
    offset: Option<u64>,
    tensor: Option<&'a str>,
    message: Option<String>,
    notes: Vec<FullNote<'a>>,
}

impl<'a> Line<'a> {
    /// A line on which nothing but the path is said yet.
    fn of(path: &'a Path) -> Self {
        Self {
            path: path.to_string_lossy(),
            verdict: "",
            rule: None,
            offset: None,
            tensor: None,
            message: None,
            notes: Vec::new(),
        }
    }
}

#[derive(Serialize)]
struct FullNote<'a> {
    id: &'static str,
    offset: u64,
    tensor: Option<Text<'a>>,
    count: u64,
    message: String,
}

fn put_line(screen: &mut Screen, line: &Line<'_>) -> io::Result<()> {
    put(&mut screen.out, line)?;
    writeln!(screen.out)
}

pub(super) fn put(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    Ok(value.serialize(&mut serde_json::Serializer::with_formatter(out, TerminalSafe))?)
}

/// Compact, with those characters escaped too that JSON allows and a terminal should not get.
struct TerminalSafe;

impl Formatter for TerminalSafe {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let harmless = |byte: u8| (0x20..0x7f).contains(&byte);
        if fragment.bytes().all(harmless) || terminal_safe(fragment).to_string() == fragment {
            return CompactFormatter.write_string_fragment(writer, fragment);
        }
        let mut text = [0; 4];
        for char in fragment.chars() {
            let char = char.encode_utf8(&mut text);
            if terminal_safe(char).to_string() == *char {
                CompactFormatter.write_string_fragment(writer, char)?;
            } else {
                char.encode_utf16().try_for_each(|unit| write!(writer, "\\u{unit:04x}"))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_exact_and_harmless() {
        let table = [
            ("plain", r#""plain""#),
            ("quote\" back\\ tab\t esc\u{1b}", r#""quote\" back\\ tab\t esc\u001b""#),
            ("größe-模型-😀", r#""größe-模型-😀""#),
            ("del\u{7f} csi\u{9b}31m", r#""del\u007f csi\u009b31m""#),
            ("\u{202e}live\u{2066}", r#""\u202elive\u2066""#),
            ("line\u{2028}", r#""line\u2028""#),
        ];
        for (text, json) in table {
            let mut out = Vec::new();
            put(&mut out, &text).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), json);
            assert_eq!(serde_json::from_str::<String>(json).unwrap(), text);
        }
    }
}
