//! Metrics: each one moves when it should, and what clients send does not make them grow without bound.

use crate::common::{Harness, Parts, text};
use crate::scratch::Scratch;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use redrive_server::{ApiKeys, Limits, LocalStore};
use redrive_store::Embedded;
use redrive_store::embedded::Options;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tower::ServiceExt;

/// The value of each series.
type Scrape = BTreeMap<String, f64>;

const KEY: &str = "0123456789abcdef0123456789abcdef";

async fn scraped_text(harness: &Harness) -> String {
    let request = Request::get("/metrics").header("authorization", format!("Bearer {KEY}")).body(Body::empty());
    let response = harness.server.router().oneshot(request.unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    String::from_utf8(to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec()).unwrap()
}

async fn scrape(harness: &Harness) -> Scrape {
    let text = scraped_text(harness).await;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, value)| (name.into(), value.parse().unwrap()))
        .collect()
}

/// A server on a store in a folder, whose writes are observed.
fn observed(scratch: &Scratch, limits: Limits) -> (Harness, Arc<Embedded>) {
    let (store, _) = Embedded::open(scratch.path().join("data"), Options::default()).unwrap();
    let store = Arc::new(store);
    let local = Some(LocalStore::new(Arc::clone(&store), None));
    let harness = Harness::with(Parts { store: Arc::clone(&store) as _, local, limits, ..Parts::default() });
    store.observe(harness.server.write_observer());
    (harness, store)
}

async fn enqueue(harness: &Harness, kind: &str, options: Value) -> String {
    let body = json!({ "type": kind, "args": [], "options": options });
    text(&harness.post("/jobs", body).await.expect(201)["job"]["id"])
}

async fn fetch(harness: &Harness, queue: &str) -> Option<String> {
    let body = json!({ "queues": [queue], "worker_id": "w1" });
    let jobs = harness.post("/workers/fetch", body).await.expect(200)["jobs"].clone();
    jobs.as_array().unwrap().first().map(|job| text(&job["id"]))
}

async fn ack(harness: &Harness, id: &str) {
    harness.post("/workers/ack", json!({ "job_id": id })).await.expect(200);
}

