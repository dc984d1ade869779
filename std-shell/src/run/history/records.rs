//! A history file becomes its records one by one: lines, or the elements of one array. Memory: a block and a record.

use safestep_core::limits::LOSS_LINE_BYTES_MAX;

use super::BLOCK_BYTES;
use crate::error::{Cause, Error};
use crate::read_at::{FileReader, ReadAt as _};

/// How records are set apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A newline behind each; the last may lack it.
    Lines,
    /// One JSON array.
    Array,
}

/// A record as it stands in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'r> {
    pub(super) text: &'r [u8],
    /// Where it begins.
    pub(super) at: u64,
    /// Which it is, from 1 on; of lines, blank ones are counted.
    pub(super) number: u64,
    /// Nothing follows it, so it may be a part.
    pub(super) is_last_without_end: bool,
}

/// The form of a file: the first byte that is no white space decides.
pub(super) fn form_of(file: &FileReader) -> Result<Form, Error> {
    let mut block = vec![0; BLOCK_BYTES];
    for begin in (0..file.len_bytes()).step_by(BLOCK_BYTES) {
        let count = usize::try_from(file.len_bytes() - begin).unwrap_or(usize::MAX).min(BLOCK_BYTES);
        let piece = block.get_mut(..count).unwrap_or_default();
        file.read_at(begin, piece)?;
        if let Some(first) = piece.iter().find(|byte| !byte.is_ascii_whitespace()) {
            return Ok(if *first == b'[' { Form::Array } else { Form::Lines });
        }
    }
    Ok(Form::Lines)
}

/// The records that are still to come.
#[derive(Debug)]
pub(super) struct Records<'f> {
    file: &'f FileReader,
    form: Form,
    /// A block of the file and what was left of the one before.
    buffer: Vec<u8>,
    /// What stands before it was given away; it is `at` in the file.
    begin: usize,
    used: usize,
    /// The length of the last record, which stands at its front.
    len: usize,
    at: u64,
    /// How much of the file was read.
    read_to: u64,
    number: u64,
    /// The opening bracket of an array is behind us, or there is none.
    begun: bool,
    ended: bool,
    /// The last record was too long, and its rest is still to come.
    overlong: bool,
}

impl<'f> Records<'f> {
    pub(super) fn of(file: &'f FileReader, form: Form) -> Self {
        let begun = form == Form::Lines;
        Self {
            file,
            form,
            buffer: Vec::new(),
            begin: 0,
            used: 0,
            len: 0,
            at: 0,
            read_to: 0,
            number: 0,
            begun,
            ended: false,
            overlong: false,
        }
    }

