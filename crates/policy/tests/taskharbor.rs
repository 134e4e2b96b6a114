//! TaskHarbor, heading by heading, and the rows of the project's semantics for it.

#![cfg(feature = "lab")]
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{
    again, assert_field_accepts, assert_field_refuses, assert_refused, assert_same, assert_story, delays, largest_draw,
    policy, set, steps, story, warnings,
};
use redrive_policy::dialect::Dialect;
use redrive_policy::{AttemptLimit, Delegation, Disposition, Draw, Failure, History, Moment, Parts, Policy, decide};
use serde_json::{Value, json};

const TASKHARBOR: Dialect = Dialect::TaskHarbor;

fn failure() -> Value {
    json!({"type": "smtp"})
}

/// What a document decides, also if it leaves the timing to the worker.
fn decided(document: &Value) -> Parts {
    Parts { delegated: None, ..policy(TASKHARBOR, document).into_parts() }
}

/// The number of failures until the job is dead-lettered.
fn failures_until_dlq(document: &Value) -> usize {
    let story = story(TASKHARBOR, document, &again(failure(), 200));
    assert_eq!(story.last().map(String::as_str), Some("max_attempts dead_letter"), "{document}");
    story.len()
}

#[test]
fn taskharbor_what_max_attempts_means_5_fails_4_times_and_is_dlqd_on_the_5th() {
    let document = json!({"job": {"max_attempts": 5}, "policy": {"jitter": 0}});
    let expected = ["200", "400", "800", "1600", "max_attempts dead_letter"];
    assert_story(TASKHARBOR, &document, &again(failure(), 9), &expected);
}

#[test]
fn taskharbor_what_max_attempts_means_attempts_increment_on_each_failure() {
    let steps = steps(TASKHARBOR, &json!({"job": {"max_attempts": 4}}), &again(failure(), 9), 0.5);
    assert!(steps.iter().map(|step| step.verdict.attempt).eq(1..=4));
}

#[test]
fn taskharbor_what_retry_policy_means_next_delay_is_asked_for_attempts_plus_1() {
    let policy = policy(TASKHARBOR, &json!({"policy": {"jitter": 0, "max_delay": "1h"}}));
    for (attempts, ms) in [(0, 200.0), (1, 400.0), (2, 800.0), (9, 102_400.0)] {
        let history = History::with_failures(Moment::ORIGIN, attempts);
        let verdict = decide(&policy, &history, &Failure::of_type("smtp"), Moment::ORIGIN, Draw::LOWEST);
        assert_eq!(verdict.delay().map(|delay| delay.ms()), Some(ms), "attempts {attempts}");
        assert_eq!(verdict.attempt, attempts + 1);
    }
}

#[test]
fn taskharbor_default_behavior_parameters() {
    let defaults = json!({
        "policy": {"base_delay": "200ms", "max_delay": "5s", "multiplier": 2.0, "jitter": 0.20, "max_attempts": 25}
    });
    assert_eq!(decided(&json!({})), decided(&defaults));
    for key in ["base_delay", "max_delay", "multiplier", "jitter", "max_attempts"] {
        assert_same(TASKHARBOR, &common::without(&defaults, &format!("/policy/{key}")), &defaults);
    }
    assert_story(TASKHARBOR, &json!({}), &again(failure(), 2), &["160..240", "320..480"]);
}

#[test]
fn taskharbor_default_behavior_25_attempts_when_the_job_says_nothing() {
    assert_eq!(failures_until_dlq(&json!({})), 25);
    assert_eq!(failures_until_dlq(&json!({"job": {}})), 25);
}

#[test]
fn taskharbor_effective_max_attempts_table() {
    for (job, policy, effective) in [
        (json!({"max_attempts": 5}), json!({}), 5),
        (json!({}), json!({"max_attempts": 7}), 7),
        (json!({"max_attempts": 0}), json!({"max_attempts": 7}), 7),
        (json!({"max_attempts": -3}), json!({"max_attempts": 7}), 7),
        (json!({"max_attempts": 5}), json!({"max_attempts": 0}), 5),
        (json!({"max_attempts": 5}), json!({"max_attempts": -1}), 5),
        (json!({"max_attempts": 5}), json!({"max_attempts": 9}), 5),
        (json!({"max_attempts": 9}), json!({"max_attempts": 5}), 5),
        (json!({"max_attempts": 1}), json!({"max_attempts": 1}), 1),
    ] {
        assert_eq!(failures_until_dlq(&json!({"job": job, "policy": policy})), effective, "{job} {policy}");
    }
}

