//! The power fails at any call of a save, and takes any part of what was not synced.
//!
//! Two steps stand there, 10 and 20; step 30 is saved, and only one is to stay. The plug is pulled at every call, and for each
//! the images that may be left are looked at (all of them, or so many drawn with a fixed seed). In each of them, on a real
//! directory: what is loaded is step 20 or step 30, bit for bit, and 30 if success was reported; `LATEST` names it; no
//! directory with the name of a step is less than whole; and the next save works and leaves nothing behind but what it should.
//!
//! Then the rules of a save are switched off, one after the other, and the same search has to complain: a test that cannot
//! fail is none.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

use safestep::checkpoint::protocol::Protocol;
use safestep::checkpoint::{Retention, SaveOptions, Saved, load, save, scan, verify};
use safestep::error::Cause;
use safestep::{Error, OsDisk};
use safestep_tests::disk_faults::{Fault, Image, Searched, SimulatedDisk, Standing, crash_at_every_call};
use safestep_tests::remarks::remark;
use safestep_tests::runs::{Run, in_portions, materialize};

pub(super) const ROOT: &str = "run/ckpt";

/// How many images are looked at for each point of a crash.
const IMAGES_MAX: usize = 1024;

pub(super) fn disk_with(image: Image) -> SimulatedDisk {
    SimulatedDisk::holding(image)
}

pub(super) fn save_on(disk: &SimulatedDisk, step: u64) -> Result<Saved, Error> {
    save_by(disk, step, &one_by_one(Protocol::default()))
}

pub(super) fn save_by(disk: &SimulatedDisk, step: u64, options: &SaveOptions) -> Result<Saved, Error> {
    Run::at(step).with(|state| save(disk, Path::new(ROOT), state, options))
}

/// Writes one file after the other, as small states are written.
pub(super) fn one_by_one(protocol: Protocol) -> SaveOptions {
    SaveOptions { retention: Retention::last(1), protocol, ..SaveOptions::default() }
}

/// Writes all files at once, as large states are written: which call is the how manieth is then left to chance.
pub(super) fn all_at_once(protocol: Protocol) -> SaveOptions {
    SaveOptions { retention: Retention::last(1), protocol, ..in_portions(64) }
}

/// Steps 10 and 20, all durable, with LATEST at 20; and a directory that somebody put where others save.
pub(super) fn image_of_two() -> Image {
    let disk = SimulatedDisk::holding([("run", Standing::Directory)]);
    for step in [10, 20] {
        let options = SaveOptions::default();
        Run::at(step).with(|state| save(&disk, Path::new(ROOT), state, &options)).unwrap();
    }
    let mut image = disk.live();
    image.insert(Path::new(ROOT).join("step-000007.tmp/deep/file"), Standing::File(b"x".to_vec()));
    disk_with(image).live()
}

/// A root with one step and nothing else.
fn image_of_one(step: u64) -> Image {
    let disk = SimulatedDisk::holding([("run", Standing::Directory)]);
    save_on(&disk, step).unwrap();
    disk.live()
}

/// Looks at images on a real directory.
struct Judge {
    directory: tempfile::TempDir,
    /// What stands there now.
    standing: RefCell<Image>,
    /// What was judged before and found good.
    known: RefCell<BTreeSet<(Image, bool)>>,
    /// The step that was there before, if there was one, and the one that is saved.
    steps: (Option<u64>, u64),
    after: [(u64, Image); 2],
}

