//! A shard of 1 GiB becomes batches, and a table of times: ours beside the widening of one slice, beside the same batches without the
//! check of the vocabulary, beside numpy, and what was promised.
//!
//! `cargo bench -p safestep --bench tokens` runs everything; behind `--`, `--quick` takes a shard of 64 MiB and few samples, `--only
//! batches` or `--only restoring` one part, `--json FILE` writes the numbers down as well,
//! `--strict` ends with exit code 1 if a promise is not met. The peers take turns sample by sample in one process, on one thread,
//! each at its own place in the shard, which is in the page cache. A sample is a batch of 64 windows of 1024: 131 072 ids of i64.
//!
//! numpy is asked by `tokens/numpy_batches.py` right after, with `$PYTHON` or `python3`; where it is not installed, that part is left out.

#[path = "common/options.rs"]
mod options;
#[path = "common/report.rs"]
mod report;

use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use report::{Report, Table};
use safestep::tokens::{
    Cursor, HEADER_BYTES, Pcg32, Prefetch, ShardHeader, ShardKind, Shards, Share, TokenStream, Width,
    Windows, widen,
};
use safestep::{Access, Mapped};

const BATCH: u32 = 64;
const SEQ_LEN: u32 = 1024;
const VOCABULARY: u32 = 50_257;

/// The ids of a batch, inputs and targets.
const IDS: usize = 2 * (BATCH * SEQ_LEN) as usize;

fn main() -> ExitCode {
    let mut run = match options::run(&mut []) {
        Ok(run) => run,
        Err(code) => return code,
    };
    let quick = run.timing.quick;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("shard.bin");
    write_shard(&path, if quick { 64 << 20 } else { 1 << 30 });
    if run.timing.wants("batches") {
        let batch = rates(&path, if quick { 300 } else { 4000 }, &mut run.report);
        numpy(&path, batch, &mut run.report);
    }
    if run.timing.wants("restoring") {
        restoring(&path, &mut run.report);
    }
    run.end()
}

/// A shard of so many bytes of random ids; writing it puts it into the page cache.
fn write_shard(path: &Path, bytes: u64) {
    let ids = u32::try_from(bytes / 2).expect("a shard");
    let mut front = [0; HEADER_BYTES as usize];
    ShardHeader::new(ShardKind::Narrow, ids, VOCABULARY).expect("a shard").encode(&mut front);
    let mut file = File::create(path).expect("a file");
    file.write_all(&front).expect("room");
    let mut generator = Pcg32::seed(1, 1);
    let size = NonZeroU32::new(VOCABULARY).expect("not 0");
    let block: Vec<u8> = (0..1 << 20).flat_map(|_| (generator.below(size) as u16).to_le_bytes()).collect();
    for _ in 0..bytes >> 21 {
        file.write_all(&block).expect("room");
    }
}

fn stream(path: &Path, access: Access) -> TokenStream {
    let shards = Shards::open([path], access).expect("a shard");
    let share = Share::whole(NonZeroU32::new(BATCH).expect("not 0"));
    let seq_len = NonZeroU32::new(SEQ_LEN).expect("not 0");
    TokenStream::new(shards, seq_len, share, Pcg32::seed(42, 54), None).expect("windows")
}

/// A slice of the shard for each sample, one behind the other.
struct Slices<'m> {
    bytes: &'m [u8],
    at: usize,
}

impl<'m> Slices<'m> {
    fn next(&mut self) -> &'m [u8] {
        if self.at + 2 * IDS > self.bytes.len() {
            self.at = 0;
        }
        let slice = &self.bytes[self.at..self.at + 2 * IDS];
        self.at += 2 * IDS;
        slice
    }
}

/// Without any check, as anybody would write it.
#[inline(never)]
fn plain(bytes: &[u8], out: &mut [i64]) {
    for (to, &id) in out.iter_mut().zip(bytes.as_chunks().0) {
        *to = i64::from(u16::from_le_bytes(id));
    }
}

