//! `redrive flow`: MWL flows.

mod check;
mod graph;
mod run;

use crate::exit::Failed;
use crate::{input, output};
use clap::Subcommand;
use redrive_flow::{Definition, Problem};
use serde_json::json;
use std::path::Path;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Check whether a definition is valid, and list every problem with its line and column
    Check(check::Args),
    /// Run a flow to its end, without a server, and print its Result
    Run(run::Args),
    /// Draw a flow: its steps, what leads from each to the next, and the middleware around them
    Graph(graph::Args),
}

pub(crate) fn run(command: Command) -> Result<(), Failed> {
    match command {
        Command::Check(args) => check::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Graph(args) => graph::run(&args),
    }
}

/// Reads a definition. Its problems are printed where it has some.
fn definition(path: &Path, json: bool) -> Result<Definition, Failed> {
    let text = input::read_text(path)?;
    Definition::read(&text).or_else(|problems| refuse(path, &problems, json))
}

fn refuse<T>(path: &Path, problems: &[Problem], json: bool) -> Result<T, Failed> {
    if json {
        output::json(&json!({ "valid": false, "errors": problems }))?;
        return Err(Failed::already_reported());
    }
    let lines: Vec<String> = problems
        .iter()
        .map(|Problem { path: member, line, column, message }| {
            let member = if member.is_empty() { "(whole definition)" } else { member };
            format!("{}:{line}:{column}: {member}: {message}", input::shown(path))
        })
        .collect();
    Err(Failed::invalid(format!("the definition is not valid\n{}", lines.join("\n"))))
}
