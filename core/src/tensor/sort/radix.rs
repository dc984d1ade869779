//! Slots are put in order digit by digit, in place, for machines where that is worth its code: so many steps as there are
//! slots and digits, whatever they hold.
//!
//! What is moved are records of 12 bytes, a slot's `key` and `link`, ordered by both; the rest of the slot stays. The first
//! digits that differ divide the records into 256 parts, and these are divided until few are left, which are compared.

use crate::span::widen;
use crate::tensor::fingerprint::strong;
use crate::tensor::slot::Slot;
use crate::tensor::sort::{By, heap_sort};

/// A key, and the number of the slot that it belongs to.
type Record = (u64, u32);

/// Puts the links in order; they are those of the slots themselves.
///
/// Names are ordered by their strong fingerprints first: an order that nobody can choose, and hardly ever a tie.
pub(super) fn slots(slots: &mut [Slot], by: By<'_>) {
    match by {
        By::Offset => slots.iter_mut().for_each(|slot| slot.key = slot.begin),
        By::Name(text) => slots.iter_mut().for_each(|slot| slot.key = strong(slot.name(text))),
    }
    records(slots);
    let mut from = 0;
    while let Some((begin, end)) = equal_keys(slots, from) {
        break_ties(slots, begin, end, by);
        from = end;
    }
}

/// The next places, from `from` on, whose records have one key, if there are several.
fn equal_keys(slots: &[Slot], from: usize) -> Option<(usize, usize)> {
    let rest = slots.get(from..)?;
    let first = rest.windows(2).position(|pair| matches!(pair, [one, other] if one.key == other.key))?;
    let equal = rest.get(first..)?;
    let key = equal.first()?.key;
    let count = equal.iter().position(|slot| slot.key != key).unwrap_or(equal.len());
    let begin = from.wrapping_add(first);
    Some((begin, begin.wrapping_add(count)))
}

/// Orders records of one key by what their slots hold.
fn break_ties(slots: &mut [Slot], begin: usize, end: usize, by: By<'_>) {
    let in_order = |place: usize| by.before(slots, place.wrapping_sub(1), place);
    if (begin.wrapping_add(1)..end).all(in_order) {
        return;
    }
    if let By::Name(_) = by {
        return heap_sort(slots, begin, end, by);
    }
    // Tensors that begin at one place: where they end makes the difference.
    for place in begin..end {
        let number = slots.get(place).map_or(0, |slot| slot.link);
        let key = slots.get(widen(number)).map_or(0, |slot| slot.end);
        if let Some(slot) = slots.get_mut(place) {
            slot.key = key;
        }
    }
    records(slots.get_mut(begin..end).unwrap_or_default());
}

/// Sorts records.
fn records(slots: &mut [Slot]) {
    if !slots.is_sorted_by_key(record) {
        if slots.len() > FEW { divide(slots) } else { compare(slots, DEPTH) }
    }
}

/// Up to here comparing is faster.
const FEW: usize = 192;

/// Divides records by the first digit that differs, and sorts the parts.
#[inline(never)]
fn divide(slots: &mut [Slot]) {
    let Some(&Slot { key, link, .. }) = slots.first() else { return };
    let differ =
        slots.iter().fold((0, 0), |(keys, links), slot| (keys | slot.key ^ key, links | slot.link ^ link));
    match differ {
        (0, 0) => {}
        // The bits before the first that differs are shifted out, and the eight from there on taken.
        (0, links) => divide_by(slots, |slot| {
            let [.., digit] = (slot.link << (links.leading_zeros() & 31)).to_le_bytes();
            digit
        }),
        (keys, _) => divide_by(slots, |slot| {
            let [.., digit] = (slot.key << (keys.leading_zeros() & 63)).to_le_bytes();
            digit
        }),
    }
}

#[inline(always)]
#[expect(clippy::indexing_slicing, reason = "a byte is always a place of 256")]
fn divide_by(slots: &mut [Slot], digit: impl Fn(&Slot) -> u8) {
    let digit = |slot: &Slot| usize::from(digit(slot));
    let mut ends = [0_u32; 256];
    for slot in &*slots {
        let count = &mut ends[digit(slot)];
        *count = count.wrapping_add(1);
    }
    let mut heads = [0_u32; 256];
    let mut sum = 0_u32;
    for (head, end) in heads.iter_mut().zip(&mut ends) {
        *head = sum;
        sum = sum.wrapping_add(*end);
        *end = sum;
    }
    // Each record is swapped to the head of its part. No step waits for the one before it, as it would in a cycle.
    let mut unsorted = true;
    while unsorted {
        unsorted = false;
        for part in 0..=255_u8 {
            let part = usize::from(part);
            for place in heads[part]..ends[part] {
                unsorted = true;
                let Some(slot) = slots.get(widen(place)) else { break };
                let head = &mut heads[digit(slot)];
                let to = widen(*head);
                *head = head.wrapping_add(1);
                swap(slots, widen(place), to);
            }
        }
    }
    let (mut rest, mut begin) = (slots, 0_u32);
    for end in ends {
        let Some((part, tail)) = rest.split_at_mut_checked(widen(end.wrapping_sub(begin))) else { return };
        if part.len() > FEW {
            divide(part);
        } else {
            compare(part, DEPTH);
        }
        (rest, begin) = (tail, end);
    }
}

