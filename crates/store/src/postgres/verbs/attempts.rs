//! Heartbeats and the ends of attempts.

use super::super::batcher::Weigh;
use super::super::block::Blocks;
use super::super::core::{ACTIVE_FIRST, Core, Locked, Wanted};
use super::super::db_error::DbError;
use super::super::read;
use super::super::run::Messages;
use super::super::settling::{Settling, Written};
use super::super::stored_row::{Changed, StoredRow};
use crate::rules;
use crate::{Job, JobId, LeaseRef, Refusal, Settled, Settlement, State, StoreError, Transition};
use redrive_policy::{Moment, Span};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// What workers say about the runs that they hold, and when.
pub(in crate::postgres) struct Call {
    pub(in crate::postgres) run_call: RunCall,
    pub(in crate::postgres) now: Moment,
}

pub(in crate::postgres) enum RunCall {
    Alive(Vec<LeaseRef>, Option<Span>),
    Ended(Vec<Settlement>),
}

impl Weigh for Call {
    fn jobs(&self) -> usize {
        match &self.run_call {
            RunCall::Alive(lease_refs, _) => lease_refs.len(),
            RunCall::Ended(settlements) => settlements.len(),
        }
    }
}

pub(in crate::postgres) type Answers = Vec<Result<AttemptAnswer, Refusal>>;

/// What became of one run.
pub(in crate::postgres) enum AttemptAnswer {
    /// Its lease lasts longer.
    Extended(Box<Job>),
    /// It was reported as ended.
    Settled(Box<Settled>),
}

impl AttemptAnswer {
    pub(in crate::postgres) fn into_job(self) -> Job {
        match self {
            Self::Extended(job) => *job,
            Self::Settled(settled) => settled.into_job(),
        }
    }

    /// What happened to the job, where its run ended.
    fn transition(&self) -> Option<&Transition> {
        match self {
            Self::Extended(_) => None,
            Self::Settled(settled) => settled.transition(),
        }
    }

    /// The answer to the report of a run's end; an extension ended nothing.
    pub(in crate::postgres) fn into_settled(self) -> Settled {
        match self {
            Self::Extended(job) => Settled::Repeated(*job),
            Self::Settled(settled) => *settled,
        }
    }
}

impl Changed for AttemptAnswer {
    fn job(&self) -> &Job {
        match self {
            Self::Extended(job) => job,
            Self::Settled(settled) => settled.job(),
        }
    }

    fn changed(&self) -> Option<&Job> {
        match self {
            Self::Extended(job) => Some(job),
            Self::Settled(settled) => settled.transition().map(|transition| &transition.job),
        }
    }
}

/// One word about one run.
#[derive(Clone, Copy)]
enum Word<'c> {
    Alive(&'c LeaseRef, Option<Span>, Moment),
    Ended(&'c Settlement, Moment),
}

impl Word<'_> {
    fn id(self) -> JobId {
        match self {
            Self::Alive(lease_ref, ..) => lease_ref.id,
            Self::Ended(settlement, _) => settlement.lease_ref.id,
        }
    }

    fn apply(self, job: Job) -> Result<AttemptAnswer, Refusal> {
        match self {
            Self::Alive(lease_ref, span, now) => {
                rules::extend(job, &lease_ref.token, span, now).map(|job| AttemptAnswer::Extended(Box::new(job)))
            }
            Self::Ended(settlement, now) => {
                rules::settle(job, settlement, now).map(|settled| AttemptAnswer::Settled(Box::new(settled)))
            }
        }
    }
}

/// Takes the words of several callers together, one after the other.
pub(in crate::postgres) async fn batch(core: Arc<Core>, calls: Vec<Call>) -> Vec<Result<Answers, StoreError>> {
    let (mut run_call, mut callers) = (Vec::new(), Vec::new());
    let mut lengths = Vec::with_capacity(calls.len());
    for (caller, Call { run_call: said, now }) in calls.iter().enumerate() {
        let before = run_call.len();
        match said {
            RunCall::Alive(lease_refs, span) => {
                run_call.extend(lease_refs.iter().map(|lease_ref| Word::Alive(lease_ref, *span, *now)))
            }
            RunCall::Ended(settlements) => run_call.extend(settlements.iter().map(|each| Word::Ended(each, *now))),
        }
        lengths.push(run_call.len() - before);
        callers.resize(run_call.len(), caller);
    }
    match heard(&core, &run_call, &callers).await {
        Ok(answers) => {
            let mut answers = answers.into_iter();
            lengths.into_iter().map(|length| answers.by_ref().take(length).collect()).collect()
        }
        Err(db_error) => {
            let error = StoreError::from(db_error);
            calls.iter().map(|_| Err(error.clone())).collect()
        }
    }
}

