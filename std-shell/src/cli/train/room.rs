//! A vocabulary becomes the memory that a run takes, and a refusal where the machine has less: before anything is allocated.

use std::fs;

use super::optimizer::Algorithm;
use crate::cli::Failure;
use crate::report::bytes;

/// Refuses a table that does not fit into the memory that is available. Where the kernel does not say how much that is, the
/// allocation tells; a limit that somebody has set on the process alone is not looked at.
pub(super) fn fits(vocabulary: u32, optimizer: Option<Algorithm>) -> Result<(), Failure> {
    let needed = needed_bytes(vocabulary, optimizer);
    match fs::read_to_string("/proc/meminfo").ok().as_deref().and_then(available_bytes) {
        Some(available) if available < needed => Err(Failure::Usage(format!(
            "a table of {vocabulary} x {vocabulary} takes {} to train and save, and {} of memory are available",
            bytes(needed),
            bytes(available)
        ))),
        _ => Ok(()),
    }
}

/// The table and the arrays of its learning, and all of it once more as the bytes of a save; the gradient only once.
fn needed_bytes(vocabulary: u32, optimizer: Option<Algorithm>) -> u64 {
    let cell = match optimizer {
        Some(algorithm) => 2 * 4 * (1 + algorithm.keys().len() as u64) + 4,
        None => 2 * (4 + 8),
    };
    u64::from(vocabulary).saturating_mul(vocabulary.into()).saturating_mul(cell)
}

/// What programs can still take without swapping: `MemAvailable:   16341234 kB`.
fn available_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_and_what_is_there() {
        assert_eq!(needed_bytes(10, Some(Algorithm::AdamW)), 2800);
        assert_eq!(needed_bytes(10, Some(Algorithm::Sgd)), 2000);
        assert_eq!(needed_bytes(10, None), 2400);
        assert_eq!(needed_bytes(u32::MAX, None), u64::MAX);
        let meminfo = "MemTotal:       16384000 kB\nMemFree:  1 kB\nMemAvailable:   12345678 kB\n";
        assert_eq!(available_bytes(meminfo), Some(12_345_678 * 1024));
        for odd in ["", "MemAvailable: 1 MB", "MemAvailable: -1 kB", "MemAvailable: 18446744073709551615 kB"]
        {
            assert_eq!(available_bytes(odd), None, "{odd}");
        }
    }
}
