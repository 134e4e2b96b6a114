//! Unique jobs over HTTP: what the specification requires of them, and what is refused.

use crate::common::{Harness, text};
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

fn job(args: Value, unique: Value) -> Value {
    json!({ "type": "email.send", "args": [args], "options": { "unique": unique } })
}

async fn enqueue(harness: &Harness, args: Value, unique: Value) -> Value {
    harness.post("/jobs", job(args, unique)).await.expect(201)["job"].clone()
}

async fn done(harness: &Harness) {
    let job = harness.fetch().await.unwrap();
    harness.post("/workers/ack", json!({ "job_id": job["id"] })).await.expect(200);
}

#[tokio::test]
async fn a_duplicate_is_refused_with_the_job_that_is_there() {
    let harness = Harness::new();
    let first = enqueue(&harness, json!({ "user": 42 }), json!({ "keys": ["type", "args"] })).await;
    assert_eq!(first["unique"], json!({ "keys": ["type", "args"] }), "the policy is returned as it came");
    let refused = harness.post("/jobs", job(json!({ "user": 42 }), json!({ "keys": ["args"] }))).await.expect(409);
    let error = &refused["error"];
    assert_eq!((&error["code"], &error["retryable"]), (&json!("duplicate"), &json!(false)));
    let details = &error["details"];
    assert_eq!((&details["existing_job_id"], &details["existing_job_state"]), (&first["id"], &json!("available")));
    // SHA-256 of {"args":[{"user":42}],"type":"email.send"}: anyone can compute it.
    let key = "23291bb654c4b6be4b4a144a0dbea7a455b94e55d8dfd3dd5ada675e9dfc137b";
    assert_eq!(details["uniqueness_key"], key);
    enqueue(&harness, json!({ "user": 43 }), json!({ "keys": ["type", "args"] })).await;
}

#[tokio::test]
async fn the_key_is_made_of_what_the_policy_names() {
    let harness = Harness::new();
    let by_user = json!({ "keys": ["type", "args"], "args_keys": ["user"] });
    enqueue(&harness, json!({ "user": 42, "text": "a" }), by_user.clone()).await;
    harness.post("/jobs", job(json!({ "text": "b", "user": 42.0 }), by_user)).await.expect(409);
    // Another queue is another job only where the policy says so.
    for (keys, queue, status) in
        [(json!(["queue"]), "a", 201), (json!(["queue"]), "b", 201), (json!(["queue"]), "a", 409)]
    {
        let options = json!({ "queue": queue, "unique": { "keys": keys } });
        harness.post("/jobs", json!({ "type": "scoped", "args": [], "options": options })).await.expect(status);
    }
    for (tenant, trace, status) in [("acme", 1, 201), ("acme", 2, 409), ("globex", 3, 201)] {
        let unique = json!({ "keys": ["meta"], "meta_keys": ["tenant"] });
        let meta = json!({ "tenant": tenant, "trace": trace });
        let job = json!({ "type": "cache.warm", "args": [], "meta": meta, "options": { "unique": unique } });
        harness.post("/jobs", job).await.expect(status);
    }
    // Without `keys`, the type alone, also at the top level.
    for status in [201, 409] {
        harness.post("/jobs", json!({ "type": "report.daily", "args": [status], "unique": {} })).await.expect(status);
    }
    // Names of some client libraries, and of openapi.yaml.
    let other = json!({ "key": ["type"], "on_conflict": "use_existing" });
    let answer =
        harness.post("/jobs", json!({ "type": "report.daily", "args": [], "unique": other })).await.expect(200);
    assert_eq!(answer["deduplicated"], true);
}

#[tokio::test]
async fn a_period_and_the_states_limit_what_is_a_duplicate() {
    let harness = Harness::new();
    let short = json!({ "period": "PT2S" });
    enqueue(&harness, json!(1), short.clone()).await;
    harness.advance_ms(1_999.0).await;
    harness.post("/jobs", job(json!(2), short.clone())).await.expect(409);
    harness.advance_ms(1.0).await;
    enqueue(&harness, json!(2), short).await;
    done(&harness).await;
    done(&harness).await;
    // What has completed is no duplicate, unless the policy says so.
    let ever = json!({ "states": ["available", "active", "scheduled", "retryable", "pending", "completed"] });
    harness.post("/jobs", job(json!(3), ever)).await.expect(409);
    let third = enqueue(&harness, json!(3), json!({})).await;
    harness.fetch().await.unwrap();
    harness.fail(third["id"].as_str().unwrap()).await;
    let refused = harness.post("/jobs", job(json!(4), json!({}))).await.expect(409);
    assert_eq!(refused["error"]["details"]["existing_job_state"], "retryable");
}

