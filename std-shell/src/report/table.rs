//! Rows of cells become aligned columns, as wide as the terminal allows.
//!
//! Cells are safe for a terminal already. If the table is too wide, the first cell of a row gets a line of its own:
//! nothing is left out. The rows are made twice, once to be measured and once to be printed, and never kept: there may
//! be millions.

use std::io::{self, Write};

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

/// A table with `N` columns: their titles, and where their cells stand.
pub(super) struct Table<'t, const N: usize> {
    columns: [(&'t str, Align); N],
    /// The blanks before each line.
    indent: usize,
}

/// Where the cells of a column stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

impl<'t, const N: usize> Table<'t, N> {
    /// A table with these columns, each line after `indent` blanks.
    pub(super) fn new(indent: usize, columns: [(&'t str, Align); N]) -> Self {
        Self { columns, indent }
    }

    /// Prints it, its head in that style.
    pub(super) fn print(
        &self,
        out: &mut impl Write,
        screen_width: Option<usize>,
        head: Style,
        rows: impl Iterator<Item = [String; N]> + Clone,
    ) -> io::Result<()> {
        let titles = self.columns.map(|(title, _)| title.to_string());
        let mut widths = [0; N];
        for cells in [titles.clone()].into_iter().chain(rows.clone()) {
            for (width, cell) in widths.iter_mut().zip(&cells) {
                *width = cell.width().max(*width);
            }
        }
        let whole = widths.iter().sum::<usize>() + GUTTER * N.saturating_sub(1) + self.indent;
        let narrow = screen_width.is_some_and(|width| width < whole);
        let styles = [head].into_iter().chain(std::iter::repeat(Style::new()));
        for (cells, style) in [titles].into_iter().chain(rows).zip(styles) {
            let (mut from, mut indent) = (0, self.indent);
            if narrow {
                let first = cells.first().map_or("", String::as_str);
                writeln!(out, "{:indent$}{style}{first}{style:#}", "")?;
                (from, indent) = (1, indent + GUTTER);
            }
            writeln!(out, "{:indent$}{style}{}{style:#}", "", self.line(&cells, widths, from).trim_end())?;
        }
        Ok(())
    }

    /// The cells from the column `from` on, side by side.
    fn line(&self, cells: &[String; N], widths: [usize; N], from: usize) -> String {
        let mut line = String::new();
        for (place, ((cell, width), (_, align))) in
            cells.iter().zip(widths).zip(self.columns).enumerate().skip(from)
        {
            if place > from {
                line.push_str(&" ".repeat(GUTTER));
            }
            let blanks = " ".repeat(width.saturating_sub(cell.width()));
            match align {
                Align::Left => line.extend([cell.as_str(), &blanks]),
                Align::Right => line.extend([&blanks, cell.as_str()]),
            }
        }
        line
    }
}

/// The blanks between two columns.
const GUTTER: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(screen_width: Option<usize>) -> String {
        let table = Table::new(2, [("name", Align::Left), ("bytes", Align::Right)]);
        let rows =
            [("model.layers.0.self_attn.q_proj.weight", "1.0 kB"), ("模型.größe", "17 B"), ("", "0 B")];
        let rows = rows.iter().map(|(name, bytes)| [name.to_string(), bytes.to_string()]);
        let mut out = Vec::new();
        table.print(&mut out, screen_width, Style::new(), rows).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_aligned_at_any_width() {
        let whole = "  \
  name                                     bytes
  model.layers.0.self_attn.q_proj.weight  1.0 kB
  模型.größe                                17 B
                                             0 B
";
        assert_eq!(printed(None), whole);
        assert_eq!(printed(Some(48)), whole);
        let narrow = "  \
  name
     bytes
  model.layers.0.self_attn.q_proj.weight
    1.0 kB
  模型.größe
      17 B

       0 B
";
        assert_eq!(printed(Some(47)).replace("  \n", "\n"), narrow);
    }
}
