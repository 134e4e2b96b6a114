//! Workflows over HTTP: chains, groups, batches, graphs, and each inside of another.

use crate::common::{Harness, text};
use serde_json::{Value, json};

pub(crate) fn job(kind: &str) -> Value {
    json!({ "type": kind, "args": [] })
}

pub(crate) fn failing(kind: &str) -> Value {
    json!({ "type": kind, "args": [], "options": { "retry": { "max_attempts": 1, "on_exhaustion": "dead_letter" } } })
}

pub(crate) async fn create(harness: &Harness, workflow: Value) -> String {
    text(&harness.post("/workflows", workflow).await.expect(201)["workflow"]["id"])
}

async fn show(harness: &Harness, id: &str) -> Value {
    harness.get(&format!("/workflows/{id}")).await.expect(200)["workflow"].clone()
}

pub(crate) async fn state(harness: &Harness, id: &str) -> String {
    text(&show(harness, id).await["state"])
}

/// The types of all jobs that can be claimed now; they are claimed.
pub(crate) async fn claimable(harness: &Harness) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    while let Some(job) = harness.fetch().await {
        found.push((text(&job["type"]), job));
    }
    found
}

/// Claims the only job that there is, which must be of this type.
async fn claim(harness: &Harness, kind: &str) -> Value {
    let mut found = claimable(harness).await;
    let kinds: Vec<&str> = found.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, [kind]);
    found.remove(0).1
}

async fn ack(harness: &Harness, job: &Value, result: Value) {
    harness.post("/workers/ack", json!({ "job_id": job["id"], "result": result })).await.expect(200);
}

pub(crate) async fn complete(harness: &Harness, kind: &str, result: Value) -> Value {
    let job = claim(harness, kind).await;
    ack(harness, &job, result).await;
    job
}

fn steps(workflow: &Value) -> Vec<(String, String)> {
    let steps = workflow["steps"].as_array().expect("steps");
    steps.iter().map(|step| (text(&step["type"]), text(&step["state"]))).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(kind, state)| ((*kind).to_owned(), (*state).to_owned())).collect()
}

#[tokio::test]
async fn a_chain_runs_one_step_after_the_other_and_hands_on_all_results() {
    let harness = Harness::new();
    let chain = json!({ "type": "chain", "name": "order", "steps": [job("a.one"), job("a.two"), job("a.three")] });
    let created = harness.post("/workflows", chain).await;
    assert!(created.header("location").starts_with("/ojs/v1/workflows/"));
    let created = created.expect(201);
    assert_eq!(created["workflow"]["name"], "order");
    assert_eq!(created["id"], created["workflow"]["id"], "both ways");
    assert_eq!((&created["steps_total"], &created["steps_completed"]), (&json!(3), &json!(0)));
    assert_eq!(steps(&created), pairs(&[("a.one", "pending"), ("a.two", "waiting"), ("a.three", "waiting")]));
    let id = text(&created["id"]);

    let first = complete(&harness, "a.one", json!({ "n": 1 })).await;
    assert_eq!(first["workflow_id"], json!(id));
    assert_eq!(first.get("parent_results"), None);
    let second = claim(&harness, "a.two").await;
    assert_eq!(second["parent_results"], json!([{ "n": 1 }]));
    assert_eq!(steps(&show(&harness, &id).await)[1].1, "active");
    ack(&harness, &second, json!("two")).await;
    let third = complete(&harness, "a.three", Value::Null).await;
    assert_eq!(third["parent_results"], json!([{ "n": 1 }, "two"]));
    let done = show(&harness, &id).await;
    assert_eq!((&done["state"], &done["steps_completed"]), (&json!("completed"), &json!(3)));
    assert_eq!(done["steps"][0]["result"], json!({ "n": 1 }));
    assert!(claimable(&harness).await.is_empty());
}

