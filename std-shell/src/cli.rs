//! Arguments become a subcommand's work, and its outcome an exit code.
//!
//! One file a subcommand: it calls the library, then a report prints. Standard output is data, standard error is
//! talk. Whatever stands in a name or an argument, neither drives a terminal.

mod sources;

mod pattern;

mod outputs;

mod interrupt;

mod checkpoints;

mod check;
mod completions;
mod convert;
mod demo;
mod history;
mod inspect;
mod man;
mod pivot;
mod prune;
mod rewrite;
mod show;
mod snapshot;
mod steps;
mod tokens;
mod train;
mod verify;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::{ColorChoice, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use safestep::run::Signals;
use safestep::{Blame, Error};

use crate::report::{self, Screen, Trouble, plural};

/// Judges, shows, rewrites and converts safetensors model files.
#[derive(Debug, Parser)]
#[command(name = "safestep", version, arg_required_else_help = true, subcommand_required = true)]
#[command(
    about = "Judges, shows, rewrites and converts safetensors model files",
    long_about = "Judges, shows, rewrites and converts safetensors model files.\n\n\
        A file is good if it keeps every rule of the format; otherwise the first broken rule, its place in the \
        file and the tensor are named. Judging reads only headers, so the size of a model does not matter.",
    after_help = "'safestep demo' shows all of it in a second; 'safestep --help' has examples and exit codes.",
    after_long_help = AFTER_HELP
)]
struct Cli {
    /// When to use colours.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    #[arg(
        help = "When to use colours: auto, always, never",
        long_help = "When to use colours: auto, always or never. Auto means on a terminal, unless NO_COLOR is set"
    )]
    color: ColorChoice,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Inspect(inspect::Arguments),
    Show(show::Arguments),
    Check(check::Arguments),
    Rewrite(rewrite::Arguments),
    Convert(convert::Arguments),
    Snapshot(snapshot::Arguments),
    History(history::Arguments),
    Pivot(pivot::Arguments),
    Steps(steps::Arguments),
    Verify(verify::Arguments),
    Prune(prune::Arguments),
    Tokens(tokens::Arguments),
    Train(train::Arguments),
    Demo(demo::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

const AFTER_HELP: &str = "\
Examples:
  safestep inspect model.safetensors          what is in it, as a table
  safestep inspect --json models/             the same for programs, of a whole directory
  safestep show model.safetensors lm_head.weight   values of a tensor
  safestep check --quiet --recursive models/  silence if all of them are good
  safestep rewrite odd.safetensors new.safetensors
  safestep convert model.safetensors half.safetensors --to BF16
  safestep history run --plot loss.svg        the losses of a run, resumed or not
  safestep steps run                          its checkpoints, and which one a resume would take
  safestep tokens check --json shards/        every id of token shards against its vocabulary
  safestep demo                               a tour with files of its own

Exit codes:
  0    all good
  1    at least one file was judged bad
  2    wrong usage
  3    a file could not be read or written (whatever the others are)
  130  interrupted (129: by SIGHUP, 143: by SIGTERM)";

/// How a subcommand ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// All good.
    Good = 0,
    /// At least one file was judged bad.
    Bad = 1,
    /// The arguments make no sense.
    Usage = 2,
    /// A file, or our own output, could not be read or written.
    Machine = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a subcommand stopped.
#[derive(Debug)]
enum Failure {
    /// Its own output could not be written.
    Output(io::Error),
    /// A file could not be read or written, or was judged bad.
    File(Error),
    /// The arguments do not fit what is in the file.
    Usage(String),
    /// Something that cannot happen has happened; the fault is ours.
    Surprise(String),
    /// A signal, by its number, and what it left behind; what was begun has been cleaned up.
    Interrupted { signal: usize, left: &'static str },
    /// The same, when so many of several files were in their places.
    InterruptedAfter { signal: usize, files: u64 },
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::File(error)
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Read(error) => Self::File(error),
            Trouble::Write(error) => Self::Output(error),
        }
    }
}

/// How the files of one call did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    good: u64,
    bad: u64,
    unreadable: u64,
    misused: u64,
}

impl Tally {
    /// Counts a file that has failed.
    fn count(&mut self, blame: Blame) {
        match blame {
            Blame::Data => self.bad += 1,
            Blame::Machine => self.unreadable += 1,
            Blame::Caller => self.misused += 1,
        }
    }

