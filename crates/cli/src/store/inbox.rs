//! `redrive store inbox`: entries of the inbox that no job could be made of.

use super::aside::{self, Wanted};
use crate::{exit::Failed, output};
use redrive_ojs::time::rfc3339;
use redrive_store::postgres::{Contents, Inbox, SetAside};
use serde_json::{Value, json};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The store: postgres://…, or env:NAME for an address in the environment
    address: String,
    /// Let the servers look again at a job that was set aside; "all" for all of them
    #[arg(long, value_name = "ID", conflicts_with = "drop")]
    again: Vec<String>,
    /// Forget a job that was set aside; "all" for all of them
    #[arg(long, value_name = "ID")]
    drop: Vec<String>,
    /// How many to list
    #[arg(long, default_value_t = 100, value_name = "NUMBER")]
    limit: usize,
}

const EXAMPLES: &str = "\
Jobs come here from the SQL function redrive.enqueue. The servers take them in within
milliseconds; what is not valid is set aside with the reason. Servers may run meanwhile.
Here, REDRIVE_STORE=postgres://redrive_node:secret@db.internal/app is in the environment.

Examples:
  redrive store inbox postgres://redrive@localhost/app
  redrive store inbox env:REDRIVE_STORE --json
  redrive store inbox env:REDRIVE_STORE --again 01a1e29c-aa7b-7c6a-8f78-6aeede62cff2
  redrive store inbox env:REDRIVE_STORE --drop all";

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failed> {
    let wanted = Wanted::read(&args.again, &args.drop)?;
    aside::on_database(&args.address, "has an inbox: give postgres://…", async |options| {
        let inbox = Inbox::open(options).await.map_err(Failed::unreachable)?;
        match wanted {
            Wanted::List => listed(&inbox.list(args.limit).await.map_err(Failed::unreachable)?, json),
            Wanted::Restore(ids) => aside::told(inbox.restore(ids.as_deref()).await, ids.as_deref(), json),
            Wanted::Delete(ids) => aside::told(inbox.delete(ids.as_deref()).await, ids.as_deref(), json),
        }
    })
}

fn listed(contents: &Contents, json: bool) -> Result<(), Failed> {
    if json {
        let jobs = contents.set_aside.iter().map(in_json);
        return output::json(&json!({
            "waiting": contents.waiting, "refused": contents.refused, "jobs": jobs.collect::<Vec<Value>>(),
        }));
    }
    let mut text = format!("{} wait to be taken in, {} were set aside\n", contents.waiting, contents.refused);
    for SetAside { id, refused, reason, .. } in &contents.set_aside {
        text.push_str(&aside::entry(&id.to_string(), *refused, reason));
    }
    output::text(&text)
}

fn in_json(job: &SetAside) -> Value {
    let document = serde_json::from_str(&job.document).unwrap_or(Value::Null);
    json!({
        "id": job.id, "enqueued_at": rfc3339(job.at), "refused_at": rfc3339(job.refused), "reason": job.reason,
        "document": document,
    })
}
