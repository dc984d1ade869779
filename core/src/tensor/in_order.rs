//! A header whose tensors stand in offset order is judged without any memory, and read by scanning it again.

use crate::error::{Error, ErrorKind};
use crate::json::JsonStr;
use crate::limits::{NAME_RUNS_MAX, REREAD_BYTES_MAX};
use crate::span::{Span, narrow, widen};
use crate::tensor::entry::{Entry, Form, Member, Members, Shape};
use crate::tensor::header::Header;
use crate::tensor::index::Metadata;
use crate::tensor::judge::{self, Crack, Outline, Rereading, Sink};
use crate::tensor::pairs;
use crate::tensor::slot::Slot;
use crate::tensor::verdict::{Blamed, Verdict, name_span};

/// A header in which no rule is broken, its tensors in offset order, without an index.
///
/// ```
/// use safestep_core::{Frame, Limits};
/// let file = b"\x08\0\0\0\0\0\0\0{}      ";
/// let frame = Frame::read(file, 16, Limits::default())?;
/// let judged = frame.header(&file[8..])?.judge()?;
/// assert!(judged.is_empty() && judged.get("w").is_none());
/// # Ok::<(), safestep_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Judged<'h> {
    header: Header<'h>,
    outline: Outline,
    tensors: u32,
}

impl<'h> Judged<'h> {
    /// The number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        widen(self.tensors)
    }

    /// Whether there are no tensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tensors == 0
    }

    /// The tensor of that name, found by scanning the header: O(its length).
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Entry<'h>> {
        self.iter().find(|entry| entry.name() == name)
    }

    /// All tensors in data order, which is that of the header.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'h>> + use<'h> {
        let text = self.header.text();
        Members::new(text, 0).filter_map(move |member| entry_of(text, member))
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
}

/// The entry of a member that has been judged before; `None` for the metadata.
fn entry_of<'h>(text: &'h [u8], member: Member<'h>) -> Option<Entry<'h>> {
    let form = member.form_again(text)?;
    Some(Entry {
        name: member.key,
        dtype: form.dtype,
        shape: Shape::new(text.get(widen(form.shape_at)..).unwrap_or_default()),
        span: Span::proven(form.begin, form.end),
    })
}

impl<'h> Header<'h> {
    /// Judges it without slots: all rules, no memory.
    ///
    /// # Errors
    /// The first broken rule, R2.start to R5.surplus; or [`ErrorKind::SlotsNeeded`] for a header whose tensors stand
    /// in no order that helps: offsets that do not ascend, or names in more than
    /// [`NAME_RUNS_MAX`](crate::limits::NAME_RUNS_MAX) ascending runs, and so many (or so many unsorted keys of metadata)
    /// that comparing them pair by pair takes more than [`REREAD_BYTES_MAX`](crate::limits::REREAD_BYTES_MAX).
    /// The reference writer leaves neither.
    pub fn judge(&self) -> Result<Judged<'h>, Error> {
        judge(*self)
    }
}

/// Judges by all rules; see [`Header::judge`].
fn judge(header: Header<'_>) -> Result<Judged<'_>, Error> {
    let mut verdict = Verdict::new(header.frame().allowed());
    let mut walk = Walk::new();
    let outline = header.scan(&mut verdict, &mut walk);
    if !verdict.is_formed() {
        verdict.settle()?;
    }
    if walk.needed > 0 {
        return Err(walk.slots_needed());
    }
    if walk.runs > NAME_RUNS_MAX {
        if !walk.may_reread(pairs::reread_bytes(walk.tensors, narrow(header.text().len()))) {
            return Err(walk.slots_needed());
        }
        pairs::compare(Members::new(header.text(), 0), Blamed::Key, &mut verdict);
    } else if let Some(starts) = walk.starts.get(..walk.runs).filter(|starts| starts.len() > 1) {
        pairs::merge_runs(header.text(), starts, &mut verdict);
    }
    verdict.settle()?;
    if !walk.sorted {
        return Err(walk.slots_needed());
    }
    if let Some((crack, key_at)) = walk.crack {
        crack.record(header.text(), key_at, &mut verdict);
    }
    judge::close(header.frame(), walk.last_span.1, name_span(walk.last_at, walk.last_name), &mut verdict);
    verdict.settle()?;
    Ok(Judged { header, outline, tensors: walk.tensors })
}

/// What can be known of tensors that pass by once.
struct Walk<'h> {
    tensors: u32,
    /// The tensor before, by (begin, end).
    last_span: (u64, u64),
    /// So far tensors came by (begin, end).
    sorted: bool,
    /// The first tensor that does not begin where the one before it ended.
    crack: Option<(Crack, u32)>,
    last_name: JsonStr<'h>,
    last_at: u32,
    /// Where ascending runs of names begin; their number may be greater.
    starts: [u32; NAME_RUNS_MAX],
    runs: usize,
    /// The slots that an inner object would want.
    needed: u32,
    rereading: Rereading,
}

impl Walk<'_> {
    fn new() -> Self {
        Self {
            tensors: 0,
            last_span: (0, 0),
            sorted: true,
            crack: None,
            last_name: JsonStr::new(b""),
            last_at: 0,
            starts: [0; NAME_RUNS_MAX],
            runs: 0,
            needed: 0,
            rereading: Rereading(REREAD_BYTES_MAX),
        }
    }

    fn slots_needed(&self) -> Error {
        Error::new(ErrorKind::SlotsNeeded { needed: u64::from(self.tensors.max(self.needed)) }, 0)
    }
}

impl<'h> Sink<'h> for Walk<'h> {
    fn tensor(&mut self, key: JsonStr<'h>, key_at: u32, form: Option<&Form>) {
        if self.runs == 0 || self.last_name >= key {
            if let Some(start) = self.starts.get_mut(self.runs) {
                *start = key_at;
            }
            self.runs = self.runs.saturating_add(1);
        }
        self.last_name = key;
        self.last_at = key_at;
        self.tensors = self.tensors.wrapping_add(1);
        let Some(form) = form else { return };
        let span = (form.begin, form.end);
        self.sorted &= self.last_span <= span;
        if self.crack.is_none() && form.begin != self.last_span.1 {
            self.crack = Some((Crack { expected: self.last_span.1, found: form.begin }, key_at));
        }
        self.last_span = span;
    }

    fn scratch(&mut self) -> &mut [Slot] {
        Default::default()
    }

    fn may_reread(&mut self, bytes: u64) -> bool {
        self.rereading.take(bytes)
    }

    fn lacks_scratch(&mut self, slots: u32) {
        self.needed = self.needed.max(self.tensors.saturating_add(slots));
    }
}
