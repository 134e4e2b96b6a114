//! Queues and what is in them.

use super::core::{BEGIN_SNAPSHOT, Core};
use super::counts::{self, Count};
use super::db_error::DbError;
use super::pool::Session;
use super::text;
use super::value::{Param, Reader, Statement};
use crate::{NewJob, Queue, QueueLoad};
use redrive_policy::Moment;
use std::collections::HashMap;
use std::sync::Arc;

/// Pauses or resumes a queue that exists.
pub(super) const PAUSE: &str = "UPDATE queue_names SET paused = $2 WHERE name = $1 RETURNING id";
/// Pauses or resumes a queue, which is created where it does not exist.
pub(super) const PAUSE_OR_CREATE: &str = "INSERT INTO queue_names (name, paused, created_us) VALUES ($1, $2, $3) \
     ON CONFLICT (name) DO UPDATE SET paused = excluded.paused RETURNING id";

/// Whether a queue is paused, which stays so until the transaction is over.
pub(super) const WAS_PAUSED: &str = "SELECT paused FROM queue_names WHERE name = $1 FOR UPDATE";

/// Claims of these queues have to look at limits from now on.
const LIMITED: &str = "UPDATE queue_names SET limited = true WHERE NOT limited AND name = ANY ($1::text[])";

/// The queues that are paused.
const PAUSED: &str = "SELECT name FROM queue_names WHERE paused ORDER BY name";

/// All queues, or the one named.
const READ: &str = "SELECT name, paused, created_us FROM queue_names WHERE $1::text IS NULL OR name = $1 ORDER BY name";

/// All queues, with how many jobs are due at $1, counted up to $2, when the first one is due, and since when the next
/// one that a claim gets is available. Each of them is read from the end of an index.
const LOADS: &str = "SELECT name, paused, created_us, \
     least($2, (SELECT count(*) FROM (SELECT FROM live WHERE queue = q.id AND due_us <= $1 LIMIT $2) d) \
       + (SELECT coalesce(sum(jobs), 0)::bigint FROM (SELECT jobs FROM claims \
          WHERE queue = q.id AND state = 4 AND due_us <= $1 ORDER BY due_us LIMIT $2) c)), \
     least((SELECT min(due_us) FROM live WHERE queue = q.id AND due_us IS NOT NULL), \
       (SELECT min(due_us) FROM claims WHERE queue = q.id AND state = 4)), \
     (SELECT available_us FROM live WHERE queue = q.id AND state = 2 AND lane IS NULL \
      ORDER BY priority DESC, available_us, id LIMIT 1) \
     FROM queue_names q ORDER BY name";

/// Creates those of these queues that do not exist, in the open transaction.
const NOTE: &str = "INSERT INTO queue_names (name, paused, created_us) \
     SELECT name, false, $2::bigint FROM unnest($1::text[]) AS n (name) ON CONFLICT DO NOTHING";
/// Their numbers. They are protected from being removed until the transaction is over.
const NUMBERS: &str = "SELECT id, name FROM queue_names WHERE name = ANY ($1::text[]) FOR KEY SHARE";

/// The numbers of queues, which are created where they are new. Sorted, so that two callers do not wait for
/// each other.
pub(super) async fn numbers(
    session: &mut Session,
    mut names: Vec<Arc<str>>,
    now: Moment,
) -> Result<Vec<(i32, Arc<str>)>, DbError> {
    names.sort_unstable();
    names.dedup();
    let stored: Vec<_> = names.iter().map(|name| text::stored(name)).collect();
    let params: Vec<Param<'_>> = vec![Box::new(stored.clone()), Box::new(now.micros())];
    session.query(&Statement::new(NOTE, params)).await?;
    let rows = session.query(&Statement::new(NUMBERS, vec![Box::new(stored)])).await?;
    let mut numbers = Vec::new();
    for row in &rows {
        let mut row = Reader::new(row);
        let number: i32 = row.next()?;
        numbers.push((number, Arc::from(text::read(row.next()?))));
    }
    Ok(numbers)
}

