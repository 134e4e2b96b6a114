//! Calls that workers have as jobs.

use crate::harness::{FINALLY, LOOP, RETRY, TIMEOUT, done};
use crate::world::{JOB, Tried, job, worker};
use serde_json::{Value, json};

fn flow(steps: Value) -> Value {
    json!({ "$schema": "https://mwl.dev/v0.1/flow/schema.json", "entrypoint": "first", "steps": steps })
}

fn around(middleware: Value, call: Value) -> Value {
    let first = json!({ "action": "Call", "middleware": middleware, "call": call, "next": "done" });
    flow(json!({ "first": first, "done": done() }))
}

fn cleanup(kind: &str) -> Value {
    json!({ "provider": FINALLY, "onAlways": { "with": { "call": job(kind) } } })
}

fn retrying(attempts: u32) -> Value {
    let policy = json!({
        "match": { "codes": ["*"] }, "attempts": attempts,
        "backoff": { "initial": "PT10S", "rate": 2, "jitter": "full" },
    });
    json!({ "provider": RETRY, "onEntry": { "with": { "policies": [policy] } } })
}

#[tokio::test]
async fn the_result_of_a_job_is_the_result_of_its_call() {
    let ended = Tried::new(around(json!([]), job("charge"))).worker(worker).check().await;
    assert_eq!(ended.value(), &json!({ "done": "charge" }));
    assert_eq!(ended.jobs_of("charge").len(), 1);
}

#[tokio::test]
async fn the_retry_policy_of_a_job_is_its_own_and_its_last_failure_is_that_of_the_call() {
    let once = Tried::new(around(json!([]), job("fails.once"))).worker(worker).check().await;
    assert_eq!(once.value(), &json!({ "done": "fails.once" }));
    let ended = Tried::new(around(json!([]), job("fails"))).worker(worker).check().await;
    assert_eq!((ended.code(), &ended.result["message"]), ("Boom", &json!("as it says")));
    assert_eq!(ended.result["details"]["attempts"], 2);
}

#[tokio::test]
async fn each_attempt_of_a_retry_is_a_job_of_its_own_and_no_delay_is_drawn_twice() {
    let ended = Tried::new(around(json!([retrying(3)]), job("fails"))).worker(worker).check().await;
    assert_eq!(ended.code(), "Provider.Middleware.Retry.Exhausted");
    assert_eq!(ended.result["previous"]["code"], "Boom");
    assert_eq!(ended.jobs_of("fails").len(), 3);
    let attempts = ended.state["retries"]["kept"][0]["attempts"].as_array().expect("attempts");
    let delays: Vec<f64> = attempts.iter().filter_map(|attempt| attempt["gap"]["delay_ms"].as_f64()).collect();
    assert_eq!(delays.len(), 2);
    assert!(delays[0] < 10_000.0 && delays[1] < 20_000.0 && delays[0] != delays[1], "{delays:?}");
}

#[tokio::test]
async fn a_cleanup_that_is_a_job_runs_once_whatever_ends_its_scope() {
    let slow = json!({ "provider": JOB, "with": { "type": "slow", "queue": "nobody" } });
    for (middleware, call, cancelled_after, code) in [
        (json!([cleanup("cleanup")]), job("fails"), None, "Boom"),
        (json!([retrying(2), cleanup("cleanup")]), job("fails"), None, "Provider.Middleware.Retry.Exhausted"),
        (
            json!([
                { "provider": TIMEOUT, "onEntry": { "with": { "duration": "PT1M" } } },
                cleanup("cleanup"), retrying(100),
            ]),
            job("fails"),
            None,
            "Provider.Middleware.Timeout.Exceeded",
        ),
        (json!([cleanup("cleanup"), retrying(100)]), job("fails"), Some(30), "System.Cancelled"),
        (json!([cleanup("fails")]), slow, Some(30), "Boom"),
    ] {
        let mut tried = Tried::new(around(middleware.clone(), call)).worker(worker);
        tried.cancelled_after = cancelled_after;
        let ended = tried.check().await;
        assert_eq!(ended.code(), code, "{middleware}");
        let cleanups = ended.jobs.iter().filter(|job| job.contains(" cleanup ") || job.contains(" fails ")).count();
        assert!(cleanups > 0, "{:?}", ended.jobs);
        let expected = usize::from(middleware[0]["provider"] == RETRY) + 1;
        if code != "Boom" || middleware[0]["onAlways"]["with"]["call"]["with"]["type"] == "cleanup" {
            assert_eq!(ended.jobs_of("cleanup").len(), expected, "{middleware}: {:?}", ended.jobs);
        }
    }
}

#[tokio::test]
async fn a_job_whose_result_is_not_wanted_any_more_is_cancelled() {
    let slow = json!({ "provider": JOB, "with": { "type": "slow", "queue": "work", "retry": {
        "max_attempts": 1_000_000, "initial_interval": "PT5M", "jitter": false } } });
    let gather = json!({
        "action": "Gather", "completion": { "successes": 1, "wait": false }, "calls": [job("fails"), job("quick"), slow],
        "output": "{{ step.results.map(r, r.type) }}", "next": "done",
    });
    let fails = |job: &redrive_store::Job| match &*job.spec.kind {
        "slow" => redrive_engine::testing::Report::Fails("not yet".to_owned()),
        "quick" if job.attempt == 1 => redrive_engine::testing::Report::Fails("the first time".to_owned()),
        _ => worker(job),
    };
    let ended = Tried::new(flow(json!({ "first": gather, "done": done() }))).worker(fails).check().await;
    let results = ended.value().as_array().expect("an array").clone();
    assert_eq!((&results[1], &results[2]), (&json!("success"), &json!("cancellation")));
    assert!(ended.jobs_of("slow")[0].contains(" cancelled "), "{:?}", ended.jobs);
}

#[tokio::test]
async fn a_job_that_cannot_be_enqueued_is_a_failure_of_its_call() {
    let call = json!({ "provider": JOB, "with": {
        "type": "{{ 'no type' }}", "retry": { "max_attempts": "{{ -1 }}" } } });
    let ended = Tried::new(around(json!([]), call)).worker(worker).check().await;
    assert_eq!(ended.code(), "Redrive.Job.Refused");
    let call = json!({ "provider": JOB, "with": { "type": "a", "args": "{{ 'none' }}" } });
    let ended = Tried::new(around(json!([]), call)).worker(worker).check().await;
    assert_eq!((ended.code(), ended.jobs.len()), ("System.ParameterValidationFailed", 0));
}

#[tokio::test]
async fn a_loop_of_jobs_carries_its_value_from_run_to_run() {
    let entry = json!({
        "provider": LOOP,
        "onSuccess": { "when": "{{ middleware.metadata.iteration < 3 }}", "assign": {
            "all": "{{ vars.all + [middleware.result.value.done] }}" } },
    });
    let mut definition = around(json!([entry]), job("poll"));
    definition["parameters"] = json!({ "type": "object", "properties": { "all": { "default": [] } } });
    definition["steps"]["done"]["value"] = "{{ vars.all }}".into();
    let ended = Tried::new(definition).worker(worker).check().await;
    assert_eq!(ended.value(), &json!(["poll", "poll", "poll"]));
}
