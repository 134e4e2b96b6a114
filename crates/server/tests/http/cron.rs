//! Schedules over HTTP. Every clock starts on Friday 2026-02-13 at 10:00 UTC.

use crate::common::{Harness, Parts, START, text};
use axum::body::Body;
use axum::http::Request;
use redrive_store::Memory;
use serde_json::{Value, json};
use std::sync::Arc;

const MINUTE: f64 = 60_000.0;

/// The form of the conformance cases.
fn template(name: &str, expression: &str) -> Value {
    json!({ "name": name, "expression": expression, "job_template": { "type": "report.make", "args": [1] } })
}

/// The form of the client libraries.
fn flat(name: &str, cron: &str) -> Value {
    json!({ "name": name, "cron": cron, "type": "report.make", "args": [1] })
}

async fn register(harness: &Harness, body: Value) -> Value {
    harness.post("/cron", body).await.expect(201)["cron_job"].clone()
}

async fn show(harness: &Harness, name: &str) -> Value {
    harness.get(&format!("/cron/{name}")).await.expect(200)["cron_job"].clone()
}

async fn names(harness: &Harness, query: &str) -> Vec<String> {
    let body = harness.get(&format!("/cron{query}")).await.expect(200);
    assert_eq!(body["crons"], body["cron_jobs"]);
    body["crons"].as_array().unwrap().iter().map(|cron| text(&cron["name"])).collect()
}

async fn ack(harness: &Harness, job: &Value) {
    harness.post("/workers/ack", json!({ "job_id": job["id"] })).await.expect(200);
}

#[tokio::test]
async fn both_forms_are_registered_and_answered_in_the_shapes_of_all_clients() {
    let harness = Harness::new();
    let created = harness.post("/cron", template("a", "*/5 * * * *")).await;
    assert_eq!(created.header("location"), "/ojs/v1/cron/a");
    let created = created.expect(201);
    for cron in [&created["cron"], &created["cron_job"]] {
        assert_eq!(
            (&cron["name"], &cron["expression"], &cron["cron"]),
            (&json!("a"), &json!("*/5 * * * *"), &json!("*/5 * * * *"))
        );
        assert_eq!((&cron["type"], &cron["args"]), (&json!("report.make"), &json!([1])));
        assert_eq!(
            (&cron["enabled"], &cron["timezone"], &cron["overlap_policy"]),
            (&json!(true), &json!("UTC"), &json!("skip"))
        );
        assert_eq!(cron["next_run_at"], "2026-02-13T10:05:00.000000Z");
        assert_eq!((&cron["last_run_at"], &cron["run_count"]), (&Value::Null, &json!(0)));
        assert_eq!(cron["created_at"], "2026-02-13T10:00:00.000000Z");
    }
    assert_eq!((&created["name"], &created["type"]), (&json!("a"), &json!("report.make")));

    let mut body = flat("b", "0 9 * * *");
    body["timezone"] = json!("America/New_York");
    body["overlap_policy"] = json!("enqueue");
    body["description"] = json!("every morning");
    body["options"] = json!({ "queue": "reports", "meta": { "team": "a" } });
    let request =
        Request::post("/ojs/v1/cron").header("OJS-Version", "1.0").body(Body::from(body.to_string())).unwrap();
    let created = harness.send(request).await.expect(201);
    assert_eq!(created["cron"], "0 9 * * *", "client libraries read the expression there");
    assert_eq!(created["cron_job"]["next_run_at"], "2026-02-13T14:00:00.000000Z");
    assert_eq!(created["cron_job"]["description"], "every morning");
    assert_eq!(created["cron_job"]["options"]["queue"], "reports");
    assert_eq!(created["cron_job"]["meta"], json!({ "team": "a" }));
    assert_eq!(show(&harness, "b").await, created["cron_job"]);
}

