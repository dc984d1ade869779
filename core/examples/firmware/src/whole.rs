//! Every other thing that the core does, on inputs that the compiler cannot see through: so that all of it is linked, and
//! what holds of the image holds of the whole core.

use crate::testdata;
use core::hint::black_box;
use core::num::NonZeroU32;
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
    reads(front, slots).is_ok_and(|held| held) && slices() && writes() && tokens() && sniff(front).is_none()
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
