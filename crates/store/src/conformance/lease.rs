//! Leases, their tokens, and heartbeats.

use super::harness::{Harness, LEASE_MS, QUEUE, decision, ids, lease_of, lease_ref, token};
use super::{CaseResult, ensure, same};
use crate::{AttemptOutcome, Claim, LeaseRef, LeaseToken, Refusal, Settlement, State, Token};
use redrive_policy::Span;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) async fn ret_13_a_heartbeat_extends_the_lease(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    for _ in 0..3 {
        harness.advance(LEASE_MS - 1);
        same!(harness.reclaim(9).await?, Vec::new(), "what is reclaimed before the lease runs out");
        let extended = harness.extend(lease_of(&claimed)?, None).await??;
        let times = extended.lease.as_ref().map(|lease| (lease.alive, lease.until, lease.span));
        same!(times, Some((harness.now(), harness.later(LEASE_MS), Span::from_millis(LEASE_MS))), "the extended lease");
        same!((extended.state, extended.attempt, extended.leases), (State::Active, 1, 1), "the extended job");
        same!(harness.get(claimed.id).await?, extended, "the same job, read back");
    }
    Ok(())
}

pub(super) async fn extend_with_a_span_of_its_own_counts_for_one_heartbeat(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    for (span, ms) in [(Some(Span::from_millis(77_000)), 77_000), (Some(Span::from_millis(5)), 5), (None, LEASE_MS)] {
        let extended = harness.extend(lease_of(&claimed)?, span).await??;
        same!(extended.lease.map(|lease| lease.until), Some(harness.later(ms)), "the end of the lease with {span:?}");
    }
    Ok(())
}

pub(super) async fn extend_never_shortens_the_lease_that_a_job_asked_for(harness: &mut Harness<'_>) -> CaseResult {
    let own = u32::from(u16::MAX);
    let claimed = harness.claimed_with(|spec| spec.lease = Some(Span::from_millis(own))).await?;
    harness.advance(1);
    for (span, ms) in [(5, own), (own - 1, own), (own + 1, own + 1)] {
        let extended = harness.extend(lease_of(&claimed)?, Some(Span::from_millis(span))).await??;
        same!(extended.lease.map(|lease| lease.until), Some(harness.later(ms)), "the end of the lease with {span} ms");
    }
    harness.advance(own);
    same!(harness.reclaim(9).await?, Vec::new(), "what is reclaimed before the lease runs out");
    Ok(())
}

pub(super) async fn extend_leaves_the_deadline(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed_with(|spec| spec.timeout = Some(Span::from_millis(LEASE_MS))).await?;
    let deadline = harness.later(LEASE_MS);
    harness.advance(LEASE_MS - 1);
    let extended = harness.extend(lease_of(&claimed)?, None).await??;
    same!(extended.lease.and_then(|lease| lease.deadline), Some(deadline), "the deadline");
    harness.advance(1);
    same!(harness.reclaim(9).await?.len(), 1, "how many runs are over at their deadline");
    Ok(())
}

pub(super) async fn extend_renews_a_lease_that_ran_out_but_was_not_ended(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    harness.advance(LEASE_MS * 10);
    let extended = harness.extend(lease_of(&claimed)?, None).await??;
    same!(extended.lease.map(|lease| lease.until), Some(harness.later(LEASE_MS)), "the end of the lease");
    same!(harness.reclaim(9).await?, Vec::new(), "what is reclaimed after the late heartbeat");
    Ok(())
}

pub(super) async fn extend_does_not_restore_a_lease_that_was_ended(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    harness.advance(LEASE_MS);
    same!(harness.reclaim(9).await?.len(), 1, "how many runs are reclaimed");
    let before = harness.store_view().await?;
    same!(harness.extend(lease_of(&claimed)?, None).await?, Err(Refusal::StaleLease), "a heartbeat after the end");
    same!(harness.store_view().await?, before, "the store after the refusal");
    Ok(())
}