#[tokio::test]
async fn a_step_that_is_retried_does_not_fail_its_chain_until_its_policy_stops_it() {
    let harness = Harness::new();
    let step = json!({ "type": "a.one", "args": [], "options": { "retry": { "max_attempts": 2 } } });
    let id = create(&harness, json!({ "type": "chain", "steps": [step, job("a.two")] })).await;
    let claimed = claim(&harness, "a.one").await;
    let failed = harness.fail(&text(&claimed["id"])).await;
    assert_eq!(state(&harness, &id).await, "running");
    assert_eq!(steps(&show(&harness, &id).await)[0].1, "retryable");
    let again = harness.run_again(&failed).await;
    harness.fail(&text(&again["id"])).await;
    let workflow = show(&harness, &id).await;
    assert_eq!(workflow["state"], "failed");
    assert_eq!(workflow["failed_step_index"], 0);
    assert_eq!(workflow["failed_job_ids"], json!([claimed["id"]]));
    assert_eq!((&workflow["errors"][0]["message"], &workflow["errors"][0]["attempt"]), (&json!("boom"), &json!(2)));
    assert_eq!(steps(&workflow), pairs(&[("a.one", "failed"), ("a.two", "cancelled")]));
    assert!(claimable(&harness).await.is_empty());
}

#[tokio::test]
async fn redriving_the_dead_step_of_a_chain_goes_on_with_it() {
    let harness = Harness::new();
    let id = create(&harness, json!({ "type": "chain", "steps": [failing("a.one"), job("a.two")] })).await;
    let claimed = claim(&harness, "a.one").await;
    harness.fail(&text(&claimed["id"])).await;
    assert_eq!(state(&harness, &id).await, "failed");
    harness.post(&format!("/dead-letter/{}/retry", text(&claimed["id"])), json!({})).await.expect(200);
    assert_eq!(state(&harness, &id).await, "running");
    complete(&harness, "a.one", json!(1)).await;
    let second = complete(&harness, "a.two", json!(2)).await;
    assert_eq!(second["parent_results"], json!([1]));
    let workflow = show(&harness, &id).await;
    assert_eq!(workflow["state"], "completed");
    assert_eq!(workflow.get("errors"), None);
}

#[tokio::test]
async fn a_group_runs_all_jobs_at_once_and_fails_when_all_are_over_if_one_failed() {
    let harness = Harness::new();
    let id = create(&harness, json!({ "type": "group", "jobs": [job("g.a"), failing("g.b"), job("g.c")] })).await;
    let jobs = claimable(&harness).await;
    let kinds: Vec<&str> = jobs.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["g.a", "g.b", "g.c"], "in the order in which they were written");
    harness.fail(&text(&jobs[1].1["id"])).await;
    ack(&harness, &jobs[0].1, json!(1)).await;
    assert_eq!(state(&harness, &id).await, "running");
    ack(&harness, &jobs[2].1, json!(3)).await;
    let workflow = show(&harness, &id).await;
    assert_eq!(
        (&workflow["state"], &workflow["jobs_completed"], &workflow["jobs_failed"]),
        (&json!("failed"), &json!(2), &json!(1))
    );
}

fn batch(jobs: Value) -> Value {
    let callbacks =
        json!({ "on_complete": job("cb.complete"), "on_success": job("cb.success"), "on_failure": job("cb.failure") });
    json!({ "type": "batch", "jobs": jobs, "callbacks": callbacks })
}

#[tokio::test]
async fn a_batch_enqueues_each_callback_that_applies_once_with_all_results() {
    for fails in [false, true] {
        let harness = Harness::new();
        let last = if fails { failing("b.two") } else { job("b.two") };
        let id = create(&harness, batch(json!([job("b.one"), last]))).await;
        let jobs = claimable(&harness).await;
        assert_eq!(jobs.len(), 2);
        ack(&harness, &jobs[0].1, json!("r")).await;
        if fails {
            harness.fail(&text(&jobs[1].1["id"])).await;
        } else {
            ack(&harness, &jobs[1].1, json!("s")).await;
        }
        let callbacks = claimable(&harness).await;
        let kinds: Vec<&str> = callbacks.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(kinds, ["cb.complete", if fails { "cb.failure" } else { "cb.success" }]);
        let results = if fails { json!(["r", null]) } else { json!(["r", "s"]) };
        assert_eq!(callbacks[0].1["parent_results"], results);
        assert_eq!(callbacks[1].1.get("parent_errors").is_some(), fails);
        assert_eq!(state(&harness, &id).await, "running", "while callbacks run");
        for (_, callback) in &callbacks {
            ack(&harness, callback, Value::Null).await;
        }
        assert_eq!(state(&harness, &id).await, "completed");
        assert!(claimable(&harness).await.is_empty());
    }
}

