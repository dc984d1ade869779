//! An entry spelled as one before it (any order of fields, any white space) is read at one go; anything else is left to
//! the general way, from which the next pattern is learned.
//!
//! What stands between the values of an entry in which no rule is broken is a pattern: where the same bytes stand between
//! a dtype, integers and integers, the same entry stands but for its values, and every rule of R4 can be kept. What does
//! not fit is not an error here. Tests hold the ways against each other.

use crate::dtype::{Dtype, DtypeSet};
use crate::error::Field;
use crate::json::Scan;
use crate::span::{narrow, widen};
use crate::tensor::entry::Form;
use crate::tensor::spelled::{LastEnd, integer};

/// The pattern that was learned last.
#[derive(Default)]
pub(crate) struct Patterns {
    last: Option<Pattern>,
    last_end: LastEnd,
    /// Served entries, less what patterns cost to learn; see [`LESSON`].
    credit: u32,
    lessons: u32,
}

#[derive(Clone, Copy)]
struct Pattern {
    fields: [Field; 3],
    /// What stands before each value, and behind the last one up to the closing brace.
    glue: [Glue; 4],
    comma: Glue,
    /// What stands behind the closing brace, up to the opening quote of the next key.
    next: Glue,
    /// How far the opening bracket of the shape stands before the first element.
    bracket: u32,
}

/// A text to compare with, up to 64 bytes.
#[derive(Clone, Copy, Default)]
struct Glue {
    /// Sixteen bytes each, and a mask over those that count.
    words: [(u128, u128); 4],
    /// How many of the words are used.
    used: usize,
    len: usize,
}

impl Patterns {
    /// Reads an entry at the start of `rest`, which stands at the place `at` of the header, right behind a key's quote.
    #[inline(never)]
    pub(crate) fn entry<'h>(
        &mut self,
        rest: &'h [u8],
        at: u32,
        allowed: DtypeSet,
    ) -> Option<(Form, &'h [u8])> {
        let Self { last: Some(pattern), last_end, .. } = self else { return None };
        let found = pattern.entry(rest, at, allowed, last_end)?;
        self.credit = self.credit.wrapping_add(1);
        Some(found)
    }

    /// How far the next key is, if `rest`, right behind an entry, goes on as the pattern does.
    #[inline]
    pub(crate) fn next(&self, rest: &[u8]) -> Option<usize> {
        let next = &self.last.as_ref()?.next;
        let behind_quote = next.strip(rest)?;
        rest.len().checked_sub(behind_quote.len())?.checked_sub(1)
    }

    /// Learns from an entry in which no rule is broken: of `rest`, from the colon behind its key, the first `len` bytes.
    #[inline(never)]
    pub(crate) fn learn(&mut self, rest: &[u8], len: usize) {
        if len < LESSON_BYTES_MAX && (self.credit >= LESSON || self.lessons < LESSONS_FREE) {
            self.lessons = self.lessons.saturating_add(1);
            self.credit = self.credit.saturating_sub(LESSON);
            if let Some(pattern) = Pattern::of(rest, len) {
                self.last = Some(pattern);
            }
        }
    }
}

/// How many entries a pattern has to serve before the next one is learned: who spells no two entries alike is not followed.
const LESSON: u32 = 8;

/// How many patterns are learned all the same.
const LESSONS_FREE: u32 = 16;

/// The longest entry from which a pattern is learned.
const LESSON_BYTES_MAX: usize = 1024;

