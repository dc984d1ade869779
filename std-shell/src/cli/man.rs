//! Our arguments become a manual page.

use std::io::{self, Write};

use clap::builder::PossibleValuesParser;
use clap::{Args, CommandFactory as _};
use clap_mangen::Man;

use super::{Cli, Exit, Failure};
use crate::report::Screen;

/// Print the manual page, or that of a subcommand
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// The subcommand, such as check or tokens-pack; without it the page of the whole program.
    #[arg(value_name = "COMMAND", hide_possible_values = true)]
    #[arg(value_parser = PossibleValuesParser::new(COMMANDS))]
    command: Option<String>,
}

const COMMANDS: [&str; 25] = [
    "inspect",
    "show",
    "check",
    "rewrite",
    "convert",
    "snapshot",
    "snapshot-inspect",
    "snapshot-export",
    "snapshot-import",
    "snapshot-size",
    "history",
    "pivot",
    "steps",
    "verify",
    "prune",
    "tokens",
    "tokens-pack",
    "tokens-inspect",
    "tokens-check",
    "tokens-windows",
    "train",
    "train-bigram",
    "demo",
    "completions",
    "man",
];

const AFTER_HELP: &str = "\
Examples:
  safestep man | man -l -
  safestep man check > ~/.local/share/man/man1/safestep-check.1";

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Result<Exit, Failure> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    // `tokens-pack` is the subcommand `pack` of `tokens`.
    let names = arguments.command.iter().flat_map(|name| name.split('-'));
    let wanted = names.fold(&command, |command, name| command.find_subcommand(name).unwrap_or(command));
    let command = wanted.clone();
    let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let has_subcommands = command.has_subcommands();
    // The same bytes each time: no date, but the page's head has a place for one.
    let page = Man::new(command).date(" ").source(concat!("safestep ", env!("CARGO_PKG_VERSION")));
    let page = page.manual("User Commands");
    let out = screen.out();
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    if has_subcommands {
        page.render_subcommands_section(out)?;
    }
    sections(&after, out)?;
    Ok(Exit::Good)
}

/// What stands after the long help, with its titles ("Examples:") as those of sections and its lines as they are.
fn sections(text: &str, out: &mut impl Write) -> io::Result<()> {
    for line in text.lines() {
        match line.split_once(':') {
            Some((title, "")) => writeln!(out, ".fi\n.SH {}\n.nf", title.to_uppercase())?,
            _ => writeln!(out, "{}", verbatim(line.trim_start()))?,
        }
    }
    writeln!(out, ".fi")
}

/// A line that means nothing to roff.
fn verbatim(text: &str) -> String {
    format!("\\&{}", text.replace('\\', "\\e").replace('-', "\\-"))
}
