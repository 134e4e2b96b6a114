//! Failed attempts: the decision, the limit on runs, the history. The RET cases are those
//! requirements of OJS that a store can break.

use super::harness::{
    DELAY_MS, Harness, LEASE_MS, QUEUE, decision, decision_of, failed, failed_run, ids, lease_of, lease_ref, policy,
    stopped,
};
use super::{CaseResult, ensure, same};
use crate::{AttemptOutcome, Claim, FailedAttempt, Filter, Job, KEPT_FAILURES, State, Token};
use redrive_policy::{AttemptLimit, Disposition, Failure, Outcome, Signal, Span};
use std::sync::{Arc, Mutex};

pub(super) async fn ret_01_no_more_runs_than_the_policy_allows(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.enqueue_with(|spec| spec.timeout = Some(Span::from_millis(LEASE_MS / 2))).await?;
    let mut runs = 0;
    // One failure is reported, one run takes too long, one worker dies and the store with it.
    for round in 0..9 {
        let Some(claimed) = harness.claim(1).await?.pop() else { break };
        runs += 1;
        same!(claimed.attempt, runs, "the number of the run");
        match round {
            0 => drop(harness.fail(&claimed).await?),
            1 => harness.advance(LEASE_MS / 2),
            _ => {
                harness.restart();
                harness.advance(LEASE_MS * 2);
            }
        }
        harness.reclaim(9).await?;
        harness.advance(DELAY_MS);
        harness.promote(9).await?;
    }
    let ended = harness.get(job.id).await?;
    same!((runs, ended.state, ended.failures.len()), (3, State::Discarded, 3), "runs, end, and failures of a job of 3");
    Ok(())
}

pub(super) async fn ret_01_a_release_spends_no_run(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.enqueue_one().await?;
    let mut numbers = Vec::new();
    for release in [true, false, true, true, false, false] {
        let claimed = harness.claim_next(job.id).await?;
        numbers.push(claimed.attempt);
        if release {
            drop(harness.release(&claimed, 0, 9).await??)
        } else {
            drop(harness.fail(&claimed).await?)
        }
        harness.advance(DELAY_MS);
        harness.promote(9).await?;
    }
    same!(numbers, [1, 1, 2, 2, 2, 3], "the numbers of the runs, where the released ones are run again");
    same!(harness.get(job.id).await?.state, State::Discarded, "the state after the third failure");
    Ok(())
}

pub(super) async fn ret_11_a_retry_is_not_available_before_its_time(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    let failed = harness.fail(&claimed).await?;
    let due = harness.later(DELAY_MS);
    same!((failed.state, failed.due), (State::Retryable, Some(due)), "the failed job");
    harness.advance_to_just_before(due);
    same!(harness.promote(9).await?, Vec::new(), "what is promoted a microsecond early");
    same!(harness.claim(9).await?, Vec::new(), "what can be claimed a microsecond early");
    harness.restart();
    same!(harness.promote(9).await?, Vec::new(), "what is promoted early after a restart");
    same!(harness.claim(9).await?, Vec::new(), "what can be claimed early after a restart");
    harness.advance_to(due);
    same!(ids(&harness.promote(9).await?), [claimed.id], "what is promoted at its time");
    let again = harness.claim_next(claimed.id).await?;
    same!((again.attempt, again.last_delay), (2, Some(Span::from_millis(DELAY_MS))), "run and delay of the retry");
    Ok(())
}

pub(super) async fn ret_12_a_lease_that_runs_out_is_a_failed_run(harness: &mut Harness<'_>) -> CaseResult {
    let dead = policy(AttemptLimit::AtMost(2), DELAY_MS, Disposition::DeadLetter)?;
    let job = harness.enqueue_with(|spec| spec.policy = dead).await?;
    harness.claim_next(job.id).await?;
    harness.advance(LEASE_MS);
    let stalled = harness.reclaim(9).await?;
    same!(ids(&stalled), [job.id], "what is reclaimed");
    let (attempt, failures) = (stalled[0].attempt, stalled[0].history.failures());
    same!((attempt, failures, stalled[0].failures.len()), (1, 1, 1), "the run counts and is remembered");
    same!((stalled[0].state, stalled[0].due), (State::Retryable, Some(harness.later(DELAY_MS))), "it waits its delay");
    harness.advance(DELAY_MS);
    harness.promote(9).await?;
    same!(harness.claim_next(job.id).await?.attempt, 2, "the number of the next run");
    harness.advance(LEASE_MS);
    let ended = harness.reclaim(9).await?;
    same!(ended.iter().map(|job| (job.state, job.dead)).collect::<Vec<_>>(), [(State::Discarded, true)], "the end");
    Ok(())
}

