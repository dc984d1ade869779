//! The bytes of a shard become windows of ids, and a cursor says where the next one starts.
//!
//! shard -> windows -> batches -> cursor -> the same run, later
//!
//! Nothing here holds ids or reads files: a shard is a header and a number of ids, a window is a place, and whoever has the
//! bytes widens them. So the same code runs over a map of a terabyte and over a shard in the flash of a microcontroller:
//!
//! ```
//! use core::num::NonZeroU32;
//! use safestep_core::tokens::{Cursor, Pcg32, Windows, widen_pair};
//!
//! let flash: [u16; 10] = [10, 11, 12, 13, 14, 15, 16, 17, 18, 19];
//! let bytes = flash.map(u16::to_le_bytes);
//! let counts = [10];
//! let windows = Windows::over(&counts, NonZeroU32::new(3).unwrap())?;
//! let mut cursor = windows.begin(Pcg32::seed(42, 54));
//! let run = windows.take(&mut cursor, 1);
//! let begin = usize::try_from(run.offset).unwrap();
//! let (mut inputs, mut targets) = ([0_i64; 3], [0_i64; 3]);
//! let window = bytes[begin..begin + 4].as_flattened();
//! widen_pair(safestep_core::tokens::Width::Two, window, &mut inputs, &mut targets, u32::MAX)?;
//! assert_eq!(targets.map(|id| id - 1), inputs);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod pcg32;
mod error;
mod shard;
mod ids;
mod document;
mod cursor;
mod window;

pub use cursor::{Cursor, Fingerprint, ShardFacts};
pub use document::{CursorError, CursorErrorKind, CursorField};
pub use error::{LlmcFile, ShardError, ShardErrorKind, ShardRule, StrangeMagic};
pub use ids::{IdError, Token, largest_id, widen, widen_pair};
pub use pcg32::Pcg32;
pub use shard::{HEADER_BYTES, ShardHeader, ShardKind, Width};
pub use window::{
    PlaceError, Run, ShapeError, Share, Windows, fits, phase_bound, window_start, windows_left,
};
