//! The program: arguments become calls of the library, and its answers become what people and programs read.

mod report;

mod cli;

fn main() -> std::process::ExitCode {
    cli::run(std::env::args_os())
}
