//! Claiming jobs.

use super::super::batcher::Weigh;
use super::super::block::{self, Block, NewBlock};
use super::super::core::{BEGIN, Core};
use super::super::db_error::DbError;
use super::super::limits::{self, Ledger};
use super::super::pool::Session;
use super::super::read::Found;
use super::super::stored_row::{Place, StoredRow, counted, uuids};
use super::super::tally::Tally;
use super::super::value::{Param, Reader, Statement, limit};
use super::super::{sql, text, write};
use super::limited;
use crate::limit::Room;
use crate::rules;
use crate::{Claim, Claimed, EventKind, Group, JobId, StoreError};
use redrive_policy::Moment;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use tokio_postgres::Row;
use uuid::Uuid;

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
pub(in crate::postgres) async fn batch(core: Arc<Core>, calls: Vec<Call>) -> Vec<Result<Claimed, StoreError>> {
    match core.repeat(|| claimed(&core, &calls)).await {
        Ok(answers) => answers.into_iter().map(Ok).collect(),
        Err(db_error) => {
            let error = StoreError::from(db_error);
            calls.iter().map(|_| Err(error.clone())).collect()
        }
    }
}

/// A transaction that claims.
struct Claiming<'c> {
    core: &'c Core,
    session: Session,
    begun: bool,
    /// What limits allow, once a queue has some.
    ledger: Option<Ledger>,
}

async fn claimed(core: &Core, calls: &[Call]) -> Result<Vec<Claimed>, DbError> {
    let mut answers: Vec<Claimed> = calls.iter().map(|_| Claimed::default()).collect();
    let groups = groups(calls);
    if groups.is_empty() {
        return Ok(answers);
    }
    // Each with the place of its caller.
    let mut taken: Vec<(usize, StoredRow)> = Vec::new();
    let mut left: Vec<Arc<str>> = Vec::new();
    let mut claiming = Claiming { core, session: core.session().await?, begun: false, ledger: None };
    for (queues, places) in groups {
        let sum = |part: fn(&Claim) -> usize| {
            places.iter().fold(0_usize, |total, place| total.saturating_add(part(&calls[*place].0)))
        };
        let (count, bytes) = (sum(|claim| claim.count), sum(|claim| claim.bytes));
        // Calls of one batch come at nearly the same time. The latest prevents what expires in between from
        // being claimed by any of them.
        let now = places.iter().map(|place| calls[*place].1).max().unwrap_or_default();
        // Jobs that earlier groups of this transaction have claimed are found again: they are not written yet.
        let again: usize = taken.iter().map(|(_, stored)| stored.job.bytes()).sum();
        let budget = Budget { bytes: bytes.saturating_add(again), jobs: places.len() + taken.len() };
        let count = count.saturating_add(taken.len());
        let (mut found, full) = claiming.find(&queues, count, &budget, now).await?;
        if let Some(ledger) = &claiming.ledger {
            places.iter().for_each(|place| limited::pass(&mut answers[*place], &full, ledger, now));
        }
        found.retain(|stored| !taken.iter().any(|(_, other)| other.job.id == stored.job.id));
        sort(&mut found, &queues);
        let mut found = found.into_iter().peekable();
        for place in places {
            let (claim, now) = &calls[place];
            let (answer, mut bytes) = (&mut answers[place], 0_usize);
            while let Some(stored) = found.peek().filter(|_| answer.jobs.len() < claim.count) {
                if claiming.ledger.as_ref().is_some_and(|ledger| ledger.holds(&stored.job, answer, *now)) {
                    found.next();
                    continue;
                }
                bytes = bytes.saturating_add(stored.job.bytes());
                if bytes > claim.bytes && !answer.jobs.is_empty() {
                    left.push(Arc::clone(&stored.job.spec.queue));
                    break;
                }
                let Some(stored) = found.next() else { break };
                if let Ok((job, stored)) = stored.changed_by(|job| rules::claim(job, claim, *now)) {
                    claiming.ledger.iter_mut().for_each(|ledger| ledger.start(&job, *now));
                    answer.jobs.push(job);
                    taken.push((place, stored));
                }
            }
        }
    }
    let Claiming { mut session, ledger, .. } = claiming;
    commit(core, &mut session, taken, ledger.and_then(|ledger| ledger.statement())).await?;
    // Other nodes have skipped rows that were locked here and not claimed after all.
    left.iter().for_each(|queue| core.notifier.available(queue, 1));
    Ok(answers)
}

