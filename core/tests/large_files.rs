//! A file of 6 GiB, of which only the header is at hand, judged on any machine: offsets are 64 bits wide everywhere.
//!
//! A count kept in `usize` or `u32` would pass every test of small files, and on a 64-bit machine this one too. So it
//! is run where `usize` has 32 bits: `cargo test -p safestep-core --target i686-unknown-linux-gnu` (on Debian with
//! `gcc-multilib`). It needs nothing but the core.

use safestep_core::{
    Axis, Dtype, Entry, Error, Frame, Header, Index, Limits, Pick, Rule, Shape, Slice, Slot,
};

const GIB: u64 = 1 << 30;

/// 2 GiB of BF16, 4 GiB of F64, then a byte and nothing: the last three begin beyond 32 bits.
const ENTRIES: [&str; 4] = [
    r#""embed":{"dtype":"BF16","shape":[32768,32768],"data_offsets":[0,2147483648]}"#,
    r#""head":{"dtype":"F64","shape":[65536,8192],"data_offsets":[2147483648,6442450944]}"#,
    r#""mask":{"dtype":"U8","shape":[],"data_offsets":[6442450944,6442450945]}"#,
    r#""none":{"dtype":"I64","shape":[0,18446744073709551615],"data_offsets":[6442450945,6442450945]}"#,
];
const DATA_BYTES: u64 = 6 * GIB + 1;

fn header(entries: &[&str]) -> String {
    format!("{{{}}}", entries.join(","))
}

/// A header in a file with so many bytes of data.
fn in_file(text: &str, data_bytes: u64) -> Result<Header<'_>, Error> {
    let header_bytes = text.len() as u64;
    let frame = Frame::read(&header_bytes.to_le_bytes(), 8 + header_bytes + data_bytes, Limits::default())?;
    frame.header(text.as_bytes())
}

/// The verdict, which is the same with slots and, where it can be had, without.
fn verdict(text: &str, data_bytes: u64) -> Result<(), (Rule, u64)> {
    let header = in_file(text, data_bytes).unwrap();
    let told = |error: Error| (error.rule().unwrap(), error.at().value());
    let found = Index::build(header, &mut [Slot::EMPTY; 5]).map(drop).map_err(told);
    match header.judge() {
        Ok(_) => assert_eq!(found, Ok(())),
        Err(error) if error.rule().is_none() => {}
        Err(error) => assert_eq!(found, Err(told(error))),
    }
    found
}

fn placed(entry: &Entry<'_>) -> (String, u64, u64) {
    (entry.name().to_string(), entry.span().begin().value(), entry.span().end().value())
}

#[test]
fn places_beyond_32_bits_are_kept() {
    let text = header(&ENTRIES);
    let expected = [
        ("embed", 0, 2 * GIB),
        ("head", 2 * GIB, 6 * GIB),
        ("mask", 6 * GIB, DATA_BYTES),
        ("none", DATA_BYTES, DATA_BYTES),
    ]
    .map(|(name, begin, end)| (name.to_owned(), begin, end));
    let header = in_file(&text, DATA_BYTES).unwrap();
    assert_eq!(header.frame().data_len().value(), DATA_BYTES);
    assert_eq!(header.frame().data_span().end().value(), 8 + text.len() as u64 + DATA_BYTES);

    let judged = header.judge().unwrap();
    assert!(judged.iter().map(|entry| placed(&entry)).eq(expected.clone()));
    let mut slots = [Slot::EMPTY; 4];
    let index = Index::build(header, &mut slots).unwrap();
    assert!(index.iter().map(|entry| placed(&entry)).eq(expected));
    let head = index.get("head").unwrap();
    assert_eq!((head.span().len().value(), head.shape().elements()), (4 * GIB, Some(1 << 29)));
    assert_eq!(index.get("none").unwrap().shape().dims().last(), Some(u64::MAX));
    // What is not in memory is not lent, on a machine that could not address it either.
    assert!(head.view(&[0; 64]).is_none());
}

