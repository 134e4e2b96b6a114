//! `redrive events`: what happened lately, and what happens now.

use crate::client::{CommonArgs, Send, escaped};
use crate::exit::Failed;
use crate::output::{self, word};
use serde_json::{Value, json};
use std::time::Duration;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Go on with what happens, until the command is interrupted
    #[arg(long, short)]
    follow: bool,
    /// Only events of these types, or patterns such as 'job.*'
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    types: Vec<String>,
    /// Only events of these queues
    #[arg(long = "queue", value_name = "QUEUE", value_delimiter = ',')]
    queues: Vec<String>,
    /// Only events of this job
    #[arg(long, value_name = "ID")]
    job: Option<String>,
    /// Only what happened after the event of this id
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

const EXAMPLES: &str = "\
Examples:
  redrive events
  redrive events --follow --type job.failed,job.discarded --queue mail
  redrive events --follow --type 'workflow.*' --json
  redrive events --job 019c5654-7040-7000-8000-2f6d1a0c9b11

The server has the latest 10,000 events of its process in memory. With --follow, events that
were missed are told. With --json, each event is one line.";

/// How often the server is asked for what is new.
const EVERY: Duration = Duration::from_millis(500);

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let client = args.common.client()?;
    let mut after = args.after.clone();
    loop {
        let answer = client.ask(Send::Get, &path(args, after.as_deref()))?;
        let events = answer["events"].as_array().map(Vec::as_slice).unwrap_or_default();
        if let (Some(seen), Some(first)) = (&after, events.first()) {
            gap(args, seen, &word(&first["id"]))?;
        }
        for event in events.iter().filter(|event| args.job.as_ref().is_none_or(|job| event["subject"] == **job)) {
            show(args, event)?;
        }
        let cursor = answer["cursor"].as_str().filter(|cursor| !cursor.is_empty());
        after = cursor.map(str::to_owned).or(after);
        match answer["has_more"] == true {
            true => {}
            false if args.follow => std::thread::sleep(EVERY),
            false => return Ok(()),
        }
    }
}

fn path(args: &Args, after: Option<&str>) -> String {
    let mut path = "/ojs/v1/events?limit=1000".to_owned();
    for (key, value) in [("types", args.types.join(",")), ("queues", args.queues.join(","))] {
        if !value.is_empty() {
            path.push_str(&format!("&{key}={}", escaped(&value)));
        }
    }
    if let Some(after) = after {
        path.push_str(&format!("&after={}", escaped(after)));
    }
    path
}

/// Tells that events are missing between two that follow each other: after a restart, or where all are asked for.
fn gap(args: &Args, seen: &str, next: &str) -> Result<(), Failed> {
    let parts = |id: &str| {
        let (process, number) = id.strip_prefix("evt-")?.split_once('-')?;
        Some((process.to_owned(), number.parse::<u64>().ok()?))
    };
    let (Some((old, last)), Some((new, first))) = (parts(seen), parts(next)) else { return Ok(()) };
    let all = args.types.is_empty() && args.queues.is_empty();
    let message = if old != new {
        "the server was started again, or another node answers: events may be missing here".to_owned()
    } else if all && first > last + 1 {
        format!("{} events are missing here: they are not stored any more", first - last - 1)
    } else {
        return Ok(());
    };
    match args.common.json {
        true => output::json_line(&json!({ "type": "gap", "message": message, "after": seen })),
        false => output::text(&format!("-- {message}\n")),
    }
}

fn show(args: &Args, event: &Value) -> Result<(), Failed> {
    if args.common.json {
        return output::json_line(event);
    }
    let data = &event["data"];
    let details = ["job_type", "queue", "attempt", "worker_id", "duration_ms", "reason", "next_retry_at"];
    let details = details.into_iter().filter(|key| !data[*key].is_null());
    let mut details: Vec<String> = details.map(|key| format!("{key}={}", word(&data[key]))).collect();
    let error = ["error", "last_error"].into_iter().map(|key| &data[key]["message"]).find(|error| error.is_string());
    details.extend(error.map(|error| format!("error={}", word(error))));
    let (time, kind, subject) = (word(&event["time"]), word(&event["type"]), word(&event["subject"]));
    output::text(&format!("{time}  {kind:<22}  {subject}  {}\n", details.join(" ")))
}
