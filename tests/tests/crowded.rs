//! Names and places that somebody chose against the core's tables.
//!
//! Names are looked up in a table over the lent slots; when its buckets are crowded the core sorts instead, so that
//! nobody can make it slow. Random names crowd nothing: fuzzing alone did not reach a bug on that way. Here the names
//! are aimed, with a copy of the core's hash in [`crowded`], and the first test says when the aim has been lost.

use safestep_core::{Index, Slot};
use safestep_tests::headers::random::Random;
use safestep_tests::headers::{Sample, crowded};
use safestep_tests::oracle::{self, recipe, verdict};
use safestep_tests::twin::{self, Options};

/// Which way an index finds names, as its `Debug` form tells.
fn way(header: &[u8], file_len: u64) -> &'static str {
    let header = verdict::header_of(header, file_len, &Options::default()).unwrap();
    let mut slots = vec![Slot::EMPTY; header.slots_bound()];
    let index = Index::build(header, &mut slots).unwrap();
    let debug = format!("{index:?}");
    let ways = ["names: Table", "names: ByFingerprint", "names: Sorted"];
    let way = ways.into_iter().find(|way| debug.contains(way)).unwrap();
    assert_eq!(index.is_crowded(), way == "names: ByFingerprint");
    way
}

/// The small build has no table: it always sorts by name.
const TABLE: &str = if cfg!(feature = "fast") { "names: Table" } else { "names: Sorted" };
const CROWDED: &str = if cfg!(feature = "fast") { "names: ByFingerprint" } else { "names: Sorted" };

/// The ways are taken: else the tests below, and the recipes of the fuzzers, go past what they are for.
#[test]
fn names_that_collide_crowd_the_table() {
    for (name, make) in crowded::KINDS {
        let sample = make(20_000);
        assert_eq!(way(&sample.header, sample.file_len()), CROWDED, "{name}");
    }
    let (bytes, file_len) = recipe::files(b"crowd...").pop().unwrap();
    assert_eq!(way(&bytes, file_len), CROWDED);
}

/// Chains up to the longest that the table allows, and one beyond: where the ways part, both find every name.
#[test]
fn the_longest_chain_is_walked_to_its_end() {
    const LONGEST: usize = 25;
    for crowd in LONGEST - 3..LONGEST + 4 {
        let buckets = crowd + 200;
        let bucket = |name: &String| crowded::bucket_of_name(name.as_bytes(), buckets);
        let all = || (0..).map(|number| format!("w{number}"));
        let mut names: Vec<String> = all().filter(|name| bucket(name) == 0).take(crowd).collect();
        names.extend(all().filter(|name| bucket(name) != 0).take(200));
        Random::new(crowd as u64).shuffle(&mut names);
        let entries: Vec<String> = names.iter().map(|name| recipe::entry(name, 0, 0)).collect();
        let sample = Sample::new("chain", format!("{{{}}}", entries.join(",")), 0, None);
        oracle::header(&sample.header, sample.file_len());
        let expected = if crowd <= LONGEST { TABLE } else { CROWDED };
        assert_eq!(way(&sample.header, sample.file_len()), expected, "{crowd}");
    }
}

#[test]
fn crowded_headers_are_judged_alike_by_all() {
    for header_len in [0, 20_000] {
        for (_, make) in crowded::KINDS {
            let sample = make(header_len);
            oracle::header(&sample.header, sample.file_len());
            oracle::rewrite(&sample.header, sample.file_len());
        }
    }
}

/// Colliding names in every spelling, prefixes of them, sizes from 0 up, places shuffled, some names twice.
#[test]
fn crowds_with_duplicates_and_escapes_are_judged_alike_by_all() {
    let mut rules = std::collections::BTreeMap::new();
    for seed in 0..400 {
        let random = &mut Random::new(seed);
        let choices: Vec<u8> = (0..random.below(80)).map(|_| random.bits().to_le_bytes()[0]).collect();
        let input = [b"crowd...".as_slice(), &choices].concat();
        for (bytes, file_len) in recipe::files(&input) {
            oracle::header(&bytes, file_len);
            let verdict = twin::judge(&bytes, file_len, &Options::default());
            *rules.entry(verdict.err().map_or("good", |found| found.rule)).or_insert(0) += 1;
        }
    }
    println!("{rules:?}");
    assert!(rules["good"] > 20 && rules["R2.duplicate"] > 100, "{rules:?}");
}

/// Names that share a beginning which is spelled with an escape, so that places in the text are no places in the name.
#[test]
fn crowds_with_an_escaped_beginning_are_judged_alike_by_all() {
    for (plain, spelled) in
        [("model.layer.0000", "\\u006dodel.layer.0000"), ("\u{e9}", "\\u00e9"), ("/", "\\/")]
    {
        for number in [30, 60] {
            let mut names: Vec<String> =
                recipe::NAMES.iter().take(number).map(|name| format!("{spelled}{name}")).collect();
            let duplicate = format!("{plain}{}", &recipe::NAMES[3]);
            for with_duplicate in [false, true] {
                names.extend(Some(duplicate.clone()).filter(|_| with_duplicate));
                let entries: Vec<String> = names.iter().map(|name| recipe::entry(name, 0, 0)).collect();
                let sample = Sample::new("prefix", format!("{{{}}}", entries.join(",")), 0, None);
                oracle::header(&sample.header, sample.file_len());
                Random::new(1).shuffle(&mut names);
            }
        }
    }
}

/// Begins that fall into one bucket, in the table by which tiling is proven without sorting.
#[test]
fn places_that_collide_are_judged_alike_by_all() {
    for count in [10, 26, 27, 60] {
        let first_bucket = |place: &u64| crowded::bucket_of_offset(*place, count) == 0;
        let mut places: Vec<u64> = (0..).filter(first_bucket).take(count + 1).collect();
        for fault in 0..4 {
            let mut entries: Vec<String> = places
                .windows(2)
                .enumerate()
                .map(|(number, place)| recipe::entry(&format!("t{number}"), place[1] - place[0], place[0]))
                .collect();
            Random::new(fault).shuffle(&mut entries);
            let data_len = *places.last().unwrap();
            let sample = Sample::new("places", format!("{{{}}}", entries.join(",")), data_len, None);
            oracle::header(&sample.header, sample.file_len());
            // The next rounds have a gap, or one place less.
            places.swap_remove(usize::try_from(fault).unwrap() + 3);
            places.sort_unstable();
        }
    }
}
