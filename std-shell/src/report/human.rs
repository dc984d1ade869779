//! Findings become what a person reads.

use std::cmp::Reverse;
use std::io::{self, Write as _};
use std::path::Path;

use safestep::{BadFile, Converted, Rewritten, terminal_safe};
use safestep_core::{Entry, Index, Notes, Rule};
use unicode_width::UnicodeWidthStr as _;

use super::table::{Align, Table};
use super::totals::Sum;
use super::words::{about, bytes, note, plural, shape, shortened, shown};
use super::{Checking, Converting, Inspecting, Palette, Screen, Shown, Totals, grouped, in_order};

/// The report of `inspect`: a table for each file, then the totals.
#[derive(Debug)]
pub(crate) struct Tables {
    /// A file was shown before.
    after_another: bool,
}

impl Tables {
    pub(crate) fn new() -> Self {
        Self { after_another: false }
    }
}

impl Inspecting for Tables {
    fn begin(&mut self, _screen: &mut Screen) -> io::Result<()> {
        Ok(())
    }

    fn file(&mut self, screen: &mut Screen, file: &Shown<'_>) -> io::Result<()> {
        if self.after_another {
            writeln!(screen.out)?;
        }
        self.after_another = true;
        heading(screen, file)?;
        about_the_file(screen, &file.model.index())?;
        if file.entries.is_empty() {
            return Ok(());
        }
        writeln!(screen.out)?;
        tensors(screen, file.entries)
    }

    fn end(&mut self, screen: &mut Screen, totals: &Totals, files: u64) -> io::Result<()> {
        if files == 0 {
            return Ok(());
        }
        writeln!(screen.out)?;
        let title =
            if files == 1 { "total".to_string() } else { format!("total of {}", plural(files, "file")) };
        let columns = [
            (title.as_str(), Align::Left),
            ("tensors", Align::Right),
            ("parameters", Align::Right),
            ("bytes", Align::Right),
            ("", Align::Left),
        ];
        let mut by_dtype: Vec<_> = totals.by_dtype.iter().collect();
        by_dtype.sort_by_key(|(dtype, sum)| (Reverse(sum.bytes), Reverse(**dtype)));
        let sums = by_dtype.into_iter().map(|(dtype, sum)| (dtype.name(), sum));
        let rows = sums.chain([("all", &totals.all)]).map(|(name, sum)| sum_row(name, sum));
        Table::new(2, columns).print(&mut screen.out, screen.width, screen.palette.strong, rows)
    }
}

/// The columns: tensors, parameters, bytes, and the last in words.
fn sum_row(name: &str, sum: &Sum) -> [String; 5] {
    [name.into(), grouped(sum.tensors), grouped(sum.parameters), grouped(sum.bytes), bytes(sum.bytes)]
}

fn heading(screen: &mut Screen, file: &Shown<'_>) -> io::Result<()> {
    let (frame, index) = (file.model.frame(), file.model.index());
    let mut all = Sum::default();
    index.iter().for_each(|entry| all += Sum::of(&entry));
    let Palette { strong, dim, .. } = screen.palette;
    writeln!(
        screen.out,
        "{strong}{}{strong:#}: {}, {} parameter{}, {} {dim}(header {}, data from byte {}){dim:#}",
        terminal_safe(file.path),
        plural(all.tensors, "tensor"),
        about(all.parameters),
        if all.parameters == 1 { "" } else { "s" },
        bytes(frame.file_len().value()),
        bytes(frame.header_len().value()),
        frame.data_span().begin(),
    )?;
    let chosen = file.entries.len() as u64;
    if chosen != all.tensors {
        writeln!(screen.out, "  {dim}filter{dim:#}    {} of them", plural(chosen, "tensor"))?;
    }
    Ok(())
}

/// The metadata, of which a long value loses its middle on a terminal, and the notes.
fn about_the_file(screen: &mut Screen, index: &Index<'_, '_>) -> io::Result<()> {
    let Palette { dim, note: yellow, .. } = screen.palette;
    let room = screen.width.map_or(usize::MAX, |width| width.saturating_sub(METADATA.width()));
    for (key, value) in index.metadata().into_iter().flatten() {
        let pair = terminal_safe(&format!("{key}: {value}")).to_string();
        writeln!(screen.out, "{dim}{METADATA}{dim:#}{}", shortened(&pair, room))?;
    }
    for found in index.notes() {
        writeln!(screen.out, "  {yellow}note{yellow:#}      {}", note(&found))?;
    }
    Ok(())
}

const METADATA: &str = "  metadata  ";

