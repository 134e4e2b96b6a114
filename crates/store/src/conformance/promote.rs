//! Jobs whose time has come, and jobs whose time is over.

use super::harness::{DELAY_MS, Harness, QUEUE, ids, policy};
use super::{CaseResult, same};
use crate::{Filter, Job, Missing, NewJob, Spec, Start, State};
use redrive_policy::{AttemptLimit, Disposition, Moment};
use std::sync::Arc;

pub(super) async fn promote_goes_by_due_time_and_stops_at_the_limit(harness: &mut Harness<'_>) -> CaseResult {
    let mut added = Vec::new();
    for due_ms in [30, 10, 20, 10] {
        added.push(scheduled(harness, due_ms).await?);
    }
    harness.advance(30);
    same!(harness.promote(0).await?, Vec::new(), "a limit of none");
    same!(ids(&harness.promote(1).await?), [added[1]], "the first, by id among equals");
    same!(ids(&harness.promote(2).await?), [added[3], added[2]], "the next two");
    same!(ids(&harness.promote(9).await?), [added[0]], "the rest");
    same!(harness.promote(9).await?, Vec::new(), "what is left");
    Ok(())
}

pub(super) async fn promote_makes_the_job_available_from_now(harness: &mut Harness<'_>) -> CaseResult {
    let id = scheduled(harness, 10).await?;
    let before = harness.get(id).await?;
    harness.advance(25);
    let promoted = harness.promote(9).await?;
    let mut expected = Job { state: State::Available, due: None, ..before };
    expected.times.available = Some(harness.now());
    same!(promoted, [expected], "a job whose time has come");
    same!(harness.get(id).await?, promoted[0], "the same job, read back");
    Ok(())
}

pub(super) async fn promote_is_not_stopped_by_a_paused_queue(harness: &mut Harness<'_>) -> CaseResult {
    let id = scheduled(harness, 10).await?;
    harness.store().pause(QUEUE.into(), true, Missing::Create, harness.now()).await?;
    harness.advance(10);
    same!(ids(&harness.promote(9).await?), [id], "what is promoted in a paused queue");
    same!(harness.claim(9).await?, Vec::new(), "what can be claimed there");
    Ok(())
}

pub(super) async fn promote_discards_what_has_expired_in_every_waiting_state(harness: &mut Harness<'_>) -> CaseResult {
    let expires = harness.later(100);
    let mut waiting = Vec::new();
    for start in [Start::Scheduled(harness.later(1_000)), Start::Pending, Start::Available] {
        let new = harness.job_with(|spec| spec.expires = Some(expires));
        waiting.push(harness.enqueue_new(NewJob { start, ..new }).await?.id);
    }
    let failed = harness.claimed_with(|spec| (spec.expires, spec.priority) = (Some(expires), 1)).await?;
    waiting.push(harness.fail(&failed).await?.id);
    let active = harness.claimed_with(|spec| (spec.expires, spec.priority) = (Some(expires), 1)).await?;
    harness.advance_to_just_before(expires);
    same!(harness.promote(9).await?, Vec::new(), "what is discarded a microsecond early");
    harness.advance_to(expires);
    let discarded = harness.promote(9).await?;
    same!(ids(&discarded), waiting, "what is discarded");
    for job in discarded {
        let seen = (job.state, job.dead, job.due, job.times.finished);
        same!(seen, (State::Discarded, false, None, Some(expires)), "an expired job");
        same!(harness.get(job.id).await?, job, "the same job, read back");
    }
    same!(harness.get(active.id).await?, active, "a run that has started");
    Ok(())
}

pub(super) async fn promote_ends_what_failed_and_expired_as_its_policy_says(harness: &mut Harness<'_>) -> CaseResult {
    for on_stop in [Disposition::DeadLetter, Disposition::Discard, Disposition::Fail] {
        let expires = harness.later(2 * DELAY_MS);
        let policy = policy(AttemptLimit::AtMost(9), DELAY_MS, on_stop)?;
        // Each of the jobs that run comes before those that wait.
        let spec = |priority: i32| {
            let policy = Arc::clone(&policy);
            move |spec: &mut Spec| (spec.policy, spec.expires, spec.priority) = (policy, Some(expires), priority)
        };
        let unclaimed = harness.claimed_with(spec(1)).await?;
        let unclaimed = harness.fail(&unclaimed).await?.id;
        harness.advance(DELAY_MS);
        same!(ids(&harness.promote(9).await?), [unclaimed], "a retry that no worker takes");
        let released = harness.claimed_with(spec(2)).await?;
        let released = harness.release(&released, 0, 9).await??.id;
        let retryable = harness.claimed_with(spec(3)).await?;
        harness.advance_to_just_before(expires);
        let retryable = harness.fail(&retryable).await?.id;
        let untouched = harness.enqueue_with(spec(1)).await?.id;
        harness.advance_to(expires);
        let kept = on_stop == Disposition::DeadLetter;
        let expected = [(unclaimed, kept), (released, false), (retryable, kept), (untouched, false)];
        let seen: Vec<_> = harness.promote(9).await?.iter().map(|job| (job.id, job.dead)).collect();
        same!(seen, expected, "what expires with {on_stop}, and whether it is a dead letter");
        let dead = harness.list(Filter { dead: Some(true), ..Filter::default() }).await?.jobs;
        same!(ids(&dead), if kept { vec![retryable, unclaimed] } else { vec![] }, "the dead letters");
        for (id, _) in expected {
            same!(harness.store().remove(id).await??.state, State::Discarded, "the state of what expired");
        }
    }
    Ok(())
}

pub(super) async fn promote_discards_first_and_counts_both_against_the_limit(harness: &mut Harness<'_>) -> CaseResult {
    let due = scheduled(harness, 10).await?;
    let (early, late) = (harness.later(20), harness.later(15));
    let second = harness.enqueue_with(|spec| spec.expires = Some(early)).await?.id;
    let first = harness.enqueue_with(|spec| spec.expires = Some(late)).await?.id;
    harness.advance(20);
    same!(ids(&harness.promote(1).await?), [first], "the first that expired");
    same!(ids(&harness.promote(2).await?), [second, due], "the other, and what is due");
    Ok(())
}

pub(super) async fn promote_discards_what_is_both_due_and_expired(harness: &mut Harness<'_>) -> CaseResult {
    let expires = harness.later(20);
    let new = harness.job_with(|spec| spec.expires = Some(expires));
    let start = Start::Scheduled(harness.later(10));
    let job = harness.enqueue_new(NewJob { start, ..new }).await?;
    harness.advance(20);
    let moved = harness.promote(9).await?;
    same!(moved.iter().map(|job| (job.id, job.state)).collect::<Vec<_>>(), [(job.id, State::Discarded)], "what moved");
    Ok(())
}

async fn scheduled(harness: &mut Harness<'_>, due_ms: u32) -> Result<crate::JobId, super::Violation> {
    let due: Moment = harness.later(due_ms);
    let new = harness.job();
    Ok(harness.enqueue_new(NewJob { start: Start::Scheduled(due), ..new }).await?.id)
}
