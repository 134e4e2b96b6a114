//! The `redrive` command.

mod backend;
mod bench;
mod client;
mod completions;
mod config;
mod cron;
mod dead;
mod descriptors;
mod enqueue;
mod events;
mod exit;
mod flow;
mod graph;
mod input;
mod job;
mod jobs;
mod key;
mod limit;
mod log;
mod man;
mod openapi;
mod operator;
mod output;
mod pages;
mod policy;
mod queues;
mod serve;
mod signals;
mod store;
mod webhook;
mod when;
mod work;
mod workers;
mod workflow;

use clap::{Parser, Subcommand};
use exit::Failed;
use std::process::ExitCode;

/// Retry policies that do what they say: check, explain, convert and simulate them, and run jobs with them.
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
  redrive flow run order.json --input order-17.json
  redrive serve --listen 127.0.0.1:8080 --data ./redrive-data
  redrive enqueue mail.send '{\"to\": \"ada@example.org\"}' --wait
  redrive work --exec 'python3 send.py' --concurrency 4
  redrive job explain 0192f0c1-7a7e-7c3e-9f55-0d5f1f3a2b4c
  redrive completions bash > ~/.local/share/bash-completion/completions/redrive

Exit codes: 0 done, 1 the input is invalid or the check failed, 2 wrong usage, 3 a server or store failed.";

#[derive(Subcommand)]
enum Command {
    /// Work with retry policies: check, schedule, replay, explain, convert, simulate
    #[command(subcommand)]
    Policy(policy::Command),
    /// Enqueue jobs
    Enqueue(Box<enqueue::Args>),
    /// List jobs
    Jobs(jobs::Args),
    /// Show one job, and explain its state; retry it, cancel it
    #[command(after_help = job::EXAMPLES)]
    Job(job::Args),
    /// List dead letters, retry them, delete them
    #[command(after_help = dead::EXAMPLES)]
    Dead(dead::Args),
    /// List queues, pause and resume them
    Queues(queues::Args),
    /// Enqueue jobs by schedules: register them, list them, pause and delete them
    #[command(after_help = cron::EXAMPLES)]
    Cron(cron::Args),
    /// Start workflows of jobs, look at them, draw them, cancel them
    #[command(after_help = workflow::EXAMPLES)]
    Workflow(workflow::Args),
    /// Check Exosphere's graphs; list, show and draw their runs; free states that are stuck
    #[command(after_help = graph::EXAMPLES)]
    Graph(graph::Args),
    /// Check, draw and run MWL flows, without a server or on one
    #[command(subcommand, after_help = flow::EXAMPLES)]
    Flow(flow::Command),
    /// Show what happened lately, and follow what happens
    Events(events::Args),
    /// Send events to endpoints: subscribe them, test them, look at deliveries
    #[command(after_help = webhook::EXAMPLES)]
    Webhook(webhook::Args),
    /// List workers and what they run; tell them to claim no more jobs, or to end
    Workers(workers::Args),
    /// Check, back up, restore or compact the folder of a store; copy a store between folders and databases
    Store(store::Args),
    /// Make, list, rotate and revoke API keys
    #[command(after_help = key::EXAMPLES)]
    Key(key::Args),
    /// Measure how fast a server is
    Bench(bench::Args),
    /// Run a shell command for each job
    Work(work::Args),
    /// Start the server: Open Job Spec over HTTP on a store in a folder
    Serve(serve::Args),
    /// Print the configuration that is in effect, and where each value came from
    Config(config::Args),
    /// Print the description of the HTTP interface, in the form of OpenAPI
    Openapi(openapi::Args),
    /// Print the completion script for a shell
    Completions(completions::Args),
    /// Write manual pages
    Man(man::Args),
}

fn main() -> ExitCode {
    // An internal command, which is never suggested for a typo.
    if std::env::args_os().skip(1).eq([work::guard::COMMAND]) {
        work::guard::run();
        return ExitCode::SUCCESS;
    }
    let result = match Cli::parse().command {
        Command::Policy(command) => policy::run(command),
        Command::Enqueue(args) => enqueue::run(&args),
        Command::Jobs(args) => jobs::run(&args),
        Command::Job(args) => job::run(&args),
        Command::Dead(args) => dead::run(&args),
        Command::Queues(args) => queues::run(&args),
        Command::Cron(args) => cron::run(&args),
        Command::Workflow(args) => workflow::run(&args),
        Command::Graph(args) => graph::run(&args),
        Command::Flow(command) => flow::run(command),
        Command::Events(args) => events::run(&args),
        Command::Webhook(args) => webhook::run(&args),
        Command::Workers(args) => workers::run(&args),
        Command::Store(args) => store::run(&args),
        Command::Key(args) => key::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Work(args) => work::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Openapi(args) => openapi::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed { code, message }) => {
            if !message.is_empty() {
                eprintln!("redrive: {}", output::plain(&message));
            }
            ExitCode::from(code)
        }
    }
}
