//! Names become a table over the slots themselves, in which two equal ones meet, and in which a name is found.
//!
//! As many buckets as slots: bucket b begins with the link in the lower half of slot b's key and goes on with the link in the
//! upper half of each slot met. A link is a slot's number plus one; zero ends the chain.

use crate::json::JsonStr;
use crate::limits::NAME_CHAIN_MAX;
use crate::span::{count, narrow, widen};
use crate::tensor::fingerprint::{fingerprint, narrow_high};
use crate::tensor::slot::Slot;

/// What came of filling the table.
pub(crate) enum Filled {
    Whole,
    /// The numbers of the first two slots, in header order, that have one name.
    Duplicate {
        first: usize,
        second: usize,
    },
    /// A chain grew longer than chance allows.
    Crowded,
}

/// Fills the table.
pub(crate) fn fill(text: &[u8], slots: &mut [Slot]) -> Filled {
    for slot in &mut *slots {
        slot.key = 0;
    }
    for second in 0..slots.len() {
        let Some(name) = slots.get(second).map(|slot| slot.name(text)) else { break };
        let fingerprint = fingerprint(name);
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
        if length > NAME_CHAIN_MAX {
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
