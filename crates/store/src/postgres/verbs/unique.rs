//! Enqueueing jobs that are checked against stored ones: some must be unique, or bring a bound on the depth of their
//! queue.

use super::super::catalogue::StoredPolicy;
use super::super::core::{BEGIN, Core, Locked, WAITING_FIRST, Wanted};
use super::super::db_error::DbError;
use super::super::pool::Session;
use super::super::stored_row::{StoredRow, uuids};
use super::super::unique::{self, Holders};
use super::super::value::{Reader, Statement};
use super::super::{depths, queues, read, write};
use super::bounded::bounded;
use super::enqueue::{Call, LOOK_UP, Reply};
use crate::depth::Depths;
use crate::unique::{Admitted, BatchKeys, rescheduled};
use crate::{Duplicate, EnqueueRefusal, Enqueued, EventKind, Job, JobId, NewJob, States, Transition, rules};
use redrive_policy::Moment;
use std::collections::{HashMap, HashSet};

/// What becomes of one job.
enum Plan {
    /// It is stored.
    New,
    /// A stored job has the same idempotency key.
    Existing(JobId),
    /// An earlier job of the batch has the same idempotency key.
    Earlier(usize),
    /// It is a duplicate of this job.
    Ignored(JobId),
}

/// Stores the jobs of one caller.
pub(super) async fn enqueue(core: &Core, (jobs, now): &Call) -> Result<Reply, DbError> {
    let mut session = core.session().await?;
    let keys: Vec<&[u8]> = jobs.iter().filter_map(|new| new.idempotency_key.as_deref().map(str::as_bytes)).collect();
    let ids = uuids(jobs.iter().map(|new| &new.id));
    let uniques = || jobs.iter().filter_map(|new| new.unique.as_deref());
    // Numbers of policies are cached, and have to be stored whatever becomes of the transaction.
    let policies = write::policies(&mut session, &core.catalogue, &jobs.iter().collect::<Vec<_>>()).await?;
    session.begin(BEGIN, &unique::lock(uniques())).await?;
    if Depths::matter(jobs) {
        session.query(&depths::lock(bounded(&jobs.iter().collect::<Vec<_>>()))).await?;
    }
    // Whoever had the locks before has committed by now, and is seen by the statements that follow.
    let rows = session.query(&Statement::new(LOOK_UP, vec![Box::new(ids), Box::new(keys)])).await?;
    let (mut taken, mut known) = (HashSet::new(), HashMap::new());
    for row in &rows {
        let mut row = Reader::new(row);
        let id = row.id()?;
        taken.insert(id);
        known.extend(row.next::<Option<&[u8]>>()?.map(|key| (key.to_vec(), id)));
    }
    let mut new = NewJobs::begin(Holders::read(&mut session, uniques(), *now).await?, *now);
    let plans = match plan(jobs, &policies, taken, &known, &mut new) {
        Ok(plans) => plans,
        Err(refusal) => {
            session.commit(&new.holders.tidied()).await?;
            return Ok(Err(refusal));
        }
    };
    let wanted = plans.iter().filter_map(|plan| match plan {
        Plan::Existing(id) => Some(*id),
        Plan::Ignored(id) => Some(*id).filter(|id| !new.has(*id)),
        Plan::New | Plan::Earlier(_) => None,
    });
    let kept = read_jobs(core, &mut session, wanted.collect()).await?;
    let locked = new.lock_replaced(core, &mut session).await?;
    if Depths::matter(jobs)
        && let Err(refusal) = new.check_depths(&mut session, &locked, &plans).await?
    {
        session.roll_back().await?;
        return Ok(Err(refusal));
    }
    let stored = new.store(core, &mut session, locked, Vec::new()).await?;
    let mut created: HashMap<JobId, Job> = stored.iter().map(|(job, _)| (job.id, job.clone())).collect();
    created.extend(kept);
    let mut stored = stored.into_iter();
    let mut answers: Vec<Enqueued> = Vec::with_capacity(plans.len());
    let missing = |id: JobId| {
        DbError::Broken(format!(
            "a key of this batch belongs to the job {id}, which was set aside because it cannot be read; \
             `redrive store unreadable` lists it"
        ))
    };
    for plan in plans {
        answers.push(match plan {
            Plan::New => match stored.next() {
                Some((job, replaced)) if replaced.is_empty() => Enqueued::Created(job),
                Some((job, replaced)) => {
                    // Jobs further on that have the key of one of these find it cancelled.
                    created.extend(replaced.iter().map(|cancelled| (cancelled.job.id, cancelled.job.clone())));
                    Enqueued::Replaced { job, replaced }
                }
                None => return Err(DbError::Broken("a job that was stored is not there".to_owned())),
            },
            Plan::Existing(id) => Enqueued::Existing(created.get(&id).cloned().ok_or_else(|| missing(id))?),
            Plan::Ignored(id) => Enqueued::Ignored(created.get(&id).cloned().ok_or_else(|| missing(id))?),
            Plan::Earlier(index) => Enqueued::Existing(answers[index].job().clone()),
        });
    }
    Ok(Ok(answers))
}

