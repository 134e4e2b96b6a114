//! What must be true of unique jobs: after every single step of the store, and of every answer.

use super::STRICT_KEYS;
use super::watch::Seen;
use redrive_policy::Moment;
use redrive_store::{EnqueueRefusal, Enqueued, Job, JobId, OnConflict, Refusal, State, Transition, Unique};
use std::collections::BTreeMap;
use std::sync::Arc;

fn policy(seen: &Seen, id: JobId) -> Option<Arc<Unique>> {
    seen.asked.get(&id).and_then(|asked| asked.unique.clone())
}

/// The stored jobs that count against a job with this policy: the first created first.
fn holders(seen: &Seen, unique: &Unique, now: Moment) -> Vec<JobId> {
    let counts = |job: &&Job| {
        policy(seen, job.id).is_some_and(|other| other.key == unique.key)
            && unique.states.contains(job.state)
            && unique.period.is_none_or(|period| job.times.created.after(period) > now)
    };
    let mut holders: Vec<(Moment, JobId)> =
        seen.jobs.values().filter(counts).map(|job| (job.times.created, job.id)).collect();
    holders.sort();
    holders.into_iter().map(|(_, id)| id).collect()
}

/// Where all jobs of a key demand to be the only one that has not ended, there is one at most.
pub(crate) fn at_any_moment(seen: &mut Seen) {
    let mut unended: BTreeMap<u8, Vec<JobId>> = BTreeMap::new();
    for job in seen.jobs.values().filter(|job| !job.state.is_terminal()) {
        if let Some(unique) = policy(seen, job.id).filter(|unique| unique.key.0[0] < STRICT_KEYS) {
            unended.entry(unique.key.0[0]).or_default().push(job.id);
        }
    }
    for (key, jobs) in unended.into_iter().filter(|(_, jobs)| jobs.len() > 1) {
        seen.wrong(format!("unique: {jobs:?} have the key {key} and have not ended"));
    }
}

/// Each answer follows from the policy of its job, and from what was stored before and by the jobs before it.
pub(crate) fn enqueued(seen: &mut Seen, ids: &[JobId], answer: &Result<Vec<Enqueued>, EnqueueRefusal>, now: Moment) {
    match answer {
        Err(EnqueueRefusal::Duplicate { index, duplicate }) => {
            // What the jobs before it would have done is not known: with one job the answer is exact.
            let Some(unique) = policy(seen, ids[*index]).filter(|_| ids.len() == 1) else { return };
            let holders = holders(seen, &unique, now);
            let ended = seen.jobs.get(&duplicate.id).is_some_and(|job| job.state.is_terminal());
            let refuses = match unique.on_conflict {
                OnConflict::Reject => holders.first() == Some(&duplicate.id),
                OnConflict::Ignore => false,
                OnConflict::Replace | OnConflict::ReplaceExceptSchedule => holders.contains(&duplicate.id) && ended,
            };
            if !refuses {
                seen.wrong(format!("unique: refused because of {duplicate:?}, where {holders:?} count: {unique:?}"));
            }
        }
        Err(_) => {}
        Ok(answers) => {
            for (id, answer) in ids.iter().zip(answers) {
                if let Some(unique) = policy(seen, *id) {
                    one(seen, *id, &unique, answer, now);
                }
                apply(seen, answer);
            }
        }
    }
}

fn one(seen: &mut Seen, id: JobId, unique: &Unique, answer: &Enqueued, now: Moment) {
    let holders = holders(seen, unique, now);
    let replaces = matches!(unique.on_conflict, OnConflict::Replace | OnConflict::ReplaceExceptSchedule);
    let fits = match answer {
        Enqueued::Created(_) => holders.is_empty(),
        Enqueued::Ignored(job) => unique.on_conflict == OnConflict::Ignore && holders.first() == Some(&job.id),
        Enqueued::Replaced { replaced, .. } => {
            let mut ids: Vec<JobId> = replaced.iter().map(|transition| transition.job.id).collect();
            let mut expected = holders.clone();
            ids.sort();
            expected.sort();
            replaces && !holders.is_empty() && ids == expected
        }
        Enqueued::Existing(_) => false,
    };
    if !fits {
        seen.wrong(format!("unique: {id} is {answer:?}, where {holders:?} count: {unique:?}"));
    }
    let scheduled = |id: &JobId| seen.jobs.get(id).filter(|job| job.state == State::Scheduled)?.due;
    let keeps = unique.on_conflict == OnConflict::ReplaceExceptSchedule;
    if let (Enqueued::Replaced { job, .. }, true, Some(due)) = (answer, keeps, holders.iter().find_map(scheduled))
        && due > now
        && job.due != Some(due)
    {
        seen.wrong(format!("unique: {id} took over {:?} and not {due:?}", job.due));
    }
}

/// What an answer says is stored, for the answers behind it.
fn apply(seen: &mut Seen, answer: &Enqueued) {
    match answer {
        Enqueued::Created(job) => drop(seen.jobs.insert(job.id, job.clone())),
        Enqueued::Replaced { job, replaced } => {
            let changed = replaced.iter().map(|transition| &transition.job).chain([job]);
            seen.jobs.extend(changed.map(|job| (job.id, job.clone())));
        }
        Enqueued::Ignored(_) | Enqueued::Existing(_) => {}
    }
}

/// A job is redriven where no other counts against it, and is refused otherwise.
pub(crate) fn redriven(seen: &mut Seen, id: JobId, answer: &Result<Transition, Refusal>, now: Moment) {
    let Some(unique) = policy(seen, id) else { return };
    let mut others = holders(seen, &unique, now);
    others.retain(|other| *other != id);
    let fits = match answer {
        Ok(_) => others.is_empty(),
        Err(Refusal::Duplicate(duplicate)) => others.first() == Some(&duplicate.id),
        Err(_) => true,
    };
    if !fits {
        seen.wrong(format!("redrive: of {id} is {answer:?}, where {others:?} count: {unique:?}"));
    }
}
