//! What verbs say about what happened: enough for a listener that sees nothing but transitions.

use super::harness::{DELAY_MS, Harness, LEASE_MS, decision, decision_of, failed, lease_of, policy, stopped};
use super::{CaseResult, Violation, ensure, same};
use crate::{
    AttemptOutcome, Blob, Decision, EventKind, Job, JobEnd, LeaseRef, NewJob, Overdue, Redrive, Settled, Start, State,
    Transition,
};
use redrive_policy::{AttemptLimit, Disposition, Failure, Policy, Signal, Span};
use std::sync::Arc;

pub(super) async fn transition_of_success_names_the_run_and_its_result(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    harness.advance(7);
    let result: Blob = Arc::from(*b"42");
    let done = ended(harness, lease_of(&claimed)?, AttemptOutcome::Done(Some(Arc::clone(&result)))).await?;
    same!(done, expected(harness, &claimed, EventKind::Completed).await?, "success");
    same!((done.generation(), done.attempt), (0, 1), "which run ended");
    same!(done.worker(), claimed.lease.as_ref().map(|lease| &lease.worker), "whose run it was");
    same!(done.run_time(), Some(Span::from_millis(7)), "how long it took");
    same!((done.failure(), done.decided_by(), done.delay()), (None, None, None), "what was decided");
    same!(done.end(), Some(JobEnd::Completed { result: Some(&result) }), "how the job ended");
    Ok(())
}

pub(super) async fn transition_of_success_is_returned_once(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    let done = ended(harness, lease_of(&claimed)?, AttemptOutcome::Done(None)).await?.job;
    for restarted in [false, true] {
        if restarted {
            harness.restart();
        }
        harness.advance(5);
        let again = harness.settled(lease_of(&claimed)?, AttemptOutcome::Done(None)).await?;
        same!(again, Ok(Settled::Repeated(done.clone())), "success that is reported again");
    }
    Ok(())
}

pub(super) async fn transition_of_a_failure_has_its_record(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    harness.advance(3);
    let verdict = decision(&claimed, harness.now()).verdict;
    let retried = ended(harness, lease_of(&claimed)?, failed(harness.now())).await?;
    let unlike = Transition { verdict: Some(verdict), ..expected(harness, &claimed, EventKind::RetryScheduled).await? };
    same!(retried, unlike, "a failure with a retry");
    same!(retried.failure(), retried.job.failures.last(), "its record");
    same!(retried.failure().map(|run| (run.attempt, run.verdict)), Some((1, verdict)), "what the record says");
    same!(retried.delay(), Some(Span::from_millis(DELAY_MS)), "the wait");
    same!(retried.decided_by(), Some(&*claimed.spec.policy), "the policy that decided");
    same!(retried.end(), None, "how the job ended");

    harness.advance(DELAY_MS);
    harness.promote(9).await?;
    let claimed = harness.claim_next(claimed.id).await?;
    let dead = ended(harness, lease_of(&claimed)?, stopped(Disposition::DeadLetter)).await?;
    let verdict = dead.job.failures.last().map(|run| run.verdict);
    same!(
        dead,
        Transition { verdict, ..expected(harness, &claimed, EventKind::Discarded).await? },
        "a failure that stops"
    );
    same!((dead.attempt, dead.delay()), (2, None), "which run ended, and the wait");
    let Some(JobEnd::Failed { failure, dead: true }) = dead.end() else {
        return Err(Violation::new(format!("a dead letter ended as {:?}", dead.end())));
    };
    same!(Some(failure), dead.failure(), "the last failure");
    Ok(())
}

