//! A path that is about to be written becomes a refusal, where a run would lose what it cannot make again.
//!
//! What a link leads to counts, as it does for the write itself.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use safestep::checkpoint::StepName;

use super::Failure;

/// Refuses to replace an input of the command, a file that a run keeps, or anything in a checkpoint's directory.
pub(super) fn must_be_free<'p>(
    output: &Path,
    inputs: impl IntoIterator<Item = &'p Path>,
) -> Result<(), Failure> {
    let end = end_of_links(output);
    if let Some(kept) = kept_by_a_run(output).or_else(|| kept_by_a_run(&end)) {
        return Err(refused(output, "a name that no run keeps its files under", kept));
    }
    must_be_outside_of_steps(output)?;
    let identity = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let ours = identity(&end);
    match inputs.into_iter().find(|input| ours.is_some() && identity(input) == ours) {
        Some(input) => {
            Err(refused(output, "a file that is no input", &format!("the input {}", input.display())))
        }
        None => Ok(()),
    }
}

/// Refuses a place in a checkpoint's directory: any file that its manifest does not list damages it.
pub(super) fn must_be_outside_of_steps(output: &Path) -> Result<(), Failure> {
    match step_around(&end_of_links(output)) {
        Some(step) => {
            let found = format!("one in the checkpoint {}", step.display());
            Err(refused(output, "a place outside of checkpoints", &found))
        }
        None => Ok(()),
    }
}

/// Whether a path leads into a directory: one that is there, or will be.
pub(super) fn leads_into(path: &Path, directory: &Path) -> bool {
    end_of_links(path).starts_with(end_of_links(directory))
}

fn refused(output: &Path, expected: &str, found: &str) -> Failure {
    Failure::Usage(format!("cannot write {}: expected {expected}, found {found}", output.display()))
}

/// What a run keeps under a name, if it does.
fn kept_by_a_run(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.as_encoded_bytes();
    let kept = KEPT.iter().find(|(end, _)| name.ends_with(end.as_bytes()));
    let whole = KEPT_WHOLE.iter().find(|(whole, _)| name == whole.as_bytes());
    let cut = || name.windows(CUT.len()).any(|part| part == CUT.as_bytes());
    kept.or(whole).map(|(_, what)| *what).or_else(|| cut().then_some("a line cut off from a loss history"))
}

/// Ends of names.
const KEPT: [(&str, &str); 3] = [
    (".loss.json", "that of a loss history, which is never rewritten"),
    (".samples.json", "that of a run's samples"),
    (".state.json", "that of a run's state"),
];

/// Whole names.
const KEPT_WHOLE: [(&str, &str); 3] = [
    ("final.json", "that of the last word of a run"),
    ("LATEST", "that of the pointer to the newest checkpoint"),
    ("MANIFEST.json", "that of the manifest of a checkpoint"),
];

const CUT: &str = ".loss.json.cut-";

/// The directory of a step, finished or not, that a path leads through.
fn step_around(path: &Path) -> Option<PathBuf> {
    let is_step = |name: &OsStr| {
        let name = name.to_str()?;
        StepName::parse(name.strip_suffix(".tmp").unwrap_or(name))
    };
    let mut around = path.ancestors().skip(1);
    around.find(|path| path.file_name().and_then(is_step).is_some()).map(Path::to_path_buf)
}

/// The path behind all links: that of the file, which need not be there, in the directory that is.
fn end_of_links(path: &Path) -> PathBuf {
    let mut end = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let Ok(target) = fs::read_link(&end) else { break };
        end = end.parent().unwrap_or(Path::new("")).join(target);
    }
    // Directories that are not there yet have no links on their way.
    let standing = end.ancestors().find_map(|above| {
        let named = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        Some((above, named.canonicalize().ok()?))
    });
    match standing {
        Some((above, real)) => match end.strip_prefix(above) {
            // To join nothing would make a directory of it.
            Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
            _ => real,
        },
        None => end,
    }
}

/// As many as Linux follows.
const LINKS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_runs_keep() {
        let kept = [".loss.json", "x.loss.json", "a/.samples.json", "p.state.json", "final.json", "LATEST"];
        let kept = kept.into_iter().chain([".loss.json.cut-17", "MANIFEST.json", ".loss.json.cut-17-2"]);
        for name in kept {
            assert!(kept_by_a_run(Path::new(name)).is_some(), "{name}");
        }
        for name in ["loss.json", "loss.svg", "final.json.svg", "state.json", "x.bin", "latest", ".."] {
            assert_eq!(kept_by_a_run(Path::new(name)), None, "{name}");
        }
    }

    #[test]
    fn steps_on_the_way() {
        let table = [
            ("run/ckpt/step-000060/x.bin", Some("run/ckpt/step-000060")),
            ("/a/step-000060.tmp/b/x.bin", Some("/a/step-000060.tmp")),
            ("step-1234567/x", Some("step-1234567")),
            ("run/ckpt/step-000060", None),
            ("run/step-60/x", None),
            ("run/step-0000060/x", None),
        ];
        for (path, step) in table {
            assert_eq!(step_around(Path::new(path)), step.map(PathBuf::from), "{path}");
        }
    }

    #[test]
    fn where_links_lead() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().canonicalize().unwrap().join(name);
        fs::create_dir(at("real")).unwrap();
        for (name, to) in [("dir", "real"), ("file", "dir/none"), ("again", "file"), ("loop", "loop")] {
            std::os::unix::fs::symlink(to, at(name)).unwrap();
        }
        for (path, end) in [
            ("again", "real/none"),
            ("dir/x/y", "real/x/y"),
            ("real", "real"),
            ("none", "none"),
            ("real/../none", "none"),
        ] {
            // Not as paths, for which a slash at the end is nothing.
            assert_eq!(end_of_links(&directory.path().join(path)).as_os_str(), at(end).as_os_str(), "{path}");
        }
        assert!(end_of_links(&at("loop")).ends_with("loop"));
        assert!(leads_into(&at("again"), &at("dir")) && !leads_into(&at("dirx"), &at("dir")));
    }
}
