//! Slots are put in order by offset or by name, in place, in O(n log n) steps whatever they hold, without a way to panic.
//!
//! What is moved are records of 12 bytes, a slot's `key` and `link`; the rest of the slot stays.

use crate::json::JsonStr;
use crate::span::{narrow, widen};
use crate::tensor::slot::Slot;

/// A sort key and the number of the slot that it belongs to.
type Record = (u64, u32);

/// Links the slots by (begin, end, place in the header) through `order`, the number of the next one; the answer is the
/// number of the first.
#[cold]
pub(crate) fn by_offset(slots: &mut [Slot]) -> u32 {
    for (place, slot) in slots.iter_mut().enumerate() {
        slot.key = slot.begin;
        slot.link = narrow(place);
    }
    let len = slots.len();
    sort(slots, 0, len, &|_, one, other| one < other);
    // Tensors with one begin: at most one of them has bytes, or they overlap.
    let mut begin = 0;
    while begin < len {
        let key = record(slots, begin).0;
        let mut end = begin.wrapping_add(1);
        while end < len && record(slots, end).0 == key {
            end = end.wrapping_add(1);
        }
        if end.wrapping_sub(begin) > 1 {
            for place in begin..end {
                let (_, link) = record(slots, place);
                let key = slots.get(widen(link)).map_or(0, |slot| slot.end);
                put(slots, place, (key, link));
            }
            sort(slots, begin, end, &|_, one, other| one < other);
        }
        begin = end;
    }
    let first = record(slots, 0).1;
    for place in 0..len {
        let (this, next) = (record(slots, place).1, record(slots, place.wrapping_add(1)).1);
        if let Some(slot) = slots.get_mut(widen(this)) {
            slot.order = next;
        }
    }
    first
}

/// Leaves in `link` of slot k the number of the slot that is k-th by (name, place in the header).
#[cold]
pub(crate) fn by_name(text: &[u8], slots: &mut [Slot]) {
    let shared = shared_prefix(text, slots);
    for (place, slot) in slots.iter_mut().enumerate() {
        slot.key = chunk(slot.name(text), shared);
        slot.link = narrow(place);
    }
    let len = slots.len();
    sort(slots, 0, len, &|slots, one, other| {
        if one.0 != other.0 {
            return one.0 < other.0;
        }
        let name = |record: Record| slots.get(widen(record.1)).map(|slot| slot.name(text));
        (name(one), one.1) < (name(other), other.1)
    });
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

#[inline]
fn swap(slots: &mut [Slot], one: usize, other: usize) {
    let (first, second) = (record(slots, one), record(slots, other));
    put(slots, one, second);
    put(slots, other, first);
}

/// Sorts the records `begin..end` by a strict order in which no two are equal.
fn sort(slots: &mut [Slot], begin: usize, end: usize, less: &impl Fn(&[Slot], Record, Record) -> bool) {
    let sorted = (begin.wrapping_add(1)..end)
        .all(|place| less(slots, record(slots, place.wrapping_sub(1)), record(slots, place)));
    if sorted {
        return;
    }
    #[cfg(feature = "fast")]
    quick::sort(slots, begin, end, 64, less);
    #[cfg(not(feature = "fast"))]
    heap_sort(slots, begin, end, less);
}

/// Heap sort: never more than 2 n log n comparisons.
fn heap_sort(slots: &mut [Slot], begin: usize, end: usize, less: &impl Fn(&[Slot], Record, Record) -> bool) {
    let len = end.saturating_sub(begin);
    let mut start = len >> 1;
    let mut heap = len;
    while heap > 1 {
        if start > 0 {
            start = start.wrapping_sub(1);
        } else {
            heap = heap.wrapping_sub(1);
            swap(slots, begin, begin.wrapping_add(heap));
        }
        // The root at `start` sinks to where both children are smaller.
        let mut parent = start;
        loop {
            let mut child = parent.wrapping_mul(2).wrapping_add(1);
            if child >= heap {
                break;
            }
            let at = |child: usize| begin.wrapping_add(child);
            let right = child.wrapping_add(1);
            if right < heap && less(slots, record(slots, at(child)), record(slots, at(right))) {
                child = right;
            }
            if !less(slots, record(slots, at(parent)), record(slots, at(child))) {
                break;
            }
            swap(slots, at(parent), at(child));
            parent = child;
        }
    }
}

/// Quick sort over the same records, for machines where it is worth its code.
#[cfg(feature = "fast")]
mod quick {
    use super::{Record, Slot, heap_sort, put, record, swap};

    /// Below this many records, insertion is faster.
    const FEW: usize = 20;

    /// Sorts `begin..end`; a stretch that still is long after `depth` cuts goes to the heap sort.
    pub(super) fn sort(
        slots: &mut [Slot],
        mut begin: usize,
        mut end: usize,
        mut depth: u32,
        less: &impl Fn(&[Slot], Record, Record) -> bool,
    ) {
        while end.saturating_sub(begin) > FEW {
            if depth == 0 {
                return heap_sort(slots, begin, end, less);
            }
            depth = depth.wrapping_sub(2);
            let cut = partition(slots, begin, end, less);
            // The shorter side first, so that the stack stays logarithmic.
            if cut.wrapping_sub(begin) < end.wrapping_sub(cut) {
                sort(slots, begin, cut, depth, less);
                begin = cut;
            } else {
                sort(slots, cut, end, depth, less);
                end = cut;
            }
        }
        insertion(slots, begin, end, less);
    }

    /// Cuts `begin..end` in two sides, neither empty, the left one below the right one.
    fn partition(
        slots: &mut [Slot],
        begin: usize,
        end: usize,
        less: &impl Fn(&[Slot], Record, Record) -> bool,
    ) -> usize {
        let last = end.wrapping_sub(1);
        let middle = begin.wrapping_add(end.wrapping_sub(begin) >> 1);
        for (one, other) in [(begin, middle), (middle, last), (begin, middle)] {
            if less(slots, record(slots, other), record(slots, one)) {
                swap(slots, one, other);
            }
        }
        let pivot = record(slots, middle);
        let (mut left, mut right) = (begin, last);
        loop {
            // The ends are no smaller and no greater than the pivot, so both walks stop.
            while left < last && less(slots, record(slots, left), pivot) {
                left = left.wrapping_add(1);
            }
            while right > begin && less(slots, pivot, record(slots, right)) {
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

    fn insertion(
        slots: &mut [Slot],
        begin: usize,
        end: usize,
        less: &impl Fn(&[Slot], Record, Record) -> bool,
    ) {
        for place in begin.wrapping_add(1)..end {
            let moved = record(slots, place);
            let mut hole = place;
            while hole > begin {
                let before = record(slots, hole.wrapping_sub(1));
                if !less(slots, moved, before) {
                    break;
                }
                put(slots, hole, before);
                hole = hole.wrapping_sub(1);
            }
            put(slots, hole, moved);
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
                let mut slots: Vec<Slot> =
                    (0_u32..).zip(&keys).map(|(link, &key)| Slot { key, link, ..Slot::EMPTY }).collect();
                let mut expected: Vec<Record> = slots.iter().map(|slot| (slot.key, slot.link)).collect();
                expected.sort_unstable();
                let mut heaped = slots.clone();
                sort(&mut slots, 0, keys.len(), &|_, one, other| one < other);
                heap_sort(&mut heaped, 0, keys.len(), &|_, one, other| one < other);
                for sorted in [slots, heaped] {
                    let found: Vec<Record> = sorted.iter().map(|slot| (slot.key, slot.link)).collect();
                    assert_eq!(found, expected, "{keys:?}");
                }
            }
        }
    }
}