fn plan(
    jobs: &[NewJob],
    policies: &[StoredPolicy],
    mut taken: HashSet<JobId>,
    known: &HashMap<Vec<u8>, JobId>,
    new: &mut NewJobs,
) -> Result<Vec<Plan>, EnqueueRefusal> {
    let mut earlier: HashMap<&[u8], usize> = HashMap::new();
    let mut plans = Vec::with_capacity(jobs.len());
    for (index, (job, policy)) in jobs.iter().zip(policies).enumerate() {
        let key = job.idempotency_key.as_deref().map(str::as_bytes);
        if let Some(id) = key.and_then(|key| known.get(key)) {
            plans.push(Plan::Existing(*id));
            continue;
        }
        if let Some(place) = key.and_then(|key| earlier.get(key)) {
            plans.push(Plan::Earlier(*place));
            continue;
        }
        if !taken.insert(job.id) {
            return Err(EnqueueRefusal::IdTaken { index, id: job.id });
        }
        match new.admit(job, policy).map_err(|duplicate| EnqueueRefusal::Duplicate { index, duplicate })? {
            Some(duplicate) => plans.push(Plan::Ignored(duplicate.id)),
            None => {
                earlier.extend(key.map(|key| (key, index)));
                plans.push(Plan::New);
            }
        }
    }
    Ok(plans)
}

/// Jobs by id, wherever they are. One that moves from table to table meanwhile is locked for a moment.
async fn read_jobs(core: &Core, session: &mut Session, ids: HashSet<JobId>) -> Result<HashMap<JobId, Job>, DbError> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let found = read::by_id(session, &core.catalogue, &ids, false).await?.whole()?;
    let mut jobs: HashMap<JobId, Job> = found.into_iter().map(|stored| (stored.job.id, *stored.job)).collect();
    let mut missing: Vec<JobId> = ids.into_iter().filter(|id| !jobs.contains_key(id)).collect();
    if !missing.is_empty() {
        missing.sort_unstable();
        let locked = core.lock_more(session, &missing, WAITING_FIRST, Wanted::Unended).await?;
        jobs.extend(locked.jobs.into_iter().map(|(id, stored)| (id, *stored.job)));
    }
    Ok(jobs)
}

/// New jobs in a transaction that has the locks of their keys.
pub(super) struct NewJobs {
    now: Moment,
    pub(super) holders: Holders,
    batch_keys: BatchKeys,
    /// The jobs to store, each with the jobs that it replaces.
    jobs: Vec<(NewJob, Vec<JobId>)>,
    policies: Vec<StoredPolicy>,
}

impl NewJobs {
    pub(super) fn begin(holders: Holders, now: Moment) -> Self {
        Self { now, holders, batch_keys: BatchKeys::default(), jobs: Vec::new(), policies: Vec::new() }
    }

    /// Decides about the next job, whose policy is stored so. Answers the job of which it is a duplicate, where it is
    /// to be ignored then.
    pub(super) fn admit(&mut self, new: &NewJob, policy: &StoredPolicy) -> Result<Option<Duplicate>, Duplicate> {
        let admitted = match &new.unique {
            None => Admitted::Stored,
            Some(unique) => {
                let (job, holders) = (rules::created(new, self.now), self.holders.of(unique, self.now));
                self.batch_keys.admit(unique, &job, holders, self.now)?
            }
        };
        match admitted {
            Admitted::Kept(duplicate) => return Ok(Some(duplicate)),
            Admitted::Stored => self.jobs.push((new.clone(), Vec::new())),
            Admitted::Replacing(ids, None) => self.jobs.push((new.clone(), ids)),
            Admitted::Replacing(ids, Some(due)) => self.jobs.push((rescheduled(new, due), ids)),
        }
        self.policies.push(policy.clone());
        Ok(None)
    }

