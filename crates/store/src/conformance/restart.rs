//! A restart changes nothing.

use super::harness::{DELAY_MS, Harness, LEASE_MS, QUEUE, decision, failed_run, ids, lease_of, token};
use super::{CaseResult, Violation, same};
use crate::{
    AttemptOutcome, Blob, Bounds, Enqueued, Job, Limits, Missing, NewJob, OnLimit, OwnLimit, Rate, Redrive, Refusal,
    Retention, Spec, Start, State,
};
use redrive_policy::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Delegation, Disposition, Jitter, Matcher, Parts, Pattern, Policy,
    Rounding, Rule, Span, Unmatched,
};
use std::sync::Arc;

pub(super) async fn restart_of_an_empty_store_is_empty(harness: &mut Harness<'_>) -> CaseResult {
    let before = harness.store_view().await?;
    harness.restart();
    same!(harness.store_view().await?, before, "an empty store");
    Ok(())
}

pub(super) async fn restart_keeps_a_job_in_every_state(harness: &mut Harness<'_>) -> CaseResult {
    for state in State::ALL {
        let job = harness.job_in(state).await?;
        harness.restart();
        same!(harness.get(job.id).await?, job, "a {state} job after a restart");
    }
    let before = harness.store_view().await?;
    for round in 1..=3 {
        harness.restart();
        same!(harness.store_view().await?, before, "the store after restart {round}");
    }
    Ok(())
}

/// Limits that have something in every place.
fn elaborate_limits() -> Limits {
    let rate = |limit| Some(Rate { limit, period: Span::saturating_ms(0.3) });
    let bounds = Bounds { concurrency: Some(u32::MAX), rate: rate(1), throttle: rate(u32::MAX) };
    let own = OwnLimit { key: "tenant:1".into(), bounds, on_limit: OnLimit::Drop };
    Limits { own: Some(own), by_kind: true }
}

pub(super) async fn restart_keeps_the_whole_spec_of_a_job(harness: &mut Harness<'_>) -> CaseResult {
    let policy = Arc::new(Policy::new(elaborate()).map_err(|problems| Violation::new(format!("{problems}")))?);
    let spec = Spec {
        kind: "e-mail.sénd\u{1f4e7}".into(),
        queue: "q \"1\"\n\0".into(),
        priority: i32::MIN,
        body: (0..=255).cycle().take(70_000).collect(),
        policy,
        timeout: Some(Span::saturating_ms(0.1)),
        lease: Some(Span::MAX),
        expires: Some(harness.later(u32::MAX)),
        limits: Some(Arc::new(elaborate_limits())),
    };
    let new = harness.job_with(|said| *said = spec.clone());
    let job = harness.enqueue_new(NewJob { start: Start::Pending, ..new }).await?;
    harness.restart();
    let kept = harness.get(job.id).await?;
    same!(*kept.spec, spec, "the spec");
    same!(kept, job, "the whole job");
    Ok(())
}

pub(super) async fn restart_keeps_leases_and_their_numbers(harness: &mut Harness<'_>) -> CaseResult {
    let (done, lost) = (harness.claimed().await?, harness.claimed_with(|spec| spec.timeout = Some(Span::MAX)).await?);
    harness.extend(lease_of(&done)?, Some(Span::from_millis(LEASE_MS * 2))).await??;
    harness.restart();
    same!(harness.get(lost.id).await?, lost, "a leased job after a restart");
    harness.advance(LEASE_MS);
    same!(ids(&harness.reclaim(9).await?), [lost.id], "which lease runs out first");
    same!(harness.done(&done).await?.state, State::Completed, "the end of the other run");
    harness.advance(DELAY_MS);
    harness.promote(9).await?;
    harness.restart();
    let again = harness.claim_next(lost.id).await?;
    same!(token(&again)?.number, 2, "the number of the next lease");
    let late = harness.settle(lease_of(&lost)?, AttemptOutcome::Done(None)).await?;
    same!(late, Err(Refusal::StaleLease), "the lease from before the restarts");
    Ok(())
}

