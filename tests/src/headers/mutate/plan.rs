//! Turns random numbers into tensors and metadata that fit together, and the faults of meaning.

use std::cmp::Reverse;

use crate::headers::random::Random;
use crate::twin::dtypes::{self, DTYPES};

/// What a header is to say, before it is spelled.
pub(super) struct Plan {
    /// In the header's order.
    pub(super) tensors: Vec<Tensor>,
    pub(super) metadata: Metadata,
    pub(super) data_len: u64,
}

#[derive(Clone)]
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) dtype: &'static str,
    pub(super) shape: Vec<u64>,
    pub(super) begin: u64,
    pub(super) end: u64,
}

pub(super) enum Metadata {
    Absent,
    Null,
    Pairs(Vec<(String, String)>),
}

/// Names, keys and values: some that need escapes, some that look like words of the format.
pub(super) const TEXTS: [&str; 28] = [
    "",
    "a",
    "b",
    "w",
    "weight",
    "model.layers.0.self_attn.q_proj.weight",
    "model.layers.0.self_attn.q_proj.bias",
    "model.layers.10.mlp.down_proj.weight",
    "é",
    "名前",
    "😀",
    "a\0b",
    "\u{1f}",
    "\u{7f}",
    "\u{85}",
    "\u{a0}",
    "\u{ffff}",
    "\u{10ffff}",
    "\"quoted\"",
    "back\\slash",
    "a/b",
    "line\nfeed\ttab\r\u{8}\u{c}",
    "__metadata",
    "__metadata__ ",
    "dtype",
    "shape",
    "format",
    "a very long name, longer than a machine word, longer than a vector, longer than one line of a cache",
];

impl Plan {
    /// A plan without a fault.
    pub(super) fn draw(random: &mut Random) -> Self {
        let mut tensors: Vec<Tensor> = Vec::new();
        for _ in 0..random.pick(&[0, 1, 1, 2, 2, 3, 3, 4, 5, 6]) {
            let plain = &TEXTS[1..8];
            let texts = if random.chance(60) { plain } else { &TEXTS };
            let mut name = random.pick(texts).to_owned();
            if random.chance(15) {
                name.push_str(random.pick(&TEXTS));
            }
            while tensors.iter().any(|tensor| tensor.name == name) {
                name.push_str(random.pick(&["0", "1", ".", "é", "_"]));
            }
            let (dtype, bits) = draw_dtype(random);
            tensors.push(Tensor { name, dtype, shape: draw_shape(random, bits), begin: 0, end: 0 });
        }
        if random.chance(3)
            && let Some(tensor) = tensors.last_mut()
        {
            tensor.shape = vec![1 << (20 + random.below(30))];
        }
        random.shuffle(&mut tensors);
        if random.chance(55) {
            tensors.sort_by_key(|tensor| (Reverse(dtypes::rank(tensor.dtype)), tensor.name.clone()));
        }
        let mut plan = Self { tensors, metadata: draw_metadata(random), data_len: 0 };
        plan.pack();
        if random.chance(25) {
            random.shuffle(&mut plan.tensors);
        }
        plan
    }

    /// Gives the tensors their places in this order.
    fn pack(&mut self) {
        let mut end = 0;
        for tensor in &mut self.tensors {
            tensor.begin = end;
            end += size(tensor);
            tensor.end = end;
        }
        self.data_len = end;
    }
}

fn draw_dtype(random: &mut Random) -> (&'static str, u64) {
    // The dtypes of less than a byte have rules of their own.
    let sub_byte = &DTYPES[1..4];
    if random.chance(15) { random.pick(sub_byte) } else { random.pick(&DTYPES) }
}

/// A tiny shape that fills whole bytes.
fn draw_shape(random: &mut Random, bits: u64) -> Vec<u64> {
    let rank = random.pick(&[0, 1, 1, 1, 2, 2, 2, 3, 4, 7]);
    let mut shape: Vec<u64> = (0..rank).map(|_| random.pick(&[0, 1, 1, 2, 2, 3, 4, 5])).collect();
    if !(shape.iter().product::<u64>() * bits).is_multiple_of(8) {
        let place = random.below(shape.len() + 1);
        shape.insert(place, 4);
    }
    shape
}

fn draw_metadata(random: &mut Random) -> Metadata {
    match random.below(10) {
        0..4 => Metadata::Absent,
        4 => Metadata::Null,
        _ => {
            let mut pairs: Vec<(String, String)> = Vec::new();
            for _ in 0..random.below(4) {
                let key = random.pick(&TEXTS).to_owned();
                if pairs.iter().all(|(known, _)| *known != key) {
                    pairs.push((key, random.pick(&TEXTS).to_owned()));
                }
            }
            Metadata::Pairs(pairs)
        }
    }
}

/// The bytes of a tensor; the fraction of a byte, and what goes beyond 64 bits, are dropped.
fn size(tensor: &Tensor) -> u64 {
    let bits = dtypes::bits(tensor.dtype).expect("a dtype");
    tensor.shape.iter().fold(1_u64, |product, size| product.wrapping_mul(*size)).wrapping_mul(bits) / 8
}

type Fault = fn(&mut Random, &mut Plan);