    fn has(&self, id: JobId) -> bool {
        self.jobs.iter().any(|(new, _)| new.id == id)
    }

    /// Locks the stored jobs that are replaced.
    pub(super) async fn lock_replaced(&self, core: &Core, session: &mut Session) -> Result<Locked, DbError> {
        let own: HashSet<JobId> = self.jobs.iter().map(|(new, _)| new.id).collect();
        let replaced = self.jobs.iter().flat_map(|(_, replaced)| replaced).copied();
        let stored: Vec<JobId> = replaced.filter(|id| !own.contains(id)).collect();
        unique::lock_replaced(core, session, &stored).await
    }

    /// Whether the queues of the jobs that were admitted have room for them.
    async fn check_depths(
        &self,
        session: &mut Session,
        locked: &Locked,
        plans: &[Plan],
    ) -> Result<Result<(), EnqueueRefusal>, DbError> {
        let mut batch = Depths::default();
        let places = plans.iter().enumerate().filter(|(_, plan)| matches!(plan, Plan::New)).map(|(index, _)| index);
        for ((new, replaced), index) in self.jobs.iter().zip(places) {
            for id in replaced {
                let stored = locked.jobs.get(id).filter(|row| States::WAITING.contains(row.job.state));
                batch.leave(*id, stored.map(|row| &row.job.spec.queue));
            }
            batch.enter(index, new);
        }
        let found = depths::read(session, batch.queues()).await?;
        Ok(batch.check(|queue| found.get(queue).copied().unwrap_or(0)))
    }

    /// Stores the jobs that were admitted in the place of others, which are locked, with further statements, and
    /// commits. Answers the jobs, each with what happened to those that it replaced.
    pub(super) async fn store<'s>(
        self,
        core: &Core,
        session: &mut Session,
        mut locked: Locked,
        further: Vec<Statement<'s>>,
    ) -> Result<Vec<(Job, Vec<Transition>)>, DbError> {
        let Self { now, holders, jobs, policies, .. } = self;
        let new: Vec<&NewJob> = jobs.iter().map(|(new, _)| new).collect();
        let created: Vec<Job> = new.iter().map(|new| rules::created(new, now)).collect();
        let own: HashSet<JobId> = new.iter().map(|new| new.id).collect();
        let replaced = jobs.iter().flat_map(|(_, replaced)| replaced).copied();
        let at_once: Vec<JobId> = replaced.filter(|id| own.contains(id)).collect();
        let mut numbers = Vec::new();
        if !new.is_empty() {
            let queues;
            (queues, numbers) = queues::of(session, &new, now).await?;
            let sources = core.sources.next(new.len());
            session.query(&write::enqueued(&new, &created, policies, queues, sources)).await?;
        }
        // What is stored and replaced at once is written like any other job that ends.
        let Locked { jobs: rows, blocks, .. } = unique::lock_replaced(core, session, &at_once).await?;
        locked.jobs.extend(rows);
        locked.blocks.extend(blocks);
        let mut cancel = |id: &JobId| locked.job(*id).and_then(|row| row.change(|job| rules::cancel(job, now))).ok();
        let replaced: Vec<Vec<Transition>> =
            jobs.iter().map(|(_, ids)| ids.iter().filter_map(&mut cancel).collect()).collect();
        let mut statements = further;
        statements.extend(holders.tidied());
        statements.extend(unique::stored(&created));
        // Those that are replaced are cancelled before the new one is stored.
        let enqueued = |job: &Job| Transition::new(job.clone(), EventKind::Enqueued, None, now);
        let happened = replaced.iter().zip(&created);
        let happened: Vec<Transition> =
            happened.flat_map(|(before, job)| before.iter().cloned().chain([enqueued(job)])).collect();
        let messages = core.messages(&happened);
        statements.extend(messages.statement());
        let mut changed: Vec<&StoredRow> = locked.jobs.values().filter(|stored| stored.changed).collect();
        changed.sort_by_key(|stored| stored.job.id);
        for (number, name) in &numbers {
            core.catalogue.note_queue(*number, name);
        }
        core.commit_with(session, &changed, &locked.blocks, statements).await?;
        core.tell_of(&messages);
        core.tell(created.iter());
        Ok(created.into_iter().zip(replaced).collect())
    }
}
