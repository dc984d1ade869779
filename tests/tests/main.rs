//! The integration tests of the workspace, one module for each promise.

mod commit;
