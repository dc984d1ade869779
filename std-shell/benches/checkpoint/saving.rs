//! A state becomes a checkpoint: beside files with the same bytes, written and synced; and beside the reference crate.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use safestep::checkpoint::{SaveOptions, save};
use safestep::{Disk as _, OsDisk};
use safestep_core::checkpoint::Sha256;
use safetensors::tensor::TensorView;

use crate::pairs::{ratio, timed};
use crate::report::Report;
use crate::states::Owned;

/// Runs the section.
pub(crate) fn run(state: &Owned, name: &str, directory: &Path, rounds: usize, report: &mut Report) {
    println!("\nsave {name}");
    let root = directory.join("ckpt");
    let mut step = 0;
    let mut ours = || {
        step += 1;
        saved(state, &root, step)
    };
    let plain = ratio(rounds, &mut ours, || plain(state, directory));
    plain.tell("save", name, "plain write and fsync", report);
    let reference = ratio(rounds, &mut ours, || reference(state, directory));
    reference.tell("save", name, "safetensors, fsync, SHA-256", report);
    let mut promise = |what: &str, wanted: f64, found: f64| {
        report.promise(
            &format!("{name}: {what}"),
            &format!(">= {wanted}"),
            &format!("{found:.2}"),
            found >= wanted,
        );
    };
    promise("save / plain write", 1.1, plain.median);
    promise("save / safetensors", 2.2, reference.median);
}

/// A save with all of the protocol; what it left is gone afterwards.
pub(crate) fn saved(state: &Owned, root: &Path, step: u64) -> Duration {
    let (time, path) = state.at(step, |state| {
        let mut path = None;
        let time = timed(|| {
            let saved = save(&OsDisk, root, state, &SaveOptions::default()).expect("a checkpoint");
            path = Some(saved.path);
        });
        (time, path.expect("a checkpoint"))
    });
    fs::remove_dir_all(path).expect("a directory");
    OsDisk.sync_dir(root).expect("a directory");
    time
}

fn plain(state: &Owned, directory: &Path) -> Duration {
    let files = state.files();
    let paths: Vec<_> = (0..files.len()).map(|place| directory.join(format!("plain-{place}"))).collect();
    let time = timed(|| {
        for (bytes, path) in files.iter().zip(&paths) {
            let mut file = File::create_new(path).expect("a file");
            file.write_all(bytes).expect("room");
            file.sync_all().expect("a disk");
        }
    });
    remove(&paths, directory);
    time
}

fn reference(state: &Owned, directory: &Path) -> Duration {
    let (tensors, files) = (state.tensors(), state.files());
    let paths: Vec<_> = (0..files.len()).map(|place| directory.join(format!("reference-{place}"))).collect();
    let time = timed(|| {
        for ((tensors, bytes), path) in tensors.iter().zip(&files).zip(&paths) {
            let views = tensors.iter().map(|tensor| {
                let shape = tensor.shape.iter().map(|dimension| *dimension as usize).collect();
                let view = TensorView::new(safetensors::Dtype::F32, shape, tensor.bytes).expect("a tensor");
                (tensor.name, view)
            });
            safetensors::serialize_to_file(views, None, path).expect("room");
            File::open(path).and_then(|file| file.sync_all()).expect("a disk");
            // From memory: reading the file again would take longer.
            black_box(Sha256::of(bytes));
        }
    });
    remove(&paths, directory);
    time
}

/// Takes the files away, and lets the disk have done with that.
fn remove(paths: &[std::path::PathBuf], directory: &Path) {
    paths.iter().for_each(|path| fs::remove_file(path).expect("a file"));
    OsDisk.sync_dir(directory).expect("a directory");
}
