//! Headers of real models and of attackers, of modest size, through every oracle.
//!
//! The benchmark runs the same generators at full size, where no twin can follow; here the verdicts on them are held.

use safestep_core::Slot;
use safestep_tests::headers::honest::{Order, honest};
use safestep_tests::headers::{Sample, hostile};
use safestep_tests::oracle::verdict::{Refused, in_slots, slot_free};
use safestep_tests::{oracle, twin};

fn judge(sample: &Sample) {
    let verdict = twin::judge(&sample.header, sample.file_len(), &twin::Options::default());
    assert_eq!(verdict.err().map(|found| found.rule), sample.rule, "{}", sample.name);
    oracle::header(&sample.header, sample.file_len());
    oracle::rewrite(&sample.header, sample.file_len());
}

#[test]
fn honest_headers_are_judged_alike_by_all() {
    for tensors in [1, 2, 3, 31, 32, 33, 300, 1_500] {
        for order in Order::ALL {
            let sample = honest(tensors, order);
            judge(&sample);
            if tensors < 100 {
                oracle::index(&sample.header, sample.file_len());
            }
        }
    }
}

#[test]
fn hostile_headers_are_judged_alike_by_all() {
    for header_len in [0, 300, 3_000, 60_000] {
        for sample in hostile::all(header_len) {
            judge(&sample);
            if header_len < 1_000 {
                oracle::index(&sample.header, sample.file_len());
            }
        }
    }
}

/// More keys than are compared with too few slots, where the answer is a number, and with that many the verdict; but
/// without any slots they are judged.
#[test]
fn many_keys_in_no_order_want_slots_and_get_them() {
    for duplicate in [false, true] {
        let mut pairs: Vec<String> = (0..5_000).rev().map(|number| format!(r#""k{number}":"""#)).collect();
        if duplicate {
            pairs.push(r#""\u006b77":"""#.to_owned());
        }
        let (pairs, entry) = (pairs.join(","), r#"{"dtype":"U8","shape":[],"data_offsets":[0,1]}"#);
        let metadata = format!(r#"{{"a":{entry},"__metadata__":{{{pairs}}}}}"#);
        let fields = format!(r#"{{"a":{}}}"#, entry.replace('{', &format!("{{{pairs},")));
        let rules = if duplicate { [Some("R2.duplicate"); 2] } else { [None, Some("R4.field")] };
        for (text, rule) in [metadata, fields].into_iter().zip(rules) {
            let sample = Sample::new("many keys", text, 1, rule);
            judge(&sample);
            // Not so many that somebody must have meant it.
            let found = slot_free(&sample.header, sample.file_len(), &twin::Options::default());
            assert!(!matches!(found, Err(Refused::Slots(_))));
        }
    }
}

/// Without slots each key is compared with each, which somebody could make us do for hours: then the answer is how many
/// slots are needed, and it comes at once.
#[test]
fn nobody_makes_us_compare_for_hours() {
    let entry = |name: &str, fields: &str| {
        format!(r#""{name}":{{{fields}"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#)
    };
    let fields: String = (0..4_000).rev().map(|number| format!(r#""k{number}":0,"#)).collect();
    let entries: Vec<String> = (0..100).map(|number| entry(&format!("t{number:03}"), &fields)).collect();
    let many_fields = Sample::new("many fields", format!("{{{}}}", entries.join(",")), 0, Some("R4.field"));
    let long = "x".repeat(1_000);
    let entries: Vec<String> =
        (0..4_000).rev().map(|number| entry(&format!("{long}{number:04}"), "")).collect();
    let long_names = Sample::new("long names", format!("{{{}}}", entries.join(",")), 0, None);
    let options = twin::Options::default();
    for sample in [&many_fields, &long_names] {
        let found = slot_free(&sample.header, sample.file_len(), &options);
        assert!(matches!(found, Err(Refused::Slots(..5_000))), "{}", sample.name);
    }
    // As many slots as tensors, and none free for the fields.
    let found = in_slots(&many_fields.header, many_fields.file_len(), &options, &mut [Slot::EMPTY; 100]);
    assert!(matches!(found, Err(Refused::Slots(..5_000))));
    oracle::header(&many_fields.header, many_fields.file_len());
}

/// More names than are compared without slots, in more runs than are merged; and just not so many.
#[test]
fn many_names_in_no_order_are_judged_alike_by_all() {
    let cases =
        [(4_096, 64, true), (4_096, 64, false), (7_000, 31, true), (7_000, 32, false), (7_000, 33, false)];
    for (names, runs, duplicate) in cases {
        let name = |number: usize| {
            format!("{:05}", number % (names / runs) * 100 + (runs - number / (names / runs)))
        };
        let entry = |name: &str| format!(r#""{name}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}"#);
        let mut entries: Vec<String> = (0..names / runs * runs).map(|number| entry(&name(number))).collect();
        if duplicate {
            let again = entries.len() / 2;
            entries.push(entry(&name(again)));
        }
        let text = format!("{{{}}}", entries.join(","));
        judge(&Sample::new("many names", text, 0, duplicate.then_some("R2.duplicate")));
    }
}
