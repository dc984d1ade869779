//! What a snapshot and a loss history mean, formed naively: wide integers, `serde_json`, every entry in memory.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

/// The verdict on the head of a snapshot: step and count.
///
/// # Errors
/// The broken rule and its place.
///
/// # Panics
/// Never: four bytes are four bytes.
pub fn snapshot(front: &[u8], file_len: u64) -> Result<(i128, i128), (&'static str, u64)> {
    let there = (front.len() as u64).min(file_len);
    if there < 8 {
        return Err(("S1.short", there));
    }
    let number = |bytes: &[u8]| i128::from(i32::from_le_bytes(bytes.try_into().expect("four bytes")));
    let (step, count) = (number(&front[..4]), number(&front[4..8]));
    if step < 0 {
        return Err(("S2.step", 0));
    }
    if count < 0 {
        return Err(("S2.count", 4));
    }
    let expected = 8 + 12 * count;
    if i128::from(file_len) != expected {
        let at = expected.min(i128::from(file_len));
        return Err(("S3.length", u64::try_from(at).expect("at most the length of the file")));
    }
    Ok((step, count))
}

/// A line of a history.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// Step and loss; a loss that is not finite by its word.
    Entry(u64, Result<f64, String>),
    /// The step of a resume.
    Resume(u64),
}

/// The meaning of a line, or the rule's group, `H1` for form and `H2` for meaning, if it is bad. Nothing if the twin has no
/// opinion: numbers beyond f64, which `serde_json` does not read.
pub fn line(text: &[u8]) -> Option<Result<Line, &'static str>> {
    let Ok(text) = std::str::from_utf8(text) else { return Some(Err("H1")) };
    let members = match serde_json::from_str::<Members>(&quoted(text)) {
        Ok(Members(members)) => members,
        Err(error) if error.to_string().contains("out of range") => return None,
        Err(_) => return Some(Err("H1")),
    };
    if members.iter().any(|(key, _)| key.starts_with(BARE)) {
        return Some(Err("H1"));
    }
    Some(meaning(&members).ok_or("H2"))
}

fn meaning(members: &[(String, Value)]) -> Option<Line> {
    let only = |key: &str| {
        let values: Vec<&Value> =
            members.iter().filter(|(name, _)| name == key).map(|(_, value)| value).collect();
        if values.len() > 1 { Err(()) } else { Ok(values.first().copied()) }
    };
    match (only("loss").ok()?, only("step").ok()?, only("resume").ok()?) {
        (Some(loss), Some(step), None) => Some(Line::Entry(step.as_u64()?, self::loss(loss)?)),
        (None, None, Some(step)) => Some(Line::Resume(step.as_u64()?)),
        _ => None,
    }
}

fn loss(value: &Value) -> Option<Result<f64, String>> {
    match value {
        Value::Number(number) => Some(Ok(number.as_f64()?)),
        Value::String(word) => {
            let word = word.strip_prefix(BARE).unwrap_or(word);
            ["NaN", "Infinity", "-Infinity"].contains(&word).then(|| Err(word.to_owned()))
        }
        _ => None,
    }
}

/// What marks a word that had no quotes.
const BARE: &str = "\u{1}bare, says the twin: ";

/// The text with Python's words in quotes.
fn quoted(text: &str) -> String {
    let (mut out, mut rest, mut in_string, mut escaped) = (String::new(), text, false, false);
    while let Some(char) = rest.chars().next() {
        let words = ["NaN", "Infinity", "-Infinity"];
        if let Some(word) = words.iter().find(|word| !in_string && rest.starts_with(**word)) {
            out += &serde_json::to_string(&format!("{BARE}{word}")).expect("a string");
            rest = &rest[word.len()..];
            continue;
        }
        if in_string {
            in_string = escaped || char != '"';
            escaped = char == '\\' && !escaped;
        } else {
            in_string = char == '"';
        }
        out.push(char);
        rest = &rest[char.len_utf8()..];
    }
    out
}

/// The members of an object, equal keys and all.
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// The places of the canonical entries among these lines, by step.
#[must_use]
pub fn canonical(lines: &[Line]) -> Vec<usize> {
    let mut kept: Vec<(u64, usize)> = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        match line {
            Line::Resume(step) => kept.retain(|(other, _)| other <= step),
            Line::Entry(step, _) => {
                kept.retain(|(other, _)| other < step);
                kept.push((*step, place));
            }
        }
    }
    kept.into_iter().map(|(_, place)| place).collect()
}
