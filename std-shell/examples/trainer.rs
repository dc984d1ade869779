//! Token shards become a trained model in a run that can be killed at any instant and goes on where it was.
//!
//! The model is the smallest there is, one logit an id; what matters is the loop in `train`. `cargo run --example trainer`
//! trains to step 60, goes on from there to 100, compares with a run that went there at once, and is refused with another seed.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path;

use safestep::checkpoint::{DataCursor, Optimizer, RngState, SaveOptions, State, Tensor, TrainerState};
use safestep::checkpoint::{load, save};
use safestep::run::{Cadence, Guard, History, Next, RunFiles, Signals};
use safestep::tokens::{Cursor, Pcg32, ShardHeader, ShardKind, Shards, Share, TokenStream};
use safestep::{Access, Cause, OsDisk};
use safestep_core::Dtype;

type Answer<T> = Result<T, Box<dyn std::error::Error>>;

const VOCABULARY: u32 = 16;
const SEQ_LEN: NonZeroU32 = NonZeroU32::new(8).unwrap();
const BATCH: NonZeroU32 = NonZeroU32::new(4).unwrap();
const SAVE_EVERY: NonZeroU64 = NonZeroU64::new(50).unwrap();

/// All that decides on the bytes of a run, but for the data.
fn config(seed: u64) -> String {
    format!(r#"{{"batch":{BATCH},"seed":{seed},"seq_len":{SEQ_LEN},"vocabulary":{VOCABULARY}}}"#)
}

/// A run to its end, or until SIGTERM.
fn train(run: &Path, shard: &Path, signals: Signals, seed: u64, max_steps: u64) -> Answer<()> {
    let (root, config) = (run.join("ckpt"), config(seed));
    let shards = Shards::open([shard], Access::Map)?;
    let rng = Pcg32::seed(seed, 54);
    let mut stream = TokenStream::new(shards, SEQ_LEN, Share::whole(BATCH), rng, Some(VOCABULARY))?;
    let mut logits = vec![0.0_f32; VOCABULARY as usize];
    let done = resume(&root, &config, &mut stream, &mut logits)?;
    let mut history = History::open(&OsDisk, &RunFiles::new(run, "")?)?;
    history.resume(done)?; // lines beyond it stay, and count no more
    let mut guard = Guard::new(Cadence::every(SAVE_EVERY), signals);
    for step in done + 1..=max_steps {
        let loss = learn(&mut logits, &stream.next_batch::<u32>()?.targets);
        history.append(step, loss, &[])?;
        if guard.after_step(step) == Next::Go && step < max_steps {
            continue;
        }
        history.sync()?; // before the step is declared done
        checkpoint(&root, step, &config, &stream, &logits)?;
        if guard.signals().stop_asked() {
            break; // SIGTERM, also during the save: exit with 0
        }
    }
    Ok(())
}

/// Takes over the newest checkpoint that is whole, and says of which step it is; 0 where there is none.
fn resume(root: &Path, config: &str, stream: &mut TokenStream, logits: &mut [f32]) -> Answer<u64> {
    let checkpoint = match load(&OsDisk, root) {
        // None yet. Some of which none is whole are an error: to start anew would hide it.
        Err(error) if matches!(error.because(), Cause::NoCheckpoint { skipped } if skipped.is_empty()) => {
            return Ok(0);
        }
        answer => answer?,
    };
    if checkpoint.config() != Some(config.as_bytes()) {
        let saved = String::from_utf8_lossy(checkpoint.config().unwrap_or_default());
        return Err(format!("it is another run: its config is {saved}, this one's {config}").into());
    }
    let entry = checkpoint.model.index().get("logits").ok_or("no logits")?;
    let view = checkpoint.model.view(&entry).ok_or("no logits")?;
    for (to, from) in logits.iter_mut().zip(view.bytes().as_chunks::<4>().0) {
        *to = f32::from_le_bytes(*from);
    }
    let trainer = &checkpoint.trainer;
    let (place, rng) = trainer.data_cursor.zip(trainer.rng_state).ok_or("no cursor")?;
    let rng = Pcg32::restore(rng.state, rng.inc).ok_or("no generator")?;
    stream.restore(Cursor { shard: place.shard, offset: place.offset, rng })?;
    Ok(trainer.step)
}

/// Saves everything that the next step depends on.
fn checkpoint(root: &Path, step: u64, config: &str, stream: &TokenStream, logits: &[f32]) -> Answer<()> {
    let bytes: Vec<u8> = logits.iter().flat_map(|value| value.to_le_bytes()).collect();
    let cursor = stream.cursor();
    let trainer = TrainerState {
        step,
        tokens_seen: step * stream.batch_ids(),
        data_cursor: Some(DataCursor { shard: cursor.shard, offset: cursor.offset }),
        rng_state: Some(RngState { state: cursor.rng.state(), inc: cursor.rng.inc() }),
        ..TrainerState::default()
    };
    let shape = [u64::from(VOCABULARY)];
    let logits = Tensor { name: "logits", dtype: Dtype::F32, shape: &shape, bytes: &bytes };
    let (optimizer, config) = (Optimizer::default(), Some(config.as_bytes()));
    let state = State { model: &[logits], optimizer, trainer, config, files: &[] };
    save(&OsDisk, root, &state, &SaveOptions::default())?;
    Ok(())
}

/// A step of gradient descent on the cross-entropy of ids without context; gives the loss before it.
fn learn(logits: &mut [f32], targets: &[u32]) -> f64 {
    let total: f32 = logits.iter().map(|logit| logit.exp()).sum();
    let chances: Vec<f32> = logits.iter().map(|logit| logit.exp() / total).collect();
    let share = 1.0 / targets.len() as f32;
    let mut loss = 0.0;
    for &id in targets {
        loss -= chances[id as usize].ln() * share;
        logits[id as usize] += share;
    }
    logits.iter_mut().zip(&chances).for_each(|(logit, chance)| *logit -= chance);
    loss.into()
}

/// A shard of ids that are not all as likely.
fn make_shard(path: &Path) -> Answer<()> {
    let ids: Vec<u16> = (0..2000_u32).map(|place| (place * place % VOCABULARY) as u16).collect();
    let mut bytes = vec![0; 1024];
    let header = ShardHeader::new(ShardKind::Narrow, ids.len() as u32, VOCABULARY);
    header.ok_or("no header")?.encode(bytes.first_chunk_mut().ok_or("no room")?);
    bytes.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
    Ok(std::fs::write(path, bytes)?)
}

fn main() -> Answer<()> {
    let signals = Signals::install()?; // before anything else
    let directory = tempfile::tempdir()?;
    let at = |name: &str| directory.path().join(name);
    make_shard(&at("shard.bin"))?;
    for run in ["stopped", "whole"] {
        std::fs::create_dir(at(run))?;
    }
    train(&at("stopped"), &at("shard.bin"), signals.clone(), 42, 60)?;
    assert!(train(&at("stopped"), &at("shard.bin"), signals.clone(), 43, 100).is_err());
    train(&at("stopped"), &at("shard.bin"), signals.clone(), 42, 100)?;
    train(&at("whole"), &at("shard.bin"), signals, 42, 100)?;
    for file in
        ["model.safetensors", "optimizer.safetensors", "trainer_state.json", "config.json", "MANIFEST.json"]
    {
        let read = |run: &str| std::fs::read(at(run).join("ckpt/step-000100").join(file));
        assert_eq!(read("stopped")?, read("whole")?, "{file}");
    }
    println!("step 100 is the same, byte for byte");
    Ok(())
}
