//! Numbers become tables of plain text, lines of JSON, and a table of the promises.

use std::fmt::Write;

/// What the sections found.
#[derive(Default)]
pub(crate) struct Report {
    promises: Vec<Promise>,
    json: Vec<String>,
}

struct Promise {
    what: String,
    wanted: String,
    found: String,
    met: bool,
}

impl Report {
    /// Something was promised; this is what was found.
    pub(crate) fn promise(&mut self, what: &str, wanted: &str, found: &str, met: bool) {
        let (what, wanted, found) = (what.to_owned(), wanted.to_owned(), found.to_owned());
        self.promises.push(Promise { what, wanted, found, met });
    }

    /// Notes numbers for the JSON file.
    pub(crate) fn note(&mut self, section: &str, name: &str, numbers: &[(&str, f64)]) {
        let mut line = format!("{{\"section\":\"{section}\",\"name\":\"{name}\"");
        for (key, value) in numbers {
            let _ = write!(line, ",\"{key}\":{value:.3}");
        }
        line.push('}');
        self.json.push(line);
    }

    /// Prints what was promised and whether this run met it; true if all was met.
    pub(crate) fn promises(&self) -> bool {
        let table = Table::new("promises", &[("promise", 58), ("wanted", -12), ("this run", -12), ("", 7)]);
        for Promise { what, wanted, found, met } in &self.promises {
            table.row(&[what, wanted, found, if *met { "met" } else { "NOT MET" }]);
        }
        let met = self.promises.iter().filter(|promise| promise.met).count();
        println!("{met} of {} met", self.promises.len());
        met == self.promises.len()
    }

    /// Everything as one JSON document.
    pub(crate) fn json(&self) -> String {
        let promises = self.promises.iter().map(|Promise { what, wanted, found, met }| {
            format!("{{\"promise\":\"{what}\",\"wanted\":\"{wanted}\",\"found\":\"{found}\",\"met\":{met}}}")
        });
        let promises: Vec<String> = promises.collect();
        format!("{{\"times\":[\n{}\n],\"promises\":[\n{}\n]}}\n", self.json.join(",\n"), promises.join(",\n"))
    }
}

/// A table that is printed line by line; a negative width sets a column flush right.
pub(crate) struct Table {
    widths: Vec<i32>,
}

impl Table {
    /// Prints the title and the head.
    pub(crate) fn new(title: &str, columns: &[(&str, i32)]) -> Self {
        println!("\n{title}");
        let table = Self { widths: columns.iter().map(|(_, width)| *width).collect() };
        let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
        table.row(&heads);
        table
    }

    /// Prints a row.
    pub(crate) fn row(&self, cells: &[&str]) {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(&self.widths) {
            let space = usize::try_from(width.unsigned_abs()).unwrap_or_default();
            let _ =
                if *width < 0 { write!(line, "{cell:>space$}  ") } else { write!(line, "{cell:<space$}  ") };
        }
        println!("{}", line.trim_end());
    }
}

/// A time in the unit that reads best.
pub(crate) fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        ..1e3 => format!("{nanoseconds:.0} ns"),
        ..1e6 => format!("{:.1} us", nanoseconds / 1e3),
        _ => format!("{:.2} ms", nanoseconds / 1e6),
    }
}
