//! A line of a loss history becomes an entry or a mark of a resume; many of them, the stretches that are canonical.
//!
//! ```text
//! {"loss":5.54,"step":59}      an entry, and whatever else the trainer adds
//! {"loss":"NaN","step":60}     a loss that is not finite; Python's bare NaN is read too
//! {"resume":50}                the run went on from step 50: entries beyond it that stand before are superseded
//! ```
//!
//! The canonical history has one entry a step, in ascending order. A line that says a step again, or an earlier one,
//! without a mark before it supersedes as one with a mark would: what stands later is what the run went on from.
//! Other members are checked to be JSON and otherwise left alone. No heap, no panic.

mod error;
pub mod canon;

pub use crate::json::NonFinite;
pub use canon::{Canon, Stretch, StretchesTooFew};
pub use error::{Key, LineError, LineErrorKind};

use crate::json::{Kind, Scan, valid_bytes};
use crate::limits::LOSS_LINE_BYTES_MAX;
use crate::span::{count, narrow, widen};
use crate::tensor::writer::{integer, string};

/// A line that keeps the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'l> {
    /// The loss of a step.
    Entry(Entry<'l>),
    /// The run was resumed after this step.
    Resume(u64),
}

/// The loss of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'l> {
    step: u64,
    loss: Loss<'l>,
    text: &'l [u8],
}

/// A loss, as it is spelled: who wants a float chooses how it is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss<'l> {
    /// A JSON number.
    Number(&'l str),
    /// One that JSON does not have.
    NonFinite(NonFinite),
}

/// What a trainer adds to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'v> {
    /// A value as JSON spells it.
    Json(&'v str),
    /// A string as it is.
    Text(&'v str),
}

impl<'l> Line<'l> {
    /// Judges a line, with or without white space around it; a newline is white space.
    ///
    /// ```
    /// use safestep_core::history::{Line, Loss};
    /// let Line::Entry(entry) = Line::parse(br#"{"loss":2.5,"step":7,"lr":1e-3}"#)? else { unreachable!() };
    /// assert_eq!((entry.step(), entry.loss()), (7, Loss::Number("2.5")));
    /// assert_eq!(Line::parse(br#"{"resume":50}"#), Ok(Line::Resume(50)));
    /// # Ok::<(), safestep_core::history::LineError>(())
    /// ```
    ///
    /// # Errors
    /// The first broken rule: form before meaning.
    pub fn parse(text: &'l [u8]) -> Result<Self, LineError> {
        if count(text.len()) > LOSS_LINE_BYTES_MAX {
            return Err(LineError::new(LineErrorKind::Long, narrow(text.len())));
        }
        let mut scan = Scan::new(text, 0);
        let mut fields = Fields::default();
        members(&mut scan, text, |scan, key_at| fields.member(scan, key_at))?;
        fields.line(text)
    }

    /// Hands the line over in pieces, without a newline behind it.
    ///
    /// # Errors
    /// The first error of `sink`, which then gets nothing more.
    pub fn write<E>(&self, mut sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        match self {
            Self::Entry(entry) => write_entry(entry.step, entry.loss, &[], sink),
            Self::Resume(step) => {
                sink(b"{\"resume\":")?;
                integer(*step, &mut sink)?;
                sink(b"}")
            }
        }
    }
}

/// Hands the line of an entry over in pieces, without a newline behind it. `more` is what the trainer adds; whether it
/// makes a good line is for [`Line::parse`] to say.
///
/// # Errors
/// The first error of `sink`, which then gets nothing more.
pub fn write_entry<E>(
    step: u64,
    loss: Loss<'_>,
    more: &[(&str, Value<'_>)],
    mut sink: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    sink(b"{\"loss\":")?;
    match loss {
        Loss::Number(number) => sink(number.as_bytes())?,
        Loss::NonFinite(number) => string(number.word(), &mut sink)?,
    }
    sink(b",\"step\":")?;
    integer(step, &mut sink)?;
    for (name, value) in more {
        sink(b",")?;
        string(name, &mut sink)?;
        sink(b":")?;
        match value {
            Value::Json(spelled) => sink(spelled.as_bytes())?,
            Value::Text(text) => string(text, &mut sink)?,
        }
    }
    sink(b"}")
}

impl<'l> Entry<'l> {
    /// The step.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The loss.
    #[must_use]
    pub fn loss(&self) -> Loss<'l> {
        self.loss
    }

    /// The whole line as it stands in the file, other members included.
    #[must_use]
    pub fn text(&self) -> &'l [u8] {
        self.text
    }
}

/// Scans one object and what may stand around it; `member` consumes the value of each key, which is the last string.
pub(crate) fn members<'l>(
    scan: &mut Scan<'l>,
    text: &'l [u8],
    mut member: impl FnMut(&mut Scan<'l>, u32),
) -> Result<(), LineError> {
    scan.white_space();
    if scan.peek() != Some(b'{') {
        return Err(LineError::new(LineErrorKind::Object { found: scan.peek() }, scan.at()));
    }
    scan.open(true);
    while scan.goes_on() {
        scan.key();
        let key_at = scan.key_at;
        member(scan, key_at);
    }
    scan.white_space();
    if let Some((expected, at)) = scan.stop {
        let found = text.get(widen(at)).copied();
        return Err(LineError::new(LineErrorKind::Json { expected, found }, at));
    }
    if let Some(found) = scan.peek() {
        return Err(LineError::new(LineErrorKind::Trailing { found }, scan.at()));
    }
    let valid = if scan.saw_high_bit() { valid_bytes(text) } else { text.len() };
    match text.get(valid) {
        Some(&found) => Err(LineError::new(LineErrorKind::Utf8 { found }, narrow(valid))),
        None => Ok(()),
    }
}

/// What the members of a line say, and the first thing that is wrong with them.
#[derive(Default)]
struct Fields<'l> {
    loss: Option<Loss<'l>>,
    step: Option<u64>,
    resume: Option<u64>,
    fault: Option<LineError>,
}

