//! What `redrive store inbox` and `redrive store unreadable` have in common: entries in a database that were set aside
//! are listed, put back, or deleted.

use super::location::StoreLocation;
use crate::{exit::Failed, output};
use redrive_ojs::time::rfc3339;
use redrive_policy::Moment;
use redrive_store::postgres::Options;
use redrive_store::{JobId, StoreError};
use serde_json::json;

/// What to do: with which entries, or, without ids, with all.
pub(super) enum Wanted {
    List,
    Restore(Option<Vec<JobId>>),
    Delete(Option<Vec<JobId>>),
}

impl Wanted {
    /// Reads the ids that were named for either; "all" stands for all.
    pub(super) fn read(restore: &[String], delete: &[String]) -> Result<Self, Failed> {
        match (restore, delete) {
            ([], []) => Ok(Self::List),
            ([], delete) => ids(delete).map(Self::Delete),
            (restore, _) => ids(restore).map(Self::Restore),
        }
    }
}

fn ids(named: &[String]) -> Result<Option<Vec<JobId>>, Failed> {
    if named.iter().any(|name| name == "all") {
        return Ok(None);
    }
    named.iter().map(|name| name.parse().map_err(Failed::usage)).collect::<Result<_, _>>().map(Some)
}

/// Runs something on the database at an address. `in_folder` says what to do about a store in a folder.
pub(super) fn on_database(
    address: &str,
    in_folder: &str,
    work: impl AsyncFnOnce(Options) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let StoreLocation::Database(options) = StoreLocation::read(address)? else {
        return Err(Failed::usage(format!("found a folder; only a store in a database {in_folder}")));
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failed::unreachable(format!("cannot start: {error}")))?;
    runtime.block_on(work(*options))
}

/// Tells which entries were put back or deleted, and which of those that were named are not there.
pub(super) fn told(changed: Result<Vec<JobId>, StoreError>, named: Option<&[JobId]>, json: bool) -> Result<(), Failed> {
    let changed = changed.map_err(Failed::unreachable)?;
    let ids: Vec<String> = changed.iter().map(ToString::to_string).collect();
    if json {
        output::json(&json!({ "changed": ids }))?;
    } else {
        output::text(&ids.iter().map(|id| format!("{id}\n")).collect::<String>())?;
    }
    let missing = named.unwrap_or_default().iter().find(|id| !changed.contains(id));
    missing.map_or(Ok(()), |id| Err(Failed::invalid(format!("job {id} is not among those that were set aside"))))
}

/// An entry for people: what it is, since when it is set aside, and below it why.
pub(super) fn entry(what: &str, since: Moment, reason: &str) -> String {
    format!("{what}  {}\n  {}\n", rfc3339(since), reason.replace('\n', "\n  "))
}
