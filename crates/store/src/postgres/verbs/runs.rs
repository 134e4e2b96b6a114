//! Heartbeats and the ends of runs.

use super::super::batcher::Weigh;
use super::super::core::{ACTIVE_FIRST, Core, Locked, Wanted};
use super::super::db_error::DbError;
use super::super::read;
use super::super::run::Messages;
use super::super::settling::{Settling, Written};
use super::super::stored_row::{Changed, StoredRow};
use crate::rules;
use crate::{Job, JobId, LeaseRef, Refusal, Settled, Settlement, State, StoreError, Transition};
use redrive_policy::{Moment, Span};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
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

pub(in crate::postgres) type Answers = Vec<Result<RunAnswer, Refusal>>;

/// What became of one run.
pub(in crate::postgres) enum RunAnswer {
    /// Its lease lasts longer.
    Extended(Job),
    /// It was reported as ended.
    Settled(Settled),
}

impl RunAnswer {
    pub(in crate::postgres) fn into_job(self) -> Job {
        match self {
            Self::Extended(job) => job,
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
            Self::Extended(job) => Settled::Repeated(job),
            Self::Settled(settled) => settled,
        }
    }
}

impl Changed for RunAnswer {
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

    fn apply(self, stored: &mut StoredRow) -> Result<RunAnswer, Refusal> {
        stored.change(|job| match self {
            Self::Alive(lease_ref, span, now) => {
                rules::extend(job, &lease_ref.token, span, now).map(RunAnswer::Extended)
            }
            Self::Ended(settlement, now) => rules::settle(job, settlement, now).map(RunAnswer::Settled),
        })
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
) -> Result<Vec<Result<Result<RunAnswer, Refusal>, StoreError>>, DbError> {
    let ids: BTreeSet<JobId> = run_call.iter().map(|word| word.id()).collect();
    let answers = short(core, run_call, callers, &ids).await?;
    let open: Vec<(usize, Word<'_>)> =
        run_call.iter().copied().enumerate().filter(|(place, _)| !answers.contains_key(place)).collect();
    let mut answers: BTreeMap<usize, _> = answers.into_iter().map(|(place, answer)| (place, Ok(answer))).collect();
    if !open.is_empty() {
        answers.extend(core.repeat(|| long(core, &open)).await?);
    }
    Ok(answers.into_values().collect())
}

/// The answers to words by their places; an error where a newer version wrote the job.
type Placed = Vec<(usize, Result<Result<RunAnswer, Refusal>, StoreError>)>;

/// Reads the jobs under a lock, and writes what becomes of them.
async fn long(core: &Core, run_call: &[(usize, Word<'_>)]) -> Result<Placed, DbError> {
    let ids: BTreeSet<JobId> = run_call.iter().map(|(_, word)| word.id()).collect();
    let ids: Vec<JobId> = ids.into_iter().collect();
    let mut session = core.session().await?;
    let mut locked = core.lock(&mut session, &ids, ACTIVE_FIRST, Wanted::Unended).await?;
    let mut answer = |word: Word<'_>| match locked.newer.get(&word.id()) {
        Some(why) => Err(StoreError::from(read::newer(word.id(), why))),
        None => Ok(locked.job(word.id()).and_then(|stored| word.apply(stored))),
    };
    let answers: Placed = run_call.iter().map(|(place, word)| (*place, answer(*word))).collect();
    let Locked { jobs, blocks, .. } = locked;
    let settled = answers.iter().filter_map(|(_, answer)| answer.as_ref().ok()?.as_ref().ok()?.transition());
    let messages = Messages::of(settled);
    let written = core.commit(&mut session, &jobs.values().collect::<Vec<_>>(), &blocks, &messages).await?;
    core.lease_cache
        .keep(active(jobs, &written), blocks.into_iter().filter(|(no, _)| !written.claims.contains_key(no)));
    Ok(answers)
}

/// The jobs that are still active, at the places where they are now.
fn active(jobs: HashMap<JobId, StoredRow>, written: &Written) -> impl Iterator<Item = StoredRow> {
    jobs.into_values().filter(|stored| stored.job.state == State::Active).map(|mut stored| {
        stored.place = written.extended.get(&stored.job.id).copied().unwrap_or(stored.place);
        stored
    })
}

/// Writes what becomes of runs in the lease cache, each claim on the condition that no other node has written it
/// meanwhile. Whatever is refused has to be looked at again: the job may have moved on.
async fn short(
    core: &Core,
    run_call: &[Word<'_>],
    callers: &[usize],
    ids: &BTreeSet<JobId>,
) -> Result<BTreeMap<usize, Result<RunAnswer, Refusal>>, DbError> {
    let mut answers = BTreeMap::new();
    let mut taken = core.lease_cache.take(ids).await;
    let mut jobs = std::mem::take(&mut taken.jobs);
    for (place, word) in run_call.iter().enumerate() {
        if let Some(stored) = jobs.get_mut(&word.id()) {
            match word.apply(stored) {
                Ok(answer) => drop(answers.insert(place, Ok(answer))),
                Err(_) => drop(jobs.remove(&word.id())),
            }
        }
    }
    // Runs learn of the jobs of one call in its order: where one of them goes the long way, those of runs do too.
    let late: HashSet<usize> = callers
        .iter()
        .enumerate()
        .filter(|(place, _)| !answers.contains_key(place))
        .map(|(_, caller)| *caller)
        .collect();
    for (word, caller) in run_call.iter().zip(callers) {
        if late.contains(caller) && jobs.get(&word.id()).is_some_and(|stored| stored.job.parent.is_some()) {
            jobs.remove(&word.id());
        }
    }
    let mut sound: Vec<&StoredRow> = jobs.values().collect();
    sound.sort_by_key(|stored| stored.job.id);
    let mut written = Written::default();
    // Of jobs that are refused after all, no claim is written, and no message.
    let messages = Messages::of(answers.values().filter_map(|answer| answer.as_ref().ok()?.transition()));
    if let Some(settling) = Settling::of(&sound, &taken.blocks, &messages, &|name| core.catalogue.queue(name))? {
        match core.session().await?.write(&settling.statement).await {
            Ok(rows) => written = settling.claims.written(&rows)?,
            // Rolled back: the long way locks in order.
            Err(DbError::Collided(_) | DbError::Taken) => {}
            Err(db_error) => return Err(db_error),
        }
    }
    jobs.retain(|_, stored| stored.changed && written.has(stored.place));
    core.vacuum.wrote(jobs.len());
    core.tell(jobs.values().map(|stored| &stored.job));
    answers.retain(|place, _| jobs.contains_key(&run_call[*place].id()));
    taken.wrote(&written);
    core.lease_cache.keep(active(jobs, &written), []);
    Ok(answers)
}
