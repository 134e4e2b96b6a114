//! `redrive queues`: lists queues, pauses and resumes them.

use crate::client::{Client, CommonArgs, Send, escaped};
use crate::{exit::Failed, output};
use clap::Subcommand;
use serde_json::{Value, json};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Pause a queue: workers claim none of its jobs, and new jobs can still be enqueued
    Pause(Pause),
    /// Resume a queue: workers claim its jobs again
    Resume(Name),
    /// Remove a queue that has no jobs; the server removes such queues itself after some time
    Remove(Name),
}

#[derive(clap::Args)]
struct Name {
    /// The name of the queue
    name: String,
}

#[derive(clap::Args)]
struct Pause {
    #[command(flatten)]
    queue: Name,
    /// Pause the queue even if it has had no job yet, for example before a deployment
    #[arg(long)]
    create: bool,
}

const EXAMPLES: &str = "\
Examples:
  redrive queues
  redrive queues pause mail
  redrive queues pause --create reports";

/// The states that a queue is counted by, in the order in which they are shown.
const STATES: [&str; 8] =
    ["available", "active", "scheduled", "pending", "retryable", "completed", "cancelled", "discarded"];

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let client = args.common.client()?;
    match &args.command {
        None => list(&client, args.common.json),
        Some(Command::Pause(Pause { queue, create })) => {
            set_status(&client, &queue.name, "pause", &json!({ "create": create }), args.common.json)
        }
        Some(Command::Remove(queue)) => remove(&client, &queue.name, args.common.json),
        Some(Command::Resume(queue)) => set_status(&client, &queue.name, "resume", &json!({}), args.common.json),
    }
}

fn list(client: &Client, json: bool) -> Result<(), Failed> {
    let answer = client.ask(Send::Get, "/ojs/v1/queues?limit=1000")?;
    let names = answer["queues"].as_array().into_iter().flatten().filter_map(|queue| queue["name"].as_str());
    let stats = names.map(|name| client.ask(Send::Get, &format!("/ojs/v1/queues/{}/stats", escaped(name))));
    let stats = stats.collect::<Result<Vec<Value>, Failed>>()?;
    if json {
        return output::json(&json!({ "queues": stats }));
    }
    if stats.is_empty() {
        return output::text("no queues yet: the first job of a queue creates it\n");
    }
    // Columns of zeros are left out: all columns together are wider than a terminal.
    let counted =
        |state: &&str| ["available", "active"].contains(state) || stats.iter().any(|queue| count(queue, state) > 0);
    let states: Vec<&str> = STATES.into_iter().filter(counted).collect();
    let head = ["QUEUE".to_owned(), "STATUS".to_owned()].into_iter().chain(states.iter().map(|s| s.to_uppercase()));
    let rows = std::iter::once(head.collect()).chain(stats.iter().map(|queue| row(queue, &states)));
    output::text(&output::table(&rows.collect::<Vec<Vec<String>>>()))
}

fn row(queue: &Value, states: &[&str]) -> Vec<String> {
    let text = |key: &str| queue[key].as_str().unwrap_or_default().to_owned();
    let counts = states.iter().map(|state| count(queue, state).to_string());
    [text("queue"), text("status")].into_iter().chain(counts).collect()
}

fn count(queue: &Value, state: &str) -> u64 {
    queue["stats"][state].as_u64().unwrap_or(0)
}

fn set_status(client: &Client, name: &str, verb: &str, body: &Value, json: bool) -> Result<(), Failed> {
    let answer = client.try_ask(Send::Post(body), &format!("/ojs/v1/queues/{}/{verb}", escaped(name)))?;
    let answer = answer.map_err(|mut refused| {
        if verb == "pause" && refused.status == 404 {
            refused.message.push_str("\nto pause a queue before its first job, add --create");
        }
        refused
    })?;
    if json {
        return output::json(&answer);
    }
    output::text(&format!("queue {name} is {}\n", answer["status"].as_str().unwrap_or("in an unknown state")))
}

fn remove(client: &Client, name: &str, json: bool) -> Result<(), Failed> {
    let answer = client.ask(Send::Delete, &format!("/ojs/v1/queues/{}", escaped(name)))?;
    if json { output::json(&answer) } else { output::text(&format!("queue {name} is removed\n")) }
}
