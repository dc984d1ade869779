//! Turns a header that was found good into the notes that a user wants.
//!
//! One function a note; each walks the tensors in the header's order, keeps the places where its note applies, and
//! reports the first of them and their number.

use std::cmp::Reverse;

use super::json::{Node, Value};
use super::rules::METADATA;
use super::{HEADER_START, Note, Tensor, byte_at, dtypes};

/// All notes, in the order of the ids.
pub(super) fn notes(header: &[u8], root: &Node, in_data_order: &[Tensor]) -> Vec<Note> {
    let mut tensors: Vec<&Tensor> = in_data_order.iter().collect();
    tensors.sort_by_key(|tensor| tensor.place);
    let header_end = HEADER_START + header.len() as u64;
    let all = [
        header_length(header),
        alignment(&tensors, header_end),
        padding(header, root),
        null_metadata(root),
        order(&tensors),
        name(&tensors),
        rows(&tensors),
    ];
    all.into_iter().flatten().collect()
}

fn note(id: &'static str, places: &[(u64, Option<&str>)]) -> Option<Note> {
    let (offset, tensor) = *places.first()?;
    Some(Note { id, offset, tensor: tensor.map(str::to_owned), count: places.len() as u64 })
}

fn header_length(header: &[u8]) -> Option<Note> {
    if header.len().is_multiple_of(8) { None } else { note("note.header_length", &[(0, None)]) }
}

/// A tensor with data that starts, in the file, at no multiple of its element's size.
fn alignment(tensors: &[&Tensor], header_end: u64) -> Option<Note> {
    let mut places = Vec::new();
    for tensor in tensors {
        let element_bytes = u128::from((tensor.bits / 8).max(1));
        let start = u128::from(header_end) + u128::from(tensor.begin);
        if tensor.end > tensor.begin && !start.is_multiple_of(element_bytes) {
            places.push((tensor.data_offsets_at, Some(tensor.name.as_str())));
        }
    }
    note("note.alignment", &places)
}

/// Each byte behind the closing brace that is white space, but no blank.
fn padding(header: &[u8], root: &Node) -> Option<Note> {
    let header_end = HEADER_START + header.len() as u64;
    let offsets = (root.end..header_end).filter(|offset| byte_at(header, *offset) != b' ');
    let places: Vec<_> = offsets.map(|offset| (offset, None)).collect();
    note("note.padding", &places)
}

fn null_metadata(root: &Node) -> Option<Note> {
    let member = root.members().iter().find(|member| member.key == METADATA)?;
    match member.node.value {
        Value::Null => note("note.null_metadata", &[(member.node.begin, None)]),
        _ => None,
    }
}

/// An entry that, by its data or by the reference writer's order, belongs before the entry that it follows.
fn order(tensors: &[&Tensor]) -> Option<Note> {
    let mut places = Vec::new();
    for pair in tensors.windows(2) {
        let data = |tensor: &Tensor| (tensor.begin, tensor.end);
        let (before, after) = (pair[0], pair[1]);
        if data(after) < data(before) || writers_key(after) < writers_key(before) {
            places.push((after.name_at, Some(after.name.as_str())));
        }
    }
    note("note.order", &places)
}

/// By dtype, the last of the table first; then by the bytes of the name.
fn writers_key(tensor: &Tensor) -> (Reverse<Option<usize>>, &[u8]) {
    (Reverse(dtypes::rank(&tensor.dtype)), tensor.name.as_bytes())
}

/// A name that is empty, or holds a control character.
fn name(tensors: &[&Tensor]) -> Option<Note> {
    let control = |char| matches!(char, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}');
    let odd = |name: &str| name.is_empty() || name.chars().any(control);
    let odd = tensors.iter().filter(|tensor| odd(&tensor.name));
    let places: Vec<_> = odd.map(|tensor| (tensor.name_at, Some(tensor.name.as_str()))).collect();
    note("note.name", &places)
}

/// A row of a tensor of F4 or F6 that does not end where a byte ends.
fn rows(tensors: &[&Tensor]) -> Option<Note> {
    let mut places = Vec::new();
    for tensor in tensors {
        let Some(last) = tensor.shape.last() else { continue };
        let row_bits = u128::from(*last) * u128::from(tensor.bits);
        if tensor.bits < 8 && tensor.elements > 0 && !row_bits.is_multiple_of(8) {
            places.push((tensor.shape_at, Some(tensor.name.as_str())));
        }
    }
    note("note.rows", &places)
}
