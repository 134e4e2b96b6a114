//! Queues and what is in them.

use super::pool::Session;
use super::text;
use super::trouble::Trouble;
use super::value::{Order, Param, Reader};
use crate::{NewJob, Queue};
use redrive_policy::Moment;
use std::collections::HashMap;
use std::sync::Arc;

/// Closes or opens a queue that is known.
pub(super) const PAUSE: &str = "UPDATE queues SET paused = $2 WHERE name = $1 RETURNING id";
/// Closes or opens a queue, which need not be known yet.
pub(super) const PAUSE_OR_CREATE: &str = "INSERT INTO queues (name, paused, created_us) VALUES ($1, $2, $3) \
     ON CONFLICT (name) DO UPDATE SET paused = excluded.paused RETURNING id";

/// All queues, or the one named, with one row for each state that has jobs.
const READ: &str = "SELECT q.name, q.paused, q.created_us, c.state, c.jobs FROM queues q LEFT JOIN (\
       SELECT queue, state, count(*) AS jobs FROM live GROUP BY queue, state UNION ALL \
       SELECT queue, state, count(*) AS jobs FROM ended GROUP BY queue, state) c ON c.queue = q.id \
     WHERE $1::text IS NULL OR q.name = $1 ORDER BY q.name";

/// Makes sure that these queues are known, in the transaction that is open.
const NOTE: &str = "INSERT INTO queues (name, paused, created_us) \
     SELECT name, false, $2::bigint FROM unnest($1::text[]) AS n (name) ON CONFLICT DO NOTHING";
const NUMBERS: &str = "SELECT id, name FROM queues WHERE name = ANY ($1::text[])";

/// The numbers of queues, which are made where they are new. Sorted, so that two callers do not wait for
/// each other.
pub(super) async fn numbers(
    session: &mut Session,
    mut names: Vec<Arc<str>>,
    now: Moment,
) -> Result<Vec<(i32, Arc<str>)>, Trouble> {
    names.sort_unstable();
    names.dedup();
    let kept: Vec<_> = names.iter().map(|name| text::kept(name)).collect();
    let params: Vec<Param<'_>> = vec![Box::new(kept.clone()), Box::new(now.micros())];
    session.query(&Order::new(NOTE, params)).await?;
    let rows = session.query(&Order::new(NUMBERS, vec![Box::new(kept)])).await?;
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
) -> Result<(Vec<i32>, Vec<(i32, Arc<str>)>), Trouble> {
    let names = jobs.iter().map(|new| Arc::clone(&new.spec.queue)).collect();
    let numbers = numbers(session, names, now).await?;
    let number: HashMap<&str, i32> = numbers.iter().map(|(number, name)| (&**name, *number)).collect();
    let queues: Option<Vec<i32>> = jobs.iter().map(|new| number.get(&*new.spec.queue).copied()).collect();
    let queues = queues.ok_or_else(|| Trouble::Collided("a queue is being made by somebody else".to_owned()))?;
    Ok((queues, numbers))
}

/// The number of one queue, as [`numbers`].
pub(super) async fn number(session: &mut Session, name: &Arc<str>, now: Moment) -> Result<i32, Trouble> {
    let numbers = numbers(session, vec![Arc::clone(name)], now).await?;
    let number = numbers.first().map(|(number, _)| *number);
    number.ok_or_else(|| Trouble::Collided(format!("the queue \"{name}\" is being made by somebody else")))
}

/// All queues by name, or the one that is named.
pub(super) async fn read(session: &mut Session, name: Option<&str>) -> Result<Vec<Queue>, Trouble> {
    let name = name.map(text::kept);
    let rows = session.query(&Order::new(READ, vec![Box::new(name)])).await?;
    let mut queues: Vec<Queue> = Vec::new();
    for row in &rows {
        let mut row = Reader::new(row);
        let name: Arc<str> = text::read(row.next()?).into();
        let (paused, created) = (row.next()?, Moment::from_micros(row.next()?));
        let (state, jobs): (Option<i16>, Option<i64>) = (row.next()?, row.next()?);
        if queues.last().is_none_or(|last| last.name != name) {
            queues.push(Queue { name, paused, created, counts: [0; 8] });
        }
        let place = state.and_then(|state| usize::try_from(state).ok());
        if let (Some(last), Some(place), Some(jobs)) = (queues.last_mut(), place, jobs)
            && let Some(count) = last.counts.get_mut(place)
        {
            *count += usize::try_from(jobs).unwrap_or(0);
        }
    }
    Ok(queues)
}