    /// A file that could not be read says nothing about the rest: it goes before a bad one.
    fn exit(self) -> Exit {
        match self {
            Self { unreadable: 1.., .. } => Exit::Machine,
            Self { misused: 1.., .. } => Exit::Usage,
            Self { bad: 1.., .. } => Exit::Bad,
            _ => Exit::Good,
        }
    }
}

/// Runs the program with these arguments, the first of which is its name.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // A trainer hears signals before it does anything else.
    let trains = arguments.get(1).is_some_and(|command| command == "train");
    let early = trains.then(Signals::install);
    let parsed = Cli::command().try_get_matches_from(arguments);
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return answer(&error),
    };
    let mut screen = Screen::new(cli.color);
    let done = match &cli.command {
        Command::Inspect(arguments) => inspect::run(arguments, &mut screen),
        Command::Show(arguments) => show::run(arguments, &mut screen),
        Command::Check(arguments) => check::run(arguments, &mut screen),
        Command::Rewrite(arguments) => rewrite::run(arguments, &mut screen),
        Command::Convert(arguments) => convert::run(arguments, &mut screen),
        Command::Snapshot(arguments) => snapshot::run(arguments, &mut screen),
        Command::History(arguments) => history::run(arguments, &mut screen),
        Command::Pivot(arguments) => pivot::run(arguments, &mut screen),
        Command::Steps(arguments) => steps::run(arguments, &mut screen),
        Command::Verify(arguments) => verify::run(arguments, &mut screen),
        Command::Prune(arguments) => prune::run(arguments, &mut screen),
        Command::Tokens(arguments) => tokens::run(arguments, &mut screen),
        Command::Train(arguments) => early
            .unwrap_or_else(Signals::install)
            .map_err(|error| {
                Error::io("catch signals while training in", arguments.run_directory(), error).into()
            })
            .and_then(|signals| train::run(arguments, signals, &mut screen)),
        Command::Demo(arguments) => demo::run(arguments, &mut screen),
        Command::Completions(arguments) => completions::run(arguments, &mut screen),
        Command::Man(arguments) => man::run(arguments, &mut screen),
    };
    let done = done.and_then(|exit| screen.flush().map(|()| exit).map_err(Failure::Output));
    match done {
        Ok(exit) => exit.into(),
        Err(failure) => fail(failure, &mut screen),
    }
}

/// Help and version go to standard output; what is wrong with the arguments goes, made safe, to standard error.
fn answer(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        report::say_lines(&error.render().to_string());
        return Exit::Usage.into();
    }
    match error.print() {
        Ok(()) => Exit::Good.into(),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => broken_pipe(),
        Err(error) => {
            report::say_lines(&format!("safestep: {}", unwritten(&error)));
            Exit::Machine.into()
        }
    }
}

fn unwritten(error: &io::Error) -> String {
    format!("cannot write the output: {error}")
}

fn fail(failure: Failure, screen: &mut Screen) -> ExitCode {
    match failure {
        Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => broken_pipe(),
        Failure::Output(error) => {
            screen.complain(&unwritten(&error));
            Exit::Machine.into()
        }
        Failure::File(error) => {
            let mut tally = Tally::default();
            tally.count(error.blame());
            screen.complain_of(&error);
            tally.exit().into()
        }
        Failure::Usage(what) => {
            screen.complain(&what);
            Exit::Usage.into()
        }
        Failure::Surprise(what) => {
            screen.complain(&format!("this should not happen, please report it: {what}"));
            Exit::Machine.into()
        }
        Failure::Interrupted { signal, left } => {
            screen.complain(&format!("interrupted{left}"));
            interrupted(signal)
        }
        Failure::InterruptedAfter { signal, files } => {
            let files = plural(files, "new file");
            screen.complain(&format!("interrupted; {files} in place, no more"));
            interrupted(signal)
        }
    }
}

/// What a shell says of a program that a signal has ended.
fn interrupted(signal: usize) -> ExitCode {
    ExitCode::from(u8::try_from(signal.saturating_add(128)).unwrap_or(u8::MAX))
}

/// Nobody reads on. We end as programs do that never heard of it, without a word; not with a success, for that would
/// be said of files that were not looked at.
fn broken_pipe() -> ExitCode {
    let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGPIPE);
    Exit::Machine.into()
}
