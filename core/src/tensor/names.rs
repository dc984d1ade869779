//! Names are proven to differ, and found again: by putting them in order.
//!
//! With the feature `fast` a table over the lent slots goes before that. How names differ without slots is told in
//! [`pairs`].

use crate::json::JsonStr;
use crate::span::widen;
use crate::tensor::entry::Members;
#[cfg(feature = "fast")]
use crate::tensor::fingerprint::strong;
use crate::tensor::judge::Sink;
use crate::tensor::pairs;
use crate::tensor::slot::Slot;
use crate::tensor::sort::{self, By};
#[cfg(feature = "fast")]
use crate::tensor::table::{self, Filled};
use crate::tensor::verdict::{Blamed, Verdict};
use core::cmp::Ordering;

/// How slots find a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameOrder {
    /// `link` of slot k is the number of the k-th slot by name.
    Sorted,
    /// The slots hold a [`table`].
    #[cfg(feature = "fast")]
    Table,
    /// `link` of slot k is the number of the k-th slot by fingerprint, which is its `key`, and then by name.
    #[cfg(feature = "fast")]
    ByFingerprint,
}

/// Makes the names of the slots findable, and reports two equal ones to the verdict.
#[cfg_attr(feature = "fast", inline(never))]
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
    sort_names(text, slots, blamed, verdict)
}

/// The number of the slot with that name.
pub(crate) fn find(text: &[u8], slots: &[Slot], order: NameOrder, name: JsonStr<'_>) -> Option<u32> {
    match order {
        #[cfg(feature = "fast")]
        NameOrder::Table => table::find(text, slots, name),
        NameOrder::Sorted => sorted_place(slots, |place| by_name(text, slots, place, name)),
        #[cfg(feature = "fast")]
        NameOrder::ByFingerprint => {
            let wanted = strong(name);
            let order = |place: &Slot| place.key.cmp(&wanted).then_with(|| by_name(text, slots, place, name));
            sorted_place(slots, order)
        }
    }
}

/// How the name that is linked at a place stands to this one.
fn by_name(text: &[u8], slots: &[Slot], place: &Slot, name: JsonStr<'_>) -> Ordering {
    slots.get(widen(place.link)).map_or(Ordering::Less, |slot| slot.name(text).cmp(&name))
}

/// What is linked at the place that is neither below nor above what is looked for.
fn sorted_place(slots: &[Slot], order: impl Fn(&Slot) -> Ordering) -> Option<u32> {
    let place = slots.binary_search_by(order).ok()?;
    slots.get(place).map(|place| place.link)
}

/// Puts the names in order, and reports two equal ones to the verdict.
#[cfg_attr(feature = "fast", inline(never))]
pub(crate) fn sort_names(
    text: &[u8],
    slots: &mut [Slot],
    blamed: Blamed,
    verdict: &mut Verdict,
) -> NameOrder {
    sort::slots(slots, By::Name(text));
    let slots = &*slots;
    let mut first: Option<(u64, &Slot)> = None;
    for place in slots {
        let Some(second) = slots.get(widen(place.link)) else { break };
        match first {
            // The first of them stays: those after it are in header order, so the earliest pair is the first.
            Some((key, first))
                if (key == place.key || cfg!(not(feature = "fast")))
                    && first.name(text) == second.name(text) =>
            {
                report(first, second, blamed, verdict);
            }
            _ => first = Some((place.key, second)),
        }
    }
    #[cfg(feature = "fast")]
    return NameOrder::ByFingerprint;
    #[cfg(not(feature = "fast"))]
    NameOrder::Sorted
}

fn report(first: &Slot, second: &Slot, blamed: Blamed, verdict: &mut Verdict) {
    let key_at = |slot: &Slot| slot.name_at.wrapping_sub(1);
    verdict.duplicate(key_at(first), key_at(second), second.name_span(), blamed);
}

/// Looks for equal keys in an object that has been scanned before, and reports the first to the verdict.
#[cfg_attr(feature = "fast", inline(never))]
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
    let scratch = sink.scratch();
    for member in ahead.by_ref() {
        if let Some(slot) = scratch.get_mut(widen(keys)) {
            slot.put_key(member.key, member.key_at);
        }
        keys = keys.wrapping_add(1);
    }
    if let Some(slots) = scratch.get_mut(..widen(keys)) {
        index(text, slots, blamed, verdict);
    } else if sink.may_reread(pairs::reread_bytes(keys, ahead.at().wrapping_sub(object_at))) {
        pairs::compare(members, blamed, verdict);
    } else {
        sink.lacks_scratch(keys);
    }
}

#[cfg(all(test, feature = "fast"))]
mod tests {
    use super::*;
    use crate::tensor::slot::tests::slots_of;
    extern crate std;
    use std::format;
    use std::string::String;
    use std::vec::Vec;

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
            let (text, slots) = slots_of(&names);
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
                    assert_eq!(found, find(text.as_bytes(), &sorted, NameOrder::ByFingerprint, spoken));
                    assert_eq!(found.is_some(), names.contains(name), "{name}");
                }
            }
        }
        assert_eq!(tables, 3, "names that descend need no table");
    }
}
