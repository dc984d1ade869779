//! A FILE and the name of a TENSOR become its values, or what can be said of them in numbers.

mod near;
mod slice;

use std::path::PathBuf;

use clap::Args;
use safestep::{Access, Block, Error, Extent, Model, Spread, Stats, terminal_safe};
use safestep_core::{Entry, Limits};

use self::near::near;
use self::slice::SliceText;
use super::interrupt::Interrupt;
use super::{Exit, Failure};
use crate::report::show::{human, json};
use crate::report::{Bar, Form, Part, Picked, Screen, Trouble};

/// Show the values of a tensor, or statistics of them
///
/// Of a large tensor the corners are shown, as many columns as fit the terminal, with the index of each row and column.
/// Only what is shown is read. Numbers are exact: of floats of at most 32 bits the fewest digits that read back as the same
/// F32, of F64 the fewest that read back as the same F64.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// The model file.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The name of the tensor; 'safestep inspect FILE' lists them.
    #[arg(value_name = "TENSOR")]
    tensor: String,

    /// Take a part of it, as in Python: 0:2,:,::2
    ///
    /// For each dimension an index, or a range `start:stop:step` of which each part may be left out, after a comma each;
    /// dimensions that are not named are taken whole. Negative numbers count from the end. Ranges are clipped to the
    /// dimension; an index must be in it, and takes its dimension away. Steps are positive.
    #[arg(short, long, value_name = "SLICE", allow_hyphen_values = true)]
    slice: Option<SliceText>,

    /// Say what can be said of all values: extremes, mean, histogram.
    ///
    /// Minimum, maximum, mean, standard deviation (of the population: divided by the count) and histogram are of the
    /// finite values; zeros, NaN and infinities are counted, and bytes of BOOL that are neither 0 nor 1. Truth values are 0 and 1; of complex numbers it is the
    /// magnitudes. Reads the values twice, in constant memory.
    #[arg(long)]
    stats: bool,

    /// Show the codes as they are stored, in hexadecimal.
    ///
    /// As many digits as the dtype needs. A complex number has two: real and imaginary part.
    #[arg(long, conflicts_with = "stats")]
    raw: bool,

    /// Print one JSON document, with all values.
    ///
    /// {"name","dtype","shape","slice_shape","values"}: values are lists in lists as deep as slice_shape is long (a
    /// scalar is in none; without elements it is []). A BOOL byte other than 0 and 1 is the number that it is. Non-finite values are "NaN", "Infinity" and "-Infinity", complex
    /// numbers [real,imaginary]; 64-bit integers are plain. With --raw, "codes" in place of "values": integers. With
    /// --stats, "stats": {"of":"values"|"magnitudes","elements","zeros","nan","positive_infinities",
    /// "negative_infinities","min","max","mean","std","histogram":{"edges","counts"}}, with null where no value is finite;
    /// a bin holds its lower edge and not its upper one (the last one also the largest f64). Of BOOL there is a count
    /// "not_boolean" as well: bytes other than 0 and 1, which take part in nothing else.
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  safestep show model.safetensors lm_head.weight
  safestep show model.safetensors lm_head.weight --slice 0:10,-1
  safestep show model.safetensors lm_head.weight --stats
  safestep show model.safetensors lm_head.weight --json --slice 0 | jq '.values | add'

Exit codes:
  0    it was shown
  1    FILE is bad
  2    wrong usage; also: FILE has no such tensor, or the slice does not fit it
  3    FILE could not be read
  130  interrupted (143: by SIGTERM)";

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    let model = Model::open(&arguments.file, Access::Read, Limits::default())?;
    let index = model.index();
    let entry = index.get(&arguments.tensor).ok_or_else(|| unknown(arguments, &model))?;
    let picks = arguments.picks(&entry).map_err(Failure::Usage)?;
    let form = if arguments.raw { Form::Codes } else { Form::Values };
    let part = Part::new(&model, entry, picks, arguments.slice.is_some(), form);
    match (arguments.stats, arguments.json) {
        (false, false) => human::values(screen, &part)?,
        (false, true) => json::values(screen, &part)?,
        (true, json) => {
            let stats = stats(&part, screen)?;
            if json { json::stats(screen, &part, &stats)? } else { human::stats(screen, &part, &stats)? }
        }
    }
    Ok(Exit::Good)
}

impl Arguments {
    fn picks(&self, entry: &Entry<'_>) -> Result<Vec<Picked>, String> {
        match &self.slice {
            Some(slice) => slice.of(&entry.shape()),
            None => Ok(entry.shape().dims().map(Picked::whole).collect()),
        }
    }
}

fn unknown(arguments: &Arguments, model: &Model) -> Failure {
    let index = model.index();
    let near = near(&index, &arguments.tensor);
    let hint = match near.as_slice() {
        [] if index.is_empty() => "it has none".to_string(),
        [] => "'safestep inspect' lists what it has".to_string(),
        names => {
            let names: Vec<String> =
                names.iter().map(|name| format!("\"{}\"", terminal_safe(name))).collect();
            format!("did you mean {}?", names.join(" or "))
        }
    };
    let (file, name) = (terminal_safe(&arguments.file), terminal_safe(&arguments.tensor));
    Failure::Usage(format!("{file} has no tensor \"{name}\"; {hint}"))
}

/// Both passes over the values, with a bar if it takes long.
fn stats(part: &Part<'_>, screen: &Screen) -> Result<Stats, Failure> {
    let interrupt =
        Interrupt::install().map_err(|error| Error::io("catch signals while reading", part.path(), error))?;
    let mut watch = Watch { interrupt, bar: screen.bar(), done: 0, total: part.bytes().saturating_mul(2) };
    let stats = passes(part, &mut watch);
    watch.bar.clear();
    stats
}

fn passes(part: &Part<'_>, watch: &mut Watch) -> Result<Stats, Failure> {
    let mut extent = Extent::default();
    pass(part, watch, |block| extent.add(block))?;
    let mut spread = Spread::of(extent);
    pass(part, watch, |block| spread.add(block))?;
    Ok(spread.finish())
}

struct Watch {
    interrupt: Interrupt,
    bar: Bar,
    done: u64,
    total: u64,
}

fn pass(part: &Part<'_>, watch: &mut Watch, mut take: impl FnMut(&Block<'_>)) -> Result<(), Failure> {
    part.each_block(|block| {
        take(block);
        watch.done = watch.done.saturating_add(part.bytes_of(block.elements()));
        watch.bar.progress(watch.done, watch.total);
        Ok::<_, Trouble>(watch.interrupt.signal().is_none())
    })?;
    watch.interrupt.signal().map_or(Ok(()), |signal| Err(Failure::Interrupted { signal, left: "" }))
}
