//! Handing jobs out: the order, and what a lease holds.

use super::harness::{Harness, LEASE_MS, QUEUE, SEED, START, WORKER, ids, token};
use super::{CaseResult, ensure, same};
use crate::{Claim, Job, Lease, LeaseToken, Missing, NewJob, Start, State};
use redrive_policy::Span;

pub(super) async fn claim_takes_queues_in_the_order_given(harness: &mut Harness<'_>) -> CaseResult {
    let mut added = Vec::new();
    for queue in ["a", "b", "c"] {
        // The urgent job of a later queue does not pass the others of an earlier one.
        let priority = if queue == "a" { 9 } else { 0 };
        let change = |spec: &mut crate::Spec| (spec.queue, spec.priority) = (queue.into(), priority);
        added.push(harness.enqueue_with(change).await?.id);
    }
    let claimed = harness.claim_with(harness.claim_request(&["c", "a", "b"], 2)).await?;
    same!(ids(&claimed), [added[2], added[0]], "two jobs of the queues c, a, b");
    let rest = harness.claim_with(harness.claim_request(&["c", "a", "b"], 2)).await?;
    same!(ids(&rest), [added[1]], "the rest of them");
    Ok(())
}

pub(super) async fn claim_takes_higher_priorities_first(harness: &mut Harness<'_>) -> CaseResult {
    let mut added = Vec::new();
    for priority in [0, -1, i32::MAX, 7, i32::MIN] {
        added.push((priority, harness.enqueue_with(|spec| spec.priority = priority).await?.id));
    }
    added.sort_by_key(|(priority, _)| std::cmp::Reverse(*priority));
    let expected: Vec<_> = added.into_iter().map(|(_, id)| id).collect();
    same!(ids(&harness.claim(9).await?), expected, "jobs of five priorities");
    Ok(())
}

pub(super) async fn claim_takes_first_what_became_available_first(harness: &mut Harness<'_>) -> CaseResult {
    let scheduled = harness.job();
    let due = harness.later(10);
    let oldest = harness.enqueue_new(NewJob { start: Start::Scheduled(due), ..scheduled }).await?;
    harness.advance(5);
    let second = harness.enqueue_one().await?;
    harness.advance(20);
    let third = harness.enqueue_one().await?;
    harness.advance(1);
    harness.promote(9).await?;
    same!(
        ids(&harness.claim(9).await?),
        [second.id, third.id, oldest.id],
        "the queue, by the time at which each job became available"
    );
    Ok(())
}

pub(super) async fn claim_takes_equal_times_by_id(harness: &mut Harness<'_>) -> CaseResult {
    let mut jobs: Vec<NewJob> = (0..6).map(|_| harness.job()).collect();
    let names: Vec<_> = jobs.iter().map(|job| job.id).collect();
    jobs.swap(0, 4);
    jobs.reverse();
    harness.enqueue(jobs).await??;
    same!(ids(&harness.claim(4).await?), names[..4], "the first four of one batch");
    same!(ids(&harness.claim(4).await?), names[4..], "the others");
    Ok(())
}

pub(super) async fn claim_returns_at_most_what_is_asked_and_each_job_once(harness: &mut Harness<'_>) -> CaseResult {
    let mut added = Vec::new();
    for _ in 0..5 {
        added.push(harness.enqueue_one().await?.id);
    }
    same!(harness.claim(0).await?, Vec::new(), "a claim of none");
    same!(ids(&harness.claim(2).await?), added[..2], "a claim of two");
    let twice = harness.claim_with(harness.claim_request(&[QUEUE, QUEUE], 9)).await?;
    same!(ids(&twice), added[2..], "a claim that names the queue twice");
    same!(harness.claim(9).await?, Vec::new(), "a claim on an empty queue");
    Ok(())
}

pub(super) async fn claim_ends_before_it_has_too_many_bytes(harness: &mut Harness<'_>) -> CaseResult {
    let mut names = Vec::new();
    for (queue, length) in [("a", 10), ("a", 10_000), ("a", 60_000), ("b", 10), ("b", 10_000), ("b", 30_000)] {
        let body = vec![b'x'; length];
        names.push(harness.enqueue_with(|spec| (spec.queue, spec.body) = (queue.into(), body.into())).await?.id);
    }
    let request = || Claim { bytes: 30_000, ..harness.claim_request(&["a", "b"], 9) };
    same!(ids(&harness.claim_with(request()).await?), names[..2], "what fits, and nothing in place of what does not");
    same!(harness.get(names[2]).await?.state, State::Available, "the job that did not fit");
    same!(ids(&harness.claim_with(request()).await?), names[2..3], "a job that is too large for any claim, alone");
    same!(ids(&harness.claim_with(request()).await?), names[3..5], "what fits of the next queue");
    let enough = Claim { bytes: 32_000, ..request() };
    same!(ids(&harness.claim_with(enough).await?), names[5..], "what is left");
    let none = Claim { bytes: 0, ..request() };
    let job = harness.enqueue_with(|spec| spec.queue = "b".into()).await?;
    same!(ids(&harness.claim_with(none).await?), [job.id], "one job, where no byte is asked for");
    Ok(())
}

