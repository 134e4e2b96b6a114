//! Claiming jobs.

use super::super::batcher::Weigh;
use super::super::block::{self, Block, Blocks, NewBlock};
use super::super::core::{BEGIN, Core};
use super::super::db_error::DbError;
use super::super::limits::{self, Ledger};
use super::super::pool::Session;
use super::super::read::Found;
use super::super::stored_row::{Place, StoredRow, counted, uuids};
use super::super::tally::Tally;
use super::super::turns::Turn;
use super::super::value::{Param, Reader, Statement, limit};
use super::super::{sql, text, write};
use super::limited;
use crate::limit::Room;
use crate::rules;
use crate::{Claim, Claimed, Group, JobId, StoreError};
use redrive_policy::Moment;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
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
    /// The rows of jobs that wait together, and the turn in which they are taken.
    blocks: Blocks,
    turn: Option<Turn<'c>>,
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
    let session = core.session().await?;
    let mut claiming = Claiming { core, session, begun: false, ledger: None, blocks: Blocks::new(), turn: None };
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
    let Claiming { mut session, ledger, blocks, turn, .. } = claiming;
    let starts = ledger.and_then(|ledger| ledger.statement());
    left.extend(commit(core, &mut session, taken, starts, &blocks).await?);
    drop(turn);
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
        for queue in queues {
            if !self.core.limited.has(queue) {
                jobs.extend(self.without_limits(&[queue], count, budget, now).await?);
                continue;
            }
            limited::put_apart(self.core, &mut self.session, queue).await?;
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
        let mut statement = Statement::new(&sql::CLAIM, params);
        let mut found = Vec::new();
        for _ in 0..LOOKS {
            statement.sql = &sql::CLAIM;
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
            let look_together = are_together(&rows)?;
            let mut read = read_some(self.core, &mut self.session, rows, budget, queues).await?;
            if look_together {
                let turn = self.turn.get_or_insert_with(|| self.core.turns.begin());
                turn.hold();
                statement.sql = &sql::CLAIM_TOGETHER;
                let rows = self.session.query(&statement).await?;
                turn.looked(!rows.is_empty());
                read.extend(self.core.read_locked(&mut self.session, &rows).await?);
                self.blocks.extend(read.blocks);
            }
            found = read.jobs;
            let others_hold_some = match &self.turn {
                Some(turn) if look_together && found.len() < count => turn.others().await,
                _ => false,
            };
            if read.damaged.is_empty() && !others_hold_some {
                break;
            }
        }
        Ok(found)
    }
}

/// Moves the jobs into claims, one for each caller, and commits. Answers the queues of jobs that wait with some of them
/// and were not claimed: `ready` are the rows of those that waited together.
async fn commit(
    core: &Core,
    session: &mut Session,
    mut taken: Vec<(usize, StoredRow)>,
    starts: Option<Statement<'_>>,
    ready: &Blocks,
) -> Result<Vec<Arc<str>>, DbError> {
    if taken.is_empty() {
        session.commit(&[]).await?;
        return Ok(Vec::new());
    }
    let (leave, left) = left_by(&taken, ready)?;
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
    let statements: Vec<Statement<'_>> = starts.into_iter().chain(leave).chain([statement]).collect();
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
    Ok(left)
}

/// The statement by which jobs leave the rows in which they waited together, where some do, and the queues of those
/// that go on waiting there.
fn left_by(
    taken: &[(usize, StoredRow)],
    ready: &Blocks,
) -> Result<(Option<Statement<'static>>, Vec<Arc<str>>), DbError> {
    let mut leaving: BTreeMap<i64, (Vec<usize>, &StoredRow)> = BTreeMap::new();
    for (_, stored) in taken {
        if let Place::Claim(no, place) = stored.place {
            leaving.entry(no).or_insert_with(|| (Vec::new(), stored)).0.push(place);
        }
    }
    if leaving.is_empty() {
        return Ok((None, Vec::new()));
    }
    let mut left = Vec::new();
    let (mut whole, mut part) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    let (mut gone, mut jobs) = (Vec::new(), Vec::new());
    for (no, (places, stored)) in leaving {
        let missing = || DbError::Broken("a row of jobs that wait together was not read".to_owned());
        let before = ready.get(&no).ok_or_else(missing)?;
        let (sources, numbers) = match before.without(places) {
            None => &mut whole,
            Some(after) => {
                jobs.push(after.left());
                gone.push(after.gone);
                left.push(Arc::clone(&stored.job.spec.queue));
                &mut part
            }
        };
        sources.push(before.source);
        numbers.push(no);
    }
    let params: Vec<Param<'static>> =
        vec![Box::new(whole.0), Box::new(whole.1), Box::new(part.0), Box::new(part.1), Box::new(gone), Box::new(jobs)];
    Ok((Some(Statement::new(&sql::LEAVE, params)), left))
}

/// Whether jobs that wait together have to be looked at, by the rows of others: none says nothing.
fn are_together(rows: &[Row]) -> Result<bool, DbError> {
    let Some(row) = rows.first() else { return Ok(true) };
    let mut row = Reader::new(row);
    row.skip_to(sql::BLOCK + 2);
    row.next()
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
