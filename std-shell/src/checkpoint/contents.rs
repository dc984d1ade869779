//! A state becomes the files of its directory, as pieces of memory in the order in which they will be written.
//!
//! Whatever a reader would refuse is refused here, before anything is written.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Display;

use safestep_core::checkpoint::{
    Digest, FileRecord, MANIFEST_NAME, ManifestDraft, OPTIMIZER_STATE_NONE, Sha256, check_optimizer_state,
};
use safestep_core::{Layout, TensorSpec};

use super::names::{CONFIG, MODEL, OPTIMIZER, OPTIMIZER_STATE, TRAINER_STATE};
use super::state::{State, Tensor};

/// A file to be written.
pub(crate) struct Content<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) pieces: Vec<Cow<'a, [u8]>>,
    pub(crate) len_bytes: u64,
}

impl<'a> Content<'a> {
    pub(crate) fn new(name: impl Into<Cow<'a, str>>, pieces: Vec<Cow<'a, [u8]>>) -> Self {
        let lengths = pieces.iter().map(|piece| u64::try_from(piece.len()).unwrap_or(u64::MAX));
        Self { name: name.into(), len_bytes: lengths.fold(0, u64::saturating_add), pieces }
    }
}

/// The files of a state, by name, without the manifest; or why they are not written.
pub(crate) fn of<'a>(state: &State<'a>) -> Result<Vec<Content<'a>>, String> {
    let mut trainer = state.trainer;
    if let Some(config) = state.config {
        let found = Sha256::of(config);
        let expected = *trainer.config_sha256.get_or_insert(found);
        if expected != found {
            return Err(format!("expected the config with digest {expected}, found one with {found}"));
        }
    }
    let mut text = Vec::new();
    let written = trainer.write(|piece| {
        text.extend_from_slice(piece);
        Ok::<(), std::convert::Infallible>(())
    });
    let Ok(()) = written.map_err(|refusal| about(TRAINER_STATE, refusal))?;
    let metadata = [(OPTIMIZER_STATE, optimizer_state(state).map_err(|refusal| about(OPTIMIZER, refusal))?)];
    let mut contents = vec![
        Content::new(MODEL, tensors(state.model, &[]).map_err(|refusal| about(MODEL, refusal))?),
        Content::new(
            OPTIMIZER,
            tensors(state.optimizer.arrays, &metadata).map_err(|refusal| about(OPTIMIZER, refusal))?,
        ),
        Content::new(TRAINER_STATE, vec![text.into()]),
    ];
    contents.extend(state.config.map(|config| Content::new(CONFIG, vec![config.into()])));
    contents.extend(state.files.iter().map(|(name, bytes)| Content::new(*name, vec![(*bytes).into()])));
    contents.sort_by(|one, other| one.name.cmp(&other.name));
    // Names are judged with made-up digests: the true ones come with the bytes.
    manifest(trainer.step, &contents, &vec![Digest::new([0; 32]); contents.len()])?;
    match contents.iter().find(|content| content.name.len() > NAME_BYTES_MAX) {
        Some(content) => Err(format!("expected the name of a file, found {:?}", content.name)),
        None => Ok(contents),
    }
}

/// The text of the manifest.
pub(crate) fn manifest(
    step: u64,
    contents: &[Content<'_>],
    digests: &[Digest],
) -> Result<Content<'static>, String> {
    let records = contents.iter().zip(digests).map(|(content, sha256)| FileRecord {
        name: &content.name,
        sha256: *sha256,
        size: content.len_bytes,
    });
    let records: Vec<FileRecord<'_>> = records.collect();
    let draft = ManifestDraft::of(step, &records).map_err(|refusal| refusal.to_string())?;
    let mut text = Vec::new();
    let Ok(()) = draft.write(|piece| {
        text.extend_from_slice(piece);
        Ok::<(), std::convert::Infallible>(())
    });
    Ok(Content::new(MANIFEST_NAME, vec![text.into()]))
}

/// The rest of the optimizer's state; who has none need not know how that is spelled.
fn optimizer_state<'a>(state: &State<'a>) -> Result<&'a str, String> {
    match state.optimizer.state {
        "" => Ok(OPTIMIZER_STATE_NONE),
        text => check_optimizer_state(text.as_bytes())
            .map(|()| text)
            .map_err(|refusal| about(OPTIMIZER_STATE, refusal)),
    }
}

/// A model file: its header, then each tensor's bytes in the order of the layout.
fn tensors<'a>(tensors: &[Tensor<'a>], metadata: &[(&str, &str)]) -> Result<Vec<Cow<'a, [u8]>>, String> {
    let mut specs: Vec<TensorSpec<'_>> =
        tensors.iter().map(|tensor| TensorSpec::new(tensor.name, tensor.dtype, tensor.shape)).collect();
    let mut metadata = metadata.to_vec();
    let pairs = if metadata.is_empty() { None } else { Some(metadata.as_mut_slice()) };
    let layout = Layout::plan(&mut specs, pairs).map_err(|refusal| refusal.to_string())?;
    let bytes: HashMap<&str, &'a [u8]> = tensors.iter().map(|tensor| (tensor.name, tensor.bytes)).collect();
    let mut header = Vec::new();
    let Ok(()) = layout.write_header(|piece| {
        header.extend_from_slice(piece);
        Ok::<(), std::convert::Infallible>(())
    });
    let mut pieces = vec![Cow::Owned(header)];
    for spec in layout.tensors() {
        let (expected, bytes) =
            (spec.span().len().value(), bytes.get(spec.name()).copied().unwrap_or_default());
        if u64::try_from(bytes.len()) != Ok(expected) {
            let (name, found) = (spec.name(), bytes.len());
            return Err(format!("W5: expected {expected} bytes for {name:?}, found {found}"));
        }
        pieces.push(Cow::Borrowed(bytes));
    }
    Ok(pieces)
}

fn about(name: &str, refusal: impl Display) -> String {
    format!("{name}: {refusal}")
}

/// As long as names can be on the file systems that there are.
const NAME_BYTES_MAX: usize = 255;