#[test]
fn any_order_is_put_in_order() {
    let orders = [[3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1], [0, 2, 1, 3]];
    for order in orders {
        let text = header(&order.map(|place| ENTRIES[place]));
        assert_eq!(verdict(&text, DATA_BYTES), Ok(()));
        let mut slots = [Slot::EMPTY; 4];
        let index = Index::build(in_file(&text, DATA_BYTES).unwrap(), &mut slots).unwrap();
        let names: Vec<String> = index.iter().map(|entry| entry.name().to_string()).collect();
        assert_eq!(names, ["embed", "head", "mask", "none"]);
    }
}

/// Each break is one that vanishes when a length is cut to 32 bits, or appears then.
#[test]
fn breaks_beyond_32_bits_are_found() {
    let text = header(&ENTRIES);
    let end = 8 + text.len() as u64;
    for (data_bytes, expected) in [
        (DATA_BYTES, Ok(())),
        (DATA_BYTES - 1, Err((Rule::DataShort, end + DATA_BYTES - 1))),
        (DATA_BYTES + 1, Err((Rule::Surplus, end + DATA_BYTES))),
        (DATA_BYTES - 4 * GIB, Err((Rule::DataShort, end + DATA_BYTES - 4 * GIB))),
        (DATA_BYTES + 4 * GIB, Err((Rule::Surplus, end + DATA_BYTES))),
        (0, Err((Rule::DataShort, end))),
    ] {
        assert_eq!(verdict(&text, data_bytes), expected, "{data_bytes}");
    }
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from));
        verdict(&text.replace(from, to), DATA_BYTES).unwrap_err().0
    };
    assert_eq!(changed("[65536,8192]", "[4294967296,8192]"), Rule::Size);
    assert_eq!(changed("[65536,8192]", "[4295032832,8192]"), Rule::Size);
    assert_eq!(changed("[6442450944,6442450945]", "[2147483648,2147483649]"), Rule::Overlap);
    assert_eq!(changed("[6442450944,6442450945]", "[10737418240,10737418241]"), Rule::Gap);
    assert_eq!(changed("[6442450945,6442450945]", "[10737418241,10737418241]"), Rule::Gap);
    assert_eq!(changed("[0,18446744073709551615]", "[4294967296,4294967296]"), Rule::Overflow);
    assert_eq!(changed("[0,18446744073709551615]", "[0,18446744073709551616]"), Rule::Shape);
}

#[test]
fn a_stated_header_length_beyond_32_bits_is_no_small_one() {
    let file_bytes = 100 + 4 * GIB;
    let rule =
        |length: u64| Frame::read(&length.to_le_bytes(), file_bytes, Limits::default()).unwrap_err().rule();
    assert_eq!(rule(2 + 4 * GIB), Some(Rule::TooLarge));
    assert_eq!(rule(u64::MAX), Some(Rule::TooLarge));
    let frame = Frame::read(&2_u64.to_le_bytes(), file_bytes, Limits::default()).unwrap();
    assert_eq!(frame.data_len().value(), 90 + 4 * GIB);
    assert!(frame.data_span().of(b"{}").is_none());
}

#[test]
fn runs_beyond_32_bits_are_kept() {
    let mut axes = [Axis::default(); 2];
    let picks = [Pick { start: 60_000, stop: 60_002, step: 1 }, Pick { start: 8_000, stop: 8_010, step: 1 }];
    let slice = Slice::of(Shape::new(b"[65536,8192]"), &picks, &mut axes).unwrap();
    let begins: Vec<u64> = slice.map(|run| run.span(Dtype::F64).unwrap().begin().value()).collect();
    assert_eq!(begins, [(60_000 * 8_192 + 8_000) * 8, (60_001 * 8_192 + 8_000) * 8]);
    assert!(begins[0] > 3 * GIB);
}
