//! Cursors: their JSON, and what is no place in these shards.

use safestep::tokens::{Bookmark, Cursor, CursorErrorKind, CursorField, Pcg32};
use safestep::{Access, Cause, Misfit};
use safestep_tests::headers::random::Random;
use safestep_tests::tokens::oracle;

use super::{BOTH, stream, write};

const GOOD: &str = r#"{"shard":0,"offset":6,"rng":{"state":"185706b82c2e03f8","inc":"000000000000006d"}}"#;
const WITH_SHARDS: &str = r#"{"shard":1,"offset":18446744073709551615,"rng":{"state":"0000000000000000","inc":"ffffffffffffffff"},"shards":[{"name":"a \"b\"\u0007é.bin","bytes":1030,"ids":3},{"name":"","bytes":0,"ids":18446744073709551615}]}"#;

#[test]
fn what_is_written_is_what_is_read() {
    let (cursor, shards) = Cursor::read(GOOD.as_bytes()).unwrap();
    assert_eq!(cursor, Cursor { shard: 0, offset: 6, rng: Pcg32::seed(42, 54) });
    assert!(shards.is_none());
    assert_eq!(cursor.to_string(), GOOD);
    let bookmark = Bookmark::read(WITH_SHARDS.as_bytes()).unwrap();
    assert_eq!(bookmark.to_string(), WITH_SHARDS);
    let shards = bookmark.shards.unwrap();
    assert_eq!(
        (shards[0].name.as_str(), shards[0].bytes, shards[1].ids),
        ("a \"b\"\u{7}é.bin", 1030, u64::MAX)
    );
    // Order and white space do not matter, and neither do escapes.
    let spelled = " {\n\"rng\" : { \"in\\u0063\":\"000000000000006D\", \"state\":\"185706B82C2E03F8\"},\"offset\":6,\"shard\":0 }\r\n";
    assert_eq!(Cursor::read(spelled.as_bytes()).unwrap().0, cursor);
}

