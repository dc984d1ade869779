//! A history file becomes its canonical entries, one a step, in ascending order, in constant memory.
//!
//! The file is read twice. The first time the core notes where the run went on and up to which step each stretch counts:
//! three numbers for each resume that superseded something, none for a line. The second time each entry asks its stretch.
//! What is appended meanwhile is not seen; a last line that is not whole yet is left out and told of. If a trainer cuts such a
//! line off meanwhile, reading it is an error: read once more.

use std::path::Path;

use safestep_core::history::{Canon, Entry, Line, Loss, NonFinite, Stretch};

use super::records::{Form, Record, Records, form_of};
use crate::error::{Cause, Error};
use crate::read_at::FileReader;

/// The canonical history of a run.
#[derive(Debug)]
pub struct Canonical {
    file: FileReader,
    form: Form,
    stretches: Vec<Stretch>,
    summary: Summary,
    /// What breaks a rule is passed over.
    lenient: bool,
}

/// What stands in the file, superseded entries included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The entries.
    pub entries: u64,
    /// The marks of resumes.
    pub resumes: u64,
    /// Where a last line begins that is not whole.
    pub cut_at: Option<u64>,
    /// What broke a rule and was passed over.
    pub bad: u64,
}

impl Canonical {
    /// Reads a history once.
    ///
    /// # Errors
    /// [`Cause::Line`] with the first line that breaks a rule; [`Cause::Form`] for an array that has no end, or no end
    /// where it should; otherwise as [`FileReader::open`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::read(path, None)
    }

    /// The same of a history of which a part may be bad: each line that breaks a rule is told and passed over, here and when
    /// the entries are read. Of an array that breaks one as a whole, what stands before the place counts.
    ///
    /// # Errors
    /// As [`FileReader::open`].
    pub fn open_leniently(path: &Path, told: &mut dyn FnMut(&Error)) -> Result<Self, Error> {
        Self::read(path, Some(told))
    }

    fn read(path: &Path, mut told: Option<&mut dyn FnMut(&Error)>) -> Result<Self, Error> {
        let lenient = told.is_some();
        let file = FileReader::open(path)?;
        let form = form_of(&file)?;
        let (mut canon, mut stretches, mut summary) = (Canon::default(), Vec::new(), Summary::default());
        let mut pass_over = |error: Error| {
            let told = told.as_mut().filter(|_| is_bad(&error));
            told.map(|told| told(&error)).ok_or(error)
        };
        let mut records = Records::of(&file, form);
        loop {
            let record = match records.next() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) => {
                    pass_over(error)?;
                    summary.bad += 1;
                    break;
                }
            };
            let line = match Line::parse(record.text) {
                Ok(line) => line,
                Err(_) if record.is_last_without_end => {
                    summary.cut_at = Some(record.at);
                    continue;
                }
                Err(error) => {
                    pass_over(bad(path, &record, error))?;
                    summary.bad += 1;
                    continue;
                }
            };
            match line {
                Line::Entry(_) => summary.entries += 1,
                Line::Resume(_) => summary.resumes += 1,
            }
            while canon.add(&mut stretches, &line, record.at).is_err() {
                stretches.resize(stretches.len() * 2 + 4, Stretch::default());
            }
        }
        stretches.truncate(canon.len());
        Ok(Self { file, form, stretches, summary, lenient })
    }

    /// What stands in the file.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// The first step.
    pub fn first_step(&self) -> Option<u64> {
        self.stretches.first().map(Stretch::first)
    }

    /// The last step: found by reading the entries.
    ///
    /// # Errors
    /// As [`Entries::next`].
    pub fn last_step(&self) -> Result<Option<u64>, Error> {
        let (mut entries, mut last) = (self.entries(), None);
        while let Some(entry) = entries.next()? {
            last = Some(entry.step());
        }
        Ok(last)
    }

    /// The entries, read anew.
    pub fn entries(&self) -> Entries<'_> {
        let records = Records::of(&self.file, self.form);
        Entries { records, stretches: &self.stretches, file: &self.file, lenient: self.lenient }
    }
}

/// Canonical entries that are still to come.
#[derive(Debug)]
pub struct Entries<'c> {
    records: Records<'c>,
    /// From the one that counts at present on.
    stretches: &'c [Stretch],
    file: &'c FileReader,
    lenient: bool,
}

impl Entries<'_> {
    /// The next entry, by step.
    ///
    /// # Errors
    /// As [`Canonical::open`], if the file was changed since.
    #[expect(clippy::should_implement_trait, reason = "an entry is lent until the next one is read")]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, Error> {
        while let Some(is_canonical) = self.advance()? {
            if is_canonical {
                // Parsed again: what is lent cannot be let go of on the way round.
                return Ok(entry_of(self.records.text()));
            }
        }
        Ok(None)
    }

    /// Goes to the next record, and says whether it is a canonical entry.
    fn advance(&mut self) -> Result<Option<bool>, Error> {
        let record = match self.records.next() {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(None),
            Err(error) if self.lenient && is_bad(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let line = match Line::parse(record.text) {
            Ok(line) => line,
            Err(_) if record.is_last_without_end => return Ok(None),
            Err(_) if self.lenient => return Ok(Some(false)),
            Err(error) => return Err(bad(self.file.path(), &record, error)),
        };
        while let [_, next, ..] = self.stretches
            && next.begin() <= record.at
        {
            self.stretches = self.stretches.get(1..).unwrap_or_default();
        }
        let stretch = self.stretches.first().filter(|stretch| stretch.begin() <= record.at);
        Ok(Some(
            matches!((stretch, line), (Some(stretch), Line::Entry(entry)) if stretch.keeps(entry.step())),
        ))
    }
}

fn entry_of(text: &[u8]) -> Option<Entry<'_>> {
    match Line::parse(text) {
        Ok(Line::Entry(entry)) => Some(entry),
        _ => None,
    }
}

/// A loss as a float: the nearest one to its digits.
pub fn loss_value(loss: Loss<'_>) -> f64 {
    match loss {
        Loss::Number(digits) => digits.parse().unwrap_or(f64::NAN),
        Loss::NonFinite(NonFinite::NaN) => f64::NAN,
        Loss::NonFinite(NonFinite::Infinity) => f64::INFINITY,
        Loss::NonFinite(NonFinite::NegativeInfinity) => f64::NEG_INFINITY,
    }
}

/// Whether it is the content that breaks a rule.
fn is_bad(error: &Error) -> bool {
    matches!(error.because(), Cause::Line { .. } | Cause::Form(_))
}

fn bad(path: &Path, record: &Record<'_>, error: safestep_core::history::LineError) -> Error {
    let (number, at) = (record.number, record.at);
    Error::new("accept", path, Cause::Line { number, at, error })
}