pub(super) async fn restart_keeps_the_history_and_the_failures(harness: &mut Harness<'_>) -> CaseResult {
    let policy = Arc::new(Policy::new(elaborate()).map_err(|problems| Violation::new(format!("{problems}")))?);
    let job = harness.enqueue_with(|spec| spec.policy = policy).await?;
    let (mut history, mut failures) = (job.history, Vec::new());
    for attempt in 1..=5 {
        let claimed = harness.claim_next(job.id).await?;
        // The expected values are decided on a history that no store has ever had.
        let ruled = decision(&Job { history: history.clone(), ..claimed.clone() }, harness.now());
        history.record(&ruled.verdict);
        failures.push(failed_run(&claimed, harness.now(), ruled));
        let failed = harness.fail(&claimed).await?;
        harness.restart();
        same!(harness.get(job.id).await?, failed, "the job after failure {attempt} and a restart");
        same!(failed.history, history, "what the policy remembers after failure {attempt}");
        same!(failed.failures, failures, "the failures after failure {attempt}");
        harness.advance(1_000_000);
        same!(harness.promote(9).await?.len(), 1, "how many jobs are due");
    }
    Ok(())
}

pub(super) async fn restart_keeps_idempotency_keys(harness: &mut Harness<'_>) -> CaseResult {
    let first = NewJob { idempotency_key: Some("k".into()), ..harness.job() };
    let job = harness.enqueue_new(first).await?;
    harness.restart();
    let second = NewJob { idempotency_key: Some("k".into()), ..harness.job() };
    same!(harness.enqueue(vec![second]).await?, Ok(vec![Enqueued::Existing(job.clone())]), "the key of a waiting job");
    let done = harness.done(&harness.claim_next(job.id).await?).await?;
    harness.restart();
    let third = NewJob { idempotency_key: Some("k".into()), ..harness.job() };
    same!(harness.enqueue(vec![third]).await?, Ok(vec![Enqueued::Existing(done)]), "the key of a completed job");
    Ok(())
}

pub(super) async fn restart_keeps_taken_ids(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.job();
    harness.enqueue_new(job.clone()).await?;
    harness.restart();
    let id = job.id;
    same!(harness.enqueue(vec![job]).await?, Err(crate::EnqueueRefusal::IdTaken { index: 0, id }), "a taken id");
    Ok(())
}

pub(super) async fn restart_keeps_pauses_and_counts(harness: &mut Harness<'_>) -> CaseResult {
    for state in State::ALL {
        harness.job_in(state).await?;
    }
    harness.advance(5);
    harness.store().pause(State::Available.name().into(), true, Missing::Create, harness.now()).await?;
    harness.store().pause("empty".into(), true, Missing::Create, harness.now()).await?;
    let queues = harness.store().queues().await?;
    harness.advance(5);
    harness.restart();
    same!(harness.store().queues().await?, queues, "the queues");
    let request = harness.claim_request(&[State::Available.name()], 9);
    same!(harness.claim_with(request.clone()).await?, Vec::new(), "what a paused queue gives");
    harness.store().pause(State::Available.name().into(), false, Missing::Create, harness.now()).await?;
    harness.restart();
    same!(harness.claim_with(request).await?.len(), 1, "what the opened queue gives");
    Ok(())
}

pub(super) async fn restart_keeps_the_order_of_the_queue(harness: &mut Harness<'_>) -> CaseResult {
    let first = harness.claimed().await?;
    let mut line = vec![harness.enqueue_one().await?.id, harness.enqueue_one().await?.id];
    harness.advance(5);
    harness.release(&first, 0, 9).await??;
    line.push(first.id);
    line.insert(0, harness.enqueue_with(|spec| spec.priority = 1).await?.id);
    harness.restart();
    same!(ids(&harness.claim(9).await?), line, "the queue");
    Ok(())
}

