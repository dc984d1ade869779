//! Turns an error into the question whether what it says it expected and found is so: the twin's tree has the answer.
//!
//! Rule, offset and tensor are the verdict and are compared elsewhere; this is about the words behind them.

use safestep_core::{Dtype, Error, ErrorKind, Expected, Field, Kind};

use crate::twin::json::{self, Member, Node, Value};

/// Asserts that an error about the file whose front is `bytes` tells the truth.
///
/// # Panics
/// When it does not.
pub fn tells_the_truth(error: &Error, bytes: &[u8], file_len: u64) {
    let at = error.at().value();
    let length = bytes.first_chunk::<8>().map_or(0, |length| u64::from_le_bytes(*length));
    let kind = error.kind();
    match kind {
        ErrorKind::Short { found } => return assert_eq!(found, file_len),
        ErrorKind::TooLarge { limit, found } => return assert!(found == length && found > limit, "{kind:?}"),
        ErrorKind::PastEnd { header, found } => {
            let beyond = u128::from(header) + 8 > u128::from(found);
            return assert!(header == length && found == file_len && beyond, "{kind:?}");
        }
        _ => {}
    }
    let text = usize::try_from(length).ok().and_then(|length| bytes.get(8..)?.get(..length));
    let Some(text) = text else { return };
    let byte_at = |at: u64| text.get(usize::try_from(at - 8).expect("in memory")).copied();
    match kind {
        ErrorKind::Start { found } => return assert_eq!(found, byte_at(at)),
        ErrorKind::Utf8 { found } | ErrorKind::Trailing { found } => {
            return assert_eq!(Some(found), byte_at(at));
        }
        ErrorKind::Json { expected, found } => {
            assert_eq!(found, byte_at(at), "{kind:?}");
            let escape = matches!(expected, Expected::Escape | Expected::Surrogate);
            assert!(!escape || matches!(found, None | Some(b'\\')), "{kind:?}");
            return;
        }
        _ => {}
    }
    let root = std::str::from_utf8(text).ok().and_then(|text| json::parse(text).ok());
    if let Some(root) = root {
        let entries = root.members().iter().filter(|member| member.key != "__metadata__").collect();
        About { at, root: &root, entries, data_len: file_len - 8 - length }.tells_the_truth(kind);
    }
}

/// What an error is about.
struct About<'a> {
    at: u64,
    root: &'a Node,
    entries: Vec<&'a Member>,
    data_len: u64,
}

