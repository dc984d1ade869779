//! Headers of files longer than 4 GiB: offsets are 64 bits wide on every machine.
//!
//! The same is held on a 32-bit machine by `core/tests/large_files.rs`, which needs nothing but the core:
//! `cargo test -p safestep-core --target i686-unknown-linux-gnu`.

use safestep_tests::headers::honest::{Order, honest};
use safestep_tests::{oracle, twin};

#[test]
fn the_length_of_a_file_is_only_told() {
    // A model of some 60 GB, of which only the header is here.
    let sample = honest(5_000, Order::Mixed);
    assert!(sample.data_len > 1 << 33, "{}", sample.data_len);
    for (file_len, rule) in [
        (sample.file_len(), None),
        (sample.file_len() - 1, Some("R5.past_end")),
        (sample.file_len() + 1, Some("R5.surplus")),
        // As a machine sees it that counts in 32 bits.
        (sample.file_len() & 0xFFFF_FFFF, Some("R5.past_end")),
        (sample.file_len() + (1 << 32), Some("R5.surplus")),
        (u64::MAX, Some("R5.surplus")),
    ] {
        let verdict = twin::judge(&sample.header, file_len, &twin::Options::default());
        assert_eq!(verdict.err().map(|found| found.rule), rule, "{file_len}");
        oracle::header(&sample.header, file_len);
    }
}
