//! Slots in any order are proven to tile the data by a table of where they begin, without sorting them.
//!
//! Let no tensor be empty, and the sum of their lengths be S. If a tensor begins at 0 and each end but S is the begin of
//! some tensor, then there is a way from 0 by ends and begins that only goes forward, so it comes to S; the lengths on it
//! are S in all, so no tensor is left beside it. Whatever is not so (empty tensors, gaps, overlaps, crowded buckets) is left
//! to sorting, which also names the break.

use crate::limits::OFFSET_EFFORT_MIN;
use crate::span::{count, high_half, low_half, narrow, widen};
use crate::tensor::slot::Slot;

/// Links the slots in data order through `order`; the answer is the numbers of the first and the last one.
///
/// The slots must be in no table yet. When this is not the way, `key` and `order` are left as they fell; no
/// `effort` is left if that is because the table was crowded.
pub(crate) fn link(slots: &mut [Slot], effort: &mut u32) -> Option<(u32, u32)> {
    let sum = fill(slots)?;
    let mut last = None;
    for place in 0..slots.len() {
        let end = slots.get(place)?.end;
        match begins_at(slots, end, effort) {
            Some(next) => slots.get_mut(place)?.key |= u64::from(next) << 32,
            None if end == sum => last = Some(narrow(place)),
            None => return None,
        }
    }
    let first = begins_at(slots, 0, effort)?;
    for slot in slots {
        slot.order = high_half(slot.key);
        slot.key = 0;
    }
    Some((first, last?))
}

/// How many steps along chains are taken for so many slots, in all. Honest ones take half a step each.
pub(crate) fn effort(slots: usize) -> u32 {
    narrow(slots).saturating_add(OFFSET_EFFORT_MIN)
}

/// Fills the table of begins; the answer is the sum of the lengths.
///
/// There are as many buckets as slots. Bucket b begins with the link in the lower half of slot b's key, and goes on with the
/// `order` of each slot met. A link is a slot's number plus one; zero ends the chain.
fn fill(slots: &mut [Slot]) -> Option<u64> {
    let mut sum = 0_u64;
    for place in 0..slots.len() {
        let slot = slots.get(place)?;
        if slot.begin >= slot.end {
            return None;
        }
        sum = sum.checked_add(slot.end.wrapping_sub(slot.begin))?;
        let bucket = bucket(slot.begin, slots.len());
        let head = &mut slots.get_mut(bucket)?.key;
        let next = low_half(*head);
        *head = u64::from(narrow(place).wrapping_add(1));
        slots.get_mut(place)?.order = next;
    }
    Some(sum)
}

/// The number of a slot whose tensor begins there.
#[inline]
fn begins_at(slots: &[Slot], begin: u64, effort: &mut u32) -> Option<u32> {
    let mut link = low_half(slots.get(bucket(begin, slots.len()))?.key);
    loop {
        let number = link.checked_sub(1)?;
        let slot = slots.get(widen(number))?;
        if slot.begin == begin {
            return Some(number);
        }
        *effort = effort.checked_sub(1)?;
        link = slot.order;
    }
}

#[inline]
fn bucket(begin: u64, buckets: usize) -> usize {
    let spread = begin.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    usize::try_from(spread.wrapping_mul(count(buckets)) >> 32).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    /// Tensors of 1, 2, 3... bytes that tile the data, but do not stand in its order.
    fn tiles(tensors: u32) -> Vec<Slot> {
        let tile = |place: u32| {
            let number = u64::from((place * 7 + 3) % tensors);
            Slot { begin: number * (number + 1) / 2, end: (number + 1) * (number + 2) / 2, ..Slot::EMPTY }
        };
        (0..tensors).map(tile).collect()
    }

    #[test]
    fn tiles_in_any_order_are_linked_in_the_order_of_the_data() {
        for tensors in [1, 2, 10, 1_000] {
            let mut slots = tiles(tensors);
            let lent = effort(slots.len());
            let mut left = lent;
            let (first, last) = link(&mut slots, &mut left).expect("tiles");
            let (mut number, mut end) = (first, 0);
            for step in 1..=tensors {
                let slot = &slots[widen(number)];
                assert_eq!((slot.begin, slot.key, number == last), (end, 0, step == tensors));
                (number, end) = (slot.order, slot.end);
            }
            // Evenly spread they take half a step each.
            assert!(lent >= tensors && lent - left <= tensors, "{} of {lent} steps", lent - left);
        }
    }

    /// What ends where nothing begins, begins nowhere, is empty or too long to be counted.
    #[test]
    fn what_does_not_tile_is_left_to_others() {
        let spoiled: [fn(&mut Slot); 5] = [
            |slot| slot.begin += 1,
            |slot| slot.end += 1,
            |slot| slot.end -= 1,
            |slot| slot.end = slot.begin,
            |slot| slot.end = u64::MAX,
        ];
        for spoil in spoiled {
            // But for the last one, whose end nobody expects.
            for place in (0..10).filter(|place| tiles(10)[*place].end < 55) {
                let mut slots = tiles(10);
                spoil(&mut slots[place]);
                let mut left = effort(slots.len());
                assert_eq!(link(&mut slots, &mut left), None, "{place}");
                assert!(left > 0);
            }
        }
    }
}
