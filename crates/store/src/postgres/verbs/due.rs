//! Which due jobs are next, queue by queue: of queues that are held no job is read.

use super::super::block::Blocks;
use super::super::core::Core;
use super::super::db_error::DbError;
use super::super::pool::Session;
use super::super::stored_row::StoredRow;
use super::super::value::{Param, Reader, Statement, limit};
use super::super::{sql, text};
use crate::{Held, Job};
use redrive_policy::Moment;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

/// The jobs that are due in the queues that are not held, at most `most`: the first of each queue, then the second
/// of each. Each round asks every queue for an equal share of what is still wanted, so that queues with few due jobs
/// leave their share to the others. `blocks` gets the rows of those that wait with others.
pub(super) async fn in_turn(
    core: &Core,
    session: &mut Session,
    held: &Held,
    most: usize,
    now: Moment,
    blocks: &mut Blocks,
) -> Result<Vec<StoredRow>, DbError> {
    let mut due: Vec<StoredRow> = Vec::new();
    let mut open = due_queues(session, held, most, now).await?;
    while due.len() < most && !open.is_empty() {
        let share = ((most - due.len()) / open.len()).max(1);
        let mut found = Vec::new();
        for sql in [&sql::DUE, &sql::DUE_BLOCKS] {
            let rows = session.query(&Statement::new(sql, params(&open, share, now))).await?;
            let read = core.read_locked(session, &rows).await?;
            found.extend(read.jobs);
            blocks.extend(read.blocks);
        }
        let seen: HashMap<Arc<str>, (i64, Uuid)> =
            open.iter().filter_map(|queue| Some((core.catalogue.queue_name(queue.number)?, queue.seen))).collect();
        found.retain(|StoredRow { job, .. }| seen.get(&job.spec.queue).is_some_and(|seen| place(job) > *seen));
        found.sort_by_key(|StoredRow { job, .. }| (job.due, job.id));
        keep_shares(&mut found, share);
        let last = last_of_share(&found, share);
        open.retain_mut(|queue| {
            let name = core.catalogue.queue_name(queue.number);
            name.and_then(|name| last.get(&name)).map(|job| queue.seen = place(job)).is_some()
        });
        due.extend(found);
    }
    Ok(first_turns(due, most))
}

fn params(open: &[DueQueue], share: usize, now: Moment) -> Vec<Param<'static>> {
    vec![
        Box::new(now.micros()),
        Box::new(limit(share)),
        Box::new(open.iter().map(|queue| queue.number).collect::<Vec<_>>()),
        Box::new(open.iter().map(|queue| queue.seen.0).collect::<Vec<_>>()),
        Box::new(open.iter().map(|queue| queue.seen.1).collect::<Vec<_>>()),
    ]
}

/// Of each queue no more than its share. The jobs are in the order of time; what is left out is found again.
fn keep_shares(found: &mut Vec<StoredRow>, share: usize) {
    let mut counts: HashMap<Arc<str>, usize> = HashMap::new();
    found.retain(|StoredRow { job, .. }| {
        let count = counts.entry(Arc::clone(&job.spec.queue)).or_default();
        *count += 1;
        *count <= share
    });
}

/// A queue that has due jobs, and after which position its next one comes.
struct DueQueue {
    number: i32,
    seen: (i64, Uuid),
}

async fn due_queues(session: &mut Session, held: &Held, most: usize, now: Moment) -> Result<Vec<DueQueue>, DbError> {
    let params: Vec<Param<'_>> = vec![Box::new(now.micros()), Box::new(limit(most)), Box::new(names(held))];
    let rows = session.query(&Statement::new(&sql::DUE_QUEUES, params)).await?;
    let first = |number| DueQueue { number, seen: (i64::MIN, Uuid::nil()) };
    rows.iter().map(|row| Reader::new(row).next().map(first)).collect()
}

/// The last job of each queue that gave its whole share, and may have more. The jobs are in the order of time.
fn last_of_share(found: &[StoredRow], share: usize) -> HashMap<Arc<str>, &Job> {
    let mut counts: HashMap<&Arc<str>, usize> = HashMap::new();
    let mut last = HashMap::new();
    for StoredRow { job, .. } in found {
        let count = counts.entry(&job.spec.queue).or_default();
        *count += 1;
        if *count == share {
            last.insert(Arc::clone(&job.spec.queue), &**job);
        }
    }
    last
}

/// Where a due job stands in its queue.
fn place(job: &Job) -> (i64, Uuid) {
    (job.due.map_or(i64::MAX, Moment::micros), Uuid::from_bytes(job.id.to_bytes()))
}

/// The first `most` of these jobs, queues taking turns.
fn first_turns(mut due: Vec<StoredRow>, most: usize) -> Vec<StoredRow> {
    due.sort_by_key(|StoredRow { job, .. }| (job.due, job.id));
    let mut turns: HashMap<Arc<str>, usize> = HashMap::new();
    let mut due: Vec<(usize, StoredRow)> = due
        .into_iter()
        .map(|stored| {
            let turn = turns.entry(Arc::clone(&stored.job.spec.queue)).or_default();
            *turn += 1;
            (*turn, stored)
        })
        .collect();
    // Stable: within a turn the order of time stays.
    due.sort_by_key(|(turn, _)| *turn);
    due.truncate(most);
    due.into_iter().map(|(_, stored)| stored).collect()
}

/// The names of queues that are held, as the database takes them.
pub(super) fn names(held: &Held) -> Vec<Cow<'_, str>> {
    held.queues().map(|name| text::stored(name)).collect()
}
