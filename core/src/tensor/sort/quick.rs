//! Slots are put in order by quick sort, for machines where that is worth its code.
//!
//! What is moved are records of 12 bytes, a slot's `key` and `link`; the rest of the slot stays. Most comparisons end with
//! the keys, so that they touch no other slot.

use crate::json::JsonStr;
use crate::tensor::slot::Slot;
use crate::tensor::sort::{By, heap_sort, swap};

/// A number whose order is that of the slots, unless it is the same; and the number of the slot that it belongs to.
type Record = (u64, u32);

/// Below this many records, insertion is faster.
const FEW: usize = 20;

/// Puts the links in order; they are those of the slots themselves.
pub(super) fn slots(slots: &mut [Slot], by: By<'_>) {
    match by {
        By::Offset => slots.iter_mut().for_each(|slot| slot.key = slot.begin),
        By::Name(text) => {
            let shared = shared_prefix(text, slots);
            slots.iter_mut().for_each(|slot| slot.key = chunk(slot.name(text), shared));
        }
    }
    let in_order = |place: usize| by.before(slots, place.wrapping_sub(1), place);
    if !(1..slots.len()).all(in_order) {
        sort(slots, 0, slots.len(), 64, by);
    }
}

fn less(slots: &[Slot], by: By<'_>, one: Record, other: Record) -> bool {
    if one.0 == other.0 { by.less(slots, one.1, other.1) } else { one.0 < other.0 }
}

#[inline]
fn record(slots: &[Slot], place: usize) -> Record {
    slots.get(place).map_or((0, 0), |slot| (slot.key, slot.link))
}

#[inline]
fn put(slots: &mut [Slot], place: usize, record: Record) {
    if let Some(slot) = slots.get_mut(place) {
        (slot.key, slot.link) = record;
    }
}

/// Sorts `begin..end`; a stretch that still is long after `depth` cuts goes to the heap sort.
fn sort(slots: &mut [Slot], mut begin: usize, mut end: usize, mut depth: u32, by: By<'_>) {
    while end.saturating_sub(begin) > FEW {
        if depth == 0 {
            return heap_sort(slots, begin, end, by);
        }
        depth = depth.wrapping_sub(2);
        let cut = partition(slots, begin, end, by);
        // The shorter side first, so that the stack stays logarithmic.
        if cut.wrapping_sub(begin) < end.wrapping_sub(cut) {
            sort(slots, begin, cut, depth, by);
            begin = cut;
        } else {
            sort(slots, cut, end, depth, by);
            end = cut;
        }
    }
    insertion(slots, begin, end, by);
}

/// Cuts `begin..end` in two sides, neither empty, the left one below the right one.
fn partition(slots: &mut [Slot], begin: usize, end: usize, by: By<'_>) -> usize {
    let last = end.wrapping_sub(1);
    let middle = begin.wrapping_add(end.wrapping_sub(begin) >> 1);
    for (one, other) in [(begin, middle), (middle, last), (begin, middle)] {
        if less(slots, by, record(slots, other), record(slots, one)) {
            swap(slots, one, other);
        }
    }
    let pivot = record(slots, middle);
    let (mut left, mut right) = (begin, last);
    loop {
        // The ends are no smaller and no greater than the pivot, so both walks stop.
        while left < last && less(slots, by, record(slots, left), pivot) {
            left = left.wrapping_add(1);
        }
        while right > begin && less(slots, by, pivot, record(slots, right)) {
            right = right.wrapping_sub(1);
        }
        if left >= right {
            return left.clamp(begin.wrapping_add(1), last);
        }
        swap(slots, left, right);
        left = left.wrapping_add(1);
        right = right.wrapping_sub(1);
    }
}

fn insertion(slots: &mut [Slot], begin: usize, end: usize, by: By<'_>) {
    for place in begin.wrapping_add(1)..end {
        let moved = record(slots, place);
        let mut hole = place;
        while hole > begin {
            let before = record(slots, hole.wrapping_sub(1));
            if !less(slots, by, moved, before) {
                break;
            }
            put(slots, hole, before);
            hole = hole.wrapping_sub(1);
        }
        put(slots, hole, moved);
    }
}

/// How many bytes all names begin with alike; 0 if one is spelled with escapes.
fn shared_prefix(text: &[u8], slots: &[Slot]) -> usize {
    let Some((first, rest)) = slots.split_first() else { return 0 };
    let mut shared = first.name(text).as_spelled();
    let mut escaped = first.escaped;
    for slot in rest {
        let name = slot.name(text).as_spelled();
        escaped |= slot.escaped;
        if !name.starts_with(shared) {
            let alike = shared.iter().zip(name).position(|(one, other)| one != other);
            shared = shared.get(..alike.unwrap_or(name.len())).unwrap_or_default();
        }
    }
    if escaped { 0 } else { shared.len() }
}

/// Eight bytes of a name, so that their order as a number is the order of the names unless they are equal.
fn chunk(name: JsonStr<'_>, skip: usize) -> u64 {
    let mut bytes = [0; 8];
    let place = |(to, from): (&mut u8, u8)| *to = from;
    if name.is_escaped() {
        bytes.iter_mut().zip(name.bytes().skip(skip)).for_each(place);
    } else {
        let tail = name.as_spelled().get(skip..).unwrap_or_default();
        bytes.iter_mut().zip(tail.iter().copied()).for_each(place);
    }
    u64::from_be_bytes(bytes)
}
