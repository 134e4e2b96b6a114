//! Operating the dead-letter queue.

use crate::common::{Harness, text};
use serde_json::json;

/// A job that has become a dead letter.
async fn dead_letter(harness: &Harness, kind: &str, queue: &str, error_type: &str) -> String {
    let retry = json!({ "max_attempts": 1, "on_exhaustion": "dead_letter" });
    let options = json!({ "queue": queue, "retry": retry, "priority": 5, "tags": ["t"] });
    let body =
        json!({ "type": kind, "args": [{ "n": 1 }], "meta": { "a": 1, "b": 2 }, "x_other": [1], "options": options });
    let id = text(&harness.post("/jobs", body).await.expect(201)["job"]["id"]);
    harness.post("/workers/fetch", json!({ "queues": [queue] })).await.expect(200);
    harness.fail_with(&id, json!({ "type": error_type, "message": "m" })).await;
    id
}

#[tokio::test]
async fn a_dead_letter_can_be_shown_redriven_and_deleted() {
    let harness = Harness::new();
    let id = dead_letter(&harness, "a.b", "q1", "Boom").await;
    let shown = harness.get(&format!("/dead-letter/{id}")).await.expect(200);
    assert_eq!((&shown["job"]["state"], &shown["state"]), (&json!("discarded"), &json!("discarded")));
    assert_eq!(shown["job"]["redrive"]["dead_letter"], true);
    let retried = harness.call_text("POST", &format!("/ojs/v1/dead-letter/{id}/retry"), "").await.expect(200);
    for job in [&retried, &retried["job"]] {
        assert_eq!((&job["id"], &job["state"], &job["attempt"]), (&json!(id), &json!("available"), &json!(0)));
        assert!(job.get("discarded_at").is_none() && job.get("error").is_none());
        assert_eq!(job["errors"].as_array().unwrap().len(), 1, "the history stays");
    }
    harness.call_text("POST", &format!("/ojs/v1/dead-letter/{id}/retry"), "").await.expect(404);
    harness.delete(&format!("/dead-letter/{id}")).await.expect(404);

    let other = dead_letter(&harness, "a.b", "q2", "Boom").await;
    let deleted = harness.delete(&format!("/dead-letter/{other}")).await.expect(200);
    assert_eq!(deleted, json!({ "deleted": true, "job_id": other }));
    harness.get(&format!("/jobs/{other}")).await.expect(404);
}

#[tokio::test]
async fn a_dead_letter_can_run_again_as_something_else() {
    let harness = Harness::new();
    let id = dead_letter(&harness, "a.b", "q1", "Boom").await;
    let changed = json!({
        "queue": "second", "meta": { "b": 3, "c": 4 }, "retry": { "max_attempts": 7 }, "args": ["edited"],
    });
    let job =
        harness.post(&format!("/dead-letter/{id}/retry"), json!({ "override": changed })).await.expect(200)["job"]
            .clone();
    assert_eq!((&job["queue"], &job["args"], &job["max_attempts"]), (&json!("second"), &json!(["edited"]), &json!(7)));
    assert_eq!(job["meta"], json!({ "a": 1, "b": 3, "c": 4 }), "merged, the new ones win");
    assert_eq!((&job["priority"], &job["tags"], &job["x_other"]), (&json!(5), &json!(["t"]), &json!([1])));
    let fetched = harness.post("/workers/fetch", json!({ "queues": ["second"] })).await.expect(200)["jobs"][0].clone();
    assert_eq!((&fetched["id"], &fetched["attempt"], &fetched["args"]), (&json!(id), &json!(1), &json!(["edited"])));
    assert_eq!(harness.job(&id).await["redrive"]["policy"]["attempts"], json!({ "at_most": 7 }));
}

#[tokio::test]
async fn what_is_not_allowed_in_an_override_is_refused_and_nothing_changes() {
    let harness = Harness::new();
    let id = dead_letter(&harness, "a.b", "q1", "Boom").await;
    for (changed, path) in [
        (json!({ "queue": "Not A Queue" }), "/override/queue"),
        (json!({ "args": { "a": 1 } }), "/override/args"),
        (json!({ "meta": [] }), "/override/meta"),
        (json!({ "color": "red" }), "/override/color"),
    ] {
        let error = harness.post(&format!("/dead-letter/{id}/retry"), json!({ "override": changed })).await.expect(400);
        assert_eq!(error["error"]["details"]["problems"][0]["path"], path);
    }
    harness.post(&format!("/dead-letter/{id}/retry"), json!({ "override": 5 })).await.expect(400);
    assert_eq!(harness.dead().await, [id]);
}

/// Four dead letters, an hour apart.
async fn four(harness: &Harness) -> [String; 4] {
    let one = dead_letter(harness, "mail.send", "q1", "Timeout").await;
    harness.advance_clock_ms(3_600_000.0);
    let two = dead_letter(harness, "mail.send", "q2", "Timeout").await;
    harness.advance_clock_ms(3_600_000.0);
    let three = dead_letter(harness, "report.make", "q1", "Boom").await;
    harness.advance_clock_ms(3_600_000.0);
    let four = dead_letter(harness, "mail.send", "q1", "Boom").await;
    [one, two, three, four]
}

