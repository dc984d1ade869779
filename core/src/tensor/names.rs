//! Names are proven to differ, and found again: by putting them in order.
//!
//! With the feature `fast` a table over the lent slots goes before that; without slots, ascending runs are merged, and
//! short objects compared pair by pair.

use crate::json::JsonStr;
use crate::limits::NAME_RUNS_MAX;
use crate::span::{multiply, widen};
use crate::tensor::entry::{Member, Members};
use crate::tensor::fingerprint::fingerprint;
use crate::tensor::judge::Sink;
use crate::tensor::slot::Slot;
use crate::tensor::sort::{self, By};
#[cfg(feature = "fast")]
use crate::tensor::table::{self, Filled};
use crate::tensor::verdict::{Blamed, Verdict, name_span};
use core::cmp::Ordering;

/// How slots find a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameOrder {
    /// `link` of slot k is the number of the k-th slot by name.
    Sorted,
    /// The slots hold a [`table`].
    #[cfg(feature = "fast")]
    Table,
}

/// Makes the names of the slots findable, and reports two equal ones to the verdict.
#[cold]
pub(crate) fn index(text: &[u8], slots: &mut [Slot], blamed: Blamed, verdict: &mut Verdict) -> NameOrder {
    #[cfg(feature = "fast")]
    if sort::by_name_reversed(text, slots) {
        return NameOrder::Sorted;
    }
    #[cfg(feature = "fast")]
    match table::fill(text, slots) {
        Filled::Whole => return NameOrder::Table,
        Filled::Duplicate { first, second } => {
            if let (Some(first), Some(second)) = (slots.get(first), slots.get(second)) {
                report(first, second, blamed, verdict);
            }
            return NameOrder::Table;
        }
        Filled::Crowded => {}
    }
    sort_names(text, slots, blamed, verdict);
    NameOrder::Sorted
}

/// The number of the slot with that name.
pub(crate) fn find(text: &[u8], slots: &[Slot], order: NameOrder, name: JsonStr<'_>) -> Option<u32> {
    match order {
        #[cfg(feature = "fast")]
        NameOrder::Table => table::find(text, slots, name),
        NameOrder::Sorted => {
            let by_name = |place: &Slot| {
                slots.get(widen(place.link)).map_or(Ordering::Less, |slot| slot.name(text).cmp(&name))
            };
            let place = slots.binary_search_by(by_name).ok()?;
            slots.get(place).map(|place| place.link)
        }
    }
}

/// Puts the names in order, and reports two equal ones to the verdict.
#[cold]
fn sort_names(text: &[u8], slots: &mut [Slot], blamed: Blamed, verdict: &mut Verdict) {
    sort::slots(slots, By::Name(text));
    let slots = &*slots;
    let mut first: Option<&Slot> = None;
    for place in slots {
        let Some(second) = slots.get(widen(place.link)) else { break };
        match first {
            // The first of them stays: those after it are in header order, so the earliest pair is the first.
            Some(first) if first.name(text) == second.name(text) => {
                report(first, second, blamed, verdict);
            }
            _ => first = Some(second),
        }
    }
}

fn report(first: &Slot, second: &Slot, blamed: Blamed, verdict: &mut Verdict) {
    let key_at = |slot: &Slot| slot.name_at.wrapping_sub(1);
    verdict.duplicate(key_at(first), key_at(second), second.name_span(), blamed);
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
    let mut keys = 0_u32;
    let mut ahead = members;
    for member in ahead.by_ref() {
        if let Some(slot) = sink.scratch().get_mut(widen(keys)) {
            slot.put_key(member.key, member.key_at);
        }
        keys = keys.wrapping_add(1);
    }
    if let Some(slots) = sink.scratch().get_mut(..widen(keys)) {
        index(text, slots, blamed, verdict);
    } else if sink.may_reread(reread_bytes(keys, ahead.at().wrapping_sub(object_at))) {
        pairwise(members, blamed, verdict);
    } else {
        sink.lacks_scratch(keys);
    }
}

/// How many keys are compared with all others at one reading.
const WINDOW: usize = 16;

/// How many bytes [`pairwise`] reads again, of an object with so many keys and bytes.
pub(crate) fn reread_bytes(keys: u32, bytes: u32) -> u64 {
    let mut reread = u64::from(bytes);
    if multiply(&mut reread, u64::from(keys >> 4), 0) { reread } else { u64::MAX }
}

/// A key with its fingerprint: most keys differ in that. The small build does without.
type Printed<'h> = (u32, Member<'h>);

/// Compares each key with each, and reports equal ones. Those ahead are scanned again for each window of keys.
pub(crate) fn pairwise(mut members: Members<'_>, blamed: Blamed, verdict: &mut Verdict) {
    loop {
        let mut window: [Option<Printed<'_>>; WINDOW] = [None; WINDOW];
        let mut held: usize = 0;
        let mut ahead = members;
        while let Some(second) = ahead.next() {
            let print = if cfg!(feature = "fast") { fingerprint(second.key) } else { 0 };
            let second = (print, second);
            for first in window.iter().flatten() {
                compare(first, &second, blamed, verdict);
            }
            if let Some(place) = window.get_mut(held) {
                *place = Some(second);
                held = held.wrapping_add(1);
                members = ahead;
            }
        }
        if held < WINDOW {
            return;
        }
    }
}

fn compare(first: &Printed<'_>, second: &Printed<'_>, blamed: Blamed, verdict: &mut Verdict) {
    if first.0 == second.0 && first.1.key == second.1.key {
        report_keys(&first.1, &second.1, blamed, verdict);
    }
}

#[cold]
fn report_keys(first: &Member<'_>, second: &Member<'_>, blamed: Blamed, verdict: &mut Verdict) {
    verdict.duplicate(first.key_at, second.key_at, name_span(second.key_at, second.key), blamed);
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
            Some(first) if first.key == member.key => report_keys(first, member, Blamed::Key, verdict),
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

#[cfg(all(test, feature = "fast"))]
mod tests {
    use super::*;
    use crate::span::narrow;
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
        let mut tables = 0;
        for names in cases {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let (text, slots) = slots(&names);
            let mut tabled = slots.clone();
            let mut sorted = slots;
            let mut verdicts = [Verdict::new(Default::default()), Verdict::new(Default::default())];
            let order = index(text.as_bytes(), &mut tabled, Blamed::Key, &mut verdicts[0]);
            sort_names(text.as_bytes(), &mut sorted, Blamed::Key, &mut verdicts[1]);
            tables += u32::from(order == NameOrder::Table);
            assert_eq!(verdicts[0].settle(), verdicts[1].settle());
            if verdicts[0].settle().is_ok() {
                for name in names.iter().chain(&["", "layer", "layer.200.weight", "zz"]) {
                    let spoken: String = JsonStr::new(name.as_bytes()).chars().collect();
                    let spoken = JsonStr::new(spoken.as_bytes());
                    let found = find(text.as_bytes(), &tabled, order, spoken);
                    assert_eq!(found, find(text.as_bytes(), &sorted, NameOrder::Sorted, spoken));
                    assert_eq!(found.is_some(), names.contains(name), "{name}");
                }
            }
        }
        assert_eq!(tables, 3, "names that descend need no table");
    }
}
