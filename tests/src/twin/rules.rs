//! Turns the tree of a header into the first broken rule of R2.duplicate to R5.surplus.
//!
//! One function a rule, in the order of the rule table. Each looks at the whole tree, collects every break of its own
//! rule, and answers with the one that stands first in the file. It may take for granted that the rules before its
//! own hold.

use std::collections::HashSet;

use super::json::{Member, Node, Value};
use super::{Break, Options, Tensor, dtypes};

/// The one key of the top level that names no tensor.
pub(super) const METADATA: &str = "__metadata__";

type Rule = fn(&[Member]) -> Result<(), Break>;

/// The rules that come before R4.dtype.
pub(super) const BEFORE_DTYPES: [Rule; 3] = [duplicate, metadata, field];

/// The rules that come after R4.dtype and before R5.
pub(super) const AFTER_DTYPES: [Rule; 5] = [shape, data_offsets, overflow, bits, size];

fn first(breaks: Vec<Break>) -> Result<(), Break> {
    match breaks.into_iter().min_by_key(|found| found.offset) {
        Some(found) => Err(found),
        None => Ok(()),
    }
}

fn broken(rule: &'static str, offset: u64, tensor: &str) -> Break {
    Break { rule, offset, tensor: Some(tensor.to_owned()) }
}

fn entries(top: &[Member]) -> Vec<&Member> {
    top.iter().filter(|member| member.key != METADATA).collect()
}

/// R2.duplicate: at the top level, in the metadata, in each entry; not deeper.
fn duplicate(top: &[Member]) -> Result<(), Break> {
    let mut breaks = Vec::new();
    for member in repeated(top) {
        breaks.push(broken("R2.duplicate", member.key_at, &member.key));
    }
    for scope in top {
        for member in repeated(scope.node.members()) {
            let name = if scope.key == METADATA { &member.key } else { &scope.key };
            breaks.push(broken("R2.duplicate", member.key_at, name));
        }
    }
    first(breaks)
}

/// The members whose key an earlier one has.
fn repeated(members: &[Member]) -> Vec<&Member> {
    let mut seen = HashSet::new();
    members.iter().filter(|member| !seen.insert(&member.key)).collect()
}

/// R3.metadata
fn metadata(top: &[Member]) -> Result<(), Break> {
    let mut breaks = Vec::new();
    for member in top.iter().filter(|member| member.key == METADATA) {
        match &member.node.value {
            Value::Null => {}
            Value::Object(pairs) => {
                for pair in pairs.iter().filter(|pair| pair.node.text().is_none()) {
                    breaks.push(broken("R3.metadata", pair.node.begin, &pair.key));
                }
            }
            _ => breaks.push(broken("R3.metadata", member.node.begin, METADATA)),
        }
    }
    first(breaks)
}

/// R4.field
fn field(top: &[Member]) -> Result<(), Break> {
    const FIELDS: [&str; 3] = ["dtype", "shape", "data_offsets"];
    let mut breaks = Vec::new();
    for entry in entries(top) {
        let Value::Object(fields) = &entry.node.value else {
            breaks.push(broken("R4.field", entry.node.begin, &entry.key));
            continue;
        };
        for field in fields.iter().filter(|field| !FIELDS.contains(&field.key.as_str())) {
            breaks.push(broken("R4.field", field.key_at, &entry.key));
        }
        if FIELDS.iter().any(|name| fields.iter().all(|field| field.key != *name)) {
            let closing_brace = entry.node.end - 1;
            breaks.push(broken("R4.field", closing_brace, &entry.key));
        }
    }
    first(breaks)
}

fn field_of<'a>(entry: &'a Member, name: &str) -> &'a Node {
    let member = entry.node.members().iter().find(|field| field.key == name);
    &member.expect("R4.field holds").node
}

/// R4.dtype
pub(super) fn dtype(top: &[Member], options: &Options) -> Result<(), Break> {
    let mut breaks = Vec::new();
    for entry in entries(top) {
        let node = field_of(entry, "dtype");
        let good = node.text().is_some_and(|name| {
            let known = dtypes::bits(name).is_some();
            let allowed = options.dtypes.as_ref().is_none_or(|list| list.iter().any(|one| one == name));
            known && allowed
        });
        if !good {
            breaks.push(broken("R4.dtype", node.begin, &entry.key));
        }
    }
    first(breaks)
}

/// R4.shape
fn shape(top: &[Member]) -> Result<(), Break> {
    let mut breaks = Vec::new();
    for entry in entries(top) {
        let node = field_of(entry, "shape");
        let Some(elements) = node.elements() else {
            breaks.push(broken("R4.shape", node.begin, &entry.key));
            continue;
        };
        for element in elements.iter().filter(|element| element.integer().is_none()) {
            breaks.push(broken("R4.shape", element.begin, &entry.key));
        }
    }
    first(breaks)
}

/// R4.offsets
fn data_offsets(top: &[Member]) -> Result<(), Break> {
    let mut breaks = Vec::new();
    for entry in entries(top) {
        if let Some(offset) = bad_offsets(field_of(entry, "data_offsets")) {
            breaks.push(broken("R4.offsets", offset, &entry.key));
        }
    }
    first(breaks)
}

