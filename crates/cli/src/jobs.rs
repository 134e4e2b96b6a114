//! `redrive jobs`: which jobs there are.

use crate::client::{Client, Send, ServerArgs, query};
use crate::{exit::Failed, output, when};
use serde_json::{Value, json};

/// How many jobs one request asks for.
const PAGE: usize = 500;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only jobs of this queue
    #[arg(long)]
    queue: Option<String>,
    /// Only jobs in this state: scheduled, pending, available, active, retryable, completed, cancelled,
    /// discarded
    #[arg(long, value_parser = state)]
    state: Option<String>,
    /// Only jobs of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// How many to list at most, newest first
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: u32,
    #[command(flatten)]
    server: ServerArgs,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  redrive jobs --state retryable --queue mail
  redrive jobs --type report.build --limit 1000 --json | jq -r '.jobs[].id'";

const STATES: [&str; 8] =
    ["scheduled", "pending", "available", "active", "retryable", "completed", "cancelled", "discarded"];

fn state(text: &str) -> Result<String, String> {
    let known = STATES.contains(&text).then(|| text.to_owned());
    known.ok_or_else(|| format!("\"{text}\" is not a state; allowed are {}", STATES.join(", ")))
}

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let client = args.server.client()?;
    let filter = [("queue", args.queue.clone()), ("state", args.state.clone()), ("type", args.kind.clone())];
    let found = listed(&client, &filter, args.limit as usize)?;
    if args.json {
        return output::json(&json!({ "jobs": found.jobs, "total": found.total }));
    }
    told(&found)
}

/// Jobs of a list, and how many there are in all.
struct Listed {
    jobs: Vec<Value>,
    total: usize,
}

/// Reads a list page by page, until there are enough of them.
fn listed(client: &Client, filter: &[(&str, Option<String>)], limit: usize) -> Result<Listed, Failed> {
    let mut jobs = Vec::new();
    let mut page = 1;
    loop {
        let per_page = PAGE.min(limit);
        let mut parts = filter.to_vec();
        parts.push(("page", Some(page.to_string())));
        parts.push(("per_page", Some(per_page.to_string())));
        let mut answer = client.ask(Send::Get, &format!("/ojs/v1/admin/jobs{}", query(&parts)))?;
        let total = answer["pagination"]["total"].as_u64().unwrap_or(0) as usize;
        let Value::Array(items) = answer["items"].take() else {
            return Err(Failed { code: 3, message: "the server's answer has no list of jobs".to_owned() });
        };
        let last = items.len() < per_page;
        jobs.extend(items);
        if last || jobs.len() >= limit {
            jobs.truncate(limit);
            return Ok(Listed { jobs, total });
        }
        page += 1;
    }
}

fn told(found: &Listed) -> Result<(), Failed> {
    let now = when::now_ms();
    let head = ["ID", "TYPE", "QUEUE", "STATE", "ATTEMPT", "SINCE"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(found.jobs.iter().map(|job| row(job, now))).collect();
    if found.jobs.is_empty() {
        return output::text("no jobs\n");
    }
    output::text(&output::listing(&rows))?;
    if found.total > found.jobs.len() {
        eprintln!("{} of {} jobs; --limit shows more", found.jobs.len(), found.total);
    }
    Ok(())
}

/// One job in a table.
pub(crate) fn row(job: &Value, now_ms: i64) -> Vec<String> {
    let text = |key: &str| job[key].as_str().unwrap_or_default().to_owned();
    vec![text("id"), text("type"), text("queue"), text("state"), attempt(job), moment(job, now_ms)]
}

/// `2/5`: the attempt, of at most so many.
pub(crate) fn attempt(job: &Value) -> String {
    let most = job["max_attempts"].as_u64().map_or_else(String::new, |most| format!("/{most}"));
    format!("{}{most}", job["attempt"].as_u64().unwrap_or(0))
}

/// The time that matters in the state the job is in.
fn moment(job: &Value, now_ms: i64) -> String {
    let first = |keys: &[&str]| keys.iter().find_map(|key| job[*key].as_str());
    let at = match job["state"].as_str() {
        Some("scheduled") => first(&["scheduled_at"]),
        Some("retryable") => first(&["next_attempt_at"]),
        Some("active") => first(&["started_at"]),
        Some("completed" | "cancelled" | "discarded") => first(&["completed_at", "cancelled_at", "discarded_at"]),
        _ => first(&["enqueued_at", "created_at"]),
    };
    let told = when::relative(at, now_ms);
    if matches!(job["state"].as_str(), Some("scheduled" | "retryable")) { format!("due {told}") } else { told }
}