#[tokio::test]
async fn filters_choose_by_queue_type_error_and_time() {
    let harness = Harness::new();
    let [one, two, three, four] = four(&harness).await;
    for (filter, expected) in [
        (json!({}), vec![&four, &three, &two, &one]),
        (json!({ "queue": "q1" }), vec![&four, &three, &one]),
        (json!({ "type": "mail.send" }), vec![&four, &two, &one]),
        (json!({ "error_type": "Timeout" }), vec![&two, &one]),
        (json!({ "since": "2026-02-13T11:00:00Z" }), vec![&four, &three, &two]),
        (json!({ "until": "2026-02-13T11:00:00Z" }), vec![&one]),
        (json!({ "queue": "q1", "error_type": "Boom", "since": "2026-02-13T12:30:00Z" }), vec![&four]),
        (json!({ "queue": "nothing" }), vec![]),
    ] {
        let query: Vec<String> = filter
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap()))
            .collect();
        let listed = harness.get(&format!("/dead-letter?{}", query.join("&"))).await.expect(200);
        let ids: Vec<String> = listed["jobs"].as_array().unwrap().iter().map(|job| text(&job["id"])).collect();
        assert_eq!(ids.iter().collect::<Vec<_>>(), expected, "{filter}");
        assert_eq!(listed["pagination"]["total"], expected.len());
        let counted =
            harness.post("/dead-letter/retry", json!({ "filter": filter, "dry_run": true })).await.expect(200);
        assert_eq!((&counted["matched"], &counted["dry_run"]), (&json!(expected.len()), &json!(true)), "{filter}");
    }
    assert_eq!(harness.dead().await.len(), 4, "a dry run changes nothing");
}

#[tokio::test]
async fn bulk_operations_need_a_confirmation_and_change_what_fits() {
    let harness = Harness::new();
    let [one, two, three, four] = four(&harness).await;
    let filter = json!({ "error_type": "Timeout" });
    let error = harness.post("/dead-letter/retry", json!({ "filter": filter })).await.expect(400);
    assert!(error["error"]["message"].as_str().unwrap().contains("2 dead letters"), "{error}");
    let done = harness.post("/dead-letter/retry", json!({ "filter": filter, "confirm": true })).await.expect(200);
    assert_eq!((&done["matched"], &done["succeeded"], &done["failed"]), (&json!(2), &json!(2), &json!(0)));
    for id in [&one, &two] {
        assert_eq!(harness.job(id).await["state"], "available");
    }
    assert_eq!(harness.dead().await, [four.clone(), three.clone()]);

    harness.delete("/dead-letter?type=report.make").await.expect(400);
    let done = harness.delete("/dead-letter?type=report.make&confirm=true").await.expect(200);
    assert_eq!((&done["action"], &done["succeeded"]), (&json!("delete"), &json!(1)));
    let body = json!({ "filter": { "queue": "q1" }, "confirm": true });
    harness.call("DELETE", "/ojs/v1/dead-letter", &body).await.expect(200);
    assert!(harness.dead().await.is_empty());
    harness.get(&format!("/jobs/{four}")).await.expect(404);
}

#[tokio::test]
async fn a_filter_that_is_misspelt_is_refused() {
    let harness = Harness::new();
    four(&harness).await;
    for filter in [json!({ "queu": "q1" }), json!({ "queue": 5 }), json!({ "since": "yesterday" }), json!("q1")] {
        harness.post("/dead-letter/retry", json!({ "filter": filter, "confirm": true })).await.expect(400);
    }
    assert_eq!(harness.dead().await.len(), 4);
}

#[tokio::test]
async fn the_latest_dead_letter_is_listed_first_whenever_it_was_enqueued() {
    let harness = Harness::new();
    let retry = json!({ "max_attempts": 1, "on_exhaustion": "dead_letter" });
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(harness.enqueue(retry.clone()).await);
        harness.fetch().await.unwrap();
        harness.advance_clock_ms(1_000.0);
    }
    for place in [1, 2, 0] {
        harness.fail(&ids[place]).await;
        harness.advance_clock_ms(1_000.0);
    }
    assert_eq!(harness.dead().await, [0, 2, 1].map(|place| ids[place].clone()));
    let first = harness.get("/dead-letter?limit=1").await.expect(200);
    let cursor = text(&first["pagination"]["next_cursor"]);
    let next = harness.get(&format!("/dead-letter?limit=1&cursor={cursor}")).await.expect(200);
    assert_eq!(next["jobs"][0]["id"], json!(ids[2]));
}

#[tokio::test]
async fn pages_and_numbers_of_the_dead_letters() {
    let harness = Harness::new();
    let [one, _, _, four] = four(&harness).await;
    let first = harness.get("/dead-letter?limit=3").await.expect(200);
    let mut page = first["pagination"].clone();
    let cursor = text(&page["next_cursor"].take());
    assert_eq!(page, json!({ "total": 4, "limit": 3, "offset": 0, "has_more": true, "next_cursor": null }));
    assert_eq!(first["jobs"][0]["id"], json!(four), "newest first");
    let expected = json!({ "total": 4, "limit": 3, "offset": 3, "has_more": false, "next_cursor": null });
    for place in [format!("cursor={cursor}"), "offset=3".to_owned()] {
        let last = harness.get(&format!("/dead-letter?limit=3&{place}")).await.expect(200);
        assert_eq!((&last["jobs"][0]["id"], &last["pagination"]), (&json!(one), &expected), "{place}");
    }
    let stats = harness.get("/dead-letter/stats").await.expect(200);
    assert_eq!((&stats["total"], &stats["by_queue"]), (&json!(4), &json!({ "q1": 3, "q2": 1 })));
    assert_eq!(stats["by_error_type"], json!({ "Boom": 2, "Timeout": 2 }));
    assert_eq!(stats["oldest_at"], "2026-02-13T10:00:00.000000Z");
    assert_eq!(stats["retention"]["max_age"], "PT2592000S");
}
