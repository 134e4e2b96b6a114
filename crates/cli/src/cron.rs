//! `redrive cron`: schedules, each of which enqueues a job again and again.

use crate::client::{Client, Send, ServerCommand, escaped};
use crate::enqueue::{RetryFile, json_argument};
use crate::output::word;
use crate::pages::List;
use crate::{exit::Failed, output, when};
use clap::{Subcommand, ValueEnum};
use redrive_ojs::JobOptions;
use redrive_policy::Span;
use serde_json::{Value, json};

pub(crate) type Args = ServerCommand<Command>;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Register a schedule
    Add(Box<Add>),
    /// List schedules
    List,
    /// What is known of a schedule
    Show(Name),
    /// Pause a schedule: it is not due until it is resumed
    Pause(Name),
    /// Resume a schedule; what would have been due meanwhile is not caught up
    Resume(Name),
    /// Delete a schedule; the jobs that it has enqueued stay
    Delete(Name),
}

#[derive(clap::Args)]
pub(crate) struct Name {
    /// The name of the schedule
    name: String,
}

#[derive(clap::Args)]
pub(crate) struct Add {
    #[command(flatten)]
    name: Name,
    /// When: five fields, six with the second first, @daily, or @every 30m
    expression: String,
    /// The type of the job, such as report.make
    #[arg(value_name = "TYPE")]
    kind: String,
    /// The arguments of the job, each as JSON
    #[arg(value_name = "ARG")]
    args: Vec<String>,
    /// The time zone of the expression, such as Europe/Berlin [default: UTC]
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// What to do when a job of the schedule has not ended [default: skip]
    #[arg(long, value_enum)]
    overlap: Option<Overlap>,
    /// What the schedule is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// The queue to wait in [default: default]
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Higher numbers run first, from -100 to 100 [default: 0]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(i32).range(-100..=100))]
    priority: Option<i32>,
    /// How long one run may take
    #[arg(long, value_name = "DURATION", value_parser = when::above_zero)]
    timeout: Option<Span>,
    #[command(flatten)]
    policy: RetryFile,
    /// Change the schedule that has the name, if there is one
    #[arg(long)]
    replace: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Overlap {
    /// Enqueue none
    Skip,
    /// Enqueue one more
    Allow,
    /// Cancel what is there, and enqueue one
    CancelPrevious,
    /// Enqueue one when what is there has ended
    Enqueue,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  redrive cron add daily-report '0 9 * * MON-FRI' report.make '\"daily\"' --timezone Europe/Berlin
  redrive cron add health '@every 30s' health.check --overlap allow --queue monitoring
  redrive cron list
  redrive cron pause daily-report";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let client = args.common.client()?;
    let told = |answer: &Value, text: String| args.common.print(answer, &text);
    match &args.command {
        Command::Add(add) => {
            let answer = register(&client, add)?;
            let cron = &answer["cron_job"];
            let next = when::relative(cron["next_run_at"].as_str(), when::now_ms());
            let text = format!("schedule {} is due {next}, at {}\n", add.name.name, word(&cron["next_run_at"]));
            told(cron, text)
        }
        Command::List => list(&client, args.common.json),
        Command::Show(Name { name }) => {
            let answer = client.ask(Send::Get, &path(name))?;
            let text = output::facts(&answer["cron_job"], &FACTS);
            told(&answer["cron_job"], text)
        }
        Command::Pause(Name { name }) | Command::Resume(Name { name }) => {
            let enabled = matches!(args.command, Command::Resume(_));
            let answer = client.ask(Send::Patch(&json!({ "enabled": enabled })), &path(name))?;
            let cron = &answer["cron_job"];
            told(cron, format!("schedule {name} is {}\n", word(&cron["status"])))
        }
        Command::Delete(Name { name }) => {
            let answer = client.ask(Send::Delete, &path(name))?;
            told(&answer, format!("schedule {name} is deleted\n"))
        }
    }
}

fn path(name: &str) -> String {
    format!("/ojs/v1/cron/{}", escaped(name))
}

fn register(client: &Client, add: &Add) -> Result<Value, Failed> {
    let argument = |(index, text): (usize, &String)| json_argument(&format!("argument {}", index + 1), text);
    let args = add.args.iter().enumerate().map(argument).collect::<Result<Vec<Value>, Failed>>()?;
    let options = JobOptions {
        queue: add.queue.as_deref(),
        priority: add.priority,
        timeout: add.timeout,
        retry: add.policy.read()?,
        ..JobOptions::default()
    };
    let unwritable = |error| Failed::invalid(format!("the job cannot be written as JSON: {error}"));
    let options = serde_json::to_value(options).map_err(unwritable)?;
    let mut document =
        json!({ "name": add.name.name, "cron": add.expression, "type": add.kind, "args": args, "options": options });
    let overlap = add.overlap.and_then(|overlap| overlap.to_possible_value());
    for (key, value) in [
        ("timezone", add.timezone.clone()),
        ("description", add.description.clone()),
        ("overlap_policy", overlap.map(|overlap| overlap.get_name().replace('-', "_"))),
    ] {
        if let Some(value) = value {
            document[key] = value.into();
        }
    }
    if add.replace {
        client.ask(Send::Put(&document), &path(&add.name.name))
    } else {
        client.ask(Send::Post(&document), "/ojs/v1/cron")
    }
}

fn list(client: &Client, json: bool) -> Result<(), Failed> {
    let list = List { path: "/ojs/v1/cron", entries: "cron_jobs", limit: "limit", filter: Vec::new() };
    let found = list.read(client, usize::MAX)?;
    if json {
        return output::json(&found.object("cron_jobs"));
    }
    if found.entries.is_empty() {
        return output::text("no schedules yet: `redrive cron add` registers one\n");
    }
    let now = when::now_ms();
    let head = ["SCHEDULE", "WHEN", "ZONE", "JOB", "STATUS", "NEXT", "LAST", "RUNS"];
    let row = |cron: &Value| {
        let time = |key: &str| when::relative(cron[key].as_str(), now);
        let text = |key: &str| word(&cron[key]);
        [
            text("name"),
            text("cron"),
            text("timezone"),
            text("type"),
            text("status"),
            time("next_run_at"),
            time("last_run_at"),
            text("run_count"),
        ]
    };
    output::text(&output::list(head, &found.entries, row))
}

/// What is known of a schedule.
const FACTS: [(&str, &str); 16] = [
    ("name", "name"),
    ("when", "cron"),
    ("time zone", "timezone"),
    ("status", "status"),
    ("job", "type"),
    ("arguments", "args"),
    ("options", "options"),
    ("overlap", "overlap_policy"),
    ("next", "next_run_at"),
    ("last", "last_run_at"),
    ("runs", "run_count"),
    ("skipped", "skipped_count"),
    ("waiting", "waiting_count"),
    ("last error", "last_error"),
    ("registered", "created_at"),
    ("description", "description"),
];
