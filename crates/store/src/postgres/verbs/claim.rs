//! Claiming jobs.

use super::super::batcher::Weigh;
use super::super::block::{self, Block, NewBlock};
use super::super::core::{BEGIN, Core};
use super::super::db_error::DbError;
use super::super::pool::Session;
use super::super::read::Found;
use super::super::stored_row::{Place, StoredRow, counted, uuids};
use super::super::tally::Tally;
use super::super::value::{Param, Reader, Statement, limit};
use super::super::{sql, text, write};
use crate::rules;
use crate::{Claim, EventKind, Job, JobId, StoreError};
use redrive_policy::Moment;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use tokio_postgres::Row;

/// A worker's request, and when it came.
pub(in crate::postgres) type Call = (Claim, Moment);

impl Weigh for Call {
    fn jobs(&self) -> usize {
        self.0.count
    }
}

/// How often a claim looks again because it found jobs that had to be set aside.
const LOOKS: usize = 16;

/// Serves several requests in one transaction.
pub(in crate::postgres) async fn batch(core: Arc<Core>, calls: Vec<Call>) -> Vec<Result<Vec<Job>, StoreError>> {
    match core.repeat(|| claimed(&core, &calls)).await {
        Ok(answers) => answers.into_iter().map(Ok).collect(),
        Err(db_error) => {
            let error = StoreError::from(db_error);
            calls.iter().map(|_| Err(error.clone())).collect()
        }
    }
}