impl Pattern {
    #[inline(always)]
    fn entry<'h>(
        &self,
        rest: &'h [u8],
        at: u32,
        allowed: DtypeSet,
        last: &mut LastEnd,
    ) -> Option<(Form, &'h [u8])> {
        let whole = rest.len();
        let mut form = Form { dtype: Dtype::Bool, shape_at: 0, begin: 0, end: 0 };
        let mut elements = 1_u64;
        let mut rest = rest;
        let [glue @ .., close] = &self.glue;
        for (field, glue) in self.fields.iter().zip(glue) {
            let value = glue.strip(rest)?;
            match field {
                Field::Dtype => (form.dtype, rest) = Dtype::before_quote(value)?,
                Field::Shape => {
                    let first = narrow(whole.wrapping_sub(value.len()));
                    form.shape_at = at.wrapping_add(first).wrapping_sub(self.bracket);
                    (elements, rest) = self.shape(value)?;
                }
                Field::DataOffsets => {
                    let begin = last.again(value).or_else(|| integer(value))?;
                    let digits = self.comma.strip(begin.1)?;
                    let end = integer(digits)?;
                    last.remember(digits, digits.len().wrapping_sub(end.1.len()), end.0);
                    (form.begin, form.end, rest) = (begin.0, end.0, end.1);
                }
            }
        }
        let rest = close.strip(rest)?;
        form.keeps_the_rules(elements, allowed).then_some((form, rest))
    }

    /// The number of elements, and what stands behind the last one.
    #[inline(always)]
    fn shape<'a>(&self, rest: &'a [u8]) -> Option<(u64, &'a [u8])> {
        if let Some(b']') = rest.first() {
            return Some((1, rest));
        }
        let (mut elements, mut rest) = integer(rest)?;
        while let Some(next) = self.comma.strip(rest) {
            let (dim, tail) = integer(next)?;
            elements = elements.checked_mul(dim)?;
            rest = tail;
        }
        Some((elements, rest))
    }

    /// The pattern of an entry in which no rule is broken, and of the way to the next key.
    fn of(text: &[u8], len: usize) -> Option<Self> {
        let mut scan = Scan::new(text, 0);
        let mut pattern = Self {
            fields: [Field::Dtype; 3],
            glue: Default::default(),
            comma: Glue::default(),
            next: Glue::default(),
            bracket: 0,
        };
        let glue = |from: u32, to: u32| Glue::new(text.get(widen(from)..widen(to)).unwrap_or_default());
        let mut from = 0;
        scan.colon();
        scan.open(true);
        let [glues @ .., close] = &mut pattern.glue;
        for (field, before) in pattern.fields.iter_mut().zip(glues) {
            if !scan.goes_on() {
                return None;
            }
            scan.key();
            let open = scan.at();
            if scan.string.is(b"dtype") {
                *field = Field::Dtype;
                *before = glue(from, open.wrapping_add(1))?;
                scan.token();
                from = scan.at().wrapping_sub(1);
                continue;
            }
            *field = if scan.string.is(b"shape") { Field::Shape } else { Field::DataOffsets };
            scan.open(false);
            *before = glue(from, scan.at())?;
            if let Field::Shape = field {
                pattern.bracket = scan.at().wrapping_sub(open);
            }
            from = 0;
            while scan.goes_on() {
                if from > 0 {
                    pattern.comma = glue(from, scan.at())?;
                }
                scan.token();
                from = scan.at();
            }
            if from == 0 {
                return None;
            }
        }
        if scan.goes_on() || widen(scan.at()) != len {
            return None;
        }
        *close = glue(from, scan.at())?;
        from = scan.at();
        scan.white_space();
        if !scan.take(b',') {
            return None;
        }
        scan.white_space();
        let more = scan.take(b'"');
        pattern.next = glue(from, scan.at())?;
        more.then_some(pattern)
    }
}

impl Glue {
    /// `None` if the text is too long.
    fn new(text: &[u8]) -> Option<Self> {
        let mut glue = Self { len: text.len(), ..Self::default() };
        for chunk in text.chunks(16) {
            let mut pair = [[0; 16]; 2];
            let [word, mask] = &mut pair;
            for ((byte, mask), &from) in word.iter_mut().zip(mask).zip(chunk) {
                (*byte, *mask) = (from, 0xFF);
            }
            let [word, mask] = pair.map(u128::from_le_bytes);
            *glue.words.get_mut(glue.used)? = (word, mask);
            glue.used = glue.used.wrapping_add(1);
        }
        Some(glue)
    }

