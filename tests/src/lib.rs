//! The oracles, naive twins and generators that the integration tests, the fuzz targets and the benchmark share.
//!
//! Nothing here is fast and nothing here reads the code it judges: the value of a second opinion is that it was
//! formed alone.

pub mod disk_faults;
pub mod headers;
pub mod reference;
pub mod twin;