impl Judge {
    fn new(old: Option<u64>, new: u64) -> Self {
        let after = [(new, image_of_one(new)), (new + 10, image_of_one(new + 10))];
        let directory =
            tempfile::tempdir_in(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" });
        Self {
            directory: directory.unwrap(),
            standing: RefCell::default(),
            known: RefCell::default(),
            steps: (old, new),
            after,
        }
    }

    fn judge(&self, image: &Image, success: bool) -> Result<(), String> {
        let key = (image.clone(), success);
        if self.known.borrow().contains(&key) {
            return Ok(());
        }
        materialize(image, self.directory.path(), &self.standing.borrow());
        self.standing.replace(image.clone());
        let loaded = self.load(success)?;
        self.every_step_is_whole()?;
        self.next_save(image, loaded)?;
        self.known.borrow_mut().insert(key);
        Ok(())
    }

    /// What a load finds: the old state or the new one.
    fn load(&self, success: bool) -> Result<Option<u64>, String> {
        let (old, new) = self.steps;
        let checkpoint = match load(&OsDisk, &self.directory.path().join(ROOT)) {
            Ok(checkpoint) => checkpoint,
            Err(error) => {
                let none = matches!(error.because(), Cause::NoCheckpoint { skipped } if skipped.is_empty());
                return if none && old.is_none() && !success { Ok(None) } else { Err(error.to_string()) };
            }
        };
        let step = checkpoint.name.step();
        if step != new && (success || Some(step) != old) {
            return Err(format!("{step} was loaded, and success is {success}"));
        }
        if let Some(difference) = Run::at(step).differs_from(&checkpoint) {
            return Err(difference);
        }
        let named = checkpoint.latest.step();
        // Before the first LATEST there is none.
        if !checkpoint.skipped.is_empty() || (named != Some(checkpoint.name) && (old.is_some() || success)) {
            return Err(format!("LATEST names {named:?}, not {step}"));
        }
        Ok(Some(step))
    }

    fn every_step_is_whole(&self) -> Result<(), String> {
        let root = self.directory.path().join(ROOT);
        let Ok(scan) = scan(&OsDisk, &root) else { return Ok(()) };
        for name in scan.steps {
            let verdict = verify(&root.join(name.as_str()), &|_, _| {}).map_err(|error| error.to_string())?;
            if let Some(flaw) = verdict.flaws.first() {
                return Err(format!("{name} is not whole: {flaw}"));
            }
        }
        Ok(())
    }

    /// The run goes on: it comes to the step that was being saved once more, or to the one after it.
    fn next_save(&self, image: &Image, loaded: Option<u64>) -> Result<(), String> {
        for (step, expected) in self.after.iter().filter(|(step, _)| loaded < Some(*step)) {
            let disk = SimulatedDisk::holding(image.clone());
            let saved = save_on(&disk, *step).map_err(|error| format!("the next save: {error}"))?;
            if let Some(leftover) = saved.retained.leftovers.first() {
                return Err(format!("the next save leaves {leftover:?}"));
            }
            if disk.live() != *expected {
                return Err(format!("the next save leaves {:?}", disk.live().keys()));
            }
        }
        Ok(())
    }
}

/// Pulls the plug at every call of a save of step 30 over steps 10 and 20, and looks at so many images for each.
fn search(options: &SaveOptions, images_max: usize, ignored_sync: Option<usize>) -> Result<Searched, String> {
    let (before, judge) = (image_of_two(), Judge::new(Some(20), 30));
    let setup = || match ignored_sync {
        Some(sync) => disk_with(before.clone()).ignore_sync(sync),
        None => disk_with(before.clone()),
    };
    let job = |disk: &SimulatedDisk| {
        save_by(disk, 30, options).is_ok_and(|saved| saved.retained.leftovers.is_empty())
    };
    // Success is what the caller hears, whatever happens afterwards.
    let job = |disk: &SimulatedDisk| job(disk) || latest_was_synced(disk, options.protocol);
    crash_at_every_call(images_max, setup, job, |image, success| judge.judge(image, success))
}

/// Whether a save that was cut off had reported success: the plug was pulled while it was tidying up.
fn latest_was_synced(disk: &SimulatedDisk, protocol: Protocol) -> bool {
    use safestep_tests::disk_faults::Call;
    let calls = disk.calls();
    let moved = calls.iter().position(|call| matches!(call, Call::Rename(_, to) if to.ends_with("LATEST")));
    let behind = moved.map_or(0, |moved| calls.len() - moved - 1);
    behind > usize::from(protocol.sync_root_for_latest) && protocol.latest_after_step
}

#[test]
fn a_power_failure_leaves_the_old_state_or_the_new_one() {
    for (way, options, images_max) in [
        ("one by one", one_by_one(Protocol::default()), IMAGES_MAX),
        ("all at once", all_at_once(Protocol::default()), IMAGES_MAX / 4),
    ] {
        let searched = search(&options, images_max, None).unwrap();
        remark(&format!("power: a save, {way}: {searched}"));
        assert!(searched.syncs >= 11 && searched.images > 20 * searched.calls, "{searched:?}");
    }
}

#[test]
fn a_power_failure_in_the_first_save_leaves_nothing_or_all() {
    let judge = Judge::new(None, 30);
    let setup = || SimulatedDisk::holding::<&str>([]);
    for (way, options) in
        [("one by one", one_by_one(Protocol::default())), ("all at once", all_at_once(Protocol::default()))]
    {
        let job = |disk: &SimulatedDisk| save_by(disk, 30, &options).is_ok();
        let searched =
            crash_at_every_call(IMAGES_MAX, setup, job, |image, success| judge.judge(image, success));
        remark(&format!("power: a first save, {way}: {}", searched.unwrap()));
    }
    // The same without the syncs that keep the root itself.
    let careless = Protocol { sync_parent: false, ..Protocol::default() };
    let job = |disk: &SimulatedDisk| save_by(disk, 30, &one_by_one(careless)).is_ok();
    let complaint = crash_at_every_call(IMAGES_MAX, setup, job, |image, success| judge.judge(image, success));
    println!("sync_parent: {}", complaint.expect_err("nobody noticed").lines().next().unwrap());
}

#[test]
fn every_rule_is_needed() {
    let all = Protocol::default();
    let table = [
        ("sync_files", Protocol { sync_files: false, ..all }),
        ("sync_manifest", Protocol { sync_manifest: false, ..all }),
        ("sync_step", Protocol { sync_step: false, ..all }),
        ("sync_root_for_step", Protocol { sync_root_for_step: false, ..all }),
        ("sync_latest", Protocol { sync_latest: false, ..all }),
        ("sync_root_for_latest", Protocol { sync_root_for_latest: false, ..all }),
        ("latest_after_step", Protocol { latest_after_step: false, ..all }),
        ("delete_last", Protocol { delete_last: false, ..all }),
        ("unname_first", Protocol { unname_first: false, ..all }),
    ];
    let by_one = table.map(|(rule, protocol)| (rule, one_by_one(protocol)));
    // The one rule that many threads keep in a way of their own.
    let at_once = ("sync_files", all_at_once(Protocol { sync_files: false, ..all }));
    for (rule, options) in by_one.into_iter().chain([at_once]) {
        let complaint =
            search(&options, IMAGES_MAX, None).expect_err(&format!("nobody noticed that {rule} was off"));
        println!("{rule}: {}", complaint.lines().next().unwrap());
    }
}

#[test]
fn every_sync_is_needed() {
    let disk = disk_with(image_of_two());
    save_on(&disk, 30).unwrap();
    for sync in 0..disk.syncs() {
        let complaint = search(&one_by_one(Protocol::default()), IMAGES_MAX, Some(sync))
            .expect_err("nobody noticed that a sync was missing");
        println!("without sync {sync}: {}", complaint.lines().next().unwrap());
    }
}

/// The manifest comes last: a directory that has one is whole, under its temporary name too, at every instant. That is what
/// a process that is killed leaves, so here the live image counts.
fn unfinished_directories_without_lies(options: &SaveOptions) -> Result<usize, String> {
    let (before, judge) = (image_of_two(), Judge::new(Some(20), 30));
    let mut looked_at = 0;
    for point in 0.. {
        let disk = disk_with(before.clone()).fail_at(point, Fault::PowerFailure);
        let _ = save_by(&disk, 30, options);
        let live = disk.live();
        materialize(&live, judge.directory.path(), &judge.standing.borrow());
        judge.standing.replace(live.clone());
        for name in ["step-000030.tmp", "step-000020.tmp", "step-000010.tmp"] {
            let manifest = live.get(&Path::new(ROOT).join(name).join("MANIFEST.json"));
            if matches!(manifest, Some(Standing::File(text)) if !text.is_empty()) {
                looked_at += 1;
                let verdict = verify(&judge.directory.path().join(ROOT).join(name), &|_, _| {}).unwrap();
                if let Some(flaw) = verdict.flaws.first() {
                    return Err(format!("{name} has a manifest and is not whole: {flaw}"));
                }
            }
        }
        if disk.calls().len() < point {
            return Ok(looked_at);
        }
    }
    Ok(looked_at)
}

#[test]
fn the_manifest_comes_last() {
    let careless = Protocol { manifest_last: false, ..Protocol::default() };
    for way in [one_by_one, all_at_once] {
        assert!(unfinished_directories_without_lies(&way(Protocol::default())).unwrap() > 3);
        println!("{}", unfinished_directories_without_lies(&way(careless)).expect_err("nobody noticed"));
    }
}
