//! The power fails under ext4, with data ordered and with data in the journal, under XFS and under Btrfs.
//!
//! The program, and an example that writes as large states are written, save steps on a disk that notes every write and flush, and when each step was reported. Then the disk is put
//! together as it was at every point of that log, with all writes since the last flush lost, with each of them lost alone, and
//! with halves of them drawn with a fixed seed. Each disk is mounted, so that the file system repairs itself, and judged.
//!
//! Then a save without one of its rules: where a file system can show why the rule is there, it has to.
//! `SAFESTEP_CRASHES` sets how many disks are drawn for each run, and `SAFESTEP_CONTROLS=all` tries every rule on all
//! file systems, and says which of them were missed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use super::device::{Crash, Event, Pages, every_crash, some_crashes};
use super::volume::{KINDS, Kind, Volume, missing};
use super::{Trained, Who, judge, saver};
use safestep_tests::remarks::{remark, skipped};

/// Enough for all that a save does: the first one, one that deletes nothing, and one that deletes.
const STEPS: u64 = 3;
/// Several blocks, and an odd end.
const LEN_BYTES: usize = 20_003;
/// How many disks are drawn for each run.
const DRAWN: usize = 100;
const ROOT: &str = "run/ckpt";

/// What happened on a disk while steps were saved.
struct Recorded {
    base: Pages,
    log: Vec<Event>,
    /// Where in the log each step was reported.
    reports: Vec<(usize, u64)>,
}

impl Recorded {
    fn of(volume: &Volume, who: Who<'_>, flags: &[&str]) -> Self {
        volume.format();
        let base = volume.device.pages().settled();
        volume.device.put_in(base.clone());
        let mounted = volume.mount().unwrap();
        let reports = match who {
            Who::Saver(len_bytes) => save_paced(volume, mounted.path(), len_bytes, flags),
            Who::Program(trained) => train(volume, mounted.path(), trained),
        };
        drop(mounted);
        let log = volume.device.take_log();
        assert_eq!(reports.last().map(|(_, step)| *step), Some(STEPS));
        Self { base, log, reports }
    }
    fn durable(&self, crash: &Crash) -> u64 {
        let before = self.reports.iter().take_while(|(position, _)| *position <= crash.events);
        before.last().map_or(0, |(_, step)| *step)
    }

    fn look(&self, volume: &Volume, crash: &Crash, who: Who<'_>) -> Result<(), String> {
        volume.device.put_in(crash.disk(&self.base, &self.log));
        let mounted = volume.mount().map_err(|error| format!("{crash:?}: mount: {error}"))?;
        let judged = judge(&mounted.path().join(ROOT), self.durable(crash), who);
        judged.map(drop).map_err(|complaint| format!("{crash:?}: {complaint}"))
    }
}

