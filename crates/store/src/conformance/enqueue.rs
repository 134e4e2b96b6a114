//! Enqueueing jobs: all or none, ids and keys.

use super::harness::{Harness, START, ids};
use super::{CaseResult, Violation, ensure, same};
use crate::{EnqueueRefusal, Enqueued, Job, NewJob, Retention, Start, State, Times};
use redrive_policy::{History, Moment, Span};
use std::sync::Arc;

pub(super) async fn enqueue_returns_the_job_as_it_is_stored(harness: &mut Harness<'_>) -> CaseResult {
    let new = harness.job();
    let expected = Job {
        id: new.id,
        spec: Arc::clone(&new.spec),
        state: State::Available,
        attempt: 0,
        history: History::new(START),
        due: None,
        lease: None,
        leases: 0,
        generation: 0,
        releases: 0,
        dead: false,
        times: Times { created: START, available: Some(START), started: None, finished: None },
        last_delay: None,
        failures: Vec::new(),
        revisions: Vec::new(),
        result: None,
        settled: None,
        completed_by: None,
        parent: None,
        unique: None,
    };
    same!(harness.enqueue_new(new).await?, expected, "a new job");
    same!(harness.get(expected.id).await?, expected, "the same job, read back");
    Ok(())
}

pub(super) async fn enqueue_of_nothing_stores_nothing(harness: &mut Harness<'_>) -> CaseResult {
    same!(harness.enqueue(Vec::new()).await?, Ok(Vec::new()), "an empty batch");
    same!(harness.store_view().await?.1, Vec::new(), "the queues of an empty store");
    Ok(())
}

pub(super) async fn enqueue_scheduled_waits_for_its_time(harness: &mut Harness<'_>) -> CaseResult {
    let due = Moment::from_micros(START.micros() + 1);
    let new = harness.job();
    let job = harness.enqueue_new(NewJob { start: Start::Scheduled(due), ..new }).await?;
    same!((job.state, job.due, job.times.available), (State::Scheduled, Some(due), None), "a job of the future");
    same!(harness.claim(9).await?, Vec::new(), "what can be claimed before its time");
    same!(ids(&harness.promote(9).await?), Vec::new(), "what is promoted before its time");
    harness.advance_to(due);
    same!(ids(&harness.promote(9).await?), [job.id], "what is promoted at its time");
    let claimed = harness.claim_next(job.id).await?;
    same!((claimed.attempt, claimed.due, claimed.last_delay), (1, None, None), "its first run");
    Ok(())
}

pub(super) async fn enqueue_scheduled_for_now_or_earlier_is_available_at_once(harness: &mut Harness<'_>) -> CaseResult {
    for due in [START, Moment::from_micros(START.micros() - 1), Moment::ORIGIN] {
        let new = harness.job();
        let job = harness.enqueue_new(NewJob { start: Start::Scheduled(due), ..new }).await?;
        same!((job.state, job.due, job.times.available), (State::Available, None, Some(START)), "due at {due:?}");
    }
    same!(harness.claim(9).await?.len(), 3, "what can be claimed at once");
    Ok(())
}

pub(super) async fn enqueue_pending_waits_for_activation(harness: &mut Harness<'_>) -> CaseResult {
    let new = harness.job();
    let job = harness.enqueue_new(NewJob { start: Start::Pending, ..new }).await?;
    same!((job.state, job.due, job.times.available), (State::Pending, None, None), "a pending job");
    harness.advance(1_000_000_000);
    same!(harness.promote(9).await?, Vec::new(), "what time does to it");
    same!(harness.claim(9).await?, Vec::new(), "what can be claimed");
    Ok(())
}

pub(super) async fn enqueue_refuses_a_taken_id_and_stores_nothing_of_the_batch(
    harness: &mut Harness<'_>,
) -> CaseResult {
    let taken = harness.enqueue_one().await?.id;
    let before = harness.store_view().await?;
    let (mut first, second, third) =
        (harness.job_with(|spec| spec.queue = "other".into()), harness.job(), harness.job());
    first.idempotency_key = Some("k".into());
    let refused = harness.enqueue(vec![first.clone(), NewJob { id: taken, ..second }, third]).await?;
    same!(refused, Err(EnqueueRefusal::IdTaken { index: 1, id: taken }), "a batch with a taken id");
    same!(harness.store_view().await?, before, "the store after the refusal");
    let again = harness.enqueue(vec![first]).await??;
    ensure!(matches!(&again[..], [Enqueued::Created(_)]), "the refused batch left its key behind: {again:?}");
    Ok(())
}

pub(super) async fn enqueue_refuses_an_id_twice_in_one_batch(harness: &mut Harness<'_>) -> CaseResult {
    let (first, second) = (harness.job(), harness.job());
    let id = first.id;
    let refused = harness.enqueue(vec![first, NewJob { id, ..second }]).await?;
    same!(refused, Err(EnqueueRefusal::IdTaken { index: 1, id }), "a batch with one id twice");
    same!(harness.store_view().await?.0.total, Some(0), "how many jobs are stored");
    Ok(())
}

