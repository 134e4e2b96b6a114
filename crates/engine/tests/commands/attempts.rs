//! RET-01: a limit on attempts is an exact bound on the runs of a generation, however each of them ends.

use super::common::Seeded;
use super::harness::{Harness, failure, job, ms, runs_until_ended, secs, with_ojs};
use redrive_engine::Submission;
use redrive_policy::{Outcome, Reason};
use redrive_store::{Job, Redrive, State};
use serde_json::json;

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Fails,
    GoesSilent,
    TakesTooLong,
    Released,
    Snoozed,
}

impl End {
    const COUNTED: [Self; 3] = [Self::Fails, Self::GoesSilent, Self::TakesTooLong];
    const ALL: [Self; 5] = [Self::Fails, Self::GoesSilent, Self::TakesTooLong, Self::Released, Self::Snoozed];

    async fn happen(self, harness: &Harness, job: &Job) {
        let lease = job.lease.as_ref().expect("a lease");
        match self {
            Self::Fails => drop(harness.fail(job, failure()).await),
            Self::GoesSilent => harness.at(lease.until).await,
            Self::TakesTooLong => {
                // The worker sends heartbeats throughout, and the run still ends.
                let deadline = lease.deadline.expect("a time limit");
                harness.clock.advance(secs(20));
                harness.extend(job, Some(secs(600))).await.expect("the run is this worker's");
                harness.at(deadline).await;
            }
            Self::Released => drop(harness.release(job, ms(0.0)).await.expect("not too often")),
            Self::Snoozed => drop(harness.release(job, secs(5)).await.expect("not too often")),
        }
    }
}

fn limited(max_attempts: u32) -> Submission {
    let policy = json!({"max_attempts": max_attempts, "initial_interval": "PT1S"});
    Submission { timeout: Some(secs(60)), lease: Some(secs(30)), ..with_ojs(policy) }
}

fn stopped_at_limit(job: &Job, limit: u32) -> bool {
    let last = job.failures.last().expect("a failure");
    matches!(last.verdict.outcome, Outcome::Stop { reason: Reason::MaxAttempts { limit: at }, .. } if at == limit)
}

#[tokio::test]
async fn ret_01_the_bound_is_exact_for_every_way_to_fail() {
    for limit in 0..=6 {
        for end in End::COUNTED {
            let harness = Harness::new();
            let id = harness.submit(limited(limit)).await.id;
            let runs = runs_until_ended(&harness, id, async |harness, job, _| end.happen(harness, job).await).await;
            assert_eq!(runs, limit.max(1), "limit {limit}, every run {end:?}");
            let job = harness.job(id).await;
            assert_eq!((job.state, job.attempt), (State::Discarded, limit.max(1)));
            assert!(stopped_at_limit(&job, limit), "{job:?}");
        }
    }
}

#[tokio::test]
async fn ret_01_the_bound_is_exact_for_any_mixture_and_counts_no_release() {
    for seed in 0..200 {
        let (harness, dice) = (Harness::seeded(seed), Seeded::new(seed));
        let limit = dice.below(7) as u32;
        let id = harness.submit(limited(limit)).await.id;
        let mut counted = 0;
        runs_until_ended(&harness, id, async |harness, job, _| {
            let end = *dice.pick(&End::ALL);
            counted += u32::from(End::COUNTED.contains(&end));
            end.happen(harness, job).await;
        })
        .await;
        assert_eq!(counted, limit.max(1), "seed {seed}, limit {limit}");
        assert!(stopped_at_limit(&harness.job(id).await, limit), "seed {seed}");
    }
}

#[tokio::test]
async fn ret_01_every_generation_has_the_whole_number_of_attempts() {
    let harness = Harness::new();
    let id = harness.submit(limited(3)).await.id;
    for generation in 0..4 {
        let runs = runs_until_ended(&harness, id, async |harness, job, runs| {
            assert_eq!((job.attempt, job.generation), (runs + 1, generation));
            End::COUNTED[runs as usize].happen(harness, job).await;
        })
        .await;
        assert_eq!(runs, 3, "generation {generation}");
        harness.engine.redrive(id, Redrive::default()).await.expect("it has ended");
    }
    assert_eq!(harness.job(id).await.failures.len(), 12, "all generations are remembered");
}

#[tokio::test]
async fn ret_01_success_at_the_last_attempt_is_success() {
    let harness = Harness::new();
    let id = harness.submit(limited(3)).await.id;
    let runs = runs_until_ended(&harness, id, async |harness, job, runs| match runs {
        2 => drop(harness.done(job).await),
        _ => End::Fails.happen(harness, job).await,
    })
    .await;
    let job = harness.job(id).await;
    assert_eq!((runs, job.state, job.attempt, job.failures.len()), (3, State::Completed, 3, 2));
}

#[tokio::test]
async fn ret_01_workers_that_race_get_each_job_once() {
    let harness = Harness::new();
    harness.engine.submit(vec![job(); 30]).await.expect("stored");
    let (a, b, c) = tokio::join!(harness.claim_some(12), harness.claim_some(12), harness.claim_some(12));
    let mut ids: Vec<_> = [a, b, c].iter().flatten().map(|job| job.id).collect();
    assert_eq!(ids.len(), 30);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 30);
}
