//! `redrive policy`: commands for retry policies.

pub(crate) mod check;
mod convert;
mod example;
mod explain;
mod replay;
mod schedule;
mod simulate;
pub(crate) mod source;

use crate::exit::Failed;
use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Check whether a policy is valid, and warn of surprising behaviour
    Check(check::Args),
    /// List every retry with its shortest, mean and longest delay, and draw it
    Schedule(schedule::Args),
    /// Feed failures to a policy and print each verdict as JSON
    Replay(replay::Args),
    /// Explain in sentences what a policy does after each failure, and why
    Explain(explain::Args),
    /// Write a policy in another dialect, and list what is lost
    Convert(convert::Args),
    /// Simulate an outage for a cohort of jobs with one or several policies
    Simulate(simulate::Args),
}

pub(crate) fn run(command: Command) -> Result<(), Failed> {
    match command {
        Command::Check(args) => check::run(&args),
        Command::Schedule(args) => schedule::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Simulate(args) => simulate::run(&args),
    }
}
