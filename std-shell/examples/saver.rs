//! A made-up training run -> one checkpoint after the other, by a process that tests can kill.
//!
//! ```text
//! saver DIRECTORY FIRST COUNT BYTES [--keep N] [--without RULE] [--portions BYTES] [--paced]
//! ```
//!
//! It saves COUNT steps from FIRST on, each with so many BYTES beside the small tensors, keeps the last N (2), and says
//! `saved STEP` when a step is durable. With `--paced` it then waits for a line on standard input. `--without` switches a rule
//! of the protocol off, `--portions` has many threads write as if the state were large. Exit code 3 and a line on standard error say that a save failed.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use safestep::OsDisk;
use safestep::checkpoint::{Retention, SaveOptions, save};
use safestep_tests::runs::{Run, in_portions, protocol_without};

/// What to do.
struct Plan {
    directory: PathBuf,
    first: u64,
    count: u64,
    len_bytes: usize,
    options: SaveOptions,
    paced: bool,
}

impl Plan {
    /// Reads the arguments; `None` if they are not as above.
    fn read(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut plan = Self {
            directory: arguments.next()?.into(),
            first: arguments.next()?.parse().ok()?,
            count: arguments.next()?.parse().ok()?,
            len_bytes: arguments.next()?.parse().ok()?,
            options: SaveOptions { retention: Retention::last(2), ..SaveOptions::default() },
            paced: false,
        };
        while let Some(flag) = arguments.next() {
            match flag.as_str() {
                "--keep" => plan.options.retention = Retention::last(arguments.next()?.parse().ok()?),
                "--without" => plan.options.protocol = protocol_without(&arguments.next()?)?,
                "--portions" => {
                    let SaveOptions { threads, thresholds, .. } =
                        in_portions(arguments.next()?.parse().ok()?);
                    (plan.options.threads, plan.options.thresholds) = (threads, thresholds);
                }
                "--paced" => plan.paced = true,
                _ => return None,
            }
        }
        Some(plan)
    }

    fn carry_out(&self) -> Result<(), Box<dyn std::error::Error>> {
        for step in self.first..self.first.saturating_add(self.count) {
            let run = Run::sized(step, self.len_bytes);
            let saved = run.with(|state| save(&OsDisk, &self.directory, state, &self.options))?;
            for leftover in saved.retained.leftovers {
                eprintln!("saver: {} stays: {}", leftover.path.display(), leftover.because);
            }
            // Rust's standard output hands on every whole line.
            writeln!(io::stdout(), "saved {step}")?;
            if self.paced {
                io::stdin().read_line(&mut String::new())?;
            }
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    let Some(plan) = Plan::read(std::env::args().skip(1)) else {
        eprintln!(
            "usage: saver DIRECTORY FIRST COUNT BYTES [--keep N] [--without RULE] [--portions BYTES] [--paced]"
        );
        return ExitCode::from(2);
    };
    match plan.carry_out() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where nobody listens there is nobody to tell.
            let _ = writeln!(io::stderr(), "saver: {error}");
            ExitCode::from(3)
        }
    }
}
