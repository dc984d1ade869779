//! Turns a header's text into bytes: its padding, and the faults that know nothing of JSON.

#![expect(clippy::ptr_arg, reason = "all faults have the type of those that insert")]

use crate::headers::random::Random;

/// Bytes that mean something to a reader, and some that should not be there.
const BYTES: &[u8] = b"{}[],:\"\\ \n\t\r0123456789-+.eEtfnua/\0\x01\x1f\x7f\x80\xbf\xc3\xe9\xed\xf0\xf5\xff";

/// White space behind the closing brace: mostly what the reference writes.
pub(super) fn pad(random: &mut Random, header: &mut Vec<u8>) {
    let len = header.len().next_multiple_of(8);
    match random.below(20) {
        0..14 => header.resize(len, b' '),
        14 | 15 => {}
        16 => header.resize(len, b'\n'),
        _ => {
            for _ in 0..random.below(12) {
                header.push(random.pick(b"  \n\t\r"));
            }
        }
    }
}

type Fault = fn(&mut Random, &mut Vec<u8>);

/// Faults in the header.
pub(super) const TEXT_FAULTS: &[Fault] = &[
    flip,
    replace,
    replace,
    insert,
    insert,
    delete,
    delete,
    delete_range,
    repeat_range,
    swap,
    cut,
    bad_utf8,
    bad_escape,
    bad_escape,
    comma_too_many,
    comma_too_many,
    append,
    append,
    prepend,
    prepend,
];

/// Faults in the file, of which the first eight bytes are the header's length.
pub(super) const FRAME_FAULTS: &[Fault] = &[
    other_length,
    other_length,
    near_length,
    near_length,
    cut_anywhere,
    cut_short,
    extend,
    cut_shorter_than_the_length,
];

fn flip(random: &mut Random, bytes: &mut Vec<u8>) {
    if let Some(byte) = some_byte(random, bytes) {
        *byte ^= 1 << random.below(8);
    }
}

fn replace(random: &mut Random, bytes: &mut Vec<u8>) {
    if let Some(byte) = some_byte(random, bytes) {
        *byte = random.pick(BYTES);
    }
}

fn some_byte<'a>(random: &mut Random, bytes: &'a mut [u8]) -> Option<&'a mut u8> {
    let place = random.below(bytes.len().max(1));
    bytes.get_mut(place)
}

fn insert(random: &mut Random, bytes: &mut Vec<u8>) {
    bytes.insert(random.below(bytes.len() + 1), random.pick(BYTES));
}

fn delete(random: &mut Random, bytes: &mut Vec<u8>) {
    if !bytes.is_empty() {
        bytes.remove(random.below(bytes.len()));
    }
}

fn some_range(random: &mut Random, bytes: &[u8]) -> std::ops::Range<usize> {
    let begin = random.below(bytes.len() + 1);
    let end = (begin + random.below(12)).min(bytes.len());
    begin..end
}

fn delete_range(random: &mut Random, bytes: &mut Vec<u8>) {
    bytes.drain(some_range(random, bytes));
}

fn repeat_range(random: &mut Random, bytes: &mut Vec<u8>) {
    let range = some_range(random, bytes);
    let copy = bytes[range.clone()].to_vec();
    bytes.splice(range.start..range.start, copy);
}

fn swap(random: &mut Random, bytes: &mut Vec<u8>) {
    if bytes.len() > 1 {
        let place = random.below(bytes.len() - 1);
        bytes.swap(place, place + 1);
    }
}

fn cut(random: &mut Random, bytes: &mut Vec<u8>) {
    bytes.truncate(random.below(bytes.len() + 1));
}

fn bad_utf8(random: &mut Random, bytes: &mut Vec<u8>) {
    let bad: [&[u8]; 7] =
        [b"\x80", b"\xc3", b"\xc0\x80", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xf4\x90\x80\x80", b"\xff"];
    let place = random.below(bytes.len() + 1);
    bytes.splice(place..place, random.pick(&bad).iter().copied());
}

/// Something that cannot stand in a string, behind one of the quotes.
fn bad_escape(random: &mut Random, bytes: &mut Vec<u8>) {
    let bad = [
        "\\x",
        "\\",
        "\\u",
        "\\u12",
        "\\u12g4",
        "\\uD800",
        "\\ud800\\n",
        "\\ud800\\u0041",
        "\\ud800\\ud800",
        "\\udfff",
        "\\ud800\\",
        "\\ud800\\u",
        "\\ud800\\uzz",
        "\\ud83d\\ude0",
        "\u{1}",
        "\n",
        "\0",
        "\\U0041",
        "\\'",
        "\\ud83d\\ude00",
    ];
    let places: Vec<usize> = (0..bytes.len()).filter(|place| bytes[*place] == b'"').collect();
    if !places.is_empty() {
        let behind = random.pick(&places) + 1;
        bytes.splice(behind..behind, random.pick(&bad).bytes());
    }
}

/// One comma or colon too many, before some punctuation.
fn comma_too_many(random: &mut Random, bytes: &mut Vec<u8>) {
    let after = random.pick(b"}]{[,:");
    let places: Vec<usize> = (0..bytes.len()).filter(|place| bytes[*place] == after).collect();
    if !places.is_empty() {
        bytes.insert(random.pick(&places), random.pick(b",,,:"));
    }
}

fn append(random: &mut Random, bytes: &mut Vec<u8>) {
    let tails = [
        "\0",
        "\0\0\0",
        "}",
        "{}",
        "x",
        ",",
        "  x  ",
        "\u{c}",
        "\u{a0}",
        "\u{feff}",
        "\n\t\r \n",
        "null",
        "//",
    ];
    bytes.extend(random.pick(&tails).bytes());
}

fn prepend(random: &mut Random, bytes: &mut Vec<u8>) {
    let heads = [" ", "\n", "\r\n\t ", "\u{feff}", "[", "\0", "null", "  "];
    bytes.splice(0..0, random.pick(&heads).bytes());
}

fn set_length(file: &mut [u8], header_len: u64) {
    if let Some(prefix) = file.get_mut(..8) {
        prefix.copy_from_slice(&header_len.to_le_bytes());
    }
}

fn other_length(random: &mut Random, file: &mut Vec<u8>) {
    let any = random.bits() >> random.below(64);
    let lengths = [0, 1, 2, 100_000_000, 100_000_001, u64::MAX, u64::MAX - 7, 1 << 63, 1 << 32, any];
    set_length(file, random.pick(&lengths));
}

fn near_length(random: &mut Random, file: &mut Vec<u8>) {
    let by = random.pick(&[-9, -8, -2, -1, 1, 2, 8, 9]);
    if let Some(prefix) = file.get(..8) {
        let header_len = u64::from_le_bytes(prefix.try_into().expect("eight bytes"));
        set_length(file, header_len.wrapping_add_signed(by));
    }
}

fn cut_anywhere(random: &mut Random, file: &mut Vec<u8>) {
    file.truncate(random.below(file.len() + 1));
}

fn cut_short(random: &mut Random, file: &mut Vec<u8>) {
    file.truncate(random.below(9));
}

/// Cuts the header, and says so: it ends too early without the frame being wrong.
fn cut_shorter_than_the_length(random: &mut Random, file: &mut Vec<u8>) {
    cut_anywhere(random, file);
    let header_len = (file.len() as u64).saturating_sub(8);
    set_length(file, header_len);
}

fn extend(random: &mut Random, file: &mut Vec<u8>) {
    let tail = [0, b' ', b'}', 0xff];
    for _ in 0..=random.below(9) {
        file.push(random.pick(&tail));
    }
}
