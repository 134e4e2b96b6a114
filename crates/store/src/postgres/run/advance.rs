//! Steps of runs: one transaction for all steps of a call.

use super::messages::Messages;
use super::read::Found;
use super::rows::{self, insert, number, update, uuids};
use super::sql;
use super::start::{LOOKS, taken};
use super::work::{Entry, EntryState, Inbox, Work};
use crate::postgres::block::Blocks;
use crate::postgres::catalogue::StoredPolicy;
use crate::postgres::core::{BEGIN, Core, Locked, WAITING_FIRST, Wanted};
use crate::postgres::db_error::DbError;
use crate::postgres::pool::Session;
use crate::postgres::stored_row::{StoredRow, uuids as job_uuids};
use crate::postgres::unique::{self, Holders};
use crate::postgres::value::{Param, Reader, Statement, limit};
use crate::postgres::{queues, read, write};
use crate::{Job, JobId, MOST_REPLACED, NewJob, OnConflict, Run, RunId, RunStep, Stepped, Unique, rules};
use redrive_policy::Moment;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Which of these ids are those of jobs.
const KNOWN_JOBS: &str = "SELECT id FROM specs WHERE id = ANY ($1::uuid[])";

pub(in crate::postgres) async fn advance(core: &Core, steps: &[RunStep], now: Moment) -> Result<Vec<Stepped>, DbError> {
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    for _ in 0..LOOKS {
        match core.repeat(|| advanced(core, steps, now)).await {
            Err(DbError::Taken) => {}
            answered => return answered,
        }
    }
    Err(taken())
}

async fn advanced(core: &Core, steps: &[RunStep], now: Moment) -> Result<Vec<Stepped>, DbError> {
    let mut session = core.session().await?;
    let policies = policies(core, &mut session, steps).await?;
    let ids: BTreeSet<RunId> = steps.iter().map(|step| step.id).collect();
    // The order prevents two callers from waiting for each other.
    let lock = Statement::new(&sql::LOCK, vec![Box::new(uuids(&ids))]);
    let uniques: Vec<&Unique> = unique_jobs(steps).collect();
    let rows = if uniques.is_empty() {
        session.begin(BEGIN, &lock).await?
    } else {
        session.begin(BEGIN, &unique::lock(uniques.iter().copied())).await?;
        session.query(&lock).await?
    };
    // What cannot be read any more is as good as gone for its own step.
    let own = Found::of(&rows)?.runs;
    let holders = Holders::read(&mut session, uniques.iter().copied(), now).await?;
    let replaced = replaceable(&uniques, &holders, now);
    let (taken, locked) = jobs(core, &mut session, steps, &replaced).await?;
    // Of jobs that may be replaced, what has happened since they were looked at makes the transaction repeat.
    if replaced.iter().any(|id| locked.jobs.get(id).is_none_or(|stored| stored.job.state.is_terminal())) {
        return Err(DbError::Collided("a job that may be replaced has ended".to_owned()));
    }
    let others = others(&mut session, steps, &own, &locked, &replaced).await?;
    let unread = others.unread().collect();
    let known = own.into_iter().chain(others.runs).map(|run| (run.id, Entry::stored(run))).collect();
    let mut work = Work {
        now,
        runs: known,
        unread,
        jobs: locked.jobs,
        taken,
        created: Vec::new(),
        cancelled: Vec::new(),
        messages: Messages::default(),
        listening: core.listeners.all(),
        consumed: Vec::new(),
        holders,
    };
    inboxes(&mut session, steps, &mut work).await?;
    let answers: Vec<Stepped> = steps.iter().map(|step| work.step(step)).collect();
    if answers.iter().all(Result::is_err) {
        session.roll_back().await?;
        return Ok(answers);
    }
    written(core, session, work, locked.blocks, &policies).await?;
    Ok(answers)
}

/// What the new jobs of steps must be unique in.
fn unique_jobs(steps: &[RunStep]) -> impl Iterator<Item = &Unique> {
    steps.iter().flat_map(|step| &step.jobs).filter_map(|(_, new)| new.unique.as_deref())
}

