//! The name of a shell becomes a script that completes our arguments in it.

use std::io::Write as _;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::{Cli, Exit, Failure};
use crate::report::Screen;

/// Print a script that completes arguments in your shell
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// The shell: bash, elvish, fish, powershell or zsh.
    #[arg(value_name = "SHELL", hide_possible_values = true)]
    shell: Shell,
}

const AFTER_HELP: &str = "\
Examples:
  safestep completions bash > ~/.local/share/bash-completion/completions/safestep
  safestep completions fish > ~/.config/fish/completions/safestep.fish
  safestep completions zsh > \"${fpath[1]}/_safestep\"";

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    // Into memory first: the generator panics if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "safestep", &mut script);
    screen.out().write_all(&script)?;
    Ok(Exit::Good)
}
