//! A judged header becomes an index in slots that the caller lends: tensors in data order, and by name.

use crate::error::{Error, ErrorKind};
use crate::json::{JsonStr, Scan};
use crate::limits::REREAD_BYTES_IN_SLOTS;
use crate::span::{Span, count, widen};
#[cfg(feature = "fast")]
use crate::tensor::chain;
use crate::tensor::entry::{Entry, Form, Members, Shape};
use crate::tensor::frame::Frame;
use crate::tensor::header::Header;
use crate::tensor::judge::{self, Crack, Outline, Rereading, Sink};
use crate::tensor::names::{self, NameOrder};
use crate::tensor::slot::Slot;
use crate::tensor::sort::{self, By};
use crate::tensor::verdict::{Blamed, Verdict};

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
    /// needed: one a tensor, and more only for a header with so many unsorted keys in `__metadata__`, or in an entry, that
    /// comparing them without slots would take longer than all the rest.
    pub fn build(header: Header<'h>, slots: &'s mut [Slot]) -> Result<Self, Error> {
        let mut verdict = Verdict::new(header.frame().allowed());
        let rereading = count(header.text().len()).wrapping_mul(2).wrapping_add(REREAD_BYTES_IN_SLOTS);
        let mut fill = Fill {
            slots,
            used: 0,
            end: 0,
            tiled: SHORTCUTS,
            last: JsonStr::new(b""),
            ascending: SHORTCUTS,
            needed: 0,
            rereading: Rereading(rereading),
        };
        let outline = header.scan(&mut verdict, &mut fill);
        let mut index = Self { header, slots: &[], names: NameOrder::Sorted, first: 0, outline };
        if verdict.is_formed() {
            index.prove(fill, &mut verdict);
        }
        verdict.settle()?;
        Ok(index)
    }

    /// Judges by the rules that concern several tensors, and takes over their slots.
    fn prove(&mut self, fill: Fill<'h, 's>, verdict: &mut Verdict) {
        let lent = count(fill.slots.len());
        let needed = u64::from(fill.needed.max(fill.used));
        let Some(slots) = fill.slots.get_mut(..widen(fill.used)).filter(|_| needed <= lent) else {
            verdict.name = (0, 0);
            return verdict.record_in_file(ErrorKind::SlotsTooFew { needed, lent }, 0);
        };
        let text = self.header.text();
        let mut last = fill.used.wrapping_sub(1);
        let mut crowded = false;
        if !(SHORTCUTS && fill.tiled) {
            (self.first, last, crowded) = tile(text, slots, verdict);
        }
        if !(SHORTCUTS && fill.ascending) {
            // Who crowds one table is not given another.
            let index = if SHORTCUTS && crowded { names::sort_names } else { names::index };
            self.names = index(text, slots, Blamed::Key, verdict);
        }
        let (end, name) = slots.get(widen(last)).map_or((0, (0, 0)), |slot| (slot.end, slot.name_span()));
        judge::close(self.header.frame(), end, name, verdict);
        self.slots = slots;
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
        let name = JsonStr::scanned(name.as_bytes(), 0);
        let found = names::find(self.header.text(), self.slots, self.names, name)?;
        Some(self.entry(self.slots.get(widen(found))?))
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

    /// Whether names were sorted because they crowded a table; for benchmarks of hostile headers.
    #[doc(hidden)]
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        #[cfg(feature = "fast")]
        let crowded = self.names == NameOrder::ByFingerprint;
        #[cfg(not(feature = "fast"))]
        let crowded = false;
        crowded
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
            span: Span::proven(slot.begin, slot.end),
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
        let mut value = Scan::new(self.text, widen(member.value_at));
        value.token();
        Some((member.key, value.string))
    }
}

/// Whether it is noticed when tensors need not be sorted. The small build sorts them always.
const SHORTCUTS: bool = cfg!(feature = "fast");

/// Fills slots in the order of the header and proves as much as that order allows.
struct Fill<'h, 's> {
    slots: &'s mut [Slot],
    used: u32,
    /// Of the last tensor.
    end: u64,
    /// So far each tensor begins where the one before it ended.
    tiled: bool,
    last: JsonStr<'h>,
    /// So far each name is greater than the one before it.
    ascending: bool,
    /// More slots than tensors, if inner objects want them.
    needed: u32,
    rereading: Rereading,
}

impl<'h> Sink<'h> for Fill<'h, '_> {
    #[inline]
    fn tensor(&mut self, key: JsonStr<'h>, key_at: u32, form: Option<&Form>) {
        if SHORTCUTS && self.ascending {
            self.ascending = self.used == 0 || self.last < key;
            self.last = key;
        }
        if let Some(slot) = self.slots.get_mut(widen(self.used)) {
            slot.put_key(key, key_at);
            slot.link = self.used;
            slot.order = self.used.wrapping_add(1);
            if let Some(form) = form {
                slot.begin = form.begin;
                slot.end = form.end;
                slot.shape_at = form.shape_at;
                slot.dtype = form.dtype;
            }
        }
        if SHORTCUTS && let Some(form) = form {
            self.tiled &= form.begin == self.end;
            self.end = form.end;
        }
        self.used = self.used.wrapping_add(1);
    }

    fn scratch(&mut self) -> &mut [Slot] {
        self.slots.get_mut(widen(self.used)..).unwrap_or_default()
    }

    fn may_reread(&mut self, bytes: u64) -> bool {
        self.rereading.take(bytes)
    }

    fn lacks_scratch(&mut self, slots: u32) {
        self.needed = self.needed.max(self.used.wrapping_add(slots));
    }
}

/// R5.gap and R5.overlap over slots in any order: links them in data order and gives the numbers of the first and the
/// last one, and whether somebody chose them so that they crowd a table.
#[cfg_attr(feature = "fast", inline(never))]
fn tile(text: &[u8], slots: &mut [Slot], verdict: &mut Verdict) -> (u32, u32, bool) {
    #[cfg(not(feature = "fast"))]
    let crowded = false;
    #[cfg(feature = "fast")]
    let crowded = {
        let mut effort = chain::effort(slots.len());
        if let Some((first, last)) = chain::link(slots, &mut effort) {
            return (first, last, false);
        }
        effort == 0
    };
    sort::slots(slots, By::Offset);
    let number = |slots: &[Slot], place: usize| slots.get(place).map_or(0, |place| place.link);
    let (first, mut last, mut expected, mut whole) = (number(slots, 0), 0, 0, true);
    for place in 0..slots.len() {
        let this = number(slots, place);
        if let Some(before) = slots.get_mut(widen(last)) {
            before.order = this;
        }
        let Some(slot) = slots.get(widen(this)) else { break };
        // The first break is the one that counts.
        if slot.begin != expected && whole {
            whole = false;
            let crack = Crack { expected, found: slot.begin };
            crack.record(text, slot.name_at.wrapping_sub(1), verdict);
        }
        (last, expected) = (this, slot.end);
    }
    if SHORTCUTS {
        // As before, for names that are in order.
        sort::link_to_themselves(slots);
    }
    (first, last, crowded)
}
