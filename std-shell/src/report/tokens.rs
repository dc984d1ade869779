//! Findings about shards of tokens become what people and programs read.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::Path;

use safestep::tokens::{Batch, Packed, Shard, ShardErrorKind, ShardHeader};
use safestep::{BadShard, terminal_safe};
use serde::{Serialize, Serializer};

use super::json::put;
use super::table::{Align, Table};
use super::words::{bytes, plural, shown};
use super::{Palette, Screen, grouped};

/// What `tokens inspect` found: a table, or one JSON document.
pub(crate) fn inspected(screen: &mut Screen, shards: &[Shard], json: bool) -> io::Result<()> {
    let facts = |shard: &Shard| (shard.header().ids(), shard.header().file_len().value());
    let (ids, total) = shards.iter().map(facts).fold((0, 0), |(ids, total): (u64, u64), (some, more)| {
        (ids.saturating_add(some), total.saturating_add(more))
    });
    if json {
        let rows = shards.iter().map(|shard| Row::of(shard.path(), shard.header())).collect();
        let totals = Totals { shards: shards.len() as u64, ids, bytes: total };
        put(&mut screen.out, &Document { shards: rows, totals })?;
        return writeln!(screen.out);
    }
    if shards.is_empty() {
        return Ok(());
    }
    let columns = [
        ("shard", Align::Left),
        ("magic", Align::Right),
        ("version", Align::Right),
        ("ids", Align::Right),
        ("width", Align::Right),
        ("vocabulary", Align::Right),
        ("bytes", Align::Right),
    ];
    let rows = shards.iter().map(|shard| {
        let (header, kind) = (shard.header(), shard.header().kind());
        [
            shown(&shard.path().to_string_lossy()),
            kind.magic().to_string(),
            kind.version().to_string(),
            grouped(header.ids()),
            kind.width().bytes().to_string(),
            header.vocabulary().map_or("not stated".into(), |size| grouped(size.into())),
            bytes(header.file_len().value()),
        ]
    });
    Table::new(0, columns).print(&mut screen.out, screen.width, screen.palette.strong, rows)?;
    let shards = plural(shards.len() as u64, "shard");
    writeln!(screen.out, "{shards}, {}, {}", plural(ids, "id"), bytes(total))
}

#[derive(Serialize)]
struct Document<'a> {
    shards: Vec<Row<'a>>,
    totals: Totals,
}

#[derive(Serialize)]
struct Row<'a> {
    path: Cow<'a, str>,
    magic: i32,
    version: i32,
    width: u64,
    ids: u64,
    vocabulary: Option<u32>,
    file_bytes: u64,
}

impl<'a> Row<'a> {
    fn of(path: &'a Path, header: &ShardHeader) -> Self {
        Self {
            path: path.to_string_lossy(),
            magic: header.kind().magic(),
            version: header.kind().version(),
            width: header.kind().width().bytes(),
            ids: header.ids(),
            vocabulary: header.vocabulary(),
            file_bytes: header.file_len().value(),
        }
    }
}

#[derive(Serialize)]
struct Totals {
    shards: u64,
    ids: u64,
    bytes: u64,
}

/// A shard of which every id was looked at.
pub(crate) fn good(screen: &mut Screen, shard: &Shard, json: bool) -> io::Result<()> {
    let header = shard.header();
    if json {
        let line = Line {
            verdict: "good",
            ids: Some(header.ids()),
            vocabulary: header.vocabulary(),
            ..Line::of(shard.path())
        };
        return line.put(screen);
    }
    let Palette { good, .. } = screen.palette;
    let of = match header.vocabulary() {
        Some(size) => format!("all below {}", grouped(size.into())),
        None => "of no stated vocabulary".into(),
    };
    let ids = plural(header.ids(), "id");
    writeln!(screen.out, "{}: {good}good{good:#}, {ids}, {of}", terminal_safe(shard.path()))
}

/// A bad shard.
pub(crate) fn bad(screen: &mut Screen, path: &Path, bad: &BadShard, json: bool) -> io::Result<()> {
    if json {
        let index = match bad.error.kind() {
            ShardErrorKind::Id { index, .. } => Some(index),
            _ => None,
        };
        let line = Line {
            verdict: "bad",
            rule: Some(bad.error.rule().id()),
            offset: Some(bad.error.at().value()),
            index,
            message: Some(bad.message()),
            ..Line::of(path)
        };
        return line.put(screen);
    }
    screen.out.write_all(verdict(path, bad, &screen.palette).as_bytes())
}