#[test]
fn taskharbor_dlq_rule_1_an_unrecoverable_error_skips_retries() {
    let unrecoverable = json!({"type": "smtp", "unrecoverable": true});
    assert_story(TASKHARBOR, &json!({}), &again(unrecoverable.clone(), 2), &["unrecoverable dead_letter"]);
    let later = [failure(), failure(), unrecoverable];
    assert_story(TASKHARBOR, &json!({}), &later, &["160..240", "320..480", "unrecoverable dead_letter"]);
    assert_story(TASKHARBOR, &json!({}), &[json!({"unrecoverable": false})], &["160..240"]);
}

#[test]
fn taskharbor_dlq_rule_2_next_attempts_at_the_effective_max() {
    for limit in [1, 2, 3, 10] {
        assert_eq!(failures_until_dlq(&json!({"job": {"max_attempts": limit}})), limit);
    }
}

#[test]
fn taskharbor_disabling_retries_with_no_policy() {
    for job in [json!({}), json!({"max_attempts": 5}), json!({"max_attempts": 0})] {
        let document = json!({"policy": null, "job": job});
        assert_eq!(policy(TASKHARBOR, &document).attempts, AttemptLimit::Disabled);
        assert_story(TASKHARBOR, &document, &again(failure(), 3), &["retries_disabled dead_letter"]);
    }
}

#[test]
fn taskharbor_disabling_retries_with_no_limit_on_either_side() {
    for (job, policy) in [(0, 0), (-1, 0), (0, -1), (-5, -5)] {
        let document = json!({"policy": {"max_attempts": policy}, "job": {"max_attempts": job}});
        assert_story(TASKHARBOR, &document, &again(failure(), 3), &["retries_disabled dead_letter"]);
    }
    let no_job = json!({"policy": {"max_attempts": 0}});
    assert_story(TASKHARBOR, &no_job, &[failure()], &["retries_disabled dead_letter"]);
}

#[test]
fn taskharbor_exponential_backoff_formula_capped_at_max_delay() {
    let document = json!({"policy": {"base_delay": "100ms", "multiplier": 3, "max_delay": "5s", "jitter": 0}});
    let expected = [100.0, 300.0, 900.0, 2700.0, 5000.0, 5000.0];
    assert_eq!(delays(TASKHARBOR, &document, failure(), 6, 0.5), expected);
}

#[test]
fn taskharbor_jitter_chooses_u_in_1_minus_j_to_1_plus_j() {
    let document = json!({"policy": {"base_delay": "1s", "jitter": 0.25}});
    for (draw, ms) in [(0.0, 750.0), (0.25, 875.0), (0.5, 1000.0), (0.75, 1125.0), (1.0, 1250.0)] {
        assert_eq!(delays(TASKHARBOR, &document, failure(), 1, draw), [ms], "draw {draw}");
    }
    assert!(delays(TASKHARBOR, &document, failure(), 1, largest_draw())[0] <= 1250.0);
    let widest = json!({"policy": {"base_delay": "1s", "jitter": 1}});
    assert_story(TASKHARBOR, &widest, &[failure()], &["0..2000"]);
}

#[test]
fn taskharbor_example_use_the_defaults_with_a_job_limit_of_5() {
    let expected = ["160..240", "320..480", "640..960", "1280..1920", "max_attempts dead_letter"];
    assert_story(TASKHARBOR, &json!({"job": {"max_attempts": 5}}), &again(failure(), 9), &expected);
}

#[test]
fn taskharbor_example_customize_retry_timing_and_cap() {
    let document = json!({
        "policy": {"base_delay": "200ms", "max_delay": "10s", "multiplier": 2.0, "jitter": 0.10, "max_attempts": 15}
    });
    let story = story(TASKHARBOR, &document, &again(failure(), 40));
    assert_eq!(story.len(), 15);
    assert_eq!(story[..3], ["180..220", "360..440", "720..880"]);
    assert_eq!(story[6..], [["9000..10000"; 8].as_slice(), &["max_attempts dead_letter"]].concat());
}

#[test]
fn taskharbor_example_global_cap_smaller_than_job_cap() {
    let document = json!({"policy": {"max_attempts": 10}, "job": {"max_attempts": 20}});
    assert_eq!(failures_until_dlq(&document), 10);
    assert_eq!(warnings(TASKHARBOR, &document), [("limit-capped", "/job/max_attempts".to_owned())]);
}

