//! `redrive store unreadable`: jobs and runs in a database that a server could not read and has set aside.

use super::aside::{self, Wanted};
use crate::{exit::Failed, output};
use redrive_ojs::time::rfc3339;
use redrive_store::postgres::{UnreadableJob, UnreadableJobs, UnreadableList};
use serde_json::{Value, json};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The store: postgres://…, or env:NAME for an address in the environment
    address: String,
    /// Put a job or a run back for the servers to read again; "all" for all of them
    #[arg(long, value_name = "ID", conflicts_with = "delete")]
    restore: Vec<String>,
    /// Delete a job or a run that was set aside; "all" for all of them
    #[arg(long, value_name = "ID")]
    delete: Vec<String>,
    /// How many to list
    #[arg(long, default_value_t = 100, value_name = "NUMBER")]
    limit: usize,
}

const EXAMPLES: &str = "\
A server that cannot read the row of a job, of a workflow or of a schedule sets it aside with
the reason, and goes on with the others. Rows of a newer version are not set aside: they are left to newer servers, and
only counted here. Servers may run meanwhile.
Here, REDRIVE_STORE=postgres://redrive_node:secret@db.internal/app is in the environment.

Examples:
  redrive store unreadable env:REDRIVE_STORE
  redrive store unreadable env:REDRIVE_STORE --json
  redrive store unreadable env:REDRIVE_STORE --restore 01a1e29c-aa7b-7c6a-8f78-6aeede62cff2
  redrive store unreadable env:REDRIVE_STORE --delete all";

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failed> {
    let wanted = Wanted::read(&args.restore, &args.delete)?;
    let in_folder = "sets jobs aside: give postgres://…, or use `redrive store check`";
    aside::on_database(&args.address, in_folder, async |options| {
        let jobs = UnreadableJobs::open(options).await.map_err(Failed::unreachable)?;
        match wanted {
            Wanted::List => listed(&jobs.list(args.limit).await.map_err(Failed::unreachable)?, json),
            Wanted::Restore(ids) => aside::told(jobs.restore(ids.as_deref()).await, ids.as_deref(), json),
            Wanted::Delete(ids) => aside::told(jobs.delete(ids.as_deref()).await, ids.as_deref(), json),
        }
    })
}

fn listed(list: &UnreadableList, json: bool) -> Result<(), Failed> {
    if json {
        let jobs: Vec<Value> = list.jobs.iter().map(in_json).collect();
        return output::json(&json!({ "total": list.total, "newer": list.newer, "jobs": jobs }));
    }
    let mut text = format!(
        "{} jobs and runs were set aside because they cannot be read; {} have rows of a newer version\n",
        list.total, list.newer
    );
    for UnreadableJob { id, is_run, queue, since, reason, .. } in &list.jobs {
        let what = if *is_run { "a run" } else { queue };
        text.push_str(&aside::entry(&format!("{id}  {what}"), *since, reason));
    }
    output::text(&text)
}

fn in_json(job: &UnreadableJob) -> Value {
    let row = serde_json::from_str(&job.row).unwrap_or(Value::Null);
    let kind = if job.is_run { "run" } else { "job" };
    let since = rfc3339(job.since);
    json!({ "id": job.id, "kind": kind, "queue": job.queue, "since": since, "reason": job.reason, "row": row })
}
