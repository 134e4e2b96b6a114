//! `redrive jobs`: lists jobs, and redrives those that have ended.

use crate::client::CommonArgs;
use crate::dead::ended;
use crate::pages::{List, Listed};
use crate::{exit::Failed, output, when};
use serde_json::Value;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
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
    common: CommonArgs,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Redrive jobs that have ended, to run again as if they were new; without --yes, prints how many
    Retry(ended::Args),
}

const EXAMPLES: &str = "\
Examples:
  redrive jobs --state retryable --queue mail
  redrive jobs retry --state discarded --type report.build --since 2h         prints how many
  redrive jobs retry --state discarded --type report.build --since 2h --yes   redrives them
  redrive jobs --type report.build --limit 1000 --json | jq -r '.jobs[].id'";

const STATES: [&str; 8] =
    ["scheduled", "pending", "available", "active", "retryable", "completed", "cancelled", "discarded"];

fn state(text: &str) -> Result<String, String> {
    let known = STATES.contains(&text).then(|| text.to_owned());
    known.ok_or_else(|| format!("\"{text}\" is not a state; allowed are {}", STATES.join(", ")))
}

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let client = args.common.client()?;
    if let Some(Command::Retry(retry)) = &args.command {
        return ended::run(&client, retry, args.common.json);
    }
    let filter = vec![("queue", args.queue.clone()), ("state", args.state.clone()), ("type", args.kind.clone())];
    let list = List { path: "/ojs/v1/admin/jobs", entries: "items", limit: "per_page", filter };
    let found = list.read(&client, args.limit as usize)?;
    if args.common.json { output::json(&found.object("jobs")) } else { print_table(&found) }
}

fn print_table(found: &Listed) -> Result<(), Failed> {
    let now = when::now_ms();
    let head = ["ID", "TYPE", "QUEUE", "STATE", "ATTEMPT", "SINCE"];
    if found.entries.is_empty() {
        return output::text("no jobs\n");
    }
    output::text(&output::list(head, &found.entries, |job| row(job, now)))?;
    found.print_remaining("jobs");
    Ok(())
}

/// One job in a table.
fn row(job: &Value, now_ms: i64) -> [String; 6] {
    let text = |key: &str| job[key].as_str().unwrap_or_default().to_owned();
    [text("id"), text("type"), text("queue"), text("state"), attempt(job), relevant_time(job, now_ms)]
}

/// `2/5`: the attempt and the largest number of attempts.
pub(crate) fn attempt(job: &Value) -> String {
    let most = job["max_attempts"].as_u64().map_or_else(String::new, |most| format!("/{most}"));
    format!("{}{most}", job["attempt"].as_u64().unwrap_or(0))
}

/// The time that matters in the state of the job.
fn relevant_time(job: &Value, now_ms: i64) -> String {
    let first = |keys: &[&str]| keys.iter().find_map(|key| job[*key].as_str());
    let at = match job["state"].as_str() {
        Some("scheduled") => first(&["scheduled_at"]),
        Some("retryable") => first(&["next_attempt_at"]),
        Some("active") => first(&["started_at"]),
        Some("completed" | "cancelled" | "discarded") => first(&["completed_at", "cancelled_at", "discarded_at"]),
        _ => first(&["enqueued_at", "created_at"]),
    };
    let relative = when::relative(at, now_ms);
    if matches!(job["state"].as_str(), Some("scheduled" | "retryable")) { format!("due {relative}") } else { relative }
}
