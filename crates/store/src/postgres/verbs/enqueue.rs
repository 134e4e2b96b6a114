//! Enqueueing jobs.

use super::super::batcher::Weigh;
use super::super::core::{BEGIN, BEGIN_SNAPSHOT, Core};
use super::super::db_error::DbError;
use super::super::stored_row::uuids;
use super::super::value::{Reader, Statement};
use super::super::{queues, read, write};
use super::{bounded, unique};
use crate::depth::Depths;
use crate::rules;
use crate::{EnqueueRefusal, Enqueued, EventKind, Job, JobId, NewJob, StoreError};
use redrive_policy::Moment;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Jobs that are enqueued together, and when.
pub(in crate::postgres) type Call = (Vec<NewJob>, Moment);
pub(in crate::postgres) type Reply = Result<Vec<Enqueued>, EnqueueRefusal>;

impl Weigh for Call {
    fn jobs(&self) -> usize {
        self.0.len()
    }
}

/// How often a call is repeated because another transaction took one of its ids or keys meanwhile.
const LOOKS: usize = 16;

/// How the jobs of a call are stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Together with other calls.
    Together,
    /// Together with other calls, as far as there is room in their queues.
    Bounded,
    /// In a transaction of its own, because some must be unique.
    Alone,
}

impl Way {
    fn of((jobs, _): &Call) -> Self {
        match jobs.iter().any(|new| new.unique.is_some()) {
            true => Self::Alone,
            false if Depths::matter(jobs) => Self::Bounded,
            false => Self::Together,
        }
    }
}

/// Stores the jobs of several callers: all together where everything is plainly new, else each call for
/// itself.
pub(in crate::postgres) async fn batch(core: Arc<Core>, calls: Vec<Call>) -> Vec<Result<Reply, StoreError>> {
    if calls.iter().any(|call| Way::of(call) != Way::Together) {
        return apart(&core, calls).await;
    }
    together(&core, calls).await
}

