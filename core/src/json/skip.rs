//! Values that nobody wants are passed over: every byte is checked, none is kept. The same as [`Scan::leave`] does, for
//! machines on which that would take too long.

use crate::json::{Expected, Scan, is_white_space, words};
use crate::limits::JSON_DEPTH_MAX;

impl Scan<'_> {
    /// Passes over what is left of the containers beyond a depth.
    pub(super) fn skip(&mut self, depth: u32) {
        while self.depth > depth {
            if !self.goes_on() {
                continue;
            }
            loop {
                // A key or a value stands here.
                if self.in_object() {
                    self.key();
                }
                self.scalars();
                self.open_many();
                self.token();
                self.close_many(depth);
                // What is most frequent behind it, when it was no container.
                match self.rest.split_first() {
                    Some((b',', tail)) if !self.opened && self.depth > depth => {
                        self.rest = tail;
                        self.expected = Expected::Key;
                        self.white_space();
                    }
                    _ => break,
                }
            }
        }
    }

    /// Passes over integers and empty containers in an array, each with a comma behind it.
    #[inline]
    pub(crate) fn scalars(&mut self) {
        if self.in_object() {
            return;
        }
        let mut rest = self.rest;
        loop {
            let tail = match rest {
                [b'[', b']', b',', tail @ ..] | [b'{', b'}', b',', tail @ ..]
                    if self.depth < JSON_DEPTH_MAX =>
                {
                    tail
                }
                _ => match words::plain_integer(rest) {
                    Some((_, [b',', tail @ ..])) => tail,
                    _ => break,
                },
            };
            rest = tail;
            if matches!(rest.first(), Some(&byte) if is_white_space(byte)) {
                self.rest = rest;
                self.white_space();
                rest = self.rest;
            }
        }
        self.rest = rest;
    }

    /// Consumes brackets that open arrays by eights, but not the last one.
    #[inline]
    fn open_many(&mut self) {
        while let Some(b"[[[[[[[[[") = self.rest.first_chunk()
            && self.depth < JSON_DEPTH_MAX.saturating_sub(8)
        {
            self.advance(8);
            self.nest.open_arrays(8);
            self.depth = self.depth.wrapping_add(8);
        }
    }

    /// Consumes brackets that close arrays by eights, down to a depth.
    #[inline]
    fn close_many(&mut self, depth: u32) {
        while let Some(b"]]]]]]]]") = self.rest.first_chunk()
            && self.depth >= depth.saturating_add(8)
            && self.nest.in_arrays(8)
        {
            self.advance(8);
            self.nest.close(8);
            self.depth = self.depth.wrapping_sub(8);
            self.opened = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::widen;
    extern crate std;
    use std::format;
    use std::string::String;

    fn inside(arrays: usize, rest: &str) -> String {
        format!("{}{rest}", "[".repeat(arrays))
    }

    /// What a step of a scan in so many arrays leaves: bytes, and depth.
    fn left<'h>(arrays: usize, text: &'h str, step: impl Fn(&mut Scan<'h>)) -> (usize, usize) {
        let mut scan = Scan::new(text.as_bytes(), 0);
        (0..arrays).for_each(|_| scan.open(false));
        step(&mut scan);
        (scan.rest.len(), widen(scan.depth))
    }

    #[test]
    fn scalars_with_a_comma_behind_them_are_passed_over() {
        let deepest = widen(JSON_DEPTH_MAX);
        for (text, passed) in [
            ("1,23,456,7]", "1,23,456,"),
            ("[],{},[],[1]]", "[],{},[],"),
            ("1, 2,\n 3 ,4]", "1, 2,\n "),
            ("[], {},\t[1]]", "[], {},\t"),
            ("-1,2]", ""),
            ("[]]", ""),
            ("true,1]", ""),
        ] {
            for arrays in [1, deepest - 1] {
                let found = left(arrays, &inside(arrays, text), Scan::scalars);
                assert_eq!(found, (text.len() - passed.len(), arrays), "{text:?}");
            }
        }
        // An empty container is one too deep here.
        assert_eq!(left(deepest, &inside(deepest, "1,[],1]"), Scan::scalars), (5, deepest));
    }

    #[test]
    fn brackets_are_passed_over_by_eights() {
        // One stays, and they go no deeper than anybody may.
        for (brackets, arrays, opened) in [
            (8, 1, 0),
            (9, 1, 8),
            (16, 1, 8),
            (17, 1, 16),
            (20, 118, 8),
            (20, 119, 0),
            (20, 120, 0),
            (20, 127, 0),
        ] {
            let found = left(arrays, &inside(arrays, &"[".repeat(brackets)), Scan::open_many);
            assert_eq!(found, (brackets - opened, arrays + opened), "{brackets} in {arrays}");
        }
        for (brackets, arrays, down_to, closed) in [
            (7, 20, 0, 0),
            (8, 20, 0, 8),
            (20, 20, 0, 16),
            (20, 20, 12, 8),
            (20, 20, 13, 0),
            (20, 15, 0, 8),
            (8, 7, 0, 0),
        ] {
            let found = left(arrays, &inside(arrays, &"]".repeat(brackets)), |scan| scan.close_many(down_to));
            assert_eq!(found, (brackets - closed, arrays - closed), "{brackets} in {arrays}");
        }
    }

    /// An object among the eight that they would close is not closed so, but one around them may be.
    #[test]
    fn brackets_do_not_close_objects() {
        for (inner, closed) in [(0, 0), (1, 0), (7, 0), (8, 8), (9, 8)] {
            let text = format!("{{\"k\":{}{}", "[".repeat(inner), "]".repeat(8));
            let found = left(10, &inside(10, &text), |scan| {
                scan.open(true);
                scan.key();
                (0..inner).for_each(|_| scan.open(false));
                scan.close_many(0);
            });
            assert_eq!(found, (8 - closed, 11 + inner - closed), "{inner}");
        }
    }
}
