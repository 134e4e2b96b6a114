//! `redrive dead`: jobs that have failed permanently and are stored for inspection.

mod change;
pub(crate) mod ended;
mod select;

use crate::client::{Client, Send, ServerCommand, escaped};
use crate::enqueue::{RetryFile, json_argument};
use crate::job::{error_line, told, unwrapped};
use crate::pages::List;
use crate::{exit::Failed, operator, output, when};
use change::Action;
use clap::Subcommand;
use select::{Filter, Selection};
use serde_json::{Map, Value, json};

pub(crate) type Args = ServerCommand<Command>;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List dead letters, the latest first
    List(ListArgs),
    /// Show one dead letter
    Show(Id),
    /// Redrive dead letters, to run again as if they were new
    Retry(RetryArgs),
    /// Delete dead letters
    Drop(Selection),
}

#[derive(clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    filter: Filter,
    /// How many to list at most
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: u32,
}

#[derive(clap::Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    selection: Selection,
    /// Single jobs only: run in this queue
    #[arg(long, value_name = "QUEUE", requires = "ids")]
    into: Option<String>,
    /// One job only: run with these arguments, a JSON array; the old ones stay in the job's history
    #[arg(long, value_name = "JSON", requires = "ids")]
    args: Option<String>,
    /// Single jobs only: expire at this time, RFC 3339, or from now such as 2h [default: they do not expire]
    #[arg(long, value_name = "TIME", requires = "ids", value_parser = when::future)]
    expires: Option<String>,
    #[command(flatten)]
    policy: RetryFile,
}

impl RetryArgs {
    /// The changes, as the server takes them.
    fn revision(&self) -> Result<Value, Failed> {
        let count = self.selection.ids.len();
        if self.args.is_some() && count > 1 {
            return Err(Failed::usage(format!(
                "--args replaces the arguments of one job; found {count} ids, allowed is 1"
            )));
        }
        let mut overrides = Map::new();
        let mut set = |key: &str, value: Option<Value>| overrides.extend(value.map(|value| (key.to_owned(), value)));
        set("queue", self.into.as_deref().map(Value::from));
        set("args", self.args.as_deref().map(|args| json_argument("--args", args)).transpose()?);
        set("retry", self.policy.read()?);
        set("expires_at", self.expires.as_deref().map(Value::from));
        if !overrides.is_empty() && count == 0 {
            let message = "--into, --args, --retry and --expires change single jobs; name their ids";
            return Err(Failed::usage(message));
        }
        let mut document = json!({ "by": operator::name() });
        if !overrides.is_empty() {
            document["override"] = Value::Object(overrides);
        }
        Ok(document)
    }
}

#[derive(clap::Args)]
pub(crate) struct Id {
    /// The id of the job
    id: String,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  redrive dead list --queue mail
  redrive dead retry 0192f0c1-7a7e-7c3e-9f55-0d5f1f3a2b4c --into slow --retry patient.json
  redrive dead retry --queue mail --error-type external.timeout --since 2h         prints how many
  redrive dead retry --queue mail --error-type external.timeout --since 2h --yes   redrives them";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let client = args.common.client()?;
    match &args.command {
        Command::List(filter) => list(&client, filter, args.common.json),
        Command::Show(Id { id }) => {
            let job = unwrapped(client.ask(Send::Get, &format!("/ojs/v1/dead-letter/{}", escaped(id)))?);
            if args.common.json { output::json(&job) } else { output::text(&told(&job)) }
        }
        Command::Retry(retry) => {
            retry.selection.check()?;
            change::run(&client, &retry.selection, &Action::Retry(retry.revision()?), args.common.json)
        }
        Command::Drop(selection) => {
            selection.check()?;
            change::run(&client, selection, &Action::Drop, args.common.json)
        }
    }
}

fn list(client: &Client, args: &ListArgs, json: bool) -> Result<(), Failed> {
    let filter = args.filter.parts().to_vec();
    let list = List { path: "/ojs/v1/dead-letter", entries: "jobs", limit: "limit", filter };
    let found = list.read(client, args.limit as usize)?;
    if json {
        return output::json(&found.object("jobs"));
    }
    if found.entries.is_empty() {
        return output::text("no dead letters\n");
    }
    let now = when::now_ms();
    let head = ["ID", "TYPE", "QUEUE", "ATTEMPT", "DIED", "LAST ERROR"];
    output::text(&output::list(head, &found.entries, |job| row(job, now)))?;
    found.print_remaining("dead letters");
    Ok(())
}

fn row(job: &Value, now_ms: i64) -> [String; 6] {
    let text = |key: &str| job[key].as_str().unwrap_or_default().to_owned();
    let error = job["errors"].as_array().and_then(|errors| errors.last()).map_or_else(String::new, error_line);
    let died = when::relative(job["discarded_at"].as_str(), now_ms);
    [text("id"), text("type"), text("queue"), crate::jobs::attempt(job), died, error]
}