/// In nanoseconds of 64 bits, 200 ms × 2^36 does not fit any more: the original yields 0 there.
#[test]
fn taskharbor_attempt_37_saturates_where_the_original_overflows() {
    let capped = json!({"policy": {"jitter": 0, "max_attempts": 100}});
    assert_eq!(delays(TASKHARBOR, &capped, failure(), 99, 0.5)[30..], [5000.0; 69]);
    let jittered = json!({"policy": {"max_attempts": 100}});
    assert_eq!(story(TASKHARBOR, &jittered, &again(failure(), 99))[30..], ["4000..5000"; 69]);
    let wide = policy(TASKHARBOR, &json!({"policy": {"jitter": 0, "max_delay": "2562047h"}}));
    let raw = |retry| wide.rules[0].backoff.raw(retry).ms();
    assert_eq!(raw(36), 200.0 * 2_f64.powi(35));
    assert_eq!(raw(37), 200.0 * 2_f64.powi(36));
    assert_eq!(raw(u32::MAX), redrive_policy::Span::MAX.ms());
}

#[test]
fn semantics_taskharbor_the_document_as_a_file() {
    let full = json!({
        "policy": {"base_delay": "200ms", "max_delay": "5s", "multiplier": 2.0, "jitter": 0.2, "max_attempts": 25},
        "job": {"max_attempts": 5}
    });
    assert_eq!(decided(&full), decided(&json!({"job": {"max_attempts": 5}})));
    for document in [json!(null), json!([]), json!(3)] {
        assert_refused(TASKHARBOR, &document, &[""]);
    }
    assert_field_refuses(TASKHARBOR, "/job", &[json!(null), json!(5), json!([])]);
    assert_field_refuses(TASKHARBOR, "/policy", &[json!(5), json!([]), json!("nil")]);
    assert_field_refuses(TASKHARBOR, "/policy/base", &[json!("1s")]);
    assert_field_refuses(TASKHARBOR, "/job/attempts", &[json!(3)]);
    assert_field_refuses(TASKHARBOR, "/worker", &[json!({})]);
}

#[test]
fn semantics_taskharbor_durations_in_go_form() {
    for (text, ms) in [("0", 0.0), ("1.5s", 1500.0), ("1m30s", 90_000.0), ("1h0.5ms", 3_600_000.5), ("750us", 0.75)] {
        let document = json!({"policy": {"base_delay": text, "max_delay": "10h", "jitter": 0}});
        assert_eq!(delays(TASKHARBOR, &document, failure(), 1, 0.5), [ms], "{text}");
    }
    for field in ["/policy/base_delay", "/policy/max_delay"] {
        let refused = ["200", "-5s", "PT1S", "5 s", "5S", "1d", "", "s", "1e3s"].map(|text| json!(text));
        assert_field_refuses(TASKHARBOR, field, &refused);
        assert_field_refuses(TASKHARBOR, field, &[json!(200), json!(null), json!(true), json!([])]);
    }
}

#[test]
fn semantics_taskharbor_numbers() {
    assert_field_refuses(TASKHARBOR, "/policy/multiplier", &[json!(0.9), json!(0), json!("2"), json!(null)]);
    assert_field_accepts(TASKHARBOR, "/policy/multiplier", &[json!(1), json!(1.25)]);
    assert_field_refuses(TASKHARBOR, "/policy/jitter", &[json!(-0.1), json!(1.1), json!(true), json!("0.2")]);
    assert_field_accepts(TASKHARBOR, "/policy/jitter", &[json!(0), json!(1), json!(0.5)]);
    for field in ["/policy/max_attempts", "/job/max_attempts"] {
        assert_field_refuses(TASKHARBOR, field, &[json!(2.5), json!("5"), json!(null), json!(true)]);
        assert_field_accepts(TASKHARBOR, field, &[json!(0), json!(-1), json!(5), json!(5.0)]);
    }
}

#[test]
fn semantics_taskharbor_effective_limit_and_stop() {
    let document = json!({"policy": {"max_attempts": 8}, "job": {"max_attempts": 3}});
    assert_eq!(policy(TASKHARBOR, &document).attempts, AttemptLimit::AtMost(3));
    assert_eq!(failures_until_dlq(&document), 3, "retry n is allowed while n < 3");
}

#[test]
fn semantics_taskharbor_jitter_is_capped_again() {
    let document = json!({"policy": {"base_delay": "5s", "max_delay": "5s", "jitter": 0.2}});
    for (draw, ms) in [(0.0, 4000.0), (0.5, 5000.0), (0.75, 5000.0), (largest_draw(), 5000.0)] {
        assert_eq!(delays(TASKHARBOR, &document, failure(), 1, draw), [ms]);
    }
    assert_story(TASKHARBOR, &set(&document, "/policy/max_delay", json!("5.5s")), &[failure()], &["4000..5500"]);
}