#[test]
fn what_is_no_cursor() {
    use CursorErrorKind as Kind;
    use CursorField as Field;
    let error = |text: &str| {
        let error = Cursor::read(text.as_bytes()).unwrap_err();
        oracle::shard(text.as_bytes());
        (error.kind(), error.at().value())
    };
    // What is put in the place of what, and what is wrong then, where.
    type Row = (&'static str, &'static str, fn(Kind) -> bool, u64);
    let table: &[Row] = &[
        ("}}", "}", |kind| matches!(kind, Kind::Json { found: None, .. }), 81),
        ("}}", "}}}", |kind| matches!(kind, Kind::Trailing { found: b'}' }), 82),
        ("}}", "},}", |kind| matches!(kind, Kind::Json { .. }), 82),
        ("\"shard\":0", "\"shard\":00", |kind| matches!(kind, Kind::Json { .. }), 10),
        ("\"shard\":0", "\"shard\":-1", |kind| matches!(kind, Kind::Value { field: Field::Shard, .. }), 9),
        ("\"shard\":0", "\"shard\":-0", |kind| matches!(kind, Kind::Value { field: Field::Shard, .. }), 9),
        ("\"shard\":0", "\"shard\":1.0", |kind| matches!(kind, Kind::Value { field: Field::Shard, .. }), 9),
        ("\"shard\":0", "\"shard\":\"0\"", |kind| matches!(kind, Kind::Value { field: Field::Shard, .. }), 9),
        ("\"shard\":0", "\"shard\":null", |kind| matches!(kind, Kind::Value { field: Field::Shard, .. }), 9),
        ("\"shard\":0,", "", |kind| matches!(kind, Kind::Missing { field: Field::Shard }), 71),
        (
            "\"offset\":6",
            "\"offset\":18446744073709551616",
            |kind| matches!(kind, Kind::Value { field: Field::Offset, .. }),
            20,
        ),
        (
            "\"offset\":6",
            "\"offset\":6,\"offset\":6",
            |kind| matches!(kind, Kind::Duplicate { field: Field::Offset }),
            22,
        ),
        ("\"offset\":6", "\"offset\":6,\"Shard\":0", |kind| matches!(kind, Kind::Unknown), 22),
        (
            "\"offset\":6",
            "\"offset\":6,\"shards\":{}",
            |kind| matches!(kind, Kind::Value { field: Field::Shards, .. }),
            31,
        ),
        ("\"offset\":6", "\"offset\":6,\"shards\":[1]", |kind| matches!(kind, Kind::NoObject { .. }), 32),
        (
            "\"offset\":6",
            "\"offset\":6,\"shards\":[{\"name\":\"a\",\"ids\":1}]",
            |kind| matches!(kind, Kind::Missing { field: Field::Bytes }),
            51,
        ),
        ("18570", "0x185", |kind| matches!(kind, Kind::Hex { field: Field::State }), 37),
        ("\"18570", "\" 8570", |kind| matches!(kind, Kind::Hex { field: Field::State }), 37),
        ("3f8", "3f", |kind| matches!(kind, Kind::Hex { field: Field::State }), 37),
        ("3f8", "3f80", |kind| matches!(kind, Kind::Hex { field: Field::State }), 37),
        (
            "\"185706b82c2e03f8\"",
            "1753877967969059832",
            |kind| matches!(kind, Kind::Value { field: Field::State, .. }),
            37,
        ),
        ("06d", "06c", |kind| matches!(kind, Kind::EvenInc), 62),
        (",\"inc\":\"000000000000006d\"", "", |kind| matches!(kind, Kind::Missing { field: Field::Inc }), 55),
        ("{\"state\"", "[\"state\"", |kind| matches!(kind, Kind::Json { .. }), 36),
    ];
    for (from, to, kind, at) in table {
        assert!(GOOD.contains(from), "{from}");
        let text = GOOD.replacen(from, to, 1);
        let (found, place) = error(&text);
        assert!(kind(found) && place == *at, "{text}: {found:?} at {place}");
    }
    for text in ["", "null", "[]", "0", "\u{feff}{}", "{}", "{\"cursor\":{}}"] {
        error(text);
    }
    for bytes in [&b"{\"shard\":0,\"\xff\":1}"[..], b"\xff"] {
        Cursor::read(bytes).unwrap_err();
        oracle::shard(bytes);
    }
}

#[test]
fn random_texts_are_read_as_serde_json_reads_them() {
    let mut random = Random::new(6);
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"shard\"",
        "\"",
        "0",
        "-",
        "e1",
        "\\u0061",
        " ",
        "6d",
        "\"inc\"",
        "null",
    ];
    for _ in 0..20_000 {
        let mut text = random.pick(&[GOOD, WITH_SHARDS]).as_bytes().to_vec();
        for _ in 0..random.below(3) {
            let at = random.below(text.len());
            match random.below(4) {
                0 => drop(text.remove(at)),
                1 => text[at] = random.bits() as u8,
                2 => drop(text.splice(at..at, random.pick(&pieces).bytes())),
                _ => {
                    let end = (at + random.below(12)).min(text.len());
                    let copy = text[at..end].to_vec();
                    text.splice(at..at, copy);
                }
            }
        }
        oracle::shard(&text);
    }
}

#[test]
fn cursor_restore_is_bitwise() {
    let directory = tempfile::tempdir().unwrap();
    let paths = [write(directory.path(), "a.bin", 0..100), write(directory.path(), "b.bin", 500..540)];
    for access in BOTH {
        let mut one = stream(&paths, access, 5, 3).unwrap();
        let whole: Vec<_> = (0..16).map(|_| one.next_batch::<i64>().unwrap()).collect();
        let mut first = stream(&paths, access, 5, 3).unwrap();
        (0..7).for_each(|_| drop(first.next_batch::<i64>().unwrap()));
        let mut second = stream(&paths, access, 5, 3).unwrap();
        second.restore(first.cursor()).unwrap();
        let rest: Vec<_> = (0..9).map(|_| second.next_batch::<i64>().unwrap()).collect();
        assert_eq!(rest, whole[7..]);
    }
}

