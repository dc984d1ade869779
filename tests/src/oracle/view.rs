//! Turns an accepted file into questions about its frame, names, shapes and bytes.

use safestep_core::{Element, Entry, ErrorKind, Frame, Index, JsonStr, Limits, Slot, TensorView, ViewError};

use super::recipe;
use super::verdict::{content_of_index, header_of};
use crate::twin::{Model, Options, Tensor};

/// What a frame says of itself, and that it takes no header of another length.
///
/// # Panics
/// When it is wrong.
pub fn frame(bytes: &[u8], file_len: u64) {
    let Ok(frame) = Frame::read(bytes, file_len, Limits::default()) else { return };
    assert_eq!(Frame::read(&bytes[..8], file_len, Limits::default()), Ok(frame));
    let data_begin = 8 + frame.header_len().value();
    let ends = |span: safestep_core::Span| (span.begin().value(), span.end().value());
    assert_eq!(ends(frame.header_span()), (8, data_begin));
    assert_eq!(ends(frame.data_span()), (data_begin, file_len));
    assert_eq!((frame.file_len().value(), frame.data_len().value()), (file_len, file_len - data_begin));
    let text = frame.header_span().of(bytes).expect("the caller holds the header");
    let longer = [text, b" "].concat();
    for wrong in [text.get(1..).unwrap_or(b" "), &longer] {
        let error = frame.header(wrong).expect_err("a header of another length");
        let (expected, found) = (frame.header_len().value(), wrong.len() as u64);
        assert_eq!(error.kind(), ErrorKind::HeaderBytes { expected, found });
        assert_eq!(error.rule(), None);
    }
}

/// Every entry's name, shape and bytes.
///
/// # Panics
/// When one is not as the twin says.
pub fn entries(bytes: &[u8], file_len: u64, model: &Model) {
    let header = header_of(bytes, file_len, &Options::default()).expect("the twin accepts");
    let mut slots = vec![Slot::EMPTY; model.tensors.len()];
    let Ok(index) = Index::build(header, &mut slots) else { return };
    let data_begin = usize::try_from(header.frame().data_span().begin().value()).expect("a header in memory");
    let data = bytes.get(data_begin..).filter(|_| bytes.len() as u64 == file_len);
    for (entry, tensor) in index.iter().zip(&model.tensors) {
        name(entry.name(), tensor, bytes);
        shape(&entry, tensor);
        assert_eq!(index.get(&tensor.name), Some(entry));
        if let Some(data) = data {
            view(&entry, tensor, data);
        }
    }
    for (one, other) in index.iter().zip(index.iter().skip(1)) {
        let said = [one, other].map(|entry| entry.name().to_string());
        assert_eq!(one.name().cmp(&other.name()), said[0].cmp(&said[1]), "{said:?}");
        assert_eq!(one.name() == other.name(), said[0] == said[1], "{said:?}");
    }
}

/// An index made again from its proof answers as it did; made from a proof and slots of other headers it answers
/// something, and soon.
///
/// # Panics
/// When it does not.
pub fn again(bytes: &[u8], file_len: u64, model: &Model) {
    let header = header_of(bytes, file_len, &Options::default()).expect("the twin accepts");
    let braces = header.text().iter().filter(|byte| **byte == b'{').count();
    assert_eq!(header.slots_bound(), (braces - 1).min(header.text().len() / 49));
    assert!(header.slots_bound() >= model.tensors.len());
    let mut slots = vec![Slot::EMPTY; model.tensors.len()];
    let Ok(index) = Index::build(header, &mut slots) else { return };
    let proof = index.proof();
    let expected = content_of_index(&index);
    assert_eq!(content_of_index(&Index::again(*header.frame(), header.text(), &slots, proof)), expected);
    let names: Vec<&str> = model.tensors.iter().map(|tensor| tensor.name.as_str()).chain(["b", ""]).collect();
    let (other_bytes, other_len) = other_header(recipe::digest(bytes));
    let other = header_of(&other_bytes, other_len, &Options::default()).expect("a good frame");
    let mut other_slots = vec![Slot::EMPTY; 30];
    let other_proof = Index::build(other, &mut other_slots).expect("a good header").proof();
    let half = header.text().get(..header.text().len() / 2).unwrap_or_default();
    for (text, slots, proof) in [
        (header.text(), &other_slots, proof),
        (header.text(), &slots, other_proof),
        (header.text(), &other_slots, other_proof),
        (other.text(), &slots, proof),
        (other.text(), &other_slots, proof),
        (half, &slots, proof),
    ] {
        let index = Index::again(*header.frame(), text, slots, proof);
        let found = names.iter().filter(|name| index.get(name).is_some()).count();
        assert!(found <= names.len());
        assert!(index.iter().count() <= slots.len());
        index.iter_as_written().for_each(|entry| drop((entry.shape().rank(), entry.name().to_string())));
        let pairs = index.metadata().map_or(0, Iterator::count);
        assert!(index.len() <= slots.len() && pairs <= text.len() && index.notes().count() <= 7);
    }
}

