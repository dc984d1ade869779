//! What is beside a run becomes text: snapshots, the loss history, a pivot.

use std::io::{self, Write as _};
use std::path::Path;

use plotters::prelude::*;
use safestep::run::{Parameter, Pivoted, Summary};
use safestep::terminal_safe;
use safestep_core::history::Entry;
use safestep_core::snapshot::{Region, Snapshot};
use serde::Serialize;

use super::json::put_line;
use super::table::{Align, Table};
use super::words::{about, bytes, grouped, plural};
use super::{Curve, Palette, Screen};

/// What is in a snapshot.
pub(crate) fn snapshot(screen: &mut Screen, path: &Path, head: &Snapshot, json: bool) -> io::Result<()> {
    if json {
        let regions = Region::ALL.map(|region| {
            let span = head.span(region);
            Part { name: region.name(), begin: span.begin().value(), end: span.end().value() }
        });
        let document = InSnapshot {
            path: &path.to_string_lossy(),
            step: head.step(),
            parameters: head.parameters(),
            bytes: head.file_len().value(),
            regions,
        };
        return put_line(screen, &document);
    }
    let Palette { strong, .. } = screen.palette;
    writeln!(
        screen.out,
        "{strong}{}{strong:#}: step {}, {} parameters, {}\n",
        terminal_safe(path),
        grouped(head.step().into()),
        about(head.parameters().into()),
        bytes(head.file_len().value())
    )?;
    regions(screen, head)
}

/// How large a snapshot will be.
pub(crate) fn snapshot_size(screen: &mut Screen, head: &Snapshot, json: bool) -> io::Result<()> {
    let total = head.file_len().value();
    if json {
        let region_bytes = head.span(Region::Weights).len().value();
        return put_line(screen, &Sizes { parameters: head.parameters(), bytes: total, region_bytes });
    }
    let Palette { strong, .. } = screen.palette;
    writeln!(
        screen.out,
        "{strong}{} parameters{strong:#}: 8 + 12 x {} = {} bytes, {} or {}\n",
        short(head.parameters().into(), ["", "k", "M", "B"]),
        head.parameters(),
        grouped(total),
        short(total, [" B", " kB", " MB", " GB"]),
        binary(total)
    )?;
    regions(screen, head)
}

