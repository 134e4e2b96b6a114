//! `redrive flow`: MWL flows.

mod check;
mod definitions;
mod graph;
mod result;
mod run;
mod runs;
mod show;

use crate::client::{Client, Send, escaped, query};
use crate::exit::Failed;
use crate::{input, output};
use clap::Subcommand;
use redrive_flow::{Definition, Problem};
use serde_json::{Value, json};
use std::path::Path;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Check whether a definition is valid, and list every problem with its line and column
    Check(check::Args),
    /// Run a flow to its end, without a server, and print its Result
    Run(run::Args),
    /// Draw a flow: its steps, what leads from each to the next, and the middleware around them
    Graph(graph::Args),
    /// Put a definition on a server, as a new version where there is one of its name
    Put(definitions::Put),
    /// List the definitions of a server
    Definitions(definitions::List),
    /// Print a definition of a server
    Definition(definitions::Show),
    /// Delete a definition; its runs go on
    Delete(definitions::Delete),
    /// Start a flow on a server, where it survives crashes
    Start(runs::Start),
    /// A run: its Result, where it is, and the attempts of every Retry on a line of time
    Show(show::Args),
    /// List runs, the newest first
    List(runs::List),
    /// Cancel a run: its cleanups run, and nothing else
    Cancel(runs::Cancel),
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  redrive flow check order.json
  redrive flow run order.json --input order-17.json
  redrive flow graph order.json --svg order.svg
  redrive flow start order.json --input order-17.json
  redrive flow show 019c5654-1111-7111-8111-111111111111
  redrive flow list --state running";

pub(crate) fn run(command: Command) -> Result<(), Failed> {
    match command {
        Command::Check(args) => check::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Graph(args) => graph::run(&args),
        Command::Put(args) => definitions::put(&args),
        Command::Definitions(args) => definitions::list(&args),
        Command::Definition(args) => definitions::show(&args),
        Command::Delete(args) => definitions::delete(&args),
        Command::Start(args) => runs::start(&args),
        Command::Show(args) => show::run(&args),
        Command::List(args) => runs::list(&args),
        Command::Cancel(args) => runs::cancel(&args),
    }
}

/// A definition or a run on the server.
fn path_of(kind: &str, name: &str) -> String {
    format!("/flows/v1/{kind}/{}", escaped(name))
}

/// Reads a list page by page, until there are `limit` entries or no more.
fn listed(
    client: &Client,
    path: &str,
    entries: &str,
    filter: &[(&str, Option<String>)],
    limit: usize,
) -> Result<Vec<Value>, Failed> {
    const PAGE: usize = 100;
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let wanted = PAGE.min(limit - found.len());
        let paged = [("limit", Some(wanted.to_string())), ("after", after)];
        let answer = client.ask(Send::Get, &format!("{path}{}", query(&[filter, &paged].concat())))?;
        found.extend_from_slice(output::entries(&answer, entries));
        found.truncate(limit);
        after = answer["next_after"].as_str().map(str::to_owned);
        if after.is_none() || found.len() >= limit {
            return Ok(found);
        }
    }
}

/// The text of a definition that has no problem.
fn definition_text(path: &Path, json: bool) -> Result<String, Failed> {
    let text = input::read_text(path)?;
    match Definition::read(&text) {
        Ok(_) => Ok(text),
        Err(problems) => refuse(path, &problems, json),
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
