//! Every header that is one byte away from one that the reference, or a writer with habits of its own, writes.
//!
//! The core reads entries that are spelled as the reference spells them, or as the entry before, many bytes at a time, and
//! leaves all others to a slower way. A tiny difference that a quick way takes for none is a wrong verdict: a NUL behind
//! the name of a dtype once was. So each byte of a few headers is replaced by each of the 256, left out, and each of them
//! is put before it.

use safestep_tests::oracle::{self, recipe};
use safestep_tests::twin;

/// What the reference writes: numbers of one digit to twenty, two entries of which the second begins where the first ends, every spelling of
/// dtype that the quick way knows, a shape of none, one and more.
const HEADERS: [&str; 4] = [
    r#"{"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"F8_E4M3","shape":[],"data_offsets":[24,25]}}"#,
    r#"{"w":{"dtype":"BF16","shape":[61728394],"data_offsets":[0,123456788]},"x":{"dtype":"U8","shape":[0],"data_offsets":[123456788,123456788]}}"#,
    r#"{"a":{"dtype":"U8","shape":[999999999999999],"data_offsets":[0,999999999999999]},"b":{"dtype":"F4","shape":[1,2],"data_offsets":[999999999999999,1000000000000000]}}"#,
    r#"{"__metadata__":{"k":"v"},"b":{"dtype":"BOOL","shape":[2305843009213693,1000],"data_offsets":[0,2305843009213693000]}}"#,
];

/// Three entries alike: as Python's `json` spells them, pretty-printed, and in an order and with blanks of nobody's.
const PATTERNS: [&str; 3] = [
    r#"{"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "b": {"dtype": "F16", "shape": [4, 1], "data_offsets": [24, 32]}, "c": {"dtype": "I8", "shape": [], "data_offsets": [32, 33]}}"#,
    "{\n \"a\": {\n  \"dtype\": \"U8\",\n  \"shape\": [\n   2\n  ],\n  \"data_offsets\": [\n   0,\n   2\n  ]\n },\n \"b\": {\n  \"dtype\": \"U8\",\n  \"shape\": [\n   3\n  ],\n  \"data_offsets\": [\n   2,\n   5\n  ]\n }\n}",
    "{\"a\":\t{\"data_offsets\":[0 ,24],\"shape\":[ 2 ,3], \"dtype\" :\"F32\"} ,\"b\":\t{\"data_offsets\":[24 ,40],\"shape\":[ 2 ,2], \"dtype\" :\"F32\"} ,\"c\":\t{\"data_offsets\":[40 ,44],\"shape\":[ 1], \"dtype\" :\"F32\"} }",
];