/// Where a `data_offsets` stops being two integers of which the second is not the smaller.
fn bad_offsets(node: &Node) -> Option<u64> {
    let Some(elements) = node.elements() else { return Some(node.begin) };
    let closing_bracket = node.end - 1;
    let Some(first) = elements.first() else { return Some(closing_bracket) };
    let Some(begin) = first.integer() else { return Some(first.begin) };
    let Some(second) = elements.get(1) else { return Some(closing_bracket) };
    let Some(end) = second.integer() else { return Some(second.begin) };
    if begin > end {
        return Some(second.begin);
    }
    elements.get(2).map(|third| third.begin)
}

fn bits_of(entry: &Member) -> u64 {
    let name = field_of(entry, "dtype").text().expect("R4.dtype holds");
    dtypes::bits(name).expect("R4.dtype holds")
}

fn shape_of(entry: &Member) -> Vec<u64> {
    let elements = field_of(entry, "shape").elements().expect("R4.shape holds");
    elements.iter().map(|element| element.integer().expect("R4.shape holds")).collect()
}

fn data_offsets_of(entry: &Member) -> (u64, u64) {
    let elements = field_of(entry, "data_offsets").elements().expect("R4.offsets holds");
    let integer = |place: usize| elements[place].integer().expect("R4.offsets holds");
    (integer(0), integer(1))
}

/// The elements of a shape, and their bits; `None` if either needs more than 64 bits on the way.
fn elements_and_bits(shape: &[u64], bits: u64) -> Option<(u64, u64)> {
    let mut product: u128 = 1;
    for size in shape {
        product *= u128::from(*size);
        if product > u128::from(u64::MAX) {
            return None;
        }
    }
    let total_bits = product * u128::from(bits);
    Some((u64::try_from(product).ok()?, u64::try_from(total_bits).ok()?))
}

/// R4.overflow
fn overflow(top: &[Member]) -> Result<(), Break> {
    let mut breaks = Vec::new();
    for entry in entries(top) {
        if elements_and_bits(&shape_of(entry), bits_of(entry)).is_none() {
            breaks.push(broken("R4.overflow", field_of(entry, "shape").begin, &entry.key));
        }
    }
    first(breaks)
}

fn total_bits_of(entry: &Member) -> u64 {
    elements_and_bits(&shape_of(entry), bits_of(entry)).expect("R4.overflow holds").1
}

/// R4.bits
fn bits(top: &[Member]) -> Result<(), Break> {
    let mut breaks = Vec::new();
    for entry in entries(top) {
        if !total_bits_of(entry).is_multiple_of(8) {
            breaks.push(broken("R4.bits", field_of(entry, "shape").begin, &entry.key));
        }
    }
    first(breaks)
}

/// R4.size
fn size(top: &[Member]) -> Result<(), Break> {
    let mut breaks = Vec::new();
    for entry in entries(top) {
        let (begin, end) = data_offsets_of(entry);
        if end - begin != total_bits_of(entry) / 8 {
            breaks.push(broken("R4.size", field_of(entry, "data_offsets").begin, &entry.key));
        }
    }
    first(breaks)
}

/// The tensors of a header that passed R4, in the header's order.
pub(super) fn tensors(top: &[Member]) -> Vec<Tensor> {
    let mut tensors = Vec::new();
    for (place, entry) in entries(top).into_iter().enumerate() {
        let (begin, end) = data_offsets_of(entry);
        let shape = shape_of(entry);
        let (elements, _) = elements_and_bits(&shape, bits_of(entry)).expect("R4.overflow holds");
        tensors.push(Tensor {
            name: entry.key.clone(),
            dtype: field_of(entry, "dtype").text().expect("R4.dtype holds").to_owned(),
            bits: bits_of(entry),
            shape,
            elements,
            begin,
            end,
            place: place as u64,
            name_at: entry.key_at,
            shape_at: field_of(entry, "shape").begin,
            data_offsets_at: field_of(entry, "data_offsets").begin,
        });
    }
    tensors
}

/// R5.gap and R5.overlap: whichever comes first in data order.
pub(super) fn tiling(in_data_order: &[Tensor]) -> Result<(), Break> {
    let mut expected = 0;
    for tensor in in_data_order {
        if tensor.begin > expected {
            return Err(broken("R5.gap", tensor.data_offsets_at, &tensor.name));
        }
        if tensor.begin < expected {
            return Err(broken("R5.overlap", tensor.data_offsets_at, &tensor.name));
        }
        expected = tensor.end;
    }
    Ok(())
}

/// R5.past_end
pub(super) fn past_end(in_data_order: &[Tensor], header_end: u64, file_len: u64) -> Result<(), Break> {
    match in_data_order.last() {
        Some(last) if last.end > file_len - header_end => Err(broken("R5.past_end", file_len, &last.name)),
        _ => Ok(()),
    }
}

/// R5.surplus
pub(super) fn surplus(in_data_order: &[Tensor], header_end: u64, file_len: u64) -> Result<(), Break> {
    let end = in_data_order.last().map_or(0, |last| last.end);
    if end < file_len - header_end {
        return Err(Break { rule: "R5.surplus", offset: header_end + end, tensor: None });
    }
    Ok(())
}
