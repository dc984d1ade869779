//! Turns a number of tensors and an order into a header as a real model has it.
//!
//! Up to 300 tensors the model is a dense transformer (Qwen2 0.5B's shapes: weights, biases, norms), above it a mixture of
//! experts (Qwen3 30B's shapes, 64 experts a layer, from 10 000 tensors on 256). Layers follow until the number is reached,
//! so the last may be cut short.

use std::cmp::Reverse;

use super::Sample;
use super::random::Random;
use super::write::{Entry, Layout, pack, sample};
use crate::twin::dtypes;

/// The numbers of tensors that the benchmark looks at.
pub const COUNTS: [usize; 4] = [1, 300, 5_000, 100_000];

/// How the entries of an honest header are ordered and spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// BF16 alone, by name, as the reference writes it.
    Writer,
    /// BF16, FP8 experts, F32 norms and I64 buffers, by dtype and name, as the reference writes it.
    Mixed,
    /// BF16 alone, header and data in the model's order: layer 2 before layer 10.
    Model,
    /// BF16 alone, the data by name, the header in no order.
    Shuffled,
    /// As `Writer`, pretty-printed.
    Pretty,
}

impl Order {
    /// Every order.
    pub const ALL: [Self; 5] = [Self::Writer, Self::Mixed, Self::Model, Self::Shuffled, Self::Pretty];
}

/// The header of a model of so many tensors, at least one.
#[must_use]
pub fn honest(tensors: usize, order: Order) -> Sample {
    let mut entries = model(tensors, order == Order::Mixed);
    if order != Order::Model {
        entries.sort_by(|left, right| writers_key(left).cmp(&writers_key(right)));
    }
    pack(&mut entries);
    if order == Order::Shuffled {
        Random::new(tensors as u64).shuffle(&mut entries);
    }
    let layout = if order == Order::Pretty { Layout::Pretty } else { Layout::Compact };
    sample(&format!("{tensors} {order:?}").to_lowercase(), &entries, layout)
}

fn writers_key(entry: &Entry) -> (Reverse<Option<usize>>, &[u8]) {
    (Reverse(dtypes::rank(entry.dtype)), entry.name.as_bytes())
}

/// The tensors of a model in the order in which its code declares them.
fn model(tensors: usize, mixed: bool) -> Vec<Entry> {
    let experts = if tensors <= 300 { 0 } else { [64, 256][usize::from(tensors >= 10_000)] };
    let hidden = if experts == 0 { 896 } else { 2048 };
    let outer = [
        ("model.embed_tokens.weight", vec![151_936, hidden]),
        ("model.norm.weight", vec![hidden]),
        ("lm_head.weight", vec![151_936, hidden]),
    ];
    let mut parts: Vec<(String, Vec<u64>)> = Vec::new();
    let in_layers = tensors.saturating_sub(outer.len());
    for number in 0.. {
        if parts.len() >= in_layers {
            break;
        }
        let layer = layer(hidden, experts).into_iter();
        parts.extend(layer.map(|(part, shape)| (format!("model.layers.{number}.{part}"), shape)));
    }
    parts.truncate(in_layers);
    let mut outer = outer.into_iter().map(|(name, shape)| (name.to_owned(), shape));
    parts.splice(0..0, outer.next());
    parts.extend(outer.take(tensors - parts.len()));
    let entry = |(name, shape): (String, _)| {
        let dtype = if mixed { mixed_dtype(&name) } else { "BF16" };
        Entry { name, dtype, shape, data_offsets: (0, 0) }
    };
    parts.into_iter().map(entry).collect()
}

/// The tensors of one layer: attention with few key heads, then a dense or a sparse block.
fn layer(hidden: u64, experts: u64) -> Vec<(String, Vec<u64>)> {
    let keys = if experts == 0 { 128 } else { 512 };
    let (inner, expert_inner) = (4864, 768);
    let mut parts = vec![
        ("input_layernorm.weight".to_owned(), vec![hidden]),
        ("self_attn.q_proj.weight".to_owned(), vec![hidden, hidden]),
        ("self_attn.q_proj.bias".to_owned(), vec![hidden]),
        ("self_attn.k_proj.weight".to_owned(), vec![keys, hidden]),
        ("self_attn.k_proj.bias".to_owned(), vec![keys]),
        ("self_attn.v_proj.weight".to_owned(), vec![keys, hidden]),
        ("self_attn.v_proj.bias".to_owned(), vec![keys]),
        ("self_attn.o_proj.weight".to_owned(), vec![hidden, hidden]),
        ("post_attention_layernorm.weight".to_owned(), vec![hidden]),
    ];
    if experts == 0 {
        parts.push(("mlp.gate_proj.weight".to_owned(), vec![inner, hidden]));
        parts.push(("mlp.up_proj.weight".to_owned(), vec![inner, hidden]));
        parts.push(("mlp.down_proj.weight".to_owned(), vec![hidden, inner]));
        return parts;
    }
    parts.push(("mlp.gate.weight".to_owned(), vec![experts, hidden]));
    parts.push(("mlp.gate.tokens_per_expert".to_owned(), vec![experts]));
    for expert in 0..experts {
        parts.push((format!("mlp.experts.{expert}.gate_proj.weight"), vec![expert_inner, hidden]));
        parts.push((format!("mlp.experts.{expert}.up_proj.weight"), vec![expert_inner, hidden]));
        parts.push((format!("mlp.experts.{expert}.down_proj.weight"), vec![hidden, expert_inner]));
    }
    parts
}

/// As FP8 checkpoints have it: what is small stays wide.
fn mixed_dtype(name: &str) -> &'static str {
    match name {
        _ if name.contains("norm") => "F32",
        _ if name.contains("tokens_per_expert") || name.contains("k_proj.bias") => "I64",
        _ if name.contains("experts.") || name.contains("mlp.down_proj") => "F8_E4M3",
        _ if name.contains("v_proj.bias") => "F16",
        _ => "BF16",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{reference, twin};

    const MIXED: [&str; 5] = ["BF16", "F32", "F8_E4M3", "I64", "F16"];

    #[test]
    fn honest_headers_are_good_and_in_their_order() {
        for count in [1, 2, 3, 4, 300, 5_000] {
            for order in Order::ALL {
                let sample = honest(count, order);
                let options = twin::Options::default();
                let verdict = twin::judge(&sample.header, sample.file_len(), &options);
                reference::check(&sample.header, sample.file_len(), &verdict);
                let model = verdict.unwrap();
                assert_eq!(model.tensors.len(), count, "{}", sample.name);
                let noted = model.notes.iter().any(|note| note.id == "note.order");
                let in_order = matches!(order, Order::Writer | Order::Mixed | Order::Pretty);
                assert!(!(noted && in_order), "{}", sample.name);
                assert!(noted || in_order || count < 5, "{}", sample.name);
                assert_eq!(model.notes.len(), usize::from(noted), "{}", sample.name);
            }
        }
    }

    #[test]
    fn the_writers_order_is_the_reference_writers() {
        for order in [Order::Writer, Order::Mixed] {
            let sample = honest(300, order);
            let text = std::str::from_utf8(&sample.header[8..]).unwrap();
            let metadata: safetensors::tensor::Metadata = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&metadata).unwrap(), text.trim_end());
        }
        for (count, dtype) in [300, 5_000].into_iter().flat_map(|count| MIXED.map(|dtype| (count, dtype))) {
            let sample = honest(count, Order::Mixed);
            let text = std::str::from_utf8(&sample.header[8..]).unwrap();
            assert!(text.contains(&format!("\"{dtype}\"")), "{dtype} in {count}");
        }
    }
}