/// The example saves, and waits after each step until its place in the log was looked up.
fn save_paced(volume: &Volume, directory: &Path, len_bytes: usize, flags: &[&str]) -> Vec<(usize, u64)> {
    let mut saver = saver(&directory.join(ROOT), 1, STEPS, len_bytes);
    let mut child = saver.arg("--paced").args(flags).stdin(Stdio::piped()).spawn().unwrap();
    let (mut pace, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut reports = Vec::new();
    for line in BufReader::new(out).lines() {
        let step = line.unwrap().strip_prefix("saved ").unwrap().parse().unwrap();
        reports.push((volume.device.position(), step));
        writeln!(pace).unwrap();
    }
    assert!(child.wait().unwrap().success());
    reports
}

/// The program trains, and is started again after each step.
fn train(volume: &Volume, directory: &Path, trained: &Trained) -> Vec<(usize, u64)> {
    let run = directory.join("run");
    let steps = (1..=STEPS).map(|step| {
        let resume: &[&str] = if step == 1 { &[] } else { &["--resume"] };
        let more = [&["--keep-last", "2"], resume].concat();
        let ran = trained.command(&run, step, &more).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        (volume.device.position(), step)
    });
    steps.collect()
}

/// Saves on a file system, and looks at the crashes until there is a complaint: how many were looked at.
fn search(kind: Kind, who: Who<'_>, flags: &[&str]) -> Result<usize, String> {
    let began = Instant::now();
    let (volume, drawn) = (Volume::new(kind), drawn());
    let recorded = Recorded::of(&volume, who, flags);
    let mut crashes = every_crash(&recorded.log);
    let all = crashes.len();
    crashes.extend(some_crashes(&recorded.log, drawn));
    for crash in &crashes {
        recorded.look(&volume, crash, who)?;
    }
    let (name, events, seconds) = (kind.name, recorded.log.len(), began.elapsed().as_secs_f64());
    let who = if matches!(who, Who::Program(_)) { "the program" } else { "many threads" };
    remark(&format!(
        "power under {name}: {events} events by {who}, {all} crashes and {drawn} drawn, {seconds:.1} s"
    ));
    Ok(crashes.len())
}

fn drawn() -> usize {
    std::env::var("SAFESTEP_CRASHES").ok().and_then(|count| count.parse().ok()).unwrap_or(DRAWN)
}

fn power_fails_under(name: &str) {
    if let Some(why) = missing() {
        return skipped(&why);
    }
    let kind = KINDS.into_iter().find(|kind| kind.name == name).unwrap();
    let trained = Trained::new();
    let by_program = search(kind, Who::Program(&trained), &[]).unwrap();
    let by_many_threads = search(kind, Who::Saver(LEN_BYTES), &["--portions", "8192"]).unwrap();
    assert!(by_program.min(by_many_threads) > 150, "only {by_program} and {by_many_threads} crashes");
}

#[test]
fn power_fails_under_ext4() {
    power_fails_under("ext4");
}

#[test]
fn power_fails_under_ext4_with_data_in_the_journal() {
    power_fails_under("ext4-journal");
}

#[test]
fn power_fails_under_xfs() {
    power_fails_under("xfs");
}

#[test]
fn power_fails_under_btrfs() {
    power_fails_under("btrfs");
}

/// The rules, how many steps are kept, and the file systems that have to show why the rule is there. A rule without one is
/// stricter than ext4, which commits all changes of names before a sync in one go, and is shown by the model of
/// `checkpoint::power`; `manifest_last` and `unname_first` also by processes that are killed.
const CONTROLS: &[(&str, &str, &[&str])] = &[
    ("sync_files", "2", &["ext4", "xfs", "btrfs"]),
    ("sync_manifest", "2", &["ext4", "xfs", "btrfs"]),
    ("sync_step", "2", &[]),
    ("sync_root_for_step", "2", &[]),
    ("sync_latest", "2", &["ext4"]),
    ("sync_root_for_latest", "2", &["ext4"]),
    ("sync_parent", "2", &[]),
    ("manifest_last", "2", &[]),
    ("latest_after_step", "2", &["ext4"]),
    // With two steps to keep, the one before is there still.
    ("delete_last", "1", &["ext4"]),
    ("unname_first", "2", &[]),
];

#[test]
fn file_systems_show_what_the_rules_are_for() {
    if let Some(why) = missing() {
        return skipped(&why);
    }
    let all = std::env::var_os("SAFESTEP_CONTROLS").is_some_and(|wish| wish == "all");
    for (rule, keep, shown_by) in CONTROLS {
        for kind in KINDS.into_iter().filter(|kind| all || shown_by.contains(&kind.name)) {
            match search(kind, Who::Saver(LEN_BYTES), &["--without", rule, "--keep", keep]) {
                Err(complaint) => println!("{rule} on {}: {complaint}", kind.name),
                Ok(_) if shown_by.contains(&kind.name) => {
                    panic!("nobody noticed on {} that {rule} was off", kind.name)
                }
                Ok(_) => println!("{rule} on {}: missed", kind.name),
            }
        }
    }
}
