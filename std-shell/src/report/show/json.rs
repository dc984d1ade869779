//! A part of a tensor becomes one JSON document, of which each value is printed as it comes.

use std::io::{self, Write};

use safestep::{Block, Counts, Histogram, Stats};
use safestep_core::Dtype;
use safestep_core::numbers::Number;

use super::{Form, Part};
use crate::report::json::{Dims, Text, put};
use crate::report::{Screen, Trouble};

/// All values, or codes.
pub(crate) fn values(screen: &mut Screen, part: &Part<'_>) -> Result<(), Trouble> {
    let out = &mut screen.out;
    let key = match part.form {
        Form::Values => "values",
        Form::Codes => "codes",
    };
    begin(out, part, key)?;
    if part.elements() == 0 {
        write!(out, "[]")?;
    } else {
        let mut nest = Nest::new(part);
        part.each_block(|block| {
            match part.form {
                Form::Values => {
                    block.numbers().try_for_each(|number| nest.put(out, |out| value(out, &number)))
                }
                Form::Codes => {
                    block.codes().try_for_each(|found| nest.put(out, |out| code(out, block, found)))
                }
            }?;
            Ok::<_, Trouble>(true)
        })?;
    }
    writeln!(out, "}}")?;
    Ok(())
}

/// What every document says, up to the value of `key`.
fn begin(out: &mut impl Write, part: &Part<'_>, key: &str) -> io::Result<()> {
    write!(out, "{{\"name\":")?;
    put(out, &Text(part.entry.name()))?;
    write!(out, ",\"dtype\":\"{}\",\"shape\":", part.entry.dtype())?;
    put(out, &Dims(part.entry.shape()))?;
    write!(out, ",\"slice_shape\":")?;
    list(out, part.dims(), |out, dim| write!(out, "{dim}"))?;
    write!(out, ",\"{key}\":")
}

/// Where a value stands in lists of lists.
struct Nest {
    /// The lengths of the lists, outermost first, and how many are in the list at hand.
    lists: Vec<(u64, u64)>,
}

impl Nest {
    fn new(part: &Part<'_>) -> Self {
        Self { lists: part.dims().map(|len| (len, 0)).collect() }
    }

    /// Prints the next value, with the brackets before and behind it.
    fn put<W: Write>(&mut self, out: &mut W, value: impl FnOnce(&mut W) -> io::Result<()>) -> io::Result<()> {
        let begun = self.lists.iter().rev().take_while(|(_, done)| *done == 0).count();
        if begun < self.lists.len() {
            write!(out, ",")?;
        }
        (0..begun).try_for_each(|_| write!(out, "["))?;
        value(out)?;
        for (len, done) in self.lists.iter_mut().rev() {
            *done += 1;
            if *done < *len {
                break;
            }
            *done = 0;
            write!(out, "]")?;
        }
        Ok(())
    }
}

fn value(out: &mut impl Write, number: &Number) -> io::Result<()> {
    match *number {
        Number::Complex([real, imaginary]) => {
            write!(out, "[")?;
            value(out, &Number::F32(real))?;
            write!(out, ",")?;
            value(out, &Number::F32(imaginary))?;
            write!(out, "]")
        }
        Number::F32(float) if !float.is_finite() => odd(out, float.into()),
        Number::F64(float) if !float.is_finite() => odd(out, float),
        Number::F32(float) => write!(out, "{float:?}"),
        Number::F64(float) => write!(out, "{float:?}"),
        Number::Bool(_) | Number::Unsigned(_) | Number::Signed(_) => write!(out, "{number}"),
    }
}

/// JSON has no such numbers.
fn odd(out: &mut impl Write, float: f64) -> io::Result<()> {
    let name = match float {
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "NaN",
    };
    write!(out, "\"{name}\"")
}

fn code(out: &mut impl Write, block: &Block<'_>, code: u64) -> io::Result<()> {
    match block.dtype() {
        Dtype::C64 => write!(out, "[{},{}]", code & u64::from(u32::MAX), code >> 32),
        _ => write!(out, "{code}"),
    }
}

/// The statistics.
pub(crate) fn stats(screen: &mut Screen, part: &Part<'_>, stats: &Stats) -> Result<(), Trouble> {
    let out = &mut screen.out;
    begin(out, part, "stats")?;
    let Counts { elements, zeros, nan, positive_infinities, negative_infinities, .. } = stats.counts;
    let of = if part.entry.dtype() == Dtype::C64 { "magnitudes" } else { "values" };
    write!(
        out,
        "{{\"of\":\"{of}\",\"elements\":{elements},\"zeros\":{zeros},\"nan\":{nan},\
         \"positive_infinities\":{positive_infinities},\"negative_infinities\":{negative_infinities}"
    )?;
    if part.entry.dtype() == Dtype::Bool {
        write!(out, ",\"not_boolean\":{}", stats.counts.not_boolean)?;
    }
    let numbers = [
        ("min", stats.min),
        ("max", stats.max),
        ("mean", stats.mean.map(Number::F64)),
        ("std", stats.std.map(Number::F64)),
    ];
    for (key, number) in numbers {
        write!(out, ",\"{key}\":")?;
        match number {
            Some(number) => value(out, &number)?,
            None => write!(out, "null")?,
        }
    }
    write!(out, ",\"histogram\":")?;
    match &stats.histogram {
        Some(found) => histogram(out, found)?,
        None => write!(out, "null")?,
    }
    writeln!(out, "}}}}")?;
    Ok(())
}

fn histogram(out: &mut impl Write, histogram: &Histogram) -> io::Result<()> {
    write!(out, "{{\"edges\":")?;
    list(out, histogram.edges(), |out, edge| value(out, &Number::F64(*edge)))?;
    write!(out, ",\"counts\":")?;
    list(out, histogram.counts(), |out, count| write!(out, "{count}"))?;
    write!(out, "}}")
}

fn list<W: Write, T>(
    out: &mut W,
    items: impl IntoIterator<Item = T>,
    put: impl Fn(&mut W, T) -> io::Result<()>,
) -> io::Result<()> {
    let mut separator = "[";
    for item in items {
        write!(out, "{}", std::mem::replace(&mut separator, ","))?;
        put(out, item)?;
    }
    write!(out, "{}", if separator == "[" { "[]" } else { "]" })
}
