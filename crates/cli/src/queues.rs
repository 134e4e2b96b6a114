//! `redrive queues`: lists queues, pauses, resumes and configures them.

use crate::client::{Client, CommonArgs, Send, escaped};
use crate::limit::BoundsArgs;
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
    /// Show or change how many jobs of a queue run at once, start in a time, and may wait
    Config(Config),
    /// List limits: what is held and by what, and how many jobs wait
    Limits,
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

#[derive(clap::Args)]
struct Config {
    #[command(flatten)]
    queue: Name,
    #[command(flatten)]
    bounds: BoundsArgs,
    /// How many jobs may wait; further ones are refused. 0 for any number, whatever the server says for all queues
    #[arg(long, value_name = "N")]
    max_depth: Option<u64>,
    /// Remove what is configured; with other options, configure only these
    #[arg(long)]
    clear: bool,
}

const EXAMPLES: &str = "\
Examples:
  redrive queues
  redrive queues pause mail
  redrive queues pause --create reports
  redrive queues config mail --concurrency 20 --rate 1000/1h
  redrive queues config mail --max-depth 50000
  redrive queues config mail --clear
  redrive queues limits";

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
        Some(Command::Config(config)) => configure(&client, config, args.common.json),
        Some(Command::Limits) => limits(&client, args.common.json),
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

fn configure(client: &Client, args: &Config, json: bool) -> Result<(), Failed> {
    let name = &args.queue.name;
    let path = format!("/ojs/v1/admin/queues/{}/config", escaped(name));
    let BoundsArgs { concurrency, rate, throttle } = &args.bounds;
    let changes = [
        ("concurrency", concurrency.map(Value::from)),
        ("rate_limit", rate.map(|rate| rate.to_json())),
        ("throttle", throttle.map(|throttle| throttle.to_json())),
        ("backpressure", args.max_depth.map(|depth| json!({ "max_depth": depth }))),
    ];
    let changes: Vec<(&str, Value)> = changes.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    let before = client.ask(Send::Get, &path)?;
    let answer = if changes.is_empty() && !args.clear {
        before
    } else {
        let mut config = if args.clear { json!({}) } else { before["configuration"].clone() };
        changes.into_iter().for_each(|(key, value)| config[key] = value);
        client.ask(Send::Put(&config), &path)?
    };
    if json {
        return output::json(&answer);
    }
    match answer["configuration"].as_object().filter(|config| !config.is_empty()) {
        None => output::text(&format!("queue {name} has no limits\n")),
        Some(config) => {
            let lines = config.iter().map(|(key, value)| format!("{key:<12} {}\n", shown(value)));
            output::text(&lines.collect::<String>())
        }
    }
}

/// A number, a rate such as `100 in PT60S`, or how many jobs may wait.
fn shown(value: &Value) -> String {
    match (value["limit"].as_u64(), value["period"].as_str(), value["max_depth"].as_u64()) {
        (Some(limit), Some(period), _) => format!("{limit} in {period}"),
        (.., Some(0)) => "any number of jobs may wait".to_owned(),
        (.., Some(depth)) => format!("at most {depth} jobs may wait"),
        _ => value.to_string(),
    }
}

fn limits(client: &Client, json: bool) -> Result<(), Failed> {
    let answer = client.ask(Send::Get, "/ojs/v1/rate-limits?per_page=1000")?;
    if json {
        return output::json(&answer);
    }
    let items = answer["items"].as_array().map_or(&[][..], Vec::as_slice);
    if items.is_empty() {
        return output::text("no limits: no job brings one, and none is set\n");
    }
    let head = ["SCOPE", "KEY", "WAITING", "ACTIVE", "CONCURRENCY", "RATE", "THROTTLE", "HELD BY"].map(str::to_owned);
    let rows = std::iter::once(head.to_vec()).chain(items.iter().map(limit_row));
    output::text(&output::table(&rows.collect::<Vec<_>>()))
}

fn limit_row(item: &Value) -> Vec<String> {
    let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
    let rate = |key: &str| if item[key].is_object() { shown(&item[key]) } else { String::new() };
    let most = item["concurrency"]["limit"].as_u64();
    let held = match (item["held_until"].as_str(), item["concurrency"]["available"].as_u64()) {
        (Some(until), _) => format!("a worker until {until}"),
        (None, Some(0)) => "concurrency".to_owned(),
        _ => match (item["rate"]["window_resets_at"].as_str(), item["throttle"]["next_allowed_at"].as_str()) {
            (Some(at), _) => format!("rate until {at}"),
            (None, Some(at)) => format!("throttle until {at}"),
            (None, None) => String::new(),
        },
    };
    let counts = ["waiting_count", "active_count"].map(|key| item[key].as_u64().unwrap_or(0).to_string());
    let [waiting, active] = counts;
    let most = most.map(|most| most.to_string()).unwrap_or_default();
    vec![text("scope"), text("key"), waiting, active, most, rate("rate"), rate("throttle"), held]
}