/// Gaps, overlaps, sizes, overflows.
pub(super) const FAULTS: &[Fault] = &[
    gap,
    gap,
    overlap,
    overlap,
    same_place,
    zero_size_inside,
    wrong_end,
    begin_after_end,
    half_byte,
    half_byte,
    overflow,
    vast,
    data_len,
    data_len,
    offsets_anywhere,
];

/// A tensor to damage; a plan without one gets one.
fn some_tensor<'a>(random: &mut Random, plan: &'a mut Plan) -> &'a mut Tensor {
    if plan.tensors.is_empty() {
        let (begin, end) = (plan.data_len, plan.data_len + 2);
        plan.tensors.push(Tensor { name: "w".to_owned(), dtype: "U8", shape: vec![2], begin, end });
        plan.data_len = end;
    }
    let place = random.below(plan.tensors.len());
    &mut plan.tensors[place]
}

/// Moves every tensor that begins at `from` or later.
fn shift(plan: &mut Plan, from: u64, by: i64) {
    let add = |offset: u64| offset.saturating_add_signed(by);
    for tensor in plan.tensors.iter_mut().filter(|tensor| tensor.begin >= from) {
        (tensor.begin, tensor.end) = (add(tensor.begin), add(tensor.end));
    }
    plan.data_len = add(plan.data_len);
}

fn gap(random: &mut Random, plan: &mut Plan) {
    let from = some_tensor(random, plan).begin;
    shift(plan, from, random.pick(&[1, 2, 8]));
}

fn overlap(random: &mut Random, plan: &mut Plan) {
    let from = some_tensor(random, plan).begin.max(1);
    shift(plan, from, -1);
}

fn same_place(random: &mut Random, plan: &mut Plan) {
    let mut copy = some_tensor(random, plan).clone();
    copy.name.push('\'');
    plan.tensors.push(copy);
}

fn zero_size_inside(random: &mut Random, plan: &mut Plan) {
    let tensor = some_tensor(random, plan);
    let at = tensor.begin.midpoint(tensor.end);
    let name = format!("{} inside", tensor.name);
    let place = random.below(plan.tensors.len() + 1);
    plan.tensors.insert(place, Tensor { name, dtype: "F32", shape: vec![0], begin: at, end: at });
}

fn wrong_end(random: &mut Random, plan: &mut Plan) {
    let tensor = some_tensor(random, plan);
    tensor.end = match random.below(3) {
        0 => tensor.end.saturating_add(1),
        1 => tensor.end.saturating_sub(1).max(tensor.begin),
        _ => tensor.begin.saturating_add(1 << random.below(64)),
    };
}

fn begin_after_end(random: &mut Random, plan: &mut Plan) {
    let tensor = some_tensor(random, plan);
    tensor.begin = tensor.end.saturating_add(1);
}

fn half_byte(random: &mut Random, plan: &mut Plan) {
    let tensor = some_tensor(random, plan);
    tensor.dtype = random.pick(&["F4", "F6_E2M3", "F6_E3M2"]);
    tensor.shape = random.pick(&[&[][..], &[1], &[3], &[3, 3], &[5, 1, 1]]).to_vec();
    tensor.end = tensor.begin + size(tensor) + random.bits() % 2;
}

fn overflow(random: &mut Random, plan: &mut Plan) {
    const HALF: u64 = 1 << 32;
    let tensor = some_tensor(random, plan);
    let shapes = [
        &[u64::MAX, 2][..],
        &[HALF, HALF],
        &[HALF, HALF, 0],
        &[0, HALF, HALF],
        &[u64::MAX],
        &[1 << 61],
        &[1 << 62, 1],
    ];
    tensor.shape = random.pick(&shapes).to_vec();
    if random.chance(50) {
        tensor.end = tensor.begin.saturating_add(size(tensor));
    }
}

/// Tensors so large that their end comes near 2^64.
fn vast(random: &mut Random, plan: &mut Plan) {
    plan.tensors.truncate(1);
    for number in 0..16 {
        let shape = vec![1 << 60];
        plan.tensors.push(Tensor { name: format!("vast{number}"), dtype: "U8", shape, begin: 0, end: 0 });
    }
    let first = plan.tensors.len() - 16;
    let before: u64 = plan.tensors[..first].iter().map(size).fold(0, u64::wrapping_add);
    let last = plan.tensors.last_mut().expect("sixteen tensors");
    last.shape = vec![(1_u64 << 60).saturating_sub(before).saturating_sub(random.bits() % 3 + 1)];
    let data_len = plan.data_len;
    let mut end = 0_u64;
    for tensor in &mut plan.tensors {
        tensor.begin = end;
        end = end.saturating_add(size(tensor));
        tensor.end = end;
    }
    plan.data_len = data_len.min(super::DATA_BYTES_MAX);
}

fn data_len(random: &mut Random, plan: &mut Plan) {
    plan.data_len = match random.below(4) {
        0 => plan.data_len.saturating_sub(1 + random.bits() % 8),
        1 => 0,
        _ => plan.data_len.saturating_add(1 + random.bits() % 8),
    };
}

fn offsets_anywhere(random: &mut Random, plan: &mut Plan) {
    let tensor = some_tensor(random, plan);
    let size = tensor.end.saturating_sub(tensor.begin);
    tensor.begin = random.bits() >> random.below(64);
    tensor.end = tensor.begin.saturating_add(size);
}
