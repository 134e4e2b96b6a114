//! Deleting queues. A queue whose row is locked takes no new jobs, and the next statement sees what is in it.

use super::super::core::{BEGIN, Core};
use super::super::db_error::DbError;
use super::super::text;
use super::super::value::{Param, Reader, Statement};
use crate::{Queue, QueueRefusal};
use redrive_policy::{Moment, Span};
use std::sync::Arc;

const LOCK: &str = "SELECT id, paused, created_us FROM queue_names WHERE name = $1 FOR UPDATE";
/// The jobs of one queue by state. Those that were set aside are still in it; their state is that of their row.
const COUNT: &str = "SELECT least(state, 7)::smallint, sum(jobs)::bigint FROM (\
       SELECT state, jobs FROM counts WHERE queue = $1 AND state IS NOT NULL UNION ALL \
       SELECT was, - jobs FROM counts WHERE queue = $1 AND was IS NOT NULL UNION ALL \
       SELECT (row ->> 'state')::smallint, 1 FROM unreadable WHERE queue = $1) j GROUP BY 1";
const UNSET: &str = "DELETE FROM limit_groups WHERE name = $1";
const FORGET: &str = "DELETE FROM queue_names WHERE id = $1";
/// Queues without jobs that are not paused and as old as $1; those that are in use at this moment are left out.
const LOCK_EMPTY: &str = "SELECT id FROM queue_names q WHERE NOT paused AND created_us <= $1 \
     AND id <> ALL (ARRAY(SELECT queue FROM counts GROUP BY queue \
       HAVING sum(CASE WHEN was IS NULL THEN jobs WHEN state IS NULL THEN - jobs ELSE 0 END) <> 0)) \
     AND NOT EXISTS (SELECT FROM unreadable WHERE queue = q.id) \
     AND NOT EXISTS (SELECT FROM limit_groups WHERE is_set AND name = 'queue:' || q.name) \
     ORDER BY id FOR UPDATE SKIP LOCKED";
const FORGET_EMPTY: &str = "DELETE FROM queue_names q WHERE id = ANY ($1::integer[]) \
     AND id <> ALL (ARRAY(SELECT queue FROM counts WHERE queue = ANY ($1::integer[]) GROUP BY queue \
       HAVING sum(CASE WHEN was IS NULL THEN jobs WHEN state IS NULL THEN - jobs ELSE 0 END) <> 0)) \
     AND NOT EXISTS (SELECT FROM unreadable WHERE queue = q.id) \
     RETURNING name";

/// Deletes one queue, where it has no jobs.
pub(in crate::postgres) async fn forget(core: &Core, name: &Arc<str>) -> Result<Result<Queue, QueueRefusal>, DbError> {
    let mut session = core.session().await?;
    let rows = session.begin(BEGIN, &Statement::new(LOCK, vec![Box::new(text::stored(name))])).await?;
    let Some(row) = rows.first() else {
        session.roll_back().await?;
        return Ok(Err(QueueRefusal::NotFound));
    };
    let mut row = Reader::new(row);
    let number: i32 = row.next()?;
    let (paused, created) = (row.next()?, Moment::from_micros(row.next()?));
    let mut queue = Queue { name: Arc::clone(name), paused, created, counts: [0; 8] };
    for row in &session.query(&Statement::new(COUNT, vec![Box::new(number)])).await? {
        let mut row = Reader::new(row);
        let (state, jobs): (i16, i64) = (row.next()?, row.next()?);
        if let Some(count) = usize::try_from(state).ok().and_then(|state| queue.counts.get_mut(state)) {
            *count = usize::try_from(jobs).unwrap_or(0);
        }
    }
    if queue.jobs() > 0 {
        session.roll_back().await?;
        return Ok(Err(QueueRefusal::HasJobs(queue)));
    }
    let unset = Statement::new(UNSET, vec![Box::new(format!("queue:{}", text::stored(name)))]);
    session.commit(&[unset, Statement::new(FORGET, vec![Box::new(number)])]).await?;
    core.notifier.pauses();
    Ok(Ok(queue))
}

/// Deletes all queues that have no jobs, are not paused, and are old enough.
pub(in crate::postgres) async fn prune(core: &Core, age: Span, now: Moment) -> Result<Vec<Arc<str>>, DbError> {
    let mut session = core.session().await?;
    let before = now.micros().saturating_sub(Moment::ORIGIN.after(age).micros());
    let rows = session.begin(BEGIN, &Statement::new(LOCK_EMPTY, vec![Box::new(before)])).await?;
    if rows.is_empty() {
        session.roll_back().await?;
        return Ok(Vec::new());
    }
    let numbers: Vec<i32> = rows.iter().map(|row| Reader::new(row).next()).collect::<Result<_, _>>()?;
    let params: Vec<Param<'_>> = vec![Box::new(numbers)];
    let rows = session.query(&Statement::new(FORGET_EMPTY, params)).await?;
    let read = |row| Reader::new(row).next().map(|name| Arc::from(text::read(name)));
    let mut names: Vec<Arc<str>> = rows.iter().map(read).collect::<Result<_, _>>()?;
    session.commit(&[]).await?;
    names.sort_unstable();
    Ok(names)
}
