//! A judged header becomes an index in slots that the caller lends: tensors in data order, and by name.

use crate::error::{Error, ErrorKind};
use crate::json::JsonStr;
use crate::span::{Span, count, narrow, widen};
use crate::tensor::entry::{Entry, Form, Members, Shape};
use crate::tensor::frame::Frame;
use crate::tensor::header::Header;
use crate::tensor::judge::{Crack, Outline, Sink, Tiling};
use crate::tensor::names::{self, NameOrder};
use crate::tensor::slot::Slot;
use crate::tensor::sort;
use crate::tensor::verdict::Verdict;

/// A header in which no rule is broken, in slots: every entry is sound, names differ, and the tensors tile the data.
///
/// ```
/// use safestep_core::{Frame, Index, Limits, Slot};
/// let file = b"\x40\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}        ________";
/// let frame = Frame::read(file, 80, Limits::default())?;
/// let header = frame.header(&file[8..72])?;
/// let mut slots = [Slot::EMPTY; 4];
/// let index = Index::build(header, &mut slots)?;
/// let tensor = index.get("w").unwrap();
/// assert_eq!(tensor.shape().rank(), 2);
/// assert_eq!(tensor.span().len().value(), 8);
/// # Ok::<(), safestep_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Index<'h, 's> {
    header: Header<'h>,
    slots: &'s [Slot],
    names: NameOrder,
    /// The number of the slot that is first in data order.
    first: u32,
    outline: Outline,
}

/// What [`Index::build`] found out beside the slots.
#[derive(Clone, Copy, Debug)]
pub struct Proof {
    tensors: usize,
    names: NameOrder,
    first: u32,
    outline: Outline,
}

impl<'h, 's> Index<'h, 's> {
    /// Judges a header by all rules and indexes it, in one slot a tensor.
    ///
    /// What the slots held does not matter. Cost: O(n log n) in the header's length, whatever it says.
    ///
    /// # Errors
    /// The first broken rule, R2.start to R5.surplus; [`ErrorKind::SlotsTooFew`] if the form is good but more slots are
    /// needed: one a tensor, and more only for a header that has, in `__metadata__` or in one entry, more than
    /// [`KEYS_PAIRWISE_MAX`](crate::limits::KEYS_PAIRWISE_MAX) keys out of order.
    pub fn build(header: Header<'h>, slots: &'s mut [Slot]) -> Result<Self, Error> {
        let mut verdict = Verdict::new(header.frame().limits().allowed());
        let lent = count(slots.len());
        let mut fill = Fill {
            slots,
            used: 0,
            tiling: Tiling::new(),
            tiled: true,
            last: JsonStr::new(b""),
            ascending: true,
            needed: 0,
        };
        let outline = header.scan(&mut verdict, &mut fill)?;
        let Fill { slots, used, tiling, tiled, ascending, needed, .. } = fill;
        let Some(slots) = slots.get_mut(..widen(used)).filter(|_| u64::from(needed) <= lent) else {
            return Err(Error::new(ErrorKind::SlotsTooFew { needed: u64::from(used.max(needed)), lent }, 0));
        };
        let text = header.text();
        let (first, tiling) = if tiled { (0, Ok(tiling)) } else { tile(text, slots) };
        let names = if ascending { NameOrder::Ascending } else { names::index(text, slots, &mut verdict) };
        verdict.settle()?;
        tiling?.close(header.frame().data_begin(), header.frame().data_len().value())?;
        Ok(Self { header, slots, names, first, outline })
    }

    /// What was proven, to be kept beside a header and slots that the caller owns.
    ///
    /// ```
    /// # use safestep_core::{Frame, Index, Limits, Slot};
    /// # let file = b"\x40\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}        ________";
    /// # let header = Frame::read(file, 80, Limits::default())?.header(&file[8..72])?;
    /// let mut slots = vec![Slot::EMPTY; header.slots_bound()];
    /// let proof = Index::build(header, &mut slots)?.proof();
    /// // ... later, without judging again:
    /// let index = Index::again(*header.frame(), header.text(), &slots, proof);
    /// assert!(index.get("w").is_some());
    /// # Ok::<(), safestep_core::Error>(())
    /// ```
    #[must_use]
    pub fn proof(&self) -> Proof {
        Proof { tensors: self.slots.len(), names: self.names, first: self.first, outline: self.outline }
    }

    /// The index that a proof came from, given the same frame, header and slots. With others it finds nonsense, and no
    /// more.
    #[must_use]
    pub fn again(frame: Frame, text: &'h [u8], slots: &'s [Slot], proof: Proof) -> Self {
        let Proof { tensors, names, first, outline } = proof;
        let slots = slots.get(..tensors).unwrap_or(slots);
        Self { header: Header::new(frame, text), slots, names, first, outline }
    }

