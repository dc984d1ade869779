//! Shards become a trained bigram model, step by step, in a run that can be killed at any instant.
//!
//! ```text
//! windows -> step -> line of the history -> [history durable -> checkpoint -> samples] -> ... -> final.json
//! ```

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use safestep::checkpoint::{DataCursor, GitSha, Retention, RngState, SaveOptions, TrainerState, load, save};
use safestep::run::{Cadence, Guard, History, Next, RunFiles, Signals, replace_samples};
use safestep::tokens::shards::shard_paths;
use safestep::tokens::{Cursor, Pcg32, Shards, Share, TokenStream};
use safestep::{Access, Cause, Error, OsDisk};
use signal_hook::consts::SIGXFSZ;
use signal_hook::flag;

use super::config::{self, Config};
use super::ending;
use super::learner::Learner;
use super::optimizer::Optimizer;
use super::options::{Arguments, Method};
use crate::cli::{Exit, Failure};
use crate::report::{Screen, train::Progress};

/// The stream of the generator that draws where a pass starts.
const STREAM: u64 = 54;

pub(super) fn run(arguments: &Arguments, signals: Signals, screen: &mut Screen) -> Result<Exit, Failure> {
    // Reads the variable FAILPOINTS; it ends with the run.
    #[cfg(feature = "failpoints")]
    let _failpoints = fail::FailScenario::setup();
    // A file that grows beyond what the process may write is an error of the call that writes, not the end by a signal.
    // Nobody reads this flag: that the signal is caught is enough.
    flag::register(SIGXFSZ, Arc::default())
        .map_err(|error| Error::io("catch signals while training in", &arguments.out, error))?;
    let mut training = Training::begin(arguments, screen)?;
    training.steps(signals, screen)?;
    Ok(Exit::Good)
}

/// A run between two steps.
struct Training<'a> {
    arguments: &'a Arguments,
    config: Config,
    config_text: String,
    files: RunFiles,
    root: PathBuf,
    git_sha: Option<GitSha>,
    stream: TokenStream,
    learner: Learner,
    history: History,
    /// Steps that are done.
    step: u64,
    tokens_seen: u64,
    /// The last step that was saved, or loaded.
    saved: Option<u64>,
}

impl<'a> Training<'a> {
    /// Makes ready for the first step, or for the one after the checkpoint.
    fn begin(arguments: &'a Arguments, screen: &mut Screen) -> Result<Self, Failure> {
        let out = &arguments.out;
        let empty = ending::is_empty(out).map_err(|error| Error::io("look into", out, error))?;
        if !arguments.resume && !empty {
            let what = format!("{} holds something; --resume goes on with a run", out.display());
            return Err(Failure::Usage(what));
        }
        let paths: Vec<Vec<PathBuf>> =
            arguments.data.iter().map(|path| shard_paths(path)).collect::<Result<_, _>>()?;
        let shards = Shards::open(paths.iter().flatten(), Access::Map)?;
        let vocabulary = vocabulary(arguments, &shards)?;
        let config = Config::of(arguments, &shards, vocabulary);
        let config_text = config.text();
        let no_room =
            |_| Failure::Usage(format!("a table of {vocabulary} x {vocabulary} does not fit into memory"));
        let optimizer = config.lr.map(|lr| Optimizer::new(arguments.optimizer, lr));
        debug_assert_eq!(optimizer.is_some(), arguments.method == Method::Gradient);
        let learner = Learner::new(vocabulary, optimizer).map_err(no_room)?;
        let rng = Pcg32::seed(arguments.seed, STREAM);
        let share = Share::whole(arguments.batch);
        let stream = TokenStream::new(shards, arguments.seq_len, share, rng, Some(vocabulary))?;
        std::fs::create_dir_all(out).map_err(|error| Error::io("make the directory", out, error))?;
        let files = RunFiles::new(out, "")?;
        let begun = std::fs::metadata(files.loss()).is_ok_and(|found| found.len() > 0);
        let history = History::open(&OsDisk, &files)?;
        if let Some(repair) = history.repair() {
            screen.remark(&format!("moved a line that was cut off to {}", repair.moved_to.display()));
        }
        let mut training = Self {
            arguments,
            config,
            config_text,
            files,
            root: out.join("ckpt"),
            git_sha: arguments.git_sha.or_else(commit_around),
            stream,
            learner,
            history,
            step: 0,
            tokens_seen: 0,
            saved: None,
        };
        if arguments.resume {
            training.resume(screen)?;
        }
        // Lines beyond the step stay, and count no more.
        if begun {
            training.history.resume(training.step)?;
        }
        Ok(training)
    }

