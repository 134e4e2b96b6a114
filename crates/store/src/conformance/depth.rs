//! Bounds on the depth of queues: what is refused, what counts, and what is never refused.

use super::harness::{DELAY_MS, Harness, QUEUE, START};
use super::unique::unique;
use super::{CaseResult, Violation, same};
use crate::{EnqueueRefusal, Enqueued, NewJob, OnConflict, QueueFull, Redrive, RunStep, Start, State};
use std::sync::Arc;

/// A job that allows so many to wait in its queue.
fn bounded(harness: &mut Harness<'_>, bound: u64) -> NewJob {
    NewJob { depth: Some(bound), ..harness.job() }
}

fn bounded_in(harness: &mut Harness<'_>, queue: &str, bound: u64) -> NewJob {
    NewJob { depth: Some(bound), ..harness.job_with(|spec| spec.queue = queue.into()) }
}

fn full(index: usize, queue: &str, [depth, bound, jobs]: [u64; 3]) -> EnqueueRefusal {
    EnqueueRefusal::QueueFull { index, full: QueueFull { queue: queue.into(), depth, bound, jobs } }
}

pub(super) async fn depth_refuses_what_would_pass_the_bound(harness: &mut Harness<'_>) -> CaseResult {
    for _ in 0..2 {
        let new = bounded(harness, 2);
        harness.enqueue_new(new).await?;
    }
    let before = harness.store_view().await?;
    let new = bounded(harness, 2);
    same!(harness.enqueue(vec![new.clone()]).await?, Err(full(0, QUEUE, [2, 2, 1])), "a job too many");
    same!(harness.store_view().await?, before, "the store after the refusal");
    let other = bounded_in(harness, "other", 1);
    harness.enqueue_new(other).await?;
    let wider = bounded(harness, 3);
    harness.enqueue_new(wider).await?;
    harness.enqueue_one().await?;
    same!(harness.claim(2).await?.len(), 2, "what is claimed");
    same!(harness.enqueue(vec![new.clone()]).await?, Err(full(0, QUEUE, [2, 2, 1])), "while too many wait");
    same!(harness.claim(1).await?.len(), 1, "what is claimed");
    harness.enqueue_new(new).await?;
    Ok(())
}

pub(super) async fn depth_counts_the_jobs_that_wait(harness: &mut Harness<'_>) -> CaseResult {
    for state in State::ALL {
        harness.job_in(state).await?;
        let new = bounded_in(harness, state.name(), 1);
        let waits = [State::Scheduled, State::Pending, State::Available, State::Retryable].contains(&state);
        let answer = harness.enqueue(vec![new]).await?;
        let expected = waits.then(|| full(0, state.name(), [1, 1, 1]));
        same!(answer.err(), expected, "a queue with a job that is {state}");
    }
    for start in [Start::Available, Start::Pending, Start::Scheduled(harness.later(50))] {
        let new = NewJob { start, ..bounded_in(harness, "none", 0) };
        same!(harness.enqueue(vec![new]).await?, Err(full(0, "none", [0, 0, 1])), "a job that starts as {start:?}");
    }
    Ok(())
}

pub(super) async fn depth_refuses_a_batch_as_a_whole(harness: &mut Harness<'_>) -> CaseResult {
    let mut jobs: Vec<NewJob> = (0..3).map(|_| bounded(harness, 2)).collect();
    jobs[0].idempotency_key = Some("k".into());
    same!(harness.enqueue(jobs.clone()).await?, Err(full(0, QUEUE, [0, 2, 3])), "a batch too large");
    same!(harness.store_view().await?.0.total, Some(0), "how many jobs are stored");
    jobs.pop();
    let stored = harness.enqueue(jobs).await??;
    same!(stored.iter().filter(|answer| answer.is_new()).count(), 2, "how many of a batch that fits are new");
    let mut mixed = vec![bounded_in(harness, "other", 1), bounded(harness, 2), bounded_in(harness, "other", 1)];
    same!(harness.enqueue(mixed.clone()).await?, Err(full(0, "other", [0, 1, 2])), "the first queue without room");
    mixed.pop();
    same!(harness.enqueue(mixed).await?, Err(full(1, QUEUE, [2, 2, 1])), "the other queue without room");
    same!(harness.store_view().await?.0.total, Some(2), "how many jobs are stored");
    Ok(())
}

pub(super) async fn depth_is_what_each_job_allows(harness: &mut Harness<'_>) -> CaseResult {
    let batch = vec![bounded(harness, 5), harness.job(), bounded(harness, 1)];
    same!(harness.enqueue(batch).await?, Err(full(2, QUEUE, [0, 1, 3])), "a batch of which one job allows less");
    let batch = vec![bounded(harness, 2), harness.job()];
    harness.enqueue(batch).await??;
    Ok(())
}

pub(super) async fn depth_never_refuses_what_comes_back(harness: &mut Harness<'_>) -> CaseResult {
    let first = bounded(harness, 1);
    let id = first.id;
    harness.enqueue_new(first).await?;
    let claimed = harness.claim_next(id).await?;
    let second = bounded(harness, 1);
    harness.enqueue_new(second).await?;
    same!(harness.fail(&claimed).await?.state, State::Retryable, "a retry beyond the bound");
    let new = bounded(harness, 1);
    same!(harness.enqueue(vec![new.clone()]).await?, Err(full(0, QUEUE, [2, 1, 1])), "a queue deeper than allowed");
    harness.advance(DELAY_MS);
    same!(harness.promote(9).await?.len(), 1, "what is promoted in a full queue");
    let claimed = harness.claim(2).await?;
    harness.enqueue_new(new).await?;
    harness.release(&claimed[0], 0, 9).await??;
    harness.done(&claimed[1]).await?;
    harness.redrive(claimed[1].id, Redrive::default()).await??;
    let new = bounded(harness, 1);
    same!(harness.enqueue(vec![new]).await?, Err(full(0, QUEUE, [3, 1, 1])), "after a release and a redrive");
    Ok(())
}