#[tokio::test]
async fn a_batch_fails_with_its_callback_and_with_a_failure_that_no_callback_dealt_with() {
    let harness = Harness::new();
    let callbacks = json!({ "on_success": failing("cb.success") });
    let id = create(&harness, json!({ "type": "batch", "jobs": [job("b.one")], "callbacks": callbacks })).await;
    complete(&harness, "b.one", Value::Null).await;
    let callback = claim(&harness, "cb.success").await;
    harness.fail(&text(&callback["id"])).await;
    let workflow = show(&harness, &id).await;
    assert_eq!((&workflow["state"], &workflow["errors"][0]["callback"]), (&json!("failed"), &json!("on_success")));

    let id = create(&harness, json!({ "type": "batch", "jobs": [failing("b.two")], "callbacks": callbacks })).await;
    let failed = claim(&harness, "b.two").await;
    harness.fail(&text(&failed["id"])).await;
    assert_eq!(state(&harness, &id).await, "failed");
}

#[tokio::test]
async fn workflows_inside_of_workflows_pass_results_through() {
    let harness = Harness::new();
    let group =
        json!({ "type": "group", "jobs": [job("t.csv"), { "type": "chain", "steps": [job("t.a"), job("t.b")] }] });
    let id = create(&harness, json!({ "type": "chain", "steps": [job("extract"), group, job("load")] })).await;
    complete(&harness, "extract", json!("raw")).await;
    let jobs = claimable(&harness).await;
    assert_eq!(jobs.iter().map(|(kind, _)| kind.as_str()).collect::<Vec<_>>(), ["t.csv", "t.a"]);
    assert_eq!((&jobs[0].1["parent_results"], &jobs[1].1["parent_results"]), (&json!(["raw"]), &json!(["raw"])));
    ack(&harness, &jobs[0].1, json!("csv")).await;
    ack(&harness, &jobs[1].1, json!("a")).await;
    let inner = complete(&harness, "t.b", json!("b")).await;
    assert_eq!(inner["parent_results"], json!(["a"]));
    let load = complete(&harness, "load", Value::Null).await;
    assert_eq!(load["parent_results"], json!(["raw", ["csv", ["a", "b"]]]));
    assert_eq!(state(&harness, &id).await, "completed");
}

fn step(id: &str, after: &[&str]) -> Value {
    json!({ "id": id, "type": format!("s.{id}"), "args": [], "depends_on": after })
}

#[tokio::test]
async fn steps_of_a_graph_start_when_those_that_they_depend_on_have_completed() {
    let harness = Harness::new();
    let steps_of = [step("a", &[]), step("b", &["a"]), step("c", &["a"]), step("d", &["b", "c"])];
    let id = create(&harness, json!({ "name": "diamond", "steps": steps_of })).await;
    complete(&harness, "s.a", json!("a")).await;
    let both = claimable(&harness).await;
    assert_eq!(both.len(), 2);
    ack(&harness, &both[1].1, json!("c")).await;
    assert!(claimable(&harness).await.is_empty());
    ack(&harness, &both[0].1, json!("b")).await;
    let last = complete(&harness, "s.d", Value::Null).await;
    assert_eq!(last["parent_results"], json!(["b", "c"]));
    let workflow = show(&harness, &id).await;
    assert_eq!((&workflow["state"], &workflow["type"]), (&json!("completed"), &json!("graph")));
    assert_eq!(workflow["steps"][3]["depends_on"], json!(["b", "c"]));
}

