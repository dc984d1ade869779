//! A good model file becomes the same tensors in other floating dtypes.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{ArgGroup, Args};
use globset::GlobMatcher;
use safestep::{Access, Cause, FLOATS, Model, Refusal, convert, terminal_safe};
use safestep_core::numbers::{self, OutOfRange};
use safestep_core::{Dtype, Entry, Limits};

use super::interrupt::Interruptible;
use super::{Exit, Failure, pattern};
use crate::report::{Converting, Screen, human, json, plural, tensor_name};

/// Write the same tensors in another floating dtype
///
/// Values are rounded to nearest, ties to even, those of F64 once. A value that the new dtype does not hold stops it: the
/// tensor, the element and the value are named, and OUT is as it was. What "does not hold" means: F16, BF16, F8_E5M2 and F32
/// overflow to infinity as IEEE 754 says; the others have none, so there a value beyond the largest is refused, as NaN is in
/// F6 and F4, and zero and negative values in F8_E8M0.
///
/// Tensors that are no floats (integers, BOOL, C64) are copied as they are, and so are F8_E8M0 tensors, which are scales of
/// other tensors: --to leaves them alone, only a --tensor that names them converts them. What keeps its dtype is copied bit
/// for bit. Metadata is kept; the layout is the canonical one.
///
/// OUT appears whole and durable or not at all; an old OUT stays as it was until then, keeps its permissions, and may be
/// IN itself. When interrupted, nothing is left behind. A bad IN gets its verdict and writes nothing.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
#[command(group(ArgGroup::new("wish").args(["to", "tensor"]).required(true).multiple(true)))]
pub(super) struct Arguments {
    /// The model file to read.
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// The model file to write; it is replaced if it is there.
    #[arg(value_name = "OUT")]
    output: PathBuf,

    /// The dtype that floats become: F64, F32, BF16, F16, F8_E4M3, ...
    ///
    /// One of F64, F32, BF16, F16, F8_E4M3, F8_E5M2, F8_E4M3FNUZ, F8_E5M2FNUZ, F8_E8M0, F6_E2M3, F6_E3M2, F4,
    /// in capitals or not.
    #[arg(short, long, value_name = "DTYPE", value_parser = float(), hide_possible_values = true)]
    #[arg(ignore_case = true)]
    to: Option<Dtype>,

    /// The dtype of tensors whose name matches; may be given several times, the last that matches counts.
    ///
    /// Patterns are those of 'inspect --filter': `*` stands for any characters, `?` for one, `[ab]` for one of them,
    /// `{this,that}` for either, and the whole name has to match. One tensor that matches has to be a float; those that are none are left as
    /// they are. Without --to, the others keep their dtype.
    #[arg(long, value_name = "GLOB=DTYPE", value_parser = exception)]
    tensor: Vec<Exception>,

    /// Let the largest value of the dtype take the place of those beyond it, and of infinity.
    #[arg(long)]
    saturate: bool,

    /// Print what was done as one JSON document.
    ///
    /// An object of path, bytes_before, bytes_after and tensors: for each pair of dtypes from, to, tensors,
    /// bytes_before and bytes_after. Tensors that were copied have the same "from" and "to".
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  safestep convert model.safetensors half.safetensors --to BF16
  safestep convert model.safetensors model.safetensors --to F16      in place
  safestep convert in.safetensors out.safetensors --to F8_E4M3 --tensor '*norm*=F32' --saturate

Exit codes:
  0    OUT is written
  1    IN is bad, or has a value that the new dtype does not hold
  2    wrong usage; a --tensor that matches nothing, or no float; elements that do not fill whole bytes
  3    IN could not be read, or OUT not written
  130  interrupted (143: by SIGTERM)";

/// Tensors that become something else than the others.
#[derive(Clone, Debug)]
struct Exception {
    glob: GlobMatcher,
    dtype: Dtype,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    let (input, output) = (&arguments.input, &arguments.output);
    let model = Model::open(input, Access::Read, Limits::default())?;
    if let Err(complaint) = arguments.make_sense_for(&model) {
        screen.complain(&complaint);
        return Ok(Exit::Usage);
    }
    let disk = Interruptible::install(output)?;
    let mut bar = screen.bar();
    let beyond = if arguments.saturate { OutOfRange::Saturate } else { OutOfRange::Refuse };
    let target = |entry: &Entry<'_>| arguments.target(entry);
    let mut progress = |done, total| bar.progress(done, total);
    let done = convert(&disk, &model, output, &target, beyond, &mut progress);
    bar.clear();
    let converted = match disk.settle(done) {
        Ok(converted) => converted,
        Err(failure) => return arguments.advise(failure, &model, screen),
    };
    let report: &dyn Converting = if arguments.json { &json::Lines } else { &human::Lines };
    report.converted(screen, output, &converted)?;
    let left = model.index().iter().filter(|entry| arguments.leaves(entry)).count();
    if left > 0 {
        let tensors = plural(u64::try_from(left).unwrap_or(u64::MAX), "tensor");
        screen.remark(&format!("left as it was: {tensors} that a --tensor names, but no float"));
    }
    Ok(Exit::Good)
}

impl Arguments {
    /// What the tensor becomes.
    fn target(&self, entry: &Entry<'_>) -> Dtype {
        let found = entry.dtype();
        let name = entry.name().to_string();
        let exception = self.tensor.iter().rev().find(|exception| exception.glob.is_match(&name));
        match (exception, self.to) {
            _ if !FLOATS.contains(&found) => found,
            (Some(exception), _) => exception.dtype,
            (None, Some(to)) if found != Dtype::F8E8M0 => to,
            (None, _) => found,
        }
    }