#[tokio::test]
async fn a_name_is_taken_until_it_is_deleted() {
    let harness = Harness::new();
    register(&harness, flat("a", "@daily")).await;
    let refused = harness.post("/cron", flat("a", "@hourly")).await.expect(409);
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["details"]["reason"]),
        (&json!("conflict"), &json!("name_taken"))
    );
    let deleted = harness.delete("/cron/a").await.expect(200);
    assert_eq!(
        (&deleted["deleted"], &deleted["name"], &deleted["cron"]["name"]),
        (&json!(true), &json!("a"), &json!("a"))
    );
    assert_eq!(names(&harness, "").await, Vec::<String>::new());
    harness.get("/cron/a").await.expect(404);
    harness.delete("/cron/a").await.expect(404);
    harness.advance_ms(48.0 * 60.0 * MINUTE).await;
    assert_eq!(harness.fetch().await, None, "what is deleted is never due");
    register(&harness, flat("a", "@hourly")).await;
}

#[tokio::test]
async fn lists_are_by_name_in_pages_and_filtered() {
    let harness = Harness::new();
    for name in ["c", "a", "b"] {
        let mut body = flat(name, "@daily");
        body["enabled"] = json!(name != "b");
        register(&harness, body).await;
    }
    assert_eq!(names(&harness, "").await, ["a", "b", "c"]);
    assert_eq!(names(&harness, "?enabled=true").await, ["a", "c"]);
    assert_eq!(names(&harness, "?enabled=false").await, ["b"]);
    let first = harness.get("/cron?limit=2").await.expect(200);
    let pagination = json!({
        "total": 2, "limit": 2, "offset": 0, "total_at_least": true, "has_more": true, "next_cursor": "b",
    });
    assert_eq!((&first["count"], &first["pagination"]), (&json!(2), &pagination), "only the page is read");
    assert_eq!(names(&harness, "?limit=2&cursor=b").await, ["c"]);
    assert_eq!(names(&harness, "?limit=1&offset=1").await, ["b"]);
    assert_eq!(names(&harness, "?limit=1&offset=1&enabled=true").await, ["c"]);
    assert_eq!(names(&harness, "?cursor=bb").await, ["c"], "a name that none has any more");
    let whole = harness.get("/cron?limit=3").await.expect(200);
    assert_eq!((&whole["pagination"]["total"], &whole["pagination"]["has_more"]), (&json!(3), &json!(false)));
    harness.get("/cron?enabled=maybe").await.expect(400);
    harness.get("/cron?enabeld=true").await.expect(400);
    let missing = harness.get("/cron/daily").await.expect(404);
    assert_eq!(missing["error"]["code"], "not_found");
}

#[tokio::test]
async fn jobs_of_schedules_have_no_idempotency_keys() {
    let harness = Harness::new();
    let mut body = flat("keyed", "@daily");
    body["options"] = json!({ "idempotency_key": "k" });
    let refused = harness.post("/cron", body).await.expect(400);
    assert!(text(&refused["error"]["message"]).contains("idempotency_key"), "{refused}");
}

#[tokio::test]
async fn each_slot_is_one_job_that_says_where_it_comes_from() {
    let harness = Harness::new();
    let mut body = flat("every-minute", "* * * * *");
    body["meta"] = json!({ "team": "a", "cron_name": "of the caller" });
    body["options"] = json!({ "priority": 5, "retry": { "max_attempts": 7 } });
    body["overlap_policy"] = json!("allow");
    register(&harness, body).await;
    harness.advance_ms(MINUTE - 1.0).await;
    assert_eq!(harness.fetch().await, None);
    harness.advance_ms(1.5).await;
    let job = harness.fetch().await.expect("a job of the slot");
    assert_eq!((&job["type"], &job["args"], &job["priority"]), (&json!("report.make"), &json!([1]), &json!(5)));
    assert_eq!(job["max_attempts"], 7);
    let meta = json!({
        "team": "a",
        "cron_name": "every-minute",
        "cron_triggered_at": "2026-02-13T10:01:00.000500Z",
        "cron_scheduled_at": "2026-02-13T10:01:00.000000Z",
    });
    assert_eq!(job["meta"], meta);
    harness.advance_ms(0.0).await;
    assert_eq!(harness.fetch().await, None, "once only");
    harness.advance_ms(MINUTE).await;
    assert!(harness.fetch().await.is_some());
    let cron = show(&harness, "every-minute").await;
    assert_eq!((&cron["run_count"], &cron["last_run_at"]), (&json!(2), &json!("2026-02-13T10:02:00.000500Z")));
    assert_eq!(cron["next_run_at"], "2026-02-13T10:03:00.000000Z");
}

