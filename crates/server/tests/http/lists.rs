//! Lists: their cost, their size, and their cursors.

use crate::common::{Harness, Parts, text};
use crate::scratch::Scratch;
use redrive_server::Limits;
use redrive_store::Embedded;
use redrive_store::embedded::Options;
use serde_json::{Value, json};
use std::sync::Arc;

/// A server on the embedded store, whose lists read at most ten jobs in one call.
fn frugal(scratch: &Scratch) -> Harness {
    let options = Options { list_step_jobs: 3, list_most_jobs: 10, ..Options::default() };
    let (store, _) = Embedded::open(scratch.path(), options).unwrap();
    Harness::with(Parts { store: Arc::new(store), ..Parts::default() })
}

/// All pages of a list by their cursors: the ids on each, and the last pagination.
async fn pages(harness: &Harness, path: &str, entries: &str) -> (Vec<Vec<String>>, Value) {
    let mut pages = Vec::new();
    let mut cursor = String::new();
    loop {
        let answer = harness.get(&format!("{path}{cursor}")).await.expect(200);
        pages.push(answer[entries].as_array().unwrap().iter().map(|job| text(&job["id"])).collect());
        let pagination = &answer["pagination"];
        assert_eq!(pagination["has_more"], json!(pagination["next_cursor"].is_string()), "{pagination}");
        match pagination["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (pages, answer["pagination"].clone()),
        }
    }
}

#[tokio::test]
async fn a_list_that_has_read_enough_returns_what_it_found_and_a_cursor() {
    let scratch = Scratch::new();
    let harness = frugal(&scratch);
    let mut rare = Vec::new();
    for number in 0..45 {
        let kind = if number % 20 == 2 { "rare.kind" } else { "common.kind" };
        let job = harness.post("/jobs", json!({ "type": kind, "args": [number] })).await.expect(201);
        if number % 20 == 2 {
            rare.insert(0, text(&job["job"]["id"]));
        }
        harness.advance_clock_ms(1.0);
    }
    let (found, last) = pages(&harness, "/admin/jobs?type=rare.kind&per_page=5", "items").await;
    assert_eq!(found.concat(), rare);
    assert_eq!(found.len(), 5, "45 jobs, ten at a time: {found:?}");
    assert_eq!((&last["total"], last.get("total_at_least")), (&json!(3), None), "everything was looked at");
    let first = harness.get("/admin/jobs?type=rare.kind&per_page=5").await.expect(200)["pagination"].clone();
    assert_eq!((&first["total"], &first["total_at_least"]), (&json!(1), &json!(true)), "more may come");
    let counted = harness.get("/admin/jobs?state=available&per_page=5").await.expect(200)["pagination"].clone();
    assert_eq!((&counted["total"], counted.get("total_at_least")), (&json!(45), None), "counted as they come and go");
    // An offset that is not used up when the step ends is not lost.
    let (found, _) = pages(&harness, "/admin/jobs?type=rare.kind&per_page=2&page=2", "items").await;
    assert_eq!(found.concat(), rare[2..]);
}

#[tokio::test]
async fn an_offset_that_is_too_far_is_refused_with_the_way_out() {
    let harness = Harness::new();
    for path in ["/dead-letter?offset=10001", "/queues?offset=10001", "/admin/jobs?per_page=50&page=202"] {
        let error = harness.get(path).await.expect(400);
        assert!(text(&error["error"]["message"]).contains("next_cursor"), "{error}");
    }
    harness.get("/admin/jobs?per_page=50&page=201").await.expect(200);
    harness.get("/dead-letter?offset=10000").await.expect(200);
}

#[tokio::test]
async fn a_cursor_of_another_list_is_refused() {
    let harness = Harness::new();
    for _ in 0..2 {
        harness.enqueue_with(json!({})).await;
    }
    let first = harness.get("/admin/jobs?per_page=1").await.expect(200);
    let cursor = text(&first["pagination"]["next_cursor"]);
    for path in [format!("/dead-letter?cursor={cursor}"), "/admin/jobs?cursor=3".to_owned()] {
        let error = harness.get(&path).await.expect(400);
        assert_eq!(error["error"]["details"]["problems"][0]["path"], "?cursor", "{error}");
    }
}

/// Dead letters with arguments of this many bytes.
async fn dead_letters(harness: &Harness, count: usize, bytes: usize) {
    let retry = json!({ "max_attempts": 1, "on_exhaustion": "dead_letter" });
    for _ in 0..count {
        let body = json!({ "type": "a.b", "args": ["x".repeat(bytes)], "options": { "retry": retry } });
        let id = text(&harness.post("/jobs", body).await.expect(201)["job"]["id"]);
        harness.fetch().await.unwrap();
        harness.fail(&id).await;
        harness.advance_clock_ms(1.0);
    }
}

#[tokio::test]
async fn an_answer_with_several_jobs_has_a_limit_in_bytes_and_goes_on() {
    const MOST: usize = 100_000;
    let harness =
        Harness::with(Parts { limits: Limits { answer_bytes: MOST, ..Limits::default() }, ..Parts::default() });
    dead_letters(&harness, 10, 30_000).await;
    dead_letters(&harness, 1, 200_000).await;
    for (path, entries) in [("/dead-letter?limit=100", "jobs"), ("/admin/jobs?include=payload&per_page=100", "items")] {
        let answer = harness.get(path).await.expect(200);
        assert_eq!(answer[entries].as_array().unwrap().len(), 1, "a job that is larger than an answer comes alone");
        let (found, last) = pages(&harness, path, entries).await;
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [1, 3, 3, 3, 1], "{path}");
        assert_eq!(last["total"], json!(11));
        let cursor = text(&answer["pagination"]["next_cursor"]);
        let second = harness.get(&format!("{path}&cursor={cursor}")).await.expect(200);
        assert!(second.to_string().len() <= MOST + 1_000, "{path}");
    }
}