    /// The next record; blank lines are passed over.
    pub(super) fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        if !self.begun {
            self.open_bracket()?;
        }
        loop {
            self.give_back();
            if std::mem::take(&mut self.overlong) {
                self.pass_over_the_rest()?;
            }
            if self.ended {
                return Ok(None);
            }
            let (len, end) = match self.form {
                Form::Lines => self.line()?,
                Form::Array => self.element()?,
            };
            self.len = len;
            let Some(separator) = end else {
                self.ended = true;
                return self.last(len);
            };
            self.number += 1;
            // A record that is too long has no separator yet.
            self.used = len + usize::from(!self.overlong);
            self.ended = separator == b']';
            if self.ended {
                self.nothing_behind()?;
            }
            let (at, number) = (self.at, self.number);
            let blank = self.rest().get(..len).unwrap_or_default().trim_ascii().is_empty();
            // An empty array has no element; any other place between commas has one.
            let nothing = blank && (self.form == Form::Lines || self.ended && number == 1);
            if !nothing {
                let text = self.rest().get(..len).unwrap_or_default();
                return Ok(Some(Record { text, at, number, is_last_without_end: false }));
            }
        }
    }

    /// The text of the last record.
    pub(super) fn text(&self) -> &[u8] {
        self.rest().get(..self.len).unwrap_or_default()
    }

    /// What the file ends with, when it does not end as it should.
    fn last(&mut self, len: usize) -> Result<Option<Record<'_>>, Error> {
        if self.form == Form::Array {
            return Err(self.broken("it begins as a JSON array and does not end as one"));
        }
        let text = self.rest().get(..len).unwrap_or_default();
        if text.trim_ascii().is_empty() {
            return Ok(None);
        }
        self.number += 1;
        let text = self.rest().get(..len).unwrap_or_default();
        Ok(Some(Record { text, at: self.at, number: self.number, is_last_without_end: true }))
    }

    fn open_bracket(&mut self) -> Result<(), Error> {
        loop {
            if let Some(place) = self.rest().iter().position(|&byte| byte == b'[') {
                self.used = place + 1;
                self.begun = true;
                return Ok(());
            }
            self.used = self.rest().len();
            self.give_back();
            if !self.read_more()? {
                return Err(self.broken("it was a JSON array a moment ago"));
            }
        }
    }

    /// The length of the line at the front, and its newline; or that of the rest.
    fn line(&mut self) -> Result<(usize, Option<u8>), Error> {
        let mut looked = 0;
        loop {
            let fresh = self.rest().get(looked..).unwrap_or_default();
            if let Some(place) = fresh.iter().position(|&byte| byte == b'\n') {
                return Ok((looked + place, Some(b'\n')));
            }
            looked = self.rest().len();
            // A record that is too long is given away as it is, to be judged so.
            if looked as u64 > LOSS_LINE_BYTES_MAX {
                self.overlong = true;
                return Ok((looked, Some(b'\n')));
            }
            if !self.read_more()? {
                return Ok((looked, None));
            }
        }
    }

    /// The length of the element at the front, and the comma or the bracket behind it.
    fn element(&mut self) -> Result<(usize, Option<u8>), Error> {
        let (mut looked, mut nest) = (0, Nest::default());
        loop {
            let fresh = self.rest().get(looked..).unwrap_or_default();
            if let Some(place) = fresh.iter().position(|&byte| nest.ends_at(byte)) {
                let end = looked + place;
                return Ok((end, self.rest().get(end).copied()));
            }
            looked = self.rest().len();
            if looked as u64 > LOSS_LINE_BYTES_MAX {
                self.overlong = true;
                return Ok((looked, Some(b',')));
            }
            if !self.read_more()? {
                return Ok((looked, None));
            }
        }
    }

    /// The rest of a line that was too long; of an array nobody knows any more where the next element begins.
    fn pass_over_the_rest(&mut self) -> Result<(), Error> {
        if self.form == Form::Array {
            return Err(
                self.broken("an element of the JSON array is too long, and what follows it is not read")
            );
        }
        loop {
            if let Some(place) = self.rest().iter().position(|&byte| byte == b'\n') {
                self.used = place + 1;
                self.give_back();
                return Ok(());
            }
            self.used = self.rest().len();
            self.give_back();
            if !self.read_more()? {
                self.ended = true;
                return Ok(());
            }
        }
    }

    /// Behind the closing bracket there is white space, and no more.
    fn nothing_behind(&mut self) -> Result<(), Error> {
        let mut looked = self.used;
        loop {
            let fresh = self.rest().get(looked..).unwrap_or_default();
            if !fresh.trim_ascii().is_empty() {
                return Err(self.broken("something stands behind the JSON array that it begins with"));
            }
            // White space is not kept.
            self.buffer.truncate(self.begin + looked);
            looked = self.rest().len();
            if !self.read_more()? {
                return Ok(());
            }
        }
    }

    /// Forgets the record that was given away.
    fn give_back(&mut self) {
        let used = std::mem::take(&mut self.used);
        self.begin = self.buffer.len().min(self.begin + used);
        self.at += used as u64;
    }

    /// What was read and not given away.
    fn rest(&self) -> &[u8] {
        self.buffer.get(self.begin..).unwrap_or_default()
    }

    /// Reads a block behind the buffer; false at the end of the file.
    fn read_more(&mut self) -> Result<bool, Error> {
        // Once a block, not once a record: moving the rest would take longer than reading it.
        self.buffer.drain(..std::mem::take(&mut self.begin));
        let begin = self.read_to;
        let count = usize::try_from(self.file.len_bytes() - begin).unwrap_or(usize::MAX).min(BLOCK_BYTES);
        let held = self.buffer.len();
        self.buffer.resize(held + count, 0);
        self.file.read_at(begin, self.buffer.get_mut(held..).unwrap_or_default())?;
        self.read_to += count as u64;
        Ok(count > 0)
    }

    fn broken(&self, what: &'static str) -> Error {
        Error::new("accept", self.file.path(), Cause::Form(what))
    }
}

/// Where in an element of an array we are.
#[derive(Default)]
struct Nest {
    depth: u64,
    in_string: bool,
    escaped: bool,
}

impl Nest {
    /// Takes the next byte; true if it is the comma or the bracket behind the element. What is no JSON comes to some end
    /// too, and is judged then.
    fn ends_at(&mut self, byte: u8) -> bool {
        if self.in_string {
            let ends = byte == b'"' && !self.escaped;
            self.escaped = byte == b'\\' && !self.escaped;
            self.in_string = !ends;
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b',' | b']' if self.depth == 0 => return true,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        false
    }
}