pub(super) async fn ret_14_attempt_errors_and_next_retry_are_tracked(harness: &mut Harness<'_>) -> CaseResult {
    let mut expected: Vec<FailedAttempt> = Vec::new();
    let job = harness.enqueue_one().await?;
    for attempt in 1..=3 {
        let since = harness.now();
        harness.advance(5);
        let claimed = harness.claim_next(job.id).await?;
        same!(
            (claimed.times.available, claimed.times.started),
            (Some(since), Some(harness.now())),
            "the start of run {attempt}"
        );
        harness.advance(attempt);
        let failed = harness.fail(&claimed).await?;
        let ruled = decision(&claimed, harness.now());
        expected.push(failed_run(&claimed, harness.now(), ruled));
        same!(failed.failures, expected, "the failures after run {attempt}, the newest last");
        same!((failed.attempt, failed.history.failures()), (attempt, attempt), "the counts after run {attempt}");
        same!((failed.lease, failed.result), (None, None), "lease and result of a failed job");
        let next = (attempt < 3).then(|| harness.later(DELAY_MS));
        same!((failed.due, harness.next_wake().await?), (next, next), "the next retry after run {attempt}");
        harness.advance(DELAY_MS);
        harness.promote(9).await?;
    }
    let ended = harness.get(job.id).await?;
    same!(ended.due, None, "the next retry of a job that has ended");
    same!(ended.last_delay, Some(Span::from_millis(DELAY_MS)), "the delay of its last retry");
    Ok(())
}

pub(super) async fn ret_15_the_latest_failures_are_kept(harness: &mut Harness<'_>) -> CaseResult {
    let forever = policy(AttemptLimit::Unlimited, 0, Disposition::Discard)?;
    let job = harness.enqueue_with(|spec| spec.policy = forever).await?;
    let runs = u32::try_from(KEPT_FAILURES).unwrap_or(u32::MAX).saturating_add(7);
    for _ in 0..runs {
        harness.fail(&harness.claim_next(job.id).await?).await?;
        harness.promote(9).await?;
    }
    harness.restart();
    let job = harness.get(job.id).await?;
    let kept: Vec<u32> = job.failures.iter().map(|run| run.attempt).collect();
    same!(kept, (8..=runs).collect::<Vec<u32>>(), "the runs that are stored, the newest last");
    ensure!(KEPT_FAILURES >= 10, "OJS §10.1 asks for ten failures, {KEPT_FAILURES} are stored");
    same!((job.attempt, job.history.failures()), (runs, runs), "the counts, which forget nothing");
    Ok(())
}

pub(super) async fn ret_17_both_dispositions_of_exhausted_jobs(harness: &mut Harness<'_>) -> CaseResult {
    let mut dead = Vec::new();
    for disposition in [Disposition::Discard, Disposition::DeadLetter, Disposition::Fail] {
        let once = policy(AttemptLimit::AtMost(1), DELAY_MS, disposition)?;
        let claimed = harness.claimed_with(|spec| spec.policy = once).await?;
        harness.advance(1);
        let ended = harness.fail(&claimed).await?;
        let kept = disposition == Disposition::DeadLetter;
        let seen = (ended.state, ended.dead, ended.times.finished, ended.due);
        same!(seen, (State::Discarded, kept, Some(harness.now()), None), "a job that ends with {disposition}");
        dead.extend(kept.then_some(ended.id));
    }
    let listed = harness.list(Filter { dead: Some(true), ..Filter::default() }).await?;
    same!(ids(&listed.jobs), dead, "the dead letters");
    let others = harness.list(Filter { dead: Some(false), ..Filter::default() }).await?;
    same!(others.total, Some(2), "how many are none");
    Ok(())
}