/// A good header whose names are found in one of the three ways.
fn other_header(choice: u64) -> (Vec<u8>, u64) {
    let crowd = recipe::NAMES.iter().take(30).map(|name| recipe::entry(name, 0, 0));
    let mut entries = match choice % 3 {
        0 => {
            vec![recipe::entry("b", 0, 1), recipe::entry("a", 1, 0), r#""__metadata__":{"k":"v"}"#.to_owned()]
        }
        1 => Vec::new(),
        _ => crowd.collect(),
    };
    entries.reverse();
    let bytes = recipe::front(format!("{{{}}}", entries.join(",")).as_bytes());
    let file_len = bytes.len() as u64 + u64::from(choice.is_multiple_of(3));
    (bytes, file_len)
}

fn name(name: JsonStr<'_>, tensor: &Tensor, bytes: &[u8]) {
    let said = tensor.name.as_str();
    assert!(name == said && name == *said, "{name:?} is not {said:?}");
    assert_eq!(name.to_string(), said);
    let longer = format!("{said}x");
    assert!(name != longer.as_str() && name != *longer.as_str(), "{name:?} is {longer:?}");
    assert!(name.chars().eq(said.chars()) && name.bytes().eq(said.bytes()), "{name:?} is not {said:?}");
    let spelled = name.as_spelled();
    let begin = usize::try_from(tensor.name_at).expect("a header in memory") + 1;
    assert_eq!(
        bytes.get(begin - 1..=begin + spelled.len()),
        Some([b"\"", spelled, b"\""].concat().as_slice())
    );
    assert_eq!(name.is_escaped(), spelled.contains(&b'\\'));
    assert_eq!(name.as_plain(), Some(said).filter(|_| !name.is_escaped()));
    assert_eq!(
        format!("{name:?}"),
        format!("\"{}\"", said.chars().flat_map(char::escape_debug).collect::<String>())
    );
}

fn shape(entry: &Entry<'_>, tensor: &Tensor) {
    let shape = entry.shape();
    assert!(shape.dims().eq(tensor.shape.iter().copied()), "{shape} is not {:?}", tensor.shape);
    assert_eq!(shape.rank(), tensor.shape.len() as u64);
    assert_eq!(shape.elements(), Some(tensor.elements));
    assert_eq!(shape.to_string(), format!("{:?}", tensor.shape));
    let bits = u128::from(tensor.elements) * u128::from(entry.dtype().bits());
    assert_eq!(u128::from(entry.span().len().value()) * 8, bits);
    assert_eq!(entry.dtype().total_bits(tensor.elements).map(u128::from), Some(bits));
}

fn view(entry: &Entry<'_>, tensor: &Tensor, data: &[u8]) {
    let end = usize::try_from(tensor.end).expect("the data is in memory");
    let begin = usize::try_from(tensor.begin).expect("the data is in memory");
    let view = entry.view(data).expect("the data is there");
    assert_eq!(view.bytes(), &data[begin..end]);
    assert_eq!((view.dtype(), view.shape()), (entry.dtype(), entry.shape()));
    if let Some(short) = end.checked_sub(1) {
        assert!(entry.view(&data[..short]).is_none());
    }
    typed::<u8>(&view);
    typed::<i8>(&view);
    typed::<u16>(&view);
    typed::<i16>(&view);
    typed::<u32>(&view);
    typed::<i32>(&view);
    typed::<f32>(&view);
    typed::<[f32; 2]>(&view);
    typed::<u64>(&view);
    typed::<i64>(&view);
    typed::<f64>(&view);
}

/// Elements are lent exactly where the type is one for the dtype and the bytes are aligned for it.
fn typed<T: Element>(view: &TensorView<'_, '_>) {
    let known = T::DTYPES.contains(&view.dtype());
    let aligned = view.bytes().is_empty() || view.bytes().as_ptr().cast::<T>().is_aligned();
    match view.elements::<T>() {
        Ok(elements) => {
            assert!(known && aligned);
            assert!(elements.is_empty() || elements.as_ptr().cast() == view.bytes().as_ptr());
            assert_eq!(size_of_val(elements), view.bytes().len());
        }
        Err(ViewError::Dtype { found }) => assert!(!known && found == view.dtype()),
        Err(ViewError::Misaligned { expected }) => assert!(known && !aligned && expected == align_of::<T>()),
        Err(ViewError::Endian) => assert_ne!(1_u16.to_le(), 1, "the machine is little-endian"),
    }
}
