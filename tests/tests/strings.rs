//! Strings of every short length with one thing in them that a scanner must not miss, at every place.
//!
//! The core passes over strings sixteen and eight bytes at a time, and only notes that it has seen a byte from 0x80 on;
//! UTF-8 is checked afterwards. A byte lost at the edge of a chunk would be a wrong verdict on one length in sixteen.

use safestep_tests::oracle::{self, recipe};

/// Longer than three chunks and the longest escape.
const LENGTH_MAX: usize = 53;

/// What ends a string, what breaks it, what is an escape and what is only nearly one; UTF-8 whole and cut.
const THINGS: [&[u8]; 32] = [
    b"",
    b"\"",
    b"\\",
    b"\\\"",
    b"\\\\",
    b"\\/",
    b"\\n",
    b"\\x",
    b"\\u0041",
    b"\\u00e9",
    b"\\u12g4",
    b"\\ud83d\\ude00",
    b"\\ud83d",
    b"\\ude00",
    // Two halves that are not the two.
    b"\\udc00\\udc00",
    b"\\ude00\\ude00",
    b"\\ud83d\\ud83d",
    // Where UTF-8 takes another byte.
    b"\\u007f",
    b"\\u0080",
    b"\\u07FF",
    b"\\u0800",
    b"\\uffff",
    b"\\ud800\\udc00",
    b"\\udbff\\udfff",
    b"\n",
    b"\x1f",
    b"\x7f",
    b"\x80",
    b"\xff",
    "é".as_bytes(),
    "😀".as_bytes(),
    b"\xf0\x9f\x98",
];

/// The header with the string where it says `§`, behind other strings so that it begins at any place of a chunk.
fn judge(template: &str, string: &[u8]) {
    let (before, after) = template.split_once('§').unwrap();
    let text = [before.as_bytes(), string, after.as_bytes()].concat();
    let bytes = recipe::front(&text);
    oracle::header(&bytes, bytes.len() as u64 + 1);
}

fn at_every_place(template: &str) {
    for length in 0..LENGTH_MAX {
        // Every place in short strings, and the ends of longer ones.
        for place in (0..=length).filter(|place| length < 36 || *place < 3 || *place + 19 > length) {
            for thing in THINGS {
                let string = [&b"x".repeat(place), thing, &b"y".repeat(length - place)].concat();
                judge(template, &string);
            }
        }
    }
}

#[test]
fn in_a_value_of_the_metadata() {
    at_every_place(r#"{"__metadata__":{"k":"§"},"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}"#);
}

#[test]
fn in_a_key_of_the_metadata() {
    at_every_place(
        r#"{"__metadata__":{"k":"v","§":"","l":"w"},"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}"#,
    );
}

#[test]
fn in_the_name_of_a_tensor() {
    at_every_place(
        r#"{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"§":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}"#,
    );
}

#[test]
fn in_a_string_that_nobody_reads() {
    at_every_place(r#"{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1],"z":[{"§":0}]}}"#);
}
