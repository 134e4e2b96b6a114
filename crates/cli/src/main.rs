//! The `redrive` command.

mod completions;
mod config;
mod exit;
mod input;
mod output;
mod policy;
mod serve;

use clap::{Parser, Subcommand};
use exit::Failed;
use std::process::ExitCode;

/// Retry policies that do what they say: check, explain, convert and simulate them, and run jobs under them.
#[derive(Parser)]
#[command(name = "redrive", version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  redrive policy check retry.json
  redrive policy schedule retry.yaml --svg retry.svg
  redrive policy simulate retry.json --jobs 10000 --outage 10m --capacity 500
  redrive serve --listen 127.0.0.1:8080 --data ./redrive-data
  redrive completions bash > ~/.local/share/bash-completion/completions/redrive

Exit codes: 0 done, 1 the input is invalid or the check failed, 2 wrong usage, 3 a server or store failed.";

#[derive(Subcommand)]
enum Command {
    /// Look at retry policies: check, schedule, replay, explain, convert, simulate
    #[command(subcommand)]
    Policy(policy::Command),
    /// Start the server: Open Job Spec over HTTP on a store in a folder
    Serve(serve::Args),
    /// Print the configuration that is in effect, and where each value came from
    Config(config::Args),
    /// Print the completion script for a shell
    Completions(completions::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Policy(command) => policy::run(command),
        Command::Serve(args) => serve::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Completions(args) => completions::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed { code, message }) => {
            if !message.is_empty() {
                eprintln!("redrive: {message}");
            }
            ExitCode::from(code)
        }
    }
}
