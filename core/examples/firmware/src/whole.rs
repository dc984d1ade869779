//! Every other thing that the core does, on inputs that the compiler cannot see through: so that all of it is linked, and
//! what holds of the image holds of the whole core.

use crate::testdata;
use core::hint::black_box;
use core::num::{NonZeroU32, NonZeroU64};
use core::time::Duration;
use safestep_core::cadence::Cadence;
use safestep_core::checkpoint::{
    DataCursor, DocumentError, FileRecord, FoundFile, GitSha, Manifest, ManifestDraft, RngState, Sha256,
    StepName, TrainerState,
};
use safestep_core::history::{Canon, Line, LineError, Loss, Stretch, Value, write_entry};
use safestep_core::snapshot::{Region, Snapshot, SnapshotError};
use safestep_core::tokens::{
    Cursor, Pcg32, ShardFacts, ShardHeader, ShardKind, Share, Windows, largest_id, phase_bound, widen,
    widen_pair, window_start,
};
use safestep_core::{
    Axis, Dtype, DtypeSet, Error, Frame, Header, Index, JsonStr, Layout, Limits, Metadata, Note, Pick, Shape,
    Slice, Slot, TensorSpec, TensorView, sniff,
};

/// Whether all of it came to the end that it should.
pub fn holds(slots: &mut [Slot]) -> bool {
    let front = black_box(testdata::GOOD.as_slice());
    reads(front, slots).is_ok_and(|held| held)
        && slices()
        && writes()
        && sniff(front).is_none()
        && steps()
        && documents().is_ok_and(|held| held)
        && runs()
        && tokens()
}

/// Judges with and without slots, and uses all that the readers lend.
fn reads(front: &[u8], slots: &mut [Slot]) -> Result<bool, Error> {
    let data = black_box([1_u8; 29].as_slice());
    let limits = Limits::default().header_bytes(black_box(4096)).dtypes(DtypeSet::of(black_box(&Dtype::ALL)));
    let header = header(front, limits)?;
    let judged = header.judge()?;
    let index = Index::build(header, slots)?;
    let held = index.len() == judged.len()
        && judged.iter().eq(index.iter())
        && index
            .iter_as_written()
            .all(|entry| judged.get(text(entry.name())) == index.get(text(entry.name())))
        && index.iter().filter_map(|entry| entry.view(data)).any(|view| elements(&view) > 0)
        && words(judged.metadata()) == words(index.metadata())
        && judged.notes().map(|note| place(&note)).eq(index.notes().map(|note| place(&note)));
    let again = Index::again(*header.frame(), header.text(), black_box(&[Slot::EMPTY]), index.proof());
    black_box((again.get("b"), header.slots_bound(), again.is_empty()));
    let error = Frame::read(black_box(b"{"), 1, limits).map_or_else(Some, |_| None);
    Ok(held && error.is_some_and(|error| error.rule().is_some() && error.name_of(front).is_none()))
}

fn header(front: &[u8], limits: Limits) -> Result<Header<'_>, Error> {
    let frame = Frame::read(front, (front.len() as u64).wrapping_add(29), limits)?;
    frame.header(frame.header_span().of(front).unwrap_or_default())
}

fn text<'h>(name: JsonStr<'h>) -> &'h str {
    name.as_plain().unwrap_or_default()
}

fn elements(view: &TensorView<'_, '_>) -> usize {
    let halves = view.elements::<u16>().map_or(0, <[u16]>::len);
    view.elements::<f32>().map_or(halves, <[f32]>::len).wrapping_add(view.bytes().len())
}

fn words(metadata: Option<Metadata<'_>>) -> usize {
    metadata.into_iter().flatten().fold(0, |words, (key, value)| {
        key.chars().chain(value.chars()).fold(words, |words, char| words.wrapping_add(char as usize))
    })
}

fn place(note: &Note<'_>) -> u64 {
    black_box(note.kind.id());
    note.at.value()
}

/// Runs of a part of a tensor.
fn slices() -> bool {
    let picks = black_box([Pick::ALL, Pick { start: 1, stop: 9, step: 3 }]);
    let mut axes = [Axis::default(); 3];
    let Ok(slice) = Slice::of(Shape::new(black_box(b"[4,10,2]")), &picks, &mut axes) else { return false };
    let elements = slice.elements();
    let spans = slice.filter_map(|run| run.span(black_box(Dtype::Bf16)));
    spans.fold(0, |bytes: u64, span| bytes.wrapping_add(span.len().value())) == elements.wrapping_mul(2)
}

