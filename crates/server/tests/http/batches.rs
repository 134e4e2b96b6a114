//! Enqueueing many jobs in one request: all or none.

use crate::common::{Harness, Parts, text};
use redrive_server::Limits;
use serde_json::{Value, json};

fn job(n: usize) -> Value {
    json!({ "type": "a.b", "args": [n] })
}

#[tokio::test]
async fn a_batch_is_stored_whole_and_runs_in_its_order() {
    let harness = Harness::new();
    let body = harness.post("/jobs/batch", json!({ "jobs": (0..100).map(job).collect::<Vec<_>>() })).await.expect(201);
    assert_eq!(body["count"], 100);
    assert_eq!(body["jobs"].as_array().unwrap().len(), 100);
    let fetched = harness.post("/workers/fetch", json!({ "queues": ["default"], "count": 100 })).await.expect(200);
    let order: Vec<u64> =
        fetched["jobs"].as_array().unwrap().iter().map(|job| job["args"][0].as_u64().unwrap()).collect();
    assert_eq!(order, (0..100).collect::<Vec<_>>());
}

#[tokio::test]
async fn one_bad_job_refuses_the_batch_and_every_problem_is_listed() {
    let harness = Harness::new();
    let jobs = json!([job(0), { "args": [] }, job(2), { "type": "A", "args": 5 }, "nonsense"]);
    let error = harness.post("/jobs/batch", json!({ "jobs": jobs })).await.expect(400)["error"].clone();
    let paths: Vec<String> =
        error["details"]["problems"].as_array().unwrap().iter().map(|problem| text(&problem["path"])).collect();
    assert_eq!(paths, ["/jobs/1/type", "/jobs/3/type", "/jobs/3/args", "/jobs/4"]);
    assert_eq!(harness.fetch().await, None);
}

#[tokio::test]
async fn a_taken_id_refuses_the_batch() {
    let harness = Harness::new();
    let named = |id: &str| json!({ "type": "a.b", "args": [], "id": id });
    let (one, two) = ("019539a4-aaaa-7000-8000-000000000001", "019539a4-aaaa-7000-8000-000000000002");
    harness.post("/jobs", named(one)).await.expect(201);
    let error = harness.post("/jobs/batch", json!({ "jobs": [named(two), named(one)] })).await.expect(409);
    assert_eq!(error["error"]["code"], "duplicate");
    harness.get(&format!("/jobs/{two}")).await.expect(404);
    harness.post("/jobs/batch", json!({ "jobs": [named(two), named(two)] })).await.expect(409);
    harness.get(&format!("/jobs/{two}")).await.expect(404);
}

#[tokio::test]
async fn the_size_of_a_batch_is_limited() {
    let limits = Limits { batch: 3, ..Limits::default() };
    let harness = Harness::with(Parts { limits, ..Parts::default() });
    harness.post("/jobs/batch", json!({ "jobs": [job(0), job(1), job(2)] })).await.expect(201);
    for jobs in [json!([]), json!([job(0), job(1), job(2), job(3)]), json!("x")] {
        harness.post("/jobs/batch", json!({ "jobs": jobs })).await.expect(400);
    }
    harness.post("/jobs/batch", json!({})).await.expect(400);
}
