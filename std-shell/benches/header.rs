//! Headers become a table of times: the whole judgement of ours beside the reference crate's, and what was promised of it.
//!
//! `cargo bench -p safestep` runs everything; behind `--`, `--quick` takes few samples, `--only TEXT` times only headers
//! with that text in their names, `--json FILE` writes the numbers down as well, `--strict` ends with exit code 1 if a
//! promise is not met (without it times decide nothing).
//!
//! Both contenders get the bytes of the whole file, a mapping that is empty behind the header, and take turns sample by
//! sample in one process. What is timed of ours: frame, header and index, in slots that were lent before. What is timed
//! of the reference: `SafeTensors::read_metadata`. Results are dropped when the clock stands.

#[path = "common/options.rs"]
mod options;
#[path = "common/report.rs"]
mod report;
#[path = "header/allocations.rs"]
mod allocations;
#[path = "header/contenders.rs"]
mod contenders;
#[path = "header/honest.rs"]
mod honest;
#[path = "header/hostile.rs"]
mod hostile;
#[path = "header/opening.rs"]
mod opening;

use std::process::ExitCode;

use options::Timing;

fn main() -> ExitCode {
    let mut run = match options::run(&mut []) {
        Ok(run) => run,
        Err(code) => return code,
    };
    honest::run(&run.timing, &mut run.report);
    hostile::run(&run.timing, &mut run.report);
    if run.timing.wants("opening") {
        opening::run(&mut run.report);
    }
    if run.timing.wants("allocations") {
        allocations::run(&mut run.report);
    }
    run.end()
}