pub(super) async fn extend_answers_each_lease_separately(harness: &mut Harness<'_>) -> CaseResult {
    let (first, second) = (harness.claimed().await?, harness.claimed().await?);
    let waiting = harness.enqueue_one().await?;
    harness.advance(1);
    let unknown = harness.new_id();
    let lease_refs = vec![
        lease_of(&second)?,
        lease_ref(unknown, Token::None),
        lease_ref(waiting.id, Token::None),
        lease_of(&first)?,
        lease_ref(first.id, Token::Worker("bob".into())),
    ];
    let answers = harness.store().extend(lease_refs, None, harness.now()).await?;
    let seen: Vec<_> = answers.into_iter().map(|answer| answer.map(|job| job.id)).collect();
    let wrong_state = Err(Refusal::WrongState(State::Available));
    let expected = [Ok(second.id), Err(Refusal::NotFound), wrong_state, Ok(first.id), Err(Refusal::OtherWorker)];
    same!(seen, expected, "five holds");
    Ok(())
}

pub(super) async fn lease_with_a_stale_token_is_refused_as_stale(harness: &mut Harness<'_>) -> CaseResult {
    let first = harness.claimed().await?;
    harness.advance(LEASE_MS);
    harness.reclaim(9).await?;
    refused_everywhere(harness, lease_of(&first)?, &Refusal::StaleLease).await?;
    harness.advance(LEASE_MS);
    harness.promote(9).await?;
    refused_everywhere(harness, lease_of(&first)?, &Refusal::StaleLease).await?;
    let second = harness.claim_next(first.id).await?;
    refused_everywhere(harness, lease_of(&first)?, &Refusal::StaleLease).await?;
    harness.done(&second).await?;
    refused_everywhere(harness, lease_of(&first)?, &Refusal::StaleLease).await
}

pub(super) async fn lease_with_a_wrong_token_is_refused_as_wrong(harness: &mut Harness<'_>) -> CaseResult {
    let first = harness.claimed().await?;
    harness.release(&first, 0, 9).await??;
    let job = harness.claim_next(first.id).await?;
    let good = token(&job)?;
    let other = LeaseToken::derive(99, job.id, 2);
    let forged = [other, LeaseToken { number: 3, ..good }, LeaseToken { number: 0, ..good }];
    for token in forged {
        refused_everywhere(harness, lease_ref(job.id, Token::Lease(token)), &Refusal::WrongLease).await?;
    }
    Ok(())
}

pub(super) async fn lease_with_a_token_of_the_future_meets_the_wrong_state(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.enqueue_one().await?;
    let token = LeaseToken::derive(1, job.id, 1);
    refused_everywhere(harness, lease_ref(job.id, Token::Lease(token)), &Refusal::WrongState(State::Available)).await
}

pub(super) async fn lease_of_another_worker_is_refused(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.claimed().await?;
    refused_everywhere(harness, lease_ref(job.id, Token::Worker("bob".into())), &Refusal::OtherWorker).await?;
    harness.extend(lease_ref(job.id, Token::Worker("ada".into())), None).await??;
    let done = harness.settle(lease_ref(job.id, Token::Worker("ada".into())), AttemptOutcome::Done(None)).await??;
    same!(done.state, State::Completed, "settled by the name of the worker");
    Ok(())
}

pub(super) async fn lease_that_was_taken_without_a_worker_accepts_any(harness: &mut Harness<'_>) -> CaseResult {
    let id = harness.enqueue_one().await?.id;
    let nameless = Claim { worker: "".into(), ..harness.claim_request(&[QUEUE], 1) };
    same!(ids(&harness.claim_with(nameless).await?), [id], "what a worker without a name gets");
    harness.extend(lease_ref(id, Token::Worker("ada".into())), None).await??;
    let extended = harness.extend(lease_ref(id, Token::Worker("bob".into())), None).await??;
    same!(extended.lease.map(|lease| lease.worker), Some("".into()), "whose lease it is after heartbeats");
    let forged = LeaseToken::derive(99, id, 1);
    refused_everywhere(harness, lease_ref(id, Token::Lease(forged)), &Refusal::WrongLease).await?;
    let done = harness.settle(lease_ref(id, Token::Worker("ada".into())), AttemptOutcome::Done(None)).await??;
    same!(done.state, State::Completed, "settled by a name");
    Ok(())
}