async fn claimed(core: &Core, calls: &[Call]) -> Result<Vec<Vec<Job>>, DbError> {
    let mut answers: Vec<Vec<Job>> = calls.iter().map(|_| Vec::new()).collect();
    let groups = groups(calls);
    if groups.is_empty() {
        return Ok(answers);
    }
    // Each with the place of its caller.
    let mut taken: Vec<(usize, StoredRow)> = Vec::new();
    let mut left: Vec<Arc<str>> = Vec::new();
    let mut session = core.session().await?;
    let mut begun = false;
    for (queues, places) in groups {
        let sum = |part: fn(&Claim) -> usize| {
            places.iter().fold(0_usize, |total, place| total.saturating_add(part(&calls[*place].0)))
        };
        let (count, bytes) = (sum(|claim| claim.count), sum(|claim| claim.bytes));
        // Calls of one batch come at nearly the same time. The latest prevents what expires in between from
        // being claimed by any of them.
        let now = places.iter().map(|place| calls[*place].1).max().unwrap_or_default();
        let mut names: Vec<_> = Vec::with_capacity(queues.len());
        for name in queues.iter().map(|name| text::stored(name)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        // Jobs that earlier groups of this transaction have claimed are found again: they are not written yet.
        let again: usize = taken.iter().map(|(_, stored)| stored.job.bytes()).sum();
        let budget = Budget { bytes: bytes.saturating_add(again), jobs: places.len() + taken.len() };
        let params: Vec<Param<'_>> =
            vec![Box::new(names), Box::new(limit(count.saturating_add(taken.len()))), Box::new(now.micros())];
        let statement = Statement::new(&sql::CLAIM, params);
        let mut found = Vec::new();
        for _ in 0..LOOKS {
            let rows = if begun { session.query(&statement).await? } else { session.begin(BEGIN, &statement).await? };
            begun = true;
            let read = read_some(core, &mut session, rows, &budget, &queues).await?;
            found = read.jobs;
            if read.damaged.is_empty() {
                break;
            }
        }
        found.retain(|stored| !taken.iter().any(|(_, other)| other.job.id == stored.job.id));
        sort(&mut found, &queues);
        let mut found = found.into_iter().peekable();
        for place in places {
            let (claim, now) = &calls[place];
            let (answer, mut bytes) = (&mut answers[place], 0_usize);
            while let Some(stored) = found.peek().filter(|_| answer.len() < claim.count) {
                bytes = bytes.saturating_add(stored.job.bytes());
                if bytes > claim.bytes && !answer.is_empty() {
                    left.push(Arc::clone(&stored.job.spec.queue));
                    break;
                }
                let Some(stored) = found.next() else { break };
                if let Ok((job, stored)) = stored.changed_by(|job| rules::claim(job, claim, *now)) {
                    answer.push(job);
                    taken.push((place, stored));
                }
            }
        }
    }
    commit(core, &mut session, taken).await?;
    // Other nodes have skipped rows that were locked here and not claimed after all.
    left.iter().for_each(|queue| core.notifier.available(queue, 1));
    Ok(answers)
}

/// Moves the jobs into claims, one for each caller, and commits.
async fn commit(core: &Core, session: &mut Session, mut taken: Vec<(usize, StoredRow)>) -> Result<(), DbError> {
    if taken.is_empty() {
        return session.commit(&[]).await.map(drop);
    }
    let mut blocks = Vec::new();
    let tally = {
        let queue = core.catalogue.queue_numbers();
        for together in taken.chunk_by(|(one, _), (next, _)| one == next) {
            blocks.extend(block::new_blocks(together.iter().map(|(_, stored)| stored), &queue)?);
        }
        Tally::of(taken.iter().map(|(_, stored)| stored), &queue)?
    };
    let mut params = block::params(&mut blocks);
    params.push(write::tids(taken.iter().map(|(_, stored)| stored)));
    let statement = write::tallied(&sql::CLAIM_BLOCKS, params, tally);
    let mut statements = vec![statement];
    let claimed = taken.iter().map(|(_, stored)| &*stored.job);
    statements.extend(core.messages_of_jobs(EventKind::Claimed, claimed).statement());
    let rows = session.commit(&statements).await?;
    drop(statements);
    let numbers = block::numbered(&rows, &blocks)?;
    let mut places: HashMap<JobId, Place> = HashMap::with_capacity(taken.len());
    for (block, no) in blocks.iter().zip(&numbers) {
        places.extend(block.places(*no));
    }
    let claims: Vec<(i64, Block)> = numbers.into_iter().zip(blocks.iter().map(NewBlock::block)).collect();
    drop(blocks);
    core.vacuum.wrote(taken.len());
    for (_, stored) in &mut taken {
        stored.place = places.get(&stored.job.id).copied().unwrap_or(stored.place);
        stored.was = counted(&stored.job);
    }
    core.lease_cache.keep(taken.into_iter().map(|(_, stored)| stored), claims);
    Ok(())
}

/// Of which jobs bodies are read: of those that begin within so many bytes, and in any case of so many.
struct Budget {
    bytes: usize,
    jobs: usize,
}

/// The jobs of rows. Large ones are read a second time, and only where the budget allows for them.
async fn read_some(
    core: &Core,
    session: &mut Session,
    mut rows: Vec<Row>,
    budget: &Budget,
    queues: &[&Arc<str>],
) -> Result<Found, DbError> {
    let mut sizes = rows.iter().map(size).collect::<Result<Vec<_>, _>>()?;
    if sizes.iter().all(|size| size.bytes <= sql::LARGE) {
        return core.read_locked(session, &rows).await;
    }
    let known: Vec<i32> = sizes.iter().map(|size| size.queue).collect();
    core.catalogue.learn_queues(session, &known).await?;
    let numbers: Vec<Option<i32>> = queues.iter().map(|queue| core.catalogue.queue(queue)).collect();
    let place = |size: &Size| numbers.iter().position(|number| *number == Some(size.queue));
    sizes.sort_by_key(|size| (place(size), Reverse(size.priority), size.available, size.id));
    let (mut large, mut through) = (Vec::new(), 0_usize);
    for (turn, size) in sizes.iter().enumerate() {
        if size.bytes > sql::LARGE && (through < budget.bytes || turn < budget.jobs) {
            large.push(size.id);
        }
        through = through.saturating_add(usize::try_from(size.bytes).unwrap_or(0));
    }
    rows.retain(|row| size(row).is_ok_and(|size| size.bytes <= sql::LARGE));
    let mut found = core.read_locked(session, &rows).await?;
    let rows = session.query(&Statement::new(&sql::READ_LIVE, vec![Box::new(uuids(&large))])).await?;
    found.extend(core.read_locked(session, &rows).await?);
    Ok(found)
}

/// The place and the size of a job that was found.
struct Size {
    id: JobId,
    queue: i32,
    priority: i32,
    available: Option<i64>,
    bytes: i32,
}

fn size(row: &Row) -> Result<Size, DbError> {
    let mut row = Reader::new(row);
    let id = row.id()?;
    row.skip_to(sql::QUEUE);
    let (queue, priority) = (row.next()?, row.next()?);
    row.skip_to(sql::BLOCK);
    Ok(Size { id, queue, priority, available: row.next()?, bytes: row.next()? })
}

/// Calls that ask the same queues in the same order, each by its place. A queue that is held is not asked.
fn groups(calls: &[Call]) -> Vec<(Vec<&Arc<str>>, Vec<usize>)> {
    let mut groups: Vec<(Vec<&Arc<str>>, Vec<usize>)> = Vec::new();
    for (place, (claim, _)) in calls.iter().enumerate() {
        let open: Vec<&Arc<str>> = claim.queues.iter().filter(|queue| !claim.held.contains_queue(queue)).collect();
        match groups.iter_mut().find(|(queues, _)| *queues == open) {
            Some((_, places)) => places.push(place),
            None if open.is_empty() => {}
            None => groups.push((open, vec![place])),
        }
    }
    groups
}

/// In the order in which they are claimed.
fn sort(found: &mut [StoredRow], queues: &[&Arc<str>]) {
    found.sort_by_key(|StoredRow { job, .. }| {
        let queue = queues.iter().position(|queue| **queue == job.spec.queue);
        (queue, Reverse(job.spec.priority), job.times.available, job.id)
    });
}