/// Calls that are stored in different ways, those of each as if there were no others.
async fn apart(core: &Core, calls: Vec<Call>) -> Vec<Result<Reply, StoreError>> {
    let ways: Vec<Way> = calls.iter().map(Way::of).collect();
    let (mut others, mut with_bounds, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for (call, way) in calls.into_iter().zip(&ways) {
        match way {
            Way::Together => others.push(call),
            Way::Bounded => with_bounds.push(call),
            Way::Alone => alone.push(call),
        }
    }
    let mut others = together(core, others).await.into_iter();
    let mut with_bounds = within_bounds(core, with_bounds).await.into_iter();
    let mut alone = alone.iter();
    let mut answers = Vec::with_capacity(ways.len());
    for way in ways {
        match way {
            Way::Together => answers.extend(others.next()),
            Way::Bounded => answers.extend(with_bounds.next()),
            Way::Alone => {
                let Some(call) = alone.next() else { break };
                answers.push(single(core, call).await.map_err(StoreError::from));
            }
        }
    }
    answers
}

/// Calls of which each has a job that brings a bound on the depth of its queue.
async fn within_bounds(core: &Core, calls: Vec<Call>) -> Vec<Result<Reply, StoreError>> {
    let mut known: Vec<Option<Reply>> = calls.iter().map(|_| None).collect();
    if !calls.is_empty() && is_plain(core, &calls) {
        match core.repeat(|| bounded::together(core, &calls)).await {
            Ok(answers) => known = answers,
            Err(DbError::Taken) => {}
            Err(db_error) => {
                let error = StoreError::from(db_error);
                return calls.iter().map(|_| Err(error.clone())).collect();
            }
        }
    }
    let mut answers = Vec::with_capacity(calls.len());
    for (call, known) in calls.iter().zip(known) {
        answers.push(match known {
            Some(reply) => Ok(reply),
            None => single(core, call).await.map_err(StoreError::from),
        });
    }
    answers
}

async fn together(core: &Core, calls: Vec<Call>) -> Vec<Result<Reply, StoreError>> {
    if calls.len() > 1 && is_plain(core, &calls) {
        match core.repeat(|| plain(core, &calls)).await {
            Ok(answers) => return answers.into_iter().map(Ok).collect(),
            Err(DbError::Taken) => {}
            Err(db_error) => {
                let error = StoreError::from(db_error);
                return calls.iter().map(|_| Err(error.clone())).collect();
            }
        }
    }
    let mut answers = Vec::with_capacity(calls.len());
    for call in &calls {
        answers.push(single(core, call).await.map_err(StoreError::from));
    }
    answers
}

async fn single(core: &Core, call: &Call) -> Result<Reply, DbError> {
    let alone = std::slice::from_ref(call);
    let way = Way::of(call);
    if way == Way::Together && is_plain(core, alone) {
        match core.repeat(|| plain(core, alone)).await {
            Err(DbError::Taken) => {}
            answered => return Ok(answered?.pop().unwrap_or(Ok(Vec::new()))),
        }
    }
    for _ in 0..LOOKS {
        let answered = match way {
            Way::Together => core.repeat(|| looked_up(core, call)).await,
            Way::Bounded | Way::Alone => core.repeat(|| unique::enqueue(core, call)).await,
        };
        match answered {
            Err(DbError::Taken) => {}
            answered => return answered,
        }
    }
    Err(DbError::Refused(format!("names or keys of this batch were taken by others {LOOKS} times in a row")))
}

/// Whether all ids and keys differ from each other, no job must be unique, and all queues are known.
fn is_plain<'c>(core: &Core, calls: &'c [Call]) -> bool {
    let jobs = || calls.iter().flat_map(|(jobs, _)| jobs);
    let queue = core.catalogue.queue_numbers();
    let mut keys = HashSet::new();
    let mut is_new = |new: &'c NewJob| {
        let key = new.idempotency_key.as_ref().is_none_or(|key| keys.insert(key));
        key && new.unique.is_none() && queue(&new.spec.queue).is_some()
    };
    let mut ids: Vec<JobId> = jobs().map(|new| new.id).collect();
    ids.sort_unstable();
    ids.windows(2).all(|pair| pair[0] != pair[1]) && jobs().all(&mut is_new)
}

/// Stores everything in one statement, or nothing where an id or key is taken.
async fn plain(core: &Core, calls: &[Call]) -> Result<Vec<Reply>, DbError> {
    let jobs: Vec<&NewJob> = calls.iter().flat_map(|(jobs, _)| jobs).collect();
    let mut stored: Vec<Job> =
        calls.iter().flat_map(|(jobs, now)| jobs.iter().map(|new| rules::created(new, *now))).collect();
    if !jobs.is_empty() {
        let mut session = core.session().await?;
        let policies = write::policies(&mut session, &core.catalogue, &jobs).await?;
        let (queues, sources) = (numbers(core, &jobs)?, core.sources.next(jobs.len()));
        let enqueued = write::enqueued(&jobs, &stored, policies, queues, sources);
        match core.messages_of_jobs(EventKind::Enqueued, stored.iter()).statement() {
            None => drop(session.write(&enqueued).await?),
            Some(messages) => {
                session.begin(BEGIN, &enqueued).await?;
                session.commit(&[messages]).await?;
            }
        }
        core.tell(stored.iter());
    }
    let answers = calls.iter().map(|(jobs, _)| Ok(stored.drain(..jobs.len()).map(Enqueued::Created).collect()));
    Ok(answers.collect())
}

/// The numbers of the queues of jobs that are plainly new.
pub(super) fn numbers(core: &Core, jobs: &[&NewJob]) -> Result<Vec<i32>, DbError> {
    let queue = core.catalogue.queue_numbers();
    let queues: Option<Vec<i32>> = jobs.iter().map(|new| queue(&new.spec.queue)).collect();
    queues.ok_or_else(|| DbError::Broken("a queue has no number".to_owned()))
}

