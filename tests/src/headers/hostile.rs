//! Turns a length into headers that try to cost more than an honest header of that length.
//!
//! Each comes out at about the given length (within one entry, and never less than the smallest header of its kind). They
//! aim at sorting, at searching for equal keys, at comparing, unescaping, skipping and nesting.

use super::Sample;
use super::random::Random;

/// What makes a sample of about a given length.
pub type Make = fn(usize) -> Sample;

/// Every kind, with its name.
pub const KINDS: [(&str, Make); 21] = [
    ("zero-size, reversed", zero_size_reversed),
    ("one byte, shuffled", one_byte_shuffled),
    ("one byte, reversed", one_byte_reversed),
    ("equal for 100 bytes, shuffled", equal_prefix_shuffled),
    ("equal for 100 bytes, reversed", equal_prefix_reversed),
    ("all escapes, shuffled", escaped_shuffled),
    ("all escapes, equal for 100", escaped_equal_prefix),
    ("duplicate at the end, shuffled", duplicate_at_the_end),
    ("one string", one_string),
    ("one string of escapes", one_string_of_escapes),
    ("one string of u-escapes", one_string_of_u_escapes),
    ("one string beyond ASCII", one_string_beyond_ascii),
    ("blanks between", blanks_between),
    ("blanks after", blanks_after),
    ("a line a token", line_a_token),
    ("brackets, too deep", brackets_too_deep),
    ("brackets, not too deep", brackets_not_too_deep),
    ("ones", ones),
    ("metadata keys, shuffled", metadata_keys_shuffled),
    ("metadata keys, equal for 100, reversed", metadata_keys_reversed),
    ("unknown fields, shuffled", unknown_fields_shuffled),
];

/// Every kind at about this length.
pub fn all(header_len: usize) -> impl Iterator<Item = Sample> {
    KINDS.into_iter().map(move |(_, make)| make(header_len))
}

/// One-byte tensors whose names fall into one bucket: `hash(name) & mask` is the same for all, where `name` is what stands
/// between the quotes (no name needs an escape). The header is shuffled against the data, and the names are in no order.
///
/// The search takes about `mask + 1` hashes a name if the mask has its ones at the low end.
pub fn colliding(header_len: usize, hash: &dyn Fn(&[u8]) -> u64, mask: u64) -> Sample {
    let bucket = hash(b"w0") & mask;
    let mut candidates = (0_u64..).map(|number| format!("w{number:x}"));
    let names = std::iter::from_fn(|| candidates.find(|name| hash(name.as_bytes()) & mask == bucket));
    let count = header_len / entry("w00000", 1, 100_000).len();
    let names: Vec<String> = names.take(count.max(2)).collect();
    tensors("colliding, shuffled", names, 1, Order::Shuffled)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Reversed,
    Shuffled,
}

