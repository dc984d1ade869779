//! Turns the input of a fuzzer into the files that it stands for.
//!
//! An input is a file as it is; and its header once more with the right length before it and the right length of data
//! behind it, so that a change in the text is not lost on the frame. Three first words make it a recipe instead, with
//! which the fuzzer gets to places that it would not find byte by byte. As files all three are too large for R1.
//!
//! * `grow....`: a [random file](mutate::random_file) from the eight bytes that follow, then three bytes an edit;
//! * `crowd...`: names that collide in the core's table, two bytes an entry;
//! * `tokens..`: a header of one token a byte.

use std::sync::LazyLock;

use crate::headers::{crowded, mutate};
use crate::twin::{self, Options};

/// The files, each by its front and its length.
#[must_use]
pub fn files(input: &[u8]) -> Vec<(Vec<u8>, u64)> {
    let Some((word, rest)) = input.split_first_chunk::<8>() else {
        return vec![(input.to_vec(), input.len() as u64)];
    };
    match word {
        b"grow...." => grow(rest),
        b"crowd..." => fitted(&crowd(rest)),
        b"tokens.." => fitted(&tokens(rest)),
        length => {
            let header_len = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
            let mut files = vec![(input.to_vec(), input.len() as u64)];
            files.extend(fitted(rest.get(..header_len).unwrap_or(rest)));
            files
        }
    }
}

/// The front of a file with this header.
#[must_use]
pub fn front(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text].concat()
}

/// An entry of U8 whose name is spelled so.
#[must_use]
pub fn entry(spelled: &str, size: u64, begin: u64) -> String {
    let end = begin + size;
    format!(r#""{spelled}":{{"dtype":"U8","shape":[{size}],"data_offsets":[{begin},{end}]}}"#)
}

/// A number that follows from the bytes (FNV-1a).
#[must_use]
pub fn digest(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xCBF2_9CE4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}

/// A file with this header, as long as a file can be; and one whose data ends where the last tensor does.
///
/// Half of the headers are padded: the core's quick ways look some bytes ahead, and not beyond the end.
fn fitted(text: &[u8]) -> Vec<(Vec<u8>, u64)> {
    let padding = if digest(text).is_multiple_of(2) { &b"                        "[..] } else { b"" };
    let bytes = front(&[text, padding].concat());
    let mut files = vec![(bytes.clone(), u64::MAX)];
    match twin::judge(&bytes, u64::MAX, &Options::default()) {
        Err(found) if found.rule == "R5.surplus" => {
            let mut bytes = bytes;
            if let Ok(len) = usize::try_from(found.offset)
                && found.offset <= bytes.len() as u64 + mutate::DATA_BYTES_MAX
            {
                // No two bytes in a row are the same, so that a tensor's bytes are known from its neighbour's.
                bytes.extend((bytes.len()..len).map(|place| u8::try_from(place % 251).expect("below 251")));
            }
            files.push((bytes, found.offset));
        }
        _ => {}
    }
    files
}

fn grow(rest: &[u8]) -> Vec<(Vec<u8>, u64)> {
    let (seed, edits) = rest.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
    let (mut bytes, file_len) = mutate::random_file(u64::from_le_bytes(*seed));
    if edits.len() < 3 {
        return vec![(bytes, file_len)];
    }
    for edit in edits.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([edit[0], edit[1]]) & 0x3fff) % (bytes.len() + 1);
        match edit[1] >> 6 {
            0 if place < bytes.len() => drop(bytes.remove(place)),
            1 => bytes.insert(place, edit[2]),
            _ if place < bytes.len() => bytes[place] = edit[2],
            _ => bytes.push(edit[2]),
        }
    }
    let whole = bytes.len() as u64;
    let header = bytes.get(8..).unwrap_or_default().to_vec();
    let mut files = vec![(bytes, whole)];
    files.extend(fitted(header.trim_ascii_end()));
    files
}

/// Names that all have one fingerprint, in no order.
pub static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut names: Vec<String> = Vec::new();
    for name in crowded::equal_blocks(9) {
        if !names.contains(&name) {
            names.push(name);
        }
        if names.len() == 64 {
            break;
        }
    }
    names
});