/// Everything that can happen to jobs, in queues and with types of its own.
async fn workload(harness: &Harness, store: &Embedded) {
    // Completed at the second attempt: after a wait of 2 s, an attempt of 3 s, and a retry 10 s later.
    let policy = json!({ "max_attempts": 2, "initial_interval": "PT10S", "jitter": false });
    let job = enqueue(harness, "mail.send", json!({ "queue": "mail", "retry": policy })).await;
    harness.advance_ms(2_000.0).await;
    fetch(harness, "mail").await.unwrap();
    harness.advance_ms(3_000.0).await;
    harness.fail_with(&job, json!({ "type": "SmtpError", "message": "451" })).await;
    harness.advance_ms(10_000.0).await;
    fetch(harness, "mail").await.unwrap();
    ack(harness, &job).await;

    let policy = json!({ "max_attempts": 1, "on_exhaustion": "dead_letter" });
    let dead = enqueue(harness, "mail.send", json!({ "queue": "mail", "retry": policy })).await;
    fetch(harness, "mail").await.unwrap();
    harness.fail(&dead).await;
    harness.post(&format!("/dead-letter/{dead}/retry"), json!({})).await.expect(200);
    fetch(harness, "mail").await.unwrap();
    harness.fail(&dead).await;

    let cancelled = enqueue(harness, "mail.send", json!({ "queue": "mail" })).await;
    harness.delete(&format!("/jobs/{cancelled}")).await.expect(200);
    let released = enqueue(harness, "report", json!({ "queue": "reports", "timeout_ms": 60_000 })).await;
    fetch(harness, "reports").await.unwrap();
    let release = json!({ "job_id": released, "requeue": true, "error": { "message": "later" } });
    harness.post("/workers/nack", release).await.expect(200);
    // One attempt loses its lease, the next one takes too long.
    fetch(harness, "reports").await.unwrap();
    harness.advance_ms(1_800_001.0).await;
    let expiring = enqueue(harness, "report", json!({ "queue": "other", "expires_at": "2026-02-13T11:00:00Z" })).await;
    harness.advance_ms(3_600_000.0).await;
    assert_eq!(harness.job(&expiring).await["state"], "discarded");
    let stalled =
        enqueue(harness, "stall", json!({ "queue": "stalls", "visibility_timeout_ms": 1_000, "retry": policy })).await;
    fetch(harness, "stalls").await.unwrap();
    harness.advance_ms(5_000.0).await;
    assert_eq!(harness.job(&stalled).await["state"], "discarded");

    let bound = json!({ "concurrency": 1, "backpressure": { "max_depth": 2 } });
    harness.call("PUT", "/ojs/v1/queues/narrow/config", &bound).await.expect(200);
    for _ in 0..2 {
        let long = json!({ "queue": "narrow", "timeout_ms": 86_400_000, "visibility_timeout_ms": 86_400_000 });
        enqueue(harness, "narrow", long).await;
    }
    let refused = json!({ "type": "narrow", "args": [], "options": { "queue": "narrow" } });
    assert!(harness.post("/jobs", refused).await.status.is_client_error());
    fetch(harness, "narrow").await.unwrap();
    assert_eq!(fetch(harness, "narrow").await, None, "the limit allows one");

    let hourly = json!({ "name": "hourly", "cron": "@hourly", "type": "tick", "options": { "queue": "ticks" } });
    harness.post("/cron", hourly).await.expect(201);
    harness.advance_ms(3_600_000.0).await;
    // What is due, available and held at the end.
    enqueue(harness, "report", json!({ "queue": "paused" })).await;
    enqueue(harness, "report", json!({ "queue": "paused", "scheduled_at": "+PT1S" })).await;
    harness.post("/queues/paused/pause", json!({})).await.expect(200);
    harness.advance_clock_ms(4_000.0);
    store.compact().unwrap();
}

