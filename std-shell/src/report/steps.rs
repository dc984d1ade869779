//! Checkpoints become what people and programs read: a list, verdicts, what was pruned.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use safestep::checkpoint::{Retained, Scan, StepName, Verdict};
use safestep::terminal_safe;
use serde::{Serialize, Serializer};

use super::json::put_line;
use super::table::{Align, Table};
use super::words::{bytes, grouped, plural, shown};
use super::{Palette, Screen};

/// What `steps` found in a checkpoint directory.
pub(crate) struct Listing<'a> {
    pub(crate) root: &'a Path,
    pub(crate) scan: &'a Scan,
    /// What is wrong with `LATEST`.
    pub(crate) latest_flaw: Option<String>,
    /// The step that a resume would take.
    pub(crate) load: Option<StepName>,
    pub(crate) steps: &'a [Step],
}

/// A step, and why it is not whole, if it is not.
pub(crate) struct Step {
    pub(crate) name: StepName,
    pub(crate) bytes: u64,
    pub(crate) age: Age,
    pub(crate) reason: Option<String>,
}

/// How long ago something was made, as far as the clock can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    Past(Duration),
    Future,
    Unknown,
}

impl Listing<'_> {
    /// One document.
    pub(crate) fn json(&self, screen: &mut Screen) -> io::Result<()> {
        let lossy =
            |names: &[OsString]| names.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        let steps = self.steps.iter().map(|step| StepRow {
            step: step.name.step(),
            bytes: step.bytes,
            valid: step.reason.is_none(),
            reason: step.reason.as_deref(),
        });
        let document = Document {
            latest: self.scan.latest.step().map(|name| name.to_string()),
            load: self.load.map(|name| name.step()),
            steps: steps.collect(),
            foreign: lossy(&self.scan.foreign),
            stale: lossy(&self.scan.stale),
        };
        put_line(screen, &document)
    }

    /// A table, and below it what is wrong.
    pub(crate) fn table(&self, screen: &mut Screen) -> io::Result<()> {
        let Palette { strong, dim, bad, note, .. } = screen.palette;
        let count = self.steps.len() as u64;
        let takes = self.load.map(|name| format!(", a resume takes step {}", grouped(name.step())));
        let takes = takes.unwrap_or_else(|| {
            if count == 0 { String::new() } else { ", a resume finds none that is whole".into() }
        });
        let root = terminal_safe(self.root);
        writeln!(screen.out, "{strong}{root}{strong:#}: {}{takes}", plural(count, "checkpoint"))?;
        if count > 0 {
            writeln!(screen.out)?;
            let columns = [
                ("step", Align::Left),
                ("bytes", Align::Right),
                ("age", Align::Right),
                ("verified", Align::Left),
                ("", Align::Left),
            ];
            let rows = self.steps.iter().map(|step| {
                let verified = if step.reason.is_none() { "yes" } else { "no" };
                [
                    step.name.to_string(),
                    bytes(step.bytes),
                    age(step.age),
                    verified.into(),
                    self.marks(step.name),
                ]
            });
            Table::new(2, columns).print(&mut screen.out, screen.width, strong, rows)?;
        }
        let reasons = self.steps.iter().filter_map(|step| Some((step.name, step.reason.as_ref()?)));
        let has_more = reasons.clone().next().is_some()
            || self.latest_flaw.is_some()
            || !self.scan.foreign.is_empty()
            || !self.scan.stale.is_empty();
        if has_more {
            writeln!(screen.out)?;
        }
        for (name, reason) in reasons {
            writeln!(screen.out, "  {bad}{name}{bad:#}: {}", terminal_safe(reason))?;
        }
        if let Some(reason) = &self.latest_flaw {
            writeln!(screen.out, "  {bad}LATEST{bad:#}: {}", terminal_safe(reason))?;
        }
        for name in &self.scan.foreign {
            let name = shown(&terminal_safe(name));
            writeln!(screen.out, "  {note}foreign{note:#}  {name} {dim}(is never touched){dim:#}")?;
        }
        for name in &self.scan.stale {
            let name = shown(&terminal_safe(name));
            writeln!(screen.out, "  {note}stale{note:#}    {name} {dim}(the next save clears it){dim:#}")?;
        }
        Ok(())
    }

    /// What is special about a step.
    fn marks(&self, name: StepName) -> String {
        let latest = self.scan.latest.step();
        let marks = [
            (latest == Some(name), "LATEST"),
            (self.load == Some(name), "resume"),
            (latest.is_some_and(|latest| name > latest), "not declared done"),
        ];
        let marks: Vec<&str> = marks.iter().filter(|(holds, _)| *holds).map(|(_, mark)| *mark).collect();
        marks.join(", ")
    }
}

/// An age in its largest unit.
fn age(age: Age) -> String {
    let seconds = match age {
        Age::Past(age) => age.as_secs(),
        Age::Future => return "in the future".into(),
        Age::Unknown => return "unknown".into(),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => plural(seconds / 86_400, "day"),
    }
}

