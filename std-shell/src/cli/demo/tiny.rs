//! Nothing becomes a small model with a tensor of every dtype. Always the same bytes.

use std::path::Path;

use safestep::{Error, ModelWriter, OsDisk, TensorPlan};
use safestep_core::Dtype;

/// What was written.
pub(super) struct Written {
    pub(super) tensors: usize,
    pub(super) dtypes: usize,
    pub(super) file_bytes: u64,
}

/// One tensor a dtype; the names are such as models have.
const TENSORS: [(&str, Dtype, &[u64]); 22] = [
    ("attention.mask", Dtype::Bool, &[16, 16]),
    ("layers.0.mlp.weight", Dtype::F4, &[16, 64]),
    ("layers.1.mlp.weight", Dtype::F6E2M3, &[16, 64]),
    ("layers.2.mlp.weight", Dtype::F6E3M2, &[16, 64]),
    ("tokenizer.text", Dtype::U8, &[256]),
    ("layers.3.mlp.weight", Dtype::I8, &[16, 64]),
    ("layers.0.attention.weight", Dtype::F8E5M2, &[16, 48]),
    ("layers.1.attention.weight", Dtype::F8E4M3, &[16, 48]),
    ("layers.0.mlp.scale", Dtype::F8E8M0, &[16, 2]),
    ("layers.2.attention.weight", Dtype::F8E4M3Fnuz, &[16, 48]),
    ("layers.3.attention.weight", Dtype::F8E5M2Fnuz, &[16, 48]),
    ("audio.samples", Dtype::I16, &[1, 160]),
    ("tokenizer.merges", Dtype::U16, &[64, 2]),
    ("head.weight", Dtype::F16, &[64, 16]),
    ("embedding.weight", Dtype::Bf16, &[64, 16]),
    ("positions", Dtype::I32, &[128]),
    ("tokenizer.ranks", Dtype::U32, &[64]),
    ("norm.weight", Dtype::F32, &[16]),
    ("rotary.frequencies", Dtype::C64, &[8]),
    ("optimizer.learning_rate", Dtype::F64, &[]),
    ("step", Dtype::I64, &[]),
    ("random.state", Dtype::U64, &[2]),
];

/// Writes it, a few bytes at a time, as a training run would.
pub(super) fn write(path: &Path) -> Result<Written, Error> {
    let plan =
        TENSORS.map(|(name, dtype, shape)| TensorPlan { name: name.into(), dtype, shape: shape.into() });
    let metadata = [("format".to_string(), "safestep demo".to_string())];
    let mut writer = ModelWriter::create(&OsDisk, path, &plan, Some(&metadata))?;
    let file_bytes = writer.file_len_bytes();
    let mut byte = 0_u8;
    while let Some(tensor) = writer.next_tensor().and_then(|place| plan.get(place)) {
        byte = byte.wrapping_mul(5).wrapping_add(7);
        let value = if tensor.dtype == Dtype::Bool { byte >> 7 } else { byte };
        writer.write(&[value])?;
    }
    writer.finish()?;
    let dtypes = Dtype::ALL.iter().filter(|dtype| plan.iter().any(|tensor| tensor.dtype == **dtype)).count();
    Ok(Written { tensors: plan.len(), dtypes, file_bytes })
}