#[tokio::test]
async fn every_metric_moves_when_it_should() {
    let scratch = Scratch::new();
    let (harness, store) = observed(&scratch, Limits::default());
    let before = scrape(&harness).await;
    workload(&harness, &store).await;
    let after = scrape(&harness).await;
    let mail = |name: &str| format!("{name}{{queue=\"mail\",type=\"mail.send\"}}");
    let of = |name: &str, labels: &str| format!("{name}{{{labels}}}");
    for (series, moved) in [
        (mail("ojs_job_enqueued_total"), 3.0),
        (mail("redrive_attempts_total"), 4.0),
        (mail("redrive_attempt_failures_total"), 3.0),
        (mail("ojs_job_retried_total"), 1.0),
        (mail("ojs_job_completed_total"), 1.0),
        (mail("ojs_job_failed_total"), 2.0),
        (mail("ojs_job_cancelled_total"), 1.0),
        (mail("redrive_jobs_dead_lettered_total"), 2.0),
        (mail("redrive_jobs_redriven_total"), 1.0),
        (mail("redrive_job_attempts_to_success_sum"), 2.0),
        (mail("redrive_job_time_to_success_seconds_sum"), 15.0),
        (mail("ojs_job_queue_time_seconds_sum"), 2.0),
        (of("ojs_job_duration_seconds_sum", "queue=\"mail\",state=\"retryable\",type=\"mail.send\""), 3.0),
        (of("ojs_job_duration_seconds_count", "queue=\"mail\",state=\"completed\",type=\"mail.send\""), 1.0),
        (of("redrive_retry_delay_seconds_sum", "queue=\"mail\""), 10.0),
        (of("redrive_job_wait_seconds_sum", "queue=\"mail\""), 2.0),
        (of("redrive_errors_total", "error=\"SmtpError\",queue=\"mail\""), 1.0),
        (of("redrive_errors_total", "error=\"Boom\",queue=\"mail\""), 2.0),
        (of("redrive_dead_letters", "queue=\"mail\""), 1.0),
        (of("ojs_job_enqueue_duration_seconds_count", "queue=\"mail\""), 3.0),
        (of("redrive_jobs_released_total", "queue=\"reports\",type=\"report\""), 1.0),
        (of("redrive_attempts_timed_out_total", "queue=\"reports\",type=\"report\""), 1.0),
        (of("ojs_job_expired_total", "queue=\"other\",type=\"report\""), 1.0),
        (of("redrive_leases_expired_total", "queue=\"stalls\",type=\"stall\""), 1.0),
        (of("redrive_enqueues_rejected_total", "queue=\"narrow\""), 1.0),
        (of("redrive_claims_limited_total", "limit=\"queue\""), 1.0),
        (of("ojs_job_enqueued_total", "queue=\"ticks\",type=\"tick\""), 1.0),
        (of("redrive_run_timer_lag_seconds_count", "program=\"cron\""), 1.0),
        (of("ojs_queue_depth", "queue=\"paused\",state=\"available\""), 1.0),
        (of("ojs_queue_depth", "queue=\"paused\",state=\"scheduled\""), 1.0),
        (of("redrive_queue_paused", "queue=\"paused\""), 1.0),
        (of("redrive_jobs_due", "queue=\"paused\""), 1.0),
        (of("redrive_oldest_due_seconds", "queue=\"paused\""), 3.0),
        (of("redrive_oldest_available_seconds", "queue=\"paused\""), 4.0),
        ("redrive_jobs_held".into(), 2.0),
        (of("ojs_workers_busy", "queue=\"narrow\""), 1.0),
        (of("redrive_store_compactions_total", "outcome=\"succeeded\""), 1.0),
        ("redrive_store_compaction_duration_seconds_count".into(), 1.0),
        (of("redrive_http_errors_total", "code=\"rate_limited\""), 0.0),
        (
            of(
                "redrive_http_request_duration_seconds_count",
                "method=\"DELETE\",route=\"/ojs/v1/jobs/{id}\",status=\"2xx\"",
            ),
            1.0,
        ),
    ] {
        let value = |scrape: &Scrape| scrape.get(&series).copied().unwrap_or(0.0);
        assert_eq!(value(&after) - value(&before), moved, "{series}");
    }
    let flushes = |scrape: &Scrape| scrape["redrive_store_flush_duration_seconds_count"];
    assert!(flushes(&after) > flushes(&before) + 10.0);
    assert!(after["redrive_store_flush_jobs_sum"] >= 20.0 && after["redrive_store_snapshot_bytes"] > 0.0);
}

/// Each metric of a scrape as its row in the list: name, kind, labels, meaning.
fn rows(text: &str) -> BTreeMap<&str, String> {
    let mut rows = BTreeMap::new();
    let lines: Vec<&str> = text.lines().collect();
    for line in lines.iter().filter_map(|line| line.strip_prefix("# HELP ")) {
        let (name, help) = line.split_once(' ').unwrap();
        let kind = lines.iter().find_map(|line| line.strip_prefix(&format!("# TYPE {name} "))).unwrap();
        let of_metric = |line: &&&str| line.starts_with(name) && line[name.len()..].starts_with(['{', ' ', '_']);
        let series = lines.iter().find(of_metric).unwrap();
        let labels = series.split_once('{').map_or("", |(_, rest)| rest.rsplit_once('}').unwrap().0);
        let labels = labels.split("\",").map(|label| label.split('=').next().unwrap());
        let labels: Vec<String> =
            labels.filter(|label| !label.is_empty() && *label != "le").map(|label| format!("`{label}`")).collect();
        rows.insert(name, format!("| `{name}` | {kind} | {} | {help} |", labels.join(", ")));
    }
    rows
}

/// The names of metrics in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    words.filter(|word| word.starts_with("ojs_") || word.starts_with("redrive_"))
}

