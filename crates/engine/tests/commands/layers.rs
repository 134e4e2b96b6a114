//! RET-09: which policy applies if none is given; RET-10: what is left out comes from the
//! defaults; and operators' caps, which only tighten.

use super::harness::{Harness, START, failure, job, runs_until_ended, secs, wait_ms, with_ojs, with_policy};
use redrive_engine::{JobPolicy, Layer, OperatorCap, PolicyDocument, Submission};
use redrive_policy::dialect::Dialect;
use redrive_policy::{AttemptLimit, Outcome, Policy, Reason};
use redrive_store::State;
use serde_json::{Value, json};
use std::collections::HashMap;

fn layer(dialect: Dialect, value: Value) -> Layer {
    Layer::read(PolicyDocument { dialect, value }).expect("valid")
}

async fn runs_of(harness: &Harness, submission: Submission) -> u32 {
    let id = harness.submit(submission).await.id;
    runs_until_ended(harness, id, async |harness, job, _| drop(harness.fail(job, failure()).await)).await
}

#[tokio::test]
async fn ret_09_without_a_policy_there_are_three_attempts_one_and_two_seconds_apart_and_then_nothing() {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for seed in 0..500 {
        let harness = Harness::seeded(seed);
        let id = harness.submit(job()).await.id;
        let runs = runs_until_ended(&harness, id, async |harness, job, runs| {
            let failed_at = job.times.started.expect("it started");
            let failed = harness.fail(job, failure()).await;
            let waits = failed.due.map(|due| wait_ms(failed_at, due));
            if runs == 0 { first.extend(waits) } else { second.extend(waits) }
        })
        .await;
        let ended = harness.job(id).await;
        assert_eq!((runs, ended.state, ended.dead), (3, State::Discarded, false));
    }
    for (waits, middle) in [(first, 1_000.0), (second, 2_000.0)] {
        assert_eq!(waits.len(), 500);
        assert!(waits.iter().all(|wait| (0.5 * middle..1.5 * middle).contains(wait)));
        // Uniform on an interval as long as its middle: the standard error of 500 is 1.3 % of it.
        let mean = waits.iter().sum::<f64>() / 500.0;
        assert!((mean / middle - 1.0).abs() < 0.06, "{mean} ms on average in place of {middle}");
        let low = waits.iter().filter(|wait| **wait < middle).count();
        assert!((200..=300).contains(&low), "{low} of 500 below the middle");
    }
}

#[tokio::test]
async fn ret_09_the_job_counts_before_its_type_before_its_queue_before_the_server() {
    let harness = Harness::with(|settings| {
        let layers = &mut settings.layers;
        layers.server = layer(Dialect::TaskHarbor, json!({"policy": {"max_attempts": 2}}));
        layers.queues.insert("slow".into(), layer(Dialect::Exosphere, json!({"max_retries": 3})));
        layers.kinds.insert("a.b".into(), layer(Dialect::Ojs, json!({"max_attempts": 6})));
    });
    let in_queue = |submission| Submission { queue: "slow".into(), ..submission };
    let own = || JobPolicy::Own(PolicyDocument { dialect: Dialect::Ojs, value: json!({"max_attempts": 1}) });
    for (submission, attempts) in [
        (job(), 2),
        (in_queue(job()), 4),
        (in_queue(Submission { kind: "a.b".into(), ..job() }), 6),
        (Submission { kind: "a.b".into(), policy: own(), ..job() }, 1),
    ] {
        let kept = harness.submit(submission).await;
        assert_eq!(kept.spec.policy.attempts, AttemptLimit::AtMost(attempts));
    }
}

