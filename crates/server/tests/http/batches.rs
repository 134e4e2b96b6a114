//! Enqueueing many jobs in one request: all or none.

use crate::common::{Bench, Parts, text};
use redrive_server::Limits;
use serde_json::{Value, json};

fn job(n: usize) -> Value {
    json!({ "type": "a.b", "args": [n] })
}

#[tokio::test]
async fn a_batch_is_kept_whole_and_runs_in_its_order() {
    let bench = Bench::new();
    let body = bench.post("/jobs/batch", json!({ "jobs": (0..100).map(job).collect::<Vec<_>>() })).await.expect(201);
    assert_eq!(body["count"], 100);
    assert_eq!(body["jobs"].as_array().unwrap().len(), 100);
    let fetched = bench.post("/workers/fetch", json!({ "queues": ["default"], "count": 100 })).await.expect(200);
    let order: Vec<u64> =
        fetched["jobs"].as_array().unwrap().iter().map(|job| job["args"][0].as_u64().unwrap()).collect();
    assert_eq!(order, (0..100).collect::<Vec<_>>());
}

#[tokio::test]
async fn one_bad_job_refuses_the_batch_and_every_problem_is_listed() {
    let bench = Bench::new();
    let jobs = json!([job(0), { "args": [] }, job(2), { "type": "A", "args": 5 }, "nonsense"]);
    let error = bench.post("/jobs/batch", json!({ "jobs": jobs })).await.expect(400)["error"].clone();
    let paths: Vec<String> =
        error["details"]["problems"].as_array().unwrap().iter().map(|problem| text(&problem["path"])).collect();
    assert_eq!(paths, ["/jobs/1/type", "/jobs/3/type", "/jobs/3/args", "/jobs/4"]);
    assert_eq!(bench.fetch().await, None);
}

#[tokio::test]
async fn a_name_that_is_taken_refuses_the_batch() {
    let bench = Bench::new();
    let named = |id: &str| json!({ "type": "a.b", "args": [], "id": id });
    let (one, two) = ("019539a4-aaaa-7000-8000-000000000001", "019539a4-aaaa-7000-8000-000000000002");
    bench.post("/jobs", named(one)).await.expect(201);
    let error = bench.post("/jobs/batch", json!({ "jobs": [named(two), named(one)] })).await.expect(409);
    assert_eq!(error["error"]["code"], "duplicate");
    bench.get(&format!("/jobs/{two}")).await.expect(404);
    bench.post("/jobs/batch", json!({ "jobs": [named(two), named(two)] })).await.expect(409);
    bench.get(&format!("/jobs/{two}")).await.expect(404);
}

#[tokio::test]
async fn the_size_of_a_batch_is_limited() {
    let limits = Limits { batch: 3, ..Limits::default() };
    let bench = Bench::with(Parts { limits, ..Parts::default() });
    bench.post("/jobs/batch", json!({ "jobs": [job(0), job(1), job(2)] })).await.expect(201);
    for jobs in [json!([]), json!([job(0), job(1), job(2), job(3)]), json!("x")] {
        bench.post("/jobs/batch", json!({ "jobs": jobs })).await.expect(400);
    }
    bench.post("/jobs/batch", json!({})).await.expect(400);
}
