//! `redrive graph`: Exosphere's graphs and their runs.

mod check;
mod show;
mod stuck;

use crate::client::{Client, Send, ServerCommand, query};
use crate::input::Document;
use crate::output::word;
use crate::{exit::Failed, output, when};
use clap::Subcommand;
use serde_json::Value;
use std::path::PathBuf;

pub(crate) type Args = ServerCommand<Command>;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Check a graph as it would be put, without a server: list everything that is wrong with it
    Check(Document),
    /// List runs of graphs, the newest first
    Runs {
        /// Only those of this namespace
        #[arg(long)]
        namespace: Option<String>,
        /// How many
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        limit: u32,
    },
    /// How far a run is: its states, what they wait for, and why each failure was retried or not
    Show {
        /// The id of the run
        run: String,
        /// Draw the run into this file; - is standard output
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
    /// List states that a runtime took long ago and has not reported, and free them
    Stuck(stuck::Args),
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  redrive graph check graph.json
  redrive graph runs --namespace MyProject
  redrive graph show 0192f0c1-7a7e-7c3e-9f55-0d5f1f3a2b4c
  redrive graph show 0192f0c1-7a7e-7c3e-9f55-0d5f1f3a2b4c --svg run.svg
  redrive graph stuck --older-than 2h
  redrive graph stuck --free 0192f0c1-7a7e-7c3e-9f55-0d5f1f3a2b4c-1
  redrive graph stuck --older-than 2h --all         prints how many
  redrive graph stuck --older-than 2h --all --yes   frees them

A graph is the body of PUT /v0/namespace/NAMESPACE/graph/NAME, as Exosphere's SDK sends it.
Whether its nodes are registered is checked when it is put.";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let json = args.common.json;
    match &args.command {
        Command::Check(document) => check::run(document, json),
        Command::Runs { namespace, limit } => runs(&args.common.client()?, namespace.clone(), *limit, json),
        Command::Show { run, svg } => show::run(&args.common.client()?, run, svg.as_deref(), json),
        Command::Stuck(stuck) => stuck::run(&args.common.client()?, stuck, json),
    }
}

fn runs(client: &Client, namespace: Option<String>, limit: u32, json: bool) -> Result<(), Failed> {
    let query = query(&[("limit", Some(limit.to_string())), ("namespace", namespace)]);
    let answer = client.ask(Send::Get, &format!("/ojs/v1/admin/graph-runs{query}"))?;
    if json {
        return output::json(&answer);
    }
    let runs = output::entries(&answer, "runs");
    if runs.is_empty() {
        return output::text("no runs of graphs: a graph is put and triggered with Exosphere's SDK\n");
    }
    let now = when::now_ms();
    let head = ["RUN", "NAMESPACE", "GRAPH", "STATUS", "SUCCEEDED", "PENDING", "FAILED", "RETRIED", "CREATED"];
    let row = |run: &Value| {
        let text = |key: &str| word(&run[key]);
        let created = when::relative(run["created_at"].as_str(), now);
        let [success, pending] = ["success_count", "pending_count"].map(text);
        let [errored, retried] = ["errored_count", "retried_count"].map(text);
        let [namespace, graph, status] = ["namespace", "graph_name", "status"].map(text);
        [text("run_id"), namespace, graph, status, success, pending, errored, retried, created]
    };
    output::text(&output::list(head, runs, row))?;
    if answer["next_after"].is_string() {
        eprintln!("{} runs, and there may be more; --limit shows more", runs.len());
    }
    Ok(())
}
