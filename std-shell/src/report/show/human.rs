//! A part of a tensor becomes what a person reads: its corners, with the index of each row and column, or statistics.

use std::io::{self, Write as _};

use anstyle::Style;
use safestep::Stats;
use safestep_core::Dtype;
use safestep_core::numbers::Number;
use unicode_width::UnicodeWidthStr as _;

use super::corners::{Ends, Grid};
use super::{Form, Part, Picked};
use crate::report::numbers::{Cell, Room};
use crate::report::words::{about, bytes, grouped, shape, shortened, shown};
use crate::report::{Palette, Screen, Trouble, histogram};

/// The columns, where nobody knows better.
const WIDTH: usize = 80;

const INDENT: usize = 2;

const GUTTER: usize = 2;

/// Rows that are all shown, and those at either end of more; fewer where there are several blocks.
const ROWS: (u64, u64) = (20, 8);
const ROWS_OF_BLOCK: (u64, u64) = (8, 3);

/// The same of columns; the terminal takes fewer.
const COLUMNS: (u64, u64) = (48, 24);

/// The same of blocks.
const BLOCKS: (u64, u64) = (6, 2);

/// The same of the lines of a vector.
const LINES: (u64, u64) = (16, 5);

/// How many values a line of a vector may have.
const PER_LINE: [u64; 6] = [20, 10, 8, 5, 4, 2];

/// An index and a shape of any honest rank.
const LONGEST: usize = 64;

/// The heading, then the corners.
pub(crate) fn values(screen: &mut Screen, part: &Part<'_>) -> Result<(), Trouble> {
    heading(screen, part)?;
    if part.elements() == 0 {
        let Palette { dim, .. } = screen.palette;
        writeln!(screen.out, "\n  {dim}no elements{dim:#}")?;
        return Ok(());
    }
    let grid = Grid::new(part);
    match grid.rank() {
        0 => scalar(screen, &grid),
        1 => vector(screen, &grid),
        rank => blocks(screen, part, &grid, rank > 2),
    }?;
    if grid.has_marked() {
        let Palette { dim, .. } = screen.palette;
        writeln!(screen.out, "\n  {dim}BOOL is 0 or 1; the other bytes are marked with a !{dim:#}")?;
    }
    Ok(())
}

fn heading(screen: &mut Screen, part: &Part<'_>) -> io::Result<()> {
    let Palette { strong, dim, .. } = screen.palette;
    let entry = &part.entry;
    let parameters = entry.shape().elements().unwrap_or(u64::MAX);
    let name = Some(shown(&entry.name())).filter(|name| !name.is_empty()).unwrap_or_else(|| "\"\"".into());
    writeln!(
        screen.out,
        "{strong}{}{strong:#}: {} {}, {} parameter{}, {}",
        name,
        entry.dtype(),
        shape(&entry.shape()),
        about(parameters),
        if parameters == 1 { "" } else { "s" },
        bytes(entry.span().len().value()),
    )?;
    if part.sliced {
        let texts: Vec<String> = part.picks.iter().map(text).collect();
        let dims: Vec<String> = part.dims().map(|dim| dim.to_string()).collect();
        let [slice, dims] = [texts, dims].map(|parts| shortened(&format!("[{}]", parts.join(", ")), LONGEST));
        writeln!(screen.out, "  {dim}slice{dim:#}     {slice}, of shape {dims}")?;
    }
    if part.form == Form::Codes {
        writeln!(screen.out, "  {dim}codes{dim:#}     hexadecimal")?;
    }
    Ok(())
}

/// What was picked, as it would be typed.
fn text(picked: &Picked) -> String {
    let Picked { pick, dim, .. } = *picked;
    match (picked.keeps, pick.start == 0 && pick.stop == dim) {
        (false, _) => pick.start.to_string(),
        (true, true) if pick.step == 1 => ":".to_string(),
        (true, true) => format!("::{}", pick.step),
        (true, false) if pick.step == 1 => format!("{}:{}", pick.start, pick.stop),
        (true, false) => format!("{}:{}:{}", pick.start, pick.stop, pick.step),
    }
}

