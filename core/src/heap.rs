//! Anything becomes ordered in place, in O(n log n) steps whatever it holds, without a way to panic.

/// Heap sort of the first `len` places of something that compares and swaps by place: never more than 2 n log n comparisons.
pub(crate) fn sort<T: ?Sized>(
    items: &mut T,
    len: usize,
    before: impl Fn(&T, usize, usize) -> bool,
    swap: impl Fn(&mut T, usize, usize),
) {
    let mut start = len >> 1;
    let mut heap = len;
    while heap > 1 {
        if start > 0 {
            start = start.wrapping_sub(1);
        } else {
            heap = heap.wrapping_sub(1);
            swap(items, 0, heap);
        }
        // The root at `start` sinks to where both children are smaller.
        let mut parent = start;
        loop {
            let mut child = parent.wrapping_mul(2).wrapping_add(1);
            let right = child.wrapping_add(1);
            if right < heap && before(items, child, right) {
                child = right;
            }
            if child >= heap || !before(items, parent, child) {
                break;
            }
            swap(items, parent, child);
            parent = child;
        }
    }
}
