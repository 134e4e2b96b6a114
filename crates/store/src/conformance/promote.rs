//! Jobs whose time has come, and jobs whose time is over.

use super::bench::{Bench, DELAY_MS, QUEUE, ids, policy};
use super::{Verified, same};
use crate::{Filter, Job, Missing, NewJob, Spec, Start, State};
use redrive_policy::{AttemptLimit, Disposition, Moment};
use std::sync::Arc;

pub(super) async fn promote_goes_by_due_time_and_stops_at_the_limit(bench: &mut Bench<'_>) -> Verified {
    let mut added = Vec::new();
    for due_ms in [30, 10, 20, 10] {
        added.push(scheduled(bench, due_ms).await?);
    }
    bench.pass(30);
    same!(bench.promote(0).await?, Vec::new(), "a limit of none");
    same!(ids(&bench.promote(1).await?), [added[1]], "the first, by name among equals");
    same!(ids(&bench.promote(2).await?), [added[3], added[2]], "the next two");
    same!(ids(&bench.promote(9).await?), [added[0]], "the rest");
    same!(bench.promote(9).await?, Vec::new(), "what is left");
    Ok(())
}

pub(super) async fn promote_makes_the_job_available_from_now(bench: &mut Bench<'_>) -> Verified {
    let id = scheduled(bench, 10).await?;
    let before = bench.get(id).await?;
    bench.pass(25);
    let promoted = bench.promote(9).await?;
    let mut expected = Job { state: State::Available, due: None, ..before };
    expected.times.available = Some(bench.now());
    same!(promoted, [expected], "a job whose time has come");
    same!(bench.get(id).await?, promoted[0], "the same job, read back");
    Ok(())
}

pub(super) async fn promote_is_not_stopped_by_a_paused_queue(bench: &mut Bench<'_>) -> Verified {
    let id = scheduled(bench, 10).await?;
    bench.store().pause(QUEUE.into(), true, Missing::Create, bench.now()).await?;
    bench.pass(10);
    same!(ids(&bench.promote(9).await?), [id], "what is promoted in a paused queue");
    same!(bench.claim(9).await?, Vec::new(), "what can be claimed there");
    Ok(())
}

pub(super) async fn promote_discards_what_has_expired_in_every_waiting_state(bench: &mut Bench<'_>) -> Verified {
    let expires = bench.later(100);
    let mut waiting = Vec::new();
    for start in [Start::Scheduled(bench.later(1_000)), Start::Pending, Start::Available] {
        let new = bench.job_with(|spec| spec.expires = Some(expires));
        waiting.push(bench.add(NewJob { start, ..new }).await?.id);
    }
    let failed = bench.held_with(|spec| (spec.expires, spec.priority) = (Some(expires), 1)).await?;
    waiting.push(bench.fail(&failed).await?.id);
    let active = bench.held_with(|spec| (spec.expires, spec.priority) = (Some(expires), 1)).await?;
    bench.pass_to_just_before(expires);
    same!(bench.promote(9).await?, Vec::new(), "what is discarded a microsecond early");
    bench.pass_to(expires);
    let discarded = bench.promote(9).await?;
    same!(ids(&discarded), waiting, "what is discarded");
    for job in discarded {
        let seen = (job.state, job.dead, job.due, job.times.finished);
        same!(seen, (State::Discarded, false, None, Some(expires)), "an expired job");
        same!(bench.get(job.id).await?, job, "the same job, read back");
    }
    same!(bench.get(active.id).await?, active, "a run that has started");
    Ok(())
}

pub(super) async fn promote_keeps_what_failed_and_expired_as_its_policy_says(bench: &mut Bench<'_>) -> Verified {
    for on_stop in [Disposition::DeadLetter, Disposition::Discard, Disposition::Fail] {
        let expires = bench.later(2 * DELAY_MS);
        let policy = policy(AttemptLimit::AtMost(9), DELAY_MS, on_stop)?;
        // Each of the jobs that run comes before those that wait.
        let spec = |priority: i32| {
            let policy = Arc::clone(&policy);
            move |spec: &mut Spec| (spec.policy, spec.expires, spec.priority) = (policy, Some(expires), priority)
        };
        let unclaimed = bench.held_with(spec(1)).await?;
        let unclaimed = bench.fail(&unclaimed).await?.id;
        bench.pass(DELAY_MS);
        same!(ids(&bench.promote(9).await?), [unclaimed], "a retry that no worker takes");
        let released = bench.held_with(spec(2)).await?;
        let released = bench.release(&released, 0, 9).await??.id;
        let retryable = bench.held_with(spec(3)).await?;
        bench.pass_to_just_before(expires);
        let retryable = bench.fail(&retryable).await?.id;
        let untouched = bench.added_with(spec(1)).await?.id;
        bench.pass_to(expires);
        let kept = on_stop == Disposition::DeadLetter;
        let expected = [(unclaimed, kept), (released, false), (retryable, kept), (untouched, false)];
        let seen: Vec<_> = bench.promote(9).await?.iter().map(|job| (job.id, job.dead)).collect();
        same!(seen, expected, "what expires with {on_stop}, and whether it is a dead letter");
        let dead = bench.list(Filter { dead: Some(true), ..Filter::default() }).await?.jobs;
        same!(ids(&dead), if kept { vec![retryable, unclaimed] } else { vec![] }, "the dead letters");
        for (id, _) in expected {
            same!(bench.store().remove(id).await??.state, State::Discarded, "the state of what expired");
        }
    }
    Ok(())
}

pub(super) async fn promote_discards_first_and_counts_both_against_the_limit(bench: &mut Bench<'_>) -> Verified {
    let due = scheduled(bench, 10).await?;
    let (early, late) = (bench.later(20), bench.later(15));
    let second = bench.added_with(|spec| spec.expires = Some(early)).await?.id;
    let first = bench.added_with(|spec| spec.expires = Some(late)).await?.id;
    bench.pass(20);
    same!(ids(&bench.promote(1).await?), [first], "the first that expired");
    same!(ids(&bench.promote(2).await?), [second, due], "the other, and what is due");
    Ok(())
}

pub(super) async fn promote_discards_what_is_both_due_and_expired(bench: &mut Bench<'_>) -> Verified {
    let expires = bench.later(20);
    let new = bench.job_with(|spec| spec.expires = Some(expires));
    let start = Start::Scheduled(bench.later(10));
    let job = bench.add(NewJob { start, ..new }).await?;
    bench.pass(20);
    let moved = bench.promote(9).await?;
    same!(moved.iter().map(|job| (job.id, job.state)).collect::<Vec<_>>(), [(job.id, State::Discarded)], "what moved");
    Ok(())
}

async fn scheduled(bench: &mut Bench<'_>, due_ms: u32) -> Result<crate::JobId, super::Flaw> {
    let due: Moment = bench.later(due_ms);
    let new = bench.job();
    Ok(bench.add(NewJob { start: Start::Scheduled(due), ..new }).await?.id)
}
