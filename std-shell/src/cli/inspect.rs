//! PATHs become tables of what is in the files, from their headers alone.

use std::cmp::Reverse;

use clap::{Args, ValueEnum};
use globset::GlobMatcher;
use safestep::{Access, Error, Model};
use safestep_core::{Entry, Limits};

use super::sources::Sources;
use super::{Exit, Failure, Tally, pattern};
use crate::report::{Inspecting, Screen, Shown, Totals, human, json};

/// Show what is in model files: tensors, metadata, totals
///
/// Reads headers only, so a file of 100 GB answers at once. Files that cannot be read or are judged bad are reported
/// on standard error, and the others are shown.
///
/// In the table, "offset" is where the bytes of a tensor begin, counted from the start of the data as in the header's
/// data_offsets; sizes are decimal (1 kB = 1000 bytes). Where the table is wider than the terminal, names get lines of their
/// own; names over 256 columns lose their middle.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(super) struct Arguments {
    #[command(flatten)]
    sources: Sources,

    /// Show only tensors whose name matches; may be given several times.
    ///
    /// `*` stands for any characters, `?` for one, `[ab]` for one of them, `{this,that}` for either. The whole name has
    /// to match. Totals are of what is shown.
    #[arg(short, long, value_name = "GLOB", value_parser = pattern::parse)]
    filter: Vec<GlobMatcher>,

    /// What the tensors are sorted by.
    #[arg(short, long, value_name = "KEY", value_enum, default_value_t, conflicts_with = "json")]
    #[arg(hide_possible_values = true, help = "Sort tensors by offset, name or size [default: offset]")]
    #[arg(hide_default_value = true)]
    sort: Sort,

    /// Print one JSON document, with tensors by offset.
    ///
    /// Its keys: files, a list of objects with path, header_bytes, data_bytes, metadata (an object of strings, or null),
    /// notes (each with id and message) and tensors (each with name, dtype, shape, begin and end); and totals, an object
    /// with tensors, parameters, bytes and by_dtype, which has these three for each dtype. Bytes of a path that are no UTF-8 become U+FFFD.
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  safestep inspect model.safetensors
  safestep inspect --sort size --filter '*.weight' models/
  safestep inspect --json model.safetensors | jq '.totals.by_dtype'

Exit codes:
  0  all good
  1  at least one is bad
  2  wrong usage
  3  a file could not be read (whatever the others are)";

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Sort {
    #[default]
    Offset,
    Name,
    /// The largest first.
    Size,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    let mut report: Box<dyn Inspecting> =
        if arguments.json { Box::new(json::Document::new()) } else { Box::new(human::Tables::new()) };
    let (mut totals, mut tally) = (Totals::default(), Tally::default());
    report.begin(screen)?;
    for file in arguments.sources.files() {
        let model = file.and_then(|path| Model::open(path, Access::Read, Limits::default()));
        let entries = model.as_ref().map_or(Ok(Vec::new()), |model| arguments.choose(model));
        match (&model, &entries) {
            (Ok(model), Ok(entries)) => {
                tally.good += 1;
                entries.iter().for_each(|entry| totals.add(entry));
                report.file(screen, &Shown { path: model.path(), model, entries })?;
            }
            (Err(error), _) | (_, Err(error)) => {
                tally.count(error.blame());
                screen.complain_of(error);
            }
        }
    }
    report.end(screen, &totals, tally.good)?;
    Ok(tally.exit())
}

impl Arguments {
    /// The tensors to be shown, in their order.
    fn choose<'m>(&self, model: &'m Model) -> Result<Vec<Entry<'m>>, Error> {
        let (tensors, mut entries) = (model.index().iter(), Vec::new());
        let room = entries.try_reserve_exact(tensors.len());
        room.map_err(|error| Error::io("show", model.path(), error.into()))?;
        entries.extend(tensors);
        if !self.filter.is_empty() {
            entries.retain(|entry| {
                let name = entry.name().to_string();
                self.filter.iter().any(|glob| glob.is_match(&name))
            });
        }
        match self.sort {
            Sort::Offset => {}
            // In place, where a stable sort would take memory.
            Sort::Name => entries.sort_unstable_by_key(Entry::name),
            Sort::Size => {
                entries.sort_unstable_by_key(|entry| {
                    (Reverse(entry.span().len()), entry.span().begin(), entry.name())
                });
            }
        }
        Ok(entries)
    }
}
