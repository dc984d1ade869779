//! Slots are put in order by offset or by name, in O(n log n) steps whatever they hold, without a way to panic.

#[cfg(feature = "fast")]
mod radix;

use crate::heap;
use crate::span::{narrow, widen};
use crate::tensor::slot::Slot;
use core::cmp::Ordering;

/// What slots are put in order by.
#[derive(Clone, Copy)]
pub(crate) enum By<'h> {
    /// (begin, end, place in the header).
    Offset,
    /// (name, place in the header), with the text of the header; with the feature `fast`, by fingerprint before that.
    Name(&'h [u8]),
}

/// Leaves in `link` of slot k the number of the slot that is k-th by that order; but for `key`, the rest of the slots stays.
#[cfg_attr(feature = "fast", inline(never))]
pub(crate) fn slots(slots: &mut [Slot], by: By<'_>) {
    link_to_themselves(slots);
    #[cfg(feature = "fast")]
    radix::slots(slots, by);
    #[cfg(not(feature = "fast"))]
    heap_sort(slots, 0, slots.len(), by);
}

/// Does what [`slots`] does if names descend from slot to slot, so that none are equal; otherwise it gives up at once.
#[cfg(feature = "fast")]
pub(crate) fn by_name_reversed(text: &[u8], slots: &mut [Slot]) -> bool {
    let descending = slots.is_sorted_by(|one, other| one.name(text) > other.name(text));
    if descending {
        for (place, slot) in slots.iter_mut().rev().enumerate() {
            slot.link = narrow(place);
        }
    }
    descending
}

/// Links each slot to itself, and takes it out of any table.
pub(crate) fn link_to_themselves(slots: &mut [Slot]) {
    for (place, slot) in slots.iter_mut().enumerate() {
        slot.link = narrow(place);
        if cfg!(feature = "fast") {
            slot.key = 0;
        }
    }
}

impl By<'_> {
    /// Whether the slot of one number stands before that of another. No two are equal.
    fn less(self, slots: &[Slot], one: u32, other: u32) -> bool {
        let (Some(first), Some(second)) = (slots.get(widen(one)), slots.get(widen(other))) else {
            return false;
        };
        match self {
            By::Offset => (first.begin, first.end, one) < (second.begin, second.end, other),
            By::Name(text) => match first.name(text).cmp(&second.name(text)) {
                Ordering::Less => true,
                Ordering::Equal => one < other,
                Ordering::Greater => false,
            },
        }
    }

    /// Whether what is linked at the place `one` stands before what is linked at the place `other`.
    fn before(self, slots: &[Slot], one: usize, other: usize) -> bool {
        let (Some(one), Some(other)) = (slots.get(one), slots.get(other)) else { return false };
        if cfg!(feature = "fast") && one.key != other.key {
            return one.key < other.key;
        }
        self.less(slots, one.link, other.link)
    }
}

/// Heap sort of the places `begin..end`.
fn heap_sort(slots: &mut [Slot], begin: usize, end: usize, by: By<'_>) {
    let at = |place: usize| begin.wrapping_add(place);
    let before = |slots: &[Slot], one, other| by.before(slots, at(one), at(other));
    heap::sort(slots, end.saturating_sub(begin), before, |slots, one, other| swap(slots, at(one), at(other)));
}

/// Swaps what is linked at two places, the lower one first.
fn swap(slots: &mut [Slot], one: usize, other: usize) {
    let Some((below, from)) = slots.split_at_mut_checked(other) else { return };
    if let (Some(one), [other, ..]) = (below.get_mut(one), from) {
        core::mem::swap(&mut one.link, &mut other.link);
        if cfg!(feature = "fast") {
            core::mem::swap(&mut one.key, &mut other.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    /// Orders in which quick sorts are known to fail, and random ones, against the standard library.
    #[test]
    fn records_come_out_in_order() {
        let mut random = 1_u64;
        let mut next = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            random >> 33
        };
        // Miri is a thousand times slower, and looks for other faults.
        let lens = if cfg!(miri) { [0, 1, 2, 22, 70] } else { [3, 21, 300, 2049, 4097] };
        for len in (0..if cfg!(miri) { 4 } else { 70 }).chain(lens) {
            let mut cases: Vec<Vec<u64>> = Vec::new();
            cases.push((0..len).collect());
            cases.push((0..len).rev().collect());
            cases.push((0..len).map(|n| n % 3).collect());
            cases.push((0..len).map(|n| n.min(len - n)).collect());
            cases.push((0..len).map(|n| n ^ 1).collect());
            cases.push((0..len).map(|_| next()).collect());
            cases.push((0..len).map(|_| next() % 5).collect());
            for keys in cases {
                let slot = |&begin: &u64| Slot { begin, end: begin % 7, ..Slot::EMPTY };
                let lent: Vec<Slot> = keys.iter().map(slot).collect();
                let mut expected: Vec<u32> = (0..).take(keys.len()).collect();
                expected.sort_by_key(|&place| keys[widen(place)]);
                let (mut sorted, mut heaped) = (lent.clone(), lent);
                slots(&mut sorted, By::Offset);
                for (slot, place) in heaped.iter_mut().zip(0..) {
                    (slot.key, slot.link) = (slot.begin, place);
                }
                heap_sort(&mut heaped, 0, keys.len(), By::Offset);
                for sorted in [sorted, heaped] {
                    let found: Vec<u32> = sorted.iter().map(|slot| slot.link).collect();
                    assert_eq!(found, expected, "{keys:?}");
                }
            }
        }
    }
}
