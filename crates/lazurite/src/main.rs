//! The program: flags, accounts, the engine, the ports, and an end in good order.

mod account_command;
mod accounts;
mod check;
mod cluster;
mod config;
mod create;
mod credentials;
mod delegation_secret;
mod exposure;
mod flags;
mod greeting;
mod logging;
mod open_files;
mod paths;
mod private_file;
mod program_name;
mod reload;
mod secret;
mod serve;
mod signals;
mod tls;
mod tokens;

use std::process::ExitCode;

use flags::{Command, Wrong};
use program_name::CalledAs;

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
        Command::Version => greeting::say(greeting::VERSION),
        Command::Account(action, options) => account_command::run(action, &options, called_as)?,
        Command::Check(folder) => return check::run(&folder),
        Command::Migrate(options) => {
            cluster::migrate(options.cluster.as_ref().ok_or_else(|| Wrong("--metadata is missing.".into()))?)?;
        }
        Command::Serve(options) => serve::run(*options, called_as)?,
    }
    Ok(ExitCode::SUCCESS)
}
