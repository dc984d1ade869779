//! Shards become a trained bigram model, step by step, in a run that can be killed at any instant.
//!
//! ```text
//! windows -> step -> line of the history -> [history durable -> samples -> checkpoint] -> ... -> final.json
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use safestep::checkpoint::{
    DataCursor, GitSha, Latest, Retention, RngState, SaveOptions, TrainerState, load, save, scan,
};
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
use super::room;
use crate::cli::history::read;
use crate::cli::outputs::must_be_outside_of_steps;
use crate::cli::{Exit, Failure};
use crate::report::{Screen, train::Progress};

/// The stream of the generator that draws where a pass starts.
const STREAM: u64 = 54;

/// The file that says how a run has ended.
const LAST_WORD: &str = "final.json";

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

/// What a checkpoint says of the run that goes on from it.
struct Resumed {
    step: u64,
    tokens_seen: u64,
    git_sha: Option<GitSha>,
    /// What was declared done when it was looked for.
    latest: Latest,
}

impl<'a> Training<'a> {
    /// Makes ready for the first step, or for the one after the checkpoint. Whatever is refused is refused before anything in
    /// the run's directory has changed, but for a trainer that comes between: the history, which only one can have, is opened
    /// before that is looked for.
    fn begin(arguments: &'a Arguments, screen: &mut Screen) -> Result<Self, Failure> {
        let out = &arguments.out;
        let root = out.join("ckpt");
        must_be_outside_of_steps(&root)?;
        let empty = ending::is_empty(out).map_err(|error| Error::io("look into", out, error))?;
        if !arguments.resume && !empty {
            let what = format!("{} holds something; --resume goes on with a run", out.display());
            return Err(Failure::Usage(what));
        }
        let (config, mut stream, mut learner) = first_step(arguments)?;
        let config_text = config.text();
        let resumed = match arguments.resume {
            true => take_over(&root, &config_text, &mut stream, &mut learner, screen)?,
            false => None,
        };
        let (step, tokens_seen) =
            resumed.as_ref().map_or((0, 0), |resumed| (resumed.step, resumed.tokens_seen));
        if step > arguments.max_steps {
            let (out, max_steps) = (out.display(), arguments.max_steps);
            return Err(Failure::Usage(format!(
                "{out} is already at step {step}, beyond --max-steps {max_steps}"
            )));
        }
        std::fs::create_dir_all(out).map_err(|error| Error::io("make the directory", out, error))?;
        let files = RunFiles::new(out, "")?;
        let history = History::open(&OsDisk, &files)?;
        if let Some(repair) = history.repair() {
            screen.remark(&format!("moved a line that was cut off to {}", repair.moved_to.display()));
        }
        let git_sha = match (arguments.git_sha, &resumed) {
            (Some(given), _) => Some(given),
            // Wherever it is resumed.
            (None, Some(resumed)) => resumed.git_sha,
            (None, None) => commit_around(),
        };
        let saved = resumed.as_ref().map(|resumed| resumed.step);
        let mut training = Self {
            arguments,
            config,
            config_text,
            files,
            root,
            git_sha,
            stream,
            learner,
            history,
            step,
            tokens_seen,
            saved,
        };
        training.still_as_found(resumed.as_ref())?;
        if arguments.resume {
            training.go_on(resumed, screen)?;
        }
        Ok(training)
    }

    /// That nobody has trained there between the look at the run and now, where its history is ours.
    fn still_as_found(&self, resumed: Option<&Resumed>) -> Result<(), Failure> {
        let latest = match scan(&OsDisk, &self.root) {
            Err(error) if is_not_found(&error) => Latest::Absent,
            answer => answer?.latest,
        };
        let loss = self.files.loss();
        let begun = !self.arguments.resume && std::fs::metadata(&loss).is_ok_and(|found| found.len() > 0);
        if begun || latest != resumed.map_or(Latest::Absent, |resumed| resumed.latest.clone()) {
            let because = io::Error::other("another trainer was there meanwhile; resume once more");
            return Err(Error::io("train in", &self.root, because).into());
        }
        Ok(())
    }