/// The batches of a [`TokenStream`] by map with all that it does, but for the check of the ids.
struct Unchecked<'m> {
    map: &'m Mapped,
    windows: Windows<Vec<u64>>,
    cursor: Cursor,
}

impl<'m> Unchecked<'m> {
    fn new(map: &'m Mapped) -> Self {
        let ids = (map.bytes().len() as u64 - HEADER_BYTES) / 2;
        let seq_len = NonZeroU32::new(SEQ_LEN).expect("not 0");
        let windows = Windows::over(vec![ids], seq_len).expect("windows");
        let cursor = windows.begin(Pcg32::seed(42, 54));
        Self { map, windows, cursor }
    }

    fn next_batch_into(&mut self, inputs: &mut [i64], targets: &mut [i64]) {
        let (mut inputs, mut targets, mut left) = (inputs, targets, u64::from(BATCH));
        while left > 0 {
            let run = self.windows.take(&mut self.cursor, left);
            left -= run.windows;
            let ids = (run.windows * u64::from(SEQ_LEN)) as usize;
            self.map.still_whole().expect("the shard");
            let begin = (HEADER_BYTES + 2 * run.offset) as usize;
            let bytes = &self.map.bytes()[begin..begin + 2 * (ids + 1)];
            let some = (inputs.split_off_mut(..ids), targets.split_off_mut(..ids));
            let (Some(inputs), Some(targets)) = some else { break };
            plain_pair(bytes, inputs, targets);
        }
    }
}

/// All ids but the last, and all but the first, each read once.
#[inline(never)]
fn plain_pair(bytes: &[u8], inputs: &mut [i64], targets: &mut [i64]) {
    let ids = bytes.as_chunks().0;
    let id = |bytes: [u8; 2]| i64::from(u16::from_le_bytes(bytes));
    let len = inputs.len();
    inputs[0] = id(ids[0]);
    for ((input, target), bytes) in inputs[1..].iter_mut().zip(&mut *targets).zip(&ids[1..len]) {
        *input = id(*bytes);
        *target = id(*bytes);
    }
    targets[len - 1] = id(ids[len]);
}

/// Times all of it; a batch by map, in nanoseconds.
fn rates(path: &Path, samples: usize, report: &mut Report) -> f64 {
    let map = Mapped::open(path).expect("a shard");
    let slices = || Slices { bytes: &map.bytes()[HEADER_BYTES as usize..], at: 0 };
    let (mut unchecked, mut checked) = (slices(), slices());
    let (mut by_map, mut by_pread) = (stream(path, Access::Map), stream(path, Access::Read));
    let mut without_check = Unchecked::new(&map);
    let mut ahead = Prefetch::new(stream(path, Access::Map), NonZeroUsize::new(4).expect("not 0"));
    // All of the shard is touched once, so that no sample maps a page.
    black_box(map.bytes().iter().step_by(4096).fold(0_u8, |sum, byte| sum ^ byte));
    for _ in 0..map.bytes().len() / (IDS + 2) {
        let _ = by_map.next_batch::<i64>();
    }
    let mut out = vec![0_i64; IDS];
    same_batches(path, &map);
    let mut times = [const { Vec::new() }; 6];
    let names = [
        "one slice, unchecked",
        "one slice, checked",
        "batch by map",
        "batch by pread",
        "batch read ahead",
        "batch by map, unchecked",
    ];
    for sample in 0..samples {
        for turn in 0..times.len() {
            let place = (turn + sample) % times.len();
            let (inputs, targets) = out.split_at_mut(IDS / 2);
            let start = Instant::now();
            match place {
                0 => plain(unchecked.next(), &mut out),
                1 => widen(Width::Two, checked.next(), &mut out, VOCABULARY - 1).expect("good ids"),
                2 => by_map.next_batch_into(inputs, targets).expect("a batch"),
                3 => by_pread.next_batch_into(inputs, targets).expect("a batch"),
                4 => ahead.next_batch_into(inputs, targets).expect("a batch"),
                _ => without_check.next_batch_into(inputs, targets),
            }
            let elapsed = start.elapsed().as_secs_f64() * 1e9;
            black_box(&out);
            times[place].push(elapsed);
        }
    }
    let table = Table::new(
        "131 072 ids of i64 from a shard of u16 in the page cache",
        &[("", 26), ("time", -10), ("ids/s", -10), ("of the slice", -12)],
    );
    let medians = times.map(median);
    for (name, time) in names.into_iter().zip(medians) {
        let rate = format!("{:.2} G", IDS as f64 / time);
        table.row(&[name, &report::time(time), &rate, &format!("{:.2}", medians[0] / time)]);
        report.note("batches", name, &[("ns", time), ("times_one_slice", medians[0] / time)]);
    }
    let of_slice = medians[0] / medians[2];
    report.promise(
        "batches: rate of one contiguous slice of the size",
        "0.80",
        &format!("{of_slice:.2}"),
        of_slice >= 0.8,
    );
    let cost = medians[2] / medians[5] - 1.0;
    let shown = format!("{:.1} %", cost * 100.0);
    report.promise("the vocabulary check costs a batch at most", "10 %", &shown, cost <= 0.1);
    medians[2]
}