fn scalar(screen: &mut Screen, grid: &Grid<'_>) -> Result<(), Trouble> {
    let once = || std::iter::once(0);
    for cell in grid.cells(&[], once(), once())? {
        let style = if cell.odd { screen.palette.bad } else { Style::new() };
        writeln!(screen.out, "\n{:INDENT$}{style}{}{style:#}", "", cell.text)?;
    }
    Ok(())
}

/// Lines of as many values as fit, each with the index of its first.
fn vector(screen: &mut Screen, grid: &Grid<'_>) -> Result<(), Trouble> {
    let Some(axis) = grid.axis(0) else { return Ok(()) };
    let most = PER_LINE.iter().copied().max().unwrap_or(1);
    // What is looked at is enough for the lines that are shown, however many values they take.
    let known = Ends::of(axis.taken, LINES.0 * most, LINES.1 * most);
    let places: Vec<u64> = known.places().collect();
    let cells = grid.cells(&[], std::iter::once(0), places.iter().copied())?;
    let room = Room::of(&cells);
    let label = |place: u64| format!("[{}]", axis.index(place));
    let width = screen.width.unwrap_or(WIDTH).saturating_sub(INDENT + label(axis.taken - 1).len());
    let fitting = (width / (GUTTER + room.width())) as u64;
    let per_line = if axis.taken <= fitting.min(most) { axis.taken } else { per_line(fitting) };
    let lines = Ends::of(axis.taken.div_ceil(per_line), LINES.0, LINES.1);
    let label_width = label((lines.len - 1) * per_line).len();
    writeln!(screen.out)?;
    for (place, number) in lines.places().enumerate() {
        if place as u64 == lines.head && lines.gap() > 0 {
            gap(screen, label_width, lines.gap().saturating_mul(per_line), "value")?;
        }
        let first = number.saturating_mul(per_line);
        let mut line = Line::new(screen.palette);
        line.label(&label(first), label_width);
        let from = places.partition_point(|place| *place < first);
        for cell in cells.iter().skip(from).take(per_line as usize).take((axis.taken - first) as usize) {
            line.cell(cell, room);
        }
        line.print(screen)?;
    }
    Ok(())
}

/// A number of values for which the indices at the beginning of the lines read well.
fn per_line(fitting: u64) -> u64 {
    PER_LINE.into_iter().find(|&count| count <= fitting).unwrap_or(1)
}

/// A table for each index of the outer dimensions.
fn blocks(screen: &mut Screen, part: &Part<'_>, grid: &Grid<'_>, titled: bool) -> Result<(), Trouble> {
    let shown = Ends::of(grid.blocks(), BLOCKS.0, BLOCKS.1);
    let (whole, end) = if shown.len > 1 { ROWS_OF_BLOCK } else { ROWS };
    for (place, number) in shown.places().enumerate() {
        writeln!(screen.out)?;
        if place as u64 == shown.head && shown.gap() > 0 {
            gap(screen, 0, shown.gap(), "block")?;
            writeln!(screen.out)?;
        }
        let block = grid.block(number);
        if titled {
            title(screen, part, &block)?;
        }
        table(screen, grid, &block, whole, end)?;
    }
    Ok(())
}

/// The index of a block, as it would be typed after `--slice`.
fn title(screen: &mut Screen, part: &Part<'_>, block: &[u64]) -> io::Result<()> {
    let mut places = block.iter();
    let texts: Vec<String> = part
        .picks
        .iter()
        .map(|picked| {
            let place = if picked.keeps { places.next() } else { None };
            place.map_or_else(|| text(picked), |place| picked.index(*place).to_string())
        })
        .collect();
    let Palette { strong, .. } = screen.palette;
    let title = shortened(&format!("[{}]", texts.join(", ")), LONGEST);
    writeln!(screen.out, "{:INDENT$}{strong}{title}{strong:#}", "")
}

