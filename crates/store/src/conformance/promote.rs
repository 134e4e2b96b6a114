//! Jobs whose time has come, and jobs whose time is over.

use super::bench::{Bench, QUEUE, ids};
use super::{Verified, same};
use crate::{Job, NewJob, Start, State};
use redrive_policy::Moment;

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
    bench.store().pause(QUEUE.into(), true, bench.now()).await?;
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