    /// Whether a --tensor names what cannot be converted.
    fn leaves(&self, entry: &Entry<'_>) -> bool {
        !FLOATS.contains(&entry.dtype()) && {
            let name = entry.name().to_string();
            self.tensor.iter().any(|exception| exception.glob.is_match(&name))
        }
    }

    /// A value that is out of range can be saturated, and a tensor that does not fill whole bytes left out; who did not know
    /// that learns it.
    fn advise(&self, failure: Failure, model: &Model, screen: &mut Screen) -> Result<Exit, Failure> {
        let Failure::File(error) = &failure else { return Err(failure) };
        match error.because() {
            Cause::Number(bad) if bad.error.refusal == numbers::Refusal::OutOfRange && !self.saturate => {
                screen.complain_of(error);
                screen.remark(
                    "with --saturate it becomes the largest value; with --tensor GLOB=DTYPE its tensor becomes something else",
                );
                Ok(Exit::Bad)
            }
            Cause::Refused(Refusal::Bits { name, .. }) => {
                screen.complain_of(error);
                let found = model.index().get(name).map_or("DTYPE", |entry| entry.dtype().name());
                let glob = globset::escape(name);
                screen.remark(&format!(
                    "with --tensor '{}={found}' it stays as it is, or becomes what is named in its place",
                    terminal_safe(&glob)
                ));
                Ok(Exit::Usage)
            }
            _ => Err(failure),
        }
    }

    /// Whether each --tensor names a float.
    fn make_sense_for(&self, model: &Model) -> Result<(), String> {
        for Exception { glob, dtype } in &self.tensor {
            let given = format!("--tensor '{}={dtype}'", glob.glob());
            let index = model.index();
            let matching = || index.iter().filter(|entry| glob.is_match(entry.name().to_string()));
            let Some(first) = matching().next() else {
                return Err(format!("{given}: no tensor has such a name"));
            };
            if !matching().any(|entry| FLOATS.contains(&entry.dtype())) {
                let (name, found) = (tensor_name(&first.name()), first.dtype());
                return Err(format!("{given}: \"{name}\" is {found}, and only floats become other floats"));
            }
        }
        Ok(())
    }
}

/// One of the dtypes that can be converted to.
fn float() -> impl clap::builder::TypedValueParser<Value = Dtype> {
    PossibleValuesParser::new(FLOATS.map(Dtype::name)).try_map(|name| named(&name).ok_or("no dtype"))
}

/// The dtype of that name, in capitals or not: only in a file does case count.
fn named(name: &str) -> Option<Dtype> {
    Dtype::from_name(&name.to_ascii_uppercase())
}

fn exception(text: &str) -> Result<Exception, String> {
    let Some((glob, name)) = text.rsplit_once('=') else {
        return Err("expected GLOB=DTYPE, found no '='".into());
    };
    let dtype = named(name).filter(|dtype| FLOATS.contains(dtype)).ok_or_else(|| {
        let floats = FLOATS.map(Dtype::name).join(", ");
        format!("expected a floating dtype ({floats}), found {name:?}")
    })?;
    Ok(Exception { glob: pattern::parse(glob)?, dtype })
}
