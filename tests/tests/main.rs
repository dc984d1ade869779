//! The integration tests of the workspace, one module for each promise.

mod rules;
mod reference_files;
mod headers;
mod crowded;
mod large;
mod one_byte;
mod strings;
mod random;
mod replay;
mod commit;
mod checkpoint;
#[cfg(target_os = "linux")]
mod crash;
mod house;
mod slices;
mod numbers;
mod kernels;
mod model;
mod convert;
mod tokens;
mod run;
mod program;
