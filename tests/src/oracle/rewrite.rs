//! Turns an accepted file into the canonical one, and holds that against the reference writer's bytes.

use std::collections::HashMap;

use safestep_core::{Dtype, Layout, LayoutError, TensorSpec};

use super::verdict::Content;
use super::{header, told};
use crate::headers::mutate::DATA_BYTES_MAX;
use crate::twin::{self, Model, Options, Tensor};

/// The whole round trip.
///
/// # Panics
/// When a step goes wrong.
pub fn round_trip(bytes: &[u8], file_len: u64, model: &Model) {
    let tensors: Vec<&Tensor> = model.tensors.iter().collect();
    let Some((canonical, canonical_len)) = canonical(model, &tensors) else { return };
    header(&canonical, canonical_len);
    let verdict = twin::judge(&canonical, canonical_len, &Options::default());
    let again = verdict.as_ref().unwrap_or_else(|found| panic!("the canonical file breaks {found:?}"));
    same_content(model, again);
    // The order in which tensors come does not matter, and what is canonical stays.
    let mut others: Vec<&Tensor> = again.tensors.iter().collect();
    assert_eq!(self::canonical(again, &others).as_ref(), Some(&(canonical.clone(), canonical_len)));
    others.reverse();
    assert_eq!(self::canonical(again, &others).as_ref(), Some(&(canonical.clone(), canonical_len)));
    let metadata_keys = model.metadata.as_ref().map_or(0, Vec::len);
    // The reference writes an empty metadata object of no tensors behind the closing brace, and does not read that.
    let unreadable = model.tensors.is_empty() && model.metadata.as_ref().is_some_and(Vec::is_empty);
    if metadata_keys <= 1 && !unreadable && model.data_len <= DATA_BYTES_MAX {
        let data = bytes.get(bytes.len() - data_in_memory(bytes, file_len, model)..).unwrap_or_default();
        as_the_reference_writes(&canonical, again, model, data);
    }
}

/// How many bytes of data there are in memory: all or none.
fn data_in_memory(bytes: &[u8], file_len: u64, model: &Model) -> usize {
    if bytes.len() as u64 == file_len { usize::try_from(model.data_len).expect("in memory") } else { 0 }
}

/// The canonical front of the file, and its length; `None` if it would be longer than 64 bits can count, or than a
/// header may be.
fn canonical(model: &Model, tensors: &[&Tensor]) -> Option<(Vec<u8>, u64)> {
    let mut specs: Vec<TensorSpec<'_>> = tensors
        .iter()
        .map(|tensor| {
            TensorSpec::new(&tensor.name, Dtype::from_name(&tensor.dtype).expect("a dtype"), &tensor.shape)
        })
        .collect();
    let pairs = model.metadata.as_ref();
    let mut pairs: Option<Vec<(&str, &str)>> =
        pairs.map(|pairs| pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect());
    let layout = match Layout::plan(&mut specs, pairs.as_deref_mut()) {
        Ok(layout) => layout,
        Err(LayoutError::Overflow { .. }) => {
            assert!(model.data_len > u64::MAX / 2, "the data is short enough");
            return None;
        }
        Err(error) => panic!("{error} in a good file"),
    };
    assert_eq!(layout.data_len().value(), model.data_len);
    let front = encoded(&layout);
    assert_eq!(front.len() as u64, 8 + layout.header_len().value());
    assert_eq!(layout.header_len().value() % 8, 0);
    assert_eq!(layout.file_len().value(), front.len() as u64 + model.data_len);
    assert!(layout.tensors().iter().map(|spec| spec.span().begin().value()).is_sorted());
    assert!(layout.tensors().iter().all(|spec| tensors[spec.place()].name == spec.name()));
    Some((front, layout.file_len().value()))
}