fn tensors(screen: &mut Screen, entries: &[Entry<'_>]) -> io::Result<()> {
    let columns = [
        ("name", Align::Left),
        ("dtype", Align::Left),
        ("shape", Align::Left),
        ("parameters", Align::Right),
        ("bytes", Align::Right),
        ("offset", Align::Right),
    ];
    let rows = entries.iter().map(|entry| {
        let sum = Sum::of(entry);
        [
            shown(&entry.name()),
            entry.dtype().name().into(),
            shape(&entry.shape()),
            grouped(sum.parameters),
            bytes(sum.bytes),
            grouped(entry.span().begin().value()),
        ]
    });
    Table::new(2, columns).print(&mut screen.out, screen.width, screen.palette.strong, rows)
}

/// The reports of `check`, a line for each file and its notes, and of `convert`, a line and a table.
#[derive(Debug)]
pub(crate) struct Lines;

impl Checking for Lines {
    fn good(&self, screen: &mut Screen, path: &Path, notes: Notes<'_>) -> io::Result<()> {
        let Palette { good, note: yellow, .. } = screen.palette;
        writeln!(screen.out, "{}: {good}good{good:#}", terminal_safe(path))?;
        for found in notes {
            writeln!(screen.out, "  {yellow}{}{yellow:#}: {}", found.kind.id(), note(&found))?;
        }
        Ok(())
    }

    fn bad(&self, screen: &mut Screen, path: &Path, bad: &BadFile) -> io::Result<()> {
        screen.out.write_all(verdict(path, bad, &screen.palette).as_bytes())
    }

    fn end(&self, screen: &mut Screen, good: u64, bad: u64, unreadable: u64) -> io::Result<()> {
        let files = good.saturating_add(bad).saturating_add(unreadable);
        if files > 1 {
            let mut parts = vec![format!("{} good", grouped(good))];
            parts.extend((bad > 0).then(|| format!("{} bad", grouped(bad))));
            parts.extend((unreadable > 0).then(|| format!("{} unreadable", grouped(unreadable))));
            screen.remark(&format!("{}: {}", plural(files, "file"), parts.join(", ")));
        }
        Ok(())
    }
}

impl Converting for Lines {
    fn converted(&self, screen: &mut Screen, output: &Path, done: &Converted) -> io::Result<()> {
        let Palette { good, .. } = screen.palette;
        let (mut all, mut changed) = (0_u64, 0_u64);
        for ((from, to), pair) in &done.pairs {
            all = all.saturating_add(pair.tensors);
            changed = changed.saturating_add(if from == to { 0 } else { pair.tensors });
        }
        let of = if changed == all {
            plural(all, "tensor")
        } else {
            format!("{} of {}", grouped(changed), plural(all, "tensor"))
        };
        writeln!(
            screen.out,
            "{}: {good}written{good:#}, {of} converted, {} became {}",
            terminal_safe(output),
            bytes(done.bytes_before),
            bytes(done.bytes_after),
        )?;
        if all == 0 {
            return Ok(());
        }
        writeln!(screen.out)?;
        let columns = [
            ("from", Align::Left),
            ("to", Align::Left),
            ("tensors", Align::Right),
            ("before", Align::Right),
            ("after", Align::Right),
        ];
        let pairs = in_order(done);
        let rows = pairs.iter().map(|((from, to), pair)| {
            [
                from.name().into(),
                if from == to { "as it was" } else { to.name() }.into(),
                grouped(pair.tensors),
                bytes(pair.bytes_before),
                bytes(pair.bytes_after),
            ]
        });
        Table::new(2, columns).print(&mut screen.out, screen.width, screen.palette.strong, rows)
    }
}

/// The line of a bad file: path, rule, byte, tensor, what was expected, what was found.
pub(super) fn verdict(path: &Path, file: &BadFile, palette: &Palette) -> String {
    let Palette { bad, .. } = palette;
    let rule = file.error.rule();
    let id = rule.map_or("unjudged", Rule::id);
    let name = match (&file.name, rule) {
        (None, _) => String::new(),
        // Rules R2 and R3 are about keys, which need not be names of tensors.
        (Some(name), Some(rule)) if rule < Rule::Field => format!(", \"{}\"", shown(name)),
        (Some(name), _) => format!(", tensor \"{}\"", shown(name)),
    };
    let message = file.message();
    format!(
        "{}: {bad}{id}{bad:#} at byte {}{name}: {}\n",
        terminal_safe(path),
        file.error.at(),
        terminal_safe(&message)
    )
}

/// What `rewrite` has done.
pub(crate) fn rewritten(screen: &mut Screen, output: &Path, done: &Rewritten) -> io::Result<()> {
    let Palette { good, .. } = screen.palette;
    let tensors = plural(done.tensors as u64, "tensor");
    writeln!(
        screen.out,
        "{}: {good}written{good:#}, {tensors} in canonical layout, {}",
        terminal_safe(output),
        bytes(done.file_bytes)
    )
}
