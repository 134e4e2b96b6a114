//! `redrive enqueue`.

mod batch;
mod envelope;
mod retry;
mod unique;
mod wait;

pub(crate) use retry::{RetryFile, document as policy_document};

use crate::client::{Client, Send, ServerArgs};
use crate::{exit::Failed, output, when};
use envelope::EnvelopeArgs;
use redrive_policy::Span;
use redrive_policy::wire::parse_json;
use serde_json::Value;
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The type of the job, such as mail.send
    #[arg(value_name = "TYPE", required_unless_present = "batch", conflicts_with = "batch")]
    kind: Option<String>,
    /// The arguments of the job, each as JSON
    #[arg(value_name = "ARG", conflicts_with = "batch")]
    args: Vec<String>,
    #[command(flatten)]
    envelope: EnvelopeArgs,
    /// The id of the job, a UUID of version 7 [default: the server makes one]
    #[arg(long, value_name = "UUID", conflicts_with = "batch")]
    id: Option<String>,
    /// A second job with the same key is not enqueued; the first one is shown
    #[arg(long, value_name = "KEY", conflicts_with = "batch")]
    idempotency_key: Option<String>,
    /// Wait until the job has ended, at most so long [default: 1h]; exit code 1 unless it completed
    #[arg(long, value_name = "DURATION", value_parser = when::duration, num_args = 0..=1, require_equals = true,
          default_missing_value = "1h", conflicts_with = "batch")]
    wait: Option<Span>,
    /// Enqueue many jobs: a file, or -, with one JSON object {"type", "args", "options"} on each line;
    /// the other options fill in what a line leaves out
    #[arg(long, value_name = "FILE")]
    batch: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
    /// Print nothing but the id of the job, of each with --batch; with --wait nothing but its result, as JSON
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// How the outcome is printed.
#[derive(Clone, Copy, PartialEq)]
enum Output {
    Text,
    Quiet,
    Json,
}

const EXAMPLES: &str = "\
Examples:
  redrive enqueue mail.send '{\"to\": \"ada@example.org\"}'
  redrive enqueue report.build 2026 '\"march\"' --queue slow --delay 10m --retry retry.yaml --wait
  ID=$(redrive enqueue --quiet mail.send '\"ada@example.org\"')
  redrive enqueue --batch jobs.jsonl --queue import
  redrive enqueue payment.charge 4711 --limit-key stripe --concurrency 5 --rate 100/1m
  redrive enqueue report.make '{\"customer\": 42}' --unique=args --unique-args customer --unique-for 1h";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let client = args.server.client()?;
    let output_as = match (args.quiet, args.json) {
        (true, _) => Output::Quiet,
        (false, true) => Output::Json,
        (false, false) => Output::Text,
    };
    if let Some(path) = &args.batch {
        return batch::run(&client, path, &args.envelope, output_as);
    }
    let document = args.envelope.document(&Named {
        kind: args.kind.as_deref().unwrap_or_default(),
        args: &args.args,
        id: args.id.as_deref(),
        idempotency_key: args.idempotency_key.as_deref(),
    })?;
    let answer = client.ask(Send::Post(&document), "/ojs/v1/jobs")?;
    let job = answer.get("job").unwrap_or(&answer);
    if answer["deduplicated"] == true {
        eprintln!("not enqueued: this job is there, and the new one would be a duplicate");
    } else if answer["existing"] == true {
        eprintln!("already there, not enqueued: the key is that of this job");
    }
    match args.wait {
        None => print_job(job, output_as),
        Some(longest) => wait_and_print(&client, job, longest, output_as),
    }
}

/// What only a single job has.
struct Named<'a> {
    kind: &'a str,
    args: &'a [String],
    id: Option<&'a str>,
    idempotency_key: Option<&'a str>,
}

fn print_job(job: &Value, output_as: Output) -> Result<(), Failed> {
    let text = |key: &str| job[key].as_str().unwrap_or("?").to_owned();
    match output_as {
        Output::Json => return output::json(job),
        Output::Quiet => return output::text(&format!("{}\n", text("id"))),
        Output::Text => {}
    }
    let scheduled = when::relative(job["scheduled_at"].as_str(), when::now_ms());
    let due = if scheduled.is_empty() { String::new() } else { format!(", due {scheduled}") };
    output::text(&format!("{}  {} in queue {}{due}\n", text("id"), text("state"), text("queue")))
}

fn wait_and_print(client: &Client, job: &Value, longest: Span, output_as: Output) -> Result<(), Failed> {
    let Some(id) = job["id"].as_str() else {
        return Err(Failed { code: 3, message: "the server's answer has no job id".to_owned() });
    };
    let step = |job: &Value| if output_as == Output::Text { print_job(job, output_as) } else { Ok(()) };
    let ended = wait::until_ended(client, id, longest, step)?;
    match (output_as, &ended["result"]) {
        (Output::Json, _) => output::json(&ended)?,
        (_, Value::Null) => {}
        (Output::Quiet, result) => output::json_line(result)?,
        (Output::Text, result) => output::text(&format!("{id}  result {result}\n"))?,
    }
    match ended["state"].as_str() {
        Some("completed") => Ok(()),
        state => Err(Failed::invalid(format!(
            "job {id} ended {}; `redrive job explain {id}` says why",
            state.unwrap_or("in no state")
        ))),
    }
}

/// JSON from the command line; `name` says which part of it.
pub(crate) fn json_argument(name: &str, text: &str) -> Result<Value, Failed> {
    parse_json(text).map_err(|error| {
        Failed::usage(format!(
            "{name} is not JSON: {}; a text needs its quotes, as in '\"{}\"'",
            error.message,
            text.replace('"', "\\\"")
        ))
    })
}
