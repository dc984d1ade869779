//! Slots in any order are proven to tile the data by a table of where they begin, without sorting them.
//!
//! If no two tensors begin at one place, each end but one is the begin of a tensor that no other end is, and a tensor
//! begins at 0, then "next" is one-to-one and never goes back: a single path from 0, on which all tensors stand.
//! Whatever is not so (tensors without bytes, gaps, overlaps, crowded buckets) is left to sorting, which also names the break.

use crate::limits::NAME_CHAIN_MAX;
use crate::span::{count, narrow, widen};
use crate::tensor::slot::Slot;

/// Links the slots in data order through `order`; the answer is the numbers of the first and the last one.
pub(crate) fn link(slots: &mut [Slot]) -> Option<(u32, u32)> {
    fill(slots)?;
    let mut last = None;
    for place in 0..slots.len() {
        let end = slots.get(place)?.end;
        match begins_at(slots, end)? {
            Met::Slot(next) => {
                let slot = slots.get_mut(widen(next))?;
                if slot.met {
                    return None;
                }
                slot.met = true;
                slots.get_mut(place)?.order = next;
            }
            Met::Nothing if last.is_some() => return None,
            Met::Nothing => last = Some(narrow(place)),
        }
    }
    let Met::Slot(first) = begins_at(slots, 0)? else { return None };
    if slots.get(widen(first))?.met { None } else { Some((first, last?)) }
}

/// Fills the table of begins; its links are those of the name table. Two tensors that begin at one place are not looked
/// for: only one of them can be met, so that an end is left over.
fn fill(slots: &mut [Slot]) -> Option<()> {
    for slot in &mut *slots {
        slot.key = 0;
        slot.met = false;
    }
    for place in 0..slots.len() {
        let slot = slots.get(place)?;
        if slot.begin == slot.end {
            return None;
        }
        let bucket = bucket(slot.begin, slots.len());
        let head = &mut slots.get_mut(bucket)?.key;
        let first = *head & LINK;
        *head = *head & !LINK | count(place).wrapping_add(1);
        slots.get_mut(place)?.key |= first << 32;
    }
    Some(())
}

/// What stands at a begin.
enum Met {
    /// The number of the slot whose tensor begins there.
    Slot(u32),
    /// No tensor.
    Nothing,
}

/// What begins there; `None` if its bucket is crowded.
#[inline]
fn begins_at(slots: &[Slot], begin: u64) -> Option<Met> {
    let mut link = slots.get(bucket(begin, slots.len()))?.key & LINK;
    for _ in 0..NAME_CHAIN_MAX {
        let Some(slot) = follow(slots, link) else { return Some(Met::Nothing) };
        if slot.begin == begin {
            return Some(Met::Slot(narrow(usize::try_from(link).ok()?).wrapping_sub(1)));
        }
        link = slot.key >> 32;
    }
    None
}

const LINK: u64 = 0xFFFF_FFFF;

/// The slot that a link leads to; a link is its number plus one.
#[inline]
fn follow(slots: &[Slot], link: u64) -> Option<&Slot> {
    slots.get(usize::try_from(link).ok()?.checked_sub(1)?)
}

#[inline]
fn bucket(begin: u64, buckets: usize) -> usize {
    let spread = begin.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    usize::try_from(spread.wrapping_mul(count(buckets)) >> 32).unwrap_or_default()
}