#[tokio::test]
async fn a_duplicate_is_ignored_and_the_job_that_is_there_returned() {
    let harness = Harness::new();
    let first = enqueue(&harness, json!(1), json!({})).await;
    let reply = harness.post("/jobs", job(json!(2), json!({ "on_conflict": "ignore" }))).await.expect(200);
    assert_eq!((&reply["job"]["id"], &reply["deduplicated"]), (&first["id"], &json!(true)));
    assert_eq!((&reply["job"]["state"], &reply["job"]["args"]), (&json!("available"), &json!([1])));
    let batch = json!({ "jobs": [
        { "type": "other", "args": [] },
        job(json!(3), json!({ "on_conflict": "ignore" })),
    ] });
    let reply = harness.post("/jobs/batch", batch).await.expect(201);
    assert_eq!((&reply["count"], &reply["existing"], &reply["deduplicated"]), (&json!(2), &json!([1]), &json!([1])));
    assert_eq!(reply["jobs"][1]["id"], first["id"]);
}

#[tokio::test]
async fn a_job_replaces_the_one_that_is_there() {
    let harness = Harness::new();
    let first = enqueue(&harness, json!(1), json!({})).await;
    let claimed = harness.fetch().await.unwrap();
    let second = enqueue(&harness, json!(2), json!({ "on_conflict": "replace" })).await;
    assert_eq!(harness.job(first["id"].as_str().unwrap()).await["state"], "cancelled");
    let late = json!({ "job_id": claimed["id"], "lease_token": claimed["lease_token"] });
    harness.post("/workers/ack", late).await.expect(409);
    let events = harness.get("/events").await.expect(200);
    let told: Vec<(String, String)> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| (text(&event["type"]), text(&event["subject"])))
        .collect();
    let named = |kind: &str, id: &Value| (kind.to_owned(), text(id));
    assert_eq!(told[2..], [named("job.cancelled", &first["id"]), named("job.enqueued", &second["id"])]);
}

#[tokio::test]
async fn a_job_keeps_the_schedule_of_the_one_that_it_replaces() {
    let harness = Harness::new();
    let scheduled = |at: &str, on_conflict: &str| {
        let options = json!({ "scheduled_at": at, "unique": { "on_conflict": on_conflict } });
        json!({ "type": "digest.send", "args": [at], "options": options })
    };
    let (early, late) = ("2099-02-12T14:00:00Z", "2099-02-12T15:00:00Z");
    harness.post("/jobs", scheduled(early, "reject")).await.expect(201);
    let job = harness.post("/jobs", scheduled(late, "replace_except_schedule")).await.expect(201)["job"].clone();
    assert_eq!((&job["state"], &job["args"]), (&json!("scheduled"), &json!([late])));
    assert_eq!(text(&job["scheduled_at"])[..19], early[..19]);
    let read = harness.job(job["id"].as_str().unwrap()).await;
    assert_eq!(read["scheduled_at"], job["scheduled_at"]);
}

#[tokio::test]
async fn a_batch_with_a_duplicate_is_refused_whole() {
    let harness = Harness::new();
    let twice =
        json!({ "jobs": [{ "type": "other", "args": [] }, job(json!(1), json!({})), job(json!(2), json!({}))] });
    let refused = harness.post("/jobs/batch", twice).await.expect(409);
    assert_eq!((&refused["error"]["code"], &refused["error"]["details"]["index"]), (&json!("duplicate"), &json!(2)));
    assert_eq!(harness.get("/admin/jobs").await.expect(200)["pagination"]["total"], 0);
}

#[tokio::test]
async fn a_redrive_is_refused_while_another_job_has_the_key() {
    let harness = Harness::new();
    let options =
        json!({ "retry": { "max_attempts": 1, "on_exhaustion": "dead_letter" }, "unique": { "keys": ["queue"] } });
    let dead = harness.enqueue_with(options.clone()).await;
    harness.fetch().await.unwrap();
    harness.fail(&dead).await;
    let second = harness.enqueue_with(options).await;
    let refused = harness.post(&format!("/dead-letter/{dead}/retry"), json!({})).await.expect(409);
    let details = &refused["error"]["details"];
    assert_eq!((&refused["error"]["code"], &details["existing_job_id"]), (&json!("duplicate"), &json!(second)));
    let all = json!({ "all": true, "confirm": true });
    let many = harness.post("/dead-letter/retry", all).await.expect(200);
    assert_eq!((&many["succeeded"], &many["failed"]), (&json!(0), &json!(1)));
    assert!(text(&many["errors"][0]["message"]).contains(&second), "{many}");
    // In another queue it has another key.
    let moved = json!({ "override": { "queue": "elsewhere" } });
    harness.post(&format!("/dead-letter/{dead}/retry"), moved).await.expect(200);
}