pub(super) async fn claim_of_an_unknown_queue_returns_nothing_and_creates_none(
    harness: &mut Harness<'_>,
) -> CaseResult {
    same!(harness.claim_with(harness.claim_request(&["nowhere"], 9)).await?, Vec::new(), "a claim on an unknown queue");
    same!(harness.store().queues().await?, Vec::new(), "the queues after it");
    Ok(())
}

pub(super) async fn claim_passes_over_paused_queues(harness: &mut Harness<'_>) -> CaseResult {
    let here = harness.enqueue_one().await?;
    let there = harness.enqueue_with(|spec| spec.queue = "there".into()).await?;
    harness.store().pause(QUEUE.into(), true, Missing::Create, harness.now()).await?;
    same!(
        ids(&harness.claim_with(harness.claim_request(&[QUEUE, "there"], 9)).await?),
        [there.id],
        "with the first one paused"
    );
    harness.store().pause(QUEUE.into(), false, Missing::Create, harness.now()).await?;
    same!(ids(&harness.claim(9).await?), [here.id], "with the queue open again");
    Ok(())
}

pub(super) async fn claim_passes_over_what_has_expired(harness: &mut Harness<'_>) -> CaseResult {
    let expires = harness.later(10);
    let lost = harness.enqueue_with(|spec| (spec.expires, spec.priority) = (Some(expires), 5)).await?;
    let good = harness.enqueue_one().await?;
    harness.advance_to(expires);
    same!(ids(&harness.claim(9).await?), [good.id], "what can be claimed when one job expires");
    same!(harness.get(lost.id).await?.state, State::Available, "the other, until it is promoted out of the way");
    Ok(())
}

pub(super) async fn claim_takes_a_job_until_just_before_it_expires(harness: &mut Harness<'_>) -> CaseResult {
    let expires = harness.later(10);
    let job = harness.enqueue_with(|spec| spec.expires = Some(expires)).await?;
    harness.advance_to_just_before(expires);
    same!(ids(&harness.claim(9).await?), [job.id], "what can be claimed a microsecond before");
    harness.advance(1_000);
    same!(harness.promote(9).await?, Vec::new(), "what expiry does to a run that has started");
    Ok(())
}

pub(super) async fn claim_counts_the_run_and_writes_the_lease(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.enqueue_one().await?;
    harness.advance(3);
    let claimed = harness.claim_next(job.id).await?;
    let lease = Lease {
        token: LeaseToken::derive(SEED, job.id, 1),
        worker: WORKER.into(),
        alive: harness.now(),
        until: harness.later(LEASE_MS),
        span: Span::from_millis(LEASE_MS),
        deadline: None,
    };
    let mut expected = Job { state: State::Active, attempt: 1, leases: 1, lease: Some(lease), ..job };
    expected.times.started = Some(harness.now());
    same!(claimed, expected, "a job in the hands of a worker");
    same!(harness.get(claimed.id).await?, expected, "the same job, read back");
    Ok(())
}

pub(super) async fn claim_numbers_the_leases_of_a_job(harness: &mut Harness<'_>) -> CaseResult {
    let first = harness.claimed().await?;
    harness.release(&first, 0, 9).await??;
    let second = harness.claim_next(first.id).await?;
    let tokens = [token(&first)?, token(&second)?];
    let expected = [1, 2].map(|number| LeaseToken::derive(SEED, first.id, number));
    same!(tokens, expected, "the tokens of two leases of one job, claimed with the same bits");
    ensure!(tokens[0].nonce != tokens[1].nonce, "both leases have the nonce of {}", tokens[0]);
    Ok(())
}

pub(super) async fn claim_goes_by_the_lease_and_timeout_of_the_job_before_its_own(
    harness: &mut Harness<'_>,
) -> CaseResult {
    let silent = harness.enqueue_one().await?;
    let (lease, timeout) = (Span::saturating_ms(0.5), Span::from_millis(700));
    let said = harness.enqueue_with(|spec| (spec.lease, spec.timeout) = (Some(lease), Some(timeout))).await?;
    let request = Claim { timeout: Some(Span::from_millis(90)), ..harness.claim_request(&[QUEUE], 9) };
    let claimed = harness.claim_with(request).await?;
    same!(ids(&claimed), [silent.id, said.id], "the claimed jobs");
    let spans: Vec<_> = claimed.iter().flat_map(|job| &job.lease).map(|l| (l.span, l.until, l.deadline)).collect();
    let expected = [
        (Span::from_millis(LEASE_MS), START.after(Span::from_millis(LEASE_MS)), Some(harness.later(90))),
        (lease, START.after(lease), Some(harness.later(700))),
    ];
    same!(spans, expected, "span, end and deadline of the leases");
    Ok(())
}