/// A count as people write it, in at most two decimals and no needless zero: `12.8M`, `1.44 GB`.
fn short(count: u64, units: [&str; 4]) -> String {
    let (mut value, mut units) = (count as f64, units.into_iter());
    let mut unit = units.next().unwrap_or_default();
    while value >= 999.995
        && let Some(larger) = units.next()
    {
        (value, unit) = (value / 1000.0, larger);
    }
    let digits = format!("{value:.2}");
    format!("{}{unit}", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// That a checkpoint was written as a snapshot.
pub(crate) fn exported(
    screen: &mut Screen,
    [snapshot, checkpoint]: [&Path; 2],
    head: &Snapshot,
    order: &[Parameter],
    json: bool,
) -> io::Result<()> {
    let total = head.file_len().value();
    if json {
        let order = order.iter().map(|of| Listed { name: &of.name, shape: &of.shape });
        return put_line(
            screen,
            &Exchanged {
                path: &snapshot.to_string_lossy(),
                checkpoint: &checkpoint.to_string_lossy(),
                step: head.step(),
                parameters: head.parameters(),
                bytes: total,
                order: Some(order.collect()),
            },
        );
    }
    exchanged(screen, [checkpoint, snapshot], head, total)
}

/// That a snapshot was saved as a checkpoint, of so many bytes.
pub(crate) fn imported(
    screen: &mut Screen,
    [snapshot, checkpoint]: [&Path; 2],
    head: &Snapshot,
    total: u64,
    json: bool,
) -> io::Result<()> {
    if json {
        return put_line(
            screen,
            &Exchanged {
                path: &snapshot.to_string_lossy(),
                checkpoint: &checkpoint.to_string_lossy(),
                step: head.step(),
                parameters: head.parameters(),
                bytes: total,
                order: None,
            },
        );
    }
    exchanged(screen, [snapshot, checkpoint], head, total)
}

fn exchanged(screen: &mut Screen, [from, to]: [&Path; 2], head: &Snapshot, total: u64) -> io::Result<()> {
    let Palette { strong, .. } = screen.palette;
    writeln!(
        screen.out,
        "{strong}{}{strong:#}: written, step {}, {} parameters, {}, from {}",
        terminal_safe(to),
        grouped(head.step().into()),
        about(head.parameters().into()),
        bytes(total),
        terminal_safe(from)
    )
}

fn regions(screen: &mut Screen, head: &Snapshot) -> io::Result<()> {
    let columns = [
        ("region", Align::Left),
        ("values", Align::Right),
        ("bytes", Align::Right),
        ("offset", Align::Right),
    ];
    let rows = Region::ALL.iter().map(|&region| {
        let span = head.span(region);
        [
            region.name().into(),
            grouped(head.parameters().into()),
            bytes(span.len().value()),
            grouped(span.begin().value()),
        ]
    });
    Table::new(2, columns).print(&mut screen.out, screen.width, screen.palette.strong, rows)
}

/// A number of bytes in binary units, as other tools say it: `146.48 MiB`.
fn binary(count: u64) -> String {
    let units = ["KiB", "MiB", "GiB"];
    let (mut value, mut name) = (count as f64, "B");
    for unit in units {
        if value < 1024.0 {
            break;
        }
        (value, name) = (value / 1024.0, unit);
    }
    if name == "B" {
        return format!("{count} B");
    }
    let digits = format!("{value:.2}");
    format!("{} {name}", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// A canonical entry, on a line of its own.
pub(crate) fn entry(screen: &mut Screen, entry: &Entry<'_>) -> io::Result<()> {
    let mut line = strict(entry.text());
    line.push('\n');
    screen.out.write_all(line.as_bytes())
}

/// The text of an entry as strict JSON: no white space between tokens, Python's words in quotes, and what would drive a
/// terminal escaped.
fn strict(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let (mut strict, mut in_string, mut escaped) = (String::with_capacity(text.len()), false, false);
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            _ if in_string => {
                in_string = escaped || char != '"';
                escaped = char == '\\' && !escaped;
                if terminal_safe(char.encode_utf8(&mut [0; 4])).to_string().starts_with(char) {
                    strict.push(char);
                } else {
                    char.encode_utf16(&mut [0; 2])
                        .iter()
                        .for_each(|unit| strict.push_str(&format!("\\u{unit:04x}")));
                }
            }
            '"' => {
                in_string = true;
                strict.push(char);
            }
            // A minus sign stands before a digit or before Infinity.
            'N' | 'I' => word(char, &mut chars, &mut strict),
            '-' if chars.peek() == Some(&'I') => word(char, &mut chars, &mut strict),
            _ if char.is_ascii_whitespace() => {}
            _ => strict.push(char),
        }
    }
    strict
}

/// Puts a word in quotes.
fn word(first: char, chars: &mut std::iter::Peekable<std::str::Chars<'_>>, strict: &mut String) {
    strict.extend(['"', first]);
    while let Some(char) = chars.next_if(char::is_ascii_alphabetic) {
        strict.push(char);
    }
    strict.push('"');
}

/// The history in a few lines, and its curve.
pub(crate) fn history(screen: &mut Screen, path: &Path, summary: Summary, curve: &Curve) -> io::Result<()> {
    let Palette { strong, dim, note, .. } = screen.palette;
    write!(screen.out, "{strong}{}{strong:#}: ", terminal_safe(path))?;
    let (Some(first), Some(last)) = (curve.first, curve.last) else {
        return writeln!(screen.out, "no entries");
    };
    let superseded = summary.entries.saturating_sub(curve.entries);
    let more = [(superseded, "superseded"), (summary.resumes, "resumed"), (summary.bad, "bad")];
    let more: Vec<String> = more
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", grouped(*count)))
        .collect();
    let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
    let steps = format!("steps {} to {}", grouped(first.0), grouped(last.0));
    writeln!(screen.out, "{}, {steps}{dim}{more}{dim:#}", counted(curve.entries))?;
    let best = curve.best.map(|(step, loss)| format!(", least {} at step {}", number(loss), grouped(step)));
    let best = best.unwrap_or_default();
    writeln!(screen.out, "  {dim}loss{dim:#}  first {}, last {}{best}", number(first.1), number(last.1))?;
    if curve.non_finite > 0 {
        let count = plural(curve.non_finite, "loss").replace("losss", "losses");
        writeln!(screen.out, "  {note}note{note:#}  {count} not finite, left out of the curve")?;
    }
    let finite = curve.entries.saturating_sub(curve.non_finite);
    if finite < 2 {
        let losses = if finite == 1 { "1 finite loss makes" } else { "no finite loss makes" };
        return writeln!(screen.out, "  {note}note{note:#}  {losses} no curve");
    }
    chart(screen, curve)
}

fn counted(entries: u64) -> String {
    format!("{} entr{}", grouped(entries), if entries == 1 { "y" } else { "ies" })
}

/// The dots, with the range of losses at the left and that of steps below.
fn chart(screen: &mut Screen, curve: &Curve) -> io::Result<()> {
    let Some((low, high)) = curve.range() else { return Ok(()) };
    let (top, bottom) = (number(high), number(low));
    let margin = top.len().max(bottom.len());
    let room = screen.width.unwrap_or(CHART_WIDTH + margin).saturating_sub(margin + 4);
    let rows = curve.dots(room.clamp(8, CHART_WIDTH), CHART_HEIGHT);
    let Palette { dim, good, .. } = screen.palette;
    writeln!(screen.out)?;
    for (place, row) in rows.iter().enumerate() {
        let label = match place {
            0 => top.as_str(),
            _ if place + 1 == rows.len() => bottom.as_str(),
            _ => "",
        };
        writeln!(screen.out, "  {dim}{label:>margin$}{dim:#}  {good}{row}{good:#}")?;
    }
    let (Some((first, _)), Some((last, _))) = (curve.first, curve.last) else { return Ok(()) };
    let (first, last) = (grouped(first), grouped(last));
    let columns = rows.first().map_or(0, |row| row.chars().count());
    let between = columns.saturating_sub(first.len() + last.len()).max(1);
    writeln!(screen.out, "  {:>margin$}  {dim}{first}{:between$}{last}{dim:#}", "", "")
}

/// A loss in as many digits as people read.
fn number(loss: f64) -> String {
    let size = loss.abs();
    if loss == 0.0 || (1e-3..1e6).contains(&size) { format!("{loss:.4}") } else { format!("{loss:.3e}") }
}

/// Says that the last line is not whole.
pub(crate) fn cut(screen: &mut Screen, path: &Path, at: u64) {
    let path = terminal_safe(path);
    screen.remark(&format!("{path}: the last line, from byte {at} on, is cut off and left out"));
}

/// Says that a drawing is there.
pub(crate) fn drawn(screen: &mut Screen, path: &Path) -> io::Result<()> {
    let Palette { good, .. } = screen.palette;
    writeln!(screen.out, "\n{}: {good}written{good:#}", terminal_safe(path))
}

/// The curve as a drawing; what the drawing crate says if it cannot.
pub(crate) fn svg(curve: &Curve, path: &Path) -> Result<String, String> {
    let mut text = String::new();
    draw(curve, path, &mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn draw(curve: &Curve, path: &Path, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(text, (960, 540)).into_drawing_area();
    area.fill(&WHITE)?;
    let first = curve.first.map_or(0, |(step, _)| step) as f64;
    let last = curve.last.map_or(1, |(step, _)| step) as f64;
    let (low, high) = curve.range().unwrap_or((0.0, 1.0));
    let last = if last > first { last } else { first + 1.0 };
    let mut chart = ChartBuilder::on(&area)
        .caption(terminal_safe(path).to_string(), ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(first..last, low..high)?;
    chart
        .configure_mesh()
        .x_desc("step")
        .y_desc("loss")
        .x_label_formatter(&|step| format!("{step:.0}"))
        .y_label_formatter(&|loss| number(*loss))
        .light_line_style(TRANSPARENT)
        .draw()?;
    let means = curve.points().map(|(step, point)| ((step as f64).min(last), point.mean().clamp(low, high)));
    chart.draw_series(LineSeries::new(means, BLUE.stroke_width(1)))?;
    area.present()?;
    Ok(())
}

/// What a pivot has done.
pub(crate) fn pivoted(screen: &mut Screen, step: u64, done: &Pivoted, json: bool) -> io::Result<()> {
    if json {
        let moved = done.moved.iter().map(|(from, to)| Moved {
            from: from.to_string_lossy().into_owned(),
            to: to.to_string_lossy().into_owned(),
        });
        let archive = done.directory.to_string_lossy().into_owned();
        return put_line(screen, &InArchive { step, archive, moved: moved.collect() });
    }
    let Palette { good, .. } = screen.palette;
    for (from, to) in &done.moved {
        writeln!(screen.out, "{}: {good}archived{good:#} as {}", terminal_safe(from), terminal_safe(to))?;
    }
    if done.moved.is_empty() {
        screen.remark("neither samples nor state are there; nothing was archived");
    }
    Ok(())
}

#[derive(Serialize)]
struct InSnapshot<'a> {
    path: &'a str,
    step: u32,
    parameters: u32,
    bytes: u64,
    regions: [Part; 3],
}

#[derive(Serialize)]
struct Part {
    name: &'static str,
    begin: u64,
    end: u64,
}

#[derive(Serialize)]
struct Exchanged<'a> {
    path: &'a str,
    checkpoint: &'a str,
    step: u32,
    parameters: u32,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<Vec<Listed<'a>>>,
}

#[derive(Serialize)]
struct Listed<'a> {
    name: &'a str,
    shape: &'a [u64],
}

#[derive(Serialize)]
struct Sizes {
    parameters: u32,
    bytes: u64,
    region_bytes: u64,
}

#[derive(Serialize)]
struct InArchive {
    step: u64,
    archive: String,
    moved: Vec<Moved>,
}

#[derive(Serialize)]
struct Moved {
    from: String,
    to: String,
}

/// Wider charts do not say more.
const CHART_WIDTH: usize = 72;

const CHART_HEIGHT: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_become_strict_and_harmless() {
        let table: &[(&str, &str)] = &[
            ("{\"loss\": 1.50, \"step\": 7}\r", "{\"loss\":1.50,\"step\":7}"),
            (
                "{\"loss\":NaN,\"step\":1,\"x\":[-Infinity,-1,Infinity]}",
                "{\"loss\":\"NaN\",\"step\":1,\"x\":[\"-Infinity\",-1,\"Infinity\"]}",
            ),
            (
                "{\"a\":\"NaN \\\" -Infinity\",\"b\":\"\\\\\"}",
                "{\"a\":\"NaN \\\" -Infinity\",\"b\":\"\\\\\"}",
            ),
            ("{\"a\":\"\u{9b}31m\u{202e}é\"}", "{\"a\":\"\\u009b31m\\u202eé\"}"),
        ];
        for (text, expected) in table {
            assert_eq!(strict(text.as_bytes()), *expected);
            serde_json::from_str::<serde_json::Value>(expected).unwrap();
        }
    }

    #[test]
    fn curves_of_all_kinds_are_drawn() {
        let curves: &[&[(u64, f64)]] = &[
            &[],
            &[(1, 1.0)],
            &[(1, f64::NAN)],
            &[(0, 1.0), (u64::MAX, 2.0)],
            &[(1, f64::MAX), (2, -f64::MAX)],
            &[(1, 1e-320), (2, 0.0), (9, -0.0)],
            &[(1, f64::INFINITY), (2, 3.0)],
            &[(u64::MAX, 3.0)],
        ];
        for points in curves {
            let mut curve = Curve::default();
            points.iter().for_each(|&(step, loss)| curve.add(step, loss));
            let drawing = svg(&curve, Path::new("a<b>&\u{1b}.json")).unwrap();
            assert!(drawing.starts_with("<svg") && drawing.trim_end().ends_with("</svg>"), "{points:?}");
            assert!(!drawing.contains("a<b>") && !drawing.contains('\u{1b}'));
        }
    }

    #[test]
    fn binary_units() {
        for (count, text) in
            [(8, "8 B"), (1024, "1 KiB"), (153_600_008, "146.48 MiB"), (1_440_000_008, "1.34 GiB")]
        {
            assert_eq!(binary(count), text);
        }
    }

    #[test]
    fn short_numbers() {
        let table = [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1 kB"),
            (1500, "1.5 kB"),
            (153_600_008, "153.6 MB"),
            (999_994_999, "999.99 MB"),
            (999_995_000, "1 GB"),
            (1_440_000_008, "1.44 GB"),
            (25_769_803_772, "25.77 GB"),
        ];
        for (count, text) in table {
            assert_eq!(short(count, [" B", " kB", " MB", " GB"]), text);
        }
        assert_eq!(
            [120_000_000, 12_800_000].map(|count| short(count, ["", "k", "M", "B"])),
            ["120M", "12.8M"]
        );
    }
}