#[tokio::test]
async fn the_list_the_dashboard_and_the_alerts_name_what_a_server_gives() {
    let scratch = Scratch::new();
    let (harness, store) = observed(&scratch, Limits::default());
    workload(&harness, &store).await;
    let text = scraped_text(&harness).await;
    let rows = rows(&text);
    let list = include_str!("../../../../docs/metrics.md");
    let missing: Vec<&String> = rows.values().filter(|row| !list.contains(&***row)).collect();
    assert!(missing.is_empty(), "docs/metrics.md has other rows: {missing:#?}");
    let listed = list.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let gone: Vec<&str> = listed.filter(|name| !rows.contains_key(name)).collect();
    assert!(gone.is_empty(), "docs/metrics.md lists what no server gives: {gone:?}");
    let series: Vec<&str> =
        text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(['{', ' ']).next().unwrap()).collect();
    for (file, text) in [
        ("grafana.json", include_str!("../../../../docs/grafana.json")),
        ("alerts.yml", include_str!("../../../../docs/alerts.yml")),
    ] {
        let unknown: Vec<&str> =
            names(text).filter(|name| !series.contains(name) && !rows.contains_key(name)).collect();
        assert!(unknown.is_empty(), "docs/{file} names what no server gives: {unknown:?}");
        assert!(names(text).count() > 15, "docs/{file}");
    }
}

#[tokio::test]
async fn clients_cannot_make_the_metrics_grow_without_bound() {
    let scratch = Scratch::new();
    let (harness, _) = observed(&scratch, Limits { metric_labels: 5, ..Limits::default() });
    for number in 0..40 {
        let queue = format!("queue-{number:02}");
        let policy = json!({ "max_attempts": 1 });
        let id = enqueue(&harness, &format!("type-{number:02}"), json!({ "queue": queue, "retry": policy })).await;
        fetch(&harness, &queue).await.unwrap();
        harness.fail_with(&id, json!({ "type": format!("Error{number}"), "message": "no" })).await;
        if number % 10 == 9 {
            harness.call_text("GET", &format!("/ojs/v1/nowhere/{number}"), "").await.expect(404);
        }
    }
    let after = scrape(&harness).await;
    let values = |family: &str| after.keys().filter(|series| series.starts_with(&format!("{family}{{"))).count();
    for family in
        ["ojs_job_enqueued_total", "redrive_errors_total", "redrive_dead_letters", "redrive_enqueues_rejected_total"]
    {
        assert_eq!(values(family), 6, "{family}: five, and the rest");
    }
    assert_eq!(values("ojs_queue_depth"), 6 * 8);
    assert_eq!(after["ojs_job_enqueued_total{queue=\"_other\",type=\"_other\"}"], 35.0);
    assert_eq!(after["ojs_queue_depth{queue=\"_other\",state=\"discarded\"}"], 35.0);
    // Of each job that has no series: enqueued, claimed, discarded; its error; its enqueue and its wait.
    assert_eq!(after["redrive_metrics_folded_total{values=\"job\"}"], 35.0 * 3.0);
    assert_eq!(after["redrive_metrics_folded_total{values=\"error\"}"], 35.0);
    assert_eq!(after["redrive_metrics_folded_total{values=\"queue\"}"], 35.0 * 2.0);
    assert_eq!(after["redrive_queues"], 40.0);
    let unknown = "redrive_http_request_duration_seconds_count{method=\"GET\",route=\"_other\",status=\"4xx\"}";
    assert_eq!(after[unknown], 4.0, "paths that are none");
}

#[tokio::test]
async fn metrics_need_a_key_and_have_the_type_of_their_format() {
    let harness = Harness::with(Parts { keys: ApiKeys::read(KEY).unwrap(), ..Parts::default() });
    harness.call_text("GET", "/metrics", "").await.expect(401);
    for (accept, media) in [
        ("text/plain", "text/plain"),
        ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", "text/plain; version=0.0.4; charset=utf-8"),
    ] {
        let request = Request::get("/metrics").header("x-api-key", KEY).header("accept", accept).body(Body::empty());
        let response = harness.server.router().oneshot(request.unwrap()).await.unwrap();
        assert_eq!(response.headers()["content-type"], media);
        assert!(response.headers().contains_key("x-request-id"));
    }
    assert!(scraped_text(&harness).await.contains("# TYPE redrive_ready gauge"));
}
