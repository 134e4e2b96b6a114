//! Workers: leases, tokens, settling many, releasing, waiting for jobs.

use crate::common::{Harness, ms, text};
use serde_json::{Value, json};

#[tokio::test]
async fn a_lease_token_fences_what_comes_late() {
    let harness = Harness::new();
    let retry = json!({ "initial_interval": "PT1S", "jitter": false });
    let id = harness.enqueue_with(json!({ "retry": retry, "visibility_timeout_ms": 1_000 })).await;
    let first = harness.fetch().await.unwrap();
    assert_eq!(
        (&first["worker_id"], text(&first["lease_expires_at"])),
        (&json!("w1"), "2026-02-13T10:00:01.000000Z".into())
    );
    harness.advance_ms(1_000.0).await;
    let second = harness.fetch_as("w2").await.unwrap();
    assert_ne!(first["lease_token"], second["lease_token"]);
    let ack = |token: &Value| json!({ "job_id": id, "lease_token": token });
    for (token, reason) in [(&first["lease_token"], "stale_lease"), (&json!("9-0000000000000000"), "wrong_lease")] {
        let error = harness.post("/workers/ack", ack(token)).await.expect(409);
        assert_eq!(error["error"]["details"]["reason"], reason);
    }
    let other = harness.post("/workers/ack", json!({ "job_id": id, "worker_id": "w1" })).await.expect(409);
    assert_eq!(other["error"]["details"]["reason"], "other_worker");
    harness.post("/workers/ack", ack(&json!("nonsense"))).await.expect(400);
    let done = harness.post("/workers/ack", ack(&second["lease_token"])).await.expect(200);
    let again = harness.post("/workers/ack", ack(&second["lease_token"])).await.expect(200);
    assert_eq!(done, again, "a report that is sent twice is answered twice");
}

#[tokio::test]
async fn a_job_s_own_lease_comes_before_the_fetch_s() {
    let harness = Harness::new();
    for (options, seconds) in [
        (json!({}), 30),
        (json!({ "visibility_timeout_ms": 5_000 }), 5),
        (json!({ "visibility_timeout": "PT7S" }), 7),
        (json!({ "visibility_timeout": 9 }), 9),
    ] {
        harness.enqueue_with(options.clone()).await;
        let fetch = json!({ "queues": ["default"], "visibility_timeout_ms": 30_000 });
        let job = harness.post("/workers/fetch", fetch).await.expect(200)["jobs"][0].clone();
        assert_eq!(text(&job["lease_expires_at"]), format!("2026-02-13T10:00:{seconds:02}.000000Z"), "{options}");
    }
    harness.enqueue_with(json!({})).await;
    assert_eq!(
        text(&harness.fetch().await.unwrap()["lease_expires_at"]),
        "2026-02-13T10:30:00.000000Z",
        "1800 s by default"
    );
}