#[test]
fn semantics_taskharbor_the_disposition_is_always_dead_letter() {
    let unrecoverable = json!({"unrecoverable": true});
    for (document, failure, expected) in [
        (json!({"job": {"max_attempts": 1}}), failure(), "max_attempts dead_letter"),
        (json!({"policy": null}), failure(), "retries_disabled dead_letter"),
        (json!({"policy": null}), unrecoverable.clone(), "unrecoverable dead_letter"),
        (json!({"job": {"max_attempts": 1}}), unrecoverable, "unrecoverable dead_letter"),
    ] {
        assert_story(TASKHARBOR, &document, &[failure], &[expected]);
    }
}

#[test]
fn semantics_taskharbor_the_operators_cap_only_tightens() {
    let job = policy(TASKHARBOR, &json!({"policy": {"max_attempts": 0}, "job": {"max_attempts": 20}}));
    assert_eq!(job.clone().tightened(AttemptLimit::AtMost(10), None).attempts, AttemptLimit::AtMost(10));
    assert_eq!(job.tightened(AttemptLimit::AtMost(30), None).attempts, AttemptLimit::AtMost(20));
}

#[test]
fn taskharbor_a_job_without_a_policy_leaves_the_timing_to_the_worker() {
    for (document, job_limit) in [
        (json!({}), None),
        (json!({"job": {}}), None),
        (json!({"job": {"max_attempts": 0}}), None),
        (json!({"job": {"max_attempts": 5}}), Some(5)),
        (json!({"job": {"max_attempts": 40}}), Some(40)),
    ] {
        assert_eq!(policy(TASKHARBOR, &document).delegated, Some(Delegation::new(job_limit)), "{document}");
    }
    for document in [json!({"policy": {}}), json!({"policy": null, "job": {"max_attempts": 5}})] {
        assert_eq!(policy(TASKHARBOR, &document).delegated, None, "{document}");
    }
}

#[test]
fn taskharbor_what_is_left_to_the_worker_is_written_and_read_again() {
    for document in [json!({}), json!({"job": {"max_attempts": 5}}), json!({"job": {"max_attempts": 40}})] {
        let policy = policy(TASKHARBOR, &document);
        let text = serde_json::to_string(&policy).expect("JSON");
        assert_eq!(serde_json::from_str::<Policy>(&text).expect("a policy"), policy);
        let writing = TASKHARBOR.write(&policy);
        assert_eq!((writing.value, writing.lost), (document, vec![]));
    }
    let own = policy(TASKHARBOR, &json!({"policy": {}}));
    assert!(!serde_json::to_string(&own).expect("JSON").contains("delegated"), "left out where it is absent");
    let lost = Dialect::Mwl.write(&policy(TASKHARBOR, &json!({}))).lost;
    let paths: Vec<&str> = lost.iter().map(|loss| loss.path.as_str()).collect();
    assert!(paths.contains(&"/delegated"), "{lost:?}");
}

/// "Stored with the job" and "worker-level": the rows of the table, with the job and the worker apart.
#[test]
fn taskharbor_effective_max_attempts_of_a_job_and_a_worker_apart() {
    for (job, worker, effective) in [
        (json!({"max_attempts": 5}), json!({}), AttemptLimit::AtMost(5)),
        (json!({}), json!({}), AttemptLimit::AtMost(25)),
        (json!({}), json!({"max_attempts": 7}), AttemptLimit::AtMost(7)),
        (json!({"max_attempts": 0}), json!({"max_attempts": 7}), AttemptLimit::AtMost(7)),
        (json!({"max_attempts": 5}), json!({"max_attempts": 0}), AttemptLimit::AtMost(5)),
        (json!({"max_attempts": 5}), json!({"max_attempts": -1}), AttemptLimit::AtMost(5)),
        (json!({"max_attempts": 40}), json!({"max_attempts": 100}), AttemptLimit::AtMost(40)),
        (json!({"max_attempts": 20}), json!({"max_attempts": 10}), AttemptLimit::AtMost(10)),
        (json!({"max_attempts": -1}), json!({"max_attempts": 0}), AttemptLimit::Unset),
        (json!({"max_attempts": 5}), json!(null), AttemptLimit::Disabled),
        (json!({}), json!(null), AttemptLimit::Disabled),
    ] {
        let stored = policy(TASKHARBOR, &json!({"job": job}));
        let met = stored.on_worker(&policy(TASKHARBOR, &json!({"policy": worker})));
        assert_eq!(met.attempts, effective, "{job} {worker}");
        assert_eq!((met.delegated, met.on_stop), (None, Disposition::DeadLetter));
    }
}

