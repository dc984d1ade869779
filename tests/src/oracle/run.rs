//! Turns bytes into assertions about the readers of a run's files: snapshots and loss histories.

use safestep_core::history::{Canon, Line, Loss, Stretch};
use safestep_core::snapshot::{Region, Snapshot};

use crate::twin::run as twin;

/// The bytes as a snapshot, as long as they are, a byte longer and shorter, and as long as their head says; and what
/// they would be as the numbers of one.
///
/// # Panics
/// When an answer differs from the twin's.
pub fn snapshot(bytes: &[u8]) {
    let len = bytes.len() as u64;
    let stated = bytes.get(4..8).and_then(|count| count.try_into().ok()).map_or(0, i32::from_le_bytes);
    let stated = (8 + 12 * i64::from(stated)).unsigned_abs();
    for file_len in
        [len, len + 1, len.saturating_sub(1), stated, stated + 1, stated.saturating_sub(1), u64::MAX]
    {
        judged(bytes, file_len);
    }
    let numbers = bytes.len() / 12;
    let head = Snapshot::new(u64::from(bytes.first().copied().unwrap_or_default()), numbers as u64);
    let file = [&head.expect("small numbers").head()[..], &bytes[..numbers * 12]].concat();
    judged(&file, file.len() as u64);
}

fn judged(front: &[u8], file_len: u64) {
    let found = Snapshot::read(front, file_len);
    let told = found.map(|head| (i128::from(head.step()), i128::from(head.parameters())));
    let told = told.map_err(|error| (error.rule(), error.at().value()));
    assert_eq!(told, twin::snapshot(front, file_len), "{file_len} bytes, {front:x?}");
    let Ok(head) = found else { return };
    assert_eq!(head.head()[..], front[..8]);
    assert_eq!(Snapshot::new(head.step().into(), head.parameters().into()), Ok(head));
    if front.len() as u64 == file_len {
        regions(&head, front);
    }
}

/// Each region holds its bytes and its numbers, wherever the file stands in memory.
fn regions(head: &Snapshot, file: &[u8]) {
    let count = head.parameters() as usize;
    for shift in 0..4 {
        let moved = [&vec![0; shift][..], file].concat();
        let moved = &moved[shift..];
        for (place, region) in Region::ALL.into_iter().enumerate() {
            let view = head.view(moved, region).expect("the whole file is there");
            let expected = &file[8 + place * count * 4..][..count * 4];
            assert_eq!(view.bytes(), expected);
            let bits = |value: f32| value.to_bits();
            let expected: Vec<u32> =
                expected.chunks(4).map(|word| u32::from_le_bytes(word.try_into().expect("four"))).collect();
            assert!(view.values().map(bits).eq(expected.iter().copied()));
            let aligned = moved.as_ptr().addr().is_multiple_of(4) && cfg!(target_endian = "little");
            match view.floats() {
                Ok(floats) => assert!(floats.iter().copied().map(bits).eq(expected)),
                Err(_) => assert!(!aligned && count > 0),
            }
        }
    }
    assert!(
        Region::ALL
            .iter()
            .all(|region| count == 0 || head.view(&file[..file.len() - 1 - 8 * count], *region).is_none())
    );
}

/// Each line of the bytes means what the twin says, good ones are written so that they mean the same, and the canonical
/// entries are the twin's.
///
/// # Panics
/// When any of this is not so.
pub fn history(bytes: &[u8]) {
    let mut lines = Vec::new();
    for text in bytes.split(|&byte| byte == b'\n') {
        let found = Line::parse(text);
        let shown = String::from_utf8_lossy(text);
        if let Some(expected) = twin::line(text) {
            let told = found.as_ref().map(told).map_err(|error| &error.rule()[..2]);
            assert!(same(&told, &expected), "{told:?}, not {expected:?}: {shown}");
        }
        if let Ok(line) = found {
            rewritten(&line);
            lines.push(line);
        } else if let Err(error) = found {
            assert!(error.at().value() <= text.len() as u64, "{error}: {shown}");
        }
    }
    let told: Vec<twin::Line> = lines.iter().map(self::told).collect();
    assert_eq!(canonical(&lines), twin::canonical(&told), "{told:?}");
}

fn told(line: &Line<'_>) -> twin::Line {
    match line {
        Line::Resume(step) => twin::Line::Resume(*step),
        Line::Entry(entry) => twin::Line::Entry(
            entry.step(),
            match entry.loss() {
                Loss::Number(digits) => Ok(digits.parse().expect("a number of JSON")),
                Loss::NonFinite(number) => Err(number.word().to_owned()),
            },
        ),
    }
}

/// Equal but for the last bit: `serde_json` does not round all numbers correctly.
fn same(found: &Result<twin::Line, &str>, expected: &Result<twin::Line, &'static str>) -> bool {
    match (found, expected) {
        (Ok(twin::Line::Entry(step, Ok(loss))), Ok(twin::Line::Entry(other, Ok(expected)))) => {
            step == other && (loss - expected).abs() <= expected.abs() * 4.0 * f64::EPSILON
        }
        _ => found == expected,
    }
}

fn rewritten(line: &Line<'_>) {
    let mut text = Vec::new();
    let written: Result<(), ()> = line.write(|piece| {
        text.extend_from_slice(piece);
        Ok(())
    });
    assert!(written.is_ok() && Line::parse(&text).is_ok_and(|again| told(&again) == told(line)));
    if let Err(error) = serde_json::from_slice::<serde_json::Value>(&text) {
        // It does not read numbers beyond f64.
        assert!(error.to_string().contains("out of range"), "{error}: {}", String::from_utf8_lossy(&text));
    }
}

/// The places of the canonical entries, with stretches lent one by one.
fn canonical(lines: &[Line<'_>]) -> Vec<usize> {
    let (mut canon, mut stretches) = (Canon::default(), Vec::new());
    for (place, line) in lines.iter().enumerate() {
        while let Err(too_few) = canon.add(&mut stretches, line, place as u64) {
            assert_eq!(too_few.needed, stretches.len() as u64 + 1);
            stretches.push(Stretch::default());
        }
    }
    stretches.truncate(canon.len());
    assert!(stretches.is_sorted_by_key(|stretch| (stretch.begin(), stretch.first())));
    let kept = lines.iter().enumerate().filter(|(place, line)| {
        let Line::Entry(entry) = line else { return false };
        let stretch = stretches.iter().rev().find(|stretch| stretch.begin() <= *place as u64);
        stretch.is_some_and(|stretch| stretch.keeps(entry.step()))
    });
    kept.map(|(place, _)| place).collect()
}
