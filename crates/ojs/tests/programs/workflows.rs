//! Workflows that are interrupted at every write end as they do without an interruption, and enqueue each step once.

use redrive_engine::testing::{Outcome, Report, Trial};
use redrive_engine::{Engine, Layers, ManualClock, Settings, SystemRandomness};
use redrive_ojs::Limits;
use redrive_ojs::json::Members;
use redrive_ojs::workflows::{CANCEL, WORKFLOW, WorkflowLimits, WorkflowRequest, Workflows};
use redrive_policy::{Moment, Span};
use redrive_store::{Blob, Job, Memory, Signal};
use serde_json::{Value, json};
use std::sync::Arc;

fn job(kind: &str) -> Value {
    json!({ "type": kind, "args": [1], "options": { "retry": { "max_attempts": 2, "jitter": false } } })
}

/// Fails where the type says so: `fail.*` always, `flaky.*` once.
fn worker(job: &Job) -> Report {
    match job.spec.kind.split('.').next() {
        Some("fail") => Report::Fails("always".to_owned()),
        Some("flaky") if job.attempt == 1 => Report::Fails("once".to_owned()),
        _ => Report::Done(format!("\"{}\"", job.spec.kind)),
    }
}

fn state(workflow: &Value) -> Blob {
    let settings = Settings::new(Layers::ojs_default().expect("the defaults are valid"));
    let clock = Arc::new(ManualClock::at(Moment::ORIGIN));
    let engine = Engine::new(Arc::new(Memory::new()), clock, Arc::new(SystemRandomness::default()), settings);
    let text = workflow.to_string();
    let members = Members::parse(&text).expect("an object");
    let limits = WorkflowLimits { jobs: 100, depth: 8, of_jobs: Limits::default() };
    let request = WorkflowRequest::read(&members, &engine, limits, Moment::ORIGIN).expect("a valid workflow");
    Blob::from(request.state.write())
}

async fn check(workflow: Value, signals: Vec<(Span, Signal)>) -> Outcome {
    let trial = Trial {
        programs: vec![Arc::new(Workflows::new(Limits::default()))],
        program: WORKFLOW,
        state: state(&workflow),
        key: None,
        worker,
        signals,
        lasts: Span::from_secs(60),
    };
    trial.check().await
}

/// How often each type was enqueued.
fn kinds(outcome: &Outcome) -> Vec<&str> {
    let jobs = outcome.0.lines().filter_map(|line| line.strip_prefix("job "));
    jobs.filter_map(|line| line.split(' ').nth(1)).collect()
}

fn ended(outcome: &Outcome, state: &str) {
    assert!(outcome.0.contains(&format!("{{\\\"state\\\":\\\"{state}\\\"}}")), "{}", outcome.0);
}

#[tokio::test]
async fn a_chain_with_a_step_that_fails_once() {
    let outcome =
        check(json!({ "type": "chain", "steps": [job("a.one"), job("flaky.two"), job("a.three")] }), Vec::new()).await;
    assert_eq!(kinds(&outcome), ["a.one", "flaky.two", "a.three"]);
    ended(&outcome, "completed");
}

#[tokio::test]
async fn a_chain_that_fails() {
    let outcome =
        check(json!({ "type": "chain", "steps": [job("a.one"), job("fail.two"), job("a.three")] }), Vec::new()).await;
    assert_eq!(kinds(&outcome), ["a.one", "fail.two"]);
    ended(&outcome, "failed");
}

#[tokio::test]
async fn a_batch_with_all_callbacks() {
    for (last, callback) in [("a.three", "cb.success"), ("fail.three", "cb.failure")] {
        let callbacks = json!({ "on_complete": job("cb.complete"), "on_success": job("cb.success"), "on_failure": job("cb.failure") });
        let batch =
            json!({ "type": "batch", "jobs": [job("a.one"), job("flaky.two"), job(last)], "callbacks": callbacks });
        let outcome = check(batch, Vec::new()).await;
        assert_eq!(kinds(&outcome), ["a.one", "flaky.two", last, "cb.complete", callback]);
        ended(&outcome, "completed");
    }
}

#[tokio::test]
async fn workflows_inside_of_a_workflow() {
    let group =
        json!({ "type": "group", "jobs": [job("g.one"), { "type": "chain", "steps": [job("c.one"), job("c.two")] }] });
    let outcome = check(json!({ "type": "chain", "steps": [job("a.one"), group, job("a.two")] }), Vec::new()).await;
    assert_eq!(kinds(&outcome), ["a.one", "g.one", "c.one", "c.two", "a.two"]);
    ended(&outcome, "completed");
}

#[tokio::test]
async fn a_graph() {
    let step =
        |id: &str, after: &[&str]| json!({ "id": id, "type": format!("s.{id}"), "args": [], "depends_on": after });
    let steps = [step("a", &[]), step("b", &["a"]), step("c", &["a"]), step("d", &["b", "c"])];
    let outcome = check(json!({ "steps": steps }), Vec::new()).await;
    assert_eq!(kinds(&outcome), ["s.a", "s.b", "s.c", "s.d"]);
    ended(&outcome, "completed");
}

#[tokio::test]
async fn a_workflow_that_is_cancelled_while_a_step_waits_for_its_retry() {
    let cancel = Signal { name: CANCEL.into(), body: Blob::default() };
    let workflow = json!({ "type": "chain", "steps": [job("flaky.one"), job("a.two")] });
    let outcome = check(workflow, vec![(Span::from_millis(500), cancel)]).await;
    assert_eq!(kinds(&outcome), ["flaky.one"]);
    ended(&outcome, "cancelled");
}
