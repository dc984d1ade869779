//! Turns the core's verdict on a file into plain types, in which any two readers can be compared.

use safestep_core::{Blame, Dtype, DtypeSet, Entry, Error, ErrorKind, Frame, Header};
use safestep_core::{Index, Judged, Limits, Metadata, Notes, Slot};

use super::payload;
use crate::twin::{Break, Model, Note, Options};

/// What a reader makes of a good file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// N, the length of the header.
    pub header_len: u64,
    /// The length of the data behind the header.
    pub data_len: u64,
    /// Key and value in the header's order; `None` when absent or null.
    pub metadata: Option<Vec<(String, String)>>,
    /// In data order.
    pub tensors: Vec<Listed>,
    /// At most one a note id.
    pub notes: Vec<Note>,
}

/// One tensor of a good file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The name, unescaped.
    pub name: String,
    /// The dtype's name.
    pub dtype: &'static str,
    /// The shape, outermost first.
    pub shape: Vec<u64>,
    /// Where its data begins, counted from the end of the header.
    pub begin: u64,
    /// Where its data ends, counted from the end of the header.
    pub end: u64,
}

/// Why the core has no content to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The file breaks a rule.
    Broken(Break),
    /// So many slots are needed.
    Slots(u64),
}

impl From<&Model> for Content {
    fn from(model: &Model) -> Self {
        let tensors = model.tensors.iter().map(|tensor| Listed {
            name: tensor.name.clone(),
            dtype: Dtype::from_name(&tensor.dtype).expect("the twin knows no dtype that we do not").name(),
            shape: tensor.shape.clone(),
            begin: tensor.begin,
            end: tensor.end,
        });
        Self {
            header_len: model.header_len,
            data_len: model.data_len,
            metadata: model.metadata.clone(),
            tensors: tensors.collect(),
            notes: model.notes.clone(),
        }
    }
}

impl From<Entry<'_>> for Listed {
    fn from(entry: Entry<'_>) -> Self {
        Self {
            name: entry.name().to_string(),
            dtype: entry.dtype().name(),
            shape: entry.shape().dims().collect(),
            begin: entry.span().begin().value(),
            end: entry.span().end().value(),
        }
    }
}

/// The twin's options in the core's terms.
#[must_use]
pub fn limits(options: &Options) -> Limits {
    let limits = Limits::default().header_bytes(options.header_bytes_max);
    let Some(names) = &options.dtypes else { return limits };
    let dtypes: Vec<Dtype> = names.iter().map(|name| Dtype::from_name(name).expect("a dtype")).collect();
    limits.dtypes(DtypeSet::of(&dtypes))
}

/// The header of a file whose front is `bytes`.
///
/// # Errors
/// The broken rule of R1.
pub fn header_of<'h>(bytes: &'h [u8], file_len: u64, options: &Options) -> Result<Header<'h>, Error> {
    let frame = Frame::read(bytes, file_len, limits(options))?;
    let text = frame.header_span().of(bytes).expect("the caller holds the header");
    frame.header(text)
}

/// The core's verdict, in the slots given.
///
/// # Errors
/// The broken rule, or the slots needed.
pub fn in_slots(
    bytes: &[u8],
    file_len: u64,
    options: &Options,
    slots: &mut [Slot],
) -> Result<Content, Refused> {
    let lent = slots.len() as u64;
    let index = header_of(bytes, file_len, options).and_then(|header| Index::build(header, slots));
    match index {
        Ok(index) => Ok(content_of_index(&index)),
        Err(error) => {
            if let ErrorKind::SlotsTooFew { needed, lent: told } = error.kind() {
                assert!(told == lent && needed > lent, "{error:?} for {lent} slots");
            }
            Err(refused(&error, bytes, file_len))
        }
    }
}

/// The core's verdict, without slots.
///
/// # Errors
/// The broken rule, or the slots needed.
pub fn slot_free(bytes: &[u8], file_len: u64, options: &Options) -> Result<Content, Refused> {
    let judged = header_of(bytes, file_len, options).and_then(|header| header.judge());
    judged.map(|judged| content_of_judged(&judged)).map_err(|error| refused(&error, bytes, file_len))
}

/// What an index tells of its file.
#[must_use]
pub fn content_of_index(index: &Index<'_, '_>) -> Content {
    assert_eq!(index.len(), index.iter().len());
    assert_eq!(index.is_empty(), index.iter().next().is_none());
    content(index.header(), index.metadata(), index.iter(), index.notes())
}

fn content_of_judged(judged: &Judged<'_>) -> Content {
    assert_eq!(judged.len(), judged.iter().count());
    assert_eq!(judged.is_empty(), judged.iter().next().is_none());
    content(judged.header(), judged.metadata(), judged.iter(), judged.notes())
}

fn content<'h>(
    header: Header<'h>,
    metadata: Option<Metadata<'h>>,
    tensors: impl Iterator<Item = Entry<'h>>,
    notes: Notes<'h>,
) -> Content {
    let pair = |(key, value): (safestep_core::JsonStr<'_>, safestep_core::JsonStr<'_>)| {
        (key.to_string(), value.to_string())
    };
    let note = |note: safestep_core::Note<'_>| Note {
        id: note.kind.id(),
        offset: note.at.value(),
        tensor: note.name.map(|name| name.to_string()),
        count: note.count,
    };
    Content {
        header_len: header.frame().header_len().value(),
        data_len: header.frame().data_len().value(),
        metadata: metadata.map(|pairs| pairs.map(pair).collect()),
        tensors: tensors.map(Listed::from).collect(),
        notes: notes.map(note).collect(),
    }
}

/// The core's error in the twin's terms; asserts that what it says beside rule, offset and tensor is so.
fn refused(error: &Error, bytes: &[u8], file_len: u64) -> Refused {
    let text = header_text(bytes);
    let words = error.to_string();
    assert!(!words.is_empty() && !words.contains('\n'), "{words:?}");
    let Some(rule) = error.rule() else {
        assert_eq!((error.blame(), error.at().value(), error.name_in_header()), (Blame::Caller, 0, None));
        return match error.kind() {
            ErrorKind::SlotsTooFew { needed, .. } | ErrorKind::SlotsNeeded { needed } => {
                Refused::Slots(needed)
            }
            other => panic!("{other:?} is nobody's fault"),
        };
    };
    assert_eq!(error.blame(), Blame::Bytes);
    assert!(words.starts_with(&format!("{} at byte {}: ", rule.id(), error.at())), "{words:?}");
    payload::tells_the_truth(error, bytes, file_len);
    let tensor = error.name_of(text).map(|name| name.to_string());
    Refused::Broken(Break { rule: rule.id(), offset: error.at().value(), tensor })
}

/// The header's text, or what there is of it.
fn header_text(bytes: &[u8]) -> &[u8] {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else { return &[] };
    let header_len = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    rest.get(..header_len).unwrap_or(rest)
}