impl About<'_> {
    fn tells_the_truth(&self, kind: ErrorKind) {
        match kind {
            ErrorKind::Duplicate { first } => self.duplicate(first),
            ErrorKind::Metadata { found }
            | ErrorKind::EntryKind { found }
            | ErrorKind::DtypeKind { found }
            | ErrorKind::Shape { found }
            | ErrorKind::Offsets { found } => assert_eq!(self.value(self.root).map(kind_of), Some(found)),
            ErrorKind::FieldUnknown => assert!(self.entry(|field| field.key_at == self.at).is_some()),
            ErrorKind::FieldMissing { expected } => {
                let entry =
                    self.entries.iter().find(|entry| entry.node.end - 1 == self.at).expect("an entry");
                let order =
                    [("dtype", Field::Dtype), ("shape", Field::Shape), ("data_offsets", Field::DataOffsets)];
                let missing = order.into_iter().find(|(name, _)| field(entry, name).is_none());
                assert_eq!(missing.map(|(_, field)| field), Some(expected));
            }
            ErrorKind::DtypeUnknown => {
                assert!(self.dtype_name().is_some_and(|name| Dtype::from_name(name).is_none()));
            }
            ErrorKind::DtypeRefused { found } => assert_eq!(self.dtype_name(), Some(found.name())),
            ErrorKind::OffsetsCount { found } => {
                let count = |field: &Member| field.node.elements().map_or(0, <[Node]>::len);
                let inside = |field: &Member| {
                    field.key == "data_offsets" && field.node.begin <= self.at && self.at < field.node.end
                };
                let count = self
                    .entry(inside)
                    .map(|entry| count(field(entry, "data_offsets").expect("it was found")));
                assert_eq!(count.map(|count| count.min(3) as u64), Some(found.into()));
            }
            ErrorKind::OffsetsReversed { begin, end } => {
                let second =
                    |field: &Member| field.node.elements().and_then(|all| all.get(1)).map(|node| node.begin);
                let entry = self.entry(|field| second(field) == Some(self.at) && field.key == "data_offsets");
                assert_eq!(entry.map(offsets), Some((begin, end)));
            }
            ErrorKind::Bits { found } => {
                assert!(self.entry_at("shape").and_then(bits) == Some(found) && found % 8 != 0);
            }
            ErrorKind::Overflow => assert!(self.entry_at("shape").is_some_and(|entry| bits(entry).is_none())),
            ErrorKind::Size { expected, found } => {
                let entry = self.entry_at("data_offsets").expect("an entry");
                let (begin, end) = offsets(entry);
                assert_eq!((bits(entry), end - begin), (expected.checked_mul(8), found));
            }
            ErrorKind::Gap { expected, found } | ErrorKind::Overlap { expected, found } => {
                let entry = self.entry_at("data_offsets").expect("an entry");
                let begins = offsets(entry).0;
                let before = self.entries.iter().map(|entry| offsets(entry).1).filter(|end| *end == expected);
                assert!(begins == found && (expected == 0 || before.count() > 0), "{kind:?}");
                assert_eq!(matches!(kind, ErrorKind::Gap { .. }), found > expected);
            }
            ErrorKind::DataShort { expected, found } | ErrorKind::Surplus { expected, found } => {
                let end = self.entries.iter().map(|entry| offsets(entry).1).max().unwrap_or(0);
                assert_eq!((expected, found), (end, self.data_len));
            }
            other => panic!("{other:?} about a header that is JSON"),
        }
    }

    /// The first key that is equal, in the object in which the later key stands.
    fn duplicate(&self, first: u64) {
        let scopes = [self.root].into_iter().chain(self.root.members().iter().map(|member| &member.node));
        let scope =
            scopes.map(Node::members).find(|scope| scope.iter().any(|member| member.key_at == self.at));
        let scope = scope.expect("an object with that key");
        let key = &scope.iter().find(|member| member.key_at == self.at).expect("it was found").key;
        let earliest = scope.iter().find(|member| member.key == *key).map(|member| member.key_at);
        assert_eq!(earliest, Some(first), "{key:?}");
    }

    /// The value that begins at the place: in case of doubt the outermost, which is the one that rules speak of.
    fn value<'n>(&self, node: &'n Node) -> Option<&'n Node> {
        let inside = node.members().iter().map(|member| &member.node);
        let mut inside = inside.chain(node.elements().unwrap_or_default());
        if node.begin == self.at { Some(node) } else { inside.find_map(|node| self.value(node)) }
    }

    /// The entry that has such a field.
    fn entry(&self, is: impl Fn(&Member) -> bool) -> Option<&Member> {
        self.entries.iter().copied().find(|entry| entry.node.members().iter().any(&is))
    }

    /// The entry in which the value of that field stands at the place.
    fn entry_at(&self, name: &str) -> Option<&Member> {
        self.entry(|field| field.key == name && field.node.begin == self.at)
    }

    fn dtype_name(&self) -> Option<&str> {
        field(self.entry_at("dtype")?, "dtype")?.node.text()
    }
}

fn field<'a>(entry: &'a Member, name: &str) -> Option<&'a Member> {
    entry.node.members().iter().find(|field| field.key == name)
}

fn integers(entry: &Member, name: &str) -> Vec<u64> {
    let elements = field(entry, name).and_then(|field| field.node.elements()).unwrap_or_default();
    elements.iter().filter_map(Node::integer).collect()
}

/// Begin and end of an entry that has two.
fn offsets(entry: &Member) -> (u64, u64) {
    let integers = integers(entry, "data_offsets");
    (integers[0], integers[1])
}

/// Elements times the size of one, if 64 bits hold both.
fn bits(entry: &Member) -> Option<u64> {
    let dtype = Dtype::from_name(field(entry, "dtype")?.node.text()?)?;
    integers(entry, "shape").into_iter().try_fold(1_u64, u64::checked_mul)?.checked_mul(dtype.bits().into())
}

fn kind_of(node: &Node) -> Kind {
    match &node.value {
        Value::Null => Kind::Null,
        Value::Bool(_) => Kind::Bool,
        Value::Number(_) if node.integer().is_some() => Kind::Integer,
        Value::Number(_) => Kind::Number,
        Value::Text(_) => Kind::String,
        Value::Array(_) => Kind::Array,
        Value::Object(_) => Kind::Object,
    }
}