/// An entry whose name needs no escape, or is escaped already.
fn entry(name: &str, size: u64, begin: u64) -> String {
    let end = begin + size;
    format!(r#""{name}":{{"dtype":"U8","shape":[{size}],"data_offsets":[{begin},{end}]}}"#)
}

fn document(parts: &[String]) -> String {
    let mut text = format!("{{{}}}", parts.join(","));
    text.push_str(&" ".repeat(text.len().next_multiple_of(8) - text.len()));
    text
}

/// Tensors of `size` bytes each, given in data order.
fn tensors(kind: &str, names: Vec<String>, size: u64, order: Order) -> Sample {
    let data_len = size * names.len() as u64;
    let entries = names.iter().enumerate().map(|(place, name)| entry(name, size, size * place as u64));
    let mut entries: Vec<String> = entries.collect();
    match order {
        Order::Reversed => entries.reverse(),
        Order::Shuffled => Random::new(1).shuffle(&mut entries),
    }
    Sample::new(kind, document(&entries), data_len, None)
}

/// As many names as entries of so many bytes fit into the length, at least two.
fn names(header_len: usize, size: u64, spell: impl Fn(usize) -> String) -> Vec<String> {
    let (mut names, mut len) = (Vec::new(), 0);
    while len < header_len || names.len() < 2 {
        let name = spell(names.len());
        let comma = 1;
        len += entry(&name, size, size * names.len() as u64).len() + comma;
        names.push(name);
    }
    names
}

fn plain(number: usize) -> String {
    format!("t{number:07}")
}

fn equal_prefix(number: usize) -> String {
    format!("{}{number:07}", "x".repeat(100))
}

fn u_escapes(text: &str) -> String {
    text.bytes().map(|byte| format!("\\u{byte:04x}")).collect()
}

fn zero_size_reversed(header_len: usize) -> Sample {
    tensors("zero-size, reversed", names(header_len, 0, plain), 0, Order::Reversed)
}

fn one_byte_shuffled(header_len: usize) -> Sample {
    tensors("one byte, shuffled", names(header_len, 1, plain), 1, Order::Shuffled)
}

fn one_byte_reversed(header_len: usize) -> Sample {
    tensors("one byte, reversed", names(header_len, 1, plain), 1, Order::Reversed)
}

fn equal_prefix_shuffled(header_len: usize) -> Sample {
    tensors("equal for 100 bytes, shuffled", names(header_len, 1, equal_prefix), 1, Order::Shuffled)
}

fn equal_prefix_reversed(header_len: usize) -> Sample {
    tensors("equal for 100 bytes, reversed", names(header_len, 1, equal_prefix), 1, Order::Reversed)
}

fn escaped_shuffled(header_len: usize) -> Sample {
    let names = names(header_len, 1, |number| u_escapes(&plain(number)));
    tensors("all escapes, shuffled", names, 1, Order::Shuffled)
}

fn escaped_equal_prefix(header_len: usize) -> Sample {
    let names = names(header_len, 0, |number| u_escapes(&equal_prefix(number)));
    tensors("all escapes, equal for 100", names, 0, Order::Shuffled)
}

/// The last key is an escaped spelling of the first.
fn duplicate_at_the_end(header_len: usize) -> Sample {
    let mut names = names(header_len, 0, plain);
    Random::new(2).shuffle(&mut names);
    let mut entries: Vec<String> = names.iter().map(|name| entry(name, 0, 0)).collect();
    entries.push(entry(&u_escapes(&names[0]), 0, 0));
    Sample::new("duplicate at the end, shuffled", document(&entries), 0, Some("R2.duplicate"))
}

/// The metadata holds one value that repeats `unit`.
fn one_value(kind: &str, header_len: usize, unit: &str) -> Sample {
    let value = unit.repeat(header_len / unit.len());
    let metadata = format!(r#""__metadata__":{{"k":"{value}"}}"#);
    Sample::new(kind, document(&[metadata]), 0, None)
}

fn one_string(header_len: usize) -> Sample {
    one_value("one string", header_len, "x")
}

fn one_string_of_escapes(header_len: usize) -> Sample {
    one_value("one string of escapes", header_len, "\\\"")
}

fn one_string_of_u_escapes(header_len: usize) -> Sample {
    one_value("one string of u-escapes", header_len, "\\ud83d\\ude00")
}

fn one_string_beyond_ascii(header_len: usize) -> Sample {
    one_value("one string beyond ASCII", header_len, "x\u{e9}\u{540d}\u{1f600}")
}

/// White space of all four kinds between every two tokens of one entry.
fn blanks_between(header_len: usize) -> Sample {
    let tokens = [
        "{",
        "\"a\"",
        ":",
        "{",
        "\"dtype\"",
        ":",
        "\"U8\"",
        ",",
        "\"shape\"",
        ":",
        "[",
        "1",
        "]",
        ",",
        "\"data_offsets\"",
    ];
    let tokens = tokens.into_iter().chain([":", "[", "0", ",", "1", "]", "}", "}"]);
    let blanks = " \n\t\r".repeat(header_len / 23 / 4);
    let text: String = tokens.map(|token| format!("{token}{blanks}")).collect();
    Sample::new("blanks between", text, 1, None)
}

fn blanks_after(header_len: usize) -> Sample {
    Sample::new("blanks after", format!("{{}}{}", " ".repeat(header_len)), 0, None)
}

/// One-byte tensors, every token on a line of its own.
fn line_a_token(header_len: usize) -> Sample {
    let names = names(header_len * 4 / 5, 1, plain);
    let spread = |(place, name): (usize, &String)| {
        entry(name, 1, place as u64)
            .replace(',', "\n,\n")
            .replace(':', "\n:\n")
            .replace('[', "[\n")
            .replace(']', "\n]")
    };
    let entries: Vec<String> = names.iter().enumerate().map(spread).collect();
    Sample::new("a line a token", document(&entries), names.len() as u64, None)
}

fn brackets_too_deep(header_len: usize) -> Sample {
    let text = format!(r#"{{"a":{}"#, "[".repeat(header_len));
    Sample::new("brackets, too deep", text, 0, Some("R2.json"))
}

/// An unknown field that holds towers of brackets, each as deep as is allowed.
fn brackets_not_too_deep(header_len: usize) -> Sample {
    let tower = format!("{}{}", "[".repeat(124), "]".repeat(124));
    let towers = vec![tower; (header_len / 249).max(1)].join(",");
    one_entry_with("brackets, not too deep", &format!(r#""b":[{towers}]"#))
}

/// An entry with more fields than it may have, which only we mind.
fn one_entry_with(kind: &str, unknown_fields: &str) -> Sample {
    let entry = format!(r#""a":{{{unknown_fields},"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#);
    Sample::new(kind, document(&[entry]), 1, Some("R4.field"))
}

fn ones(header_len: usize) -> Sample {
    let ones = vec!["1"; (header_len / 2).max(1)].join(",");
    let text = format!(r#""a":{{"dtype":"U8","shape":[{ones}],"data_offsets":[0,1]}}"#);
    Sample::new("ones", document(&[text]), 1, None)
}

/// As many members with an empty string as fit into the length.
fn members(header_len: usize, spell: fn(usize) -> String) -> Vec<String> {
    let member = |number| format!(r#""{}":"""#, spell(number));
    let count = header_len / (member(1).len() + 1);
    (0..count.max(2)).map(member).collect()
}

fn metadata_keys_shuffled(header_len: usize) -> Sample {
    let mut members = members(header_len, plain);
    Random::new(3).shuffle(&mut members);
    let metadata = format!(r#""__metadata__":{{{}}}"#, members.join(","));
    Sample::new("metadata keys, shuffled", document(&[metadata]), 0, None)
}

fn metadata_keys_reversed(header_len: usize) -> Sample {
    let mut members = members(header_len, equal_prefix);
    members.reverse();
    let metadata = format!(r#""__metadata__":{{{}}}"#, members.join(","));
    Sample::new("metadata keys, equal for 100, reversed", document(&[metadata]), 0, None)
}

fn unknown_fields_shuffled(header_len: usize) -> Sample {
    let mut members = members(header_len, plain);
    Random::new(4).shuffle(&mut members);
    one_entry_with("unknown fields, shuffled", &members.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{reference, twin};

    fn judge(sample: &Sample) -> Result<twin::Model, twin::Break> {
        let verdict = twin::judge(&sample.header, sample.file_len(), &twin::Options::default());
        reference::check(&sample.header, sample.file_len(), &verdict);
        verdict
    }

    #[test]
    fn hostile_headers_have_their_length_and_verdict() {
        for header_len in [0, 1_000, 20_000, 300_000] {
            for ((name, _), sample) in KINDS.into_iter().zip(all(header_len)) {
                assert_eq!(sample.name, name);
                assert_eq!(judge(&sample).err().map(|found| found.rule), sample.rule, "{name}");
                let len = sample.header.len();
                let about = header_len * 9 / 10..header_len * 11 / 10 + 500;
                assert!(header_len < 20_000 || about.contains(&len), "{name}: {len} for {header_len}");
            }
        }
    }

    #[test]
    fn colliding_names_share_a_bucket() {
        let hash =
            |name: &[u8]| name.iter().fold(5381_u64, |sum, byte| sum.wrapping_mul(33) ^ u64::from(*byte));
        let sample = colliding(20_000, &hash, 0xff);
        let model = judge(&sample).unwrap();
        assert!(model.tensors.len() > 200, "{}", model.tensors.len());
        let first = hash(model.tensors[0].name.as_bytes()) & 0xff;
        assert!(model.tensors.iter().all(|tensor| hash(tensor.name.as_bytes()) & 0xff == first));
    }
}
