//! A text becomes a shard, the shard a trained model, and a training that is killed the same model, byte for byte.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use safestep::checkpoint::{StepName, load};
use safestep::run::{Canonical, RunFiles};
use safestep::tokens::{IdSource, Packed, Packing, ShardKind, pack};
use safestep::{Error, OsDisk};

use super::{Done, Tour, surprise};
use crate::cli::Failure;
use crate::report::{grouped, plural};

const TEXT: &str = "story.txt";
const SHARD: &str = "story.bin";
const WHOLE: &str = "whole";
const KILLED: &str = "killed";

pub(super) fn pack_a_text(tour: &mut Tour<'_>) -> Result<Done, Failure> {
    tour.write(TEXT, include_bytes!("story.txt"))?;
    tour.command(&["tokens", "pack", TEXT, "--out", SHARD, "--vocab", "256"])?;
    let mut packed = Packed::default();
    let packing = Packing { kind: ShardKind::Narrow, vocabulary: 256, shard_ids: None };
    pack(
        &OsDisk,
        &[tour.path(TEXT)],
        IdSource::Bytes,
        &tour.path(SHARD),
        packing,
        &mut packed,
        &mut |_, _| (),
    )?;
    tour.say(&format!("{SHARD}: {}, two bytes each behind a header of 1024", plural(packed.ids, "id")))?;
    Ok(("packed", format!("a text into a shard of {} tokens", grouped(packed.ids))))
}

pub(super) fn train(tour: &mut Tour<'_>) -> Result<Done, Failure> {
    let ran = trainer(tour, WHOLE, &[])?;
    if ran.code != Some(0) {
        return Err(surprise(format!("a training should end well: {}", ran.lines.join("; "))));
    }
    Ok(("trained", "100 steps, a checkpoint every 50, each durable before it counts".into()))
}

pub(super) fn be_killed(tour: &mut Tour<'_>) -> Result<Done, Failure> {
    let ran = trainer(tour, KILLED, &["--sigkill-after", "60"])?;
    if ran.signal != Some(9) {
        return Err(surprise(format!("SIGKILL should have ended it: {}", ran.lines.join("; "))));
    }
    tour.say("killed by SIGKILL after step 60, with no time for a last word")?;
    let ran = trainer(tour, KILLED, &["--resume"])?;
    if ran.code != Some(0) {
        return Err(surprise(format!("it should go on: {}", ran.lines.join("; "))));
    }
    Ok(("killed", "a training after step 60 by SIGKILL; it went on from step 50".into()))
}

pub(super) fn compare(tour: &mut Tour<'_>) -> Result<Done, Failure> {
    let mut files = vec!["final.json".to_owned()];
    for step in [50, 100].map(StepName::of) {
        let directory = format!("ckpt/{step}");
        let path = tour.path(WHOLE).join(&directory);
        let found = fs::read_dir(&path).map_err(|error| Error::io("look into", &path, error))?;
        let mut names: Vec<String> =
            found.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        files.extend(names.into_iter().map(|name| format!("{directory}/{name}")));
    }
    for file in &files {
        let [whole, killed] = [WHOLE, KILLED].map(|run| tour.read(&format!("{run}/{file}")));
        let (whole, killed) = (whole?, killed?);
        if whole != killed {
            return Err(surprise(format!("{file} of the two runs should be the same")));
        }
        tour.say(&format!("the same {:>9} bytes  {file}", grouped(whole.len() as u64)))?;
    }
    let [whole, killed] = [WHOLE, KILLED].map(|run| entries(tour, run));
    let whole = whole?;
    if whole != killed? {
        return Err(surprise("the losses of the two runs should be the same".into()));
    }
    tour.say(&format!(
        "the same {:>9} losses {WHOLE}/.loss.json, as 'safestep history' tells it",
        whole.len()
    ))?;
    let last = String::from_utf8_lossy(&tour.read(&format!("{WHOLE}/final.json"))?).trim_end().to_owned();
    tour.say(&last)?;
    Ok((
        "compared",
        format!("{} files and {} losses of both runs: not a bit differs", files.len(), whole.len()),
    ))
}

/// The canonical history of a run, line by line.
fn entries(tour: &Tour<'_>, run: &str) -> Result<Vec<Vec<u8>>, Error> {
    let canonical = Canonical::open(&RunFiles::new(tour.path(run), "")?.loss())?;
    let (mut entries, mut lines) = (canonical.entries(), Vec::new());
    while let Some(entry) = entries.next()? {
        lines.push(entry.text().to_vec());
    }
    Ok(lines)
}

pub(super) fn recover(tour: &mut Tour<'_>) -> Result<Done, Failure> {
    let model = format!("{KILLED}/ckpt/step-000100/model.safetensors");
    let mut bytes = tour.read(&model)?;
    if let Some(byte) = bytes.last_mut() {
        *byte ^= 1;
    }
    tour.write(&model, &bytes)?;
    tour.say(&format!("one bit of {model} is flipped; who loads now?"))?;
    let checkpoint = load(&OsDisk, &tour.path(KILLED).join("ckpt"))?;
    for skipped in &checkpoint.skipped {
        tour.say(&format!("skipped {skipped}"))?;
    }
    if checkpoint.trainer.step != 50 {
        return Err(surprise(format!("step 50 should be loaded, not {}", checkpoint.name)));
    }
    tour.say("loaded step-000050: the newest that is whole, every byte of it checked")?;
    Ok(("recovered", "from a flipped bit, with the checkpoint before".into()))
}

/// How a training ended, and what it said that is the same each time.
struct Ran {
    code: Option<i32>,
    signal: Option<i32>,
    lines: Vec<String>,
}

/// Runs this very program as a trainer, in a process of its own.
fn trainer(tour: &mut Tour<'_>, run: &str, more: &[&str]) -> Result<Ran, Failure> {
    let settings = ["--max-steps", "100", "--batch", "4", "--seq-len", "32", "--ckpt-every", "50"];
    let words = [&["train", "bigram", "--data", SHARD, "--out", run], &settings[..], more].concat();
    tour.command(&words)?;
    let program = std::env::current_exe().map_err(|error| Error::io("find", "this program", error))?;
    let child = Command::new(&program)
        .args(&words)
        .current_dir(tour.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output();
    let output = child.map_err(|error| Error::io("run", program, error))?;
    let said = String::from_utf8_lossy(&output.stderr);
    // How fast it was is another story each time.
    let lines: Vec<String> =
        said.lines().filter(|line| !line.starts_with("step ")).map(str::to_owned).collect();
    for line in &lines {
        tour.say(line)?;
    }
    Ok(Ran { code: output.status.code(), signal: output.status.signal(), lines })
}
