//! A good header becomes notes: what is allowed, yet a user wants to know. They cost a second scan and no memory.

use crate::json::{JsonStr, is_white_space};
use crate::span::{Offset, widen};
use crate::tensor::entry::{Form, Member, Members, Shape};
use crate::tensor::frame::in_file;
use crate::tensor::header::Header;
use crate::tensor::in_order::Judged;
use crate::tensor::index::Index;
use crate::tensor::judge::Outline;
use core::fmt;

/// Something about a good file that a user wants to know. The same thing is noted once, with its first place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note<'h> {
    /// What it is.
    pub kind: NoteKind,
    /// The first place, from the start of the file.
    pub at: Offset,
    /// The tensor at that place, if it is about tensors.
    pub name: Option<JsonStr<'h>>,
    /// How many there are.
    pub count: u64,
}

/// The kinds of note, in the order in which they are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum NoteKind {
    /// The header's length is no multiple of 8.
    HeaderLength,
    /// Tensors that do not stand at a multiple of their element's size.
    Alignment,
    /// Padding with white space other than 0x20.
    Padding,
    /// `__metadata__` is null, as MLX writes it.
    NullMetadata,
    /// Tensors that do not stand in the order of the reference writer.
    Order,
    /// Names that are empty or hold control characters.
    Name,
    /// F4 or F6 tensors whose rows end inside a byte.
    Rows,
}

impl NoteKind {
    /// All kinds, in order.
    pub const ALL: [Self; 7] = [
        Self::HeaderLength,
        Self::Alignment,
        Self::Padding,
        Self::NullMetadata,
        Self::Order,
        Self::Name,
        Self::Rows,
    ];

    /// The id of the note, such as `note.alignment`.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::HeaderLength => "note.header_length",
            Self::Alignment => "note.alignment",
            Self::Padding => "note.padding",
            Self::NullMetadata => "note.null_metadata",
            Self::Order => "note.order",
            Self::Name => "note.name",
            Self::Rows => "note.rows",
        }
    }
}

impl fmt::Display for Note<'_> {
    /// In words, without the id, the place and the name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (one, many) = match self.kind {
            NoteKind::HeaderLength => return f.write_str("the header's length is no multiple of 8"),
            NoteKind::Padding => {
                return f.write_str("the header is padded with white space other than spaces");
            }
            NoteKind::NullMetadata => return f.write_str("__metadata__ is null"),
            NoteKind::Alignment => (
                "tensor does not stand at a multiple of its element's size",
                "tensors do not stand at a multiple of their element's size",
            ),
            NoteKind::Order => (
                "tensor does not stand in the reference writer's order",
                "tensors do not stand in the reference writer's order",
            ),
            NoteKind::Name => {
                ("name is empty or holds control characters", "names are empty or hold control characters")
            }
            NoteKind::Rows => {
                ("tensor has rows that end inside a byte", "tensors have rows that end inside a byte")
            }
        };
        write!(f, "{} {}", self.count, if self.count == 1 { one } else { many })
    }
}

/// The notes of a header, by kind.
#[derive(Clone, Debug)]
pub struct Notes<'h> {
    found: [Option<Note<'h>>; 7],
    next: u8,
}

impl<'h> Index<'h, '_> {
    /// What is worth a note, though no rule is broken. Scans the header once more.
    #[must_use]
    pub fn notes(&self) -> Notes<'h> {
        Notes::of(self.header(), self.outline())
    }
}

impl<'h> Judged<'h> {
    /// What is worth a note, though no rule is broken. Scans the header once more.
    #[must_use]
    pub fn notes(&self) -> Notes<'h> {
        Notes::of(self.header(), self.outline())
    }
}

impl<'h> Iterator for Notes<'h> {
    type Item = Note<'h>;

    fn next(&mut self) -> Option<Note<'h>> {
        while let Some(found) = self.found.get(usize::from(self.next)) {
            self.next = self.next.saturating_add(1);
            if found.is_some() {
                return *found;
            }
        }
        None
    }
}

