//! Rows of cells become aligned columns, as wide as the terminal allows.
//!
//! Cells are safe for a terminal already. If the table is too wide, the first cell of a row gets a line of its own:
//! nothing is left out.

use std::io::{self, Write};

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

/// A table in the making; `N` columns.
pub(super) struct Table<const N: usize> {
    alignments: [Align; N],
    rows: Vec<[String; N]>,
    widths: [usize; N],
}

/// Where the cells of a column stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

impl<const N: usize> Table<N> {
    /// A table with these columns.
    pub(super) fn new(columns: [(&str, Align); N]) -> Self {
        let alignments = columns.map(|(_, align)| align);
        let mut table = Self { alignments, rows: Vec::new(), widths: [0; N] };
        table.row(columns.map(|(title, _)| title.to_string()));
        table
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: [String; N]) {
        for (width, cell) in self.widths.iter_mut().zip(&cells) {
            *width = cell.width().max(*width);
        }
        self.rows.push(cells);
    }

    /// Prints it, each line after `indent` blanks, its head in that style.
    pub(super) fn print(
        &self,
        out: &mut impl Write,
        indent: usize,
        screen_width: Option<usize>,
        head: Style,
    ) -> io::Result<()> {
        let whole = self.widths.iter().sum::<usize>() + GUTTER * N.saturating_sub(1) + indent;
        let narrow = screen_width.is_some_and(|width| width < whole);
        for (place, cells) in self.rows.iter().enumerate() {
            let style = if place == 0 { head } else { Style::new() };
            let (mut from, mut indent) = (0, indent);
            if narrow {
                let first = cells.first().map_or("", String::as_str);
                writeln!(out, "{:indent$}{style}{first}{style:#}", "")?;
                (from, indent) = (1, indent + GUTTER);
            }
            writeln!(out, "{:indent$}{style}{}{style:#}", "", self.line(cells, from).trim_end())?;
        }
        Ok(())
    }

    /// The cells from the column `from` on, side by side.
    fn line(&self, cells: &[String; N], from: usize) -> String {
        let mut line = String::new();
        for (place, ((cell, &width), align)) in
            cells.iter().zip(&self.widths).zip(self.alignments).enumerate().skip(from)
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
        let mut table = Table::new([("name", Align::Left), ("bytes", Align::Right)]);
        table.row(["model.layers.0.self_attn.q_proj.weight".into(), "1.0 kB".into()]);
        table.row(["模型.größe".into(), "17 B".into()]);
        table.row([String::new(), "0 B".into()]);
        let mut out = Vec::new();
        table.print(&mut out, 2, screen_width, Style::new()).unwrap();
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
