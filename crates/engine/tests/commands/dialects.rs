//! The five dialects from end to end: the delays of a job that fails again and again, and its last state.

use super::common::Seeded;
use super::harness::{Harness, failure_of, runs_until_ended, wait_ms, with_policy};
use redrive_engine::FailureReport;
use redrive_policy::dialect::Dialect;
use redrive_policy::{Outcome, Signal, Span};
use redrive_store::State;
use serde_json::{Value, json};

/// A case: the delays in milliseconds, as ranges, and the end.
struct DialectCase {
    dialect: Dialect,
    policy: Value,
    waits: &'static [(f64, f64)],
    reason: &'static str,
    dead: bool,
}

fn dialect_cases() -> Vec<DialectCase> {
    let case = |dialect, policy, waits, reason, dead| DialectCase { dialect, policy, waits, reason, dead };
    vec![
        case(
            Dialect::Ojs,
            json!({"max_attempts": 5, "initial_interval": "PT2S", "backoff_coefficient": 3.0, "max_interval": "PT20S",
                "jitter": false, "on_exhaustion": "dead_letter"}),
            &[(2e3, 2e3), (6e3, 6e3), (18e3, 18e3), (20e3, 20e3)],
            "max_attempts",
            true,
        ),
        case(Dialect::Ojs, json!({"max_attempts": 3}), &[(500.0, 1_500.0), (1e3, 3e3)], "max_attempts", false),
        case(
            Dialect::Ojs,
            json!({"max_attempts": 4, "backoff_strategy": "linear", "jitter": false}),
            &[(1e3, 1e3), (2e3, 2e3), (3e3, 3e3)],
            "max_attempts",
            false,
        ),
        case(
            Dialect::Azolla,
            json!({"stop": {"max_attempts": 4},
                "wait": {"strategy": "exponential", "initial_delay": 0.5, "multiplier": 4},
                "retry": {"include_errors": ["IoError"]}}),
            &[(500.0, 500.0), (2e3, 2e3), (8e3, 8e3)],
            "max_attempts",
            false,
        ),
        case(
            Dialect::Azolla,
            json!({"stop": {"max_attempts": 3}, "retry": {"include_errors": ["IoError"]}}),
            &[(0.0, 1e3), (0.0, 2e3)],
            "max_attempts",
            false,
        ),
        case(
            Dialect::Azolla,
            json!({"stop": {"max_attempts": null, "max_delay": 5}, "wait": {"strategy": "fixed", "delay": 2},
                "retry": {"include_errors": ["IoError"]}}),
            &[(2e3, 2e3), (2e3, 2e3)],
            "max_elapsed",
            false,
        ),
        case(
            Dialect::TaskHarbor,
            json!({"policy": {"base_delay": "1s", "max_delay": "3s", "multiplier": 2.0, "jitter": 0.2},
                "job": {"max_attempts": 4}}),
            &[(800.0, 1_200.0), (1_600.0, 2_400.0), (2_400.0, 3e3)],
            "max_attempts",
            true,
        ),
        case(Dialect::TaskHarbor, json!({"policy": null}), &[], "retries_disabled", true),
        case(
            Dialect::Exosphere,
            json!({"max_retries": 3, "strategy": "LINEAR", "backoff_factor": 1500, "max_delay": 4000}),
            &[(1_500.0, 1_500.0), (3e3, 3e3), (4e3, 4e3)],
            "max_attempts",
            false,
        ),
        case(
            Dialect::Exosphere,
            json!({"max_retries": 2, "strategy": "EXPONENTIAL_EQUAL_JITTER", "backoff_factor": 1000, "exponent": 3}),
            &[(500.0, 1e3), (1_500.0, 3e3)],
            "max_attempts",
            false,
        ),
        case(
            Dialect::Mwl,
            json!({"policies": [{"match": {"types": ["IoError"]}, "attempts": 4,
                "backoff": {"initial": "PT1S", "rate": 2.0, "max": "PT3S"}}]}),
            &[(1e3, 1e3), (2e3, 2e3), (3e3, 3e3)],
            "max_attempts",
            false,
        ),
        case(
            Dialect::Mwl,
            json!({"policies": [{"match": {"types": ["IoError"]}, "attempts": 3,
                "backoff": {"initial": "PT1S", "max": "PT5S", "jitter": "decorrelated"}}]}),
            &[(1e3, 3e3), (1e3, 5e3)],
            "max_attempts",
            false,
        ),
        case(
            Dialect::Mwl,
            json!({"policies": [{"match": {"types": ["Other"]}, "attempts": 9}]}),
            &[],
            "unmatched",
            false,
        ),
    ]
}

