//! The bins of a histogram become bars.

use std::io::{self, Write};

use safestep::Histogram;

use super::numbers::{Cell, Room};
use super::{Palette, grouped};

/// Draws a bar for each bin, in `width` columns at the most: its lower edge, its count, and the bar.
pub(super) fn draw(
    out: &mut impl Write,
    histogram: &Histogram,
    width: usize,
    palette: &Palette,
) -> io::Result<()> {
    let edges = histogram.edges().iter().map(|edge| edge_cell(*edge));
    let counts = histogram.counts().iter().map(|count| Cell::plain(grouped(*count)));
    let bins: Vec<(Cell, Cell)> = edges.zip(counts).collect();
    let edge_room = Room::of(bins.iter().map(|(edge, _)| edge));
    let count_room = Room::of(bins.iter().map(|(_, count)| count));
    let [edge_width, count_width] =
        [(edge_room, FROM), (count_room, COUNT)].map(|(room, title)| room.width().max(title.len()));
    let columns = width.saturating_sub(INDENT + edge_width + GUTTER + count_width + GUTTER);
    let columns = columns.clamp(SHORTEST, LONGEST);
    let most = histogram.counts().iter().copied().max().unwrap_or_default();

    let Palette { strong, dim, .. } = palette;
    let title = format!("{FROM:>edge_width$}{:GUTTER$}{COUNT:>count_width$}", "");
    writeln!(out, "{:INDENT$}{strong}{title}{strong:#}", "")?;
    for ((edge, label), &count) in bins.iter().zip(histogram.counts()) {
        let (before, behind) = edge_room.around(edge);
        let before = INDENT + edge_width.saturating_sub(edge_room.width()) + before;
        let line = format!(
            "{:before$}{dim}{}{dim:#}{:behind$}{:GUTTER$}{:>count_width$}{:GUTTER$}{}",
            "",
            edge.text,
            "",
            "",
            label.text,
            "",
            bar(count, most, columns)
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

const FROM: &str = "from";

const COUNT: &str = "count";

const INDENT: usize = 2;

const GUTTER: usize = 2;

/// A bar that is worth looking at, however narrow the terminal.
const SHORTEST: usize = 10;

/// Longer ones say nothing more.
const LONGEST: usize = 80;

/// A number that is an integer as one: `5` in place of `5.0`.
fn edge_cell(edge: f64) -> Cell {
    let text = format!("{edge:?}");
    Cell::pointed(text.strip_suffix(".0").map_or(text.clone(), str::to_string))
}

/// A bar in eighths of a column; what is there is seen.
fn bar(count: u64, most: u64, columns: usize) -> String {
    if count == 0 {
        return String::new();
    }
    let whole = columns as f64 * 8.0;
    let eighths = ((count as f64 / most.max(1) as f64 * whole).round() as usize).max(1);
    let mut bar = "█".repeat(eighths / 8);
    bar.extend(['▏', '▎', '▍', '▌', '▋', '▊', '▉'].get((eighths % 8).wrapping_sub(1)));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_counts() {
        let table = [
            (0, 100, ""),
            (1, 1_000_000, "▏"),
            (50, 100, "█████"),
            (100, 100, "██████████"),
            (11, 100, "█▏"),
            (19, 100, "█▉"),
            (20, 100, "██"),
            (u64::MAX, u64::MAX, "██████████"),
        ];
        for (count, most, expected) in table {
            assert_eq!(bar(count, most, 10), expected, "{count} of {most}");
        }
    }
}
