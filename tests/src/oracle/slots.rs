//! Turns a file and the twin's verdict on it into assertions about slots: however many are lent, the verdict is the same.

use safestep_core::Slot;
use safestep_core::limits::{NAME_RUNS_MAX, REREAD_BYTES_MAX};

use super::told;
use super::verdict::{Content, Refused, in_slots, slot_free};
use crate::twin::json::{self, Member};
use crate::twin::{Break, Model, Options};

/// The core agrees with a verdict of the twin's by these options: with slots as few as can be, with more than needed,
/// with slots that still hold something, and without slots.
///
/// # Panics
/// When it does not.
pub fn agree(bytes: &[u8], file_len: u64, options: &Options, verdict: &Result<Model, Break>) {
    let expected = told(verdict);
    let needed = match in_slots(bytes, file_len, options, &mut []) {
        Err(Refused::Slots(needed)) => {
            assert!(!is_malformed(&expected), "{needed} slots wanted before {expected:?} is told");
            usize::try_from(needed).expect("a header in memory")
        }
        found => {
            same(&found, &expected, bytes);
            0
        }
    };
    let mut slots = vec![Slot::EMPTY; needed + 3];
    same(&in_slots(bytes, file_len, options, &mut slots), &expected, bytes);
    // What slots hold does not matter, and exactly as many as needed will do.
    slots.reverse();
    same(&in_slots(bytes, file_len, options, &mut slots[..needed]), &expected, bytes);
    if let Ok(content) = &expected {
        let tensors = content.tensors.len();
        assert!(needed == tensors || crowded_inside(bytes), "{needed} slots for {tensors} tensors");
    }
    match slot_free(bytes, file_len, options) {
        Err(Refused::Slots(told)) => {
            assert!(may_need_slots(bytes, &expected), "{told} slots wanted without need, {expected:?}");
            let mut slots = vec![Slot::EMPTY; usize::try_from(told).expect("a header in memory")];
            same(&in_slots(bytes, file_len, options, &mut slots), &expected, bytes);
        }
        found => same(&found, &expected, bytes),
    }
}

/// With any number of slots the core either has the verdict, or says how many it needs, which then suffice.
///
/// # Panics
/// When it does not.
pub fn any_number(bytes: &[u8], file_len: u64, verdict: &Result<Model, Break>) {
    let (options, expected) = (Options::default(), told(verdict));
    let tensors = expected.as_ref().map_or(0, |content| content.tensors.len());
    let mut slots = vec![Slot::EMPTY; tensors + 6];
    // Few, and about as many as there are tensors.
    let about = tensors.saturating_sub(2)..tensors + 3;
    for lent in (0..4).chain(about).chain([tensors / 2]) {
        match in_slots(bytes, file_len, &options, &mut slots[..lent]) {
            Err(Refused::Slots(needed)) => {
                let mut slots = vec![Slot::EMPTY; usize::try_from(needed).expect("a header in memory")];
                same(&in_slots(bytes, file_len, &options, &mut slots), &expected, bytes);
            }
            found => {
                same(&found, &expected, bytes);
                assert!(lent >= tensors, "{tensors} tensors in {lent} slots");
            }
        }
    }
}

fn same(found: &Result<Content, Refused>, expected: &Result<Content, Break>, bytes: &[u8]) {
    let alike = match (found, expected) {
        (Ok(found), Ok(expected)) => found == expected,
        (Err(Refused::Broken(found)), Err(expected)) => found == expected,
        _ => false,
    };
    let text = || String::from_utf8_lossy(bytes.get(..4096).unwrap_or(bytes));
    assert!(alike, "the core says {found:?}, the twin {expected:?} of {}", text());
}

/// The members of the header, if it is one JSON object.
fn members(bytes: &[u8]) -> Vec<Member> {
    let header_len = bytes.first_chunk::<8>().map_or(0, |length| u64::from_le_bytes(*length));
    let end = usize::try_from(header_len.saturating_add(8)).unwrap_or(usize::MAX);
    let text = bytes.get(8..end).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
    json::parse(text).map_or(Vec::new(), |root| root.members().to_vec())
}

/// How many bytes are read again when sixteen keys at a time are compared with all others.
fn reread_bytes(keys: usize, bytes: u64) -> u64 {
    keys as u64 / 16 * bytes
}

/// The same for all objects inside the header.
fn reread_inside(members: &[Member]) -> u64 {
    let bytes = |member: &Member| member.node.end - member.node.begin;
    members.iter().map(|member| reread_bytes(member.node.members().len(), bytes(member))).sum()
}

/// The metadata, or entries, have more keys than are compared without slots.
fn crowded_inside(bytes: &[u8]) -> bool {
    reread_inside(&members(bytes)) > (1 << 16)
}

/// Whether a rule is broken that is judged before it comes to slots.
fn is_malformed(expected: &Result<Content, Break>) -> bool {
    let rule = expected.as_ref().err().map_or("good", |found| found.rule);
    ["R1.", "R2.start", "R2.utf8", "R2.json", "R2.trailing"].iter().any(|form| rule.starts_with(form))
}

/// Whether a header may be refused without slots: offsets do not ascend (if it comes to offsets), or there are too many
/// names in no order, or too many keys in inner objects.
fn may_need_slots(bytes: &[u8], expected: &Result<Content, Break>) -> bool {
    if is_malformed(expected) {
        return false;
    }
    let rule = expected.as_ref().err().map_or("good", |found| found.rule);
    let members = members(bytes);
    let entries: Vec<&Member> = members.iter().filter(|member| member.key != "__metadata__").collect();
    let runs = 1 + entries.windows(2).filter(|pair| pair[0].key >= pair[1].key).count();
    let names = if runs > NAME_RUNS_MAX { reread_bytes(entries.len(), bytes.len() as u64) } else { 0 };
    let offsets_matter = rule == "good" || rule.starts_with("R5.");
    names + reread_inside(&members) > REREAD_BYTES_MAX
        || offsets_matter && !entries.is_sorted_by_key(|entry| offsets(entry))
}

/// Begin and end of an entry that keeps R4.
fn offsets(entry: &Member) -> Vec<u64> {
    let field =
        entry.node.members().iter().find(|field| field.key == "data_offsets").expect("R4.field holds");
    let integers = field.node.elements().expect("R4.offsets holds").iter();
    integers.map(|integer| integer.integer().expect("R4.offsets holds")).collect()
}
