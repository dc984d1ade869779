//! What a scan of the header hands on, and the rules that hold between tensors.

use crate::error::ErrorKind;
use crate::json::JsonStr;
use crate::tensor::entry::{Form, Members};
use crate::tensor::frame::Frame;
use crate::tensor::slot::Slot;
use crate::tensor::verdict::Verdict;

/// Where the scan leaves what it finds.
pub(crate) trait Sink<'h> {
    /// A tensor's key; its form if no rule of R4 is broken.
    fn tensor(&mut self, key: JsonStr<'h>, key_at: u32, form: Option<&Form>);

    /// Slots that are free for the time being.
    fn scratch(&mut self) -> &mut [Slot];

    /// Whether so many bytes may be read again, for want of slots. Who says yes lets fewer follow.
    fn may_reread(&mut self, bytes: u64) -> bool;

    /// An inner object could not be judged without `slots` free slots.
    fn lacks_scratch(&mut self, slots: u32);
}

/// How many bytes may still be read again.
pub(crate) struct Rereading(pub(crate) u64);

impl Rereading {
    /// Takes so many, if they are left.
    pub(crate) fn take(&mut self, bytes: u64) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

/// What a scanned header has beside its tensors.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outline {
    /// The places of the key `__metadata__` and of its value.
    pub(crate) metadata: Option<(u32, u32)>,
    /// The place behind the closing brace.
    pub(crate) padding_at: u32,
}

/// A tensor that does not begin where the one before it ended.
pub(crate) struct Crack {
    pub(crate) expected: u64,
    pub(crate) found: u64,
}

impl Crack {
    /// R5.gap or R5.overlap for the tensor of that key, whose entry has been scanned before.
    #[cold]
    pub(crate) fn record(&self, text: &[u8], key_at: u32, verdict: &mut Verdict) {
        let Self { expected, found } = *self;
        let Some(member) = Members::from_key(text, key_at).next() else { return };
        let mut fields = Members::new(text, member.value_at);
        let Some(offsets) = fields.find(|field| field.key.is(b"data_offsets")) else { return };
        verdict.about(key_at, member.key);
        let kind = if found > expected {
            ErrorKind::Gap { expected, found }
        } else {
            ErrorKind::Overlap { expected, found }
        };
        verdict.record(kind, offsets.value_at);
    }
}

/// R5.past_end and R5.surplus: the last tensor, of that name, ends at `expected`.
pub(crate) fn close(frame: &Frame, expected: u64, name: (u32, u32), verdict: &mut Verdict) {
    let (data_begin, found) = (frame.data_begin(), frame.data_len().value());
    let (kind, end) = if expected > found {
        verdict.name = name;
        (ErrorKind::DataShort { expected, found }, found)
    } else if expected < found {
        verdict.name = (0, 0);
        (ErrorKind::Surplus { expected, found }, expected)
    } else {
        return;
    };
    verdict.record_in_file(kind, data_begin.wrapping_add(end));
}