pub(super) async fn enqueue_stores_a_batch_in_the_order_given(harness: &mut Harness<'_>) -> CaseResult {
    let jobs: Vec<NewJob> = (0..5).map(|_| harness.job()).rev().collect();
    let names: Vec<_> = jobs.iter().map(|job| job.id).collect();
    let created: Vec<Job> = harness.enqueue(jobs).await??.into_iter().map(job_of).collect();
    same!(ids(&created), names, "the answers to a batch");
    Ok(())
}

pub(super) async fn enqueue_returns_the_job_of_a_known_key_unchanged(harness: &mut Harness<'_>) -> CaseResult {
    let first = keyed(harness, "k");
    harness.enqueue_new(first.clone()).await?;
    let claimed = harness.claim_next(first.id).await?;
    harness.advance(5);
    let second = NewJob { start: Start::Pending, ..keyed(harness, "k") };
    same!(harness.enqueue(vec![second.clone()]).await?, Ok(vec![Enqueued::Existing(claimed.clone())]), "a known key");
    same!(harness.get(first.id).await?, claimed, "the job of the key");
    same!(harness.store().get(second.id).await?, None, "the second job");
    Ok(())
}

pub(super) async fn enqueue_knows_a_key_for_as_long_as_its_job_is_stored(harness: &mut Harness<'_>) -> CaseResult {
    let job = keyed(harness, "k");
    harness.enqueue_new(job.clone()).await?;
    let done = harness.done(&harness.claim_next(job.id).await?).await?;
    let again = keyed(harness, "k");
    same!(harness.enqueue(vec![again]).await?, Ok(vec![Enqueued::Existing(done)]), "the key of a completed job");
    harness.redrive(job.id, crate::Redrive::default()).await??;
    let again = keyed(harness, "k");
    let redriven = harness.get(job.id).await?;
    same!(harness.enqueue(vec![again]).await?, Ok(vec![Enqueued::Existing(redriven)]), "the key of a redriven job");
    Ok(())
}

pub(super) async fn enqueue_knows_a_key_within_one_batch(harness: &mut Harness<'_>) -> CaseResult {
    let (first, other, second) = (keyed(harness, "k"), keyed(harness, "l"), keyed(harness, "k"));
    let answers = harness.enqueue(vec![first.clone(), other, second]).await??;
    let job = harness.get(first.id).await?;
    ensure!(
        matches!(
            &answers[..],
            [Enqueued::Created(a), Enqueued::Created(_), Enqueued::Existing(b)] if *a == job && *b == job
        ),
        "a batch with one key twice gives {answers:?}"
    );
    same!(harness.store_view().await?.0.total, Some(2), "how many jobs are stored");
    Ok(())
}

pub(super) async fn enqueue_checks_the_key_before_the_id(harness: &mut Harness<'_>) -> CaseResult {
    let job = keyed(harness, "k");
    let kept = harness.enqueue_new(job.clone()).await?;
    let twice = harness.enqueue(vec![job.clone(), job]).await?;
    same!(twice, Ok(vec![Enqueued::Existing(kept.clone()), Enqueued::Existing(kept)]), "a request sent again");
    Ok(())
}

pub(super) async fn enqueue_accepts_a_key_again_once_its_job_is_removed(harness: &mut Harness<'_>) -> CaseResult {
    let (removed, pruned) = (keyed(harness, "removed"), keyed(harness, "pruned"));
    for job in [removed.clone(), pruned.clone()] {
        harness.enqueue_new(job.clone()).await?;
        harness.cancel(job.id).await??;
    }
    harness.store().remove(removed.id).await??;
    let at_once = Retention { finished: Span::ZERO, dead: Span::ZERO };
    same!(harness.store().prune(at_once, 9, harness.now()).await?, 1, "how many jobs are pruned");
    // Other jobs have taken the ids meanwhile, and the keys do not lead to them.
    let others = [removed, pruned].map(|job| NewJob { idempotency_key: None, ..job });
    harness.enqueue(Vec::from(others)).await??;
    for key in ["removed", "pruned"] {
        let again = keyed(harness, key);
        harness
            .enqueue_new(again)
            .await
            .map_err(|violation| Violation::new(format!("the key of a {key} job: {violation}")))?;
    }
    Ok(())
}

pub(super) async fn enqueue_accepts_an_expired_job_that_is_never_claimed(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.enqueue_with(|spec| spec.expires = Some(START)).await?;
    same!(job.state, State::Available, "a job that has expired already");
    same!(harness.claim(9).await?, Vec::new(), "what can be claimed");
    same!(ids(&harness.promote(9).await?), [job.id], "what the next promotion moves");
    same!(harness.get(job.id).await?.state, State::Discarded, "where it moves it");
    Ok(())
}

fn keyed(harness: &mut Harness<'_>, key: &str) -> NewJob {
    NewJob { idempotency_key: Some(key.into()), ..harness.job() }
}

fn job_of(enqueued: Enqueued) -> Job {
    enqueued.into_job()
}
