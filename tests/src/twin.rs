//! Turns the front of a safetensors file into a verdict, the slow and obvious way.
//!
//! The twin parses the header into a tree that remembers where everything stood, then asks one question a rule, in
//! the order of the rule table, each question of the whole tree. No question knows of another. It uses `Vec`,
//! `String`, `HashSet`, recursion and `u128`, and it has no fast path.
//!
//! It panics when its own reading of the JSON text differs from what `serde_json` says of the same text: then one of
//! the two is wrong, and a test must hear of it.

pub mod dtypes;
pub mod json;
mod notes;
pub mod numbers;
mod rules;
pub mod run;
mod serde_check;
#[cfg(test)]
mod verdicts;

use json::{Node, Value};
pub use serde_check::serde_agrees;

/// Where the header starts: behind its length.
pub const HEADER_START: u64 = 8;

/// The rule ids of the reader, in the order in which they are judged.
pub const RULES: [&str; 20] = [
    "R1.short",
    "R1.too_large",
    "R1.past_end",
    "R2.start",
    "R2.utf8",
    "R2.json",
    "R2.trailing",
    "R2.duplicate",
    "R3.metadata",
    "R4.field",
    "R4.dtype",
    "R4.shape",
    "R4.offsets",
    "R4.overflow",
    "R4.bits",
    "R4.size",
    "R5.gap",
    "R5.overlap",
    "R5.past_end",
    "R5.surplus",
];

/// The ids of the notes, in the order in which they are reported.
pub const NOTES: [&str; 7] = [
    "note.header_length",
    "note.alignment",
    "note.padding",
    "note.null_metadata",
    "note.order",
    "note.name",
    "note.rows",
];

/// What a caller may narrow.
#[derive(Debug, Clone)]
pub struct Options {
    /// The longest header that is judged at all.
    pub header_bytes_max: u64,
    /// The dtypes that the caller can use; `None` allows all.
    pub dtypes: Option<Vec<String>>,
}

impl Default for Options {
    fn default() -> Self {
        Self { header_bytes_max: 100_000_000, dtypes: None }
    }
}

/// The verdict on a bad file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Break {
    /// The id of the broken rule.
    pub rule: &'static str,
    /// The place of the break, counted from the start of the file.
    pub offset: u64,
    /// The tensor (or key) that breaks it, unescaped.
    pub tensor: Option<String>,
}

/// What a good file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// N, the length of the header.
    pub header_len: u64,
    /// The length of the data behind the header.
    pub data_len: u64,
    /// Key and value in the header's order; `None` when absent or null.
    pub metadata: Option<Vec<(String, String)>>,
    /// `__metadata__` is there, and `null`.
    pub null_metadata: bool,
    /// In data order: by begin, end, place in the header.
    pub tensors: Vec<Tensor>,
    /// At most one a note id, in the order of [`NOTES`].
    pub notes: Vec<Note>,
}

/// One tensor of a good file. Offsets named `_at` count from the start of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// The name, unescaped.
    pub name: String,
    /// The dtype's name, unescaped.
    pub dtype: String,
    /// The size of one element.
    pub bits: u64,
    /// The shape, outermost first.
    pub shape: Vec<u64>,
    /// The product of the shape.
    pub elements: u64,
    /// Where its data begins, counted from the end of the header.
    pub begin: u64,
    /// Where its data ends, counted from the end of the header.
    pub end: u64,
    /// The number of entries before it in the header, `__metadata__` not counted.
    pub place: u64,
    /// The opening quote of its name.
    pub name_at: u64,
    /// The `[` of its shape.
    pub shape_at: u64,
    /// The `[` of its data_offsets.
    pub data_offsets_at: u64,
}

/// Something that a user wants to know of a good file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The id of the note.
    pub id: &'static str,
    /// The first place, in the header's order, counted from the start of the file.
    pub offset: u64,
    /// The tensor at that place, unescaped.
    pub tensor: Option<String>,
    /// How many places there are.
    pub count: u64,
}