/// The jobs that those of steps may replace.
fn replaceable(uniques: &[&Unique], holders: &Holders, now: Moment) -> Vec<JobId> {
    let replaces =
        |unique: &&&Unique| matches!(unique.on_conflict, OnConflict::Replace | OnConflict::ReplaceExceptSchedule);
    let mut ids: Vec<JobId> = Vec::new();
    for unique in uniques.iter().filter(replaces) {
        let counting = holders.of(unique, now);
        // Neither is any of them replaced: such a job is refused.
        if counting.len() <= MOST_REPLACED && !counting.iter().any(|holder| holder.state.is_terminal()) {
            ids.extend(counting.iter().map(|holder| holder.id));
        }
    }
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// How the policies of new jobs are stored, by the specification of the job: two steps may name one id.
type Policies = HashMap<usize, StoredPolicy>;

fn place(new: &NewJob) -> usize {
    Arc::as_ptr(&new.spec).addr()
}

async fn policies(core: &Core, session: &mut Session, steps: &[RunStep]) -> Result<Policies, DbError> {
    let new: Vec<&NewJob> = steps.iter().flat_map(|step| &step.jobs).map(|(_, new)| new).collect();
    let policies = write::policies(session, &core.catalogue, &new).await?;
    Ok(new.into_iter().map(place).zip(policies).collect())
}

/// The other runs that the steps name.
async fn others(
    session: &mut Session,
    steps: &[RunStep],
    own: &[Run],
    locked: &Locked,
    replaced: &[JobId],
) -> Result<Found, DbError> {
    let mut ids: BTreeSet<RunId> = own.iter().filter_map(|run| run.parent).map(|parent| parent.run).collect();
    let parents = replaced.iter().filter_map(|id| locked.jobs.get(id)?.job.parent);
    ids.extend(parents.map(|parent| parent.run));
    for step in steps {
        ids.extend(step.runs.iter().flat_map(|new| [Some(new.id), new.parent.map(|parent| parent.run)]).flatten());
        ids.extend(step.signals.iter().map(|(to, _)| *to));
    }
    ids.retain(|id| own.iter().all(|run| run.id != *id));
    if ids.is_empty() {
        return Ok(Found::default());
    }
    Found::of(&session.query(&Statement::new(&sql::READ, vec![Box::new(uuids(&ids))])).await?)
}

/// The jobs that the steps name and that are stored: their ids, and the jobs, locked where they have not ended.
async fn jobs(
    core: &Core,
    session: &mut Session,
    steps: &[RunStep],
    replaced: &[JobId],
) -> Result<(HashSet<JobId>, Locked), DbError> {
    let named = |step: &RunStep| -> Vec<JobId> {
        step.jobs.iter().map(|(_, new)| new.id).chain(step.cancelled.iter().chain(&step.withdrawn).copied()).collect()
    };
    let named: BTreeSet<JobId> = steps.iter().flat_map(named).chain(replaced.iter().copied()).collect();
    if named.is_empty() {
        return Ok((HashSet::new(), Locked::default()));
    }
    let rows = session.query(&Statement::new(KNOWN_JOBS, vec![Box::new(job_uuids(&named))])).await?;
    let taken: HashSet<JobId> = rows.iter().map(|row| Reader::new(row).id()).collect::<Result<_, _>>()?;
    let mut ids: Vec<JobId> = taken.iter().copied().collect();
    ids.sort_unstable();
    let locked = lock(core, session, &ids).await?;
    Ok((taken, locked))
}

async fn lock(core: &Core, session: &mut Session, ids: &[JobId]) -> Result<Locked, DbError> {
    if ids.is_empty() {
        return Ok(Locked::default());
    }
    let locked = core.lock_more(session, ids, WAITING_FIRST, Wanted::Unended).await?;
    match locked.newer.iter().next() {
        Some((id, why)) => Err(read::newer(*id, why)),
        None => Ok(locked),
    }
}

/// Reads what has to be known of the inboxes: so many messages of each run that the first one which is not read by the
/// steps is among them.
async fn inboxes(session: &mut Session, steps: &[RunStep], work: &mut Work) -> Result<(), DbError> {
    let mut most: HashMap<RunId, usize> = work.runs.keys().map(|id| (*id, 1)).collect();
    for step in steps {
        if let Some(most) = most.get_mut(&step.id) {
            *most += step.consumed.len();
        }
    }
    let (ids, most): (Vec<_>, Vec<_>) = most.into_iter().map(|(id, most)| (rows::uuid(id), limit(most))).unzip();
    let params: Vec<Param<'_>> = vec![Box::new(ids), Box::new(most)];
    let rows = session.query(&Statement::new(&sql::INBOXES, params)).await?;
    for row in &rows {
        let mut row = Reader::new(row);
        let id = rows::id(&mut row)?;
        let (number, at): (i64, i64) = (row.next()?, row.next()?);
        if let Some(Entry { inbox: Inbox { stored, .. }, .. }) = work.runs.get_mut(&id) {
            stored.insert(u64::try_from(number).unwrap_or(0), Moment::from_micros(at));
        }
    }
    Ok(())
}

/// Writes what the steps have made, and commits.
async fn written(
    core: &Core,
    mut session: Session,
    work: Work,
    mut blocks: Blocks,
    policies: &Policies,
) -> Result<(), DbError> {
    let Work { now, runs, mut jobs, created, cancelled, messages, consumed, holders, .. } = work;
    let numbers = enqueue(core, &mut session, &created, policies, now).await?;
    // What was enqueued and cancelled at once is written like any other job that ends.
    let again = lock(core, &mut session, &cancelled).await?;
    blocks.extend(again.blocks);
    for (id, mut stored) in again.jobs {
        // It has just been enqueued, and nothing else can have happened to it.
        let _ = stored.change(|job| rules::cancel(job, now));
        jobs.insert(id, stored);
    }
    let of = |state: EntryState| -> Vec<&Run> {
        let entries = runs.values().filter(|entry| entry.state == state);
        let mut runs: Vec<&Run> = entries.map(|entry| &entry.run).collect();
        runs.sort_by_key(|run| run.id);
        runs
    };
    let (new, changed) = (of(EntryState::New), of(EntryState::Changed));
    let mut statements = Vec::new();
    if !new.is_empty() {
        statements.push(insert(&new));
    }
    if !changed.is_empty() {
        statements.push(update(&changed));
    }
    if !consumed.is_empty() {
        let (runs, numbers): (Vec<_>, Vec<_>) =
            consumed.iter().map(|(run, each)| (rows::uuid(*run), number(*each))).unzip();
        statements.push(Statement::new(&sql::CONSUME, vec![Box::new(runs), Box::new(numbers)]));
    }
    statements.extend(messages.statement());
    statements.extend(holders.tidied());
    statements.extend(unique::stored(created.iter().map(|(_, job)| job)));
    let mut changed: Vec<&StoredRow> = jobs.values().filter(|stored| stored.changed).collect();
    changed.sort_by_key(|stored| stored.job.id);
    core.commit_with(&mut session, &changed, &blocks, statements).await?;
    for (number, name) in &numbers {
        core.catalogue.note_queue(*number, name);
    }
    core.tell(created.iter().map(|(_, job)| job));
    if !messages.is_empty() || runs.values().any(Entry::has_more_to_do) {
        core.notifier.runs();
    }
    let news = runs.values().filter(|entry| core.listeners.note(entry.run.id, entry.run.interest.as_ref()));
    if news.count() > 0 {
        core.notifier.anything();
    }
    Ok(())
}

/// Stores new jobs; answers the queues that they are in.
async fn enqueue(
    core: &Core,
    session: &mut Session,
    created: &[(NewJob, Job)],
    policies: &Policies,
    now: Moment,
) -> Result<Vec<(i32, Arc<str>)>, DbError> {
    if created.is_empty() {
        return Ok(Vec::new());
    }
    let new: Vec<&NewJob> = created.iter().map(|(new, _)| new).collect();
    // As they begin, whatever later steps have made of them.
    let stored: Vec<Job> = new.iter().map(|new| rules::created(new, now)).collect();
    let policies: Option<Vec<StoredPolicy>> = new.iter().map(|new| policies.get(&place(new)).cloned()).collect();
    let policies = policies.ok_or_else(|| DbError::Broken("a new job has no policy".to_owned()))?;
    let (queues, numbers) = queues::of(session, &new, now).await?;
    session.query(&write::enqueued(&new, &stored, policies, queues, core.sources.next(new.len()))).await?;
    Ok(numbers)
}
