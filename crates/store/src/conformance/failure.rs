//! Failed runs: the ruling, the bound on runs, what is remembered. The RET cases are those
//! requirements of OJS that a store can break.

use super::bench::{
    Bench, DELAY_MS, LEASE_MS, QUEUE, decision, decision_of, failed, failed_run, held_by_token, ids, lease_ref, policy,
    stopped,
};
use super::{Verified, ensure, same};
use crate::{Claim, FailedRun, Filter, Job, KEPT_FAILURES, RunOutcome, State, Token};
use redrive_policy::{AttemptLimit, Disposition, Failure, Outcome, Signal, Span};
use std::sync::{Arc, Mutex};

pub(super) async fn ret_01_no_more_runs_than_the_policy_allows(bench: &mut Bench<'_>) -> Verified {
    let job = bench.added_with(|spec| spec.timeout = Some(Span::from_millis(LEASE_MS / 2))).await?;
    let mut runs = 0;
    // One failure is reported, one run takes too long, one worker dies and the store with it.
    for round in 0..9 {
        let Some(held) = bench.claim(1).await?.pop() else { break };
        runs += 1;
        same!(held.attempt, runs, "the number of the run");
        match round {
            0 => drop(bench.fail(&held).await?),
            1 => bench.pass(LEASE_MS / 2),
            _ => {
                bench.restart();
                bench.pass(LEASE_MS * 2);
            }
        }
        bench.reclaim(9).await?;
        bench.pass(DELAY_MS);
        bench.promote(9).await?;
    }
    let ended = bench.get(job.id).await?;
    same!((runs, ended.state, ended.failures.len()), (3, State::Discarded, 3), "runs, end, and failures of a job of 3");
    Ok(())
}

pub(super) async fn ret_01_a_release_spends_no_run(bench: &mut Bench<'_>) -> Verified {
    let job = bench.added().await?;
    let mut numbers = Vec::new();
    for release in [true, false, true, true, false, false] {
        let held = bench.take(job.id).await?;
        numbers.push(held.attempt);
        if release {
            drop(bench.release(&held, 0, 9).await??)
        } else {
            drop(bench.fail(&held).await?)
        }
        bench.pass(DELAY_MS);
        bench.promote(9).await?;
    }
    same!(numbers, [1, 1, 2, 2, 2, 3], "the numbers of the runs, where the released ones are run again");
    same!(bench.get(job.id).await?.state, State::Discarded, "the state after the third failure");
    Ok(())
}

pub(super) async fn ret_11_a_retry_is_not_available_before_its_time(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    let failed = bench.fail(&held).await?;
    let due = bench.later(DELAY_MS);
    same!((failed.state, failed.due), (State::Retryable, Some(due)), "the failed job");
    bench.pass_to_just_before(due);
    same!(bench.promote(9).await?, Vec::new(), "what is promoted a microsecond early");
    same!(bench.claim(9).await?, Vec::new(), "what can be claimed a microsecond early");
    bench.restart();
    same!(bench.promote(9).await?, Vec::new(), "what is promoted early after a restart");
    same!(bench.claim(9).await?, Vec::new(), "what can be claimed early after a restart");
    bench.pass_to(due);
    same!(ids(&bench.promote(9).await?), [held.id], "what is promoted at its time");
    let again = bench.take(held.id).await?;
    same!((again.attempt, again.last_delay), (2, Some(Span::from_millis(DELAY_MS))), "run and delay of the retry");
    Ok(())
}

pub(super) async fn ret_12_a_lease_that_runs_out_is_a_failed_run(bench: &mut Bench<'_>) -> Verified {
    let dead = policy(AttemptLimit::AtMost(2), DELAY_MS, Disposition::DeadLetter)?;
    let job = bench.added_with(|spec| spec.policy = dead).await?;
    bench.take(job.id).await?;
    bench.pass(LEASE_MS);
    let stalled = bench.reclaim(9).await?;
    same!(ids(&stalled), [job.id], "what is reclaimed");
    let (attempt, failures) = (stalled[0].attempt, stalled[0].history.failures());
    same!((attempt, failures, stalled[0].failures.len()), (1, 1, 1), "the run counts and is remembered");
    same!((stalled[0].state, stalled[0].due), (State::Retryable, Some(bench.later(DELAY_MS))), "it waits its delay");
    bench.pass(DELAY_MS);
    bench.promote(9).await?;
    same!(bench.take(job.id).await?.attempt, 2, "the number of the next run");
    bench.pass(LEASE_MS);
    let ended = bench.reclaim(9).await?;
    same!(ended.iter().map(|job| (job.state, job.dead)).collect::<Vec<_>>(), [(State::Discarded, true)], "the end");
    Ok(())
}

