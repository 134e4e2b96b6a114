//! `redrive store inbox`: entries of the inbox that could not be
//! made of.

use super::location::StoreLocation;
use crate::{exit::Failed, output};
use redrive_ojs::time::rfc3339;
use redrive_store::JobId;
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
    let StoreLocation::Database(options) = StoreLocation::read(&args.address)? else {
        return Err(Failed::usage("found a folder; only a store in a database has an inbox: give postgres://…"));
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failed::unreachable(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        let inbox = Inbox::open(*options).await.map_err(Failed::unreachable)?;
        if args.again.is_empty() && args.drop.is_empty() {
            let contents = inbox.look(args.limit).await.map_err(Failed::unreachable)?;
            return listed(&contents, json);
        }
        let named = if args.again.is_empty() { &args.drop } else { &args.again };
        let ids = ids(named)?;
        let changed = match args.again.is_empty() {
            true => inbox.forget(ids.as_deref()).await,
            false => inbox.again(ids.as_deref()).await,
        };
        told(&changed.map_err(Failed::unreachable)?, ids.as_deref(), json)
    })
}

/// The ids that were named; none for all.
pub(super) fn ids(named: &[String]) -> Result<Option<Vec<JobId>>, Failed> {
    if named.iter().any(|name| name == "all") {
        return Ok(None);
    }
    named.iter().map(|name| name.parse().map_err(Failed::usage)).collect::<Result<_, _>>().map(Some)
}

pub(super) fn told(changed: &[JobId], named: Option<&[JobId]>, json: bool) -> Result<(), Failed> {
    let ids: Vec<String> = changed.iter().map(ToString::to_string).collect();
    if json {
        output::json(&json!({ "changed": ids }))?;
    } else {
        output::text(&ids.iter().map(|id| format!("{id}\n")).collect::<String>())?;
    }
    let missing = named.unwrap_or_default().iter().find(|id| !changed.contains(id));
    missing.map_or(Ok(()), |id| Err(Failed::invalid(format!("job {id} is not among those that were set aside"))))
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
        text.push_str(&format!("{id}  {}\n  {}\n", rfc3339(*refused), reason.replace('\n', "\n  ")));
    }
    output::text(&text)
}

fn in_json(job: &SetAside) -> Value {
    let document = serde_json::from_str(&job.document).unwrap_or(Value::Null);
    json!({
        "id": job.id, "handed_in_at": rfc3339(job.at), "refused_at": rfc3339(job.refused), "reason": job.reason,
        "document": document,
    })
}