/// Values of every kind of which no byte may be missed though nobody wants them, and the rule that they break; and one
/// that ends where the entry goes on.
const UNREAD: [(&str, &str); 3] = [
    (
        "R4.field",
        r#"{"a":{"dtype":"U8","z":[[],{},1,[2,[]],{"b":[],"c":{}},-3.5e+7,[[[[[[[[[[4]]]]]]]]]],[[[[{"k":[[[[5]]]]}]]]],true,"s"],"shape":[],"data_offsets":[0,1]}}"#,
    ),
    (
        "R4.field",
        r#"{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1],"z": {"b": [12 , {"c" : null , "d" : [ ]} , [[[[[[[[[]]]]]]]] , 0]] , "e": {}}} }"#,
    ),
    ("R4.dtype", r#"{"a":{"dtype":[[[[[[[[1]]]]]]]],"shape":[],"data_offsets":[0,1]}}"#),
];

/// The quick ways look at up to sixteen bytes at once, so the last entry takes them only with something behind it.
const PADDING: [u8; 24] = [b' '; 24];

fn judge(text: &[u8], data_len: u64) {
    let bytes = recipe::front(text);
    let file_len = bytes.len() as u64 + data_len;
    oracle::header(&bytes, file_len);
}

fn judge_padded(text: &[u8], data_len: u64) {
    judge(&[text, &PADDING].concat(), data_len);
}

fn neighbours(text: &str) {
    let bytes = recipe::front(text.as_bytes());
    let found = twin::judge(&bytes, u64::MAX, &twin::Options::default()).expect_err("surplus");
    assert_eq!(found.rule, "R5.surplus");
    neighbours_before(text.as_bytes(), found.offset - bytes.len() as u64);
}

fn neighbours_before(text: &[u8], data_len: u64) {
    for place in 0..text.len() {
        let mut changed = text.to_vec();
        changed.remove(place);
        judge(&changed, data_len);
        judge_padded(&changed, data_len);
        for byte in 0..=255 {
            changed = text.to_vec();
            changed[place] = byte;
            judge_padded(&changed, data_len);
            changed.insert(place, text[place]);
            judge_padded(&changed, data_len);
        }
    }
}

#[test]
fn neighbours_of_small_numbers() {
    neighbours(HEADERS[0]);
}

#[test]
fn neighbours_of_long_numbers() {
    neighbours(HEADERS[1]);
}

#[test]
fn neighbours_of_the_longest_quick_numbers() {
    neighbours(HEADERS[2]);
}

#[test]
fn neighbours_of_numbers_that_are_too_long_for_the_quick_way() {
    neighbours(HEADERS[3]);
}

#[test]
fn neighbours_of_pythons_spelling() {
    neighbours(PATTERNS[0]);
}

#[test]
fn neighbours_of_a_pretty_spelling() {
    neighbours(PATTERNS[1]);
}

#[test]
fn neighbours_of_an_odd_spelling() {
    neighbours(PATTERNS[2]);
}

#[test]
fn neighbours_of_values_that_nobody_reads() {
    for (rule, text) in UNREAD {
        let bytes = recipe::front(text.as_bytes());
        let found = twin::judge(&bytes, bytes.len() as u64 + 1, &twin::Options::default());
        assert_eq!(found.expect_err("a broken rule").rule, rule);
        neighbours_before(text.as_bytes(), 1);
    }
}

/// Shapes whose bits, cut to 64, are those of the offsets: in every dtype, 2^64 and 2^64 + 64 bits.
#[test]
fn sizes_that_come_round() {
    for (name, bits) in twin::dtypes::DTYPES {
        for (shape, size) in [
            ([1 << 29, 1 << 29, 64 / bits.next_power_of_two()], 0),
            // Their product is 2^58 + 1.
            ([536_838_145, 536_903_681, 64 / bits.next_power_of_two()], 8),
            ([1 << 32, 1 << 32, 1], 0),
            ([1 << 32, 1 << 32, 0], 0),
        ] {
            let shape = format!("{shape:?}").replace(' ', "");
            let entry = |name: &str, dtype: &str, shape: &str, begin: u64, end: u64| {
                format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}"#)
            };
            let text =
                format!("{{{},{}}}", entry("a", "U8", "[1]", 0, 1), entry("b", name, &shape, 1, 1 + size));
            judge_padded(text.as_bytes(), 1 + size);
            judge_padded(text.replace(':', " : ").as_bytes(), 1 + size);
        }
    }
}

/// Each dtype with a byte more before its closing quote, or one less, or another there.
#[test]
fn neighbours_of_every_dtype() {
    for (name, bits) in twin::dtypes::DTYPES {
        for byte in 0..=255_u8 {
            for spelled in [
                [name.as_bytes(), &[byte]].concat(),
                [&[byte], name.as_bytes()].concat(),
                [&name.as_bytes()[..name.len() - 1], &[byte]].concat(),
            ] {
                let entry = format!(r#"","shape":[8],"data_offsets":[0,{bits}]}}}}"#);
                let text = [br#"{"a":{"dtype":""#, spelled.as_slice(), entry.as_bytes()].concat();
                judge(&text, bits);
                judge_padded(&text, bits);
            }
        }
    }
}