/// Judges a file by its front: `bytes` must hold the whole header, and may hold as much of the data as it likes.
///
/// # Errors
/// The first broken rule.
///
/// # Panics
/// If `bytes` ends inside the header although the file does not, or if the JSON parser and `serde_json` disagree.
pub fn judge(bytes: &[u8], file_len: u64, options: &Options) -> Result<Model, Break> {
    let header_len = frame(bytes, file_len, options)?;
    let header_end = HEADER_START + header_len;
    let header = &bytes[8..usize::try_from(header_end).expect("a header in memory")];
    let text = text(header)?;
    let parsed = json::parse(text);
    serde_agrees(text, &parsed);
    let root = parsed.map_err(|offset| Break { rule: "R2.json", offset, tensor: None })?;
    trailing(header, &root)?;
    let members = root.members();
    for rule in rules::BEFORE_DTYPES {
        rule(members)?;
    }
    rules::dtype(members, options)?;
    for rule in rules::AFTER_DTYPES {
        rule(members)?;
    }
    let mut tensors = rules::tensors(members);
    tensors.sort_by_key(|tensor| (tensor.begin, tensor.end, tensor.place));
    rules::tiling(&tensors)?;
    rules::past_end(&tensors, header_end, file_len)?;
    rules::surplus(&tensors, header_end, file_len)?;
    let notes = notes::notes(header, &root, &tensors);
    let data_len = file_len - header_end;
    let (metadata, null_metadata) = metadata(&root);
    Ok(Model { header_len, data_len, metadata, null_metadata, tensors, notes })
}

/// R1: the length of the header.
fn frame(bytes: &[u8], file_len: u64, options: &Options) -> Result<u64, Break> {
    let broken = |rule, offset| Err(Break { rule, offset, tensor: None });
    if file_len < HEADER_START {
        return broken("R1.short", file_len);
    }
    let prefix = bytes.get(..8).expect("the caller holds the header");
    let header_len = u64::from_le_bytes(prefix.try_into().expect("eight bytes"));
    if header_len > options.header_bytes_max {
        return broken("R1.too_large", 0);
    }
    if u128::from(HEADER_START) + u128::from(header_len) > u128::from(file_len) {
        return broken("R1.past_end", 0);
    }
    assert!(bytes.len() as u64 >= HEADER_START + header_len, "the caller holds the header");
    Ok(header_len)
}

/// R2.start and R2.utf8.
fn text(header: &[u8]) -> Result<&str, Break> {
    if header.first() != Some(&b'{') {
        return Err(Break { rule: "R2.start", offset: HEADER_START, tensor: None });
    }
    std::str::from_utf8(header).map_err(|error| Break {
        rule: "R2.utf8",
        offset: HEADER_START + error.valid_up_to() as u64,
        tensor: None,
    })
}

/// R2.trailing.
fn trailing(header: &[u8], root: &Node) -> Result<(), Break> {
    for offset in root.end..HEADER_START + header.len() as u64 {
        if !matches!(byte_at(header, offset), b' ' | b'\t' | b'\n' | b'\r') {
            return Err(Break { rule: "R2.trailing", offset, tensor: None });
        }
    }
    Ok(())
}

/// The header's byte at an offset that counts from the start of the file.
fn byte_at(header: &[u8], offset: u64) -> u8 {
    header[usize::try_from(offset - HEADER_START).expect("an offset in memory")]
}

/// The metadata of a header that passed R3, and whether it is an explicit null.
fn metadata(root: &Node) -> (Option<Vec<(String, String)>>, bool) {
    let Some(member) = root.members().iter().find(|member| member.key == rules::METADATA) else {
        return (None, false);
    };
    match &member.node.value {
        Value::Object(members) => {
            let pairs = members.iter().map(|member| match &member.node.value {
                Value::Text(value) => (member.key.clone(), value.clone()),
                other => unreachable!("R3 let {other:?} pass"),
            });
            (Some(pairs.collect()), false)
        }
        _ => (None, true),
    }
}