    /// Takes over the newest checkpoint that is whole, if it is of the same run.
    fn resume(&mut self, screen: &mut Screen) -> Result<(), Failure> {
        let checkpoint = match load(&OsDisk, &self.root) {
            Err(error) if matches!(error.because(), Cause::NoCheckpoint { skipped } if skipped.is_empty()) => {
                screen.remark("no checkpoint yet: from step 0");
                return Ok(());
            }
            answer => answer?,
        };
        for skipped in &checkpoint.skipped {
            screen.complain(&format!("skipped {skipped}"));
        }
        let other =
            |what: String| Failure::Usage(format!("{} is of another run: {what}", checkpoint.path.display()));
        if let Some(what) = config::difference(checkpoint.config().unwrap_or_default(), &self.config_text) {
            return Err(other(what));
        }
        let trainer = &checkpoint.trainer;
        let (Some(place), Some(rng)) = (trainer.data_cursor, trainer.rng_state) else {
            return Err(other("it has no cursor".into()));
        };
        let rng = Pcg32::restore(rng.state, rng.inc).ok_or_else(|| other("its generator is none".into()))?;
        self.stream.restore(Cursor { shard: place.shard, offset: place.offset, rng })?;
        self.learner.restore(&checkpoint).map_err(other)?;
        (self.step, self.tokens_seen, self.saved) = (trainer.step, trainer.tokens_seen, Some(trainer.step));
        screen.remark(&format!("resumed {}", self.step));
        // Whoever was killed right after the save has left those of an older step.
        self.keep_samples()
    }

    /// All steps that are left, and what comes after the last one.
    fn steps(&mut self, signals: Signals, screen: &mut Screen) -> Result<(), Failure> {
        let mut guard = Guard::new(Cadence::every(self.arguments.ckpt_every), signals);
        let mut progress = Progress::new(screen, self.step, self.arguments.max_steps);
        let mut batch = self.stream.empty_batch::<u32>()?;
        while self.step < self.arguments.max_steps {
            self.stream.next_batch_into(&mut batch.inputs, &mut batch.targets)?;
            let loss = self.learner.step(&batch.inputs, &batch.targets);
            self.step += 1;
            self.tokens_seen = self.tokens_seen.saturating_add(self.stream.batch_ids());
            self.history.append(self.step, loss, &[])?;
            progress.step(self.step, loss, self.stream.batch_ids());
            #[cfg(feature = "failpoints")]
            fail::fail_point!("train/after-step");
            self.crash_if_asked();
            match guard.after_step(self.step) {
                Next::Go => {}
                Next::Save => self.save(&mut progress)?,
                Next::SaveAndStop if self.step < self.arguments.max_steps => {
                    self.save(&mut progress)?;
                    progress.stopped(self.step);
                    return Ok(());
                }
                Next::SaveAndStop => {}
            }
        }
        if self.saved != Some(self.step) {
            self.save(&mut progress)?;
        }
        self.finish(&mut progress)
    }

    /// A step is declared done only after its line in the history is durable.
    fn save(&mut self, progress: &mut Progress) -> Result<(), Failure> {
        self.history.sync()?;
        let cursor = self.stream.cursor();
        let trainer = TrainerState {
            config_sha256: Some(config::sha256(&self.config_text)),
            data_cursor: Some(DataCursor { offset: cursor.offset, shard: cursor.shard }),
            git_sha: self.git_sha,
            lr: self.config.lr,
            rng_state: Some(RngState { inc: cursor.rng.inc(), state: cursor.rng.state() }),
            step: self.step,
            tokens_seen: self.tokens_seen,
        };
        let retention =
            self.arguments.keep_last.map_or_else(Retention::default, |last| Retention::last(last.get()));
        let options = SaveOptions { retention, ..SaveOptions::default() };
        let root = &self.root;
        let saved = self
            .learner
            .with_state(trainer, &self.config_text, |state| save(&OsDisk, root, state, &options))?;
        self.saved = Some(self.step);
        progress.saved(self.step);
        for leftover in saved.retained.leftovers {
            progress.complain(&format!("cannot remove {}: {}", leftover.path.display(), leftover.because));
        }
        self.keep_samples()
    }

    /// The samples are those of the step that was saved last.
    fn keep_samples(&self) -> Result<(), Failure> {
        let samples = ending::samples(&self.learner, self.config.seed, self.step, self.config.vocabulary);
        Ok(replace_samples(&OsDisk, &self.files, &samples)?)
    }

    /// The last word of the run.
    fn finish(&mut self, progress: &mut Progress) -> Result<(), Failure> {
        let name = safestep_core::checkpoint::StepName::of(self.step);
        let model = self.root.join(name.as_str()).join("model.safetensors");
        let digest = ending::sha256_of(&model)?;
        let vocabulary = self.config.vocabulary;
        let last = ending::Final {
            eval_loss: ending::evaluate(&mut self.learner, self.stream.shards(), vocabulary)?,
            model_sha256: digest.to_string(),
            steps: self.step,
            tokens_seen: self.tokens_seen,
        };
        ending::write(&self.files.directory().join("final.json"), &last)?;
        progress.finished(self.step, last.eval_loss);
        Ok(())
    }

    /// What demo and tests call a crash: nothing of ours runs any more.
    fn crash_if_asked(&self) {
        if self.arguments.sigkill_after == Some(self.step) {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    }
}

/// The size of the vocabulary: what the shards state, or what was asked for.
fn vocabulary(arguments: &Arguments, shards: &Shards) -> Result<u32, Failure> {
    let stated = shards.list().iter().find_map(|shard| shard.header().vocabulary());
    let asked = arguments.vocab.map(std::num::NonZeroU32::get);
    asked.or(stated).ok_or_else(|| {
        Failure::Usage("the shards state no vocabulary: --vocab says how many ids there are".into())
    })
}

/// The commit of the repository around, if git is there and knows one.
fn commit_around() -> Option<GitSha> {
    let answer = Command::new("git").args(["rev-parse", "HEAD"]).output().ok()?;
    GitSha::parse(String::from_utf8(answer.stdout).ok()?.trim())
}