pub(super) async fn lease_without_a_token_is_the_present_one(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.claimed().await?;
    harness.extend(lease_ref(job.id, Token::None), None).await??;
    let done = harness.settle(lease_ref(job.id, Token::None), AttemptOutcome::Done(None)).await??;
    same!(done.state, State::Completed, "settled without a token");
    Ok(())
}

pub(super) async fn lease_of_an_unknown_job_is_refused(harness: &mut Harness<'_>) -> CaseResult {
    let unknown = harness.new_id();
    let token = Token::Lease(LeaseToken::derive(1, unknown, 1));
    for token in [token, Token::Worker("ada".into()), Token::None] {
        refused_everywhere(harness, lease_ref(unknown, token), &Refusal::NotFound).await?;
    }
    Ok(())
}

pub(super) async fn lease_of_a_job_that_is_not_active_meets_the_wrong_state(harness: &mut Harness<'_>) -> CaseResult {
    for state in State::ALL.into_iter().filter(|state| *state != State::Active) {
        let job = harness.job_in(state).await?;
        for token in [Token::None, Token::Worker("ada".into())] {
            refused_everywhere(harness, lease_ref(job.id, token), &Refusal::WrongState(state)).await?;
        }
    }
    Ok(())
}

pub(super) async fn lease_ends_when_the_job_is_cancelled(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.claimed().await?;
    harness.cancel(job.id).await??;
    refused_everywhere(harness, lease_of(&job)?, &Refusal::StaleLease).await?;
    refused_everywhere(harness, lease_ref(job.id, Token::None), &Refusal::WrongState(State::Cancelled)).await
}

pub(super) async fn lease_past_its_end_may_settle_while_nothing_ended_it(harness: &mut Harness<'_>) -> CaseResult {
    let change = |spec: &mut crate::Spec| spec.timeout = Some(Span::from_millis(5));
    let (good, bad) = (harness.claimed_with(change).await?, harness.claimed_with(change).await?);
    harness.advance(LEASE_MS * 10);
    same!(harness.done(&good).await?.state, State::Completed, "a late success");
    same!(harness.fail(&bad).await?.state, State::Retryable, "a late failure");
    same!(harness.reclaim(9).await?, Vec::new(), "what is left to reclaim");
    Ok(())
}

/// Every operation that needs a lease refuses this one. Nothing changes, and no decision is asked for.
async fn refused_everywhere(harness: &Harness<'_>, lease_ref: LeaseRef, expected: &Refusal) -> CaseResult {
    let before = harness.store_view().await?;
    let answer = harness.extend(lease_ref.clone(), Some(Span::from_millis(1))).await?;
    same!(answer.as_ref().err(), Some(expected), "a heartbeat with {:?}", lease_ref.token);
    let (asked, now) = (Arc::new(AtomicBool::new(false)), harness.now());
    let witness = Arc::clone(&asked);
    let failed = AttemptOutcome::Failed(Box::new(move |job| {
        witness.store(true, Ordering::SeqCst);
        decision(job, now)
    }));
    let reports = [AttemptOutcome::Done(None), failed, AttemptOutcome::Released { delay: Span::ZERO, most: u32::MAX }];
    let settlements = reports.map(|report| Settlement { lease_ref: lease_ref.clone(), report });
    for answer in harness.store().settle(Vec::from(settlements), now).await? {
        same!(answer.as_ref().err(), Some(expected), "the end of a run with {:?}", lease_ref.token);
    }
    ensure!(!asked.load(Ordering::SeqCst), "a decision was asked for in spite of {expected:?}");
    same!(harness.store_view().await?, before, "the store after {expected:?}");
    Ok(())
}
