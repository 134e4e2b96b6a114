//! How many jobs wait in queues, where new jobs bring a bound on that.
//!
//! Whoever stores such a job holds the lock of its queue from before it reads the depth until it has committed. So all
//! that was stored under a bound is seen. Jobs that become fewer meanwhile only make room; jobs that come back
//! (retries, redrives) and jobs of runs are held to no bound, and need no lock. Queues share a few locks, so that a
//! batch does not take more than PostgreSQL has room for. They are taken in order, after those of unique jobs and
//! before any row.

use super::db_error::DbError;
use super::pool::Session;
use super::text;
use super::value::{Reader, Statement};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtext('redrive depth ' || current_schema()), number) FROM (\
       SELECT DISTINCT hashtext(name) & 15 AS number FROM unnest($1::text[]) AS q (name) ORDER BY number) l";
/// The sum of what was counted, in the states in which jobs wait.
const READ: &str = "SELECT q.name, sum(c.jobs)::bigint FROM queue_names q JOIN (\
       SELECT queue, state, jobs FROM counts WHERE state IS NOT NULL UNION ALL \
       SELECT queue, was, - jobs FROM counts WHERE was IS NOT NULL) c ON c.queue = q.id \
     WHERE q.name = ANY ($1::text[]) AND c.state IN (0, 1, 2, 4) GROUP BY q.name";

/// The statement that locks queues until the transaction is over.
pub(super) fn lock<'q>(queues: impl IntoIterator<Item = &'q Arc<str>>) -> Statement<'q> {
    Statement::new(LOCK, vec![Box::new(names(queues))])
}

/// How many jobs wait in queues that are locked. A queue without any may be left out.
pub(super) async fn read<'q>(
    session: &mut Session,
    queues: impl IntoIterator<Item = &'q Arc<str>>,
) -> Result<HashMap<Arc<str>, u64>, DbError> {
    let mut depths = HashMap::new();
    for row in &session.query(&Statement::new(READ, vec![Box::new(names(queues))])).await? {
        let mut row = Reader::new(row);
        let (name, jobs): (&str, i64) = (row.next()?, row.next()?);
        depths.insert(Arc::from(text::read(name)), u64::try_from(jobs).unwrap_or(0));
    }
    Ok(depths)
}

fn names<'q>(queues: impl IntoIterator<Item = &'q Arc<str>>) -> Vec<std::borrow::Cow<'q, str>> {
    let queues: BTreeSet<&Arc<str>> = queues.into_iter().collect();
    queues.into_iter().map(|queue| text::stored(queue)).collect()
}
