//! Why a checkpoint and a snapshot are not each other's: which parameter, what was expected, what was found.

use std::fmt;

use safestep_core::Dtype;

use super::terminal_safe;

/// Why a checkpoint has no snapshot, or a snapshot no checkpoint, under a list of parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadArrays {
    /// The list holds a parameter twice.
    Twice {
        /// The parameter's name.
        name: String,
    },
    /// The checkpoint lacks an array.
    Missing {
        /// The array's name.
        name: String,
        /// The file that was to hold it.
        file: &'static str,
    },
    /// The checkpoint holds an array for which the snapshot has no place, so it would be lost.
    Unplaced {
        /// The array's name.
        name: String,
        /// The file that holds it.
        file: &'static str,
    },
    /// An array of another dtype than F32; nothing is converted unasked.
    Dtype {
        /// The array's name.
        name: String,
        /// Its dtype.
        found: Dtype,
    },
    /// An array of another shape than the list says.
    Shape {
        /// The array's name.
        name: String,
        /// The shape in the list.
        expected: Vec<u64>,
        /// The array's.
        found: Vec<u64>,
    },
    /// The list ends before the regions do, or after them.
    Count {
        /// The parameter at which that shows; none in an empty list.
        name: Option<String>,
        /// How many numbers the list has up to and with it.
        expected: u64,
        /// How many each region has.
        found: u64,
    },
}

impl std::error::Error for BadArrays {}

impl fmt::Display for BadArrays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice { name } => {
                write!(
                    f,
                    "\"{}\": expected each parameter once in the list, found it twice",
                    terminal_safe(name)
                )
            }
            Self::Missing { name, file } => {
                write!(f, "\"{}\": expected in {file}, found no such array", terminal_safe(name))
            }
            Self::Unplaced { name, file } => {
                let name = terminal_safe(name);
                write!(f, "\"{name}\": expected no array without a place in the snapshot, found it in {file}")
            }
            Self::Dtype { name, found } => {
                let name = terminal_safe(name);
                write!(f, "\"{name}\": expected F32, found {found}, and nothing is converted unasked")
            }
            Self::Shape { name, expected, found } => {
                write!(f, "\"{}\": expected shape {expected:?}, found {found:?}", terminal_safe(name))
            }
            Self::Count { name, expected, found } => {
                write!(f, "expected {expected} numbers in each region")?;
                if let Some(name) = name {
                    write!(f, " up to \"{}\"", terminal_safe(name))?;
                }
                write!(f, ", found {found}")
            }
        }
    }
}