#[tokio::test]
async fn ret_10_each_field_left_out_is_the_default() {
    let harness = Harness::new();
    let defaults = json!({"max_attempts": 3, "initial_interval": "PT1S", "backoff_coefficient": 2.0,
        "max_interval": "PT5M", "jitter": true, "non_retryable_errors": [], "on_exhaustion": "discard"});
    let others = json!({"max_attempts": 9, "initial_interval": "PT2S", "backoff_coefficient": 3.5,
        "max_interval": "PT1M", "jitter": false, "non_retryable_errors": ["x"], "on_exhaustion": "dead_letter"});
    let policy_of =
        async |value: &Value| -> Policy { Policy::clone(&harness.submit(with_ojs(value.clone())).await.spec.policy) };
    assert_eq!(policy_of(&json!({})).await, policy_of(&defaults).await);
    for (field, other) in others.as_object().expect("an object") {
        let mut merged = defaults.clone();
        merged[field] = other.clone();
        let (alone, merged) = (policy_of(&json!({ field: other })).await, policy_of(&merged).await);
        assert_eq!(alone, merged, "only {field} given");
        assert_ne!(alone, policy_of(&defaults).await, "{field} has an effect");
    }
}

#[tokio::test]
async fn a_cap_on_attempts_tightens_whatever_the_layer_and_the_dialect() {
    let own = |dialect, value| JobPolicy::Own(PolicyDocument { dialect, value });
    let cap = |max_attempts| OperatorCap { max_attempts: Some(max_attempts), max_elapsed: None };
    let policies = [
        JobPolicy::Configured,
        own(Dialect::Ojs, json!({"max_attempts": 50})),
        own(
            Dialect::Azolla,
            json!({"stop": {"max_attempts": null}, "retry": {"include_errors": ["external.timeout"]}}),
        ),
        own(Dialect::TaskHarbor, json!({})),
        own(Dialect::Exosphere, json!({"max_retries": 50})),
        own(Dialect::Mwl, json!({"policies": [{"match": {"types": ["external.timeout"]}, "attempts": 50}]})),
    ];
    for policy in policies {
        let harness = Harness::with(|settings| {
            settings.layers.cap = cap(3);
            settings.layers.queue_caps = HashMap::from([("narrow".to_owned(), cap(2))]);
        });
        let submission = Submission { policy, ..job() };
        let context = format!("{:?}", submission.policy);
        assert_eq!(runs_of(&harness, submission.clone()).await, 3, "{context}");
        let kept = harness.submit(Submission { queue: "narrow".into(), ..submission }).await;
        assert_eq!(kept.spec.policy.attempts, AttemptLimit::AtMost(2), "{context}");
    }
    let harness = Harness::with(|settings| settings.layers.cap = cap(10));
    assert_eq!(runs_of(&harness, job()).await, 3, "a cap above the limit changes nothing");
}

#[tokio::test]
async fn a_cap_on_elapsed_time_counts_from_the_enqueue() {
    let harness = Harness::with(|settings| settings.layers.cap.max_elapsed = Some(secs(10)));
    let policy = json!({"max_attempts": 100, "initial_interval": "PT2S", "backoff_strategy": "none", "jitter": false});
    let id = harness.submit(with_ojs(policy)).await.id;
    let runs = runs_until_ended(&harness, id, async |harness, job, _| drop(harness.fail(job, failure()).await)).await;
    // Runs start at 0, 2, 4, 6 and 8 s; the next one would start at the limit.
    assert_eq!(runs, 5);
    let ended = harness.job(id).await;
    let outcome = ended.failures.last().expect("a failure").verdict.outcome;
    let Outcome::Stop { reason: Reason::MaxElapsed { limit, elapsed, delay }, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((limit, elapsed, delay), (secs(10), secs(8), Some(secs(2))));
    assert_eq!(ended.times.finished, Some(START.after(secs(8))), "it ends at once, not at the limit");
}

#[tokio::test]
async fn waiting_for_a_schedule_counts_as_elapsed_time() {
    let harness = Harness::new();
    let azolla = json!({"stop": {"max_attempts": null, "max_delay": 60}, "wait": {"strategy": "fixed", "delay": 1},
        "retry": {"include_errors": ["external.timeout"]}});
    let start = redrive_store::Start::Scheduled(START.after(secs(61)));
    let scheduled = harness.submit(Submission { start, ..with_policy(Dialect::Azolla, azolla) }).await;
    let claimed = harness.claim_when_due(&scheduled).await;
    assert_eq!(harness.fail(&claimed, failure()).await.state, State::Discarded);
}