pub(super) async fn transition_of_a_failure_names_the_policy_that_the_worker_brought(
    harness: &mut Harness<'_>,
) -> CaseResult {
    let brought = policy(AttemptLimit::AtMost(9), 50, Disposition::Discard)?;
    let claimed = harness.claimed().await?;
    let (now, by_worker) = (harness.now(), Arc::clone(&brought));
    let decide = move |job: &Job| Decision { policy: Some(Arc::clone(&by_worker)), ..decision(job, now) };
    let failed = ended(harness, lease_of(&claimed)?, AttemptOutcome::Failed(Box::new(decide))).await?;
    same!(failed.policy, Some(Arc::clone(&brought)), "the policy besides the job's own");
    same!(failed.decided_by(), Some::<&Policy>(&brought), "the policy that decided");
    same!(harness.get(claimed.id).await?.spec, claimed.spec, "the spec of the job, which stays");
    Ok(())
}

pub(super) async fn transition_of_a_release_names_the_run_that_was_released(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    harness.advance(4);
    let release = |delay_ms| AttemptOutcome::Released { delay: Span::from_millis(delay_ms), most: 9 };
    let released = ended(harness, lease_of(&claimed)?, release(0)).await?;
    same!(released, expected(harness, &claimed, EventKind::Released).await?, "a run that was released");
    same!((released.attempt, released.job.attempt), (1, 0), "which run ended, and how many count");
    same!((released.delay(), released.run_time()), (None, Some(Span::from_millis(4))), "its times");

    let claimed = harness.claim_next(claimed.id).await?;
    let snoozed = ended(harness, lease_of(&claimed)?, release(50)).await?;
    same!(snoozed, expected(harness, &claimed, EventKind::Snoozed).await?, "a run that was snoozed");
    same!((snoozed.attempt, snoozed.delay()), (1, Some(Span::from_millis(50))), "which run ended, and the wait");
    same!((snoozed.failure(), snoozed.end()), (None, None), "what failed, and how the job ended");
    Ok(())
}

pub(super) async fn transition_of_a_requeue_has_a_verdict_and_no_failure(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    let now = harness.now();
    let asked = Failure::default().with_signal(Signal::RequeueAfter(Span::from_millis(20)));
    let verdict = decision_of(&claimed, &asked, now).verdict;
    let report = AttemptOutcome::Failed(Box::new(move |job| decision_of(job, &asked, now)));
    let requeued = ended(harness, lease_of(&claimed)?, report).await?;
    let unlike = Transition { verdict: Some(verdict), ..expected(harness, &claimed, EventKind::Snoozed).await? };
    same!(requeued, unlike, "a run that asked to be requeued");
    same!((requeued.failure(), requeued.delay()), (None, verdict.delay()), "what failed, and the wait");
    Ok(())
}

pub(super) async fn transition_of_an_overdue_run_says_why(harness: &mut Harness<'_>) -> CaseResult {
    let stalled = harness.claimed().await?;
    let timed_out = harness.claimed_with(|spec| spec.timeout = Some(Span::from_millis(LEASE_MS))).await?;
    harness.advance(LEASE_MS);
    let now = harness.now();
    let ended = harness.store().reclaim(&|job: &Job, _| decision(job, now), 9, now).await?;
    let mut unlike = Vec::new();
    for (claimed, why) in [(&stalled, Overdue::Stalled), (&timed_out, Overdue::TimedOut)] {
        let verdict = Some(decision(claimed, now).verdict);
        let failed = expected(harness, claimed, EventKind::RetryScheduled).await?;
        unlike.push(Transition { verdict, overdue: Some(why), ..failed });
    }
    same!(ended, unlike, "two runs that were ended by the server");
    same!(ended[0].worker(), stalled.lease.as_ref().map(|lease| &lease.worker), "whose run it was");
    Ok(())
}