#[tokio::test]
async fn a_restart_neither_loses_nor_repeats_slots_and_catches_up_once() {
    let store = Arc::new(Memory::new());
    let parts = || Parts { store: Arc::clone(&store) as _, ..Parts::default() };
    let harness = Harness::with(parts());
    let mut body = flat("a", "* * * * *");
    body["overlap_policy"] = json!("allow");
    register(&harness, body).await;
    harness.advance_ms(MINUTE).await;
    assert!(harness.fetch().await.is_some());
    drop(harness);
    let harness = Harness::at(parts(), START + 60_500_000);
    harness.advance_ms(0.0).await;
    assert_eq!(harness.fetch().await, None);
    drop(harness);
    // Down for a day: of all slots that were missed, the last is due.
    let harness = Harness::at(parts(), START + 86_400_000_000 + 30_000_000);
    harness.advance_ms(0.0).await;
    let job = harness.fetch().await.expect("one job for all");
    assert_eq!(job["meta"]["cron_scheduled_at"], "2026-02-14T10:00:00.000000Z");
    assert_eq!(harness.fetch().await, None);
    assert_eq!(show(&harness, "a").await["next_run_at"], "2026-02-14T10:01:00.000000Z");
}

#[tokio::test]
async fn skip_leaves_slots_out_while_a_job_has_not_ended() {
    let harness = Harness::new();
    register(&harness, template("a", "* * * * *")).await;
    harness.advance_ms(MINUTE).await;
    harness.advance_ms(MINUTE).await;
    let job = harness.fetch().await.expect("the first");
    assert_eq!(harness.fetch().await, None, "one that waits for a worker counts as well");
    harness.advance_ms(MINUTE).await;
    assert_eq!(harness.fetch().await, None);
    let cron = show(&harness, "a").await;
    assert_eq!((&cron["run_count"], &cron["skipped_count"]), (&json!(1), &json!(2)));
    assert_eq!(cron["last_skipped_at"], "2026-02-13T10:03:00.000000Z");
    ack(&harness, &job).await;
    harness.advance_ms(MINUTE).await;
    assert!(harness.fetch().await.is_some());
}

#[tokio::test]
async fn cancel_previous_cancels_what_has_not_ended() {
    let harness = Harness::new();
    let mut body = template("a", "* * * * *");
    body["overlap_policy"] = json!("cancel_previous");
    register(&harness, body).await;
    harness.advance_ms(MINUTE).await;
    let first = harness.fetch().await.unwrap();
    harness.advance_ms(MINUTE).await;
    assert_eq!(harness.job(&text(&first["id"])).await["state"], "cancelled");
    let second = harness.fetch().await.expect("the next one");
    ack(&harness, &second).await;
    harness.advance_ms(MINUTE).await;
    assert_eq!(harness.job(&text(&second["id"])).await["state"], "completed");
}

#[tokio::test]
async fn enqueue_runs_every_slot_one_after_the_other() {
    let harness = Harness::new();
    let mut body = template("a", "* * * * *");
    body["overlap_policy"] = json!("enqueue");
    register(&harness, body).await;
    for _ in 0..3 {
        harness.advance_ms(MINUTE).await;
    }
    assert_eq!(show(&harness, "a").await["waiting_count"], 2);
    for minute in 1..=3 {
        let job = harness.fetch().await.expect("the next one");
        assert_eq!(job["meta"]["cron_scheduled_at"], format!("2026-02-13T10:0{minute}:00.000000Z"));
        assert_eq!(harness.fetch().await, None);
        ack(&harness, &job).await;
    }
    assert_eq!(harness.fetch().await, None);
    assert_eq!(show(&harness, "a").await["run_count"], 3);
}

