//! The oracles, naive twins and generators that the integration tests, the fuzz targets and the benchmark share.
//!
//! Nothing here is fast. The second opinions, [`twin`] and [`reference`](mod@reference), know nothing of the code that is judged: their
//! value is that they were formed alone. [`oracle`] brings the two sides together.

pub mod remarks;
pub mod disk_faults;
pub mod runs;
pub mod cases;
pub mod headers;
pub mod twin;
pub mod reference;
pub mod oracle;
pub mod tokens;