/// The answers to all words. Each concerns one job and no other, so that jobs which this node remembers go
/// the short way, and all others, and those that have changed meanwhile, the long one.
async fn heard(
    core: &Core,
    run_call: &[Word<'_>],
    callers: &[usize],
) -> Result<Vec<Result<Result<AttemptAnswer, Refusal>, StoreError>>, DbError> {
    let mut ids: Vec<JobId> = run_call.iter().map(|word| word.id()).collect();
    ids.sort_unstable();
    ids.dedup();
    let answers = short(core, run_call, callers, &ids).await?;
    let mut answers: Vec<_> = answers.into_iter().map(|answer| answer.map(|answer| Ok(Ok(answer)))).collect();
    let is_open = |(place, _): &(usize, Word<'_>)| answers[*place].is_none();
    let open: Vec<(usize, Word<'_>)> = run_call.iter().copied().enumerate().filter(is_open).collect();
    if !open.is_empty() {
        for (place, answer) in core.repeat(|| long(core, &open)).await? {
            answers[place] = Some(answer);
        }
    }
    Ok(answers.into_iter().flatten().collect())
}

/// The answers to words by their places; an error where a newer version wrote the job.
type Placed = Vec<(usize, Result<Result<AttemptAnswer, Refusal>, StoreError>)>;

/// Reads the jobs under a lock, and writes what becomes of them.
async fn long(core: &Core, run_call: &[(usize, Word<'_>)]) -> Result<Placed, DbError> {
    let ids: BTreeSet<JobId> = run_call.iter().map(|(_, word)| word.id()).collect();
    let ids: Vec<JobId> = ids.into_iter().collect();
    let mut session = core.session().await?;
    let mut locked = core.lock(&mut session, &ids, ACTIVE_FIRST, Wanted::Unended).await?;
    let mut answer = |word: Word<'_>| match locked.newer.get(&word.id()) {
        Some(why) => Err(StoreError::from(read::newer(word.id(), why))),
        None => Ok(locked.job(word.id()).and_then(|stored| stored.change(|job| word.apply(job)))),
    };
    let answers: Placed = run_call.iter().map(|(place, word)| (*place, answer(*word))).collect();
    let Locked { jobs, blocks, .. } = locked;
    let settled = answers.iter().filter_map(|(_, answer)| answer.as_ref().ok()?.as_ref().ok()?.transition());
    let messages = core.messages(settled);
    let written = core.commit(&mut session, &jobs.values().collect::<Vec<_>>(), &blocks, &messages).await?;
    core.lease_cache.keep(
        active(jobs.into_values(), &written),
        blocks.into_iter().filter(|(no, _)| !written.claims.contains_key(no)),
    );
    Ok(answers)
}

/// The jobs that are still active, at the places where they are now.
fn active(jobs: impl IntoIterator<Item = StoredRow>, written: &Written) -> impl Iterator<Item = StoredRow> {
    jobs.into_iter().filter(|stored| stored.job.state == State::Active).map(|mut stored| {
        stored.place = written.extended.get(&stored.job.id).copied().unwrap_or(stored.place);
        stored
    })
}

/// Writes what becomes of runs in the lease cache, each claim on the condition that no other node has written it
/// meanwhile. Whatever is refused has to be looked at again: the job may have moved on.
///
/// The answers are at the places of their words; none where the word goes the long way. The ids are in order.
async fn short(
    core: &Core,
    run_call: &[Word<'_>],
    callers: &[usize],
    ids: &[JobId],
) -> Result<Vec<Option<AttemptAnswer>>, DbError> {
    let mut answers: Vec<Option<AttemptAnswer>> = run_call.iter().map(|_| None).collect();
    let mut taken = core.lease_cache.take(ids).await;
    let jobs = std::mem::take(&mut taken.jobs);
    let mut jobs: Vec<(JobId, Option<StoredRow>)> =
        jobs.into_iter().map(|stored| (stored.job.id, Some(stored))).collect();
    for (answer, word) in answers.iter_mut().zip(run_call) {
        let Ok(at) = jobs.binary_search_by_key(&word.id(), |(id, _)| *id) else { continue };
        let slot = &mut jobs[at].1;
        let applied = slot.take().and_then(|stored| stored.changed_by(|job| word.apply(job)).ok());
        if let Some((accepted, stored)) = applied {
            (*answer, *slot) = (Some(accepted), Some(stored));
        }
    }
    // Runs learn of the jobs of one call in its order: where one of them goes the long way, those of runs do too.
    let is_told = !core.listeners.all().is_empty();
    let late: HashSet<usize> =
        answers.iter().zip(callers).filter(|(answer, _)| answer.is_none()).map(|(_, caller)| *caller).collect();
    for (word, _) in run_call.iter().zip(callers).filter(|(_, caller)| late.contains(caller)) {
        let Ok(at) = jobs.binary_search_by_key(&word.id(), |(id, _)| *id) else { continue };
        jobs[at].1.take_if(|stored| is_told || stored.job.parent.is_some());
    }
    // Of jobs that are refused after all, no claim is written, and no message.
    let messages = core.messages(answers.iter().flatten().filter_map(AttemptAnswer::transition));
    let mut jobs: Vec<StoredRow> = jobs.into_iter().filter_map(|(_, stored)| stored).collect();
    let written = write(core, &jobs, &taken.blocks, &messages).await?;
    jobs.retain(|stored| stored.changed && written.has(stored.place));
    core.vacuum.wrote(jobs.len());
    core.tell(jobs.iter().map(|stored| &*stored.job));
    for (answer, word) in answers.iter_mut().zip(run_call) {
        if jobs.binary_search_by_key(&word.id(), |stored| stored.job.id).is_err() {
            *answer = None;
        }
    }
    taken.wrote(&written);
    core.lease_cache.keep(active(jobs, &written), []);
    Ok(answers)
}

/// Writes what has become of these jobs, where their claims are as they are here.
async fn write(core: &Core, jobs: &[StoredRow], blocks: &Blocks, messages: &Messages) -> Result<Written, DbError> {
    let sound: Vec<&StoredRow> = jobs.iter().collect();
    let settling = Settling::of(&sound, blocks, messages, &core.catalogue.queue_numbers())?;
    let Some(settling) = settling else { return Ok(Written::default()) };
    match core.session().await?.write(&settling.statement).await {
        Ok(rows) => {
            core.tell_of(messages);
            settling.claims.written(&rows)
        }
        // Rolled back: the long way locks in order.
        Err(DbError::Collided(_) | DbError::Taken) => Ok(Written::default()),
        Err(db_error) => Err(db_error),
    }
}
