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
