//! What a redrive changes besides the state: the expiry, and what an override replaces.

use crate::common::{Harness, text};
use serde_json::{Value, json};

/// A dead letter that expires an hour after it was enqueued, as seen ten hours later.
async fn expired_dead_letter(harness: &Harness) -> (String, Value) {
    let retry = json!({ "max_attempts": 1, "on_exhaustion": "dead_letter" });
    let id = harness.enqueue_with(json!({ "retry": retry, "expires_at": "+PT1H" })).await;
    harness.fetch().await.unwrap();
    harness.fail(&id).await;
    let expires_at = harness.job(&id).await["expires_at"].clone();
    harness.advance_ms(36_000_000.0).await;
    (id, expires_at)
}

#[tokio::test]
async fn a_dead_letter_past_its_expiry_runs_again_and_the_answer_says_what_was_cleared() {
    for path in ["/dead-letter/{id}/retry", "/admin/jobs/{id}/retry"] {
        let harness = Harness::new();
        let (id, expires_at) = expired_dead_letter(&harness).await;
        assert!(expires_at.is_string(), "{expires_at}");
        let retried = harness.post(&path.replace("{id}", &id), json!({})).await.expect(200);
        assert_eq!(retried["redrive"], json!({ "cleared_expiry": expires_at }), "{path}");
        assert_eq!((&retried["job"]["redrive"], retried.get("expires_at")), (&retried["redrive"], None));
        harness.advance_ms(1_000.0).await;
        let job = harness.job(&id).await;
        assert_eq!((&job["state"], job.get("expires_at")), (&json!("available"), None), "{path}");
        assert_eq!(job["redrive"]["cleared_expiry"], expires_at);
        assert_eq!(harness.fetch().await.unwrap()["id"], json!(id), "{path}");
    }
}

#[tokio::test]
async fn a_bulk_redrive_loses_no_dead_letter_past_its_expiry_and_counts_them() {
    let harness = Harness::new();
    let (id, _) = expired_dead_letter(&harness).await;
    let order = json!({ "filter": { "queue": "default" }, "confirm": true });
    let done = harness.post("/dead-letter/retry", order).await.expect(200);
    assert_eq!((&done["succeeded"], &done["redrive"]), (&json!(1), &json!({ "cleared_expiry": 1 })));
    harness.advance_ms(1_000.0).await;
    assert_eq!(harness.job(&id).await["state"], "available");
}

#[tokio::test]
async fn a_redrive_of_a_job_that_never_expired_has_nothing_to_say_about_it() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({ "max_attempts": 1, "on_exhaustion": "dead_letter" })).await;
    harness.fetch().await.unwrap();
    harness.fail(&id).await;
    let retried = harness.post(&format!("/dead-letter/{id}/retry"), json!({})).await.expect(200);
    assert_eq!(retried.get("redrive"), None);
}

#[tokio::test]
async fn a_redrive_can_set_another_expiry_and_not_one_that_is_over() {
    let harness = Harness::new();
    let (id, _) = expired_dead_letter(&harness).await;
    let path = format!("/dead-letter/{id}/retry");
    for over in ["2026-02-13T09:00:00Z", "+PT0S", "soon"] {
        let error = harness.post(&path, json!({ "override": { "expires_at": over } })).await.expect(400);
        assert_eq!(error["error"]["details"]["problems"][0]["path"], "/override/expires_at", "{over}");
    }
    assert_eq!(harness.dead().await, std::slice::from_ref(&id));
    let expires = "2026-02-13T21:00:00+00:00";
    let retried = harness.post(&path, json!({ "override": { "expires_at": expires } })).await.expect(200);
    assert_eq!((&retried["expires_at"], retried.get("redrive")), (&json!(expires), None));
    harness.advance_ms(3_600_000.0).await;
    assert_eq!(harness.job(&id).await["state"], "discarded");
}

#[tokio::test]
async fn an_override_leaves_the_rest_of_the_job_unchanged() {
    let harness = Harness::new();
    let (id, expires_at) = expired_dead_letter(&harness).await;
    let changed = json!({ "override": { "args": [2] } });
    let retried = harness.post(&format!("/dead-letter/{id}/retry"), changed).await.expect(200);
    assert_eq!((&retried["args"], retried.get("expires_at")), (&json!([2]), None));
    assert_eq!(retried["redrive"], json!({ "cleared_expiry": expires_at }));
}

