//! A checkpoint becomes a snapshot, and a snapshot a checkpoint, without a bit changed, given names and shapes in order.
//!
//! ```text
//! model.safetensors        <name>              F32   <->   weights
//! optimizer.safetensors    <name>.exp_avg      F32   <->   m
//! optimizer.safetensors    <name>.exp_avg_sq   F32   <->   v
//! trainer_state.json       step                      <->   step
//! ```
//!
//! In each region the parameters stand one behind the other, in the order of the list. An array that has no place in a snapshot is
//! an error. What is no array has none either and stays behind: cursor, generator, learning rate, tokens seen, config, the
//! optimizer's JSON text, further files. Both directions go from a map to the disk; there is no second copy in memory.

use std::collections::HashSet;
use std::path::Path;

use safestep_core::Dtype;
use safestep_core::checkpoint::TrainerState;
use safestep_core::snapshot::{Region, Snapshot};

use super::snapshot::{MappedSnapshot, SnapshotWriter};
use crate::checkpoint::{Checkpoint, Optimizer, SaveOptions, Saved, State, Tensor, save};
use crate::disk::Disk;
use crate::error::{BadArrays, Cause, Error};
use crate::model::Model;

/// A parameter's name and dimensions, outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its dimensions.
    pub shape: Vec<u64>,
}

/// The parameters of a checkpoint in the order of the data in its model file: for one that is all F32, by the bytes of the names.
pub fn parameters_of(checkpoint: &Checkpoint) -> Vec<Parameter> {
    let entries = checkpoint.model.index().iter();
    let parameters = entries
        .map(|entry| Parameter { name: entry.name().to_string(), shape: entry.shape().dims().collect() });
    parameters.collect()
}

/// Writes a checkpoint's weights, moments and step as a snapshot.
///
/// # Errors
/// Before anything is written: [`Cause::BadArrays`] if an array is missing, has no place, is not F32, or has another shape than
/// `order` says; [`Cause::Snapshot`] for a step or a count beyond 2^31 - 1. Otherwise as [`SnapshotWriter`].
///
/// ```
/// use safestep::OsDisk;
/// use safestep::checkpoint::load;
/// use safestep::run::{
///     MappedSnapshot, Parameter, export_snapshot, import_snapshot, parameters_of, write_snapshot,
/// };
///
/// let directory = tempfile::tempdir()?;
/// let [one, two, root] = ["one.bin", "two.bin", "run/ckpt"].map(|name| directory.path().join(name));
/// write_snapshot(&OsDisk, &one, 50, [&[1.0, -0.0, 3.0], &[0.1, 0.2, f32::NAN], &[1e-40, 0.0, 9.0]])?;
/// let parameter = |name: &str, shape: &[u64]| Parameter { name: name.into(), shape: shape.into() };
/// let snapshot = MappedSnapshot::open(&one)?;
/// import_snapshot(&OsDisk, &snapshot, &[parameter("a", &[1]), parameter("b", &[2])], &root)?;
///
/// let checkpoint = load(&OsDisk, &root)?;
/// export_snapshot(&OsDisk, &checkpoint, &parameters_of(&checkpoint), &two)?;
/// assert_eq!(std::fs::read(one)?, std::fs::read(two)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn export_snapshot<D: Disk>(
    disk: &D,
    checkpoint: &Checkpoint,
    order: &[Parameter],
    path: impl AsRef<Path>,
) -> Result<Snapshot, Error> {
    let refused = |cause| Error::new("make a snapshot of", &checkpoint.path, cause);
    let regions = regions_of(checkpoint, order).map_err(|bad| refused(Cause::BadArrays(bad)))?;
    let lengths = regions[0].iter().map(|bytes| bytes.len() as u64 / 4);
    let count = lengths.fold(0, u64::saturating_add);
    let head =
        Snapshot::new(checkpoint.trainer.step, count).map_err(|error| refused(Cause::Snapshot(error)))?;
    let mut writer = SnapshotWriter::create(disk, path, checkpoint.trainer.step, count)?;
    for bytes in regions.iter().flatten() {
        writer.write_bytes(bytes)?;
    }
    writer.finish()?;
    Ok(head)
}

