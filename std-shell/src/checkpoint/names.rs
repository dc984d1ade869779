//! The names in a checkpoint directory, and what they tell of the names beside it.

use std::ffi::OsStr;

use safestep_core::checkpoint::StepName;

/// The parameters.
pub(crate) const MODEL: &str = "model.safetensors";
/// The optimizer's arrays.
pub(crate) const OPTIMIZER: &str = "optimizer.safetensors";
/// The metadata key of the rest of the optimizer's state.
pub(crate) const OPTIMIZER_STATE: &str = "state";
/// The rest of the run.
pub(crate) const TRAINER_STATE: &str = "trainer_state.json";
/// The configuration.
pub(crate) const CONFIG: &str = "config.json";
/// Which step was declared done last.
pub(crate) const LATEST: &str = "LATEST";
/// The next `LATEST`, before it has its name.
pub(crate) const LATEST_TMP: &str = "LATEST.tmp";

/// The step whose directory has this name.
pub(crate) fn step(name: &OsStr) -> Option<StepName> {
    StepName::parse(name.to_str()?)
}

/// The directory that a step is gathered in before it has its name, or is taken apart in.
pub(crate) fn temporary(name: StepName) -> String {
    format!("{name}.tmp")
}

/// Whether only a save that did not come to its end leaves this name.
pub(crate) fn is_temporary(name: &OsStr) -> bool {
    let text = name.to_str();
    text == Some(LATEST_TMP)
        || text.and_then(|text| text.strip_suffix(".tmp")).is_some_and(|text| StepName::parse(text).is_some())
}