impl Claiming<'_> {
    /// The next jobs of some queues, and the groups that are full.
    async fn find(
        &mut self,
        queues: &[&Arc<str>],
        count: usize,
        budget: &Budget,
        now: Moment,
    ) -> Result<(Vec<StoredRow>, Vec<(Group, Room)>), DbError> {
        if !limited::has_limits(self.core, queues) {
            let found = self.without_limits(queues, count, budget, now).await?;
            // The statement names queues that have got limits meanwhile.
            if !limited::has_limits(self.core, queues) {
                return Ok((found, Vec::new()));
            }
        }
        if self.ledger.is_none() {
            if !std::mem::replace(&mut self.begun, true) {
                self.session.begin(BEGIN, &Statement::new(limits::LOCK, Vec::new())).await?;
            } else {
                limited::lock(&mut self.session).await?;
            }
        }
        let (mut jobs, mut full) = (Vec::new(), Vec::new());
        for (place, queue) in queues.iter().enumerate() {
            // What it locked is found again.
            if queues[..place].contains(queue) {
                continue;
            }
            if !self.core.limited.has(queue) {
                let found = self.without_limits(&[queue], count, budget, now).await?;
                if !self.core.limited.has(queue) {
                    jobs.extend(found);
                    continue;
                }
            }
            for _ in 0..LOOKS {
                let ledger = self.ledger.get_or_insert_default();
                let found = limited::candidates(&mut self.session, ledger, queue, count, now).await?;
                let read = read_some(self.core, &mut self.session, found.rows, budget, &[queue]).await?;
                if read.damaged.is_empty() {
                    jobs.extend(read.jobs);
                    full.extend(found.full);
                    break;
                }
            }
        }
        Ok((jobs, full))
    }

    /// The next jobs of queues without limits.
    async fn without_limits(
        &mut self,
        queues: &[&Arc<str>],
        count: usize,
        budget: &Budget,
        now: Moment,
    ) -> Result<Vec<StoredRow>, DbError> {
        let mut names: Vec<_> = Vec::with_capacity(queues.len());
        for name in queues.iter().map(|name| text::stored(name)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let params: Vec<Param<'_>> = vec![Box::new(names), Box::new(limit(count)), Box::new(now.micros())];
        let statement = Statement::new(&sql::CLAIM, params);
        let mut found = Vec::new();
        for _ in 0..LOOKS {
            let mut rows = match std::mem::replace(&mut self.begun, true) {
                true => self.session.query(&statement).await?,
                false => self.session.begin(BEGIN, &statement).await?,
            };
            let mut limited: Vec<i32> = Vec::new();
            rows.retain(|row| match row.try_get::<_, Option<Uuid>>(0) {
                // Not a job, but a queue that has limits.
                Ok(None) => {
                    limited.extend(row.try_get::<_, i32>(sql::QUEUE).ok());
                    false
                }
                _ => true,
            });
            if !limited.is_empty() {
                self.core.catalogue.learn_queues(&mut self.session, &limited).await?;
                for name in limited.iter().filter_map(|number| self.core.catalogue.queue_name(*number)) {
                    self.core.limited.note(&name);
                }
            }
            let read = read_some(self.core, &mut self.session, rows, budget, queues).await?;
            found = read.jobs;
            if read.damaged.is_empty() {
                break;
            }
        }
        Ok(found)
    }
}

/// Moves the jobs into claims, one for each caller, and commits.
async fn commit(
    core: &Core,
    session: &mut Session,
    mut taken: Vec<(usize, StoredRow)>,
    starts: Option<Statement<'_>>,
) -> Result<(), DbError> {
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
    let mut statements: Vec<Statement<'_>> = starts.into_iter().chain([statement]).collect();
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
