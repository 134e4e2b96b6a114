//! Keeping the hot tables small.
//!
//! A claim looks for the first ready job in an index, and passes over the entries of all that were taken since
//! the last vacuum. PostgreSQL looks once a minute whether one is needed; a minute's work of a busy queue is a
//! million entries. So a node that writes much asks for a vacuum, which is quick while there is little to do.

use super::core::Core;
use super::counts;
use super::db_error::DbError;
use super::value::{Reader, Statement};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// What was counted is replaced by its sum after this many transactions that wrote.
const FOLDED: usize = 1_000;
/// The tables are vacuumed after this many written rows, and some more for each row that is there: a vacuum reads the
/// indexes whole.
const WRITES: usize = 25_000;
const SHARE: usize = 50;
/// How often to look whether the store is still there.
const LOOK: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Vacuum {
    /// Transactions since the last sum, and written rows since the last vacuum.
    counted: AtomicUsize,
    written: AtomicUsize,
    enough: AtomicUsize,
    wanted: Notify,
}

impl Default for Vacuum {
    fn default() -> Self {
        let [counted, written, enough] = [0, 0, WRITES].map(AtomicUsize::new);
        Self { counted, written, enough, wanted: Notify::new() }
    }
}

impl Vacuum {
    /// A transaction has written rows, each of which leaves a dead one behind, and counted what it did.
    pub(super) fn wrote(&self, rows: usize) {
        let counted = self.counted.fetch_add(1, Ordering::Relaxed) + 1;
        let written = self.written.fetch_add(rows, Ordering::Relaxed) + rows;
        if counted >= FOLDED || written >= self.enough.load(Ordering::Relaxed) {
            self.wanted.notify_one();
        }
    }
}

/// Sums up and runs a vacuum whenever one is wanted, until the store is dropped. Where it cannot, autovacuum does.
pub(super) async fn run(vacuum: Arc<Vacuum>, core: Weak<Core>) {
    while core.strong_count() > 0 {
        let wanted = tokio::time::timeout(LOOK, vacuum.wanted.notified()).await.is_ok();
        let Some(core) = core.upgrade().filter(|_| wanted) else { continue };
        if vacuum.counted.swap(0, Ordering::Relaxed) > 0
            && let Ok(mut session) = core.session().await
        {
            // Where that fails, the next sum is a longer one.
            let _ = counts::fold(&mut session).await;
        }
        if vacuum.written.load(Ordering::Relaxed) >= vacuum.enough.load(Ordering::Relaxed) {
            vacuum.written.store(0, Ordering::Relaxed);
            let rows = vacuum_jobs(&core).await.unwrap_or(0);
            vacuum.enough.store(WRITES + rows / SHARE, Ordering::Relaxed);
        }
    }
}

/// Returns about how many rows are left. One node at a time: the others skip it. It never waits for a lock, and
/// holds none that a verb would wait for.
async fn vacuum_jobs(core: &Core) -> Result<usize, DbError> {
    let mut session = core.session().await?;
    session.run_for_long("VACUUM (SKIP_LOCKED, INDEX_CLEANUP ON, TRUNCATE OFF) live, claims, counts").await?;
    let count = "SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'live'::regclass";
    let rows = session.query(&Statement::new(count, Vec::new())).await?;
    let rows: Option<i64> = rows.first().map(|row| Reader::new(row).next()).transpose()?;
    Ok(rows.and_then(|rows| usize::try_from(rows).ok()).unwrap_or(0))
}
