//! Jobs that are released.

use super::bench::{Bench, DELAY_MS, ids};
use super::{Verified, same};
use crate::{Job, Refusal, State};

pub(super) async fn release_at_once_puts_the_job_at_the_end_of_the_line(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    let other = bench.added().await?;
    bench.pass(5);
    let released = bench.release(&held, 0, 1).await??;
    let mut expected = Job { state: State::Available, attempt: 0, releases: 1, lease: None, ..held };
    expected.times.available = Some(bench.now());
    same!(released, expected, "a job that was given back");
    same!(bench.get(released.id).await?, expected, "the same job, read back");
    same!(ids(&bench.claim(9).await?), [other.id, released.id], "the line");
    Ok(())
}

pub(super) async fn release_for_later_waits_its_time(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    let released = bench.release(&held, 50, 1).await??;
    let due = bench.later(50);
    let expected = Job { state: State::Retryable, attempt: 0, releases: 1, lease: None, due: Some(due), ..held };
    same!(released, expected, "a job that was snoozed");
    bench.pass_to_just_before(due);
    same!(bench.promote(9).await?, Vec::new(), "what is promoted early");
    bench.pass_to(due);
    same!(ids(&bench.promote(9).await?), [released.id], "what is promoted at its time");
    same!(bench.take(released.id).await?.attempt, 1, "the number of the run");
    Ok(())
}

pub(super) async fn release_too_often_is_refused_and_the_run_goes_on(bench: &mut Bench<'_>) -> Verified {
    let job = bench.added().await?;
    for releases in 1..=2 {
        let released = bench.release(&bench.take(job.id).await?, 0, 2).await??;
        same!(released.releases, releases, "how often it was given back");
    }
    let held = bench.take(job.id).await?;
    for delay_ms in [0, 5] {
        let refused = bench.release(&held, delay_ms, 2).await?;
        same!(refused, Err(Refusal::TooManyReleases(2)), "the third time with a wait of {delay_ms} ms");
    }
    same!(bench.get(job.id).await?, held, "the job, which is still held");
    same!(bench.release(&held, 0, 0).await?, Err(Refusal::TooManyReleases(0)), "where none is allowed");
    bench.release(&held, 0, 3).await??;
    Ok(())
}

pub(super) async fn release_is_counted_anew_after_a_failure(bench: &mut Bench<'_>) -> Verified {
    let job = bench.added().await?;
    bench.release(&bench.take(job.id).await?, 0, 1).await??;
    let failed = bench.fail(&bench.take(job.id).await?).await?;
    same!(failed.releases, 0, "how often it was given back since its failure");
    bench.pass(DELAY_MS);
    bench.promote(9).await?;
    let released = bench.release(&bench.take(job.id).await?, 0, 1).await??;
    same!(released.releases, 1, "how often it was given back since then");
    Ok(())
}

pub(super) async fn release_leaves_what_the_policy_remembers(bench: &mut Bench<'_>) -> Verified {
    let failed = bench.job_in(State::Retryable).await?;
    bench.pass(DELAY_MS);
    bench.promote(9).await?;
    let held = bench.take(failed.id).await?;
    let released = bench.release(&held, 9, 1).await??;
    let remembered = |job: &Job| (job.history.clone(), job.failures.clone(), job.last_delay, job.attempt);
    same!(remembered(&released), remembered(&failed), "history, failures, delay and runs, as after the failure");
    Ok(())
}