#[tokio::test]
async fn replaced_arguments_are_stored_with_the_operator() {
    let harness = Harness::new();
    let retry = json!({ "max_attempts": 1, "on_exhaustion": "dead_letter" });
    let new = json!({ "type": "a.b", "args": ["old"], "meta": { "a": 1 }, "options": { "retry": retry } });
    let id = text(&harness.post("/jobs", new).await.expect(201)["job"]["id"]);
    for (by, args, meta) in [(Some("ada@laptop"), json!(["new"]), json!({})), (None, json!([3]), json!({ "b": 2 }))] {
        harness.fetch().await.unwrap();
        harness.fail(&id).await;
        let mut body = json!({ "override": { "args": args, "meta": meta } });
        if let Some(by) = by {
            body["by"] = by.into();
        }
        harness.post(&format!("/dead-letter/{id}/retry"), body).await.expect(200);
    }
    harness.fetch().await.unwrap();
    harness.fail(&id).await;
    harness.post(&format!("/dead-letter/{id}/retry"), json!({ "by": "an operator" })).await.expect(200);
    let job = harness.job(&id).await;
    let now = "2026-02-13T10:00:00.000000Z";
    let expected = json!([
        { "generation": 0, "replaced_at": now, "replaced_by": "ada@laptop", "args": ["old"], "meta": { "a": 1 }, "tags": [] },
        { "generation": 1, "replaced_at": now, "replaced_by": "api", "args": ["new"], "meta": { "a": 1 }, "tags": [] },
    ]);
    assert_eq!((&job["redrive"]["revisions"], &job["args"]), (&expected, &json!([3])));
}

#[tokio::test]
async fn a_name_of_an_operator_is_a_string() {
    let harness = Harness::new();
    let (id, _) = expired_dead_letter(&harness).await;
    let error = harness.post(&format!("/dead-letter/{id}/retry"), json!({ "by": 5 })).await.expect(400);
    assert_eq!(error["error"]["details"]["problems"][0]["path"], "/by");
    assert_eq!(harness.dead().await, [id]);
}

#[tokio::test]
async fn each_run_says_since_when_it_waited_when_it_started_and_where() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({ "max_attempts": 2, "jitter": false })).await;
    harness.advance_ms(10_000.0).await;
    harness.fetch_as("ada").await.unwrap();
    harness.advance_ms(250.0).await;
    harness.fail(&id).await;
    let run = harness.job(&id).await["redrive"]["failures"][0].clone();
    assert_eq!(run["available_at"], "2026-02-13T10:00:00.000000Z");
    assert_eq!((&run["started_at"], &run["worker_id"]), (&json!("2026-02-13T10:00:10.000000Z"), &json!("ada")));
    assert_eq!(run["at"], "2026-02-13T10:00:10.250000Z");
    harness.advance_ms(5_000.0).await;
    harness.fetch_as("bob").await.unwrap();
    harness.post("/workers/ack", json!({ "job_id": id })).await.expect(200);
    assert_eq!(harness.job(&id).await["redrive"]["completed_by"], "bob");
}

#[tokio::test]
async fn a_job_that_expires_between_two_runs_is_a_dead_letter_where_its_policy_keeps_them() {
    for (on_exhaustion, dead) in [("dead_letter", true), ("discard", false)] {
        let harness = Harness::new();
        let retry = json!({ "initial_interval": "PT1M", "jitter": false, "on_exhaustion": on_exhaustion });
        let id = harness.enqueue_with(json!({ "retry": retry, "expires_at": "+PT30S" })).await;
        harness.fetch().await.unwrap();
        harness.fail(&id).await;
        harness.advance_ms(30_000.0).await;
        let job = harness.job(&id).await;
        assert_eq!((&job["state"], &job["redrive"]["dead_letter"]), (&json!("discarded"), &json!(dead)));
        assert_eq!(harness.dead().await.len(), usize::from(dead), "{on_exhaustion}");
    }
}
