//! The rules that keep a save safe, each with a switch, so that tests can show what each of them is good for.
//!
//! Nobody else has a reason to touch them: [`Protocol::default`] keeps them all.

/// Which rules a save keeps.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Sync every file of the step before the manifest is written.
    pub sync_files: bool,
    /// Sync the manifest.
    pub sync_manifest: bool,
    /// Sync the step's directory before it gets its name.
    pub sync_step: bool,
    /// Sync the root after the step got its name.
    pub sync_root_for_step: bool,
    /// Sync `LATEST.tmp` before it gets its name.
    pub sync_latest: bool,
    /// Sync the root after `LATEST` got its name.
    pub sync_root_for_latest: bool,
    /// Sync the parent of a root that was made.
    pub sync_parent: bool,
    /// Write the manifest after all other files.
    pub manifest_last: bool,
    /// Move `LATEST` after the step has its name, not before.
    pub latest_after_step: bool,
    /// Delete after `LATEST` has moved, not before.
    pub delete_last: bool,
    /// Take the name from a step that is to go, and sync the root, before anything in it is deleted.
    pub unname_first: bool,
}

impl Default for Protocol {
    fn default() -> Self {
        Self {
            sync_files: true,
            sync_manifest: true,
            sync_step: true,
            sync_root_for_step: true,
            sync_latest: true,
            sync_root_for_latest: true,
            sync_parent: true,
            manifest_last: true,
            latest_after_step: true,
            delete_last: true,
            unname_first: true,
        }
    }
}
