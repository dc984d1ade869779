//! The conversions of other crates become times beside ours, in memory: 64 MiB of f32 values, on the best path.

use std::hint::black_box;
use std::time::Duration;

use float8::{F8E4M3, F8E5M2};
use half::slice::HalfFloatSliceExt as _;
use half::{bf16, f16};
use safestep::kernels::{decode_f32, encode_f32};
use safestep::safestep_core::Dtype;
use safestep::safestep_core::numbers::OutOfRange;

use crate::Timing;
use crate::buffers::{Aligned, Buffers};
use crate::race::{Effort, race};
use crate::report::{self, Report, Table};

/// Of the f32 values.
const VALUE_BYTES: usize = 64 << 20;

/// Runs the section.
pub(crate) fn run(timing: &Timing, report: &mut Report) {
    let columns =
        [("format, way", 24), ("ours", -10), ("memcpy", -10), ("share", -6), ("peer", -10), ("times", -6)];
    let table = Table::new("64 MiB of f32 values, beside half and float8", &columns);
    let mut section = Section { timing, table: &table, report };
    let convert = |codes: &[bf16], values: &mut [f32]| codes.convert_to_f32_slice(values);
    section.format(Dtype::Bf16, "half", [1.4, 1.4], convert, |values, codes| {
        codes.convert_from_f32_slice(values);
    });
    let convert = |codes: &[f16], values: &mut [f32]| codes.convert_to_f32_slice(values);
    section.format(Dtype::F16, "half", [1.4, 1.2], convert, |values, codes| {
        codes.convert_from_f32_slice(values);
    });
    section.format(
        Dtype::F8E4M3,
        "float8",
        [10.0, 15.0],
        |codes: &[F8E4M3], values| each(codes, values, F8E4M3::to_f32),
        |values, codes| each(values, codes, |value| F8E4M3::from_f32(*value)),
    );
    section.format(
        Dtype::F8E5M2,
        "float8",
        [10.0, 15.0],
        |codes: &[F8E5M2], values| each(codes, values, F8E5M2::to_f32),
        |values, codes| each(values, codes, |value| F8E5M2::from_f32(*value)),
    );
    for dtype in
        [Dtype::F8E5M2Fnuz, Dtype::F8E4M3Fnuz, Dtype::F8E8M0, Dtype::F6E2M3, Dtype::F6E3M2, Dtype::F4]
    {
        section.alone(dtype);
    }
}

fn each<A, B>(from: &[A], to: &mut [B], convert: impl Fn(&A) -> B) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = convert(from);
    }
}

struct Section<'a> {
    timing: &'a Timing,
    table: &'a Table,
    report: &'a mut Report,
}

impl Section<'_> {
    /// Both ways of a format that a peer has as well, and how many times as fast ours was promised to be.
    fn format<T: Clone + Default>(
        &mut self,
        dtype: Dtype,
        peer: &str,
        wanted: [f64; 2],
        decode: impl Fn(&[T], &mut [f32]),
        encode: impl Fn(&[f32], &mut [T]),
    ) {
        let names = ["decode", "encode"].map(|way| format!("{dtype} {way}, {peer}"));
        if !names.iter().any(|name| self.timing.wants(name)) {
            return;
        }
        let Buffers { values, mut decoded, codes, mut encoded, copied: [from, mut to], .. } =
            Buffers::new(dtype, VALUE_BYTES);
        let mut their_codes = Aligned::<T>::new(values.len());
        let mut their_values = Aligned::<f32>::new(values.len());
        encode(&values, &mut their_codes);
        let decoding = race(
            &effort(self.timing.quick),
            1,
            &mut [
                &mut || to.copy_from_slice(black_box(&from)),
                &mut || decode_f32(dtype, black_box(&codes), &mut decoded).unwrap(),
                &mut || decode(black_box(&their_codes), black_box(&mut their_values)),
            ],
        );
        let encoding = race(
            &effort(self.timing.quick),
            1,
            &mut [
                &mut || to.copy_from_slice(black_box(&from)),
                &mut || encode_f32(black_box(&values), dtype, &mut encoded, OutOfRange::Refuse).unwrap(),
                &mut || encode(black_box(&values), black_box(&mut their_codes)),
            ],
        );
        for ((name, times), wanted) in names.iter().zip([decoding, encoding]).zip(wanted) {
            let ratio = self.row(name, &times);
            let what = format!("{name}: times as fast in memory");
            self.report.promise(&what, &format!(">= {wanted:.1}"), &format!("{ratio:.2}"), ratio >= wanted);
        }
    }

    /// Both ways of a format that no peer has.
    fn alone(&mut self, dtype: Dtype) {
        let names = ["decode", "encode"].map(|way| format!("{dtype} {way}"));
        if !names.iter().any(|name| self.timing.wants(name)) {
            return;
        }
        let Buffers { values, mut decoded, codes, mut encoded, copied: [from, mut to], .. } =
            Buffers::new(dtype, VALUE_BYTES);
        let times = race(
            &effort(self.timing.quick),
            1,
            &mut [
                &mut || to.copy_from_slice(black_box(&from)),
                &mut || decode_f32(dtype, black_box(&codes), &mut decoded).unwrap(),
                &mut || encode_f32(black_box(&values), dtype, &mut encoded, OutOfRange::Refuse).unwrap(),
            ],
        );
        let [copy, decode, encode] = times[..] else { return };
        for (name, ours) in names.iter().zip([decode, encode]) {
            self.row(name, &[copy, ours]);
        }
    }

    /// Prints memcpy's time, ours and the peer's; the answer is how many times as fast as the peer we are.
    fn row(&mut self, name: &str, times: &[f64]) -> f64 {
        let (copy, ours) = (times[0], times[1]);
        let peer = times.get(2).copied();
        let ratio = peer.map_or(0.0, |peer| peer / ours);
        self.table.row(&[
            name,
            &report::time(ours),
            &report::time(copy),
            &format!("{:.2}", copy / ours),
            &peer.map_or_else(String::new, report::time),
            &peer.map_or_else(String::new, |_| format!("{ratio:.2}")),
        ]);
        self.report.note(
            "peers",
            name,
            &[("ours_ns", ours), ("memcpy_ns", copy), ("peer_ns", peer.unwrap_or(0.0))],
        );
        ratio
    }
}

fn effort(quick: bool) -> Effort {
    let (least, most, time) = if quick { (3, 5, 300) } else { (21, 201, 6_000) };
    Effort { least, most, time: Duration::from_millis(time) }
}