pub(super) async fn restart_keeps_what_is_due_and_what_expires(harness: &mut Harness<'_>) -> CaseResult {
    let due = harness.later(30);
    let new = harness.job();
    let scheduled = harness.enqueue_new(NewJob { start: Start::Scheduled(due), ..new }).await?;
    let snoozed = harness.claimed().await?;
    harness.release(&snoozed, 20, 9).await??;
    let expires = harness.later(10);
    let expiring = harness.enqueue_with(|spec| spec.expires = Some(expires)).await?;
    harness.restart();
    same!(harness.next_wake().await?, Some(expires), "the next moment");
    harness.advance(30);
    same!(ids(&harness.promote(9).await?), [expiring.id, snoozed.id, scheduled.id], "what is promoted");
    Ok(())
}

pub(super) async fn restart_keeps_the_result_and_the_lease_of_a_completed_job(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    let result = AttemptOutcome::Done(Some((0..=255).collect()));
    let done = harness.settle(lease_of(&claimed)?, result).await??;
    harness.restart();
    same!(harness.get(claimed.id).await?, done, "a completed job");
    let again = harness.settle(lease_of(&claimed)?, AttemptOutcome::Done(None)).await?;
    same!(again, Ok(done), "success, reported again after a restart");
    Ok(())
}

pub(super) async fn restart_does_not_restore_what_was_removed(harness: &mut Harness<'_>) -> CaseResult {
    let removed = NewJob { idempotency_key: Some("k".into()), ..harness.job() };
    let pruned = harness.job();
    for new in [&removed, &pruned] {
        harness.enqueue_new(new.clone()).await?;
        harness.cancel(new.id).await??;
    }
    harness.store().remove(removed.id).await??;
    let at_once = Retention { finished: Span::ZERO, dead: Span::ZERO };
    harness.store().prune(at_once, 9, harness.now()).await?;
    harness.restart();
    same!(harness.store_view().await?.0.total, Some(0), "how many jobs there are");
    let queues: Vec<_> = harness.store().queues().await?.into_iter().map(|queue| queue.name).collect();
    same!(queues, [Arc::from(QUEUE)], "the queues");
    harness.enqueue_new(removed).await?;
    harness.enqueue_new(pruned).await?;
    Ok(())
}

pub(super) async fn restart_keeps_the_generation(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.job_in(State::Discarded).await?;
    let body: Blob = Arc::from(*b"[2]");
    let spec = Spec { queue: "elsewhere".into(), priority: 3, body, ..(*job.spec).clone() };
    let redrive = Redrive { spec: Some(Arc::new(spec)), unique: None, by: "ada@example.org".into() };
    let redriven = harness.redrive(job.id, redrive).await??;
    same!(redriven.revisions.len(), 1, "how many bodies were replaced");
    let before = harness.store_view().await?;
    harness.restart();
    same!(harness.get(job.id).await?, redriven, "a redriven job");
    same!(harness.store_view().await?, before, "the store");
    same!(harness.claim_next(job.id).await?.attempt, 1, "its first run in the new generation");
    Ok(())
}

/// A policy with something in every place that a policy has.
fn elaborate() -> Parts {
    let specific = Rule {
        matcher: Matcher {
            include_types: Some(vec![Pattern::dotted("net.*"), Pattern::exact("Zürich")]),
            exclude_types: vec![Pattern::exact("net.dns")],
            codes: Some(vec![Pattern::Any]),
            retryable: Some(true),
        },
        budget: Some(2),
        backoff: Backoff::fixed(Span::saturating_ms(0.25)),
    };
    let general = Rule {
        matcher: Matcher::default(),
        budget: None,
        backoff: Backoff {
            initial: Span::saturating_ms(100.5),
            offset: Span::from_millis(1),
            curve: Curve::Exponential { rate: 1.7 },
            cap: Some(Cap { at: Span::from_millis(900), place: CapPlace::BeforeAndAfter }),
            jitter: Jitter::Scale { low: 0.5, high: 1.5 },
            rounding: Rounding::FloorMs,
        },
    };
    Parts {
        rules: vec![specific, general],
        attempts: AttemptLimit::AtMost(7),
        max_elapsed: Some(Span::MAX),
        on_stop: Disposition::DeadLetter,
        unmatched: Unmatched::PassesThrough,
        delegated: Some(Delegation { job_limit: Some(9), cap: AttemptLimit::AtMost(8) }),
    }
}
