//! Jobs that are released.

use super::harness::{DELAY_MS, Harness, ids};
use super::{CaseResult, same};
use crate::{Job, Refusal, State};

pub(super) async fn release_without_a_delay_puts_the_job_at_the_end_of_the_queue(
    harness: &mut Harness<'_>,
) -> CaseResult {
    let claimed = harness.claimed().await?;
    let other = harness.enqueue_one().await?;
    harness.advance(5);
    let released = harness.release(&claimed, 0, 1).await??;
    let mut expected = Job { state: State::Available, attempt: 0, releases: 1, lease: None, ..claimed };
    expected.times.available = Some(harness.now());
    same!(released, expected, "a released job");
    same!(harness.get(released.id).await?, expected, "the same job, read back");
    same!(ids(&harness.claim(9).await?), [other.id, released.id], "the queue");
    Ok(())
}

pub(super) async fn release_with_a_delay_waits_until_it_is_due(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    let released = harness.release(&claimed, 50, 1).await??;
    let due = harness.later(50);
    let expected = Job { state: State::Retryable, attempt: 0, releases: 1, lease: None, due: Some(due), ..claimed };
    same!(released, expected, "a job that was snoozed");
    harness.advance_to_just_before(due);
    same!(harness.promote(9).await?, Vec::new(), "what is promoted early");
    harness.advance_to(due);
    same!(ids(&harness.promote(9).await?), [released.id], "what is promoted at its time");
    same!(harness.claim_next(released.id).await?.attempt, 1, "the number of the run");
    Ok(())
}

pub(super) async fn release_too_often_is_refused_and_the_run_goes_on(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.enqueue_one().await?;
    for releases in 1..=2 {
        let released = harness.release(&harness.claim_next(job.id).await?, 0, 2).await??;
        same!(released.releases, releases, "how often it was released");
    }
    let claimed = harness.claim_next(job.id).await?;
    for delay_ms in [0, 5] {
        let refused = harness.release(&claimed, delay_ms, 2).await?;
        same!(refused, Err(Refusal::TooManyReleases(2)), "the third time with a wait of {delay_ms} ms");
    }
    same!(harness.get(job.id).await?, claimed, "the job, which is still leased");
    same!(harness.release(&claimed, 0, 0).await?, Err(Refusal::TooManyReleases(0)), "where none is allowed");
    harness.release(&claimed, 0, 3).await??;
    Ok(())
}

pub(super) async fn releases_are_counted_from_zero_after_a_failure(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.enqueue_one().await?;
    harness.release(&harness.claim_next(job.id).await?, 0, 1).await??;
    let failed = harness.fail(&harness.claim_next(job.id).await?).await?;
    same!(failed.releases, 0, "how often it was released since its failure");
    harness.advance(DELAY_MS);
    harness.promote(9).await?;
    let released = harness.release(&harness.claim_next(job.id).await?, 0, 1).await??;
    same!(released.releases, 1, "how often it was released since then");
    Ok(())
}

pub(super) async fn release_leaves_the_history_of_the_policy(harness: &mut Harness<'_>) -> CaseResult {
    let failed = harness.job_in(State::Retryable).await?;
    harness.advance(DELAY_MS);
    harness.promote(9).await?;
    let claimed = harness.claim_next(failed.id).await?;
    let released = harness.release(&claimed, 9, 1).await??;
    let remembered = |job: &Job| (job.history.clone(), job.failures.clone(), job.last_delay, job.attempt);
    same!(remembered(&released), remembered(&failed), "history, failures, delay and runs, as after the failure");
    Ok(())
}