/// The rows and columns of a block, as many columns as fit.
fn table(screen: &mut Screen, grid: &Grid<'_>, block: &[u64], whole: u64, end: u64) -> Result<(), Trouble> {
    let (Some(row_axis), Some(column_axis)) = (grid.axis(1), grid.axis(0)) else { return Ok(()) };
    let rows = Ends::of(row_axis.taken, whole, end);
    let known = Ends::of(column_axis.taken, COLUMNS.0, COLUMNS.1);
    let cells = grid.cells(block, rows.places(), known.places())?;
    let wide = known.places().count().max(1);
    let mut columns: Vec<Column<'_>> = known
        .places()
        .enumerate()
        .map(|(place, index)| {
            let cells: Vec<&Cell> = cells.iter().skip(place).step_by(wide).collect();
            Column::new(column_axis.index(index).to_string(), cells)
        })
        .collect();
    let label_width = row_axis.index(row_axis.taken.saturating_sub(1)).to_string().len();
    let width = screen.width.unwrap_or(WIDTH).saturating_sub(INDENT + label_width);
    let cut = fit(&mut columns, width, known.gap() > 0);

    let mut line = Line::new(screen.palette);
    line.label("", label_width);
    for (place, column) in columns.iter().enumerate() {
        if Some(place) == cut {
            line.ellipsis();
        }
        line.label(&column.title, column.width() + GUTTER);
    }
    if Some(columns.len()) == cut {
        line.ellipsis();
    }
    line.print(screen)?;
    for (row, place) in rows.places().enumerate() {
        if row as u64 == rows.head && rows.gap() > 0 {
            gap(screen, label_width, rows.gap(), "row")?;
        }
        let mut line = Line::new(screen.palette);
        line.label(&row_axis.index(place).to_string(), label_width);
        for (place, column) in columns.iter().enumerate() {
            if Some(place) == cut {
                line.ellipsis();
            }
            if let Some(cell) = column.cells.get(row) {
                line.cell_in(cell, column.room, column.width());
            }
        }
        if Some(columns.len()) == cut {
            line.ellipsis();
        }
        line.print(screen)?;
    }
    Ok(())
}

/// A column with its index.
struct Column<'c> {
    title: String,
    cells: Vec<&'c Cell>,
    room: Room,
}

impl<'c> Column<'c> {
    fn new(title: String, cells: Vec<&'c Cell>) -> Self {
        let room = Room::of(cells.iter().copied());
        Self { title, cells, room }
    }

    fn width(&self) -> usize {
        self.room.width().max(self.title.len())
    }
}

/// Leaves out columns from the middle until the rest fits, but for one. The answer is where the ellipsis stands.
fn fit(columns: &mut Vec<Column<'_>>, width: usize, gap: bool) -> Option<usize> {
    let needed = |column: &Column<'_>| column.width() + GUTTER;
    let mut used: usize = columns.iter().map(needed).sum();
    if !gap && used <= width {
        return None;
    }
    used += GUTTER + ELLIPSIS.width();
    let mut cut = columns.len().div_ceil(2);
    while used > width && columns.len() > 1 {
        // The longer side gives way, so the first column is the last to go.
        let head = cut;
        let tail = columns.len() - cut;
        let place = if head > tail { cut - 1 } else { cut };
        let column = columns.remove(place);
        used -= needed(&column);
        if head > tail {
            cut -= 1;
        }
    }
    Some(cut)
}

const ELLIPSIS: &str = "…";

/// A line that says how much is left out.
fn gap(screen: &mut Screen, label_width: usize, count: u64, what: &str) -> io::Result<()> {
    let Palette { dim, .. } = screen.palette;
    let plural = if count == 1 { "" } else { "s" };
    let blanks = label_width.saturating_sub(ELLIPSIS.width());
    writeln!(
        screen.out,
        "{:INDENT$}{:blanks$}{dim}{ELLIPSIS}  {} more {what}{plural}{dim:#}",
        "",
        "",
        grouped(count)
    )
}

/// A line in the making.
struct Line {
    text: String,
    palette: Palette,
}

impl Line {
    fn new(palette: Palette) -> Self {
        Self { text: " ".repeat(INDENT), palette }
    }

    /// An index, at the right of so many columns.
    fn label(&mut self, label: &str, width: usize) {
        let Palette { dim, .. } = self.palette;
        self.text.push_str(&format!(
            "{:blanks$}{dim}{label}{dim:#}",
            "",
            blanks = width.saturating_sub(label.len())
        ));
    }

    fn ellipsis(&mut self) {
        let Palette { dim, .. } = self.palette;
        self.text.push_str(&format!("{:GUTTER$}{dim}{ELLIPSIS}{dim:#}", ""));
    }