#[tokio::test]
async fn a_schedule_is_switched_off_and_on() {
    let harness = Harness::new();
    register(&harness, flat("a", "* * * * *")).await;
    let off = harness.call("PATCH", "/ojs/v1/cron/a", &json!({ "enabled": false })).await.expect(200);
    assert_eq!((&off["cron_job"]["enabled"], &off["cron_job"]["next_run_at"]), (&json!(false), &Value::Null));
    assert_eq!(off["cron_job"]["status"], "paused");
    harness.advance_ms(10.5 * MINUTE).await;
    assert_eq!(harness.fetch().await, None);
    let on = harness.call("PATCH", "/ojs/v1/cron/a", &json!({ "enabled": true })).await.expect(200);
    assert_eq!(on["cron_job"]["next_run_at"], "2026-02-13T10:11:00.000000Z", "what passed meanwhile is over");
    for body in [json!({}), json!({ "enabled": 1 }), json!({ "enabled": true, "cron": "@daily" })] {
        harness.call("PATCH", "/ojs/v1/cron/a", &body).await.expect(400);
    }
    harness.call("PATCH", "/ojs/v1/cron/b", &json!({ "enabled": true })).await.expect(404);
}

#[tokio::test]
async fn put_registers_and_changes() {
    let harness = Harness::new();
    let body = json!({ "cron": "* * * * *", "type": "report.make", "overlap_policy": "allow" });
    let created = harness.call("PUT", "/ojs/v1/cron/a", &body).await.expect(201);
    assert_eq!((&created["name"], &created["args"]), (&json!("a"), &json!([])));
    harness.advance_ms(MINUTE).await;
    let mut body = flat("a", "30 * * * *");
    body["args"] = json!([2]);
    let changed = harness.call("PUT", "/ojs/v1/cron/a", &body).await.expect(200);
    let cron = &changed["cron_job"];
    assert_eq!((&cron["cron"], &cron["args"], &cron["run_count"]), (&json!("30 * * * *"), &json!([2]), &json!(1)));
    assert_eq!(cron["next_run_at"], "2026-02-13T10:30:00.000000Z");
    // What was answered can be sent back.
    let again = harness.call("PUT", "/ojs/v1/cron/a", cron).await.expect(200);
    assert_eq!(&again["cron_job"], cron);
    let other = harness.call("PUT", "/ojs/v1/cron/a", &flat("b", "@daily")).await.expect(400);
    assert!(text(&other["error"]["message"]).contains("the name in the path, \"a\""), "{other}");
}

/// The paths of all problems with a schedule.
async fn problems(harness: &Harness, body: &Value, status: u16) -> Vec<String> {
    let refused = harness.call("POST", "/ojs/v1/cron", body).await.expect(status);
    let problems = refused["error"]["details"]["problems"].as_array().unwrap_or_else(|| panic!("{refused}")).clone();
    problems.iter().map(|problem| text(&problem["path"])).collect()
}