/// The number of the queue of each job, and all that were looked up, as [`numbers`].
pub(super) async fn of(
    session: &mut Session,
    jobs: &[&NewJob],
    now: Moment,
) -> Result<(Vec<i32>, Vec<(i32, Arc<str>)>), DbError> {
    let names = jobs.iter().map(|new| Arc::clone(&new.spec.queue)).collect();
    let numbers = numbers(session, names, now).await?;
    let number: HashMap<&str, i32> = numbers.iter().map(|(number, name)| (&**name, *number)).collect();
    let queues: Option<Vec<i32>> = jobs.iter().map(|new| number.get(&*new.spec.queue).copied()).collect();
    let queues =
        queues.ok_or_else(|| DbError::Collided("a queue is being created by another transaction".to_owned()))?;
    Ok((queues, numbers))
}

/// The statement after which claims of these queues look at limits.
pub(super) fn limited<'q>(queues: impl IntoIterator<Item = &'q Arc<str>>) -> Statement<'static> {
    let names: Vec<String> = queues.into_iter().map(|name| text::stored(name).into_owned()).collect();
    Statement::new(LIMITED, vec![Box::new(names)])
}

/// The number of one queue, as [`numbers`].
pub(super) async fn number(session: &mut Session, name: &Arc<str>, now: Moment) -> Result<i32, DbError> {
    let numbers = numbers(session, vec![Arc::clone(name)], now).await?;
    let number = numbers.first().map(|(number, _)| *number);
    number.ok_or_else(|| DbError::Collided(format!("the queue \"{name}\" is being created by another transaction")))
}

/// The names of the queues that are paused.
pub(super) async fn paused(core: &Core) -> Result<Vec<Arc<str>>, DbError> {
    let rows = core.session().await?.query(&Statement::new(PAUSED, Vec::new())).await?;
    rows.iter().map(|row| Reader::new(row).next().map(|name| Arc::from(text::read(name)))).collect()
}

/// All queues by name, or the one that is named, with what is in them.
pub(super) async fn read(core: &Core, name: Option<&str>) -> Result<Vec<Queue>, DbError> {
    let mut session = core.session().await?;
    let name = name.map(text::stored);
    let rows = session.begin(BEGIN_SNAPSHOT, &Statement::new(READ, vec![Box::new(name)])).await?;
    let counts = counts::all(&mut session).await?;
    session.roll_back().await?;
    let mut queues = rows.iter().map(|row| empty(&mut Reader::new(row))).collect::<Result<Vec<_>, _>>()?;
    for Count { queue, state, jobs, .. } in &counts {
        let place = queues.binary_search_by(|other| other.name.cmp(queue)).ok();
        if let Some(count) = place.and_then(|place| queues[place].counts.get_mut(*state)) {
            *count += jobs;
        }
    }
    Ok(queues)
}

/// A queue of which nothing is counted yet.
fn empty(row: &mut Reader<'_>) -> Result<Queue, DbError> {
    let name = text::read(row.next()?).into();
    let (paused, created) = (row.next()?, Moment::from_micros(row.next()?));
    Ok(Queue { name, paused, created, counts: [0; 8] })
}

/// All queues by name, with what waits in them at this time.
pub(super) async fn loads(core: &Core, now: Moment) -> Result<Vec<QueueLoad>, DbError> {
    let mut session = core.session().await?;
    let most = i64::try_from(QueueLoad::MOST_DUE).unwrap_or(i64::MAX);
    let params: Vec<Param<'_>> = vec![Box::new(now.micros()), Box::new(most)];
    let rows = session.begin(BEGIN_SNAPSHOT, &Statement::new(LOADS, params)).await?;
    let counts = counts::all(&mut session).await?;
    session.roll_back().await?;
    let mut loads: Vec<QueueLoad> = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut row = Reader::new(row);
        let queue = empty(&mut row)?;
        let (due, first_due, next): (i64, Option<i64>, Option<i64>) = (row.next()?, row.next()?, row.next()?);
        loads.push(QueueLoad {
            queue,
            dead: 0,
            due: usize::try_from(due).unwrap_or(0),
            first_due: first_due.map(Moment::from_micros),
            next_available: next.map(Moment::from_micros),
        });
    }
    for Count { queue, state, jobs, dead } in &counts {
        let place = loads.binary_search_by(|other| other.queue.name.cmp(queue)).ok();
        let Some(load) = place.map(|place| &mut loads[place]) else { continue };
        load.dead += if *dead { *jobs } else { 0 };
        load.queue.counts.get_mut(*state).into_iter().for_each(|count| *count += jobs);
    }
    Ok(loads)
}
