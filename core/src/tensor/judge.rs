//! What a scan of the header hands on, and the rules that hold between tensors.

use crate::error::{Error, ErrorKind};
use crate::json::JsonStr;
use crate::span::narrow;
use crate::tensor::entry::{Form, Members};
use crate::tensor::frame::in_file;
use crate::tensor::slot::Slot;

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
        let member = Members::from_key(text, key_at).next();
        let Some(member) = member else { return Error::new(kind, in_file(key_at)) };
        let mut fields = Members::new(text, member.value_at);
        let at = fields.find(|field| field.key.is(b"data_offsets")).map_or(key_at, |field| field.value_at);
        let begin = key_at.wrapping_add(1);
        Error::new(kind, in_file(at))
            .named((begin, begin.wrapping_add(narrow(member.key.as_spelled().len()))))
    }
}