pub(super) async fn fail_asks_for_a_decision_on_the_stored_job(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    harness.advance(5);
    let extended = harness.extend(lease_of(&claimed)?, None).await??;
    let (seen, now) = (Arc::new(Mutex::new(Vec::new())), harness.now());
    let witness = Arc::clone(&seen);
    let report = AttemptOutcome::Failed(Box::new(move |job: &Job| {
        if let Ok(mut seen) = witness.lock() {
            seen.push(job.clone());
        }
        decision(job, now)
    }));
    harness.settle(lease_of(&claimed)?, report).await??;
    let seen = seen.lock().map(|seen| seen.last().cloned()).unwrap_or_default();
    same!(seen, Some(extended), "the job that the decision was made on");
    Ok(())
}

pub(super) async fn fail_continues_from_the_history_of_the_policy(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    let mut expected = claimed.history.clone();
    expected.record(&decision(&claimed, harness.now()).verdict);
    same!(harness.fail(&claimed).await?.history, expected, "the history after one failure");
    Ok(())
}

pub(super) async fn fail_with_a_stop_signal_stops_whatever_the_policy_says(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    let ended = harness.settle(lease_of(&claimed)?, stopped(Disposition::DeadLetter)).await??;
    same!((ended.state, ended.dead, ended.attempt), (State::Discarded, true, 1), "a job that its handler stopped");
    same!(ended.failures.len(), 1, "how many failures are remembered");
    Ok(())
}

pub(super) async fn fail_takes_the_due_time_of_the_decision(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    let (now, due) = (harness.now(), harness.later(33));
    let report = AttemptOutcome::Failed(Box::new(move |job| crate::Decision { due, ..decision(job, now) }));
    let failed = harness.settle(lease_of(&claimed)?, report).await??;
    same!((failed.due, failed.last_delay), (Some(due), Some(Span::from_millis(DELAY_MS))), "due time and delay");
    Ok(())
}

pub(super) async fn fail_with_no_delay_waits_for_the_next_promotion(harness: &mut Harness<'_>) -> CaseResult {
    let at_once = policy(AttemptLimit::AtMost(2), 0, Disposition::Discard)?;
    let claimed = harness.claimed_with(|spec| spec.policy = at_once).await?;
    let failed = harness.fail(&claimed).await?;
    same!((failed.state, failed.due), (State::Retryable, Some(harness.now())), "a job that may run again at once");
    same!(ids(&harness.promote(9).await?), [claimed.id], "what is promoted at once");
    Ok(())
}

pub(super) async fn fail_that_asks_for_a_requeue_is_not_a_failure(harness: &mut Harness<'_>) -> CaseResult {
    let first = harness.claimed().await?;
    harness.fail(&first).await?;
    harness.advance(DELAY_MS);
    harness.promote(9).await?;
    let claimed = harness.claim_next(first.id).await?;
    let now = harness.now();
    let failure = Failure::default().with_signal(Signal::RequeueAfter(Span::from_millis(50)));
    let report = AttemptOutcome::Failed(Box::new(move |job| decision_of(job, &failure, now)));
    let requeued = harness.settle(lease_of(&claimed)?, report).await??;
    let expected =
        Job { state: State::Retryable, attempt: 1, due: Some(harness.later(50)), lease: None, ..claimed.clone() };
    same!(requeued, expected, "a requeued job, which counts and remembers nothing");
    harness.advance(50);
    harness.promote(9).await?;
    same!(harness.claim_next(claimed.id).await?.attempt, 2, "the number of the next run");
    Ok(())
}

pub(super) async fn fail_by_a_deadline_and_by_a_report_are_decided_alike(harness: &mut Harness<'_>) -> CaseResult {
    let (told, timed) = (harness.enqueue_one().await?, harness.enqueue_one().await?);
    let request = Claim { timeout: Some(Span::from_millis(40)), ..harness.claim_request(&[QUEUE], 9) };
    same!(ids(&harness.claim_with(request).await?), [told.id, timed.id], "the two runs");
    harness.advance(40);
    let told = harness.settle(lease_ref(told.id, Token::None), failed(harness.now())).await??;
    let timed = harness.reclaim(9).await?.pop();
    let outcome = |job: &Job| job.failures.last().map(|run| (run.attempt, run.at, run.verdict));
    same!(timed.as_ref().and_then(outcome), outcome(&told), "the record of the two failures");
    same!(timed.map(|job| (job.state, job.due)), Some((told.state, told.due)), "state and due time of the two");
    let retried = outcome(&told).is_some_and(|(_, _, verdict)| matches!(verdict.outcome, Outcome::Retry { .. }));
    ensure!(retried, "the failure was not decided on");
    Ok(())
}