#[tokio::test]
async fn every_dialect_waits_and_stops_as_its_document_says() {
    for seed in 0..25 {
        for DialectCase { dialect, policy, waits, reason, dead } in dialect_cases() {
            let harness = Harness::seeded(seed);
            let id = harness.submit(with_policy(dialect, policy.clone())).await.id;
            let mut waited = Vec::new();
            runs_until_ended(&harness, id, async |harness, job, _| {
                let failed_at = job.times.started.expect("it started");
                let failed = harness.fail(job, failure_of(&["IoError"])).await;
                waited.extend(failed.due.map(|due| wait_ms(failed_at, due)));
            })
            .await;
            assert_eq!(waited.len(), waits.len(), "{dialect} {policy}: {waited:?}");
            for (waited, (low, high)) in waited.iter().zip(waits) {
                assert!((low - 0.001..=*high).contains(waited), "{dialect} {policy}: {waited} not in {low}..{high}");
            }
            let job = harness.job(id).await;
            let outcome = job.failures.last().expect("a failure").verdict.outcome;
            let Outcome::Stop { reason: why, .. } = outcome else { panic!("{outcome:?}") };
            assert_eq!((why.name(), job.state, job.dead), (reason, State::Discarded, dead), "{dialect} {policy}");
        }
    }
}

#[tokio::test]
async fn mwl_counts_for_each_rule_by_itself() {
    let policy = json!({"policies": [
        {"match": {"codes": ["Net.*"]}, "attempts": 3, "backoff": {"initial": "PT1S", "rate": 10.0}},
        {"match": {"codes": ["*"]}, "attempts": 3, "backoff": {"initial": "PT2S", "rate": 10.0}},
    ]});
    let harness = Harness::new();
    let id = harness.submit(with_policy(Dialect::Mwl, policy)).await.id;
    let codes = ["Net.Down", "Disk", "Disk", "Net.Slow", "Net.Down"];
    let mut waited = Vec::new();
    let runs = runs_until_ended(&harness, id, async |harness, job, runs| {
        let failed_at = job.times.started.expect("it started");
        let report = FailureReport { code: codes[runs as usize].to_owned(), ..failure_of(&["error"]) };
        waited.extend(harness.fail(job, report).await.due.map(|due| wait_ms(failed_at, due)));
    })
    .await;
    assert_eq!(waited, [1e3, 2e3, 20e3, 10e3]);
    assert_eq!(runs, 5, "the third failure of the first rule exhausts it");
}

#[tokio::test]
async fn exosphere_signals_end_a_branch_or_come_back_without_being_counted() {
    let harness = Harness::new();
    let id = harness.submit(with_policy(Dialect::Exosphere, json!({"max_retries": 0}))).await.id;
    let dice = Seeded::new(3);
    let runs = runs_until_ended(&harness, id, async |harness, job, runs| {
        let signal =
            if runs < 7 { Signal::RequeueAfter(Span::from_millis(dice.below(5_000) as u32)) } else { Signal::Prune };
        harness.fail(job, FailureReport { signal, ..failure_of(&["error"]) }).await;
    })
    .await;
    let job = harness.job(id).await;
    assert_eq!((runs, job.state, job.dead, job.history.failures()), (8, State::Discarded, false, 0));
}