/// A layout and the header's bytes.
fn writes() -> bool {
    let mut tensors =
        black_box([TensorSpec::new("b", Dtype::U8, &[3]), TensorSpec::new("a", Dtype::F32, &[2])]);
    let mut pairs = black_box([("k", "v\n"), ("format", "pt")]);
    let mut header = [0; 256];
    let Ok(layout) = Layout::plan(&mut tensors, Some(&mut pairs)) else { return false };
    layout
        .encode(black_box(&mut header))
        .is_ok_and(|bytes| bytes.len() as u64 == layout.header_len().value().wrapping_add(8))
        && layout.write_header(|piece| if piece.len() > black_box(64) { Err(()) } else { Ok(()) }).is_ok()
        && layout.file_len().value() > layout.data_len().value()
}

/// Names of steps, both ways.
fn steps() -> bool {
    let name = StepName::of(black_box(1_234_567));
    StepName::parse(black_box("step-1234567")) == Some(name)
        && StepName::parse(black_box(name.as_str())).is_some_and(|again| again >= name)
}

/// A manifest and a trainer state, written and read, and a directory that is not as it should be.
fn documents() -> Result<bool, DocumentError> {
    let mut hash = Sha256::new();
    black_box([&b"abc"[..], &[7; 100]]).iter().for_each(|piece| hash.update(piece));
    let files = black_box([FileRecord { name: "a\n", sha256: hash.digest(), size: 103 }]);
    let mut text = [0; 256];
    let Ok(Ok(text)) =
        ManifestDraft::of(black_box(7), &files).map(|draft| draft.encode(black_box(&mut text)))
    else {
        return Ok(false);
    };
    let manifest = Manifest::parse(black_box(text))?;
    let found = black_box([FoundFile { name: b"b", size: 1, sha256: Some(Sha256::of(b"")) }]);
    let differences = manifest.compare(found).fold(0, |count: u32, _| count.wrapping_add(1));
    let state = black_box(TrainerState {
        config_sha256: Some(hash_of_nothing()),
        data_cursor: Some(DataCursor { offset: 1, shard: 2 }),
        git_sha: GitSha::parse(black_box("0123456789abcdef0123456789abcdef01234567")),
        lr: Some(3e-4),
        rng_state: Some(RngState { inc: 1, state: 2 }),
        step: 7,
        tokens_seen: 8,
    });
    let mut text = [0; 512];
    let Ok(Ok(text)) = state.encode(black_box(&mut text)) else { return Ok(false) };
    let again = TrainerState::parse(black_box(text))?;
    Ok(differences == 2 && again == state && manifest.step() == 7 && manifest.len() == 1)
}

fn hash_of_nothing() -> safestep_core::checkpoint::Digest {
    Sha256::of(black_box(b""))
}