#[tokio::test]
async fn a_list_of_jobs_leaves_payloads_out_unless_asked() {
    let harness = Harness::new();
    dead_letters(&harness, 1, 10).await;
    let body = json!({ "type": "a.b", "args": [1], "meta": { "m": 1 }, "options": { "tags": ["t"] } });
    let id = text(&harness.post("/jobs", body).await.expect(201)["job"]["id"]);
    harness.fetch().await.unwrap();
    harness.post("/workers/ack", json!({ "job_id": id, "result": { "r": 1 } })).await.expect(200);
    let scheduled = json!({ "type": "a.b", "args": [], "options": { "scheduled_at": "2030-01-01T00:00:00Z" } });
    harness.post("/jobs", scheduled).await.expect(201);
    let bare = harness.get("/admin/jobs").await.expect(200)["items"].clone();
    for job in bare.as_array().unwrap() {
        for key in ["args", "meta", "tags", "result", "errors"] {
            assert!(job.get(key).is_none(), "{key} in {job}");
        }
        assert!(job["type"] == "a.b" && job["queue"] == "default" && job["attempt"].is_u64(), "{job}");
    }
    let find = |jobs: &Value, state: &str| {
        let mut jobs = jobs.as_array().unwrap().iter();
        jobs.find(|job| job["state"] == state).unwrap_or_else(|| panic!("no {state} job")).clone()
    };
    assert_eq!(find(&bare, "scheduled")["scheduled_at"], "2030-01-01T00:00:00.000000Z");
    let error = &find(&bare, "discarded")["error"];
    assert_eq!((&error["type"], &error["message"], &error["attempt"]), (&json!("Boom"), &json!("boom"), &json!(1)));
    let whole = harness.get("/admin/jobs?include=payload").await.expect(200)["items"].clone();
    let done = find(&whole, "completed");
    assert_eq!((&done["args"], &done["meta"], &done["result"]), (&json!([1]), &json!({ "m": 1 }), &json!({ "r": 1 })));
    assert_eq!(find(&whole, "discarded")["errors"].as_array().unwrap().len(), 1);
    harness.get("/admin/jobs?include=args").await.expect(400);
}

#[tokio::test]
async fn queues_are_paged_by_their_names() {
    let harness = Harness::new();
    for queue in ["a", "b", "c"] {
        harness.enqueue_with(json!({ "queue": queue })).await;
    }
    let first = harness.get("/queues?limit=2").await.expect(200);
    assert_eq!(first["pagination"]["next_cursor"], "b");
    harness.enqueue_with(json!({ "queue": "aa" })).await;
    let rest = harness.get("/queues?limit=2&cursor=b").await.expect(200);
    assert_eq!((&rest["queues"][0]["name"], &rest["pagination"]["has_more"]), (&json!("c"), &json!(false)));
}

#[tokio::test]
async fn a_fetch_claims_as_many_jobs_as_fit_into_an_answer_and_no_others() {
    let limits = Limits { answer_bytes: 100_000, ..Limits::default() };
    let harness = Harness::with(Parts { limits, ..Parts::default() });
    for bytes in [30_000, 30_000, 30_000, 30_000, 200_000, 10] {
        let body = json!({ "type": "a.b", "args": ["x".repeat(bytes)] });
        harness.post("/jobs", body).await.expect(201);
        harness.advance_clock_ms(1.0);
    }
    for (claimed, left) in [(3, 3), (1, 2), (1, 1), (1, 0), (0, 0)] {
        let answer = harness.post("/workers/fetch", json!({ "queues": ["default"], "count": 10 })).await.expect(200);
        assert_eq!(answer["jobs"].as_array().unwrap().len(), claimed);
        let stats = harness.get("/queues/default/stats").await.expect(200);
        assert_eq!(stats["stats"]["available"], json!(left), "what was not claimed is still available");
    }
}

#[tokio::test]
async fn a_batch_that_repeats_large_jobs_is_answered_within_the_limit() {
    let limits = Limits { answer_bytes: 100_000, ..Limits::default() };
    let harness = Harness::with(Parts { limits, ..Parts::default() });
    let job = |key: usize| {
        let options = json!({ "idempotency_key": format!("k{key}") });
        json!({ "type": "a.b", "args": ["x".repeat(40_000)], "options": options })
    };
    let jobs: Vec<Value> = (0..10).map(job).collect();
    let first = harness.post("/jobs/batch", json!({ "jobs": jobs })).await.expect(201);
    let again = harness.post("/jobs/batch", json!({ "jobs": jobs })).await.expect(201);
    let ids = |answer: &Value| -> Vec<String> {
        answer["jobs"].as_array().unwrap().iter().map(|job| text(&job["id"])).collect()
    };
    assert_eq!(ids(&again), ids(&first));
    assert!(again["jobs"][0].get("args").is_some() && again["jobs"][9].get("args").is_none());
    assert!(again.to_string().len() <= 110_000, "{} bytes", again.to_string().len());
}
