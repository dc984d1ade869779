//! Slices of numbers become a table of speeds: every format, both ways, at every level of this machine, beside memcpy and
//! the crates that do the same; and what was promised of them.
//!
//! `cargo bench -p safestep --bench numbers` runs everything; behind `--`, `--quick` takes few samples, `--only TEXT` times
//! only rows with that text in their names, `--json FILE` writes the numbers down as well, `--strict` ends with exit code
//! 1 if a promise is not met (without it times decide nothing).
//!
//! One thread. Source and destination are lent once, used again for every call, and stand at multiples of 64 bytes. A size
//! is that of the f32 values. A speed is a share of memcpy's: `copy_from_slice` of half as many bytes as are read and
//! written, so that it moves as many. All contenders take turns in one process; every number is a median.

#[path = "common/options.rs"]
mod options;
#[path = "common/report.rs"]
mod report;
#[path = "numbers/buffers.rs"]
mod buffers;
#[path = "numbers/paths.rs"]
mod paths;
#[path = "numbers/peers.rs"]
mod peers;
#[path = "numbers/race.rs"]
mod race;
#[path = "numbers/widened.rs"]
mod widened;

use std::process::ExitCode;

use options::Timing;

fn main() -> ExitCode {
    let mut run = match options::run(&mut []) {
        Ok(run) => run,
        Err(code) => return code,
    };
    paths::run(&run.timing, &mut run.report);
    peers::run(&run.timing, &mut run.report);
    run.end()
}