/// What a trainer keeps beside its model, and when.
fn runs() -> bool {
    let cadence = Cadence::every(black_box(NonZeroU64::MIN)).or_every(black_box(Duration::from_secs(9)));
    snapshot().is_ok_and(|held| held)
        && history().is_ok_and(|held| held)
        && safestep_core::state::config_of(black_box(br#"{"config_sha256":[NaN]}"#)).is_err()
        && cadence.is_due(black_box(7), black_box(Duration::ZERO))
        && cadence.boundary_after(black_box(7)) == Some(8)
        && cadence.steps().get() == 1
}

fn snapshot() -> Result<bool, SnapshotError> {
    let made = Snapshot::new(black_box(70_000), black_box(1))?;
    let mut file = [0; 20];
    file.iter_mut().zip(made.head()).for_each(|(to, from)| *to = from);
    let read = Snapshot::read(black_box(&file), 20)?;
    let regions = Region::ALL.into_iter().filter_map(|region| read.view(black_box(&file), region));
    let places = Region::ALL.map(|region| read.span(region).begin().value());
    let error = Snapshot::read(black_box(&file), 21).map_or_else(|error| error.at().value(), |_| 0);
    Ok(places == [8, 12, 16]
        && read.file_len().value() == 20
        && (read.step(), read.parameters()) == (70_000, 1)
        && error == 20
        && regions.fold(0_usize, |sum, region| {
            let numbers = region.floats().map_or(0, <[f32]>::len).wrapping_add(region.bytes().len());
            sum.wrapping_add(region.values().len()).wrapping_add(numbers)
        }) >= 15)
}

fn history() -> Result<bool, LineError> {
    let (mut canon, mut stretches) = (Canon::default(), [Stretch::default(); 2]);
    let lines: [&[u8]; 5] = black_box([
        b"{\"loss\":5.5,\"step\":1}",
        b"{\"loss\":NaN,\"step\":2,\"lr\":[-Infinity,{}]}",
        b"{\"resume\":1}",
        b"{\"loss\":\"Infinity\",\"step\":2}",
        b"{\"step\":2}",
    ]);
    let mut kept = 0_u64;
    for (line, at) in lines.into_iter().zip(0..4) {
        let line = Line::parse(line)?;
        let mut bytes = 0_usize;
        let written = line.write(|piece| {
            bytes = bytes.wrapping_add(piece.len());
            if bytes > black_box(64) { Err(()) } else { Ok(()) }
        });
        if let Line::Entry(entry) = line {
            let number = matches!(entry.loss(), Loss::Number(text) if text.len() == 3);
            kept = kept.wrapping_add(entry.step()).wrapping_add(u64::from(number));
            black_box(entry.text());
        }
        if written.is_err() || canon.add(black_box(&mut stretches), &line, at).is_err() {
            return Ok(false);
        }
    }
    let more = black_box([("note", Value::Text("x")), ("lr", Value::Json("1"))]);
    let spelled =
        write_entry(3, Loss::Number("1"), &more, |piece| if piece.is_empty() { Err(()) } else { Ok(()) });
    let [first, second] = stretches;
    let error = Line::parse(lines[4]).map_or_else(|error| error.at().value(), |_| 0);
    Ok(canon.len() == 2
        && !canon.is_empty()
        && kept == 6
        && spelled.is_ok()
        && error == 10
        && first.keeps(1)
        && !first.keeps(2)
        && second.keeps(2)
        && (second.begin(), second.first()) == (3, 2))
}

/// A shard in flash, its windows in a buffer, and a cursor that comes back from its JSON.
fn tokens() -> bool {
    let mut shard = [0; 1024 + 2 * 10];
    let Some(header) = ShardHeader::new(black_box(ShardKind::Narrow), 10, 20) else { return false };
    let Some((front, ids)) = shard.split_first_chunk_mut::<1024>() else { return false };
    header.encode(front);
    let mut id = 10_u16;
    for place in ids.as_chunks_mut::<2>().0 {
        *place = id.to_le_bytes();
        id = id.wrapping_add(1);
    }
    let shard = black_box(shard.as_slice());
    let Ok(header) = ShardHeader::read(shard, shard.len() as u64) else { return false };
    let counts = black_box([header.ids()]);
    let Some(seq_len) = NonZeroU32::new(black_box(3)) else { return false };
    let Ok(windows) = Windows::over(&counts, seq_len) else { return false };
    let Ok(share) = Share::of(NonZeroU32::MIN, black_box(1), seq_len) else { return false };
    let mut cursor = windows.begin(Pcg32::seed(black_box(42), 54));
    windows.skip(&mut cursor, share.before());
    let run = windows.take(&mut cursor, share.batch().get().into());
    windows.skip(&mut cursor, share.after());
    let (mut inputs, mut targets) = ([0_i64; 3], [0_i64; 3]);
    let largest = largest_id::<i64>(header.vocabulary());
    let width = header.kind().width();
    let bytes = header.span(run.offset, 4).and_then(|span| span.of(shard)).unwrap_or_default();
    let mut again = [0_u32; 4];
    widen_pair(width, bytes, &mut inputs, &mut targets, largest).is_ok()
        && widen(width, bytes, &mut again, largest).is_ok()
        && again.map(i64::from).starts_with(&inputs)
        && windows.check(&cursor).is_ok()
        && phase_bound(header.ids(), seq_len) == NonZeroU32::new(3)
        && window_start(1, seq_len, black_box(2)) == Some(7)
        && comes_back(&cursor)
}

fn comes_back(cursor: &Cursor) -> bool {
    let (mut text, mut used) = ([0; 256], 0_usize);
    let facts = ShardFacts { name: "a.bin", bytes: 1044, ids: 10 };
    let written: Result<(), ()> = cursor.write_with(black_box([facts]), |piece| {
        let end = used.wrapping_add(piece.len());
        for (to, from) in text.get_mut(used..end).ok_or(())?.iter_mut().zip(piece) {
            *to = *from;
        }
        used = end;
        Ok(())
    });
    let counted: Result<(), ()> = cursor.write(|piece| if piece.is_empty() { Err(()) } else { Ok(()) });
    let Ok((again, Some(shards))) = Cursor::read(black_box(text.get(..used).unwrap_or_default())) else {
        return false;
    };
    let same = shards.shards().all(|shard| shard.name == *"a.bin" && shard.bytes == 1044 && shard.ids == 10);
    written.is_ok() && counted.is_ok() && again == *cursor && same
}