#[derive(Serialize)]
struct Line<'a> {
    path: Cow<'a, str>,
    verdict: &'static str,
    rule: Option<&'static str>,
    offset: Option<u64>,
    index: Option<u64>,
    message: Option<String>,
    ids: Option<u64>,
    vocabulary: Option<u32>,
}

impl<'a> Line<'a> {
    fn of(path: &'a Path) -> Self {
        Self {
            path: path.to_string_lossy(),
            verdict: "",
            rule: None,
            offset: None,
            index: None,
            message: None,
            ids: None,
            vocabulary: None,
        }
    }

    fn put(&self, screen: &mut Screen) -> io::Result<()> {
        put(&mut screen.out, self)?;
        writeln!(screen.out)
    }
}

/// The line of a bad shard: path, rule, byte, what was expected, what was found.
pub(super) fn verdict(path: &Path, shard: &BadShard, palette: &Palette) -> String {
    let Palette { bad, .. } = palette;
    let (id, message) = (shard.error.rule().id(), shard.message());
    let at = shard.error.at();
    format!("{}: {bad}{id}{bad:#} at byte {at}: {}\n", terminal_safe(path), terminal_safe(&message))
}

/// What `tokens pack` had put in its place before it failed.
pub(crate) fn in_place(screen: &mut Screen, done: &Packed) {
    let shards = plural(done.shards.len() as u64, "new shard");
    screen.remark(&format!("{}: in place, {shards}, no more", names(done)));
}

/// The first shard and the last, if there are two.
fn names(done: &Packed) -> String {
    let (first, last) = (done.shards.first(), done.shards.last());
    match (first, last) {
        (Some(first), Some(last)) if first != last => {
            format!("{} to {}", terminal_safe(first), terminal_safe(last))
        }
        (Some(first), _) => terminal_safe(first).to_string(),
        (None, _) => String::new(),
    }
}

/// What `tokens pack` has done.
pub(crate) fn packed(screen: &mut Screen, done: &Packed) -> io::Result<()> {
    let Palette { good, .. } = screen.palette;
    let names = names(done);
    let shards = plural(done.shards.len() as u64, "shard");
    let ids = plural(done.ids, "id");
    writeln!(screen.out, "{names}: {good}written{good:#}, {shards}, {ids}, {}", bytes(done.bytes))
}

/// A batch: a JSON line, or a line a window.
pub(crate) fn batch(
    screen: &mut Screen,
    number: u64,
    batch: &Batch<u32>,
    seq_len: usize,
    json: bool,
) -> io::Result<()> {
    if json {
        let rows = Rows { inputs: Ids(&batch.inputs, seq_len), targets: Ids(&batch.targets, seq_len) };
        put(&mut screen.out, &rows)?;
        return writeln!(screen.out);
    }
    let Palette { strong, dim, .. } = screen.palette;
    writeln!(screen.out, "{strong}batch {number}{strong:#} {dim}(inputs | the last target){dim:#}")?;
    let rows = batch.inputs.chunks(seq_len.max(1)).zip(batch.targets.chunks(seq_len.max(1)));
    for (inputs, targets) in rows {
        write!(screen.out, " ")?;
        for id in inputs {
            write!(screen.out, " {id}")?;
        }
        writeln!(screen.out, " | {}", targets.last().copied().unwrap_or_default())?;
    }
    Ok(())
}

/// Where the run would go on.
pub(crate) fn cursor(screen: &mut Screen, cursor: &impl Display, json: bool) -> io::Result<()> {
    let text = harmless(&cursor.to_string());
    if json { writeln!(screen.out, "{{\"cursor\":{text}}}") } else { writeln!(screen.out, "cursor {text}") }
}

/// The same JSON, with characters that drive a terminal, which stand in names only, as escapes.
fn harmless(json: &str) -> String {
    let mut text = String::new();
    for char in json.chars() {
        let mut utf8 = [0; 4];
        let spelled = &*char.encode_utf8(&mut utf8);
        if terminal_safe(spelled).to_string() == spelled {
            text.push(char);
        } else {
            let mut utf16 = [0; 2];
            text.extend(char.encode_utf16(&mut utf16).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    text
}

#[derive(Serialize)]
struct Rows<'a> {
    inputs: Ids<'a>,
    targets: Ids<'a>,
}

/// Ids, and how many are in a row.
struct Ids<'a>(&'a [u32], usize);

impl Serialize for Ids<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.chunks(self.1.max(1)))
    }
}
