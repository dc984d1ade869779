//! Turns a file into what the reference crate (`safetensors` 0.8) says of it.
//!
//! The agreement between our reader and the reference, which [`check`] asserts: everything that we accept the reference
//! accepts, with the same content; what we refuse and the reference accepts is one of the cases of
//! [`refused_on_purpose`].

use std::collections::BTreeMap;

use safetensors::tensor::{Metadata, SafeTensors};

use crate::twin::{Break, Model};

/// What the reference reads from a header, in an order that does not depend on its hash maps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// N, the length of the header.
    pub header_len: u64,
    /// The metadata; `None` when absent or null.
    pub metadata: Option<BTreeMap<String, String>>,
    /// By name.
    pub tensors: BTreeMap<String, Info>,
}

/// One tensor as the reference reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// The dtype's name.
    pub dtype: String,
    /// The shape, outermost first.
    pub shape: Vec<u64>,
    /// Where its data begins, counted from the end of the header.
    pub begin: u64,
    /// Where its data ends, counted from the end of the header.
    pub end: u64,
}

/// The longest header that the reference reads.
const HEADER_BYTES_MAX: u64 = 100_000_000;

/// The verdict of `SafeTensors::read_metadata` on the bytes of a whole file.
///
/// The reference adds the end of the data and of the header without a check and panics on overflow in a debug build,
/// where the sum exceeds 64 bits. Such a file is refused here before the reference adds.
///
/// # Errors
/// The reference's words.
///
/// # Panics
/// If the reference and [`accepts_prefix`] differ.
pub fn accepts(file: &[u8]) -> Result<Summary, String> {
    let expected = accepts_prefix(file, file.len() as u64);
    if matches!(&expected, Err(words) if words == TOO_LONG) {
        return expected;
    }
    let found = SafeTensors::read_metadata(file);
    let found = found.map(|(header_len, metadata)| summary(header_len as u64, &metadata));
    let found = found.map_err(|error| error.to_string());
    assert_eq!(
        found.as_ref().ok(),
        expected.as_ref().ok(),
        "{found:?} of the file, {expected:?} of its header"
    );
    found
}

/// The same verdict for a file of which only the header is at hand: the reference's own reading of the header, with
/// its comparison of lengths done outside of it.
///
/// # Errors
/// The reference's words, or ours where the reference compares lengths.
///
/// # Panics
/// If `bytes` ends inside the header although the file does not.
pub fn accepts_prefix(bytes: &[u8], file_len: u64) -> Result<Summary, String> {
    if file_len < 8 {
        return Err("header too small".to_owned());
    }
    let header_len = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
    if header_len > HEADER_BYTES_MAX {
        return Err("header too large".to_owned());
    }
    let header_end = 8 + header_len;
    if header_end > file_len {
        return Err("invalid header length".to_owned());
    }
    let header = &bytes[8..usize::try_from(header_end).expect("a header in memory")];
    let text = std::str::from_utf8(header).map_err(|error| error.to_string())?;
    let metadata: Metadata = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let length = header_end.checked_add(metadata.data_len() as u64).ok_or_else(|| TOO_LONG.to_owned())?;
    if length != file_len {
        return Err("incomplete metadata, file not fully covered".to_owned());
    }
    Ok(summary(header_len, &metadata))
}

const TOO_LONG: &str = "header and data together exceed 64 bits";

fn summary(header_len: u64, metadata: &Metadata) -> Summary {
    let tensors = metadata.tensors().into_iter().map(|(name, info)| {
        let dtype = info.dtype.to_string();
        let shape = info.shape.iter().map(|size| *size as u64).collect();
        let (begin, end) = info.data_offsets;
        (name, Info { dtype, shape, begin: begin as u64, end: end as u64 })
    });
    let pairs = |map: &std::collections::HashMap<String, String>| map.clone().into_iter().collect();
    Summary { header_len, metadata: metadata.metadata().as_ref().map(pairs), tensors: tensors.collect() }
}

