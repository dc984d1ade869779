//! Every format and every path become shares of memcpy's speed, in the second cache.

use std::hint::black_box;
use std::time::Duration;

use safestep::kernels::Path;
use safestep::safestep_core::Dtype;
use safestep::safestep_core::numbers::OutOfRange;

use crate::Timing;
use crate::buffers::Buffers;
use crate::race::{Effort, race};
use crate::report::{Report, Table};

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
type Reached = Vec<(Dtype, Path, [f64; 2])>;

impl Wanted {
    /// The shares that were promised on that path, if any were.
    fn on(&self, path: Path, reached: &Reached) -> Option<[f64; 2]> {
        match (self, path) {
            (Self::Shares(avx512, _), Path::Avx512) => Some(*avx512),
            (Self::Shares(_, avx2), Path::Avx2) => Some(*avx2),
            (Self::HalfOf(twin), Path::Avx512 | Path::Avx2) => {
                let found = reached.iter().find(|found| (found.0, found.1) == (*twin, path));
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
        ("format, path", 24),
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
        for path in Path::available() {
            let name = format!("{dtype} {path:?}");
            if !timing.wants(&name) {
                continue;
            }
            let shares = row(timing, path, dtype, &name, &mut buffers, &table, report);
            let promised = wanted.on(path, &reached).into_iter().flatten();
            for ((way, share), wanted) in ["decode", "encode"].iter().zip(shares).zip(promised) {
                let what = format!("{name} {way}: share of memcpy");
                report.promise(&what, &format!(">= {wanted:.2}"), &format!("{share:.2}"), share >= wanted);
            }
            reached.push((dtype, path, shares));
        }
    }
}

fn row(
    timing: &Timing,
    path: Path,
    dtype: Dtype,
    name: &str,
    buffers: &mut Buffers,
    table: &Table,
    report: &mut Report,
) -> [f64; 2] {
    let Buffers { values, decoded, codes, encoded, copied: [from, to] } = buffers;
    let mut saturated = encoded.to_vec();
    let moved = (from.len() * 2) as f64;
    let times = race(
        &effort(timing.quick),
        20,
        &mut [
            &mut || to.copy_from_slice(black_box(from)),
            &mut || path.decode_f32(dtype, black_box(codes), decoded).unwrap(),
            &mut || path.encode_f32(black_box(values), dtype, encoded, OutOfRange::Refuse).unwrap(),
            &mut || path.encode_f32(black_box(values), dtype, &mut saturated, OutOfRange::Saturate).unwrap(),
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
