//! Every header that is one byte away from one that the reference writes.
//!
//! The core reads entries that are spelled as the reference spells them eight bytes at a time, and leaves all others to
//! a slower way. A tiny difference that the quick way takes for none is a wrong verdict: a NUL behind the name of a
//! dtype once was. So each byte of a few entries is replaced by each of the 256, left out, and doubled with each of them.

use safestep_tests::oracle::{self, recipe};

/// Numbers of one digit to twenty, two entries of which the second begins where the first ends, every spelling of
/// dtype that the quick way knows, a shape of none, one and more.
const HEADERS: [&str; 4] = [
    r#"{"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"F8_E4M3","shape":[],"data_offsets":[24,25]}}"#,
    r#"{"w":{"dtype":"BF16","shape":[61728394],"data_offsets":[0,123456788]},"x":{"dtype":"U8","shape":[0],"data_offsets":[123456788,123456788]}}"#,
    r#"{"a":{"dtype":"U8","shape":[999999999999999],"data_offsets":[0,999999999999999]},"b":{"dtype":"F4","shape":[1,2],"data_offsets":[999999999999999,1000000000000000]}}"#,
    r#"{"__metadata__":{"k":"v"},"b":{"dtype":"BOOL","shape":[2305843009213693,1000],"data_offsets":[0,2305843009213693000]}}"#,
];

fn judge(text: &[u8], data_len: u64) {
    let bytes = recipe::front(text);
    let file_len = bytes.len() as u64 + data_len;
    oracle::header(&bytes, file_len);
}

fn neighbours(text: &str) {
    let text = text.as_bytes();
    let (front, file_len) = recipe::files(&recipe::front(text)).pop().unwrap();
    let data_len = file_len - 8 - text.len() as u64;
    assert!(front.len() >= 8 + text.len(), "the header is good");
    for place in 0..text.len() {
        let mut changed = text.to_vec();
        changed.remove(place);
        judge(&changed, data_len);
        for byte in 0..=255 {
            changed = text.to_vec();
            changed[place] = byte;
            judge(&changed, data_len);
            changed.insert(place, text[place]);
            judge(&changed, data_len);
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

/// Each dtype with a byte more before its closing quote, or one less, or another there.
#[test]
fn neighbours_of_every_dtype() {
    for (name, bits) in safestep_tests::twin::dtypes::DTYPES {
        for byte in 0..=255_u8 {
            for spelled in [
                [name.as_bytes(), &[byte]].concat(),
                [&[byte], name.as_bytes()].concat(),
                [&name.as_bytes()[..name.len() - 1], &[byte]].concat(),
            ] {
                let entry = format!(r#"","shape":[8],"data_offsets":[0,{bits}]}}}}"#);
                let text = [br#"{"a":{"dtype":""#, spelled.as_slice(), entry.as_bytes()].concat();
                judge(&text, bits);
            }
        }
    }
}
