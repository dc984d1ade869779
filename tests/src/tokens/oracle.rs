//! Bytes become assertions about shards, cursors and streams; each oracle returns when all is well.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};

use safestep::tokens::{
    Batch, Bookmark, Cursor, Pcg32, Prefetch, ShardErrorKind, ShardHeader, ShardKind, Shards, Share, Token,
    TokenStream,
};
use safestep::{Access, Cause, Error};

use crate::tokens::case::Case;
use crate::tokens::text;
use crate::tokens::twin::{Generator, Sequence, Window, judge};

/// The bytes as the front of a shard, of this length, of the length that the header asks for, and of others near it; and as the text
/// of a cursor.
///
/// # Panics
/// When an answer differs from the twin's.
pub fn shard(input: &[u8]) {
    cursor(input);
    let mut front = input.to_vec();
    header(&front, front.len() as u64);
    front.resize(front.len().max(1024), 0);
    let n = u64::from(u32::from_le_bytes([front[8], front[9], front[10], front[11]]));
    for file_bytes in [1024 + 2 * n, 1024 + 4 * n, 1023 + 2 * n, 1025 + 4 * n, 1024, 1 << 33, u64::MAX] {
        header(&front, file_bytes);
    }
}

fn header(front: &[u8], file_bytes: u64) {
    let found = ShardHeader::read(front, file_bytes);
    let told = found.map_err(|error| (error.rule().id(), error.at().value()));
    let told = told.map(|header| {
        let kind = header.kind();
        let vocabulary = header.vocabulary().unwrap_or(0);
        let numbers = [kind.width().bytes(), header.ids(), vocabulary.into()];
        let [width, ids, vocabulary] = numbers.map(|number| i64::try_from(number).expect("31 bits"));
        [kind.magic().into(), kind.version().into(), width, ids, vocabulary]
    });
    assert_eq!(told, judge(front, file_bytes), "of {file_bytes} bytes");
    let Ok(header) = found else { return };
    let mut again = [0xAA; 1024];
    header.encode(&mut again);
    assert_eq!((&again[..16], &again[16..]), (&front[..16], &[0; 1008][..]));
    assert_eq!(ShardHeader::read(&again, file_bytes), Ok(header));
    let ids = u32::try_from(header.ids()).expect("31 bits");
    assert_eq!(ShardHeader::new(header.kind(), ids, header.vocabulary().unwrap_or(0)), Some(header));
    assert!(ShardKind::ALL.contains(&header.kind()));
}

fn cursor(input: &[u8]) {
    let found = Bookmark::read(input).ok();
    let told = found.as_ref().map(|bookmark| {
        let Cursor { shard, offset, rng } = bookmark.cursor;
        let shards = bookmark
            .shards
            .as_ref()
            .map(|shards| shards.iter().map(|shard| (shard.name.clone(), shard.bytes, shard.ids)).collect());
        ([shard, offset, rng.state(), rng.inc()], shards)
    });
    assert_eq!(told, text::cursor(input));
    if let Some(bookmark) = found {
        let written = bookmark.to_string();
        assert_eq!(Bookmark::read(written.as_bytes()).as_ref(), Ok(&bookmark));
        assert!(text::cursor(written.as_bytes()).is_some());
    }
}

/// The bytes as a [`Case`]: the stream, by map and by pread, ahead and not, whole and shared, against the twin.
///
/// # Panics
/// When a batch, a cursor or an error differs from the twin's.
pub fn window(input: &[u8]) {
    let directory = tempfile::tempdir().expect("a directory");
    run(&Case::of(input), directory.path());
}

/// The same for a case, whose shards are written to a directory.
///
/// # Panics
/// When a batch, a cursor or an error differs from the twin's.
pub fn run(case: &Case, directory: &Path) {
    let mut paths = Vec::new();
    for (place, shard) in case.shards.iter().enumerate() {
        paths.push(directory.join(format!("{place}.bin")));
        std::fs::write(&paths[place], shard.file()).expect("a file");
    }
    let lists = case.shards.iter().map(|shard| shard.ids.clone()).collect();
    let generator = Generator::seed(case.seed.0, case.seed.1);
    let sequence = Sequence::new(lists, case.seq_len as usize, generator);
    for access in [Access::Map, Access::Read] {
        let whole = Share::whole(NonZeroU32::new(case.batch).expect("not 0"));
        let stream = open(case, &paths, access, whole);
        match &sequence {
            None => drop(stream.expect_err("a shard is too short")),
            Some(sequence) => legs(case, &paths, access, sequence.clone()),
        }
    }
}

fn open(case: &Case, paths: &[PathBuf], access: Access, share: Share) -> Result<TokenStream, Error> {
    let shards = Shards::open(paths, access)?;
    let seq_len = NonZeroU32::new(case.seq_len).expect("not 0");
    TokenStream::new(shards, seq_len, share, Pcg32::seed(case.seed.0, case.seed.1), None)
}