/// Thirty names that collide, then what the bytes choose: a name, its spelling, its size, and whether its entry stands
/// before or behind the others.
fn crowd(rest: &[u8]) -> Vec<u8> {
    let names = &*NAMES;
    let mut entries: Vec<String> = names.iter().take(30).map(|name| entry(name, 0, 0)).collect();
    let mut end = 0;
    for choice in rest.chunks_exact(2).take(CHOICES_MAX) {
        let name = match choice[0] {
            pick @ ..0xc0 => names[usize::from(pick & 0x3f)].clone(),
            pick => names[0][..usize::from(pick & 0x0f)].to_owned(),
        };
        let style = choice[1];
        let size = u64::from(style & 3);
        let entry = entry(&spelled(&name, style), size, end);
        end += size;
        let place = if style & 0x80 == 0 { entries.len() } else { usize::from(style) % (entries.len() + 1) };
        entries.insert(place, entry);
    }
    format!("{{{}}}", entries.join(",")).into_bytes()
}

/// More entries would only take more time.
const CHOICES_MAX: usize = 100;

/// A name with one of its characters escaped, if the style says so.
fn spelled(name: &str, style: u8) -> String {
    let escaped = usize::from(style >> 3 & 0x0f);
    let spell = |(place, char): (usize, char)| {
        if style & 4 != 0 && place == escaped {
            format!("\\u{:04x}", u32::from(char))
        } else {
            char.to_string()
        }
    };
    name.chars().enumerate().map(spell).collect()
}

fn tokens(rest: &[u8]) -> Vec<u8> {
    let words = rest.iter().flat_map(|byte| TOKENS[usize::from(*byte) % TOKENS.len()].bytes());
    b"{".iter().copied().chain(words).collect()
}

/// What headers are made of.
const TOKENS: [&str; 96] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    " ",
    "\n",
    "\t",
    "\r",
    "\"",
    "\\",
    "\u{e9}",
    "\u{1f600}",
    "\\u",
    "\\ud83d",
    "\\ude00",
    "0",
    "1",
    "2",
    "4",
    "8",
    "9",
    "-",
    ".",
    "e",
    "+",
    "18446744073709551615",
    "18446744073709551616",
    "4294967296",
    "null",
    "true",
    "false",
    "\"\"",
    "\"a\"",
    "\"b\"",
    "\"\\u0061\"",
    "\"a\":",
    "\"b\":",
    "\"c\":",
    "\"\\u0062\":",
    "\"\":",
    "\"dtype\":",
    "\"shape\":",
    "\"data_offsets\":",
    "\"dtyp\\u0065\":",
    "\"shap\\u0065\":",
    "\"__metadata__\":",
    "\"__metadat\\u0061__\":",
    "\"__metadata__\":{",
    "\"__metadata__\":null",
    "\"BOOL\"",
    "\"F4\"",
    "\"F6_E2M3\"",
    "\"F6_E3M2\"",
    "\"U8\"",
    "\"F8_E4M3\"",
    "\"BF16\"",
    "\"F32\"",
    "\"C64\"",
    "\"U64\"",
    "\"f32\"",
    "[]",
    "[1]",
    "[2]",
    "[4]",
    "[0]",
    "[2,2]",
    "[0,0]",
    "[0,1]",
    "[0,2]",
    "[0,4]",
    "[0,8]",
    "[1,2]",
    "[2,4]",
    "[4,8]",
    "[8,16]",
    "[4,4]",
    "[8,8]",
    "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}",
    "\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[4,8]}",
    "\"c\":{\"dtype\":\"F4\",\"shape\":[2,4],\"data_offsets\":[8,12]}",
    "\"z\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[4,4]}",
    "\"\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}",
    "\"d\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[12,16]}",
    "\"x\":1",
    "\"k\":\"v\"",
    "\"l\":\"\\n\"",
    "[[[[[[[[",
    "]]]]]]]]",
    "{\"n\":{\"n\":",
    "        ",
    "\u{0}",
    "\u{7f}",
    "1e9",
    "-0",
];
