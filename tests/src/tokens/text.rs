//! Cursors once more, read with `serde_json`: any value, keys in their order and as often as they stand there; then the fields.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A cursor as it is written: shard, offset, state, increment; and the shards, if they are told.
pub type Fields = ([u64; 4], Option<Vec<(String, u64, u64)>>);

/// The cursor that a text stands for, if it does.
#[must_use]
pub fn cursor(text: &[u8]) -> Option<Fields> {
    let Node::Object(mut fields) = serde_json::from_slice(text).ok()? else { return None };
    let shards = match take(&mut fields, "shards") {
        Some(Node::Array(shards)) => Some(shards.into_iter().map(facts).collect::<Option<Vec<_>>>()?),
        Some(_) => return None,
        None => None,
    };
    let Node::Object(mut rng) = take(&mut fields, "rng")? else { return None };
    let numbers = [
        integer(take(&mut fields, "shard")?)?,
        integer(take(&mut fields, "offset")?)?,
        hex(take(&mut rng, "state")?)?,
        hex(take(&mut rng, "inc")?)?,
    ];
    let odd = numbers[3] % 2 == 1;
    (odd && fields.is_empty() && rng.is_empty()).then_some((numbers, shards))
}

fn facts(node: Node) -> Option<(String, u64, u64)> {
    let Node::Object(mut fields) = node else { return None };
    let Node::String(name) = take(&mut fields, "name")? else { return None };
    let facts = (name, integer(take(&mut fields, "bytes")?)?, integer(take(&mut fields, "ids")?)?);
    fields.is_empty().then_some(facts)
}

fn integer(node: Node) -> Option<u64> {
    if let Node::Integer(value) = node { Some(value) } else { None }
}

fn hex(node: Node) -> Option<u64> {
    let Node::String(digits) = node else { return None };
    let good = digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    good.then(|| u64::from_str_radix(&digits, 16).ok()).flatten()
}

/// Takes a key's value out; a second one is left.
fn take(fields: &mut Vec<(String, Node)>, key: &str) -> Option<Node> {
    let place = fields.iter().position(|(found, _)| found == key)?;
    Some(fields.remove(place).1)
}

enum Node {
    Integer(u64),
    String(String),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
    Other,
}

struct Any;

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

impl<'de> Visitor<'de> for Any {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Integer(value))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Node, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = elements.next_element()? {
            nodes.push(node);
        }
        Ok(Node::Array(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Node, A::Error> {
        let mut fields = Vec::new();
        while let Some(pair) = members.next_entry()? {
            fields.push(pair);
        }
        Ok(Node::Object(fields))
    }
}