#[tokio::test]
async fn a_failed_step_of_a_graph_skips_only_what_depends_on_it() {
    let harness = Harness::new();
    let mut a = step("a", &[]);
    a["options"] = json!({ "retry": { "max_attempts": 1 } });
    let id = create(
        &harness,
        json!({ "steps": [a, step("b", &["a"]), step("c", &["b"]), step("x", &[]), step("y", &["x"])] }),
    )
    .await;
    let jobs = claimable(&harness).await;
    harness.fail(&text(&jobs[0].1["id"])).await;
    ack(&harness, &jobs[1].1, Value::Null).await;
    complete(&harness, "s.y", Value::Null).await;
    let workflow = show(&harness, &id).await;
    assert_eq!(workflow["state"], "failed");
    let expected =
        [("s.a", "failed"), ("s.b", "cancelled"), ("s.c", "cancelled"), ("s.x", "completed"), ("s.y", "completed")];
    assert_eq!(steps(&workflow), pairs(&expected));
}

#[tokio::test]
async fn steps_named_after_callbacks_are_those_of_a_batch() {
    for name in ["on_success", "on-success"] {
        let harness = Harness::new();
        let callback = json!({ "id": name, "type": "s.done", "args": [], "depends_on": ["a", "b"], "options": { "callback_type": "on_success" } });
        let created = harness
            .post("/workflows", json!({ "name": "n", "steps": [step("a", &[]), step("b", &[]), callback] }))
            .await;
        let created = created.expect(201);
        assert_eq!(created["type"], "batch");
        assert_eq!(created["jobs_total"], 2);
    }
}

#[tokio::test]
async fn a_cancelled_workflow_withdraws_what_waits_and_lets_workers_complete() {
    let harness = Harness::new();
    let id = create(&harness, json!({ "type": "group", "jobs": [job("g.a"), job("g.b")] })).await;
    let running = harness.fetch().await.expect("a job");
    let cancelled = harness.delete(&format!("/workflows/{id}")).await.expect(200);
    assert_eq!(cancelled["workflow"]["state"], "cancelled");
    assert!(cancelled["workflow"]["metadata"]["cancelled_at"].is_string());
    assert!(harness.fetch().await.is_none());
    ack(&harness, &running, json!(1)).await;
    let workflow = show(&harness, &id).await;
    assert_eq!(workflow["state"], "cancelled");
    assert_eq!(steps(&workflow), pairs(&[("g.a", "completed"), ("g.b", "cancelled")]));
    let again = harness.delete(&format!("/workflows/{id}")).await.expect(409);
    assert!(text(&again["error"]["message"]).contains("cancelled already"), "{again}");
}

#[tokio::test]
async fn everything_that_is_wrong_with_a_workflow_is_listed_and_nothing_is_enqueued() {
    let harness = Harness::new();
    let cases = [
        (json!({ "type": "chain" }), "/steps"),
        (json!({ "type": "chain", "steps": [] }), "/steps"),
        (json!({ "type": "chian", "steps": [job("a.b")] }), "\"chain\", \"group\" or \"batch\""),
        (json!({ "type": "chain", "steps": [{ "args": [] }] }), "/steps/0/type"),
        (json!({ "type": "group", "jobs": [job("a.b")], "callbacks": {} }), "/callbacks"),
        (json!({ "type": "batch", "jobs": [job("a.b")] }), "/callbacks"),
        (
            json!({ "type": "batch", "jobs": [job("a.b")], "callbacks": { "on_sucess": job("a.c") } }),
            "did you mean \"on_success\"",
        ),
        (json!({ "steps": [step("a", &["b"])] }), "/steps/0/depends_on/0"),
        (json!({ "steps": [step("a", &["b"]), step("b", &["a"])] }), "depends on itself"),
        (json!({ "steps": [step("a", &[]), step("a", &[])] }), "/steps/1/id"),
        (json!({ "id": "wf_1", "type": "chain", "steps": [job("a.b")] }), "/id"),
    ];
    for (workflow, words) in cases {
        let refused = harness.post("/workflows", workflow.clone()).await.expect(400);
        let message = refused["error"].to_string();
        assert!(message.contains(&words.replace('"', "\\\"")), "{workflow}: {message}");
    }
    let policy = json!({ "type": "a.b", "args": [], "options": { "retry": { "backoff_coefficient": 0.5 } } });
    let refused =
        harness.post("/workflows", json!({ "type": "chain", "steps": [job("a.b"), policy] })).await.expect(422);
    assert!(refused["error"].to_string().contains("/steps/1/options/retry/backoff_coefficient"), "{refused}");
    assert!(claimable(&harness).await.is_empty());
    assert_eq!(harness.get("/workflows").await.expect(200)["workflows"], json!([]));
}

