//! Names become a table over the slots themselves, in which two equal ones meet, and in which a name is found.
//!
//! As many buckets as slots: bucket b begins with the link in the lower half of slot b's key and goes on with the link in the
//! upper half of each slot met. A link is a slot's number plus one; zero ends the chain.

use crate::json::JsonStr;
use crate::limits::{NAME_CHAIN_MAX, NAME_EFFORT_MIN, NAME_FALSE_MATCH_EFFORT};
use crate::span::{count, high_half, low_half, narrow, widen};
use crate::tensor::fingerprint::fingerprint;
use crate::tensor::slot::Slot;

/// What came of filling the table.
pub(crate) enum Filled {
    Whole,
    /// The numbers of the first two slots, in header order, that have one name.
    Duplicate {
        first: usize,
        second: usize,
    },
    /// Names met more often than chance allows.
    Crowded,
}

/// Fills the table with slots that are in none yet.
pub(crate) fn fill(text: &[u8], slots: &mut [Slot]) -> Filled {
    // All slots are put in first, each at the front of its chain, and only then compared with those behind them: the
    // machine need not wait for one slot to come from memory before it goes on to the next.
    for place in 0..slots.len() {
        let Some(name) = slots.get(place).map(|slot| slot.name(text)) else { break };
        let fingerprint = fingerprint(name);
        let bucket = bucket(fingerprint, slots.len());
        let Some(first) = slots.get_mut(bucket) else { break };
        let link = head(first);
        first.key = first.key & !u64::from(u32::MAX) | u64::from(narrow(place).wrapping_add(1));
        if let Some(slot) = slots.get_mut(place) {
            slot.link = fingerprint;
            slot.key |= u64::from(link) << 32;
        }
    }
    let mut effort = narrow(slots.len()).saturating_add(NAME_EFFORT_MIN);
    for second in 0..slots.len() {
        let Some(slot) = slots.get(second) else { break };
        let mut link = next(slot);
        let mut length = 0_u32;
        while let Some(place) = widen(link).checked_sub(1) {
            let Some(other) = slots.get(place) else { break };
            let mut cost = 1;
            if other.link == slot.link {
                if other.name(text) == slot.name(text) {
                    return Filled::Duplicate { first: place, second };
                }
                cost = NAME_FALSE_MATCH_EFFORT;
            }
            link = next(other);
            length = length.wrapping_add(1);
            effort = effort.saturating_sub(cost);
        }
        if length > NAME_CHAIN_MAX || effort == 0 {
            return Filled::Crowded;
        }
    }
    Filled::Whole
}

/// The number of the slot with that name.
pub(crate) fn find(text: &[u8], slots: &[Slot], name: JsonStr<'_>) -> Option<u32> {
    let fingerprint = fingerprint(name);
    let mut link = head(slots.get(bucket(fingerprint, slots.len()))?);
    // No chain is longer; slots that belong to another header may hold a circle.
    for _ in 0..=NAME_CHAIN_MAX {
        let place = link.checked_sub(1)?;
        let slot = slots.get(widen(place))?;
        if slot.link == fingerprint && slot.name(text) == name {
            return Some(place);
        }
        link = next(slot);
    }
    None
}

fn head(slot: &Slot) -> u32 {
    low_half(slot.key)
}

fn next(slot: &Slot) -> u32 {
    high_half(slot.key)
}

/// Spreads fingerprints evenly over the buckets.
fn bucket(fingerprint: u32, buckets: usize) -> usize {
    widen(high_half(u64::from(fingerprint).wrapping_mul(count(buckets))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::slot::tests::slots_of;
    extern crate std;
    use std::collections::HashMap;
    use std::format;
    use std::string::String;

    /// Two names with one fingerprint, of which there are some among a few hundred thousand.
    fn twins() -> [String; 2] {
        let mut names = HashMap::new();
        (0_u32..)
            .find_map(|number| {
                let name = format!("model.layers.{number}.weight");
                let print = fingerprint(JsonStr::new(name.as_bytes()));
                names.insert(print, name.clone()).map(|other| [other, name])
            })
            .expect("numbers do not end")
    }

    /// Names are equal when they are, not when their fingerprints are.
    #[test]
    fn names_with_one_fingerprint_are_told_apart() {
        // Miri would search for them for an hour.
        if cfg!(miri) {
            return;
        }
        let [one, other] = twins();
        for names in [&[one.as_str()][..], &[&one, &other], &["a", &other, "b", &one]] {
            let (text, mut slots) = slots_of(names);
            assert!(matches!(fill(text.as_bytes(), &mut slots), Filled::Whole));
            for name in [&one, &other] {
                let place = names.iter().position(|known| known == name);
                let found = find(text.as_bytes(), &slots, JsonStr::new(name.as_bytes()));
                assert_eq!(found.map(widen), place, "{name} in {names:?}");
            }
        }
    }
}
