//! `redrive workers`: who is alive, what they run, and what they are told.

use crate::client::{Client, CommonArgs, Send, escaped};
use crate::output::word;
use crate::pages::List;
use crate::{exit::Failed, output, when};
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
    /// What is known of a worker, and the jobs that it runs
    Show(Id),
    /// Tell a worker to claim no more jobs; those that it has go on
    Quiet(Id),
    /// Cancel what a worker was told: it claims jobs again
    Resume(Id),
    /// Tell a worker to end within its grace period
    Terminate(Id),
    /// Forget a worker that was not heard of for a minute: its runs fail now, not when their leases end
    Remove(Id),
}

#[derive(clap::Args)]
struct Id {
    /// The name of the worker, its worker_id
    id: String,
}

const EXAMPLES: &str = "\
Examples:
  redrive workers
  redrive workers show mailer-1
  redrive workers quiet mailer-1        before a deployment
  redrive workers terminate mailer-1
  redrive workers --json | jq -r '.workers[] | select(.stale) | .id'

A worker gets what it is told with its next heartbeat, and no job with its next fetch, from the node that it calls.";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let client = args.common.client()?;
    let told = |answer: &Value, text: String| args.common.print(answer, &text);
    match &args.command {
        None => list(&client, &args.common),
        Some(Command::Show(Id { id })) => {
            let worker = client.ask(Send::Get, &path(id))?;
            told(&worker, shown(&worker))
        }
        Some(Command::Quiet(Id { id })) => {
            told(&directed(&client, id, "quiet")?, format!("worker {id} will claim no more jobs\n"))
        }
        Some(Command::Terminate(Id { id })) => {
            told(&directed(&client, id, "terminate")?, format!("worker {id} is told to end with its next heartbeat\n"))
        }
        Some(Command::Resume(Id { id })) => {
            let answer = directed(&client, id, "resume")?;
            let text = match answer["state"].as_str() {
                Some("running") => format!("worker {id} may claim jobs\n"),
                state => format!("worker {id} is told nothing; it is {} by itself\n", state.unwrap_or("unknown")),
            };
            told(&answer, text)
        }
        Some(Command::Remove(Id { id })) => {
            let answer = removed(&client, id)?;
            let text = match answer["rescheduled_jobs"].as_u64().unwrap_or(0) {
                0 => format!("worker {id} is removed; it ran no jobs\n"),
                1 => format!("worker {id} is removed; its run of one job has failed, by the retry policy of the job\n"),
                runs => {
                    format!("worker {id} is removed; its runs of {runs} jobs have failed, by their retry policies\n")
                }
            };
            told(&answer, text)
        }
    }
}

fn path(id: &str) -> String {
    format!("/ojs/v1/admin/workers/{}", escaped(id))
}

fn directed(client: &Client, id: &str, verb: &str) -> Result<Value, Failed> {
    client.ask(Send::Post(&json!({})), &format!("{}/{verb}", path(id)))
}

fn removed(client: &Client, id: &str) -> Result<Value, Failed> {
    let answer = client.try_ask(Send::Delete, &path(id))?;
    let answer = answer.map_err(|mut refused| {
        if refused.status == 409 && refused.message.contains("was heard of") {
            refused.message = format!(
                "worker {id} is alive; only one that was not heard of for a minute can be removed\n\
                 `redrive workers terminate {id}` tells it to end"
            );
        }
        refused
    })?;
    Ok(answer)
}

fn list(client: &Client, common: &CommonArgs) -> Result<(), Failed> {
    let list = List { path: "/ojs/v1/admin/workers", entries: "items", limit: "per_page", filter: Vec::new() };
    let found = list.read(client, usize::MAX)?;
    if common.json {
        return output::json(&found.object("workers"));
    }
    if found.entries.is_empty() {
        return output::text(
            "no workers: one is known once it fetches jobs, for example `redrive work --exec COMMAND`\n",
        );
    }
    let now = when::now_ms();
    let head = ["WORKER", "STATE", "RUNS", "QUEUES", "HOST", "SINCE", "LAST SEEN"];
    let row = |worker: &Value| {
        [
            word(&worker["id"]),
            state(worker),
            runs(worker),
            queues(worker),
            word(&worker["hostname"]),
            when::relative(since(worker).as_str(), now),
            when::relative(worker["last_seen_at"].as_str(), now),
        ]
    };
    output::text(&output::list(head, &found.entries, row))
}

/// What a worker does. One that was not heard of for a while is stale, whatever it last said.
fn state(worker: &Value) -> String {
    if worker["stale"] == true { "stale".to_owned() } else { word(&worker["state"]) }
}

/// `3 of 10`: how many jobs it runs, and how many it may run at once where it says so.
fn runs(worker: &Value) -> String {
    let most = worker["concurrency"].as_u64().map_or_else(String::new, |most| format!(" of {most}"));
    format!("{}{most}", worker["active_jobs"])
}

fn queues(worker: &Value) -> String {
    worker["queues"].as_array().into_iter().flatten().map(word).collect::<Vec<_>>().join(", ")
}

/// When it started by its own word, else when it was first heard of.
fn since(worker: &Value) -> &Value {
    if worker["started_at"].is_string() { &worker["started_at"] } else { &worker["first_seen_at"] }
}

/// A worker for people: what is known of it, and a line for each job that it runs.
fn shown(worker: &Value) -> String {
    let now = when::now_ms();
    let time = |value: &Value| match value.as_str() {
        Some(text) => format!("{text}, {}", when::relative(Some(text), now)),
        None => String::new(),
    };
    let labels = worker["labels"].as_array().into_iter().flatten().map(word).collect::<Vec<_>>().join(", ");
    let facts = [
        ("worker", word(&worker["id"])),
        ("state", state(worker)),
        ("told", word(&worker["directive"])),
        ("runs", runs(worker)),
        ("queues", queues(worker)),
        ("host", word(&worker["hostname"])),
        ("process", word(&worker["pid"])),
        ("version", word(&worker["version"])),
        ("labels", labels),
        ("since", time(since(worker))),
        ("heartbeat", time(&worker["last_heartbeat_at"])),
        ("last seen", time(&worker["last_seen_at"])),
    ];
    let known = facts.into_iter().filter(|(_, value)| !value.is_empty());
    let rows: Vec<Vec<String>> = known.map(|(fact, value)| vec![fact.to_owned(), value]).collect();
    let mut text = output::listing(&rows);
    let jobs = output::entries(worker, "jobs");
    if jobs.is_empty() {
        return text;
    }
    let head = ["JOB", "TYPE", "QUEUE", "ATTEMPT", "STARTED", "LEASE ENDS"];
    let row = |job: &Value| {
        let relative = |key: &str| when::relative(job[key].as_str(), now);
        let [id, kind, queue, attempt] = ["job_id", "type", "queue", "attempt"].map(|key| word(&job[key]));
        [id, kind, queue, attempt, relative("started_at"), relative("lease_expires_at")]
    };
    text.push('\n');
    text.push_str(&output::list(head, jobs, row));
    text
}