/// What is compared does the same.
fn same_batches(path: &Path, map: &Mapped) {
    let (mut stream, mut unchecked) = (stream(path, Access::Map), Unchecked::new(map));
    let mut out = vec![0_i64; IDS];
    for _ in 0..100 {
        let (inputs, targets) = out.split_at_mut(IDS / 2);
        unchecked.next_batch_into(inputs, targets);
        let batch = stream.next_batch::<i64>().expect("a batch");
        assert!(batch.inputs == inputs && batch.targets == targets, "other batches");
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What numpy takes for the same.
fn numpy(path: &Path, batch: f64, report: &mut Report) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/tokens/numpy_batches.py");
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let ran =
        Command::new(python).arg(script).arg(path).args([BATCH, SEQ_LEN].map(|n| n.to_string())).output();
    let numbers = ran.ok().filter(|ran| ran.status.success()).and_then(|ran| {
        let text = String::from_utf8(ran.stdout).ok()?;
        text.split_whitespace().map(|word| word.parse().ok()).collect::<Option<Vec<f64>>>()
    });
    let Some([get_batch, astype]) = numbers.as_deref() else {
        println!("\nnumpy is not there: its times are left out");
        return;
    };
    let table = Table::new("numpy", &[("", 24), ("time", -10), ("times ours", -10)]);
    for (name, time) in [("get_batch", get_batch), ("contiguous astype", astype)] {
        table.row(&[name, &report::time(*time), &format!("{:.1}", time / batch)]);
    }
    let (times, contiguous) = (get_batch / batch, astype / batch);
    report.promise(
        "batches: times as fast as numpy's get_batch",
        "20",
        &format!("{times:.1}"),
        times >= 20.0,
    );
    report.promise(
        "batches: rate of numpy's contiguous astype",
        "1.0",
        &format!("{contiguous:.2}"),
        contiguous >= 1.0,
    );
}

/// A cursor at the start and one near the end cost the same.
fn restoring(path: &Path, report: &mut Report) {
    let mut stream = stream(path, Access::Map);
    let near = stream.cursor();
    let mut far = near;
    far.offset = stream.shards().counts()[0] - 2000;
    let table = Table::new("restoring a cursor", &[("offset", -12), ("time", -10)]);
    let mut most = 0.0_f64;
    for cursor in [near, far] {
        let start = Instant::now();
        for _ in 0..100_000 {
            stream.restore(black_box(cursor)).expect("a place");
        }
        let time = start.elapsed().as_secs_f64() * 1e9 / 1e5;
        most = most.max(time);
        table.row(&[&cursor.offset.to_string(), &format!("{time:.1} ns")]);
    }
    report.promise("restoring a cursor, wherever it is", "1 us", &format!("{most:.0} ns"), most < 1000.0);
}