pub(super) async fn depth_is_not_asked_for_jobs_of_runs(harness: &mut Harness<'_>) -> CaseResult {
    let run = harness.new_started().await?;
    let new = bounded(harness, 0);
    let id = new.id;
    harness.stepped(RunStep { jobs: vec![(1, new)], ..RunStep::of(&run) }).await?;
    same!(harness.get(id).await?.state, State::Available, "a job of a run");
    let new = bounded(harness, 1);
    same!(harness.enqueue(vec![new]).await?, Err(full(0, QUEUE, [1, 1, 1])), "a job beside one of a run");
    Ok(())
}

pub(super) async fn depth_is_checked_after_ids_and_keys(harness: &mut Harness<'_>) -> CaseResult {
    let keyed = NewJob { idempotency_key: Some("k".into()), ..bounded(harness, 2) };
    let kept = harness.enqueue_new(keyed).await?;
    let one = NewJob { depth: Some(2), ..unique(harness, 1, |_| {}) };
    let held = harness.enqueue_new(one).await?;
    let again = NewJob { idempotency_key: Some("k".into()), ..bounded(harness, 2) };
    same!(harness.enqueue(vec![again]).await?, Ok(vec![Enqueued::Existing(kept.clone())]), "a known key");
    let taken = NewJob { id: kept.id, ..bounded(harness, 2) };
    same!(harness.enqueue(vec![taken]).await?, Err(EnqueueRefusal::IdTaken { index: 0, id: kept.id }), "a taken id");
    let rejected = NewJob { depth: Some(2), ..unique(harness, 1, |_| {}) };
    let refused = harness.enqueue(vec![rejected]).await?;
    super::ensure!(matches!(refused, Err(EnqueueRefusal::Duplicate { index: 0, .. })), "a duplicate: {refused:?}");
    let ignored = NewJob { depth: Some(2), ..unique(harness, 1, |new| new.on_conflict = OnConflict::Ignore) };
    same!(harness.enqueue(vec![ignored]).await?, Ok(vec![Enqueued::Ignored(held)]), "an ignored duplicate");
    Ok(())
}

pub(super) async fn depth_counts_what_a_job_replaces(harness: &mut Harness<'_>) -> CaseResult {
    let replacing = |harness: &mut Harness<'_>, number: u8| {
        let new = unique(harness, number, |unique| unique.on_conflict = OnConflict::Replace);
        NewJob { depth: Some(1), ..new }
    };
    let first = replacing(harness, 1);
    harness.enqueue_new(first).await?;
    let second = replacing(harness, 1);
    let id = second.id;
    let answers = harness.enqueue(vec![second]).await??;
    super::ensure!(matches!(&answers[..], [Enqueued::Replaced { .. }]), "a full queue and a replacement: {answers:?}");
    let both = vec![replacing(harness, 1), replacing(harness, 1)];
    let answers = harness.enqueue(both).await??;
    same!(answers.len(), 2, "the answers to replacements of each other");
    let waiting = answers.last().map(|answer| answer.job().id).ok_or_else(|| Violation::new("no answer"))?;
    same!(harness.get(id).await?.state, State::Cancelled, "what was replaced");
    harness.claim_next(waiting).await?;
    let other = bounded(harness, 1);
    harness.enqueue_new(other).await?;
    // It is active, so that nothing that waits would leave.
    let third = replacing(harness, 1);
    same!(harness.enqueue(vec![third]).await?, Err(full(0, QUEUE, [1, 1, 1])), "the replacement of an active job");
    same!(harness.get(waiting).await?.state, State::Active, "the job that it would have replaced");
    Ok(())
}

pub(super) async fn depth_survives_a_restart(harness: &mut Harness<'_>) -> CaseResult {
    let jobs = (0..3).map(|_| bounded(harness, 3)).collect();
    harness.enqueue(jobs).await??;
    harness.restart();
    let new = bounded(harness, 3);
    same!(harness.enqueue(vec![new]).await?, Err(full(0, QUEUE, [3, 3, 1])), "a job after a restart");
    Ok(())
}

pub(super) async fn race_of_many_producers_fills_a_queue_exactly(harness: &mut Harness<'_>) -> CaseResult {
    for round in 0..10 {
        let queue: Arc<str> = format!("round-{round}").into();
        let jobs: Vec<Vec<NewJob>> =
            (0..9).map(|index| (0..=index % 2).map(|_| bounded_in(harness, &queue, 6)).collect()).collect();
        let answers = harness.together(9, |index, store| store.enqueue(jobs[index].clone(), START))?;
        let stored: usize = answers.iter().flatten().map(Vec::len).sum();
        let queues = harness.store().queues().await?;
        let depth = queues.iter().find(|found| found.name == queue).map_or(0, |found| found.count(State::Available));
        same!(depth, stored, "the depth, and what was acknowledged");
        super::ensure!(stored == 6 || stored == 5, "{stored} jobs are stored in a queue for six");
    }
    Ok(())
}
