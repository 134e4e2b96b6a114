//! Unique jobs that replace others, those of runs, and races for one key.

use super::harness::{Harness, START, lease_of};
use super::unique::{in_state, key, unique};
use super::{CaseResult, Violation, ensure, same};
use crate::{
    AttemptOutcome, ChildEnd, Duplicate, EnqueueRefusal, Enqueued, EventKind, Job, MOST_REPLACED, MessageBody, NewJob,
    OnConflict, Refusal, RunRefusal, RunStep, Start, State, States, Unique,
};
use redrive_policy::Span;

fn replacing(unique: &mut Unique) {
    unique.on_conflict = OnConflict::Replace;
}

async fn replaced_by(harness: &Harness<'_>, new: NewJob) -> Result<(Job, Vec<crate::Transition>), Violation> {
    match <[Enqueued; 1]>::try_from(harness.enqueue(vec![new]).await??) {
        Ok([Enqueued::Replaced { job, replaced }]) => Ok((job, replaced)),
        other => Err(Violation::new(format!("a job was to replace another, and the answer is {other:?}"))),
    }
}

pub(super) async fn unique_replaces_a_job_in_any_state_that_has_not_ended(harness: &mut Harness<'_>) -> CaseResult {
    for (number, state) in (1..).zip(State::ALL).filter(|(_, state)| !state.is_terminal()) {
        let held = in_state(harness, number, state).await?;
        let new = unique(harness, number, replacing);
        let (job, replaced) = replaced_by(harness, new).await?;
        same!(replaced.len(), 1, "how many jobs were replaced");
        let transition = &replaced[0];
        let event = (transition.event, transition.from, transition.lease.clone());
        same!(
            event,
            (EventKind::Cancelled, Some(state), held.lease.clone()),
            "what happened to a job that was {state}"
        );
        same!(harness.get(held.id).await?, transition.job, "the job that was replaced");
        same!(
            (transition.job.state, transition.job.times.finished),
            (State::Cancelled, Some(harness.now())),
            "its end"
        );
        same!((harness.get(job.id).await?, job.state), (job.clone(), State::Available), "the job in its place");
        if state == State::Active {
            let late = harness.settle(lease_of(&held)?, AttemptOutcome::Done(None)).await?;
            same!(late, Err(Refusal::StaleLease), "the report of a worker whose job was replaced");
        }
    }
    Ok(())
}

pub(super) async fn unique_does_not_replace_what_has_ended(harness: &mut Harness<'_>) -> CaseResult {
    let ended = in_state(harness, 1, State::Completed).await?;
    let young = unique(harness, 1, |_| {});
    let young = harness.enqueue_new(young).await?;
    let new = unique(harness, 1, |unique| {
        replacing(unique);
        unique.states = States::from_bits(u8::MAX);
    });
    let duplicate = Duplicate { id: ended.id, state: State::Completed, key: key(1), irreplaceable: true };
    let refused = harness.enqueue(vec![new]).await?;
    same!(refused, Err(EnqueueRefusal::Duplicate { index: 0, duplicate }), "a job that is to replace what has ended");
    same!(harness.get(young.id).await?, young, "the other one, which could be replaced");
    Ok(())
}

pub(super) async fn unique_counts_what_an_earlier_job_of_the_batch_has_replaced(
    harness: &mut Harness<'_>,
) -> CaseResult {
    let held = unique(harness, 1, |_| {});
    let held = harness.enqueue_new(held).await?;
    let cancelled = unique(harness, 1, |unique| unique.states = States::from_iter([State::Cancelled]));
    let batch = vec![unique(harness, 1, replacing), cancelled];
    let duplicate = Duplicate { id: held.id, state: State::Cancelled, key: key(1), irreplaceable: false };
    let refused = harness.enqueue(batch).await?;
    same!(refused, Err(EnqueueRefusal::Duplicate { index: 1, duplicate }), "a duplicate of what was just replaced");
    same!(harness.get(held.id).await?, held, "the job after the refusal");
    Ok(())
}