impl<'l> Fields<'l> {
    /// Consumes the value of the last key.
    fn member(&mut self, scan: &mut Scan<'l>, key_at: u32) {
        let key = scan.string;
        let Some(key) = Key::ALL.into_iter().find(|known| key.is(known.name().as_bytes())) else {
            return scan.python_value();
        };
        let stood_before = match key {
            Key::Loss => self.loss.is_some(),
            Key::Step => self.step.is_some(),
            Key::Resume => self.resume.is_some(),
        };
        if stood_before {
            self.blame(LineErrorKind::Duplicate { found: key }, key_at);
        }
        match key {
            Key::Loss => self.loss = Some(self.loss_value(scan)),
            Key::Step => self.step = Some(self.step_value(scan, key)),
            Key::Resume => self.resume = Some(self.step_value(scan, key)),
        }
    }

    fn loss_value(&mut self, scan: &mut Scan<'l>) -> Loss<'l> {
        if let Some(number) = scan.word() {
            return Loss::NonFinite(number);
        }
        let (at, depth, start) = (scan.at(), scan.depth, scan.rest);
        let kind = scan.token();
        match kind {
            Kind::Number | Kind::Integer => {
                let len = start.len().wrapping_sub(scan.rest.len());
                let number = start.get(..len).and_then(|number| core::str::from_utf8(number).ok());
                return Loss::Number(number.unwrap_or_default());
            }
            Kind::String => {
                let word = scan.string;
                if let Some(number) =
                    NonFinite::ALL.into_iter().find(|number| word.is(number.word().as_bytes()))
                {
                    return Loss::NonFinite(number);
                }
            }
            _ => scan.python_leave(depth),
        }
        self.blame(LineErrorKind::Value { key: Key::Loss, found: kind }, at);
        Loss::Number("0")
    }

    fn step_value(&mut self, scan: &mut Scan<'l>, key: Key) -> u64 {
        let (at, depth) = (scan.at(), scan.depth);
        let kind = scan.python_token();
        scan.python_leave(depth);
        if kind == Kind::Integer {
            return scan.integer;
        }
        self.blame(LineErrorKind::Value { key, found: kind }, at);
        0
    }

    fn blame(&mut self, kind: LineErrorKind, at: u32) {
        self.fault = self.fault.or(Some(LineError::new(kind, at)));
    }

    /// The line that the members make.
    fn line(self, text: &'l [u8]) -> Result<Line<'l>, LineError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let missing = |expected| Err(LineError::new(LineErrorKind::Missing { expected }, narrow(text.len())));
        match (self.resume, self.loss, self.step) {
            (Some(step), None, None) => Ok(Line::Resume(step)),
            (Some(_), ..) => Err(LineError::new(LineErrorKind::Both, 0)),
            (None, None, _) => missing(Key::Loss),
            (None, _, None) => missing(Key::Step),
            (None, Some(loss), Some(step)) => Ok(Line::Entry(Entry { step, loss, text: text.trim_ascii() })),
        }
    }
}
