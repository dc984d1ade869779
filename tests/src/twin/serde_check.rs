//! Turns header text and the twin's reading of it into a panic, unless `serde_json` reads the same.
//!
//! Not only the verdict has to be the same, but the tree: every key and every string unescaped, which numbers are
//! integers and which, and the end of the value. `serde_json::Value` and `IgnoredAny` would not do: the one drops equal
//! keys, the other looks into no escape. Where the text breaks is not compared; `serde_json` does not say it to the byte.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::HEADER_START;
use super::json::{Node, Value};

/// Asserts that `serde_json` reads the same value from the start of `text`, or none if the twin reads none.
///
/// # Panics
/// When it does not.
pub fn serde_agrees(text: &str, ours: &Result<Node, u64>) {
    match (ours, read(text)) {
        (Ok(node), Ok((tree, end))) => {
            assert_eq!(node.end - HEADER_START, end as u64, "the twin and serde_json end {text:?} apart");
            assert!(same(node, &tree), "the twin reads {node:?}, serde_json {tree:?} in {text:?}");
        }
        (Err(_), Err(_)) => {}
        (Ok(_), Err(error)) => panic!("the twin reads, but serde_json says {error} of {text:?}"),
        (Err(offset), Ok(_)) => panic!("serde_json reads, but the twin stops at {offset} of {text:?}"),
    }
}

/// A JSON value as `serde_json` reports it, with equal keys kept.
#[derive(Debug)]
enum Tree {
    Null,
    Bool(bool),
    /// An integer in 0..=2^64-1.
    Integer(u64),
    /// Any other number.
    Number,
    Text(String),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

fn same(node: &Node, tree: &Tree) -> bool {
    match (&node.value, tree) {
        (Value::Null, Tree::Null) => true,
        (Value::Bool(ours), Tree::Bool(theirs)) => ours == theirs,
        (Value::Number(_), Tree::Integer(theirs)) => node.integer() == Some(*theirs),
        (Value::Number(_), Tree::Number) => node.integer().is_none(),
        (Value::Text(ours), Tree::Text(theirs)) => ours == theirs,
        (Value::Array(ours), Tree::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(node, tree)| same(node, tree))
        }
        (Value::Object(ours), Tree::Object(theirs)) => {
            let mut pairs = ours.iter().zip(theirs);
            ours.len() == theirs.len()
                && pairs.all(|(member, (key, tree))| member.key == *key && same(&member.node, tree))
        }
        _ => false,
    }
}

/// One value and where it ends. A number beyond the range of f64 is good JSON, though `serde_json` refuses to hold it:
/// it is replaced by one that `serde_json` can hold.
fn read(text: &str) -> Result<(Tree, usize), serde_json::Error> {
    let mut text = text.to_owned();
    loop {
        let mut stream = serde_json::Deserializer::from_str(&text).into_iter::<Tree>();
        match stream.next().expect("the text starts with a brace") {
            Ok(tree) => return Ok((tree, stream.byte_offset())),
            Err(error) if error.to_string().starts_with("number out of range") => {
                let token = number_at(&text, &error);
                // Checks the grammar of the number, and nothing else.
                serde_json::from_str::<IgnoredAny>(&text[token.clone()])?;
                let held = format!("0.{}", "0".repeat(token.len() - 2));
                text.replace_range(token, &held);
            }
            Err(error) => return Err(error),
        }
    }
}

/// The number in which `serde_json` stopped. Its column counts the bytes that it has taken of the line.
fn number_at(text: &str, error: &serde_json::Error) -> std::ops::Range<usize> {
    let line: usize = text.split_inclusive('\n').take(error.line() - 1).map(str::len).sum();
    let bytes = text.as_bytes();
    let of_number =
        |at: &usize| matches!(bytes.get(*at), Some(b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    let inside = line + error.column() - 1;
    assert!(of_number(&inside), "no number at {inside} in {text:?}: {error}");
    let begin = (0..=inside).rev().take_while(of_number).last().expect("the number is not empty");
    let end = (inside..).take_while(of_number).last().expect("the number is not empty") + 1;
    begin..end
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Grow)
    }
}

struct Grow;

impl<'de> Visitor<'de> for Grow {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Integer(value))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Tree, E> {
        Ok(Tree::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Tree, E> {
        Ok(Tree::Number)
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut trees = Vec::new();
        while let Some(tree) = access.next_element()? {
            trees.push(tree);
        }
        Ok(Tree::Array(trees))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = access.next_entry()? {
            members.push(member);
        }
        Ok(Tree::Object(members))
    }
}
