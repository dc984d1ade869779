//! Turns tensors and metadata into header text, as `serde_json` (and so the reference) spells it.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::Sample;

/// One tensor, as a header lists it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The name, not escaped.
    pub name: String,
    /// The dtype's name.
    pub dtype: &'static str,
    /// The shape, outermost first.
    pub shape: Vec<u64>,
    /// Where its data begins and ends, counted from the end of the header.
    pub data_offsets: (u64, u64),
}

/// How the text is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// No white space.
    Compact,
    /// A token a line, two blanks a level, `": "` behind keys.
    Pretty,
}

/// A good header of these entries in this order, with the metadata that PyTorch users write, padded with blanks to a
/// multiple of eight.
#[must_use]
pub fn sample(name: &str, entries: &[Entry], layout: Layout) -> Sample {
    let document = Document { metadata: &[("format", "pt")], entries };
    let text = match layout {
        Layout::Compact => serde_json::to_string(&document),
        Layout::Pretty => serde_json::to_string_pretty(&document),
    };
    let mut text = text.expect("a string cannot fail to grow");
    text.push_str(&" ".repeat(text.len().next_multiple_of(8) - text.len()));
    let data_len = entries.iter().map(|entry| entry.data_offsets.1).max().unwrap_or(0);
    Sample::new(name, text, data_len, None)
}

/// Gives the entries their places in the data, packed in this order.
pub fn pack(entries: &mut [Entry]) {
    let mut end = 0;
    for entry in entries {
        let bits = crate::twin::dtypes::bits(entry.dtype).expect("a dtype");
        let begin = end;
        end += entry.shape.iter().product::<u64>() * bits / 8;
        entry.data_offsets = (begin, end);
    }
}

struct Document<'a> {
    metadata: &'a [(&'a str, &'a str)],
    entries: &'a [Entry],
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("__metadata__", &Pairs(self.metadata))?;
        for entry in self.entries {
            let Entry { dtype, shape, data_offsets, .. } = entry;
            map.serialize_entry(&entry.name, &Info { dtype, shape, data_offsets: *data_offsets })?;
        }
        map.end()
    }
}

struct Pairs<'a>(&'a [(&'a str, &'a str)]);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

#[derive(serde::Serialize)]
struct Info<'a> {
    dtype: &'a str,
    shape: &'a [u64],
    data_offsets: (u64, u64),
}