pub(super) async fn ret_14_attempt_errors_and_next_retry_are_tracked(bench: &mut Bench<'_>) -> Verified {
    let mut expected: Vec<FailedRun> = Vec::new();
    let job = bench.added().await?;
    for attempt in 1..=3 {
        let since = bench.now();
        bench.pass(5);
        let held = bench.take(job.id).await?;
        same!(
            (held.times.available, held.times.started),
            (Some(since), Some(bench.now())),
            "the start of run {attempt}"
        );
        bench.pass(attempt);
        let failed = bench.fail(&held).await?;
        let ruled = decision(&held, bench.now());
        expected.push(failed_run(&held, bench.now(), ruled));
        same!(failed.failures, expected, "the failures after run {attempt}, the newest last");
        same!((failed.attempt, failed.history.failures()), (attempt, attempt), "the counts after run {attempt}");
        same!((failed.lease, failed.result), (None, None), "lease and result of a failed job");
        let next = (attempt < 3).then(|| bench.later(DELAY_MS));
        same!((failed.due, bench.next_wake().await?), (next, next), "the next retry after run {attempt}");
        bench.pass(DELAY_MS);
        bench.promote(9).await?;
    }
    let ended = bench.get(job.id).await?;
    same!(ended.due, None, "the next retry of a job that has ended");
    same!(ended.last_delay, Some(Span::from_millis(DELAY_MS)), "the delay of its last retry");
    Ok(())
}

pub(super) async fn ret_15_the_latest_failures_are_kept(bench: &mut Bench<'_>) -> Verified {
    let forever = policy(AttemptLimit::Unlimited, 0, Disposition::Discard)?;
    let job = bench.added_with(|spec| spec.policy = forever).await?;
    let runs = u32::try_from(KEPT_FAILURES).unwrap_or(u32::MAX).saturating_add(7);
    for _ in 0..runs {
        bench.fail(&bench.take(job.id).await?).await?;
        bench.promote(9).await?;
    }
    bench.restart();
    let job = bench.get(job.id).await?;
    let kept: Vec<u32> = job.failures.iter().map(|run| run.attempt).collect();
    same!(kept, (8..=runs).collect::<Vec<u32>>(), "the runs that are kept, the newest last");
    ensure!(KEPT_FAILURES >= 10, "OJS §10.1 asks for ten failures, {KEPT_FAILURES} are kept");
    same!((job.attempt, job.history.failures()), (runs, runs), "the counts, which forget nothing");
    Ok(())
}

pub(super) async fn ret_17_both_exhaustions(bench: &mut Bench<'_>) -> Verified {
    let mut dead = Vec::new();
    for disposition in [Disposition::Discard, Disposition::DeadLetter, Disposition::Fail] {
        let once = policy(AttemptLimit::AtMost(1), DELAY_MS, disposition)?;
        let held = bench.held_with(|spec| spec.policy = once).await?;
        bench.pass(1);
        let ended = bench.fail(&held).await?;
        let kept = disposition == Disposition::DeadLetter;
        let seen = (ended.state, ended.dead, ended.times.finished, ended.due);
        same!(seen, (State::Discarded, kept, Some(bench.now()), None), "a job that ends with {disposition}");
        dead.extend(kept.then_some(ended.id));
    }
    let listed = bench.list(Filter { dead: Some(true), ..Filter::default() }).await?;
    same!(ids(&listed.jobs), dead, "the dead letters");
    let others = bench.list(Filter { dead: Some(false), ..Filter::default() }).await?;
    same!(others.total, Some(2), "how many are none");
    Ok(())
}