/// True of the refusals that the reference does not share. There are no others:
///
/// * blanks before the opening brace (R2.start),
/// * equal keys among the tensors or in the metadata, of which the reference takes one (R2.duplicate); it refuses only
///   a second `__metadata__` and a second `dtype`, `shape` or `data_offsets`,
/// * unknown fields (R4.field at a key),
/// * an entry in array form, `["F32",[1],[0,4]]` (R4.field at the bracket),
/// * a dtype in object form, `{"F32":null}` (R4.dtype at the brace).
///
/// A narrower limit or list of dtypes, which the caller sets, is not judged here.
#[must_use]
pub fn refused_on_purpose(found: &Break, file: &[u8]) -> bool {
    let byte = usize::try_from(found.offset).ok().and_then(|at| file.get(at)).copied();
    match found.rule {
        "R2.start" => matches!(byte, Some(b' ' | b'\t' | b'\n' | b'\r')),
        "R2.duplicate" => true,
        "R4.field" => matches!(byte, Some(b'"' | b'[')),
        "R4.dtype" => byte == Some(b'{'),
        _ => false,
    }
}

/// Asserts the agreement between a verdict of ours, by the default options, and the reference's.
///
/// # Panics
/// When the two differ in a way that no document allows.
pub fn check(bytes: &[u8], file_len: u64, ours: &Result<Model, Break>) {
    let theirs =
        if bytes.len() as u64 == file_len { accepts(bytes) } else { accepts_prefix(bytes, file_len) };
    let text = String::from_utf8_lossy(bytes);
    match (ours, theirs) {
        (Ok(model), Ok(summary)) => assert_eq!(summary_of(model), summary, "{text}"),
        (Ok(_), Err(words)) => panic!("we accept, the reference says {words}: {text}"),
        (Err(found), Ok(_)) => assert!(refused_on_purpose(found, bytes), "{found:?} is ours alone: {text}"),
        (Err(_), Err(_)) => {}
    }
}

