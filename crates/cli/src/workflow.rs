//! `redrive workflow`: chains, groups, batches and graphs of jobs.

use crate::client::{Client, Send, ServerCommand, escaped};
use crate::output::word;
use crate::{exit::Failed, input, output, when};
use clap::Subcommand;
use redrive_policy::lab::picture::{Step, StepState, graph_svg};
use serde_json::Value;
use std::path::PathBuf;

pub(crate) type Args = ServerCommand<Command>;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start a workflow from a file
    Start {
        /// A file with the workflow, in JSON, YAML or TOML; - is standard input
        file: PathBuf,
    },
    /// List workflows, the newest first
    List {
        /// How many
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        limit: u32,
        /// Only those that run, or only those that have ended
        #[arg(long, value_parser = ["running", "ended"])]
        state: Option<String>,
    },
    /// How far a workflow is: each step, its attempts, and what went wrong
    Show(Id),
    /// Draw a workflow with its steps, their states and retries
    Graph {
        #[command(flatten)]
        id: Id,
        /// Where to write the picture; - is standard output
        #[arg(long, value_name = "FILE")]
        svg: PathBuf,
    },
    /// Cancel a workflow: what waits is cancelled, and what a worker has may complete
    Cancel(Id),
}

#[derive(clap::Args)]
pub(crate) struct Id {
    /// The id of the workflow
    id: String,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  redrive workflow start pipeline.json
  redrive workflow list --state running
  redrive workflow show 0192f0c1-7a7e-7c3e-9f55-0d5f1f3a2b4c
  redrive workflow graph 0192f0c1-7a7e-7c3e-9f55-0d5f1f3a2b4c --svg pipeline.svg

A workflow is an object such as {\"type\": \"chain\", \"steps\": [{\"type\": \"a.b\", \"args\": []}, …]}.";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let client = args.common.client()?;
    let told = |answer: &Value, text: String| args.common.print(answer, &text);
    match &args.command {
        Command::Start { file } => {
            let document = input::read(file, None)?;
            let answer = client.ask(Send::Post(&document), "/ojs/v1/workflows")?;
            let workflow = &answer["workflow"];
            told(workflow, format!("{}\n", word(&workflow["id"])))
        }
        Command::List { limit, state } => list(&client, *limit, state.as_deref(), args.common.json),
        Command::Show(Id { id }) => {
            let workflow = fetched(&client, id)?;
            told(&workflow, shown(&workflow))
        }
        Command::Graph { id: Id { id }, svg } => {
            let workflow = fetched(&client, id)?;
            output::file(svg, &picture(&workflow))
        }
        Command::Cancel(Id { id }) => {
            let answer = client.ask(Send::Delete, &path(id))?;
            told(&answer["workflow"], format!("workflow {id} is cancelled\n"))
        }
    }
}

fn path(id: &str) -> String {
    format!("/ojs/v1/workflows/{}", escaped(id))
}

fn fetched(client: &Client, id: &str) -> Result<Value, Failed> {
    Ok(client.ask(Send::Get, &path(id))?["workflow"].take())
}

fn list(client: &Client, limit: u32, state: Option<&str>, json: bool) -> Result<(), Failed> {
    let state = state.map_or_else(String::new, |state| format!("&state={state}"));
    let answer = client.ask(Send::Get, &format!("/ojs/v1/workflows?limit={limit}{state}"))?;
    let workflows = output::entries(&answer, "workflows");
    if json {
        return output::json(&answer);
    }
    if workflows.is_empty() {
        return output::text("no workflows: `redrive workflow start FILE` starts one\n");
    }
    let now = when::now_ms();
    let head = ["WORKFLOW", "NAME", "TYPE", "STATE", "DONE", "FAILED", "CREATED"];
    let row = |workflow: &Value| {
        let text = |key: &str| word(&workflow[key]);
        let done = format!("{} of {}", workflow["jobs_completed"], workflow["jobs_total"]);
        let created = when::relative(workflow["created_at"].as_str(), now);
        [text("id"), text("name"), text("type"), text("state"), done, text("jobs_failed"), created]
    };
    output::text(&output::list(head, workflows, row))
}

/// A workflow for people: a line about it, and a line for each step.
fn shown(workflow: &Value) -> String {
    let now = when::now_ms();
    let mut out = format!("{}\n\n", headline(workflow));
    let head = ["", "STEP", "STATE", "ATTEMPT", "AFTER", "NEXT RETRY", "JOB"];
    let row = |step: &Value| {
        let after: Vec<String> = step["after"].as_array().into_iter().flatten().map(ToString::to_string).collect();
        [
            step["index"].to_string(),
            name(step),
            word(&step["state"]),
            word(&step["attempt"]),
            after.join(", "),
            when::relative(step["next_retry_at"].as_str(), now),
            word(&step["job_id"]),
        ]
    };
    out.push_str(&output::list(head, steps(workflow), row));
    for error in workflow["errors"].as_array().into_iter().flatten() {
        let (job, code, message) = (word(&error["job_id"]), word(&error["code"]), word(&error["message"]));
        out.push_str(&format!("\njob {job} failed: {code}: {message}\n  redrive job explain {job}\n"));
    }
    out
}

fn headline(workflow: &Value) -> String {
    let name = workflow["name"].as_str().map_or_else(String::new, |name| format!(" {}", output::plain(name)));
    let (kind, state) = (word(&workflow["type"]), word(&workflow["state"]));
    let (done, total) = (&workflow["jobs_completed"], &workflow["jobs_total"]);
    format!("{kind}{name} {} is {state}: {done} of {total} jobs completed", word(&workflow["id"]))
}

fn picture(workflow: &Value) -> String {
    let title = workflow["name"].as_str().map_or_else(|| word(&workflow["id"]), str::to_owned);
    let now = when::now_ms();
    let drawn = |step: &Value| {
        let attempt = step["attempt"].as_u64().unwrap_or(0);
        let retry = when::relative(step["next_retry_at"].as_str(), now);
        let detail = match (attempt, step["next_retry_at"].is_string()) {
            (_, true) => format!("attempt {} {retry}", attempt + 1),
            (0, _) => word(&step["state"]),
            (attempt, _) => format!("attempt {attempt}"),
        };
        let after = step["after"].as_array().into_iter().flatten();
        let after = after.filter_map(Value::as_u64).filter_map(|index| usize::try_from(index).ok()).collect();
        Step { name: name(step), detail, state: state(step), after }
    };
    let steps: Vec<Step> = steps(workflow).iter().map(drawn).collect();
    graph_svg(&title, &headline(workflow), &steps)
}

fn steps(workflow: &Value) -> &[Value] {
    output::entries(workflow, "steps")
}

/// A step by its own name, else as a callback, else by the type of its job.
fn name(step: &Value) -> String {
    let kind = word(&step["type"]);
    match (step["id"].as_str(), step["callback"].as_str()) {
        (Some(id), _) => format!("{} ({kind})", output::plain(id)),
        (None, Some(callback)) => format!("{callback} ({kind})"),
        (None, None) => kind,
    }
}

fn state(step: &Value) -> StepState {
    match step["state"].as_str() {
        Some("completed") => StepState::Completed,
        Some("failed") => StepState::Failed,
        Some("cancelled") => StepState::Cancelled,
        Some("retryable") => StepState::Retrying,
        Some("waiting") => StepState::Waiting,
        _ => StepState::Running,
    }
}
