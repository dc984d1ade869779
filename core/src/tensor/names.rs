//! Names are proven to differ, and found again: in ascending order by nothing but that order, else in a table over the
//! lent slots, else (when somebody chose the names so that the table fills badly) by sorting.
//!
//! Without slots, ascending runs are merged, and short objects compared pair by pair.

use crate::error::ErrorKind;
use crate::json::JsonStr;
use crate::limits::{KEYS_PAIRWISE_MAX, NAME_CHAIN_MAX, NAME_RUNS_MAX};
use crate::span::{count, narrow, widen};
use crate::tensor::entry::{Member, Members};
use crate::tensor::frame::in_file;
use crate::tensor::judge::Sink;
use crate::tensor::slot::Slot;
use crate::tensor::sort;
use crate::tensor::verdict::Verdict;

/// How slots find a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameOrder {
    /// The slots themselves ascend by name.
    Ascending,
    /// A table with chains of at most [`NAME_CHAIN_MAX`]; see [`Table`].
    Table,
    /// `link` of slot k is the number of the k-th slot by name.
    Sorted,
}

/// Makes the names of the slots findable, and reports two equal ones to the verdict.
pub(crate) fn index(text: &[u8], slots: &mut [Slot], verdict: &mut Verdict) -> NameOrder {
    match fill_table(text, slots, NAME_CHAIN_MAX) {
        Filled::Whole => NameOrder::Table,
        Filled::Duplicate { first, second } => {
            report(text, slots, first, second, verdict);
            NameOrder::Table
        }
        Filled::Crowded => {
            sort_names(text, slots, verdict);
            NameOrder::Sorted
        }
    }
}

/// The number of the slot with that name.
pub(crate) fn find(text: &[u8], slots: &[Slot], order: NameOrder, name: &[u8]) -> Option<usize> {
    let name = JsonStr::scanned(name, false);
    match order {
        NameOrder::Ascending => slots.binary_search_by(|slot| slot.name(text).cmp(&name)).ok(),
        NameOrder::Sorted => {
            let by_name = |slot: &Slot| slots.get(widen(slot.link)).map(|slot| slot.name(text).cmp(&name));
            let place =
                slots.binary_search_by(|slot| by_name(slot).unwrap_or(core::cmp::Ordering::Less)).ok()?;
            slots.get(place).map(|slot| widen(slot.link))
        }
        NameOrder::Table => {
            let fingerprint = hash(name);
            let mut link = head(slots.get(bucket(fingerprint, slots.len()))?);
            // No chain is longer; slots that belong to another header may hold a circle.
            for _ in 0..=NAME_CHAIN_MAX {
                let place = widen(link).checked_sub(1)?;
                let slot = slots.get(place)?;
                if slot.link == fingerprint && slot.name(text) == name {
                    return Some(place);
                }
                link = next(slot);
            }
            None
        }
    }
}

/// What came of filling the name table.
enum Filled {
    Whole,
    /// The numbers of the first two slots, in header order, that have one name.
    Duplicate {
        first: usize,
        second: usize,
    },
    /// A chain grew longer than chance allows.
    Crowded,
}

/// Fills the name table: as many buckets as slots; bucket b begins with the link in the lower half of slot b's key and goes
/// on with the link in the upper half of each slot met. A link is a slot's number plus one; zero ends the chain.
fn fill_table(text: &[u8], slots: &mut [Slot], chain_max: u32) -> Filled {
    for slot in &mut *slots {
        slot.key = 0;
    }
    for second in 0..slots.len() {
        let Some(name) = slots.get(second).map(|slot| slot.name(text)) else { break };
        let fingerprint = hash(name);
        let bucket = bucket(fingerprint, slots.len());
        let first_link = slots.get(bucket).map_or(0, head);
        let mut link = first_link;
        let mut length = 0_u32;
        while let Some(place) = widen(link).checked_sub(1) {
            let Some(slot) = slots.get(place) else { break };
            if slot.link == fingerprint && slot.name(text) == name {
                return Filled::Duplicate { first: place, second };
            }
            link = next(slot);
            length = length.wrapping_add(1);
        }
        if length > chain_max {
            return Filled::Crowded;
        }
        if let Some(slot) = slots.get_mut(second) {
            slot.link = fingerprint;
            slot.key |= u64::from(first_link) << 32;
        }
        if let Some(slot) = slots.get_mut(bucket) {
            slot.key = slot.key & !u64::from(u32::MAX) | u64::from(narrow(second).wrapping_add(1));
        }
    }
    Filled::Whole
}

