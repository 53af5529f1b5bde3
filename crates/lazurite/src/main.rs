//! The program: flags, accounts, the engine, the ports, and an end in good order.

mod accounts;
mod check;
mod flags;
mod greeting;
mod name;
mod serve;

use std::process::ExitCode;

use flags::{Command, Wrong};
use name::CalledAs;

/// Requests make and drop many small things; this allocator does that for less than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let called_as = CalledAs::of(arguments.next());
    match run(arguments, called_as) {
        Ok(code) => code,
        Err(Wrong(sentence)) => {
            eprintln!("lazurite: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: std::env::ArgsOs, called_as: CalledAs) -> Result<ExitCode, Wrong> {
    match flags::parse(arguments, |name| std::env::var_os(name))? {
        Command::Help => greeting::say(&flags::help()),
        Command::Version => greeting::say(concat!("lazurite ", env!("CARGO_PKG_VERSION"), "\n")),
        Command::Check(folder) => return check::run(&folder),
        Command::Serve(options) => serve::run(*options, called_as)?,
    }
    Ok(ExitCode::SUCCESS)
}
