//! RET-07: errors that are never retried; RET-08: codes of the handler; and `retryable` of a worker,
//! in each dialect.

use super::harness::{Harness, failure, failure_of, with_ojs, with_policy};
use redrive_engine::{FailureReport, Submission};
use redrive_policy::dialect::Dialect;
use redrive_policy::{Disposition, Mismatch, Outcome, Reason, Signal};
use redrive_store::{Job, State};
use serde_json::{Value, json};

/// A job after a first run with this failure.
async fn after(submission: Submission, report: FailureReport) -> Job {
    let harness = Harness::new();
    harness.submit(submission).await;
    let claimed = harness.claim().await;
    harness.fail(&claimed, report).await
}

fn reason(job: &Job) -> Option<Reason> {
    match job.failures.last().expect("it is in the history").verdict.outcome {
        Outcome::Stop { reason, .. } => Some(reason),
        Outcome::Retry { .. } => None,
    }
}

fn listed(on_exhaustion: &str) -> Submission {
    let policy = json!({"non_retryable_errors": ["FatalError", "auth.*"], "on_exhaustion": on_exhaustion});
    with_ojs(policy)
}

#[tokio::test]
async fn ret_07_every_name_of_an_error_is_compared_with_the_list() {
    for (names, entry) in [
        (&["FatalError"][..], 0),
        (&["handler_error", "FatalError"], 0),
        (&["handler_error", "x", "auth.token.expired"], 1),
        (&["auth.x", "y"], 1),
    ] {
        // Also if the worker says that it can be retried: two client libraries always do.
        for retryable in [None, Some(true), Some(false)] {
            let job = after(listed("discard"), FailureReport { retryable, ..failure_of(names) }).await;
            assert_eq!((job.state, job.dead, job.attempt), (State::Discarded, false, 1), "{names:?} {retryable:?}");
            if retryable != Some(false) {
                assert_eq!(reason(&job), Some(Reason::NonRetryable(Mismatch::Excluded { entry })), "{names:?}");
            }
        }
    }
}

#[tokio::test]
async fn ret_07_a_near_miss_is_retried() {
    for names in
        [&["fatalerror"][..], &["auth"], &["authx.y"], &["external.auth.x"], &["FatalError2", " FatalError"], &[]]
    {
        let job = after(listed("discard"), failure_of(names)).await;
        assert_eq!((job.state, reason(&job)), (State::Retryable, None), "{names:?}");
    }
}

#[tokio::test]
async fn ret_07_what_is_never_retried_goes_where_exhausted_jobs_go() {
    let job = after(listed("dead_letter"), failure_of(&["FatalError"])).await;
    assert_eq!((job.state, job.dead), (State::Discarded, true));
}

#[tokio::test]
async fn ret_08_the_handler_comes_first() {
    use Disposition::{DeadLetter, Discard};
    for on_exhaustion in ["discard", "dead_letter"] {
        // At the limit and not, for an error that is on the list and one that is not.
        for max_attempts in [1, 5] {
            for name in ["FatalError", "other"] {
                let policy = json!({"max_attempts": max_attempts, "on_exhaustion": on_exhaustion,
                    "non_retryable_errors": ["FatalError"]});
                for (disposition, dead) in [(Discard, false), (DeadLetter, true)] {
                    let report = FailureReport { signal: Signal::Stop(disposition), ..failure_of(&[name]) };
                    let job = after(with_ojs(policy.clone()), report).await;
                    assert_eq!((job.state, job.dead), (State::Discarded, dead), "{policy} {name} {disposition}");
                    assert_eq!(reason(&job), Some(Reason::Handler));
                }
                // RETRY is the policy as usual.
                let job = after(with_ojs(policy.clone()), failure_of(&[name])).await;
                let stops = max_attempts == 1 || name == "FatalError";
                let state = if stops { State::Discarded } else { State::Retryable };
                assert_eq!((job.state, job.dead), (state, stops && on_exhaustion == "dead_letter"), "{policy} {name}");
            }
        }
    }
}

#[tokio::test]
async fn not_retryable_is_obeyed_if_the_policy_leaves_it_open() {
    let mwl = |matching: Value| json!({"policies": [{"match": matching, "attempts": 5}]});
    let azolla = json!({"retry": {"include_errors": ["external.timeout"]}});
    for (dialect, policy, said, state) in [
        (Dialect::Ojs, json!({}), Some(false), State::Discarded),
        (Dialect::Ojs, json!({}), Some(true), State::Retryable),
        (Dialect::Ojs, json!({}), None, State::Retryable),
        (Dialect::TaskHarbor, json!({}), Some(false), State::Discarded),
        (Dialect::Exosphere, json!({}), Some(false), State::Discarded),
        // Azolla §4: the two lists decide alone.
        (Dialect::Azolla, azolla, Some(false), State::Retryable),
        (Dialect::Mwl, mwl(json!({"types": ["external.timeout"]})), Some(false), State::Retryable),
        (Dialect::Mwl, mwl(json!({"retryable": true})), Some(true), State::Retryable),
        (Dialect::Mwl, mwl(json!({"retryable": true})), Some(false), State::Discarded),
        (Dialect::Mwl, mwl(json!({"retryable": true})), None, State::Discarded),
        (Dialect::Mwl, mwl(json!({"retryable": false})), Some(false), State::Retryable),
    ] {
        let report = FailureReport { retryable: said, ..failure() };
        let job = after(with_policy(dialect, policy.clone()), report).await;
        assert_eq!(job.state, state, "{dialect} {policy}, retryable: {said:?}");
    }
}

#[tokio::test]
async fn every_name_of_an_error_is_compared_with_lists_of_what_to_retry() {
    let azolla = json!({"retry": {"include_errors": ["IoError"], "exclude_errors": ["DiskFull"]}});
    for (names, state) in [
        (&["IoError"][..], State::Retryable),
        (&["handler_error", "IoError"], State::Retryable),
        (&["IoError", "DiskFull"], State::Discarded),
        (&["DiskFull", "IoError"], State::Discarded),
        (&["handler_error"], State::Discarded),
    ] {
        let job = after(with_policy(Dialect::Azolla, azolla.clone()), failure_of(names)).await;
        assert_eq!(job.state, state, "{names:?}");
    }
}

#[tokio::test]
async fn a_rule_with_several_conditions_finds_the_name_that_meets_them_all() {
    let matching = [
        json!({"types": ["IoError"], "codes": ["Provider.*"]}),
        json!({"types": ["IoError"], "retryable": true}),
        json!({"types": ["IoError"], "codes": ["*"], "retryable": true}),
    ];
    for matching in matching {
        for names in [&["IoError"][..], &["handler_error", "IoError"]] {
            let policy = json!({"policies": [{"match": matching, "attempts": 3}]});
            let report =
                FailureReport { code: "Provider.Call.Http".to_owned(), retryable: Some(true), ..failure_of(names) };
            let job = after(with_policy(Dialect::Mwl, policy.clone()), report).await;
            assert_eq!(job.state, State::Retryable, "{policy} {names:?}");
        }
    }
}

#[tokio::test]
async fn unrecoverable_permanent_and_pruned_stop_each_in_their_way() {
    for (signal, dead, name) in [
        (Signal::Unrecoverable, true, "unrecoverable"),
        (Signal::Permanent, false, "non_retryable"),
        (Signal::Prune, false, "pruned"),
    ] {
        let job = after(with_ojs(json!({})), FailureReport { signal, ..failure() }).await;
        assert_eq!((job.state, job.dead), (State::Discarded, dead), "{signal:?}");
        assert_eq!(reason(&job).map(|reason| reason.name()), Some(name));
    }
}