/// Saves a snapshot as the checkpoint of its step under `root`, by [`save()`].
///
/// `trainer_state.json` has the step and nothing else; the optimizer's JSON text is `{}`. `LATEST` names the step then, also
/// if it named a newer one.
///
/// # Errors
/// Before anything is written: [`Cause::BadArrays`] if the list is not as long as the regions, or holds a name twice. Otherwise as
/// [`save()`].
pub fn import_snapshot<D>(
    disk: &D,
    snapshot: &MappedSnapshot,
    parameters: &[Parameter],
    root: &Path,
) -> Result<Saved, Error>
where
    D: Disk + Sync,
    D::File: Send + Sync,
{
    let ends = ends_of(parameters, snapshot.head().parameters().into())
        .map_err(|bad| Error::new("make a checkpoint of", snapshot.path(), Cause::BadArrays(bad)))?;
    let moments: Vec<(Region, String)> = [Region::FirstMoment, Region::SecondMoment]
        .into_iter()
        .flat_map(|region| parameters.iter().map(move |parameter| (region, name_in(region, &parameter.name))))
        .collect();
    let tensor = |(region, name, shape, begin, end): (Region, _, _, usize, usize)| {
        let bytes = snapshot.region(region).bytes().get(begin..end).unwrap_or_default();
        Tensor { name, dtype: Dtype::F32, shape, bytes }
    };
    let begins = || [0].iter().chain(&ends);
    let places = || begins().zip(&ends).zip(parameters).map(|((begin, end), of)| (&*of.shape, *begin, *end));
    let model: Vec<Tensor<'_>> = parameters
        .iter()
        .zip(places())
        .map(|(of, (shape, begin, end))| tensor((Region::Weights, &*of.name, shape, begin, end)))
        .collect();
    let arrays: Vec<Tensor<'_>> = moments
        .iter()
        .zip(places().chain(places()))
        .map(|((region, name), (shape, begin, end))| tensor((*region, name, shape, begin, end)))
        .collect();
    let state = State {
        model: &model,
        optimizer: Optimizer { arrays: &arrays, state: "" },
        trainer: TrainerState { step: snapshot.head().step().into(), ..TrainerState::default() },
        config: None,
        files: &[],
    };
    save(disk, root, &state, &SaveOptions::default())
}

/// The bytes of each region, array by array.
fn regions_of<'c>(checkpoint: &'c Checkpoint, order: &[Parameter]) -> Result<[Vec<&'c [u8]>; 3], BadArrays> {
    let mut regions = [const { Vec::new() }; 3];
    let (mut model, mut optimizer) = (HashSet::new(), HashSet::new());
    for (region, arrays) in Region::ALL.into_iter().zip(&mut regions) {
        let (source, placed) = match region {
            Region::Weights => (&checkpoint.model, &mut model),
            _ => (&checkpoint.optimizer, &mut optimizer),
        };
        for parameter in order {
            let name = name_in(region, &parameter.name);
            arrays.push(array(source, region, &name, &parameter.shape)?);
            if !placed.insert(name) {
                return Err(BadArrays::Twice { name: parameter.name.clone() });
            }
        }
    }
    for (source, region, placed) in
        [(&checkpoint.model, Region::Weights, model), (&checkpoint.optimizer, Region::FirstMoment, optimizer)]
    {
        let mut names = source.index().iter().map(|entry| entry.name().to_string());
        if let Some(name) = names.find(|name| !placed.contains(name)) {
            return Err(BadArrays::Unplaced { name, file: file_of(region) });
        }
    }
    Ok(regions)
}

/// The bytes of an array, if it is what is expected.
fn array<'c>(source: &'c Model, region: Region, name: &str, shape: &[u64]) -> Result<&'c [u8], BadArrays> {
    let missing = || BadArrays::Missing { name: name.into(), file: file_of(region) };
    let entry = source.index().get(name).ok_or_else(missing)?;
    if entry.dtype() != Dtype::F32 {
        return Err(BadArrays::Dtype { name: name.into(), found: entry.dtype() });
    }
    if !entry.shape().dims().eq(shape.iter().copied()) {
        let (expected, found) = (shape.to_vec(), entry.shape().dims().collect());
        return Err(BadArrays::Shape { name: name.into(), expected, found });
    }
    source.view(&entry).map(|view| view.bytes()).ok_or_else(missing)
}

/// Where each parameter ends in a region of `numbers` numbers, in bytes.
fn ends_of(parameters: &[Parameter], numbers: u64) -> Result<Vec<usize>, BadArrays> {
    let (mut ends, mut names, mut end) = (Vec::new(), HashSet::new(), 0_u64);
    let count = |name: Option<&Parameter>, expected| BadArrays::Count {
        name: name.map(|parameter| parameter.name.clone()),
        expected,
        found: numbers,
    };
    for parameter in parameters {
        if !names.insert(&*parameter.name) {
            return Err(BadArrays::Twice { name: parameter.name.clone() });
        }
        end = end.saturating_add(parameter.shape.iter().copied().fold(1, u64::saturating_mul));
        let end_bytes = end.checked_mul(4).and_then(|bytes| usize::try_from(bytes).ok());
        match end_bytes.filter(|_| end <= numbers) {
            Some(end_bytes) => ends.push(end_bytes),
            None => return Err(count(Some(parameter), end)),
        }
    }
    if end == numbers { Ok(ends) } else { Err(count(parameters.last(), end)) }
}

/// What a checkpoint calls a parameter's array in a region.
fn name_in(region: Region, name: &str) -> String {
    match region {
        Region::Weights => name.into(),
        Region::FirstMoment => format!("{name}.exp_avg"),
        Region::SecondMoment => format!("{name}.exp_avg_sq"),
    }
}

fn file_of(region: Region) -> &'static str {
    match region {
        Region::Weights => "model.safetensors",
        _ => "optimizer.safetensors",
    }
}
