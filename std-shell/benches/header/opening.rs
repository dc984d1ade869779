//! A sparse file of 100 GB becomes a count of the bytes that opening it and viewing one tensor read.

use std::cell::Cell;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use safestep::{Error, FileReader, Mapped, ReadAt};
use safestep_core::{Frame, Index, Limits, Slot};
use safestep_tests::headers::honest::{Order, honest};

use crate::report::{self, Report, Table};

/// A model of this many tensors has 100 GB.
const TENSORS: usize = 32_000;

/// Counts the bytes that are read.
struct Counted<R> {
    reader: R,
    bytes: Cell<u64>,
}

impl<R: ReadAt> ReadAt for Counted<R> {
    fn len_bytes(&self) -> u64 {
        self.reader.len_bytes()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), Error> {
        self.bytes.set(self.bytes.get() + buf.len() as u64);
        self.reader.read_at(offset, buf)
    }
}

/// Runs the section.
pub(crate) fn run(report: &mut Report) {
    let sample = honest(TENSORS, Order::Model);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("model.safetensors");
    let mut file = std::fs::File::create(&path).expect("a file");
    file.write_all(&sample.header).expect("room for a header");
    file.set_len(sample.file_len()).expect("a file system with sparse files");
    drop(file);
    let gigabytes = sample.file_len() / 1_000_000_000;
    let title = format!("opening a file of {gigabytes} GB and viewing one tensor");
    let columns = [("", 8), ("header, with its length", -24), ("bytes read", -12), ("time", -10)];
    let table = Table::new(&title, &columns);
    let front = sample.header.len() as u64;
    let start = Instant::now();
    let read = by_pread(&path).expect("a good file");
    let time = report::time(start.elapsed().as_secs_f64() * 1e9);
    table.row(&["by pread", &front.to_string(), &read.to_string(), &time]);
    let start = Instant::now();
    by_map(&path).expect("a good file");
    let time = report::time(start.elapsed().as_secs_f64() * 1e9);
    table.row(&["by map", &front.to_string(), "", &time]);
    report.promise(
        "opening and viewing one tensor: bytes read",
        &front.to_string(),
        &read.to_string(),
        read == front,
    );
    report.note("opening", "pread", &[("file_bytes", sample.file_len() as f64), ("bytes_read", read as f64)]);
}

const WANTED: &str = "model.layers.7.self_attn.q_proj.weight";

/// Opens, judges and finds a tensor; the answer is how many bytes were read.
fn by_pread(path: &Path) -> Result<u64, Box<dyn std::error::Error>> {
    let file = Counted { reader: FileReader::open(path)?, bytes: Cell::new(0) };
    let mut prefix = [0; 8];
    file.read_at(0, &mut prefix)?;
    let frame = Frame::read(&prefix, file.len_bytes(), Limits::default())?;
    let mut text = vec![0; usize::try_from(frame.header_len().value())?];
    file.read_at(8, &mut text)?;
    let mut slots = vec![Slot::EMPTY; TENSORS];
    let index = Index::build(frame.header(&text)?, &mut slots)?;
    let entry = index.get(WANTED).expect("the tensor");
    assert_eq!(entry.shape().elements(), Some(2048 * 2048));
    Ok(file.bytes.get())
}

/// Opens, judges and views a tensor, whose bytes stay where they are.
fn by_map(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let file = Mapped::open(path)?;
    let frame = Frame::read(&file, file.len_bytes(), Limits::default())?;
    let (front, data) = file.split_at(usize::try_from(frame.header_span().end().value())?);
    let mut slots = vec![Slot::EMPTY; TENSORS];
    let index = Index::build(frame.header(&front[8..])?, &mut slots)?;
    let view = index.get(WANTED).and_then(|entry| entry.view(data)).expect("the tensor");
    assert_eq!(view.bytes().len(), 2048 * 2048 * 2);
    Ok(())
}
