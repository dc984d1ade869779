//! A sample becomes a file in memory, and the contenders' times for it.

use std::hint::black_box;
use std::time::{Duration, Instant};

use memmap2::{MmapMut, MmapOptions};
use safestep_core::{Error, ErrorKind, Frame, Header, Index, Limits, Slot};
use safestep_tests::headers::Sample;
use safetensors::SafeTensors;
use safetensors::tensor::{Metadata, SafeTensorError};

/// A file as long as the sample says, of which only the header takes memory.
pub(crate) struct File {
    map: MmapMut,
    header_len: usize,
}

impl File {
    pub(crate) fn of(sample: &Sample) -> Self {
        let len = usize::try_from(sample.file_len()).expect("a 64-bit machine");
        let mut map = MmapOptions::new().len(len).no_reserve_swap().map_anon().expect("address space");
        map[..sample.header.len()].copy_from_slice(&sample.header);
        Self { map, header_len: sample.header.len() - 8 }
    }

    /// The bytes of the file.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// The length of the header.
    pub(crate) fn header_len(&self) -> usize {
        self.header_len
    }
}

/// Our frame and header around the bytes of a file.
pub(crate) fn header(file: &[u8]) -> Result<Header<'_>, Error> {
    let frame = Frame::read(file, file.len() as u64, Limits::default())?;
    let end = usize::try_from(frame.header_len().value()).expect("a 64-bit machine") + 8;
    frame.header(&file[8..end])
}

/// The whole judgement of ours: the number of tensors, or the broken rule.
#[inline(never)]
pub(crate) fn ours(file: &[u8], slots: &mut [Slot]) -> Result<usize, Error> {
    Ok(black_box(&Index::build(header(file)?, slots)?).len())
}

/// The same without slots.
#[inline(never)]
pub(crate) fn ours_slot_free(file: &[u8]) -> Result<usize, Error> {
    Ok(black_box(&header(file)?.judge()?).len())
}

/// The reference's judgement.
#[inline(never)]
pub(crate) fn reference(file: &[u8]) -> Result<(usize, Metadata), SafeTensorError> {
    SafeTensors::read_metadata(file)
}

/// Slots and, for the headers that want more than one a tensor, more of them.
pub(crate) struct Lender {
    slots: Vec<Slot>,
    more: Vec<Slot>,
}

impl Lender {
    /// What judging this file takes. Whatever has to be allocated is allocated here.
    pub(crate) fn of(file: &File) -> Self {
        let bound = header(file.bytes()).map_or(0, |header| header.slots_bound());
        let mut slots = vec![Slot::EMPTY; bound];
        let more = match ours(file.bytes(), &mut slots).map_err(|error| error.kind()) {
            Err(ErrorKind::SlotsTooFew { needed, .. }) => {
                vec![Slot::EMPTY; usize::try_from(needed).expect("a 64-bit machine")]
            }
            _ => Vec::new(),
        };
        Self { slots, more }
    }

    /// The verdict, as a caller gets it that lends more slots when it is asked to.
    pub(crate) fn judge(&mut self, file: &[u8]) -> Result<usize, Error> {
        let verdict = ours(file, &mut self.slots);
        if self.asks_for_more() { ours(file, &mut self.more) } else { verdict }
    }

    /// Whether the header is judged twice, because the first time there were too few slots.
    pub(crate) fn asks_for_more(&self) -> bool {
        !self.more.is_empty()
    }
}

/// How many samples are taken.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) least: usize,
    pub(crate) most: usize,
    /// Between the two, as many as fit.
    pub(crate) time: Duration,
}

/// Nanoseconds a call, sample by sample, of each contender.
pub(crate) struct Times<const N: usize>(pub(crate) [Vec<f64>; N]);

/// Times the contenders in turns, after one turn that warms up. Each gets a number of calls and answers with nanoseconds.
pub(crate) fn race<const N: usize>(
    effort: Effort,
    calls: u32,
    mut contenders: [&mut dyn FnMut(u32) -> f64; N],
) -> Times<N> {
    let mut times = [const { Vec::new() }; N];
    for contender in &mut contenders {
        contender(1);
    }
    let start = Instant::now();
    for sample in 0..effort.most {
        if sample >= effort.least && start.elapsed() > effort.time {
            break;
        }
        // Who goes first changes, for the first finds the caches as the last left them.
        for turn in 0..N {
            let place = (turn + sample) % N;
            times[place].push(contenders[place](calls));
        }
    }
    Times(times)
}

/// The time of one call among `calls`; what the calls give is dropped behind the clock.
pub(crate) fn time<T>(calls: u32, mut call: impl FnMut() -> T) -> f64 {
    if calls == 1 {
        let start = Instant::now();
        let result = black_box(call());
        let elapsed = start.elapsed();
        drop(result);
        return nanoseconds(elapsed);
    }
    let mut results = Vec::with_capacity(usize::try_from(calls).expect("a 64-bit machine"));
    let start = Instant::now();
    for _ in 0..calls {
        results.push(black_box(call()));
    }
    let elapsed = start.elapsed();
    drop(results);
    nanoseconds(elapsed) / f64::from(calls)
}

#[expect(clippy::cast_precision_loss, reason = "times are far below 2^52 nanoseconds")]
fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}

impl<const N: usize> Times<N> {
    /// The median of one contender's times.
    pub(crate) fn median(&self, contender: usize) -> f64 {
        median(self.0[contender].clone())
    }

    /// How many times as long `slow` took as `fast`: the median over the samples.
    pub(crate) fn paired(&self, slow: usize, fast: usize) -> f64 {
        median(self.0[slow].iter().zip(&self.0[fast]).map(|(slow, fast)| slow / fast).collect())
    }

    pub(crate) fn samples(&self) -> usize {
        self.0[0].len()
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
}
