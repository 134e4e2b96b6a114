//! Runs of flows on a server.

use super::{definitions, path_of, result, show};
use crate::client::{Client, CommonArgs, Send};
use crate::output::word;
use crate::{exit::Failed, input, output, when};
use redrive_policy::Span;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(after_help = START_EXAMPLES)]
pub(crate) struct Start {
    /// A definition on the server, or a file with one, which is put there first
    #[arg(value_name = "NAME|FILE")]
    target: PathBuf,
    /// A file with the input, or - for standard input [default: null]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// A file with the arguments, an object [default: none]
    #[arg(long, value_name = "FILE")]
    arguments: Option<PathBuf>,
    /// The id of the run, a UUID of version 7: started with the same one again, it is the same run
    #[arg(long)]
    id: Option<String>,
    /// The version of the definition [default: the newest]
    #[arg(long, value_name = "N")]
    version: Option<u64>,
    /// Wait until the run has ended, at most so long [default: 1h], and print its Result
    #[arg(long, value_name = "DURATION", value_parser = when::duration, num_args = 0..=1, require_equals = true,
          default_missing_value = "1h")]
    wait: Option<Span>,
    #[command(flatten)]
    common: CommonArgs,
}

const START_EXAMPLES: &str = "\
Examples:
  redrive flow start order.json --input order-17.json
  redrive flow start order --version 2 --arguments arguments.json
  redrive flow start order --input - --wait=10m < order-17.json

It prints the id of the run. With --wait the exit code is 0 if the flow has ended, with whatever Result.";

#[derive(clap::Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct List {
    /// Only those that run, have ended, or have ended so
    #[arg(long, value_parser = ["running", "ended", "completed", "failed", "cancelled"])]
    state: Option<String>,
    /// Only those of this definition
    #[arg(long, value_name = "NAME")]
    definition: Option<String>,
    /// How many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    #[command(flatten)]
    common: CommonArgs,
}

const LIST_EXAMPLES: &str = "\
Examples:
  redrive flow list --state running
  redrive flow list --definition order --limit 100 --json";

#[derive(clap::Args)]
pub(crate) struct Cancel {
    /// The id of the run
    id: String,
    #[command(flatten)]
    common: CommonArgs,
}

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(super) fn start(args: &Start) -> Result<(), Failed> {
    let client = args.common.client()?;
    let document = |path: &Option<PathBuf>| match path {
        Some(path) => input::read(path, None).map_err(Failed::from).map(Some),
        None => Ok(None),
    };
    let (input, arguments) = (document(&args.input)?, document(&args.arguments)?);
    let (definition, put) = definitions::of_start(&client, &args.target, args.common.json)?;
    let mut body = json!({ "definition": definition });
    let optional = [("version", args.version.or(put).map(Value::from)), ("input", input), ("arguments", arguments)];
    for (name, value) in optional.into_iter().chain([("id", args.id.clone().map(Value::from))]) {
        if let Some(value) = value {
            body[name] = value;
        }
    }
    let run = client.ask(Send::Post(&body), "/flows/v1/runs")?;
    let id = word(&run["id"]);
    let Some(longest) = args.wait else { return args.common.print(&run, &format!("{id}\n")) };
    eprintln!("{id}");
    let run = until_ended(&client, &id, longest)?;
    args.common.print(&run, &result::shown(&run["result"]))
}

/// Polls a run until it has ended.
fn until_ended(client: &Client, id: &str, longest: Span) -> Result<Value, Failed> {
    let deadline = Instant::now() + Duration::from(longest);
    let mut pause = FIRST_PAUSE;
    loop {
        let run = show::run_of(client, id)?;
        if run["result"].is_object() {
            return Ok(run);
        }
        if Instant::now() >= deadline {
            let state = word(&run["state"]);
            return Err(Failed::invalid(format!(
                "run {id} is still {state} after {longest}; it goes on without this command"
            )));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

pub(super) fn list(args: &List) -> Result<(), Failed> {
    let filter = [("state", args.state.clone()), ("definition", args.definition.clone())];
    let runs = super::listed(&args.common.client()?, "/flows/v1/runs", "runs", &filter, args.limit as usize)?;
    if args.common.json {
        return output::json(&json!({ "runs": runs }));
    }
    if runs.is_empty() {
        return output::text("no runs: `redrive flow start FILE` starts one\n");
    }
    let now = when::now_ms();
    let head = ["RUN", "DEFINITION", "VERSION", "STATE", "RESULT", "STARTED", "ENDED", "GOES ON"];
    let row = |run: &Value| {
        let time = |key: &str| when::relative(run[key].as_str(), now);
        let result = match run["result"]["type"].as_str() {
            None | Some("success") => word(&run["result"]["type"]),
            Some(_) => result::failure(&run["result"]),
        };
        let text = |key: &str| word(&run[key]);
        let [started, ended, wakes] = [time("started_at"), time("ended_at"), time("wakes_at")];
        [text("id"), text("definition"), text("version"), text("state"), result, started, ended, wakes]
    };
    output::text(&output::list(head, &runs, row))
}

pub(super) fn cancel(args: &Cancel) -> Result<(), Failed> {
    let run = args.common.client()?.ask(Send::Delete, &path_of("runs", &args.id))?;
    let says = if run["state"] == "cancelling" { "is being cancelled: its cleanups run" } else { "is cancelled" };
    args.common.print(&run, &format!("run {} {says}\n", args.id))
}