#[test]
fn restore_rejects_bad_cursor() {
    let directory = tempfile::tempdir().unwrap();
    let paths = [write(directory.path(), "a.bin", 0..10), write(directory.path(), "b.bin", 10..17)];
    let mut stream = stream(&paths, Access::Map, 3, 1).unwrap();
    let good = stream.cursor();
    let at = |shard, offset| Cursor { shard, offset, ..good };
    let table = [
        (2, 0, "a.bin: expected a shard below 2, the number of shards, found 2"),
        (u64::MAX, 0, "found 18446744073709551615"),
        (0, 11, "a.bin: expected an offset of at most 10, the ids of shard 0, found 11"),
        (1, 8, "b.bin: expected an offset of at most 7"),
        (0, u64::MAX, "found 18446744073709551615"),
    ];
    for (shard, offset, says) in table {
        let error = stream.restore(at(shard, offset)).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(stream.cursor(), good);
    }
    // At the end, and wherever no window fits, the next pass starts: in the next shard, the last wrapping to the first.
    for (shard, offsets, first) in [(0, 7..=10, 10), (1, 4..=7, 0)] {
        for offset in offsets {
            stream.restore(at(shard, offset)).unwrap();
            assert_eq!(stream.cursor(), at(shard, offset));
            let mut generator = good.rng;
            let phase = i64::from(generator.below(super::number(3)));
            assert_eq!(stream.next_batch::<i64>().unwrap().inputs[0], first + phase);
            assert_eq!((stream.cursor().shard, stream.cursor().rng), (1 - shard, generator));
        }
    }
}

#[test]
fn other_shards_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str, ids| write(directory.path(), name, 0..ids);
    let paths = [at("a.bin", 10), at("b.bin", 20)];
    let bookmark = stream(&paths, Access::Read, 3, 1).unwrap().bookmark();
    let bookmark = Bookmark::read(bookmark.to_string().as_bytes()).unwrap();
    let table = [
        (vec![at("a.bin", 10), at("b.bin", 20)], None),
        (
            vec![at("a.bin", 10), at("c.bin", 20)],
            Some(
                r#"shard 1 was "b.bin" of 1064 bytes with 20 ids, and is "c.bin" of 1064 bytes with 20 ids"#,
            ),
        ),
        (vec![at("b.bin", 20), at("a.bin", 10)], Some("shard 0 was \"a.bin\"")),
        (vec![at("a.bin", 10)], Some("it belongs to 2 shards, and these are 1")),
        (
            vec![at("a.bin", 10), at("b.bin", 20), at("c.bin", 20)],
            Some("it belongs to 2 shards, and these are 3"),
        ),
        (
            vec![at("a.bin", 11), at("b.bin", 20)],
            Some("with 10 ids, and is \"a.bin\" of 1046 bytes with 11 ids"),
        ),
    ];
    for (paths, says) in table {
        // Some of the files were written again since.
        write(
            directory.path(),
            "a.bin",
            0..if says.is_some_and(|says| says.contains("11 ids")) { 11 } else { 10 },
        );
        let mut stream = stream(&paths, Access::Read, 3, 1).unwrap();
        let answer = stream.restore_bookmark(&bookmark);
        match says {
            None => answer.unwrap(),
            Some(says) => {
                let error = answer.unwrap_err();
                assert!(matches!(error.because(), Cause::Misfit(Misfit::Shards(_))), "{error}");
                assert!(error.to_string().contains(says), "{error}");
            }
        }
        stream.restore_bookmark(&Bookmark { shards: None, ..bookmark.clone() }).unwrap();
    }
}
