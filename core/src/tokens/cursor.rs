//! A place in the sequence of windows becomes JSON, and strict JSON becomes the place again, bit for bit.
//!
//! ```text
//! {"shard":0,"offset":6,"rng":{"state":"185706b82c2e03f8","inc":"000000000000006d"}}
//! ```
//!
//! The generator's numbers are 16 hexadecimal digits, because readers of JSON round integers of 64 bits. A fourth key, `shards`,
//! can say which shards the place belongs to: an array of `{"name":...,"bytes":...,"ids":...}`.

use crate::json::JsonStr;
use crate::span::widen;
use crate::tensor::writer::{hex, integer, string};
use crate::tokens::document::{CursorError, CursorErrorKind, CursorField, Reader};
use crate::tokens::pcg32::Pcg32;
use core::fmt;

/// Where the next window starts, and the generator that draws the phases to come: the whole position.
///
/// ```
/// use safestep_core::tokens::{Cursor, Pcg32};
/// let text = r#"{"shard":0,"offset":6,"rng":{"state":"185706b82c2e03f8","inc":"000000000000006d"}}"#;
/// let (cursor, shards) = Cursor::read(text.as_bytes())?;
/// assert_eq!(cursor, Cursor { shard: 0, offset: 6, rng: Pcg32::seed(42, 54) });
/// assert!(shards.is_none());
/// assert_eq!(cursor.to_string(), text);
/// # Ok::<(), safestep_core::tokens::CursorError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The number of the shard.
    pub shard: u64,
    /// Where the next window starts, in ids; where none fits there, the next pass starts instead.
    pub offset: u64,
    /// What draws the phases.
    pub rng: Pcg32,
}

/// What tells one shard from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShardFacts<N> {
    /// Its name, without the directory.
    pub name: N,
    /// Its length in bytes.
    pub bytes: u64,
    /// How many ids it has.
    pub ids: u64,
}

/// The shards that a cursor says it belongs to, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Fingerprint<'t> {
    text: &'t [u8],
    /// The opening bracket.
    at: u32,
}

const FIELDS: [CursorField; 4] =
    [CursorField::Shard, CursorField::Offset, CursorField::Rng, CursorField::Shards];
const RNG_FIELDS: [CursorField; 2] = [CursorField::State, CursorField::Inc];
const SHARD_FIELDS: [CursorField; 3] = [CursorField::Name, CursorField::Bytes, CursorField::Ids];

impl Cursor {
    /// Reads a cursor, and the shards that it says it belongs to.
    ///
    /// # Errors
    /// [`CursorError`]: what is wrong first, and where.
    pub fn read(text: &[u8]) -> Result<(Self, Option<Fingerprint<'_>>), CursorError> {
        let mut reader = Reader::new(text, 0);
        reader.scan.white_space();
        let (mut shard, mut offset, mut state, mut inc) = (0, 0, 0, 1);
        let mut fingerprint = None;
        reader.object(&FIELDS, 3, &mut |reader, field| match field {
            CursorField::Shard => shard = reader.integer(field),
            CursorField::Offset => offset = reader.integer(field),
            CursorField::Rng => {
                if reader.value(field) {
                    reader.members(&RNG_FIELDS, 2, &mut |reader, field| {
                        if field == CursorField::State {
                            state = reader.hex(field);
                        } else {
                            inc = increment(reader);
                        }
                    });
                }
            }
            _ => {
                let at = reader.scan.at();
                if reader.value(field) {
                    while reader.scan.goes_on() {
                        facts(reader);
                    }
                    fingerprint = Some(Fingerprint { text, at });
                }
            }
        });
        reader.close()?;
        // The increment was judged.
        let rng = Pcg32::restore(state, inc | 1).unwrap_or(Pcg32::seed(0, 0));
        Ok((Self { shard, offset, rng }, fingerprint))
    }

    /// Hands the JSON over in pieces.
    ///
    /// # Errors
    /// The first error of `sink`, which then gets nothing more.
    pub fn write<E>(&self, mut sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        self.write_open(&mut sink)?;
        sink(b"}")
    }

    /// The same, with the shards that it belongs to.
    ///
    /// # Errors
    /// The first error of `sink`, which then gets nothing more.
    pub fn write_with<'s, E>(
        &self,
        shards: impl IntoIterator<Item = ShardFacts<&'s str>>,
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let sink = &mut sink;
        self.write_open(sink)?;
        sink(b",\"shards\":[")?;
        let mut separator: &[u8] = b"";
        for shard in shards {
            sink(separator)?;
            separator = b",";
            sink(b"{\"name\":")?;
            string(shard.name, sink)?;
            sink(b",\"bytes\":")?;
            integer(shard.bytes, sink)?;
            sink(b",\"ids\":")?;
            integer(shard.ids, sink)?;
            sink(b"}")?;
        }
        sink(b"]}")
    }

    fn write_open<E>(&self, sink: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        sink(b"{\"shard\":")?;
        integer(self.shard, sink)?;
        sink(b",\"offset\":")?;
        integer(self.offset, sink)?;
        sink(b",\"rng\":{\"state\":\"")?;
        sink(&digits(self.rng.state()))?;
        sink(b"\",\"inc\":\"")?;
        sink(&digits(self.rng.inc()))?;
        sink(b"\"}")
    }
}

fn digits(value: u64) -> [u8; 16] {
    let mut digits = [0; 16];
    for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(value.to_be_bytes()) {
        *pair = [hex(byte >> 4), hex(byte)];
    }
    digits
}

fn increment(reader: &mut Reader<'_>) -> u64 {
    let at = reader.scan.at();
    let inc = reader.hex(CursorField::Inc);
    if inc & 1 == 0 {
        reader.record(CursorErrorKind::EvenInc, at);
    }
    inc
}

fn facts<'t>(reader: &mut Reader<'t>) -> ShardFacts<JsonStr<'t>> {
    let mut facts = ShardFacts { name: JsonStr::new(b""), bytes: 0, ids: 0 };
    reader.object(&SHARD_FIELDS, 3, &mut |reader, field| match field {
        CursorField::Name => {
            if reader.value(field) {
                facts.name = reader.scan.string;
            }
        }
        CursorField::Bytes => facts.bytes = reader.integer(field),
        _ => facts.ids = reader.integer(field),
    });
    facts
}

impl<'t> Fingerprint<'t> {
    /// The shards, in their order.
    pub fn shards(&self) -> impl Iterator<Item = ShardFacts<JsonStr<'t>>> + use<'t> {
        let mut reader = Reader::new(self.text, widen(self.at));
        reader.value(CursorField::Shards);
        core::iter::from_fn(move || reader.scan.goes_on().then(|| facts(&mut reader)))
    }
}

impl fmt::Display for Cursor {
    /// As [`write`](Self::write) has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every piece is ASCII.
        self.write(|piece| f.write_str(core::str::from_utf8(piece).unwrap_or_default()))
    }
}