pub(super) async fn unique_replaces_all_of_which_it_is_a_duplicate(harness: &mut Harness<'_>) -> CaseResult {
    let unseen = |unique: &mut Unique| unique.states = States::from_iter([State::Cancelled]);
    let mut batch: Vec<NewJob> = (0..3).map(|_| unique(harness, 1, unseen)).collect();
    let mut ids: Vec<_> = batch.iter().map(|new| new.id).collect();
    harness.enqueue(batch).await??;
    let new = unique(harness, 1, replacing);
    let (_, replaced) = replaced_by(harness, new).await?;
    let names: Vec<_> = replaced.iter().map(|transition| transition.job.id).collect();
    same!(names, ids, "the jobs that were replaced, in the order of their creation");
    // One more than a job replaces, with the one that has replaced the others.
    batch = (0..MOST_REPLACED).map(|_| unique(harness, 1, |unique| unique.states = States::from_bits(0))).collect();
    ids = batch.iter().map(|new| new.id).collect();
    harness.enqueue(batch).await??;
    let new = unique(harness, 1, replacing);
    let refused = harness.enqueue(vec![new]).await?;
    let irreplaceable = match &refused {
        Err(EnqueueRefusal::Duplicate { duplicate, .. }) => duplicate.irreplaceable,
        _ => false,
    };
    ensure!(irreplaceable, "a job that would replace too many is answered by {refused:?}");
    same!(harness.get(ids[0]).await?.state, State::Available, "one of them");
    Ok(())
}

pub(super) async fn unique_keeps_the_schedule_of_the_job_that_it_replaces(harness: &mut Harness<'_>) -> CaseResult {
    let keeping = |unique: &mut Unique| unique.on_conflict = OnConflict::ReplaceExceptSchedule;
    let (due, later) = (harness.later(60_000), harness.later(90_000));
    let held = NewJob { start: Start::Scheduled(due), ..unique(harness, 1, |_| {}) };
    harness.enqueue_new(held).await?;
    let new = NewJob { start: Start::Scheduled(later), ..unique(harness, 1, keeping) };
    let (job, _) = replaced_by(harness, new).await?;
    let schedule = |job: &Job| job.unique.as_ref().and_then(|unique| unique.schedule);
    same!((job.state, job.due, schedule(&job)), (State::Scheduled, Some(due), Some(due)), "the job in its place");
    // A job that could run at once waits too, and the time is passed on.
    let new = unique(harness, 1, keeping);
    let (job, _) = replaced_by(harness, new).await?;
    same!((job.state, job.due, schedule(&job)), (State::Scheduled, Some(due), Some(due)), "a job without a time");
    same!(harness.get(job.id).await?, job, "the same, read back");
    // Where the other is not scheduled, there is nothing to keep.
    harness.advance_to(due);
    harness.promote(9).await?;
    let new = NewJob { start: Start::Scheduled(later), ..unique(harness, 1, keeping) };
    let (job, _) = replaced_by(harness, new).await?;
    same!((job.state, job.due, schedule(&job)), (State::Scheduled, Some(later), None), "after a job that could run");
    // What was due before it was replaced is due at once.
    harness.advance_to(later);
    let new = NewJob { start: Start::Pending, ..unique(harness, 1, keeping) };
    let (job, _) = replaced_by(harness, new).await?;
    same!((job.state, job.due, schedule(&job)), (State::Available, None, Some(later)), "after a job that was due");
    Ok(())
}

pub(super) async fn unique_tells_the_run_of_a_job_that_is_replaced(harness: &mut Harness<'_>) -> CaseResult {
    let own = unique(harness, 1, |_| {});
    let (run, job) = harness.run_with_this_job(own).await?;
    let new = unique(harness, 1, replacing);
    replaced_by(harness, new).await?;
    let cancelled =
        MessageBody::JobEnded { child: 1, id: job.id, generation: 0, end: ChildEnd::Cancelled { last_failure: None } };
    same!(harness.bodies(run.id).await?, [cancelled], "what its run learns");
    Ok(())
}

pub(super) async fn unique_refuses_the_step_of_a_run_with_a_duplicate(harness: &mut Harness<'_>) -> CaseResult {
    let held = unique(harness, 1, |_| {});
    let held = harness.enqueue_new(held).await?;
    let run = harness.new_started().await?;
    let before = (harness.store_view().await?, harness.runs_view().await?);
    for on_conflict in [OnConflict::Reject, OnConflict::Ignore] {
        let jobs = vec![(1, harness.job()), (2, unique(harness, 1, |unique| unique.on_conflict = on_conflict))];
        let duplicate = Duplicate { id: held.id, state: State::Available, key: key(1), irreplaceable: false };
        let refused = harness.step(RunStep { jobs, ..RunStep::of(&run) }).await?;
        same!(refused.map(drop), Err(RunRefusal::Duplicate(2, duplicate)), "a step with a duplicate");
        same!((harness.store_view().await?, harness.runs_view().await?), before, "the store after the refusal");
    }
    // One that is there already is left as it is.
    harness.cancel(held.id).await??;
    let new = unique(harness, 1, |_| {});
    let run = harness.stepped(RunStep { jobs: vec![(1, new.clone())], ..RunStep::of(&run) }).await?.run;
    harness.stepped(RunStep { jobs: vec![(1, new)], ..RunStep::of(&run) }).await?;
    Ok(())
}