/// The front in lent memory: too little says how much is needed; in pieces it is the same, and an error ends them.
fn encoded(layout: &Layout<'_, '_>) -> Vec<u8> {
    let needed = layout.encode(&mut []).expect_err("no memory").value();
    let mut memory = vec![0xAA; usize::try_from(needed).expect("a header in memory") + 1];
    assert_eq!(
        layout
            .encode(&mut memory[..usize::try_from(needed).expect("as before") - 1])
            .err()
            .map(safestep_core::ByteLen::value),
        Some(needed)
    );
    let front = layout.encode(&mut memory).expect("as much as is needed").to_vec();
    let mut pieces = Vec::new();
    let written: Result<(), ()> = layout.write_header(|piece| {
        pieces.extend_from_slice(piece);
        Ok(())
    });
    assert!(written.is_ok() && pieces == front);
    for stop in [1, 2, 7, 20] {
        let mut calls = 0;
        let written = layout.write_header(|_| {
            calls += 1;
            if calls == stop { Err(stop) } else { Ok(()) }
        });
        assert!(written == Err(stop) || (written.is_ok() && calls < stop), "{calls} calls, {written:?}");
    }
    front
}

/// The same tensors and metadata, in the writer's order, with no note but those on names and rows, which stay.
fn same_content(model: &Model, again: &Model) {
    let (before, after) = (told(&Ok(model.clone())), told(&Ok(again.clone())));
    let (Ok(before), Ok(after)) = (before, after) else { unreachable!("both are good") };
    assert_eq!(by_name(&before), by_name(&after));
    let metadata = |content: &Content| {
        content.metadata.clone().map(|mut pairs| {
            pairs.sort();
            pairs
        })
    };
    assert_eq!(metadata(&before), metadata(&after));
    let kept = |content: &Content| -> Vec<(&str, u64)> {
        let kept = content.notes.iter().filter(|note| ["note.name", "note.rows"].contains(&note.id));
        kept.map(|note| (note.id, note.count)).collect()
    };
    assert_eq!(kept(&before), kept(&after));
    assert_eq!(kept(&after).len(), after.notes.len(), "{:?}", after.notes);
}

/// Name, dtype and shape of all tensors.
fn by_name(content: &Content) -> Vec<(&str, &str, &[u64])> {
    let mut tensors: Vec<_> = content
        .tensors
        .iter()
        .map(|tensor| (tensor.name.as_str(), tensor.dtype, tensor.shape.as_slice()))
        .collect();
    tensors.sort_unstable();
    tensors
}

/// The reference's own bytes for the same content: header and data.
fn as_the_reference_writes(canonical: &[u8], again: &Model, model: &Model, data: &[u8]) {
    let made_up = vec![0; usize::try_from(model.data_len).expect("short data")];
    let data = if data.is_empty() { &made_up } else { data };
    let bytes_of = |tensor: &Tensor| {
        let place = |offset: u64| usize::try_from(offset).expect("short data");
        &data[place(tensor.begin)..place(tensor.end)]
    };
    let by_name: HashMap<&str, &Tensor> =
        model.tensors.iter().map(|tensor| (tensor.name.as_str(), tensor)).collect();
    let mut ours = canonical.to_vec();
    for tensor in &again.tensors {
        ours.extend_from_slice(bytes_of(by_name[tensor.name.as_str()]));
    }
    let views = model.tensors.iter().map(|tensor| {
        let dtype: safetensors::Dtype = serde_json::from_value(tensor.dtype.clone().into()).expect("a dtype");
        let shape = tensor.shape.iter().map(|dim| usize::try_from(*dim).expect("64 bits")).collect();
        let view =
            safetensors::tensor::TensorView::new(dtype, shape, bytes_of(tensor)).expect("it was accepted");
        (tensor.name.clone(), view)
    });
    let metadata = model.metadata.as_ref().map(|pairs| pairs.iter().cloned().collect());
    let theirs = safetensors::serialize(views, metadata).expect("it was accepted");
    assert!(ours == theirs, "{} is not {}", String::from_utf8_lossy(&ours), String::from_utf8_lossy(&theirs));
}