/// How often few records are cut in two before somebody must have chosen them.
const DEPTH: u32 = 24;

/// Below this many records, insertion is faster.
const FEWEST: usize = 20;

/// Quick sort of few records; if it goes badly, their digits decide after all.
fn compare(mut slots: &mut [Slot], mut depth: u32) {
    while slots.len() > FEWEST {
        if depth == 0 {
            return divide(slots);
        }
        depth = depth.wrapping_sub(1);
        let cut = partition(slots);
        let Some((below, above)) = slots.split_at_mut_checked(cut) else { return };
        compare(below, depth);
        slots = above;
    }
    insert(slots);
}

/// Cuts the records in two sides, neither empty, the left one below the right one.
fn partition(slots: &mut [Slot]) -> usize {
    let last = slots.len().wrapping_sub(1);
    let middle = slots.len() >> 1;
    for (one, other) in [(0, middle), (middle, last), (0, middle)] {
        if at(slots, other) < at(slots, one) {
            swap(slots, one, other);
        }
    }
    let pivot = at(slots, middle);
    let (mut left, mut right) = (0, last);
    loop {
        // The pivot stops both walks, and after it what has been swapped.
        while at(slots, left) < pivot {
            left = left.wrapping_add(1);
        }
        while pivot < at(slots, right) {
            right = right.wrapping_sub(1);
        }
        if left >= right {
            return left.clamp(1, last);
        }
        swap(slots, left, right);
        left = left.wrapping_add(1);
        right = right.wrapping_sub(1);
    }
}

fn insert(slots: &mut [Slot]) {
    for place in 1..slots.len() {
        let moved = at(slots, place);
        let mut hole = place;
        while hole > 0 {
            let before = at(slots, hole.wrapping_sub(1));
            if before < moved {
                break;
            }
            put(slots, hole, before);
            hole = hole.wrapping_sub(1);
        }
        put(slots, hole, moved);
    }
}

#[inline]
fn record(slot: &Slot) -> Record {
    (slot.key, slot.link)
}

#[inline]
fn at(slots: &[Slot], place: usize) -> Record {
    slots.get(place).map_or((0, 0), record)
}

#[inline]
fn put(slots: &mut [Slot], place: usize, record: Record) {
    if let Some(slot) = slots.get_mut(place) {
        (slot.key, slot.link) = record;
    }
}

#[inline]
fn swap(slots: &mut [Slot], one: usize, other: usize) {
    let (first, second) = (at(slots, one), at(slots, other));
    put(slots, one, second);
    put(slots, other, first);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::narrow;
    extern crate std;
    use std::vec::Vec;

    /// Digits that differ early, late, all over, nowhere but in the link, and in few records.
    #[test]
    fn records_come_out_in_order() {
        let mut random = 1_u64;
        let mut next = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            random ^ random >> 31
        };
        let (many, most) = if cfg!(miri) { (100, 300) } else { (3000, 70_000) };
        for len in [0, 1, FEWEST, FEW, FEW + 1, many, most] {
            let kinds: [&mut dyn FnMut(usize) -> u64; 8] = [
                &mut |_| next(),
                &mut |place| place as u64,
                &mut |place| !(place as u64),
                &mut |_| 7,
                &mut |place| (place as u64) << 50,
                &mut |place| u64::from(place % 100 == 0),
                &mut |place| 1_u64 << (place & 63),
                &mut |place| (place as u64).min((len - place) as u64),
            ];
            for kind in kinds {
                let keys: Vec<u64> = (0..len).map(kind).collect();
                let slot = |(place, &key): (usize, &u64)| Slot {
                    key,
                    link: narrow(place).wrapping_mul(2_654_435_761),
                    ..Slot::EMPTY
                };
                let mut slots: Vec<Slot> = keys.iter().enumerate().map(slot).collect();
                let (mut divided, mut reversed) = (slots.clone(), slots.clone());
                reversed.reverse();
                let mut expected: Vec<Record> = slots.iter().map(record).collect();
                expected.sort_unstable();
                records(&mut slots);
                records(&mut reversed);
                divide(&mut divided);
                for sorted in [slots, reversed, divided] {
                    assert_eq!(sorted.iter().map(record).collect::<Vec<_>>(), expected);
                }
            }
        }
    }
}