    /// The number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are no tensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The tensor of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Entry<'h>> {
        let found = names::find(self.header.text(), self.slots, self.names, name.as_bytes())?;
        Some(self.entry(self.slots.get(found)?))
    }

    /// All tensors in data order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Entry<'h>> + use<'h, 's> {
        let index = *self;
        let mut next = self.first;
        self.slots.iter().map(move |slot| {
            let slot = index.slots.get(widen(next)).unwrap_or(slot);
            next = slot.order;
            index.entry(slot)
        })
    }

    /// All tensors in the order of the header.
    pub fn iter_as_written(&self) -> impl ExactSizeIterator<Item = Entry<'h>> + use<'h, 's> {
        let index = *self;
        self.slots.iter().map(move |slot| index.entry(slot))
    }

    /// The pairs of `__metadata__`, or `None` if it is absent or null.
    #[must_use]
    pub fn metadata(&self) -> Option<Metadata<'h>> {
        Metadata::of(self.header.text(), &self.outline)
    }

    /// The header that was judged.
    #[must_use]
    pub fn header(&self) -> Header<'h> {
        self.header
    }

    pub(crate) fn outline(&self) -> &Outline {
        &self.outline
    }

    fn entry(&self, slot: &Slot) -> Entry<'h> {
        let text = self.header.text();
        Entry {
            name: slot.name(text),
            dtype: slot.dtype,
            shape: Shape::new(text.get(widen(slot.shape_at)..).unwrap_or_default()),
            span: Span::new(slot.begin, slot.end).unwrap_or_default(),
        }
    }
}

/// The pairs of `__metadata__`, in the order of the header.
#[derive(Clone)]
pub struct Metadata<'h> {
    text: &'h [u8],
    members: Members<'h>,
}

impl<'h> Metadata<'h> {
    pub(crate) fn of(text: &'h [u8], outline: &Outline) -> Option<Self> {
        let (_, object_at) = outline.metadata?;
        if text.get(widen(object_at)) != Some(&b'{') {
            return None;
        }
        Some(Self { text, members: Members::new(text, object_at) })
    }
}

impl<'h> Iterator for Metadata<'h> {
    type Item = (JsonStr<'h>, JsonStr<'h>);

    fn next(&mut self) -> Option<Self::Item> {
        let member = self.members.next()?;
        let mut value = crate::json::Scan::new(self.text, widen(member.value_at.saturating_add(1)));
        Some((member.key, value.string().ok()?))
    }
}

/// Fills slots in the order of the header and proves as much as that order allows.
struct Fill<'h, 's> {
    slots: &'s mut [Slot],
    used: u32,
    tiling: Tiling,
    /// So far each tensor begins where the one before it ended.
    tiled: bool,
    last: JsonStr<'h>,
    /// So far each name is greater than the one before it.
    ascending: bool,
    /// More slots than tensors, if inner objects want them.
    needed: u32,
}

impl<'h> Sink<'h> for Fill<'h, '_> {
    #[inline]
    fn tensor(&mut self, key: JsonStr<'h>, key_at: u32, form: Option<&Form>) {
        if self.ascending {
            self.ascending = self.used == 0 || self.last < key;
            self.last = key;
        }
        let begin = key_at.wrapping_add(1);
        let end = begin.wrapping_add(narrow(key.as_spelled().len()));
        if let Some(slot) = self.slots.get_mut(widen(self.used)) {
            slot.put_key(key, key_at);
            slot.order = self.used.wrapping_add(1);
            if let Some(form) = form {
                slot.begin = form.begin;
                slot.end = form.end;
                slot.shape_at = form.shape_at;
                slot.dtype = form.dtype;
            }
        }
        if let Some(form) = form {
            self.tiled &= form.begin == self.tiling.expected();
            self.tiling.go_on(form.end, (begin, end));
        }
        self.used = self.used.wrapping_add(1);
    }

    fn scratch(&mut self) -> &mut [Slot] {
        self.slots.get_mut(widen(self.used)..).unwrap_or_default()
    }

    fn lacks_scratch(&mut self, slots: u32) {
        self.needed = self.needed.max(self.used.saturating_add(slots));
    }
}

/// R5.gap and R5.overlap over slots in any order: links them in data order and gives the first one's number.
#[cold]
fn tile(text: &[u8], slots: &mut [Slot]) -> (u32, Result<Tiling, Error>) {
    #[cfg(feature = "fast")]
    if let Some((first, last)) = crate::tensor::chain::link(slots) {
        let mut tiling = Tiling::new();
        if let Some(slot) = slots.get(widen(last)) {
            tiling.go_on(slot.end, slot.name_span());
        }
        return (first, Ok(tiling));
    }
    let first = sort::by_offset(slots);
    (first, walk(text, slots, first))
}

/// R5.gap and R5.overlap, over slots that are linked in data order.
fn walk(text: &[u8], slots: &[Slot], first: u32) -> Result<Tiling, Error> {
    let mut tiling = Tiling::new();
    let mut next = first;
    for _ in slots {
        let Some(slot) = slots.get(widen(next)) else { break };
        if slot.begin != tiling.expected() {
            let crack = Crack { expected: tiling.expected(), found: slot.begin };
            return Err(crack.error(text, slot.name_at.wrapping_sub(1)));
        }
        tiling.go_on(slot.end, slot.name_span());
        next = slot.order;
    }
    Ok(tiling)
}