#[tokio::test]
async fn policies_in_camel_case_are_read_inside_of_workflows() {
    let harness = Harness::new();
    let step = json!({ "type": "a.b", "args": [], "options": { "retry": { "maxAttempts": 7 } } });
    create(&harness, json!({ "type": "chain", "steps": [step] })).await;
    assert_eq!(claim(&harness, "a.b").await["max_attempts"], 7);
}

#[tokio::test]
async fn workflows_are_listed_the_newest_first() {
    let harness = Harness::new();
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.insert(0, create(&harness, json!({ "type": "chain", "steps": [job("a.b")] })).await);
        harness.advance_ms(2.0).await;
    }
    let page = harness.get("/workflows?limit=2").await.expect(200);
    let listed: Vec<String> =
        page["workflows"].as_array().expect("a list").iter().map(|run| text(&run["id"])).collect();
    assert_eq!(listed, ids[..2]);
    let rest = harness.get(&format!("/workflows?limit=2&after={}", text(&page["next_after"]))).await.expect(200);
    assert_eq!(rest["workflows"][0]["id"], json!(ids[2]));
    assert_eq!(rest.get("next_after"), None);
    harness.get("/workflows?state=runing").await.expect(400);
}

#[tokio::test]
async fn a_dense_graph_is_accepted_in_any_order_and_a_circle_in_it_is_found() {
    let harness = Harness::new();
    let name = |number: usize| format!("{number:x}");
    let step = |number: usize| {
        let after: Vec<String> = (0..number).rev().map(name).collect();
        json!({ "id": name(number), "type": "a", "args": [], "depends_on": after })
    };
    let mut steps: Vec<Value> = (0..400).rev().map(step).collect();
    create(&harness, json!({ "steps": steps })).await;
    steps[399]["depends_on"] = json!([name(399)]);
    let refused = harness.post("/workflows", json!({ "steps": steps })).await.expect(400);
    assert!(text(&refused["error"]["message"]).contains("depends on itself"), "{refused}");
}

#[tokio::test]
async fn what_is_no_workflow_is_not_found() {
    let harness = Harness::new();
    for id in ["nonsense", "01975a3b-0000-7000-8000-000000000000"] {
        harness.get(&format!("/workflows/{id}")).await.expect(404);
        harness.delete(&format!("/workflows/{id}")).await.expect(404);
    }
}

#[tokio::test]
async fn the_workflow_of_the_guide_is_accepted_and_says_what_comes_after_what() {
    const GUIDE: &str = include_str!("../../../../docs/guides/workflows.md");
    let (_, rest) = GUIDE.split_once("```json\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let harness = Harness::new();
    let workflow = harness.call_text("POST", "/ojs/v1/workflows", example).await.expect(201);
    let after: Vec<&Value> = workflow["steps"].as_array().expect("steps").iter().map(|step| &step["after"]).collect();
    assert_eq!(after, [&json!([]), &json!([0]), &json!([0]), &json!([0]), &json!([1, 2, 3])]);
}