#[tokio::test]
async fn what_is_wrong_with_a_policy_is_listed_whole() {
    let harness = Harness::new();
    let wrong = json!({
        "keys": ["type", "argz", "type", "meta"], "args_keys": ["user"], "period": "1h", "states": ["done"],
        "on_conflict": "drop", "untill": 1,
    });
    let refused = harness.post("/jobs", job(json!({ "name": 1 }), wrong)).await.expect(400);
    assert_eq!(refused["error"]["code"], "invalid_request");
    let problems = refused["error"]["details"]["problems"].as_array().unwrap();
    let paths: Vec<&str> = problems.iter().map(|problem| problem["path"].as_str().unwrap()).collect();
    for path in ["untill", "keys/1", "keys/2", "args_keys", "meta_keys", "period", "states/0", "on_conflict"] {
        assert!(paths.contains(&&*format!("/options/unique/{path}")), "{path} is not in {paths:?}");
    }
    for (unique, path) in [
        (json!([]), ""),
        (json!({ "keys": "argz" }), "/keys/0"),
        (json!({ "keys": ["args"], "args_keys": ["user"] }), "/args_keys"),
        (json!({ "keys": ["meta"], "meta_keys": [] }), "/meta_keys"),
        (json!({ "keys": ["meta"], "meta_keys": ["tenant"] }), "/meta_keys"),
        (json!({ "keys": ["type"], "key": ["type"] }), "/key"),
        (json!({ "keys": ["TYPE"] }), "/keys/0"),
        (json!({ "period": "PT0S" }), "/period"),
        (json!({ "period": "-PT1H" }), "/period"),
        (json!({ "period": 3_600 }), "/period"),
        (json!({ "states": ["available", "available"] }), "/states/1"),
        (json!({ "on_conflict": "Reject" }), "/on_conflict"),
    ] {
        let refused = harness.post("/jobs", job(json!({ "name": 1 }), unique.clone())).await.expect(400);
        let found = text(&refused["error"]["details"]["problems"][0]["path"]);
        assert!(found == format!("/options/unique{path}"), "{unique}: {refused}");
    }
    for accepted in [json!(null), json!({ "period": "P1W", "states": [], "meta_keys": [], "args_keys": null })] {
        enqueue(&harness, json!(1), accepted).await;
    }
}

#[tokio::test]
async fn the_manifest_declares_the_strength() {
    let harness = Harness::new();
    let manifest = harness.call_text("GET", "/ojs/manifest", "").await.expect(200);
    assert_eq!(manifest["capabilities"]["unique_jobs"]["strength"], "strong");
    let request = Request::builder().uri("/ojs/manifest").header("ojs-version", "1.0").body(Body::empty()).unwrap();
    let manifest = harness.send(request).await.expect(200);
    assert_eq!(manifest["capabilities"]["unique_jobs"], true);
}

#[tokio::test]
async fn priorities_have_names() {
    let harness = Harness::new();
    for (level, number) in [(json!("LOW"), -10), (json!("High"), 10), (json!("normal"), 0), (json!(7), 7)] {
        let job = json!({ "type": "a.b", "args": [], "options": { "priority": level } });
        assert_eq!(harness.post("/jobs", job).await.expect(201)["job"]["priority"], number);
    }
    for wrong in [json!("urgent"), json!("10"), json!(101), json!("")] {
        let job = json!({ "type": "a.b", "args": [], "options": { "priority": wrong } });
        let refused = harness.post("/jobs", job).await.expect(400);
        assert_eq!(refused["error"]["details"]["problems"][0]["path"], "/options/priority");
    }
}

#[tokio::test]
async fn the_job_of_the_guide_is_refused_as_the_guide_says() {
    const GUIDE: &str = include_str!("../../../../docs/guides/unique-jobs.md");
    let mut blocks = GUIDE.split("```json\n").skip(1).map(|rest| rest.split_once("```").expect("it ends").0);
    let (body, refusal) = (blocks.next().expect("a job"), blocks.next().expect("a refusal"));
    let refusal: Value = serde_json::from_str(refusal).unwrap();
    let harness = Harness::new();
    let first = harness.call_text("POST", "/ojs/v1/jobs", body).await.expect(201);
    let other = body.replace("pdf", "html");
    let refused = harness.call_text("POST", "/ojs/v1/jobs", &other).await.expect(409);
    let (details, told) = (&refused["error"]["details"], &refusal["error"]["details"]);
    assert_eq!(
        (&refused["error"]["code"], &details["existing_job_id"]),
        (&refusal["error"]["code"], &first["job"]["id"])
    );
    assert_eq!(details["existing_job_state"], told["existing_job_state"]);
    assert_eq!(details["uniqueness_key"], told["uniqueness_key"]);
    harness.advance_ms(3_600_000.0).await;
    harness.call_text("POST", "/ojs/v1/jobs", &other).await.expect(201);
    // The policies of the table of examples are valid.
    let (_, examples) = GUIDE.split_once("## Examples").expect("examples");
    let policies = examples.split_once("##").expect("they end").0.lines().filter_map(|line| line.split('`').nth(1));
    let mut checked = 0;
    for policy in policies {
        let unique: Value = serde_json::from_str(policy).unwrap();
        let job = json!({
            "type": format!("example.n{checked}"), "args": [{ "user": 1 }], "meta": { "tenant": "a" },
            "options": { "unique": unique },
        });
        harness.post("/jobs", job).await.expect(201);
        checked += 1;
    }
    assert_eq!(checked, 6);
}