fn head(slot: &Slot) -> u32 {
    let [a, b, c, d, ..] = slot.key.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

fn next(slot: &Slot) -> u32 {
    let [.., a, b, c, d] = slot.key.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// Spreads fingerprints evenly over the buckets.
fn bucket(fingerprint: u32, buckets: usize) -> usize {
    widen(narrow_high(u64::from(fingerprint).wrapping_mul(count(buckets))))
}

fn narrow_high(wide: u64) -> u32 {
    let [.., a, b, c, d] = wide.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// A fingerprint of the text that a name stands for: multiply and fold, sixteen bytes at a time, then the last sixteen,
/// which may have been there before (a loop over an odd tail would cost more).
///
/// It need not resist attack: chains are bounded, and there is a way on that does not depend on it.
#[inline]
pub(crate) fn hash(name: JsonStr<'_>) -> u32 {
    if name.is_escaped() {
        return hash_bytes(name.bytes());
    }
    let spelled = name.as_spelled();
    let (pairs, tail) = spelled.as_chunks::<16>();
    let mut hash = 0;
    for pair in pairs {
        let [low, high] = halves(pair);
        hash = mix(hash, low, high);
    }
    let [low, high] = match spelled.last_chunk::<16>() {
        Some(last) => halves(last),
        None => short(tail),
    };
    finish(mix(hash, low, high), narrow(spelled.len()))
}

/// Fewer than sixteen bytes as the upper end of two words.
fn short(bytes: &[u8]) -> [u64; 2] {
    bytes.iter().fold([0, 0], |last, &byte| shift_in(last, byte))
}

/// Two words, the last byte uppermost, with one more.
fn shift_in([low, high]: [u64; 2], byte: u8) -> [u64; 2] {
    [low >> 8 | high << 56, high >> 8 | u64::from(byte) << 56]
}

fn halves(pair: &[u8; 16]) -> [u64; 2] {
    let [a, b, c, d, e, f, g, h, high @ ..] = *pair;
    [u64::from_le_bytes([a, b, c, d, e, f, g, h]), u64::from_le_bytes(high)]
}

/// The same for bytes that come one by one.
#[cold]
fn hash_bytes(bytes: impl Iterator<Item = u8>) -> u32 {
    let (mut hash, mut last, mut len) = (0, [0_u64; 2], 0_u32);
    for byte in bytes {
        last = shift_in(last, byte);
        len = len.wrapping_add(1);
        if len & 15 == 0 {
            hash = mix(hash, last[0], last[1]);
        }
    }
    finish(mix(hash, last[0], last[1]), len)
}

#[inline(always)]
fn mix(hash: u64, low: u64, high: u64) -> u64 {
    // The product of the upper half does not wait for the hash so far.
    let product =
        (hash ^ low ^ high.wrapping_mul(0xD6E8_FEB8_6659_FD93).rotate_left(32)).wrapping_mul(FACTOR);
    product ^ product >> 32
}

fn finish(hash: u64, len: u32) -> u32 {
    narrow_high((hash ^ u64::from(len)).wrapping_mul(FACTOR))
}

/// 2^64 over the golden ratio, odd.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Puts the names in order, and reports two equal ones to the verdict.
#[cold]
fn sort_names(text: &[u8], slots: &mut [Slot], verdict: &mut Verdict) {
    sort::by_name(text, slots);
    let mut last: Option<usize> = None;
    for place in 0..slots.len() {
        let Some(second) = slots.get(place).map(|slot| widen(slot.link)) else { break };
        if let Some(first) = last
            && let (Some(one), Some(other)) = (slots.get(first), slots.get(second))
            && one.name(text) == other.name(text)
        {
            // The first of them stays: those after it are in header order, so the earliest pair is the first.
            report(text, slots, first, second, verdict);
        } else {
            last = Some(second);
        }
    }
}

#[cold]
fn report(text: &[u8], slots: &[Slot], first: usize, second: usize, verdict: &mut Verdict) {
    if let (Some(first), Some(second)) = (slots.get(first), slots.get(second)) {
        let key_at = |slot: &Slot| slot.name_at.wrapping_sub(1);
        verdict.about(key_at(second), second.name(text));
        verdict.record(ErrorKind::Duplicate { first: in_file(key_at(first)) }, key_at(second));
    }
}

/// Whose name a duplicate key is reported under.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blamed {
    /// The key itself.
    Key,
    /// The tensor whose entry it stands in, of which the verdict knows.
    Tensor,
}

/// Looks for equal keys in an object that has been scanned before, and reports the first to the verdict.
#[cold]
pub(crate) fn duplicate_in_object<'h>(
    text: &'h [u8],
    object_at: u32,
    blamed: Blamed,
    verdict: &mut Verdict,
    sink: &mut impl Sink<'h>,
) {
    let members = Members::new(text, object_at);
    let keys = members.clone().fold(0_u32, |keys, _| keys.saturating_add(1));
    let pair = if let Some(slots) = sink.scratch().get_mut(..widen(keys)) {
        for (slot, member) in slots.iter_mut().zip(members) {
            slot.put_key(member.key, member.key_at);
        }
        let mut inner = Verdict::new(verdict.allowed());
        index(text, slots, &mut inner);
        inner.duplicate()
    } else if keys <= KEYS_PAIRWISE_MAX {
        let mut inner = Verdict::new(verdict.allowed());
        pairwise(members, &mut inner);
        inner.duplicate()
    } else {
        sink.lacks_scratch(keys);
        None
    };
    if let Some(error) = pair {
        verdict.adopt(error, blamed == Blamed::Key);
    }
}

/// Compares each key with each, in windows, and reports equal ones.
pub(crate) fn pairwise(mut members: Members<'_>, verdict: &mut Verdict) {
    loop {
        let mut window: [Option<Member<'_>>; 16] = [None; 16];
        for place in &mut window {
            *place = members.next();
        }
        let [Some(_), ..] = window else { return };
        let mut rest: &[Option<Member<'_>>] = &window;
        while let Some((Some(first), tail)) = rest.split_first() {
            for second in tail.iter().flatten() {
                compare(first, second, verdict);
            }
            rest = tail;
        }
        for second in members.clone() {
            for first in window.iter().flatten() {
                compare(first, &second, verdict);
            }
        }
    }
}

fn compare(first: &Member<'_>, second: &Member<'_>, verdict: &mut Verdict) {
    if first.key == second.key {
        verdict.about(second.key_at, second.key);
        verdict.record(ErrorKind::Duplicate { first: in_file(first.key_at) }, second.key_at);
    }
}

/// Merges ascending runs of keys, which begin at the places `starts`, and reports equal ones.
pub(crate) fn merge_runs(text: &[u8], starts: &[u32], verdict: &mut Verdict) {
    let mut runs: [Option<(Member<'_>, Members<'_>)>; NAME_RUNS_MAX] = [const { None }; NAME_RUNS_MAX];
    for (run, &start) in runs.iter_mut().zip(starts) {
        let mut members = Members::from_key(text, start);
        *run = members.next().map(|member| (member, members));
    }
    let mut last: Option<Member<'_>> = None;
    loop {
        let ends = starts.iter().skip(1).copied().chain([u32::MAX]);
        let mut least: Option<(&mut Option<(Member<'_>, Members<'_>)>, u32)> = None;
        for (run, end) in runs.iter_mut().zip(ends) {
            let Some((member, _)) = run else { continue };
            let key = member.key;
            if least.as_ref().is_none_or(|(least, _)| least.as_ref().is_none_or(|(least, _)| key < least.key))
            {
                least = Some((run, end));
            }
        }
        let Some((run, end)) = least else { return };
        let Some((member, members)) = run else { return };
        match &last {
            Some(first) if first.key == member.key => compare(first, member, verdict),
            _ => last = Some(*member),
        }
        let next =
            members.find(|member| !member.key.is(b"__metadata__")).filter(|member| member.key_at < end);
        match next {
            Some(next) => *member = next,
            None => *run = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    /// The places of names in a text of quoted strings.
    fn slots(names: &[&str]) -> (String, Vec<Slot>) {
        let mut text = String::new();
        let mut slots = Vec::new();
        for name in names {
            let mut slot = Slot::EMPTY;
            slot.put_key(JsonStr::new(name.as_bytes()), narrow(text.len()));
            text.push_str(&format!("\"{name}\""));
            slots.push(slot);
        }
        (text, slots)
    }

    /// The table and the sorted order agree about which names there are and which come twice, forced one after the other.
    #[test]
    fn the_way_around_crowded_tables_finds_the_same() {
        let plain: Vec<String> = (0..200).map(|n| format!("layer.{}.weight", n * 7919 % 200)).collect();
        let mut cases: Vec<Vec<String>> = std::vec![plain.clone()];
        let mut twice = plain.clone();
        twice.push(String::from(r"\u006cayer.3.weight"));
        twice.push(String::from("layer.3.weight"));
        twice.insert(70, String::from("layer.9.weight"));
        cases.push(twice);
        cases.push((0..50).map(|n| "a".repeat(50 - n)).collect());
        cases.push(std::vec![String::new()]);
        cases.push(std::vec![String::from("a"), String::from(r"a\u0000"), String::from("")]);
        for names in cases {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let (text, slots) = slots(&names);
            let mut tabled = slots.clone();
            let mut sorted = slots;
            let mut verdicts = [Verdict::new(Default::default()), Verdict::new(Default::default())];
            let order = index(text.as_bytes(), &mut tabled, &mut verdicts[0]);
            sort_names(text.as_bytes(), &mut sorted, &mut verdicts[1]);
            assert_eq!(order, NameOrder::Table);
            assert_eq!(verdicts[0].settle(), verdicts[1].settle());
            if verdicts[0].settle().is_ok() {
                for name in names.iter().chain(&["", "layer", "layer.200.weight", "zz"]) {
                    let spoken: String = JsonStr::new(name.as_bytes()).chars().collect();
                    let found = find(text.as_bytes(), &tabled, order, spoken.as_bytes());
                    assert_eq!(found, find(text.as_bytes(), &sorted, NameOrder::Sorted, spoken.as_bytes()));
                    assert_eq!(found.is_some(), names.contains(name), "{name}");
                }
            }
        }
    }

    /// The fingerprint depends on what a name says, not on how it is spelled.
    #[test]
    fn escapes_do_not_change_the_fingerprint() {
        for (one, other) in
            [("", ""), ("a", r"\u0061"), ("abcdefgh", r"abcdefg\u0068"), ("a/b", r"a\/b"), ("é", r"\u00e9")]
        {
            assert_eq!(hash(JsonStr::new(one.as_bytes())), hash(JsonStr::new(other.as_bytes())), "{one}");
        }
    }
}