#[tokio::test]
async fn everything_that_is_wrong_is_listed() {
    let harness = Harness::new();
    let wrong = json!({
        "name": "Not A Name", "expression": "99 * * 13 *", "timezone": "EST", "overlap_policy": "maybe",
        "enabled": "yes", "overlap": 1, "job_template": { "type": "Bad Type", "args": {} },
    });
    assert_eq!(
        problems(&harness, &wrong, 400).await,
        [
            "/overlap",
            "/name",
            "/expression",
            "/expression",
            "/timezone",
            "/overlap_policy",
            "/enabled",
            "/job_template/type",
            "/job_template/args",
        ]
    );
    assert_eq!(problems(&harness, &json!({}), 400).await, ["/name", "/cron", "/type"]);
    for expression in ["not a valid cron", "0 0 0 0 0 0 0", "99 25 32 13 8", "0 0 30 2 *", ""] {
        problems(&harness, &template("a", expression), 400).await;
    }
    for (key, value) in [("type", json!("a.b")), ("options", json!({}))] {
        let mut both = template("a", "@daily");
        both[key] = value;
        assert_eq!(problems(&harness, &both, 400).await, [format!("/{key}")]);
    }
    let mut two = template("a", "@daily");
    two["cron"] = json!("@hourly");
    assert_eq!(problems(&harness, &two, 400).await, ["/cron"]);
    let mut fixed = template("a", "@daily");
    fixed["job_template"]["id"] = json!("0197f6a0-0000-7000-8000-000000000000");
    assert_eq!(problems(&harness, &fixed, 400).await.len(), 1);
    assert_eq!(names(&harness, "").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_retry_policy_is_checked_when_the_schedule_is_registered() {
    let harness = Harness::new();
    let mut body = flat("a", "@daily");
    body["options"] = json!({ "retry": { "backoff_coefficient": 0.5 } });
    assert_eq!(problems(&harness, &body, 422).await, ["/options/retry/backoff_coefficient"]);
    let mut body = template("a", "@daily");
    body["job_template"]["options"] = json!({ "retry": { "max_attempts": -1 } });
    assert_eq!(problems(&harness, &body, 422).await, ["/job_template/options/retry/max_attempts"]);
}

#[tokio::test]
async fn a_job_that_cannot_be_enqueued_later_is_told_and_the_schedule_goes_on() {
    let harness = Harness::new();
    let mut body = flat("a", "0 * * * *");
    body["options"] = json!({ "expires_at": "2026-02-13T11:30:00Z" });
    register(&harness, body).await;
    harness.advance_ms(60.0 * MINUTE).await;
    ack(&harness, &harness.fetch().await.expect("in time")).await;
    harness.advance_ms(60.0 * MINUTE).await;
    assert_eq!(harness.fetch().await, None);
    let cron = show(&harness, "a").await;
    assert_eq!(
        (&cron["run_count"], &cron["last_error"]["scheduled_at"]),
        (&json!(1), &json!("2026-02-13T12:00:00.000000Z"))
    );
    assert!(text(&cron["last_error"]["message"]).contains("expires_at"), "{cron}");
    assert_eq!(cron["next_run_at"], "2026-02-13T13:00:00.000000Z");
}

#[tokio::test]
async fn what_a_job_has_at_its_top_is_one_of_its_options() {
    let harness = Harness::new();
    let mut body = template("a", "* * * * *");
    body["job_template"] = json!({
        "type": "report.make", "queue": "slow", "name": "of the job", "state": "completed",
        "options": { "priority": 3, "tags": ["x"] }, "tags": ["y"],
    });
    let cron = register(&harness, body).await;
    assert_eq!(cron["name"], "a");
    let options = json!({ "priority": 3, "tags": ["x"], "queue": "slow", "name": "of the job" });
    assert_eq!((&cron["options"], &cron["args"]), (&options, &json!([])));
    harness.advance_ms(MINUTE).await;
    let job = harness.post("/workers/fetch", json!({ "queues": ["slow"] })).await.expect(200)["jobs"][0].clone();
    assert_eq!((&job["priority"], &job["tags"], &job["name"]), (&json!(3), &json!(["x"]), &json!("of the job")));
}

#[tokio::test]
async fn the_manifest_has_schedules() {
    let harness = Harness::new();
    let manifest = harness.call_text("GET", "/ojs/manifest", "").await.expect(200);
    assert_eq!(manifest["capabilities"]["cron_jobs"], true);
}

#[tokio::test]
async fn the_schedule_of_the_guide_is_due_as_the_guide_says() {
    const GUIDE: &str = include_str!("../../../../docs/guides/schedules.md");
    let (_, rest) = GUIDE.split_once("```json\n").expect("the guide has a schedule");
    let (body, _) = rest.split_once("```").expect("it ends");
    let harness = Harness::new();
    let created = harness.call_text("POST", "/ojs/v1/cron", body).await.expect(201);
    // It is Friday, 11:00 in Berlin: the next is on Monday at 9:00.
    assert_eq!(created["cron_job"]["next_run_at"], "2026-02-16T08:00:00.000000Z");
    harness.advance_ms(70.0 * 60.0 * MINUTE).await;
    let fetched = harness.post("/workers/fetch", json!({ "queues": ["reports"] })).await.expect(200);
    assert_eq!((&fetched["jobs"][0]["args"], &fetched["jobs"][0]["max_attempts"]), (&json!(["daily"]), &json!(5)));
}