/// What `verify` found in one place.
#[derive(Serialize)]
pub(crate) struct Judged<'a> {
    #[serde(serialize_with = "lossy")]
    path: &'a Path,
    step: Option<u64>,
    bytes: Option<u64>,
    valid: bool,
    flaws: Vec<FlawRow>,
}

#[derive(Serialize)]
struct FlawRow {
    #[serde(serialize_with = "lossy")]
    file: OsString,
    reason: String,
}

impl<'a> Judged<'a> {
    /// A step.
    pub(crate) fn of(path: &'a Path, verdict: &Verdict) -> Self {
        let flaws = verdict
            .flaws
            .iter()
            .map(|flaw| FlawRow { file: flaw.file.clone(), reason: flaw.kind.to_string() });
        let valid = verdict.is_whole();
        Self { path, step: verdict.step, bytes: Some(verdict.bytes), valid, flaws: flaws.collect() }
    }

    /// A `LATEST` that cannot be followed.
    pub(crate) fn latest(root: &'a Path, reason: &str) -> Self {
        let flaw = FlawRow { file: "LATEST".into(), reason: reason.into() };
        Self { path: root, step: None, bytes: None, valid: false, flaws: vec![flaw] }
    }

    /// An object; or a line that says good, or one for each flaw.
    pub(crate) fn print(&self, screen: &mut Screen, json: bool) -> io::Result<()> {
        if json {
            return put_line(screen, self);
        }
        let Palette { good, bad, .. } = screen.palette;
        let path = terminal_safe(self.path);
        if self.valid {
            return writeln!(
                screen.out,
                "{path}: {good}whole{good:#}, {}",
                bytes(self.bytes.unwrap_or_default())
            );
        }
        for FlawRow { file, reason } in &self.flaws {
            let (file, reason) = (terminal_safe(file), terminal_safe(reason));
            writeln!(screen.out, "{path}: {bad}{file}{bad:#}: {reason}")?;
        }
        Ok(())
    }
}

/// How many of each kind there were.
pub(crate) fn verified(screen: &mut Screen, good: u64, bad: u64, unreadable: u64) {
    let all = good.saturating_add(bad).saturating_add(unreadable);
    if all > 1 {
        let mut parts = vec![format!("{} whole", grouped(good))];
        parts.extend((bad > 0).then(|| format!("{} bad", grouped(bad))));
        parts.extend((unreadable > 0).then(|| format!("{} unreadable", grouped(unreadable))));
        screen.remark(&format!("{} looked at: {}", grouped(all), parts.join(", ")));
    }
}

/// What `prune` has done, or would do.
pub(crate) fn pruned(screen: &mut Screen, done: &Retained, dry: bool, json: bool) -> io::Result<()> {
    if json {
        let steps = |names: &[StepName]| names.iter().map(StepName::step).collect();
        let leftovers = done.leftovers.iter().map(|leftover| LeftoverRow {
            path: leftover.path.to_string_lossy().into_owned(),
            reason: leftover.because.to_string(),
        });
        let (removed, kept) = (steps(&done.removed), steps(&done.kept));
        let document = Pruned { dry_run: dry, removed, kept, leftovers: leftovers.collect() };
        return put_line(screen, &document);
    }
    let Palette { strong, .. } = screen.palette;
    let word = if dry { "would be deleted" } else { "deleted" };
    for name in &done.removed {
        writeln!(screen.out, "{strong}{name}{strong:#}: {word}")?;
    }
    let (gone, stay) = (done.removed.len() as u64, plural(done.kept.len() as u64, "checkpoint"));
    screen.remark(&format!("{} {word}, {stay} kept", grouped(gone)));
    Ok(())
}

fn lossy<S: Serializer>(name: impl AsRef<OsStr>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&name.as_ref().to_string_lossy())
}

#[derive(Serialize)]
struct Document<'a> {
    latest: Option<String>,
    load: Option<u64>,
    steps: Vec<StepRow<'a>>,
    foreign: Vec<String>,
    stale: Vec<String>,
}

#[derive(Serialize)]
struct StepRow<'a> {
    step: u64,
    bytes: u64,
    valid: bool,
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct Pruned {
    dry_run: bool,
    removed: Vec<u64>,
    kept: Vec<u64>,
    leftovers: Vec<LeftoverRow>,
}

#[derive(Serialize)]
struct LeftoverRow {
    path: String,
    reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_said_in_their_largest_unit() {
        let table = [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (3599, "59 min"),
            (3600, "1 h"),
            (172_799, "47 h"),
            (172_800, "2 days"),
            (u64::MAX, "213,503,982,334,601 days"),
        ];
        for (seconds, said) in table {
            assert_eq!(age(Age::Past(Duration::from_secs(seconds))), said);
        }
        assert_eq!((age(Age::Future), age(Age::Unknown)), ("in the future".into(), "unknown".into()));
    }
}
