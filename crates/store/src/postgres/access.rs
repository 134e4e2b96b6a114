//! Who has a store: any number of nodes together, or one command alone.
//!
//! Every connection that reads or writes jobs takes an advisory lock when it is made, and has it for as long as
//! it is open: nodes share it, a copy of a whole store takes it exclusively. A node that has lost its connections
//! cannot write while a copy runs, because it gets no new ones.

use super::db_error::DbError;
use super::options::Options;
use super::pool::first;
use std::time::Duration;
use tokio_postgres::Client;

/// How a connection uses the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// As one of many.
    Shared,
    /// As the only one.
    Sole,
}

/// Tells these locks from others of the same database: `rdrv`.
const CLASS: i32 = 0x7264_7276;

/// The database may need a moment to notice that the connections of a process that has ended are gone.
const TRIES: u32 = 200;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// Takes the lock, until the connection ends.
pub(super) async fn take(client: &Client, options: &Options) -> Result<(), DbError> {
    let function = match options.access {
        Access::Shared => "pg_try_advisory_lock_shared",
        Access::Sole => "pg_try_advisory_lock",
    };
    let sql = format!("SELECT {function}({CLASS}, {})", key(options));
    for _ in 0..TRIES {
        if first(client, &sql).await?.as_deref() == Some("t") {
            return Ok(());
        }
        // Without waiting in the database: a session that waits for the lock there prevents all others from sharing it.
        tokio::time::sleep(BETWEEN_TRIES).await;
    }
    Err(DbError::Refused(match options.access {
        Access::Shared => format!("the store ({options}) is being copied; it can be used again afterwards"),
        Access::Sole => {
            let holders = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted";
            let here = "database = (SELECT oid FROM pg_database WHERE datname = current_database())";
            let sql = format!(
                "{holders} AND {here} AND classid::bigint = {CLASS} AND objid::bigint = {}::bigint & 4294967295",
                key(options)
            );
            let count = first(client, &sql).await?.unwrap_or_default();
            format!("the store ({options}) is in use by {count} connections: stop the servers on it, then try again")
        }
    }))
}

/// The name of a schema needs no quoting.
fn key(options: &Options) -> String {
    format!("hashtext('redrive store {}')", options.schema)
}
