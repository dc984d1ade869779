//! Hostile headers become times beside an honest header of the same length and beside the reference's.

use std::time::Duration;

use safestep_core::{Index, Slot};
use safestep_tests::headers::honest::{Order, honest};
use safestep_tests::headers::{Sample, crowded, hostile};

use crate::Timing;
use crate::contenders::{Effort, File, Lender, header, ours, race, reference, time};
use crate::report::{self, Report, Table};

/// The longest header that there can be.
const HEADER_BYTES_MAX: usize = 100_000_000;

/// The honest header that hostile ones are held against.
struct Yardstick {
    file: File,
    slots: Vec<Slot>,
}

/// Runs the section.
pub(crate) fn run(timing: &Timing, report: &mut Report) {
    let columns = [
        ("kind", 48),
        ("header", -11),
        ("ours", -10),
        ("reference", -12),
        ("honest", -10),
        ("/honest", -7),
        ("/reference", -10),
        ("", 0),
    ];
    let table = Table::new(
        "hostile headers; honest: an honest header of 100 000 tensors, scaled to the length",
        &columns,
    );
    let tensors = 100_000;
    let file = File::of(&honest(tensors, Order::Writer));
    let len = file.header_len();
    let mut yardstick = Yardstick { file, slots: vec![Slot::EMPTY; tensors] };
    for (kind, make) in hostile::KINDS {
        if timing.wants(kind) {
            hold(timing.quick, &make(len), &mut yardstick, &table, report);
        }
    }
    for (kind, make) in crowded::KINDS {
        if timing.wants(kind) {
            let sample = make(len);
            assert!(table_gave_up(&sample), "{kind}: the copy of the core's hash is out of date");
            hold(timing.quick, &sample, &mut yardstick, &table, report);
        }
    }
    for (kind, make) in hostile::KINDS {
        let name = format!("{kind}, 100 MB");
        if ["one string", "blanks between", "blanks after"].contains(&kind) && timing.wants(&name) {
            // Quotes, fields and white space stand around what was asked for.
            let sample = Sample { name, ..make(HEADER_BYTES_MAX - 500) };
            hold(timing.quick, &sample, &mut yardstick, &table, report);
        }
    }
}

/// Whether names had to be sorted.
fn table_gave_up(sample: &Sample) -> bool {
    let file = File::of(sample);
    let mut slots = vec![Slot::EMPTY; sample.header.len() / 50];
    let index = Index::build(header(file.bytes()).expect("a frame"), &mut slots).expect("a good header");
    index.is_crowded()
}

/// Times one header.
#[expect(clippy::cast_precision_loss, reason = "lengths are far below 2^52")]
fn hold(quick: bool, sample: &Sample, yardstick: &mut Yardstick, table: &Table, report: &mut Report) {
    let file = File::of(sample);
    let mut lender = Lender::of(&file);
    let verdict = lender.judge(file.bytes());
    assert_eq!(verdict.is_ok(), sample.rule.is_none(), "{}: {verdict:?}", sample.name);
    let Yardstick { file: honest, slots } = yardstick;
    let times = race(
        effort(quick),
        1,
        [
            &mut |calls| time(calls, || lender.judge(file.bytes())),
            &mut |calls| time(calls, || reference(file.bytes())),
            &mut |calls| time(calls, || ours(honest.bytes(), slots)),
        ],
    );
    let scale = file.header_len() as f64 / honest.header_len() as f64;
    let (ours, theirs, honest) = (times.median(0), times.median(1), times.median(2) * scale);
    let (to_honest, to_reference) = (ours / honest, ours / theirs);
    let verdict = sample.rule.unwrap_or("good");
    let remark = if lender.asks_for_more() { "judged twice: asked for more slots" } else { verdict };
    table.row(&[
        &sample.name,
        &file.header_len().to_string(),
        &report::time(ours),
        &report::time(theirs),
        &report::time(honest),
        &format!("{to_honest:.2}"),
        &format!("{to_reference:.2}"),
        remark,
    ]);
    let numbers = [
        ("header_bytes", file.header_len() as f64),
        ("ours_ns", ours),
        ("reference_ns", theirs),
        ("honest_ns", honest),
        ("to_honest", to_honest),
        ("to_reference", to_reference),
    ];
    report.note("hostile", &sample.name, &numbers);
    let what = format!("{}: times an honest header's cost", sample.name);
    report.promise(&what, "<= 6", &format!("{to_honest:.2}"), to_honest <= 6.0);
    let what = format!("{}: times the reference's cost", sample.name);
    report.promise(&what, "<= 1", &format!("{to_reference:.2}"), to_reference <= 1.0);
}

fn effort(quick: bool) -> Effort {
    let (least, most, time) = if quick { (3, 3, 0) } else { (9, 51, 2_000) };
    Effort { least, most, time: Duration::from_millis(time) }
}
