//! `redrive job`: one job.

mod explain;
mod show;
mod trace;

use crate::client::{Client, Send, ServerCommand, escaped};
use crate::{exit::Failed, operator, output, when};
use clap::Subcommand;
use redrive_policy::Span;
use serde_json::{Value, json};

pub(crate) type Args = ServerCommand<Command>;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// What is known of a job
    Show(One),
    /// Why each attempt was retried or stopped, in sentences and as a time line
    Explain(One),
    /// Redrive a job that has ended, to run again as if it were new
    Retry(RetryArgs),
    /// Call a job off, also while it runs
    Cancel(One),
}

#[derive(clap::Args)]
pub(crate) struct One {
    /// The id of the job
    id: String,
}

#[derive(clap::Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    one: One,
    /// Expire at this time, RFC 3339, or from now such as 2h [default: it does not expire]
    #[arg(long, value_name = "TIME", value_parser = when::future)]
    expires: Option<String>,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  redrive job explain 0192f0c1-7a7e-7c3e-9f55-0d5f1f3a2b4c
  redrive job cancel 0192f0c1-7a7e-7c3e-9f55-0d5f1f3a2b4c";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let client = args.common.client()?;
    match &args.command {
        Command::Show(one) => show::run(&job(&client, &one.id)?, args.common.json),
        Command::Explain(one) => explain::run(&client, &job(&client, &one.id)?, args.common.json),
        Command::Retry(RetryArgs { one, expires }) => {
            let path = format!("/ojs/v1/admin/jobs/{}/retry", escaped(&one.id));
            let mut document = json!({ "by": operator::name() });
            if let Some(expires) = expires {
                document["override"] = json!({ "expires_at": expires });
            }
            changed(client.ask(Send::Post(&document), &path)?, args.common.json)
        }
        Command::Cancel(one) => {
            let before = job(&client, &one.id)?;
            changed(client.ask(Send::Delete, &format!("/ojs/v1/jobs/{}", escaped(&one.id)))?, args.common.json)?;
            warn_of_worker(&before);
            Ok(())
        }
    }
}

/// Says when the worker of a cancelled job will know of it: at its next heartbeat, which comes before its lease
/// would have ended.
fn warn_of_worker(before: &Value) {
    if before["state"] != "active" {
        return;
    }
    let worker = before["worker_id"].as_str().map_or_else(String::new, |name| format!(" {name}"));
    let ends = before["lease_expires_at"].as_str().and_then(when::parse);
    let within = ends.map_or_else(String::new, |ends| {
        let left = Span::saturating_ms((ends - when::now_ms()).max(0) as f64);
        format!(", within {left} at most")
    });
    let words = format!("it was running: its worker{worker} notices at its next heartbeat{within}");
    eprintln!("redrive: {}", output::plain(&words));
}

/// A job by its id, with its explanation.
pub(crate) fn job(client: &Client, id: &str) -> Result<Value, Failed> {
    Ok(unwrapped(client.ask(Send::Get, &format!("/ojs/v1/jobs/{}", escaped(id)))?))
}

/// The job of an answer, which has it at the top and under `job`.
pub(crate) fn unwrapped(mut answer: Value) -> Value {
    if answer["job"].is_object() { answer["job"].take() } else { answer }
}

/// Says what a job has become.
fn changed(answer: Value, json: bool) -> Result<(), Failed> {
    let job = unwrapped(answer);
    if json {
        return output::json(&job);
    }
    let text = |key: &str| job[key].as_str().unwrap_or("?").to_owned();
    let was = job["previous_state"].as_str().map_or_else(String::new, |state| format!(", it was {state}"));
    output::text(&format!("{}  {}{was}{}\n", text("id"), text("state"), cleared_expiry(&job)))
}

/// What a redrive did to the time at which the job expires, where it had one.
pub(crate) fn cleared_expiry(answer: &Value) -> String {
    match answer["redrive"]["cleared_expiry"].as_str() {
        Some(expiry) => format!("; its expiry {expiry} is cleared, --expires sets another"),
        None => String::new(),
    }
}

pub(crate) use explain::failures_explained;
pub(crate) use show::{error_line, told};