impl<'h> Notes<'h> {
    /// Scans a header in which no rule is broken.
    fn of(header: Header<'h>, outline: &Outline) -> Self {
        let mut notes = Self { found: [None; 7], next: 0 };
        if header.frame().header_len().value() & 7 != 0 {
            notes.add(NoteKind::HeaderLength, 0, None);
        }
        let text = header.text();
        let mut place = outline.padding_at;
        for &byte in text.get(widen(place)..).unwrap_or_default() {
            if byte != b' ' && is_white_space(byte) {
                notes.add(NoteKind::Padding, in_file(place), None);
            }
            place = place.wrapping_add(1);
        }
        if let Some((_, value_at)) = outline.metadata
            && text.get(widen(value_at)) == Some(&b'n')
        {
            notes.add(NoteKind::NullMetadata, in_file(value_at), None);
        }
        let mut last: Option<(Member<'h>, Form)> = None;
        for member in Members::new(text, 0) {
            let Some(form) = member.form_again(text) else { continue };
            notes.tensor(header, &member, &form);
            if let Some((before, before_form)) = &last {
                let data = |form: &Form| (form.begin, form.end);
                let writer =
                    form.dtype.cmp(&before_form.dtype).reverse().then_with(|| member.key.cmp(&before.key));
                if data(&form) < data(before_form) || writer.is_lt() {
                    notes.add(NoteKind::Order, in_file(member.key_at), Some(member.key));
                }
            }
            last = Some((member, form));
        }
        notes
    }

    /// What can be noted of one tensor alone.
    fn tensor(&mut self, header: Header<'h>, member: &Member<'h>, form: &Form) {
        let text = header.text();
        let name = Some(member.key);
        let start = header.frame().data_span().begin().value().wrapping_add(form.begin);
        if start & u64::from(form.dtype.alignment_bytes()).wrapping_sub(1) != 0 && form.begin != form.end {
            let mut fields = Members::new(text, member.value_at);
            let at = fields.find(|field| field.key.is(b"data_offsets")).map_or(0, |field| field.value_at);
            self.add(NoteKind::Alignment, in_file(at), name);
        }
        if member.key.chars().next().is_none() || member.key.chars().any(char::is_control) {
            self.add(NoteKind::Name, in_file(member.key_at), name);
        }
        let row = Shape::new(text.get(widen(form.shape_at)..).unwrap_or_default()).dims().last();
        let row_bits = row.unwrap_or_default().wrapping_mul(u64::from(form.dtype.bits()));
        if row_bits & 7 != 0 && form.begin != form.end {
            self.add(NoteKind::Rows, in_file(form.shape_at), name);
        }
    }

    fn add(&mut self, kind: NoteKind, at: u64, name: Option<JsonStr<'h>>) {
        let place = usize::from(kind as u8);
        let Some(found) = self.found.get_mut(place) else { return };
        match found {
            Some(note) => note.count = note.count.saturating_add(1),
            None => *found = Some(Note { kind, at: Offset::new(at), name, count: 1 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::string::ToString;

    #[test]
    fn notes_say_how_many_there_are() {
        const WORDS: [(NoteKind, u64, &str); 11] = [
            (NoteKind::HeaderLength, 1, "the header's length is no multiple of 8"),
            (NoteKind::Alignment, 1, "1 tensor does not stand at a multiple of its element's size"),
            (NoteKind::Alignment, 2, "2 tensors do not stand at a multiple of their element's size"),
            (NoteKind::Padding, 3, "the header is padded with white space other than spaces"),
            (NoteKind::NullMetadata, 1, "__metadata__ is null"),
            (NoteKind::Order, 1, "1 tensor does not stand in the reference writer's order"),
            (NoteKind::Order, 2, "2 tensors do not stand in the reference writer's order"),
            (NoteKind::Name, 1, "1 name is empty or holds control characters"),
            (NoteKind::Name, 2, "2 names are empty or hold control characters"),
            (NoteKind::Rows, 1, "1 tensor has rows that end inside a byte"),
            (NoteKind::Rows, 2, "2 tensors have rows that end inside a byte"),
        ];
        for (kind, count, words) in WORDS {
            assert_eq!(Note { kind, at: Offset::new(8), name: None, count }.to_string(), words);
        }
    }
}