    /// What follows this text, if `rest` begins with it and is longer by a word.
    #[inline(always)]
    fn strip<'a>(&self, rest: &'a [u8]) -> Option<&'a [u8]> {
        let mut ahead = rest;
        let mut differ = 0;
        for (word, mask) in self.words.get(..self.used)? {
            let (chunk, tail) = ahead.split_first_chunk::<16>()?;
            differ |= u128::from_le_bytes(*chunk) & mask ^ word;
            ahead = tail;
        }
        if differ == 0 { rest.get(self.len..) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::string::String;

    /// Behind a name: an entry in a spelling, up to its closing brace.
    fn entry(spelling: &str, shape: &str, begin: u64, end: u64) -> String {
        let comma = if spelling.contains("[§]") { "," } else { " ,\n" };
        let shape = shape.replace(',', comma);
        spelling.replace('$', &shape).replace('§', &std::format!("{begin}{comma}{end}"))
    }

    fn learn(patterns: &mut Patterns, text: &str, next: &str) {
        patterns.learn(std::format!("{text}{next}").as_bytes(), text.len());
    }

    /// What a pattern makes of an entry, and how many bytes it leaves.
    fn read(patterns: &mut Patterns, text: &str, behind: &str) -> Option<(Form, usize)> {
        let text = std::format!("{text}{behind}");
        patterns.entry(text.as_bytes(), 1_000, DtypeSet::ALL).map(|(form, rest)| (form, rest.len()))
    }

    const BEHIND: &str = ",\"next\":{\"dtype\":\"F32\",\"shape\":[]}   ";

    const SPELLINGS: [&str; 4] = [
        r#": {"dtype": "F32", "shape": [$], "data_offsets": [§]}"#,
        r#":{"data_offsets":[§],"dtype":"F32","shape":[$]}"#,
        ": {\n\t\"shape\" :[ $ ] , \"data_offsets\" : [\r\n§ ],\"dtype\":\"F32\"\n}",
        // Three words between the first two values.
        r#":{"dtype":"F32"                       ,"shape":[$],"data_offsets":[ § ]}"#,
    ];

    #[test]
    fn entries_spelled_as_the_one_before_are_read() {
        for spelling in SPELLINGS {
            let mut patterns = Patterns::default();
            assert!(read(&mut patterns, &entry(spelling, "2,3", 0, 24), BEHIND).is_none());
            learn(&mut patterns, &entry(spelling, "2,3", 0, 24), BEHIND);
            for (shape, elements) in [("6", 6), ("2,4", 8), ("1,2,1,10", 20), ("0,5", 0), ("123456", 123_456)]
            {
                let (begin, end) = (24, 24 + 4 * elements);
                let text = entry(spelling, shape, begin, end);
                let (form, left) = read(&mut patterns, &text, BEHIND).expect(spelling);
                let shape_at =
                    1_000 + text.find("\"shape\"").map_or(0, |at| at + text[at..].find('[').unwrap());
                assert_eq!((form.dtype, form.begin, form.end), (Dtype::F32, begin, end));
                assert_eq!((widen(form.shape_at), left), (shape_at, BEHIND.len()), "{text}");
                // An element more, of which there is no place; and a byte that the pattern does not have.
                assert!(read(&mut patterns, &entry(spelling, shape, begin, end + 4), BEHIND).is_none());
                for place in text.match_indices(['{', ':', '[', ']', '}']).map(|(place, _)| place) {
                    let mut odd = text.clone();
                    odd.insert(place, '\t');
                    assert!(read(&mut patterns, &odd, BEHIND).is_none(), "{odd}");
                }
            }
        }
        // Where no white space belongs into the brackets, a shape may have no dimensions.
        let mut patterns = Patterns::default();
        learn(&mut patterns, &entry(SPELLINGS[1], "2,3", 0, 24), BEHIND);
        let (form, _) = read(&mut patterns, &entry(SPELLINGS[1], "", 24, 28), BEHIND).unwrap();
        assert_eq!((form.begin, form.end), (24, 28));
    }

    #[test]
    fn the_way_to_the_next_key_is_part_of_the_pattern() {
        for next in [",\"", ", \"", "\n,\n  \""] {
            let mut patterns = Patterns::default();
            assert_eq!(patterns.next(BEHIND.as_bytes()), None);
            learn(&mut patterns, &entry(SPELLINGS[0], "2", 0, 8), &std::format!("{next}b"));
            let distance =
                |behind: &str| patterns.next(std::format!("{behind}name\": and sixteen").as_bytes());
            assert_eq!(distance(next), Some(next.len() - 1));
            assert_eq!(distance(&next.replace(',', " ,")), None);
            assert_eq!(distance(&next.replace(',', "}")), None);
        }
    }

    /// The last entry, shapes without dimensions, and entries that are too long or of which a piece is, teach nothing.
    #[test]
    fn some_entries_teach_nothing() {
        let good = entry(SPELLINGS[0], "2", 0, 8);
        let long = |blanks: usize| good.replace(", \"shape", &std::format!(",{}\"shape", " ".repeat(blanks)));
        let longest = long(64 - "\", \"shape\": [".len() + 1);
        for (text, next, learned) in [
            (&good, ",\"b", true),
            (&good, "}", false),
            (&good, ",b", false),
            (&entry(SPELLINGS[0], "", 0, 4), ",\"b", false),
            (&longest, ",\"b", true),
            (&longest.replace(",  ", ",   "), ",\"b", false),
        ] {
            let mut patterns = Patterns::default();
            learn(&mut patterns, text, next);
            assert_eq!(patterns.last.is_some(), learned, "{text}{next}");
        }
        for (len, learned) in [(1_023, true), (1_024, false)] {
            let text = entry(SPELLINGS[1], &"1".repeat(len - entry(SPELLINGS[1], "", 0, 8).len()), 0, 8);
            let mut patterns = Patterns::default();
            learn(&mut patterns, &text, ",\"b");
            assert_eq!((text.len(), patterns.last.is_some()), (len, learned));
        }
        // A part of an entry is none.
        for len in [good.len() - 1, good.len() + 1] {
            let mut patterns = Patterns::default();
            patterns.learn(std::format!("{good},\"b").as_bytes(), len);
            assert!(patterns.last.is_none(), "{len}");
        }
    }

    /// Who spells no two entries alike teaches sixteen patterns; then a pattern serves eight before the next is learned.
    #[test]
    fn patterns_pay_for_the_next() {
        let spelling = |number: usize| SPELLINGS[0].replace('{', &std::format!("{}{{", " ".repeat(number)));
        let knows = |patterns: &mut Patterns, number| {
            read(patterns, &entry(&spelling(number), "2", 8, 16), BEHIND).is_some()
        };
        let mut patterns = Patterns::default();
        for number in 0..17 {
            learn(&mut patterns, &entry(&spelling(number), "2", 0, 8), BEHIND);
        }
        assert!(!knows(&mut patterns, 16));
        for served in 0..8 {
            learn(&mut patterns, &entry(&spelling(16), "2", 0, 8), BEHIND);
            assert!(knows(&mut patterns, 15), "{served}");
        }
        for number in [16, 17] {
            learn(&mut patterns, &entry(&spelling(number), "2", 0, 8), BEHIND);
        }
        assert!(!knows(&mut patterns, 17) && knows(&mut patterns, 16));
    }
}