#[tokio::test]
async fn many_runs_are_settled_at_once_and_answered_separately() {
    let harness = Harness::new();
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(harness.enqueue(json!({ "max_attempts": 2 })).await);
    }
    harness.post("/workers/fetch", json!({ "queues": ["default"], "count": 4 })).await.expect(200);
    let settlements = json!([
        { "action": "ack", "job_id": ids[0], "result": { "n": 1 } },
        { "action": "nack", "job_id": ids[1], "error": { "type": "Boom", "message": "m" } },
        { "action": "nack", "job_id": ids[2], "snooze_ms": 5_000 },
        { "action": "ack", "job_id": "019539a4-0000-7000-8000-ffffffffffff" },
        { "action": "ack", "job_id": ids[3], "lease_token": "1-0000000000000000" },
        { "action": "explode", "job_id": ids[3] },
        { "action": "nack", "job_id": ids[3] },
        7,
    ]);
    let body = harness.post("/workers/settle", json!({ "settlements": settlements })).await.expect(200);
    let results = body["results"].as_array().unwrap();
    let statuses: Vec<u64> = results.iter().map(|result| result["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [200, 200, 200, 404, 409, 400, 400, 400]);
    assert_eq!((&body["settled"], &body["refused"]), (&json!(3), &json!(5)));
    let states: Vec<&Value> = results[..3].iter().map(|result| &result["state"]).collect();
    assert_eq!(states, ["completed", "retryable", "retryable"]);
    assert_eq!(results[4]["error"]["details"]["reason"], "wrong_lease");
    assert_eq!(results[5]["error"]["details"]["problems"][0]["path"], "/action");
    assert_eq!(harness.job(&ids[3]).await["state"], "active", "what is refused changes nothing");
    for wrong in [json!({}), json!({ "settlements": [] }), json!({ "settlements": 5 })] {
        harness.post("/workers/settle", wrong).await.expect(400);
    }
}

#[tokio::test]
async fn a_failure_can_ask_for_its_own_wait() {
    for (retry_after, expected) in [
        (json!(7), 7_000.0),
        (json!(0.25), 250.0),
        (json!("120"), 120_000.0),
        (json!("Fri, 13 Feb 2026 10:01:00 GMT"), 60_000.0),
        (json!("2026-02-13T10:00:30Z"), 30_000.0),
        (json!("Fri, 13 Feb 2026 09:00:00 GMT"), 0.0),
    ] {
        for inside in [false, true] {
            let harness = Harness::new();
            let id = harness.enqueue(json!({ "max_attempts": 3 })).await;
            harness.fetch().await.unwrap();
            let mut report = json!({ "job_id": id, "error": { "message": "m" } });
            if inside {
                report["error"]["retry_after"] = retry_after.clone()
            } else {
                report["retry_after"] = retry_after.clone()
            }
            let reply = harness.post("/workers/nack", report).await.expect(200);
            assert_eq!(ms(&reply["retry_delay_ms"]), expected, "{retry_after}");
            let job = harness.job(&id).await;
            assert_eq!(job["redrive"]["failures"][0]["verdict"]["origin"], "override");
        }
    }
    let harness = Harness::new();
    let id = harness.enqueue(json!({})).await;
    harness.fetch().await.unwrap();
    for wrong in [json!(-1), json!("soon"), json!([]), json!(null)] {
        let report = json!({ "job_id": id, "error": { "message": "m" }, "retry_after": wrong });
        harness.post("/workers/nack", report).await.expect(400);
    }
}

#[tokio::test]
async fn a_snooze_spends_no_attempt_and_does_not_move_the_curve() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({ "max_attempts": 3, "initial_interval": "PT1S", "jitter": false })).await;
    for _ in 0..5 {
        assert_eq!(harness.fetch().await.unwrap()["attempt"], 1);
        let reply = harness.post("/workers/nack", json!({ "job_id": id, "snooze_ms": 60_000 })).await.expect(200);
        assert_eq!((&reply["state"], &reply["retry_delay_ms"]), (&json!("retryable"), &json!(60_000)));
        harness.advance_ms(59_999.0).await;
        assert_eq!(harness.fetch().await, None);
        harness.advance_ms(1.0).await;
    }
    harness.fetch().await.unwrap();
    assert_eq!(harness.fail(&id).await["retry_delay_ms"], 1_000, "the first delay of the curve");
    assert_eq!(harness.job(&id).await["errors"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_backtrace_is_a_list_of_lines() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({ "max_attempts": 9, "jitter": false })).await;
    for (given, stored) in [
        (json!("one\ntwo"), json!(["one", "two"])),
        (json!(["a", "b"]), json!(["a", "b"])),
        (json!([{ "file": "x" }]), json!(["[{\"file\":\"x\"}]"])),
    ] {
        harness.fetch().await.unwrap();
        let reply = harness.fail_with(&id, json!({ "message": "m", "backtrace": given })).await;
        assert_eq!(harness.job(&id).await["error"]["backtrace"], stored);
        harness.advance_ms(ms(&reply["retry_delay_ms"])).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_fetch_waits_for_a_job_as_long_as_it_says() {
    let harness = Harness::new();
    let fetch = json!({ "queues": ["default"], "wait_ms": 20_000 });
    let begun = tokio::time::Instant::now();
    let body = harness.post("/workers/fetch", fetch.clone()).await.expect(200);
    assert_eq!((&body["jobs"], begun.elapsed().as_secs()), (&json!([]), 20));
    let later = async {
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        harness.enqueue_with(json!({})).await
    };
    let begun = tokio::time::Instant::now();
    let (reply, id) = tokio::join!(harness.post("/workers/fetch", fetch), later);
    assert_eq!((&reply.expect(200)["jobs"][0]["id"], begun.elapsed().as_secs()), (&json!(id), 3));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_disconnects_keeps_no_job() {
    let harness = Harness::new();
    let wait = json!({ "queues": ["default"], "wait_ms": 20_000 });
    let gone = tokio::time::timeout(std::time::Duration::from_secs(1), harness.post("/workers/fetch", wait)).await;
    assert!(gone.is_err(), "the client broke off");
    // The server notices once it runs again.
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    let id = harness.enqueue_with(json!({})).await;
    assert_eq!(harness.fetch().await.unwrap()["id"], json!(id), "no other worker has claimed it");
}

#[tokio::test]
async fn a_lease_without_a_worker_id_accepts_any_worker() {
    let harness = Harness::new();
    let id = harness.enqueue_with(json!({})).await;
    harness.post("/workers/fetch", json!({ "queues": ["default"] })).await.expect(200);
    let heartbeat = json!({ "worker_id": "w7", "active_jobs": [id] });
    assert_eq!(harness.post("/workers/heartbeat", heartbeat).await.expect(200)["jobs_extended"], json!([id]));
    harness.post("/workers/ack", json!({ "job_id": id, "worker_id": "w7" })).await.expect(200);
}

#[tokio::test]
async fn a_heartbeat_tells_which_jobs_the_worker_no_longer_holds_and_why() {
    let harness = Harness::new();
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(harness.enqueue_with(json!({ "visibility_timeout_ms": 60_000 })).await);
    }
    let stalled = harness.enqueue_with(json!({ "visibility_timeout_ms": 1_000 })).await;
    let fetch = json!({ "queues": ["default"], "count": 5, "worker_id": "w1" });
    let fetched = harness.post("/workers/fetch", fetch).await.expect(200);
    let token = |id: &str| {
        let mut jobs = fetched["jobs"].as_array().unwrap().iter();
        jobs.find(|job| job["id"] == id).unwrap()["lease_token"].clone()
    };
    harness.advance_ms(3_000.0).await;
    assert_eq!(harness.fetch_as("w2").await.unwrap()["id"], json!(stalled));
    harness.delete(&format!("/jobs/{}", ids[1])).await.expect(200);
    harness.post("/workers/ack", json!({ "job_id": ids[2], "worker_id": "w1" })).await.expect(200);
    let unknown = "019539a4-0000-7000-8000-ffffffffffff";
    let named = json!({ "worker_id": "w1", "active_jobs": [ids[0], ids[1], ids[2], stalled, unknown] });
    let heartbeat = harness.post("/workers/heartbeat", named).await.expect(200);
    assert_eq!(heartbeat["jobs_extended"], json!([ids[0]]));
    let reasons = |heartbeat: &Value| -> Vec<(String, String)> {
        let refused = heartbeat["jobs_refused"].as_array().unwrap().iter();
        refused.map(|job| (text(&job["job_id"]), text(&job["reason"]))).collect()
    };
    let expected =
        [(&*ids[1], "wrong_state"), (&*ids[2], "wrong_state"), (&*stalled, "other_worker"), (unknown, "not_found")];
    assert_eq!(reasons(&heartbeat), expected.map(|(id, reason)| (id.to_owned(), reason.to_owned())));
    let by_token = |id: &str| json!({ "job_id": id, "lease_token": token(id) });
    let tokens =
        json!({ "worker_id": "w1", "active_jobs": [by_token(&ids[3]), by_token(&ids[1]), by_token(&stalled)] });
    let heartbeat = harness.post("/workers/heartbeat", tokens).await.expect(200);
    assert_eq!(heartbeat["jobs_extended"], json!([ids[3]]));
    let expected = [(&*ids[1], "stale_lease"), (&*stalled, "stale_lease")];
    assert_eq!(reasons(&heartbeat), expected.map(|(id, reason)| (id.to_owned(), reason.to_owned())));
}