/// Runs the legs one after the other; all ranks of one from the same text.
fn legs(case: &Case, paths: &[PathBuf], access: Access, mut sequence: Sequence) {
    let mut text = None;
    for leg in &case.legs {
        let mut after = None;
        for rank in 0..leg.ranks {
            let mut sequence = sequence.clone();
            let Some(end) =
                one_rank(case, paths, access, (rank, leg.ranks, leg.batches), &text, &mut sequence)
            else {
                return;
            };
            assert_eq!(after.get_or_insert_with(|| end.clone()), &end, "every rank is at the same place");
        }
        for _ in 0..leg.batches * leg.ranks * case.batch {
            sequence.next_window();
        }
        text = after;
    }
}

/// One rank's part of a leg, from a cursor on; where it ends, or `None` if it met a bad id.
fn one_rank(
    case: &Case,
    paths: &[PathBuf],
    access: Access,
    (rank, ranks, batches): (u32, u32, u32),
    from: &Option<String>,
    sequence: &mut Sequence,
) -> Option<String> {
    let ranks = NonZeroU32::new(ranks).expect("not 0");
    let share = Share::of(NonZeroU32::new(case.batch).expect("not 0"), rank, ranks).expect("a rank");
    let begin = || {
        let mut stream = open(case, paths, access, share).expect("good shards");
        if let Some(text) = from {
            let bookmark = Bookmark::read(text.as_bytes()).expect("what was written");
            stream.restore_bookmark(&bookmark).expect("the same shards");
        }
        stream
    };
    let mut stream = begin();
    let mut other = begin();
    let mut ahead = Prefetch::<i64>::new(begin(), NonZeroUsize::MIN);
    for _ in 0..batches {
        same_place(&stream.cursor(), sequence);
        let before = stream.cursor();
        let step: Vec<Window> = (0..ranks.get() * case.batch).map(|_| sequence.next_window()).collect();
        let rows = &step[(rank * case.batch) as usize..][..case.batch as usize];
        let (found, found_ahead) = (stream.next_batch::<i64>(), ahead.next_batch());
        let found_u32 = another::<u32>(&mut other, before, i64::from);
        let found_i32 = another::<i32>(&mut other, before, i64::from);
        if let Some((window, place)) = first_bad(case, rows) {
            let answers = [found, found_ahead, found_u32, found_i32];
            for error in answers.map(|answer| answer.map(drop).expect_err("a bad id")) {
                let Cause::BadShard(bad) = error.because() else { panic!("{error}") };
                let ShardErrorKind::Id { index, found, .. } = bad.error.kind() else { panic!("{error}") };
                assert_eq!((index, found), (place as u64, case.shards[window.shard].ids[place]));
                assert_eq!(error.path(), paths[window.shard]);
            }
            assert_eq!((stream.cursor(), ahead.cursor()), (before, before), "nothing was consumed");
            return None;
        }
        let batch = found.expect("good ids");
        let ids = |from: usize, to: usize| -> Vec<i64> {
            rows.iter().flat_map(|row| row.ids[from..to].iter().map(|&id| i64::from(id))).collect()
        };
        let seq_len = case.seq_len as usize;
        assert!(batch.inputs == ids(0, seq_len) && batch.targets == ids(1, seq_len + 1));
        for again in [found_ahead, found_u32, found_i32] {
            assert!(again.expect("good ids") == batch);
        }
        assert_eq!(ahead.cursor(), stream.cursor());
    }
    same_place(&stream.cursor(), sequence);
    let bookmark = stream.bookmark();
    assert_eq!(ahead.into_stream().expect("a thread").bookmark(), bookmark);
    Some(bookmark.to_string())
}

/// The batch at that place as another type of integer.
fn another<T: Token>(
    stream: &mut TokenStream,
    at: Cursor,
    to: impl Fn(T) -> i64 + Copy,
) -> Result<Batch<i64>, Error> {
    stream.restore(at)?;
    let Batch { inputs, targets } = stream.next_batch::<T>()?;
    let [inputs, targets] = [inputs, targets].map(|ids| ids.into_iter().map(to).collect());
    Ok(Batch { inputs, targets })
}

fn same_place(cursor: &Cursor, sequence: &Sequence) {
    let numbers = [cursor.shard, cursor.offset, cursor.rng.state(), cursor.rng.inc()].map(u128::from);
    let Generator { state, inc } = sequence.generator;
    assert_eq!(numbers, [sequence.shard as u128, sequence.offset as u128, state, inc]);
}

/// The first window with an id outside the vocabulary, and the id's place in the shard.
fn first_bad<'w>(case: &Case, rows: &'w [Window]) -> Option<(&'w Window, usize)> {
    rows.iter().find_map(|row| {
        let place = case.shards[row.shard].bad_id(row.start, row.start + row.ids.len())?;
        Some((row, place))
    })
}
