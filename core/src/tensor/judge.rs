//! Broken rules become the verdict: the one that stands first in the table, and of those the first in the file.

use crate::dtype::DtypeSet;
use crate::error::{Error, ErrorKind};
use crate::json::JsonStr;
use crate::rule::Rule;
use crate::span::narrow;
use crate::tensor::entry::Form;
use crate::tensor::header::in_file;
use crate::tensor::index::Slot;

/// The worst that was found so far.
pub(crate) struct Verdict {
    worst: Option<Error>,
    allowed: DtypeSet,
    /// Between the quotes of the key whose value is being scanned.
    name: (u32, u32),
}

impl Verdict {
    pub(crate) fn new(allowed: DtypeSet) -> Self {
        Self { worst: None, allowed, name: (0, 0) }
    }

    /// The dtypes that the caller allows.
    #[inline]
    pub(crate) fn allowed(&self) -> DtypeSet {
        self.allowed
    }

    /// What follows is about the key whose opening quote stands at this place of the header.
    #[inline]
    pub(crate) fn about(&mut self, key_at: u32, key: JsonStr<'_>) {
        let begin = key_at.wrapping_add(1);
        self.name = (begin, begin.wrapping_add(narrow(key.as_spelled().len())));
    }

    /// Notes a broken rule at this place of the header.
    #[cold]
    pub(crate) fn record(&mut self, kind: ErrorKind, at: u32) {
        self.adopt(Error::new(kind, in_file(at)), false);
    }

    /// The first duplicate, of a verdict that was asked for nothing else.
    pub(crate) fn duplicate(&self) -> Option<Error> {
        self.worst
    }

    /// Takes over a broken rule that another verdict found, under the name that it found or under this one's.
    #[cold]
    pub(crate) fn adopt(&mut self, error: Error, keep_name: bool) {
        let error = if keep_name { error } else { error.named(self.name) };
        let rank = |error: &Error| (Rule::of(error.kind()), error.at());
        if self.worst.is_none_or(|worst| rank(&error) < rank(&worst)) {
            self.worst = Some(error);
        }
    }

    /// The verdict so far.
    ///
    /// # Errors
    /// The first broken rule.
    pub(crate) fn settle(&self) -> Result<(), Error> {
        self.worst.map_or(Ok(()), Err)
    }
}

/// Where the scan leaves what it finds.
pub(crate) trait Sink<'h> {
    /// A tensor's key; its form if no rule of R4 is broken.
    fn tensor(&mut self, key: JsonStr<'h>, key_at: u32, form: Option<&Form>);

    /// Slots that are free for the time being.
    fn scratch(&mut self) -> &mut [Slot];

    /// An inner object could not be judged without `slots` free slots.
    fn lacks_scratch(&mut self, slots: u32);
}

/// What a scanned header has beside its tensors.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outline {
    /// The places of the key `__metadata__` and of its value.
    pub(crate) metadata: Option<(u32, u32)>,
    /// The place behind the closing brace.
    pub(crate) padding_at: u32,
}

/// The rules R5, fed with tensors by (begin, end, place in the header).
#[derive(Clone, Copy)]
pub(crate) struct Tiling {
    expected: u64,
    last: (u32, u32),
}

/// A tensor that does not begin where the one before it ended.
pub(crate) struct Crack {
    pub(crate) expected: u64,
    pub(crate) found: u64,
}

impl Tiling {
    pub(crate) fn new() -> Self {
        Self { expected: 0, last: (0, 0) }
    }

    /// Where the next tensor has to begin.
    #[inline]
    pub(crate) fn expected(&self) -> u64 {
        self.expected
    }

    /// The next tensor begins where it has to; `name` is the span of its name.
    #[inline]
    pub(crate) fn go_on(&mut self, end: u64, name: (u32, u32)) {
        self.expected = end;
        self.last = name;
    }

    /// R5.past_end and R5.surplus, behind the last tensor.
    pub(crate) fn close(&self, data_begin: u64, data_len: u64) -> Result<(), Error> {
        if self.expected > data_len {
            let kind = ErrorKind::DataShort { expected: self.expected, found: data_len };
            return Err(Error::new(kind, data_begin.wrapping_add(data_len)).named(self.last));
        }
        if self.expected < data_len {
            let kind = ErrorKind::Surplus { expected: self.expected, found: data_len };
            return Err(Error::new(kind, data_begin.wrapping_add(self.expected)));
        }
        Ok(())
    }
}

impl Crack {
    /// R5.gap or R5.overlap for the tensor of that key, whose entry has been scanned before.
    #[cold]
    pub(crate) fn error(&self, text: &[u8], key_at: u32) -> Error {
        let kind = if self.found > self.expected {
            ErrorKind::Gap { expected: self.expected, found: self.found }
        } else {
            ErrorKind::Overlap { expected: self.expected, found: self.found }
        };
        let member = crate::tensor::entry::Members::from_key(text, key_at).next();
        let Some(member) = member else { return Error::new(kind, in_file(key_at)) };
        let mut fields = crate::tensor::entry::Members::new(text, member.value_at);
        let at = fields.find(|field| field.key.is(b"data_offsets")).map_or(key_at, |field| field.value_at);
        let begin = key_at.wrapping_add(1);
        Error::new(kind, in_file(at))
            .named((begin, begin.wrapping_add(narrow(member.key.as_spelled().len()))))
    }
}
