//! Numbers become text, and texts stand in a column with their points below each other.

use safestep_core::numbers::Number;

/// A number of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) text: String,
    /// What goes before the place where cells are aligned; without it the ends are.
    point: Option<usize>,
    /// NaN, infinite, or marked.
    pub(super) odd: bool,
}

impl Cell {
    /// A text that ends where others do.
    pub(super) fn plain(text: String) -> Self {
        Self { text, point: None, odd: false }
    }

    /// A number: floats in the fewest digits that read back as the same.
    pub(super) fn value(number: &Number) -> Self {
        let odd = |odd| Self { text: number.to_string(), point: None, odd };
        let finite = match number {
            Number::Bool(_) | Number::Unsigned(_) | Number::Signed(_) => return odd(false),
            Number::F32(value) => value.is_finite(),
            Number::F64(value) => value.is_finite(),
            Number::Complex([real, imaginary]) => real.is_finite() && imaginary.is_finite(),
        };
        match number {
            Number::Complex([real, _]) => {
                let point = Some(Number::F32(*real).to_string().len());
                Self { text: number.to_string(), point, odd: !finite }
            }
            _ if !finite => odd(true),
            _ => Self::pointed(number.to_string()),
        }
    }

    /// A number that should not be there.
    pub(super) fn marked(number: &Number) -> Self {
        Self { text: format!("{number}!"), point: None, odd: true }
    }

    /// The text of a decimal number.
    pub(super) fn pointed(text: String) -> Self {
        let point = text.find(['.', 'e']).unwrap_or(text.len());
        Self { text, point: Some(point), odd: false }
    }

    /// The stored bits, as many digits as there can be; those of a complex number by its parts.
    pub(super) fn code(code: u64, bits: u32, complex: bool) -> Self {
        let digits = bits.div_ceil(4) as usize;
        Self::plain(if complex {
            format!("{:08x} {:08x}", code & u64::from(u32::MAX), code >> 32)
        } else {
            format!("{code:0digits$x}")
        })
    }
}

/// The columns that cells need on both sides of where they are aligned.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    before: usize,
    after: usize,
    whole: usize,
}

impl Room {
    /// For all of these.
    pub(super) fn of<'c>(cells: impl IntoIterator<Item = &'c Cell>) -> Self {
        let mut room = Self::default();
        cells.into_iter().for_each(|cell| room.add(cell));
        room
    }

    fn add(&mut self, cell: &Cell) {
        match cell.point {
            Some(point) => {
                self.before = self.before.max(point);
                self.after = self.after.max(cell.text.chars().count().saturating_sub(point));
            }
            None => self.whole = self.whole.max(cell.text.chars().count()),
        }
    }

    pub(super) fn width(self) -> usize {
        self.whole.max(self.before.saturating_add(self.after))
    }

    /// The blanks before and behind a cell.
    pub(super) fn around(self, cell: &Cell) -> (usize, usize) {
        let len = cell.text.chars().count();
        let behind = cell.point.map_or(0, |point| self.after.saturating_sub(len.saturating_sub(point)));
        (self.width().saturating_sub(len).saturating_sub(behind), behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_digits() {
        let table = [
            (Number::F32(0.1), "0.1"),
            (Number::F32(1.0), "1.0"),
            (Number::F32(-0.0), "-0.0"),
            (Number::F32(16_777_216.0), "16777216.0"),
            (Number::F32(f32::MAX), "3.4028235e38"),
            (Number::F32(1e-45), "1e-45"),
            (Number::F32(f32::NAN), "NaN"),
            (Number::F32(-f32::NAN), "NaN"),
            (Number::F32(f32::NEG_INFINITY), "-inf"),
            (Number::F64(0.1 + 0.2), "0.30000000000000004"),
            (Number::F64(1e16), "1e16"),
            (Number::F64(0.0001), "0.0001"),
            (Number::Unsigned(u64::MAX), "18446744073709551615"),
            (Number::Signed(i64::MIN), "-9223372036854775808"),
            (Number::Bool(true), "true"),
            (Number::Complex([1.5, -2.0]), "1.5-2.0i"),
            (Number::Complex([-0.0, 0.0]), "-0.0+0.0i"),
            (Number::Complex([f32::NAN, f32::NEG_INFINITY]), "NaN-infi"),
            (Number::Complex([0.0, -f32::NAN]), "0.0+NaNi"),
        ];
        for (number, text) in table {
            let cell = Cell::value(&number);
            assert_eq!(cell.text, text);
            assert_eq!(cell.odd, text.contains("NaN") || text.contains("inf"), "{text}");
        }
    }

    #[test]
    fn codes_have_all_their_digits() {
        let table = [(5, 4, "5"), (5, 6, "05"), (5, 8, "05"), (0x80, 16, "0080"), (1, 32, "00000001")];
        for (code, bits, text) in table {
            assert_eq!(Cell::code(code, bits, false).text, text);
        }
        assert_eq!(Cell::code(1, 64, false).text, "0000000000000001");
        assert_eq!(Cell::code(0xc000_0000_3f80_0000, 64, true).text, "3f800000 c0000000");
    }

    #[test]
    fn points_stand_below_each_other() {
        let numbers = [1.0, -10.25, 1e-7, f32::NAN, 3.0].map(|value| Cell::value(&Number::F32(value)));
        let room = Room::of(&numbers);
        let lines = numbers.each_ref().map(|cell| {
            let (before, behind) = room.around(cell);
            format!("{:before$}{}{:behind$}|", "", cell.text, "")
        });
        assert_eq!(lines, ["  1.0 |", "-10.25|", "  1e-7|", "   NaN|", "  3.0 |"]);
    }
}