    /// Makes true what stands beside the checkpoint that was taken over. The history is ours by now.
    fn go_on(&mut self, resumed: Option<Resumed>, screen: &mut Screen) -> Result<(), Failure> {
        if std::fs::metadata(self.files.loss()).is_ok_and(|found| found.len() > 0) {
            // Read once: a bad line would otherwise be found when the run is over.
            read(&self.files.loss(), screen)?;
            // Lines beyond the step stay, and count no more.
            self.history.resume(self.step)?;
        }
        match resumed {
            Some(_) => screen.remark(&format!("resumed {}", self.step)),
            None => screen.remark("no checkpoint yet: from step 0"),
        }
        if self.step < self.arguments.max_steps {
            // The last word of a shorter run.
            ending::take_back(self.files.directory(), LAST_WORD)?;
        }
        Ok(())
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
            if guard.after_step(self.step) == Next::Go {
                continue;
            }
            self.save(&mut progress)?;
            // Asked once more: a stop during a save of the cadence is not one more step.
            if guard.signals().stop_asked() && self.step < self.arguments.max_steps {
                progress.stopped(self.step);
                return Ok(());
            }
        }
        if self.saved != Some(self.step) {
            self.save(&mut progress)?;
        }
        self.finish(&mut progress)
    }

    /// A step is declared done only after its line in the history is durable, and its samples are: so whoever resumes need not
    /// write them, which would undo a pivot. Samples that cannot be written are no reason to stop.
    fn save(&mut self, progress: &mut Progress) -> Result<(), Failure> {
        self.history.sync()?;
        self.keep_samples(progress);
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
        Ok(())
    }

    /// The samples become those of this step.
    fn keep_samples(&self, progress: &Progress) {
        let samples = ending::samples(&self.learner, self.config.seed, self.step, self.config.vocabulary);
        if let Err(error) = replace_samples(&OsDisk, &self.files, &samples) {
            progress.complain(&error.to_string());
        }
    }

    /// The last word of the run.
    fn finish(&mut self, progress: &mut Progress) -> Result<(), Failure> {
        // Those of a save that was cut off, or that could not be kept. Where there are none a pivot has taken them away.
        if ending::step_of_samples(&self.files.samples()).is_some_and(|step| step != self.step) {
            self.keep_samples(progress);
        }
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
        ending::write(&self.files.directory().join(LAST_WORD), &last)?;
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

/// Data and model as they are before the first step.
fn first_step(arguments: &Arguments) -> Result<(Config, TokenStream, Learner), Failure> {
    let paths: Vec<Vec<PathBuf>> =
        arguments.data.iter().map(|path| shard_paths(path)).collect::<Result<_, _>>()?;
    let shards = Shards::open(paths.iter().flatten(), Access::Map)?;
    let vocabulary = vocabulary(arguments, &shards)?;
    let config = Config::of(arguments, &shards, vocabulary)?;
    let learner = learner(arguments, &config)?;
    let rng = Pcg32::seed(arguments.seed, STREAM);
    let share = Share::whole(arguments.batch);
    let stream = TokenStream::new(shards, arguments.seq_len, share, rng, Some(vocabulary))?;
    Ok((config, stream, learner))
}

/// A model for which the machine has room.
fn learner(arguments: &Arguments, config: &Config) -> Result<Learner, Failure> {
    let vocabulary = config.vocabulary;
    let optimizer = config.lr.map(|lr| Optimizer::new(arguments.optimizer, lr));
    debug_assert_eq!(optimizer.is_some(), arguments.method == Method::Gradient);
    room::fits(vocabulary, optimizer.as_ref().map(|optimizer| optimizer.algorithm))?;
    Learner::new(vocabulary, optimizer).map_err(|_| {
        Failure::Usage(format!("a table of {vocabulary} x {vocabulary} does not fit into memory"))
    })
}

/// Takes over the newest checkpoint that is whole, if it is of the same run; nothing if there is none yet.
fn take_over(
    root: &Path,
    config_text: &str,
    stream: &mut TokenStream,
    learner: &mut Learner,
    screen: &mut Screen,
) -> Result<Option<Resumed>, Failure> {
    let checkpoint = match load(&OsDisk, root) {
        Err(error) if matches!(error.because(), Cause::NoCheckpoint { skipped } if skipped.is_empty()) => {
            return Ok(None);
        }
        answer => answer?,
    };
    for skipped in &checkpoint.skipped {
        screen.complain(&format!("skipped {skipped}"));
    }
    let other =
        |what: String| Failure::Usage(format!("{} is of another run: {what}", checkpoint.path.display()));
    let Some(config) = checkpoint.config() else {
        return Err(other("it has no config, as one that was made of a snapshot".into()));
    };
    if let Some(what) = config::difference("its config.json", config, config_text) {
        return Err(other(what));
    }
    let trainer = &checkpoint.trainer;
    let (Some(place), Some(rng)) = (trainer.data_cursor, trainer.rng_state) else {
        return Err(other("it has no cursor".into()));
    };
    let rng = Pcg32::restore(rng.state, rng.inc).ok_or_else(|| other("its generator is none".into()))?;
    stream.restore(Cursor { shard: place.shard, offset: place.offset, rng })?;
    learner.restore(&checkpoint).map_err(other)?;
    let TrainerState { step, tokens_seen, git_sha, .. } = checkpoint.trainer;
    Ok(Some(Resumed { step, tokens_seen, git_sha, latest: checkpoint.latest }))
}

fn is_not_found(error: &Error) -> bool {
    matches!(error.because(), Cause::Io(error) if error.kind() == io::ErrorKind::NotFound)
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
