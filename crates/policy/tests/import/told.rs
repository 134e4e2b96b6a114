//! What the importers say: losses, warnings, problems.

use crate::read;
use redrive_policy::import::Source::{self, BullMq, Celery, Faktory, Oban, Sidekiq, Temporal};
use serde_json::{Value, json};

/// Settings, and what is told about them.
type Case<T> = (Source, Value, &'static [T]);

#[test]
fn losses_are_told_where_they_arise() {
    let cases: Vec<Case<&str>> = vec![
        (Temporal, json!({"nonRetryableErrorTypes": ["Gone"]}), &[]),
        (
            Temporal,
            json!({"non_retryable_error_types": ["Gone", "TemporalTimeout:Heartbeat"]}),
            &["/non_retryable_error_types/1"],
        ),
        (Sidekiq, json!({}), &[""]),
        (Sidekiq, json!({"retry": 0}), &[]),
        (Sidekiq, json!({"retry": false, "retry_queue": "slow"}), &[]),
        (Sidekiq, json!({"retry_for": 60, "retry_queue": "slow"}), &["", "/retry_for", "/retry_queue"]),
        (
            Sidekiq,
            json!({"retry": 0, "dead_max_jobs": 5, "dead_timeout_in_seconds": 60}),
            &["/dead_max_jobs", "/dead_timeout_in_seconds"],
        ),
        (Celery, json!({}), &[""]),
        (Celery, json!({"autoretry_for": []}), &["/autoretry_for"]),
        (Celery, json!({"autoretry_for": ["Exception"]}), &[]),
        (Celery, json!({"autoretry_for": ["Exception"], "retry_backoff": true}), &[""]),
        (
            Celery,
            json!({"autoretry_for": ["IOError"], "dont_autoretry_for": ["Gone"], "retry_backoff": 2,
                "retry_jitter": true, "retry_kwargs": {"queue": "slow"}}),
            &["/retry_jitter", "/retry_kwargs/queue", "/autoretry_for", "/dont_autoretry_for"],
        ),
        (
            Celery,
            json!({"autoretry_for": ["Exception"], "retry_kwargs": {"eta": "2030-01-01T00:00:00"}}),
            &["/retry_kwargs/eta"],
        ),
        (BullMq, json!({"attempts": 3, "backoff": {"type": "fixed", "delay": 5, "jitter": 0.5}}), &[]),
        (BullMq, json!({"removeOnFail": 1000}), &["/removeOnFail"]),
        (BullMq, json!({"removeOnFail": {"age": 86400}}), &["/removeOnFail"]),
        (Faktory, json!({"retry": 3}), &[""]),
        (Faktory, json!({"retry": 0}), &[]),
        (Faktory, json!({"retry": -1}), &[]),
        (Oban, json!({"max_attempts": 1}), &[]),
        (Oban, json!({"max_attempts": 20}), &[""]),
        (Oban, json!({"max_attempts": 21}), &["", "/max_attempts"]),
    ];
    for (source, value, paths) in cases {
        let lost = read(source, &value).lost;
        let found: Vec<&str> = lost.iter().map(|loss| loss.path.as_str()).collect();
        assert_eq!(found, paths, "{source} {value}");
    }
}

#[test]
fn warnings_name_what_has_no_effect_or_another_than_it_looks() {
    let cases: Vec<Case<(&str, &str)>> = vec![
        (Sidekiq, json!({"retry": 3, "queue": "low"}), &[("not-about-retries", "/queue")]),
        (Sidekiq, json!({"retry": -1}), &[("negative-limit", "/retry")]),
        (Sidekiq, json!({"retry": true, "retry_for": 60}), &[]),
        (Sidekiq, json!({"retry": 3, "retry_for": 60}), &[("no-effect", "/retry")]),
        (Sidekiq, json!({"retry": false, "dead": true}), &[("no-effect", "/dead")]),
        (Sidekiq, json!({"retry": 3, "max_retries": 9}), &[("no-effect", "/max_retries")]),
        (Celery, json!({"retry_backoff": true}), &[("no-effect", "/retry_backoff")]),
        (
            Celery,
            json!({"autoretry_for": ["Exception"], "retry_backoff": 2.5, "default_retry_delay": 9}),
            &[("rounded-by-celery", "/retry_backoff"), ("no-effect", "/default_retry_delay")],
        ),
        (
            Celery,
            json!({"autoretry_for": ["Exception"], "retry_jitter": true, "max_retries": -1}),
            &[("negative-limit", "/max_retries"), ("no-effect", "/retry_jitter")],
        ),
        (
            Celery,
            json!({"autoretry_for": ["Exception"], "retry_backoff": 700, "retry_policy": {}}),
            &[("not-about-retries", "/retry_policy"), ("capped-from-the-start", "/retry_backoff")],
        ),
        (BullMq, json!({"backoff": 100}), &[("no-effect", "/backoff")]),
        (BullMq, json!({"attempts": 3}), &[("immediate-retries", "/attempts")]),
        (BullMq, json!({"delay": 100}), &[("not-about-retries", "/delay")]),
        (Faktory, json!({"retry": 1}), &[]),
        (Oban, json!({"queue": "low"}), &[("not-about-retries", "/queue")]),
    ];
    for (source, value, wanted) in cases {
        let warnings = read(source, &value).warnings;
        let found: Vec<(&str, &str)> = warnings.iter().map(|warning| (warning.code, warning.path.as_str())).collect();
        assert_eq!(found, wanted, "{source} {value}");
    }
}

#[test]
fn every_problem_is_listed_with_its_path() {
    let cases: Vec<Case<&str>> = vec![
        (
            Temporal,
            json!({"initialInterval": 1, "backoffCoefficient": "2", "maximumInterval": "-5s", "maximumAttempts": -1,
                "nonRetryableErrorTypes": "Gone", "retryPolicy": {}}),
            &[
                "/retryPolicy",
                "/maximumAttempts",
                "/nonRetryableErrorTypes",
                "/initialInterval",
                "/backoffCoefficient",
                "/maximumInterval",
            ],
        ),
        (Temporal, json!({"backoffCoefficient": 0.99}), &["/backoffCoefficient"]),
        (Temporal, json!({"backoffCoefficient": -1}), &["/backoffCoefficient"]),
        (Temporal, json!({"maximumInterval": "999ms"}), &["/maximumInterval"]),
        (Temporal, json!({"initial_interval": "10s", "maximum_interval": "9s"}), &["/maximum_interval"]),
        (Temporal, json!({"initialInterval": "1s", "initial_interval": "1s"}), &["/initial_interval"]),
        (Temporal, json!({"maximumAttempts": 2_147_483_648_u32}), &["/maximumAttempts"]),
        (Temporal, json!({"maximumAttempts": 2.5}), &["/maximumAttempts"]),
        (
            Temporal,
            json!({"nonRetryableErrorTypes": [7, "Gone", "TemporalTimeout:startToClose", "TemporalTimeout:"]}),
            &["/nonRetryableErrorTypes/0", "/nonRetryableErrorTypes/2", "/nonRetryableErrorTypes/3"],
        ),
        (
            Sidekiq,
            json!({"retry": "5", "max_retries": -1, "retry_for": "1h", "dead": 0, "retry_queue": 7, "retries": 5,
                "dead_max_jobs": true}),
            &["/retries", "/retry", "/max_retries", "/retry_for", "/dead", "/retry_queue", "/dead_max_jobs"],
        ),
        (Sidekiq, json!({"retry": 5.0}), &["/retry"]),
        (Sidekiq, json!({"retry": 2.5}), &["/retry"]),
        (Sidekiq, json!({"retry": 4_294_967_295_u32}), &["/retry"]),
        (Sidekiq, json!({"retry": []}), &["/retry"]),
        (Sidekiq, json!({"retry_for": 1_000_000_001}), &["/retry_for"]),
        (
            Celery,
            json!({"max_retries": "3", "default_retry_delay": -1, "autoretry_for": ["IOError", 5, ""],
                "dont_autoretry_for": null, "retry_backoff": "yes", "retry_backoff_max": -1, "retry_jitter": 1,
                "retry_kwargs": {"max_retries": true, "countdown": "1m", "when": 1}}),
            &[
                "/retry_kwargs/when",
                "/max_retries",
                "/retry_kwargs/max_retries",
                "/autoretry_for/1",
                "/autoretry_for/2",
                "/dont_autoretry_for",
                "/retry_backoff_max",
                "/retry_kwargs/countdown",
                "/default_retry_delay",
                "/retry_backoff",
                "/retry_jitter",
            ],
        ),
        (Celery, json!({"max_retries": 4_294_967_295_u32}), &["/max_retries"]),
        (Celery, json!({"max_retries": 1.5}), &["/max_retries"]),
        (Celery, json!({"autoretry_for": "Exception"}), &["/autoretry_for"]),
        (Celery, json!({"retry_kwargs": null}), &["/retry_kwargs"]),
        (Celery, json!({"retry_backoff": null}), &["/retry_backoff"]),
        (
            BullMq,
            json!({"attempts": "3", "backoff": {"delay": -2, "jitter": 1.5, "maxDelay": 5}, "removeOnFail": "no",
                "retries": 3}),
            &[
                "/retries",
                "/attempts",
                "/backoff/maxDelay",
                "/backoff/type",
                "/backoff/jitter",
                "/backoff/delay",
                "/removeOnFail",
            ],
        ),
        (BullMq, json!({"backoff": {"type": "custom"}}), &["/backoff/type"]),
        (BullMq, json!({"backoff": "fixed"}), &["/backoff"]),
        (BullMq, json!({"backoff": -5}), &["/backoff"]),
        (BullMq, json!({"attempts": -1}), &["/attempts"]),
        (BullMq, json!({"attempts": 2.5}), &["/attempts"]),
        (BullMq, json!({"removeOnFail": -1}), &["/removeOnFail"]),
        (
            BullMq,
            json!({"removeOnFail": {"count": 1.5, "age": "1d", "max": 5}}),
            &["/removeOnFail/max", "/removeOnFail/age", "/removeOnFail/count"],
        ),
        (Faktory, json!({"retry": true, "retries": 5}), &["/retries", "/retry"]),
        (Faktory, json!({"retry": "5"}), &["/retry"]),
        (Faktory, json!({"retry": 0.5}), &["/retry"]),
        (Faktory, json!({"retry": 4_294_967_295_u32}), &["/retry"]),
        (Oban, json!({"max_attempts": 0, "max_retries": 3}), &["/max_retries", "/max_attempts"]),
        (Oban, json!({"max_attempts": null}), &["/max_attempts"]),
        (Oban, json!({"max_attempts": "20"}), &["/max_attempts"]),
    ];
    for (source, value, paths) in cases {
        let problems = source.read(&value).expect_err("must be refused").0;
        let found: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(found, paths, "{source} {value}");
        for problem in problems {
            let told = ["found ", "unknown field", "missing", "under its other name"];
            assert!(told.iter().any(|words| problem.message.contains(words)), "{}", problem.message);
        }
    }
    for source in Source::ALL {
        for value in [json!(null), json!(3), json!([{}]), json!("retry")] {
            let problems = source.read(&value).expect_err("not an object").0;
            assert_eq!(problems.len(), 1);
            assert_eq!(problems[0].path, "");
        }
    }
}

#[test]
fn messages_show_the_way_out() {
    let message = |source: Source, value: Value| source.read(&value).expect_err("refused").to_string();
    let text = message(Sidekiq, json!({"retry": "5"}));
    assert!(text.starts_with("/retry: found \"5\"; allowed is true, false, null or a whole number"), "{text}");
    let text = message(Temporal, json!({"retryPolicy": {}}));
    assert!(text.ends_with("pass only what is inside of it"), "{text}");
    let text = message(Temporal, json!({"maximumInterval": "500ms"}));
    assert!(text.contains("found 500 ms; allowed is at least initialInterval, which is 1 s (its default)"), "{text}");
    let text = message(BullMq, json!({"backoff": {"type": "linear", "delay": 5}}));
    assert!(text.contains("a strategy of your own is code"), "{text}");
    let text = message(Celery, json!({"retry_backof": true}));
    assert!(text.contains("did you mean \"retry_backoff\"?"), "{text}");
}
