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
mod house;
mod slices;
mod model;
mod tokens;
mod program;