    fn cell(&mut self, cell: &Cell, room: Room) {
        self.cell_in(cell, room, room.width());
    }

    fn cell_in(&mut self, cell: &Cell, room: Room, width: usize) {
        let style = if cell.odd { self.palette.bad } else { Style::new() };
        let (before, behind) = room.around(cell);
        let before = GUTTER + width.saturating_sub(room.width()) + before;
        self.text.push_str(&format!("{:before$}{style}{}{style:#}{:behind$}", "", cell.text, ""));
    }

    fn print(self, screen: &mut Screen) -> io::Result<()> {
        writeln!(screen.out, "{}", self.text.trim_end())
    }
}

/// The heading, then the numbers, then the histogram.
pub(crate) fn stats(screen: &mut Screen, part: &Part<'_>, stats: &Stats) -> Result<(), Trouble> {
    heading(screen, part)?;
    let Palette { dim, bad, .. } = screen.palette;
    if part.entry.dtype() == Dtype::C64 {
        writeln!(screen.out, "  {dim}of{dim:#}        magnitudes of complex numbers")?;
    }
    writeln!(screen.out)?;
    let counts = stats.counts;
    let found =
        |number: Option<Number>| number.map_or_else(|| "none".to_string(), |number| number.to_string());
    let rounded = |number: Option<f64>| found(number.map(|number| Number::F64(six_digits(number))));
    for (label, text) in [
        ("values", grouped(counts.elements)),
        ("min", found(stats.min)),
        ("max", found(stats.max)),
        ("mean", rounded(stats.mean)),
        ("std", rounded(stats.std)),
        ("zeros", share(counts.zeros, counts.elements)),
    ] {
        writeln!(screen.out, "  {dim}{label:<8}{dim:#}  {text}")?;
    }
    let truth = (part.entry.dtype() == Dtype::Bool).then_some(("not 0, 1", counts.not_boolean));
    let odd =
        [("NaN", counts.nan), ("inf", counts.positive_infinities), ("-inf", counts.negative_infinities)];
    for (label, count) in odd.into_iter().chain(truth) {
        let style = if count > 0 { bad } else { Style::new() };
        let text = share(count, counts.elements);
        writeln!(screen.out, "  {dim}{label:<8}{dim:#}  {style}{text}{style:#}")?;
    }
    if let Some(bins) = &stats.histogram {
        writeln!(screen.out)?;
        histogram::draw(&mut screen.out, bins, screen.width.unwrap_or(WIDTH), &screen.palette)?;
    }
    Ok(())
}

/// A count and how much of all it is.
fn share(count: u64, all: u64) -> String {
    if count == 0 {
        return "0".to_string();
    }
    let percent = count as f64 / all as f64 * 100.0;
    let text = match percent {
        100.0 => "all".to_string(),
        ..0.1 => "less than 0.1 %".to_string(),
        99.95.. => "more than 99.9 %".to_string(),
        _ => format!("{percent:.1} %"),
    };
    format!("{} ({text})", grouped(count))
}

/// The number to six significant digits: more would be noise.
fn six_digits(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_columns_as_fit_and_at_least_one() {
        let cells: Vec<Cell> = (0..9).map(|place| Cell::plain("7".repeat(1 + place))).collect();
        for gap in [false, true] {
            for width in 0..80 {
                let mut columns: Vec<Column<'_>> =
                    cells.iter().map(|cell| Column::new(String::new(), vec![cell])).collect();
                let whole: usize = columns.iter().map(|column| column.width() + GUTTER).sum();
                let cut = fit(&mut columns, width, gap);
                assert_eq!(cut.is_none(), !gap && whole <= width);
                let used: usize = columns.iter().map(|column| column.width() + GUTTER).sum();
                let used = used + cut.map_or(0, |_| GUTTER + 1);
                assert!(used <= width || columns.len() == 1, "{used} of {width}");
                // What is left out stands where the ellipsis does.
                let cut = cut.unwrap_or(columns.len());
                let ends = cells.iter().take(cut).chain(cells.iter().skip(9 - (columns.len() - cut)));
                assert!(ends.eq(columns.iter().flat_map(|column| column.cells.iter().copied())));
                assert_eq!(columns[0].cells[0], &cells[0]);
            }
        }
    }
}