pub(super) async fn fail_asks_for_the_decision_on_the_job_as_it_stands(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    bench.pass(5);
    let extended = bench.extend(held_by_token(&held)?, None).await??;
    let (seen, now) = (Arc::new(Mutex::new(Vec::new())), bench.now());
    let witness = Arc::clone(&seen);
    let report = RunOutcome::Failed(Box::new(move |job: &Job| {
        if let Ok(mut seen) = witness.lock() {
            seen.push(job.clone());
        }
        decision(job, now)
    }));
    bench.settle(held_by_token(&held)?, report).await??;
    let seen = seen.lock().map(|seen| seen.last().cloned()).unwrap_or_default();
    same!(seen, Some(extended), "the job that the ruling saw");
    Ok(())
}

pub(super) async fn fail_goes_on_from_what_the_policy_remembers(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    let mut expected = held.history.clone();
    expected.record(&decision(&held, bench.now()).verdict);
    same!(bench.fail(&held).await?.history, expected, "the history after one failure");
    Ok(())
}

pub(super) async fn fail_with_an_own_verdict_stops_whatever_the_policy_says(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    let ended = bench.settle(held_by_token(&held)?, stopped(Disposition::DeadLetter)).await??;
    same!((ended.state, ended.dead, ended.attempt), (State::Discarded, true, 1), "a job that its handler stopped");
    same!(ended.failures.len(), 1, "how many failures are remembered");
    Ok(())
}

pub(super) async fn fail_takes_the_due_time_of_the_decision(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    let (now, due) = (bench.now(), bench.later(33));
    let report = RunOutcome::Failed(Box::new(move |job| crate::Decision { due, ..decision(job, now) }));
    let failed = bench.settle(held_by_token(&held)?, report).await??;
    same!((failed.due, failed.last_delay), (Some(due), Some(Span::from_millis(DELAY_MS))), "due time and delay");
    Ok(())
}

pub(super) async fn fail_with_no_delay_waits_for_the_next_promotion(bench: &mut Bench<'_>) -> Verified {
    let at_once = policy(AttemptLimit::AtMost(2), 0, Disposition::Discard)?;
    let held = bench.held_with(|spec| spec.policy = at_once).await?;
    let failed = bench.fail(&held).await?;
    same!((failed.state, failed.due), (State::Retryable, Some(bench.now())), "a job that may run again at once");
    same!(ids(&bench.promote(9).await?), [held.id], "what is promoted at once");
    Ok(())
}

pub(super) async fn fail_that_asks_for_a_requeue_is_no_failure(bench: &mut Bench<'_>) -> Verified {
    let first = bench.held().await?;
    bench.fail(&first).await?;
    bench.pass(DELAY_MS);
    bench.promote(9).await?;
    let held = bench.take(first.id).await?;
    let now = bench.now();
    let failure = Failure::default().with_signal(Signal::RequeueAfter(Span::from_millis(50)));
    let report = RunOutcome::Failed(Box::new(move |job| decision_of(job, &failure, now)));
    let requeued = bench.settle(held_by_token(&held)?, report).await??;
    let expected = Job { state: State::Retryable, attempt: 1, due: Some(bench.later(50)), lease: None, ..held.clone() };
    same!(requeued, expected, "a requeued job, which counts and remembers nothing");
    bench.pass(50);
    bench.promote(9).await?;
    same!(bench.take(held.id).await?.attempt, 2, "the number of the next run");
    Ok(())
}

pub(super) async fn fail_by_a_deadline_and_by_report_are_ruled_alike(bench: &mut Bench<'_>) -> Verified {
    let (told, timed) = (bench.added().await?, bench.added().await?);
    let request = Claim { timeout: Some(Span::from_millis(40)), ..bench.request(&[QUEUE], 9) };
    same!(ids(&bench.claim_by(request).await?), [told.id, timed.id], "the two runs");
    bench.pass(40);
    let told = bench.settle(lease_ref(told.id, Token::None), failed(bench.now())).await??;
    let timed = bench.reclaim(9).await?.pop();
    let outcome = |job: &Job| job.failures.last().map(|run| (run.attempt, run.at, run.verdict));
    same!(timed.as_ref().and_then(outcome), outcome(&told), "the record of the two failures");
    same!(timed.map(|job| (job.state, job.due)), Some((told.state, told.due)), "state and due time of the two");
    let retried = outcome(&told).is_some_and(|(_, _, verdict)| matches!(verdict.outcome, Outcome::Retry { .. }));
    ensure!(retried, "the failure was not ruled on");
    Ok(())
}
