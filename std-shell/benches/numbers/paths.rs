//! Every format at every level becomes a share of memcpy's speed, in the second cache.

use std::hint::black_box;
use std::time::Duration;

use safestep::kernels::Level;
use safestep::safestep_core::Dtype;
use safestep::safestep_core::numbers::OutOfRange;

use crate::Timing;
use crate::buffers::Buffers;
use crate::race::{Effort, race};
use crate::report::{Report, Table};
use crate::widened;

/// What was promised of a dtype.
enum Wanted {
    /// Shares of memcpy's speed, with AVX-512 and with AVX2: of decoding and of encoding.
    Shares([f64; 2], [f64; 2]),
    /// No less than half of what that dtype reaches.
    HalfOf(Dtype),
}

const WANTED: [(Dtype, Wanted); 10] = [
    (Dtype::Bf16, Wanted::Shares([0.76, 0.79], [0.76, 0.48])),
    (Dtype::F16, Wanted::Shares([0.76, 1.27], [0.76, 1.27])),
    (Dtype::F8E4M3, Wanted::Shares([0.54, 0.41], [0.28, 0.24])),
    (Dtype::F8E5M2, Wanted::Shares([0.65, 0.30], [0.31, 0.17])),
    (Dtype::F4, Wanted::Shares([0.55, 0.32], [0.43, 0.20])),
    (Dtype::F8E8M0, Wanted::Shares([0.59, 0.42], [0.36, 0.20])),
    (Dtype::F8E4M3Fnuz, Wanted::HalfOf(Dtype::F8E4M3)),
    (Dtype::F8E5M2Fnuz, Wanted::HalfOf(Dtype::F8E4M3)),
    (Dtype::F6E2M3, Wanted::HalfOf(Dtype::F4)),
    (Dtype::F6E3M2, Wanted::HalfOf(Dtype::F4)),
];

/// What was reached so far.
type Reached = Vec<(Dtype, Level, [f64; 2])>;

impl Wanted {
    /// The shares that were promised on that path, if any were.
    fn on(&self, level: Level, reached: &Reached) -> Option<[f64; 2]> {
        match (self, level) {
            (Self::Shares(avx512, _), Level::Avx512) => Some(*avx512),
            (Self::Shares(_, avx2), Level::Avx2) => Some(*avx2),
            (Self::HalfOf(twin), Level::Avx512 | Level::Avx2) => {
                let found = reached.iter().find(|found| (found.0, found.1) == (*twin, level));
                found.map(|found| found.2.map(|share| share / 2.0))
            }
            _ => None,
        }
    }
}

/// Of the f32 values.
const VALUE_BYTES: usize = 256 << 10;

/// Runs the section.
pub(crate) fn run(timing: &Timing, report: &mut Report) {
    let columns = [
        ("format, level", 24),
        ("decode", -8),
        ("encode", -8),
        ("saturate", -8),
        ("GB/s", -6),
        ("GB/s", -6),
        ("memcpy", -6),
    ];
    let table = Table::new("256 KiB of f32 values, shares of memcpy", &columns);
    let mut reached = Reached::new();
    for (dtype, wanted) in WANTED {
        let mut buffers = Buffers::new(dtype, VALUE_BYTES);
        for level in Level::available() {
            let ways = Ways {
                decode: &|codes, values| level.decode_f32(dtype, codes, values).unwrap(),
                encode: &|values, codes, beyond| level.encode_f32(values, dtype, codes, beyond).unwrap(),
            };
            let name = format!("{dtype} {level:?}");
            if !timing.wants(&name) {
                continue;
            }
            let shares = row(timing, &ways, &name, &mut buffers, &table, report);
            promise(report, &name, shares, wanted.on(level, &reached));
            reached.push((dtype, level, shares));
        }
    }
    let mut buffers = Buffers::new(Dtype::F16, VALUE_BYTES);
    for (level, ways, wanted) in widened::f16() {
        let name = format!("F16 portable, {level:?}");
        if timing.wants(&name) {
            let shares = row(timing, &ways, &name, &mut buffers, &table, report);
            promise(report, &name, shares, Some(wanted));
        }
    }
}

fn promise(report: &mut Report, name: &str, shares: [f64; 2], wanted: Option<[f64; 2]>) {
    for ((way, share), wanted) in ["decode", "encode"].iter().zip(shares).zip(wanted.into_iter().flatten()) {
        let what = format!("{name} {way}: share of memcpy");
        report.promise(&what, &format!(">= {wanted:.2}"), &format!("{share:.2}"), share >= wanted);
    }
}

/// How codes become values, and values codes.
pub(crate) struct Ways<'w> {
    pub(crate) decode: &'w Decode<'w>,
    pub(crate) encode: &'w Encode<'w>,
}

type Decode<'w> = dyn Fn(&[u8], &mut [f32]) + 'w;

type Encode<'w> = dyn Fn(&[f32], &mut [u8], OutOfRange) + 'w;

fn row(
    timing: &Timing,
    ways: &Ways<'_>,
    name: &str,
    buffers: &mut Buffers,
    table: &Table,
    report: &mut Report,
) -> [f64; 2] {
    let Buffers { values, decoded, codes, encoded, saturated, copied: [from, to] } = buffers;
    let moved = (from.len() * 2) as f64;
    let times = race(
        &effort(timing.quick),
        20,
        &mut [
            &mut || to.copy_from_slice(black_box(from)),
            &mut || (ways.decode)(black_box(codes), decoded),
            &mut || (ways.encode)(black_box(values), encoded, OutOfRange::Refuse),
            &mut || (ways.encode)(black_box(values), saturated, OutOfRange::Saturate),
        ],
    );
    let [copy, decode, encode, saturate] = times[..] else { unreachable!("four contenders") };
    table.row(&[
        name,
        &format!("{:.2}", copy / decode),
        &format!("{:.2}", copy / encode),
        &format!("{:.2}", copy / saturate),
        &format!("{:.1}", moved / decode),
        &format!("{:.1}", moved / encode),
        &format!("{:.1}", moved / copy),
    ]);
    report.note("paths", name, &[("memcpy_ns", copy), ("decode_ns", decode), ("encode_ns", encode)]);
    [copy / decode, copy / encode]
}

fn effort(quick: bool) -> Effort {
    let (least, most, time) = if quick { (11, 101, 200) } else { (101, 2_001, 2_000) };
    Effort { least, most, time: Duration::from_millis(time) }
}
