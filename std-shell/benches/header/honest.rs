//! Honest headers become times beside the reference's: five orders, four sizes, with slots and without.

use std::time::Duration;

use safestep_core::Slot;
use safestep_tests::headers::honest::{COUNTS, Order, honest};

use crate::Timing;
use crate::contenders::{Effort, File, Times, ours, ours_slot_free, race, reference, time};
use crate::report::{self, Report, Table};

/// Runs the section.
pub(crate) fn run(timing: &Timing, report: &mut Report) {
    let columns = [
        ("tensors, order", 20),
        ("header", -11),
        ("ours", -10),
        ("reference", -10),
        ("times", -6),
        ("paired", -6),
        ("GB/s", -5),
        ("samples", -7),
    ];
    let table = Table::new("honest headers, one slot a tensor", &columns);
    for tensors in COUNTS {
        for order in Order::ALL {
            with_slots(timing, tensors, order, &table, report);
        }
    }
    let table = Table::new("honest headers, no slots", &columns);
    for tensors in COUNTS {
        for order in [Order::Writer, Order::Mixed] {
            without_slots(timing, tensors, order, &table, report);
        }
    }
}

fn with_slots(timing: &Timing, tensors: usize, order: Order, table: &Table, report: &mut Report) {
    let sample = honest(tensors, order);
    if !timing.wants(&sample.name) {
        return;
    }
    let file = File::of(&sample);
    let mut slots = vec![Slot::EMPTY; tensors];
    assert_eq!(ours(file.bytes(), &mut slots), Ok(tensors), "{}", sample.name);
    let times = race(
        effort(timing.quick),
        calls(tensors),
        [&mut |calls| time(calls, || ours(file.bytes(), &mut slots)), &mut |calls| {
            time(calls, || reference(file.bytes()))
        }],
    );
    let ratio = row("honest", &sample.name, file.header_len(), &times, table, report);
    let wanted = match (tensors, order) {
        (1, _) => return,
        (100_000, Order::Writer) => 16.0,
        (_, Order::Writer) => 12.0,
        _ => 8.0,
    };
    let what = format!("{}: times as fast as the reference", sample.name);
    report.promise(&what, &format!(">= {wanted:.0}"), &format!("{ratio:.1}"), ratio >= wanted);
}

fn without_slots(timing: &Timing, tensors: usize, order: Order, table: &Table, report: &mut Report) {
    let sample = honest(tensors, order);
    if !timing.wants(&sample.name) {
        return;
    }
    let file = File::of(&sample);
    assert_eq!(ours_slot_free(file.bytes()), Ok(tensors), "{}", sample.name);
    let times = race(
        effort(timing.quick),
        calls(tensors),
        [&mut |calls| time(calls, || ours_slot_free(file.bytes())), &mut |calls| {
            time(calls, || reference(file.bytes()))
        }],
    );
    row("slot-free", &sample.name, file.header_len(), &times, table, report);
}

/// Prints a row; the answer is the ratio of the medians.
#[expect(clippy::cast_precision_loss, reason = "lengths are far below 2^52")]
fn row(
    section: &str,
    name: &str,
    header_len: usize,
    times: &Times<2>,
    table: &Table,
    report: &mut Report,
) -> f64 {
    let (ours, reference) = (times.median(0), times.median(1));
    let (ratio, paired) = (reference / ours, times.paired(1, 0));
    let speed = header_len as f64 / ours;
    table.row(&[
        name,
        &header_len.to_string(),
        &report::time(ours),
        &report::time(reference),
        &format!("{ratio:.1}"),
        &format!("{paired:.1}"),
        &format!("{speed:.2}"),
        &times.samples().to_string(),
    ]);
    let numbers = [
        ("header_bytes", header_len as f64),
        ("ours_ns", ours),
        ("reference_ns", reference),
        ("ratio", ratio),
        ("paired", paired),
    ];
    report.note(section, name, &numbers);
    ratio
}

fn effort(quick: bool) -> Effort {
    let (least, most, time) = if quick { (3, 31, 100) } else { (21, 501, 3_000) };
    Effort { least, most, time: Duration::from_millis(time) }
}

/// A call that takes less than a microsecond is made many times a sample.
fn calls(tensors: usize) -> u32 {
    if tensors == 1 { 200 } else { 1 }
}