pub(super) async fn unique_jobs_of_runs_replace_others(harness: &mut Harness<'_>) -> CaseResult {
    let own = unique(harness, 1, |_| {});
    let (first, held) = harness.run_with_this_job(own).await?;
    let held = harness.claim_next(held.id).await?;
    let second = harness.waiting_run().await?;
    let jobs = vec![(4, unique(harness, 1, replacing)), (5, unique(harness, 1, replacing))];
    let ids = [jobs[0].1.id, jobs[1].1.id];
    let advanced = harness.stepped(RunStep { jobs, ..RunStep::of(&second) }).await?;
    let happened: Vec<_> = advanced.transitions.iter().map(|each| (each.job.id, each.event)).collect();
    let expected = [
        (held.id, EventKind::Cancelled),
        (ids[0], EventKind::Enqueued),
        (ids[0], EventKind::Cancelled),
        (ids[1], EventKind::Enqueued),
    ];
    same!(happened, expected, "what happened to jobs");
    let mut pending = vec![first.id, second.id];
    pending.sort_unstable();
    same!(advanced.pending, pending, "the runs that have something to do");
    let states = [held.id, ids[0], ids[1]].map(|id| harness.get(id));
    let [held, one, two] = states;
    let states = [held.await?.state, one.await?.state, two.await?.state];
    same!(states, [State::Cancelled, State::Cancelled, State::Available], "the jobs afterwards");
    same!(harness.bodies(first.id).await?.len(), 1, "how many messages the first run has");
    same!(harness.bodies(second.id).await?.len(), 1, "how many messages the second run has");
    Ok(())
}

pub(super) async fn race_of_one_unique_key_stores_one_job(harness: &mut Harness<'_>) -> CaseResult {
    for number in 1..20 {
        let jobs: Vec<NewJob> = (0..4).map(|_| unique(harness, number, |_| {})).collect();
        let answers = harness.together(4, |index, store| store.enqueue(vec![jobs[index].clone()], START))?;
        let won: Vec<&Enqueued> = answers.iter().flatten().flatten().collect();
        same!((answers.len(), won.len()), (4, 1), "how many callers, and how many jobs were stored");
        let winner = won[0].job();
        let lost = answers.iter().filter_map(|answer| answer.as_ref().err());
        let named = lost.filter(
            |refusal| matches!(refusal, EnqueueRefusal::Duplicate { duplicate, .. } if duplicate.id == winner.id),
        );
        same!(named.count(), 3, "how many callers were told of the winner");
    }
    Ok(())
}

pub(super) async fn race_of_replacements_leaves_one_job(harness: &mut Harness<'_>) -> CaseResult {
    for number in 1..20 {
        let jobs: Vec<NewJob> = (0..4).map(|_| unique(harness, number, replacing)).collect();
        let answers = harness.together(4, |index, store| store.enqueue(vec![jobs[index].clone()], START))?;
        let mut left = Vec::new();
        for answer in answers {
            for enqueued in answer? {
                left.push(harness.get(enqueued.job().id).await?.state);
            }
        }
        left.sort_unstable();
        let expected = [State::Available, State::Cancelled, State::Cancelled, State::Cancelled];
        same!(left, expected, "the jobs of four callers that replaced each other");
    }
    same!(harness.store().prune_queues(Span::ZERO, START).await?, Vec::<std::sync::Arc<str>>::new(), "empty queues");
    Ok(())
}

pub(super) async fn race_of_a_redrive_and_a_new_job_has_one_winner(harness: &mut Harness<'_>) -> CaseResult {
    for number in 1..20 {
        let ended = in_state(harness, number, State::Cancelled).await?;
        let new = unique(harness, number, |_| {});
        let won = harness.together(2, |index, store| -> crate::StoreFuture<'_, bool> {
            let (new, id) = (new.clone(), ended.id);
            Box::pin(async move {
                Ok(match index {
                    0 => store.enqueue(vec![new], START).await?.is_ok(),
                    _ => store.redrive(id, crate::Redrive::default(), START).await?.is_ok(),
                })
            })
        })?;
        same!(won.iter().filter(|won| **won).count(), 1, "how many of a redrive and a new job won");
    }
    Ok(())
}