/// A model in the reference's terms.
#[must_use]
pub fn summary_of(model: &Model) -> Summary {
    let tensors = model.tensors.iter().map(|tensor| {
        let (dtype, shape) = (tensor.dtype.clone(), tensor.shape.clone());
        (tensor.name.clone(), Info { dtype, shape, begin: tensor.begin, end: tensor.end })
    });
    let metadata = model.metadata.as_ref().map(|pairs| pairs.iter().cloned().collect());
    Summary { header_len: model.header_len, metadata, tensors: tensors.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::twin::{Options, judge};

    fn file(header: &str, data_len: u64) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.bytes());
        bytes.resize(bytes.len() + usize::try_from(data_len).unwrap(), 0);
        bytes
    }

    /// Our rule if we refuse, and whether the reference accepts.
    fn verdicts(header: &str, data_len: u64) -> (Option<&'static str>, bool) {
        let bytes = file(header, data_len);
        let ours = judge(&bytes, bytes.len() as u64, &Options::default());
        check(&bytes, bytes.len() as u64, &ours);
        (ours.err().map(|found| found.rule), accepts(&bytes).is_ok())
    }

    fn entry(dtype: &str, shape: &str, offsets: &str) -> String {
        format!(r#"{{"a":{{"dtype":{dtype},"shape":{shape},"data_offsets":{offsets}}}}}"#)
    }

    const GOOD: &str = r#"{"dtype":"U8","shape":[4],"data_offsets":[0,4]}"#;

    #[test]
    fn refused_by_us_alone() {
        let repeated = r#"{"dtype":"U8","shape":[4],"x":1,"x":2,"data_offsets":[0,4]}"#;
        let cases = [
            ("R2.start", format!(" {{\"a\":{GOOD}}}")),
            ("R2.start", format!("\r\n\t{{\"a\":{GOOD}}}")),
            ("R2.duplicate", format!(r#"{{"a":{GOOD},"a":{GOOD}}}"#)),
            (
                "R2.duplicate",
                format!(r#"{{"a":{{"dtype":"I8","shape":[9],"data_offsets":[9,18]}},"\u0061":{GOOD}}}"#),
            ),
            ("R2.duplicate", format!(r#"{{"__metadata__":{{"k":"1","k":"2"}},"a":{GOOD}}}"#)),
            ("R2.duplicate", format!(r#"{{"a":{repeated}}}"#)),
            ("R4.field", format!(r#"{{"a":{}}}"#, GOOD.replace("}", r#","x":{"y":[null]}}"#))),
            ("R4.field", r#"{"a":["U8",[4],[0,4]]}"#.to_owned()),
            ("R4.dtype", entry(r#"{"U8":null}"#, "[4]", "[0,4]")),
            ("R4.dtype", entry(r#"{"\u00558":null}"#, "[4]", "[0,4]")),
        ];
        for (rule, header) in cases {
            assert_eq!(verdicts(&header, 4), (Some(rule), true), "{header}");
        }
    }

    #[test]
    fn refused_by_both() {
        let cases = [
            ("R2.start", format!("[{{\"a\":{GOOD}}}]")),
            ("R2.start", format!("\u{feff}{{\"a\":{GOOD}}}")),
            ("R2.trailing", format!("{{\"a\":{GOOD}}}\0")),
            ("R2.duplicate", format!(r#"{{"__metadata__":null,"a":{GOOD},"__metadata__":null}}"#)),
            ("R2.duplicate", format!(r#"{{"a":{}}}"#, GOOD.replace('{', r#"{"dtype":"U8","#))),
            ("R3.metadata", format!(r#"{{"__metadata__":[],"a":{GOOD}}}"#)),
            ("R3.metadata", format!(r#"{{"__metadata__":{{"k":null}},"a":{GOOD}}}"#)),
            ("R4.field", format!(r#"{{"a":{GOOD},"b":null}}"#)),
            ("R4.field", r#"{"a":["U8",[4],[0,4],0]}"#.to_owned()),
            ("R4.field", r#"{"a":["U8",[4]]}"#.to_owned()),
            ("R4.field", format!(r#"{{"a":{}}}"#, GOOD.replace("}", r#","x":1e999}"#))),
            ("R4.dtype", entry("\"u8\"", "[4]", "[0,4]")),
            ("R4.dtype", entry(r#"["U8"]"#, "[4]", "[0,4]")),
            ("R4.dtype", entry(r#"{"U8":0}"#, "[4]", "[0,4]")),
            ("R4.dtype", entry(r#"{"U8":{}}"#, "[4]", "[0,4]")),
            ("R4.dtype", entry(r#"{"U8":[]}"#, "[4]", "[0,4]")),
            ("R4.dtype", entry(r#"{"U8":null,"I8":null}"#, "[4]", "[0,4]")),
            ("R4.dtype", entry("4", "[4]", "[0,4]")),
            ("R4.shape", entry("\"U8\"", "[4.0]", "[0,4]")),
            ("R4.shape", entry("\"U8\"", "[4,1e0]", "[0,4]")),
            ("R4.shape", entry("\"U8\"", "[\"4\"]", "[0,4]")),
            ("R4.shape", entry("\"U8\"", "[-0]", "[0,4]")),
            ("R4.offsets", entry("\"U8\"", "[4]", "[-0,4]")),
            ("R4.offsets", entry("\"U8\"", "[4]", "[0,4,4]")),
            ("R4.overflow", entry("\"U8\"", "[4294967296,4294967296,0]", "[0,0]")),
            ("R4.bits", entry("\"F4\"", "[7]", "[0,4]")),
            ("R5.surplus", "{}".to_owned()),
        ];
        for (rule, header) in cases {
            assert_eq!(verdicts(&header, 4), (Some(rule), false), "{header}");
        }
    }

    /// Sixteen tensors of almost 2^60 bytes: a debug build of the reference would panic.
    #[test]
    fn sums_beyond_64_bits_are_refused_without_a_panic() {
        let size = 1_u64 << 60;
        let entries: Vec<String> = (0..16)
            .map(|place| {
                let (begin, end) =
                    (size * place, (size * place + (size - 1)).saturating_add(u64::from(place < 15)));
                let size = end - begin;
                format!(r#""t{place:02}":{{"dtype":"U8","shape":[{size}],"data_offsets":[{begin},{end}]}}"#)
            })
            .collect();
        let header = format!("{{{}}}", entries.join(","));
        assert_eq!(verdicts(&header, 4), (Some("R5.past_end"), false));
        assert_eq!(accepts(&file(&header, 4)), Err(TOO_LONG.to_owned()));
    }

    #[test]
    fn accepted_by_both() {
        for header in [
            "{}      ".to_owned(),
            r#"{"__metadata__":null}"#.to_owned(),
            r#"{"__metadata__":{},"":{"data_offsets":[0,0],"shape":[0],"dtype":"F32"}}"#.to_owned(),
            entry("\"U8\"", "[0,18446744073709551615]", "[0,0]"),
            entry("\"U8\"", &format!("[{}0]", "1,".repeat(1_000)), "[0,0]"),
            r#"{"__metadata\u005f_":{"format":"pt"}}"#.to_owned(),
        ] {
            assert_eq!(verdicts(&header, 0), (None, true), "{header}");
        }
    }
}