#[test]
fn taskharbor_the_workers_curve_cap_and_jitter_apply() {
    let worker = json!({"policy": {"base_delay": "1s", "max_delay": "3s", "multiplier": 3, "jitter": 0}});
    let worker = policy(TASKHARBOR, &worker);
    let met = policy(TASKHARBOR, &json!({"job": {"max_attempts": 4}})).on_worker(&worker);
    assert_eq!(met.rules, worker.rules);
    let delay = |failures| {
        let history = History::with_failures(Moment::ORIGIN, failures);
        decide(&met, &history, &Failure::of_type("smtp"), Moment::ORIGIN, Draw::LOWEST).delay().map(|delay| delay.ms())
    };
    assert_eq!([0, 1, 2, 3].map(delay), [Some(1_000.0), Some(3_000.0), Some(3_000.0), None]);
}

#[test]
fn taskharbor_a_worker_of_another_dialect_keeps_its_rules_and_the_job_its_fate() {
    let worker = policy(Dialect::Ojs, &json!({"max_attempts": 3, "non_retryable_errors": ["auth.*"]}));
    let met = policy(TASKHARBOR, &json!({"job": {"max_attempts": 9}})).on_worker(&worker);
    assert_eq!((met.attempts, met.on_stop), (AttemptLimit::AtMost(3), Disposition::DeadLetter));
    assert!(met.rule_for(&Failure::of_type("auth.expired")).is_err());
    let budget = policy(Dialect::Mwl, &json!({"policies": [{"match": {"codes": ["*"]}, "attempts": 2}]}));
    let plain = policy(Dialect::Ojs, &json!({"max_attempts": 5}));
    assert_eq!(plain.on_worker(&budget).attempts, AttemptLimit::AtMost(2), "a single budget limits all runs");
}

#[test]
fn semantics_taskharbor_a_worker_only_tightens_a_job_that_brings_its_own_policy() {
    let own = policy(Dialect::Ojs, &json!({"max_attempts": 5, "initial_interval": "PT9S"}));
    for (worker, effective) in [
        (json!({"max_attempts": 3, "base_delay": "1ms"}), AttemptLimit::AtMost(3)),
        (json!({"max_attempts": 8}), AttemptLimit::AtMost(5)),
        (json!({"max_attempts": 0}), AttemptLimit::AtMost(5)),
        (json!(null), AttemptLimit::Disabled),
    ] {
        let met = own.on_worker(&policy(TASKHARBOR, &json!({"policy": worker})));
        assert_eq!(met.attempts, effective, "{worker}");
        assert_eq!((&met.rules, met.on_stop), (&own.rules, Disposition::Discard), "{worker}");
    }
}

#[test]
fn semantics_taskharbor_a_cap_holds_whatever_the_worker_says() {
    let capped = |job: Value| policy(TASKHARBOR, &job).tightened(AttemptLimit::AtMost(10), None);
    for (job, worker, effective) in [
        (json!({}), json!({"max_attempts": 100}), AttemptLimit::AtMost(10)),
        (json!({"job": {"max_attempts": 50}}), json!({"max_attempts": 0}), AttemptLimit::AtMost(10)),
        (json!({"job": {"max_attempts": 4}}), json!({"max_attempts": 100}), AttemptLimit::AtMost(4)),
        (json!({}), json!({"max_attempts": 0}), AttemptLimit::Unset),
    ] {
        let met = capped(job.clone()).on_worker(&policy(TASKHARBOR, &json!({"policy": worker})));
        assert_eq!(met.attempts, effective, "{job} {worker}: a cap never grants a retry");
    }
}

#[test]
fn semantics_taskharbor_a_policy_of_the_queue_with_the_limit_of_the_job() {
    let queue = policy(Dialect::Ojs, &json!({"max_attempts": 8}));
    let met = queue.with_limit_of(&policy(TASKHARBOR, &json!({"job": {"max_attempts": 5}})));
    assert_eq!((met.attempts, met.on_stop, met.delegated), (AttemptLimit::AtMost(5), Disposition::Discard, None));
    assert_eq!(met.rules, queue.rules);
    assert_eq!(queue.with_limit_of(&policy(TASKHARBOR, &json!({}))), queue);
}