/// Stores the jobs of one caller, after reading which ids and keys are taken.
async fn looked_up(core: &Core, (jobs, now): &Call) -> Result<Reply, DbError> {
    let mut session = core.session().await?;
    let all: Vec<&NewJob> = jobs.iter().collect();
    let policies = write::policies(&mut session, &core.catalogue, &all).await?;
    let keys: Vec<&[u8]> = jobs.iter().filter_map(|new| new.idempotency_key.as_deref().map(str::as_bytes)).collect();
    let ids = uuids(jobs.iter().map(|new| &new.id));
    let rows = session.begin(BEGIN_SNAPSHOT, &Statement::new(LOOK_UP, vec![Box::new(ids), Box::new(keys)])).await?;
    let mut there = There::default();
    for row in &rows {
        let mut row = Reader::new(row);
        let id = row.id()?;
        there.ids.insert(id);
        if let Some(key) = row.next::<Option<&[u8]>>()? {
            there.keys.insert(key.to_vec(), id);
        }
    }
    let found = read::by_id(&mut session, &core.catalogue, there.keys.values(), false).await?.whole()?;
    let wanted = |new: &NewJob| there.keys.get(new.idempotency_key.as_deref()?.as_bytes());
    if let Some(id) = jobs.iter().filter_map(wanted).find(|id| !found.iter().any(|stored| stored.job.id == **id)) {
        return Err(DbError::Broken(format!(
            "an idempotency key of this batch belongs to the job {id}, which was set aside because it cannot be read; \
             `redrive store unreadable` lists it"
        )));
    }
    there.jobs = found.into_iter().map(|stored| (stored.job.id, *stored.job)).collect();

    let (answers, places) = match there.sort(jobs, *now) {
        Ok(sorted) => sorted,
        Err(refusal) => {
            session.roll_back().await?;
            return Ok(Err(refusal));
        }
    };
    let created: Vec<&NewJob> = places.iter().map(|place| &jobs[*place]).collect();
    let stored: Vec<Job> = created.iter().map(|new| rules::created(new, *now)).collect();
    let policies = places.iter().map(|place| policies[*place].clone()).collect();
    let (queues, numbers) = queues::of(&mut session, &created, *now).await?;
    let mut statements = vec![write::enqueued(&created, &stored, policies, queues, core.sources.next(created.len()))];
    statements.extend(core.messages_of_jobs(EventKind::Enqueued, stored.iter()).statement());
    session.commit(&statements).await?;
    for (number, name) in &numbers {
        core.catalogue.note_queue(*number, name);
    }
    core.tell(stored.iter());
    Ok(Ok(answers))
}

/// Jobs that have one of these ids, or one of these keys.
pub(super) const LOOK_UP: &str = "SELECT id, key FROM specs WHERE id = ANY ($1::uuid[]) UNION \
     SELECT id, key FROM specs WHERE key IS NOT NULL \
       AND sha256(key) = ANY (ARRAY(SELECT sha256(k) FROM unnest($2::bytea[]) AS u (k)))";

/// What is there already.
#[derive(Default)]
struct There {
    ids: HashSet<JobId>,
    keys: HashMap<Vec<u8>, JobId>,
    jobs: HashMap<JobId, Job>,
}

impl There {
    /// What becomes of each job, and the positions of those that are new.
    fn sort(mut self, jobs: &[NewJob], now: Moment) -> Result<(Vec<Enqueued>, Vec<usize>), EnqueueRefusal> {
        let (mut answers, mut places) = (Vec::new(), Vec::new());
        for (index, new) in jobs.iter().enumerate() {
            let key = new.idempotency_key.as_deref().map(str::as_bytes);
            let existing = key.and_then(|key| self.keys.get(key)).and_then(|id| self.jobs.get(id));
            if let Some(job) = existing {
                answers.push(Enqueued::Existing(job.clone()));
                continue;
            }
            if !self.ids.insert(new.id) {
                return Err(EnqueueRefusal::IdTaken { index, id: new.id });
            }
            let job = rules::created(new, now);
            if let Some(key) = key {
                self.keys.insert(key.to_vec(), new.id);
                self.jobs.insert(new.id, job.clone());
            }
            answers.push(Enqueued::Created(job));
            places.push(index);
        }
        Ok((answers, places))
    }
}