pub(super) async fn transition_of_a_promotion_tells_due_from_expired(harness: &mut Harness<'_>) -> CaseResult {
    let (soon, late) = (harness.later(10), harness.later(20));
    let new = harness.job();
    let scheduled = harness.enqueue_new(NewJob { start: Start::Scheduled(late), ..new }).await?;
    let retried = harness.claimed().await?;
    let retried = harness.fail(&retried).await?;
    let failed = harness.claimed_with(|spec| spec.expires = Some(soon)).await?;
    let failed = harness.fail(&failed).await?;
    let waiting = harness.enqueue_with(|spec| spec.expires = Some(soon)).await?;
    harness.advance(DELAY_MS);
    let moved = harness.store().promote(&crate::Held::new(), 9, harness.now()).await?;
    let mut unlike = Vec::new();
    for (job, event) in [
        (&failed, EventKind::Expired),
        (&waiting, EventKind::Expired),
        (&scheduled, EventKind::Due),
        (&retried, EventKind::Due),
    ] {
        unlike.push(expected(harness, job, event).await?);
    }
    same!(moved, unlike, "what was promoted");
    same!(moved.iter().map(|moved| moved.attempt).collect::<Vec<_>>(), [1, 0, 0, 1], "the attempts so far");
    let last_failure = failed.failures.last();
    let dead = moved[0].job.dead;
    same!(moved[0].end(), Some(JobEnd::Expired { last_failure, dead }), "how the first job ended");
    same!(moved[1].end(), Some(JobEnd::Expired { last_failure: None, dead: false }), "how the second job ended");
    ensure!(moved[2..].iter().all(|due| due.end().is_none()), "a job ended because it was due");
    Ok(())
}

pub(super) async fn transition_of_a_cancellation_names_the_state_before(harness: &mut Harness<'_>) -> CaseResult {
    for state in State::ALL.into_iter().filter(|state| !state.is_terminal()) {
        let job = harness.job_in(state).await?;
        harness.advance(3);
        let cancelled = harness.store().cancel(job.id, harness.now()).await??;
        same!(cancelled, expected(harness, &job, EventKind::Cancelled).await?, "a {state} job, cancelled");
        same!(cancelled.lease, job.lease, "the lease that ended");
        let last_failure = job.failures.last();
        same!(cancelled.end(), Some(JobEnd::Cancelled { last_failure }), "how the {state} job ended");
    }
    Ok(())
}

pub(super) async fn transition_of_an_activation_and_of_a_redrive(harness: &mut Harness<'_>) -> CaseResult {
    let pending = harness.job_in(State::Pending).await?;
    harness.advance(3);
    let activated = harness.store().activate(pending.id, harness.now()).await??;
    same!(activated, expected(harness, &pending, EventKind::Activated).await?, "a pending job, activated");
    for state in State::ALL.into_iter().filter(|state| state.is_terminal()) {
        let job = harness.job_in(state).await?;
        harness.advance(3);
        let redriven = harness.store().redrive(job.id, Redrive::default(), harness.now()).await??;
        let unlike = Transition { attempt: 0, ..expected(harness, &job, EventKind::Redriven).await? };
        same!(redriven, unlike, "a {state} job, redriven");
        same!((redriven.generation(), redriven.end()), (1, None), "its generation, and how it ended");
        let cancelled = harness.store().cancel(job.id, harness.now()).await??;
        let no_failure = Some(JobEnd::Cancelled { last_failure: None });
        same!(cancelled.end(), no_failure, "the last failure of an earlier generation is not one of this");
    }
    Ok(())
}

/// Ends a run, which must be an event.
async fn ended(harness: &Harness<'_>, lease_ref: LeaseRef, report: AttemptOutcome) -> Result<Transition, Violation> {
    match harness.settled(lease_ref, report).await?? {
        Settled::Transition(transition) => Ok(transition),
        Settled::Repeated(job) => Err(Violation::new(format!("the end of a run was taken for a repetition: {job:?}"))),
    }
}

/// What has just happened to a job, from how it was before and what the store shows of it now.
async fn expected(harness: &Harness<'_>, before: &Job, event: EventKind) -> Result<Transition, Violation> {
    let job = harness.get(before.id).await?;
    let transition = Transition::new(job, event, Some(before.state), harness.now());
    Ok(Transition { attempt: before.attempt, lease: before.lease.clone(), ..transition })
}
