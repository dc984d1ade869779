//! The contract of the reader rules, `fixtures/rules/cases.toml`, against every reader.
//!
//! The table was written by hand. A reader that differs from it in one offset is wrong, or the table is; they cannot
//! both stay. So each reader is asked about each file: the twin, the core with slots and without, and the shell by
//! map and by pread, which must also say the same words.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use safestep::{Access, BadFile, Cause, Model};
use safestep_core::{Seems, Slot, sniff};
use safestep_tests::cases::{Case, Verdict, cases};
use safestep_tests::oracle::verdict::{Refused, content_of_index, in_slots, limits, slot_free};
use safestep_tests::oracle::{self};
use safestep_tests::twin::{self, Break, Note};

#[test]
fn the_twin_keeps_the_table() {
    for case in cases() {
        let bytes = case.bytes();
        let file_len = case.file_len.unwrap_or(bytes.len() as u64);
        let verdict = twin::judge(&bytes, file_len, &case.options());
        case.assert("the twin", verdict.as_ref().map(|model| model.notes.as_slice()));
    }
}

#[test]
fn the_core_keeps_the_table_with_slots_and_without() {
    let mut slots_needed = 0;
    let mut slots = vec![Slot::EMPTY; 2_000];
    for case in cases() {
        let bytes = case.bytes();
        let file_len = case.file_len.unwrap_or(bytes.len() as u64);
        let readers = [
            ("the core", in_slots(&bytes, file_len, &case.options(), &mut slots)),
            ("the core without slots", slot_free(&bytes, file_len, &case.options())),
        ];
        for (reader, found) in readers {
            match &found {
                Ok(content) => case.assert(reader, Ok(&content.notes)),
                Err(Refused::Broken(found)) => case.assert(reader, Err(found)),
                Err(Refused::Slots(_)) if reader == "the core without slots" => slots_needed += 1,
                Err(Refused::Slots(needed)) => panic!("{}: {needed} slots", case.name),
            }
        }
    }
    println!("{slots_needed} cases need slots");
    assert!(slots_needed < 40, "{slots_needed} cases were not judged without slots");
}

#[test]
fn every_case_goes_through_the_oracles() {
    for case in cases() {
        let bytes = case.bytes();
        let file_len = case.file_len.unwrap_or(bytes.len() as u64);
        oracle::header(&bytes, file_len);
        oracle::index(&bytes, file_len);
        oracle::rewrite(&bytes, file_len);
    }
}

#[test]
fn the_shell_keeps_the_table_by_map_and_by_pread() {
    let directory = tempfile::tempdir().unwrap();
    let (mut opened, mut skipped) = (0, 0);
    for case in cases() {
        let Some(path) = whole_file(&case, directory.path()) else {
            skipped += 1;
            continue;
        };
        let by_pread = open(&case, &path, Access::Read);
        // A map of more than the address space is refused, which is no verdict.
        if case.file_len.is_none_or(|len| len < 1 << 40) {
            assert_eq!(open(&case, &path, Access::Map), by_pread, "{}", case.name);
        }
        opened += 1;
    }
    println!("{opened} files opened, {skipped} longer than this file system allows");
    assert!(opened > 400);
}

/// The path of a case's file, or of one made as long as the table says, by a hole; `None` if there can be none.
fn whole_file(case: &Case, directory: &Path) -> Option<std::path::PathBuf> {
    let Some(file_len) = case.file_len else { return Some(case.path()) };
    let path = directory.join(&case.name);
    std::fs::write(&path, case.bytes()).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(file_len).ok().map(|()| path)
}

/// The shell's words on a file, after they were held against the table.
fn open(case: &Case, path: &Path, access: Access) -> String {
    match Model::open(path, access, limits(&case.options())) {
        Ok(model) => {
            let content = content_of_index(&model.index());
            case.assert(&format!("the shell by {access:?}"), Ok(&content.notes));
            format!("{content:?}")
        }
        Err(error) => {
            let Cause::Bad(bad) = error.because() else { panic!("{}: {error}", case.name) };
            case.assert(&format!("the shell by {access:?}"), Err(&found(bad)));
            assert_eq!(bad.seems.map(name_of), case.seems.as_deref().map(expected_name));
            error.to_string()
        }
    }
}

fn found(bad: &BadFile) -> Break {
    let rule = bad.error.rule().expect("a broken rule").id();
    Break { rule, offset: bad.error.at().value(), tensor: bad.name.clone() }
}

/// As the column `seems` spells it, without the line between words.
fn name_of(seems: Seems) -> String {
    format!("{seems:?}").to_lowercase()
}

/// The column tells two beginnings of a pickle apart.
fn expected_name(seems: &str) -> String {
    seems.trim_end_matches("_frame").replace('_', "")
}

#[test]
fn no_good_file_seems_to_be_something_else() {
    for case in cases().iter().filter(|case| case.verdict == Verdict::Good) {
        assert_eq!(sniff(&case.bytes()), None, "{}", case.name);
    }
}

#[test]
fn the_table_has_a_case_for_every_rule_and_note() {
    let cases = cases();
    let rules: BTreeSet<&str> = cases.iter().filter_map(|case| case.rule.as_deref()).collect();
    assert_eq!(rules, twin::RULES.into_iter().collect());
    let notes: BTreeSet<&str> = cases.iter().flat_map(|case| &case.notes).map(String::as_str).collect();
    assert_eq!(notes, twin::NOTES.into_iter().collect());
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len());
    for case in &cases {
        let bad = case.verdict == Verdict::Bad;
        assert!(case.rule.is_some() == bad && case.offset.is_some() == bad, "{}", case.name);
        assert_eq!(
            case.refusal.is_some(),
            bad && case.reference.as_deref() == Some("accepts"),
            "{}",
            case.name
        );
    }
}

/// A table test that cannot fail is none.
#[test]
fn a_wrong_verdict_is_noticed() {
    let cases = cases();
    let bad = cases.iter().find(|case| case.verdict == Verdict::Bad && case.tensor.is_some()).unwrap();
    let good = cases.iter().find(|case| case.note_details.len() == 1).unwrap();
    let right = Break {
        rule: twin::RULES.into_iter().find(|rule| Some(*rule) == bad.rule.as_deref()).unwrap(),
        offset: bad.offset.unwrap(),
        tensor: bad.tensor.clone(),
    };
    let wrong = [
        Break { offset: right.offset + 1, ..right.clone() },
        Break { tensor: None, ..right.clone() },
        Break { rule: "R0", ..right.clone() },
    ];
    bad.assert("nobody", Err(&right));
    let note = &good.note_details[0];
    let id = twin::NOTES.into_iter().find(|id| *id == note.id).unwrap();
    let elsewhere = Note { id, offset: note.offset + 1, tensor: note.tensor.clone(), count: 1 };
    let noticed =
        |attempt: &(dyn Fn() + std::panic::RefUnwindSafe)| std::panic::catch_unwind(attempt).is_err();
    for wrong in &wrong {
        assert!(noticed(&|| bad.assert("nobody", Err(wrong))), "{wrong:?}");
    }
    assert!(noticed(&|| bad.assert("nobody", Ok(&[]))));
    assert!(noticed(&|| good.assert("nobody", Ok(&[]))));
    assert!(noticed(&|| good.assert("nobody", Ok(std::slice::from_ref(&elsewhere)))));
}
