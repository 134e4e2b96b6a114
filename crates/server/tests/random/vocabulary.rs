//! The parts of requests: endpoints, parameters, valid documents.

use crate::hooks;
use serde_json::{Value, json};

/// The queues that random clients use.
pub(crate) const QUEUES: [&str; 4] = ["alpha", "beta", "gamma.low", "delta-2"];
/// The keys of the limits that their jobs bring.
pub(crate) const LIMIT_KEYS: [&str; 3] = ["api", "tenant:a", "tenant:b"];
/// The names of the schedules that they register.
pub(crate) const SCHEDULES: [&str; 5] = ["often", "daily", "report.eu", "a", "z-9"];
/// Values of other parameters; some of them are valid names of queues too.
pub(crate) const STRANGE_QUEUES: [&str; 3] = ["true", "0", "p1y"];

/// Endpoints with their methods: all but streams, which do not end, what deletes or cancels jobs of others, and what
/// begins maintenance.
pub(crate) const ENDPOINTS: [(&str, &str); 95] = [
    ("GET", "/ojs/v1/health"),
    ("GET", "/health"),
    ("GET", "/ojs/manifest"),
    ("GET", "/ojs/v1/errors/{word}"),
    ("POST", "/ojs/v1/jobs"),
    ("POST", "/ojs/v1/jobs/batch"),
    ("GET", "/ojs/v1/jobs/{id}"),
    ("DELETE", "/ojs/v1/jobs/{id}"),
    ("POST", "/ojs/v1/jobs/{id}/activate"),
    ("GET", "/ojs/v1/jobs/{id}/progress"),
    ("PUT", "/ojs/v1/jobs/{id}/progress"),
    ("POST", "/ojs/v1/workers/fetch"),
    ("POST", "/ojs/v1/workers/ack"),
    ("POST", "/ojs/v1/workers/nack"),
    ("POST", "/ojs/v1/workers/settle"),
    ("POST", "/ojs/v1/workers/heartbeat"),
    ("POST", "/ojs/v1/workers/beat"),
    ("GET", "/ojs/v1/workers/{word}/health"),
    ("POST", "/ojs/v1/workers/progress"),
    ("GET", "/ojs/v1/queues"),
    ("DELETE", "/ojs/v1/queues/{queue}"),
    ("GET", "/ojs/v1/queues/{queue}/stats"),
    ("POST", "/ojs/v1/queues/{queue}/pause"),
    ("POST", "/ojs/v1/queues/{queue}/resume"),
    ("GET", "/ojs/v1/dead-letter"),
    ("DELETE", "/ojs/v1/dead-letter"),
    ("GET", "/ojs/v1/dead-letter/stats"),
    ("POST", "/ojs/v1/dead-letter/retry"),
    ("GET", "/ojs/v1/dead-letter/{id}"),
    ("DELETE", "/ojs/v1/dead-letter/{id}"),
    ("POST", "/ojs/v1/dead-letter/{id}/retry"),
    ("GET", "/ojs/v1/events"),
    ("GET", "/ojs/v1/workflows"),
    ("POST", "/ojs/v1/workflows"),
    ("GET", "/ojs/v1/workflows/{id}"),
    ("DELETE", "/ojs/v1/workflows/{id}"),
    ("GET", "/ojs/v1/cron"),
    ("POST", "/ojs/v1/cron"),
    ("GET", "/ojs/v1/cron/{schedule}"),
    ("PUT", "/ojs/v1/cron/{schedule}"),
    ("PATCH", "/ojs/v1/cron/{schedule}"),
    ("DELETE", "/ojs/v1/cron/{schedule}"),
    ("GET", "/ojs/v1/admin/crons"),
    ("GET", "/ojs/v1/admin/workflows"),
    ("GET", "/ojs/v1/admin/graph-runs"),
    ("GET", "/ojs/v1/admin/graph-runs/{id}"),
    ("GET", "/ojs/v1/admin/graph-states"),
    ("POST", "/ojs/v1/admin/graph-states/{id}/free"),
    ("GET", "/ojs/v1/admin/stats/history"),
    ("GET", "/ojs/v1/admin/system/maintenance"),
    ("POST", "/ojs/v1/admin/workers/{worker}/quiet"),
    ("POST", "/ojs/v1/admin/workers/{worker}/terminate"),
    ("POST", "/ojs/v1/admin/workers/{worker}/resume"),
    ("DELETE", "/ojs/v1/admin/workers/{worker}"),
    ("GET", "/ojs/v1/admin/jobs"),
    ("POST", "/ojs/v1/admin/jobs/bulk/retry"),
    ("POST", "/ojs/v1/admin/jobs/bulk/delete"),
    ("POST", "/ojs/v1/admin/jobs/{id}/retry"),
    ("GET", "/ojs/v1/admin/stats"),
    ("GET", "/ojs/v1/admin/queues"),
    ("GET", "/ojs/v1/admin/queues/{queue}"),
    ("POST", "/ojs/v1/admin/queues/{queue}/pause"),
    ("POST", "/ojs/v1/admin/queues/{queue}/resume"),
    ("GET", "/ojs/v1/admin/jobs/{id}"),
    ("POST", "/ojs/v1/admin/jobs/{id}/cancel"),
    ("GET", "/ojs/v1/admin/workers"),
    ("GET", "/ojs/v1/admin/workers/{word}"),
    ("POST", "/ojs/v1/admin/workers/{word}/quiet"),
    ("GET", "/ojs/v1/admin/dead-letter"),
    ("GET", "/ojs/v1/admin/dead-letter/stats"),
    ("GET", "/ojs/v1/admin/dead-letter/{id}"),
    ("POST", "/ojs/v1/admin/dead-letter/{id}/retry"),
    ("GET", "/ojs/v1/admin/system/config"),
    ("POST", "/ojs/v1/admin/backup"),
    ("GET", "/ojs/v1/queues/{queue}/config"),
    ("PUT", "/ojs/v1/queues/{queue}/config"),
    ("PUT", "/ojs/v1/admin/queues/{queue}/rate-limit"),
    ("GET", "/ojs/v1/rate-limits"),
    ("GET", "/ojs/v1/rate-limits/{limit}"),
    ("PUT", "/ojs/v1/rate-limits/{limit}"),
    ("DELETE", "/ojs/v1/rate-limits/{limit}"),
    ("GET", "/ojs/v1/admin/types/{type}/rate-limit"),
    ("PUT", "/ojs/v1/admin/types/{type}/rate-limit"),
    ("DELETE", "/ojs/v1/admin/types/{type}/rate-limit"),
    ("GET", "/ojs/v1/webhooks/subscriptions"),
    ("POST", "/ojs/v1/webhooks/subscriptions"),
    ("GET", "/ojs/v1/webhooks/subscriptions/{hook}"),
    ("PATCH", "/ojs/v1/webhooks/subscriptions/{hook}"),
    ("DELETE", "/ojs/v1/webhooks/subscriptions/{hook}"),
    ("POST", "/ojs/v1/webhooks/subscriptions/{hook}/test"),
    ("POST", "/ojs/v1/webhooks/subscriptions/{hook}/rotate-secret"),
    ("GET", "/ojs/v1/webhooks/deliveries"),
    ("GET", "/ojs/v1/webhooks/deliveries/{hook}"),
    ("DELETE", "/ojs/v1/webhooks/deliveries/{hook}"),
    ("POST", "/ojs/v1/webhooks/deliveries/{hook}/retry"),
];

pub(crate) const METHODS: [&str; 9] = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW"];

/// Parameters and values of queries, right and wrong.
pub(crate) const PARAMETERS: [&str; 21] = [
    "queue",
    "type",
    "error_type",
    "since",
    "until",
    "limit",
    "offset",
    "cursor",
    "state",
    "page",
    "per_page",
    "types",
    "queues",
    "after",
    "confirm",
    "dry_run",
    "all",
    "enabled",
    "period",
    "sort",
    "order",
];
pub(crate) const VALUES: [&str; 19] = [
    "alpha",
    "work.do",
    "Boom",
    "2026-02-13T10:00:00Z",
    "0",
    "3",
    "1000",
    "18446744073709551616",
    "-1",
    "true",
    "false",
    "discarded",
    "running",
    "1m",
    "desc",
    "",
    "%",
    "%ff%00",
    "evt-00000000-5",
];

/// Headers that mean something, right and wrong.
pub(crate) const HEADERS: [(&str, &[u8]); 16] = [
    ("OJS-Version", b"1.0"),
    ("OJS-Version", b"2.0"),
    ("OJS-Version", b"\xff"),
    ("Content-Type", b"application/json"),
    ("Content-Type", b"text/plain; charset=utf-16"),
    ("Idempotency-Key", b"once"),
    ("Idempotency-Key", b"twice-\xc3\xbc"),
    ("Idempotency-Key", b"\xff\xfe"),
    ("Idempotency-Key", b""),
    ("X-Request-Id", b"given"),
    ("Origin", b"http://evil.example"),
    ("Origin", b"null"),
    ("Host", b"evil.example"),
    ("Authorization", b"Bearer nonsense"),
    ("Accept-Encoding", b"gzip, br"),
    ("Expect", b"100-continue"),
];

/// A job that is right.
pub(crate) fn job(random: &mut fastrand::Rng) -> Value {
    let queue = QUEUES[random.usize(..QUEUES.len())];
    let retry =
        json!({ "max_attempts": random.u8(0..4), "initial_interval": "PT0.01S", "on_exhaustion": "dead_letter" });
    let mut options = json!({ "queue": queue, "retry": retry, "priority": random.i32(-100..=100) });
    match random.u8(..18) {
        0 => options["scheduled_at"] = json!("+PT1S"),
        1 => options["expires_at"] = json!("+PT2S"),
        2 => options["pending"] = json!(true),
        3 => options["idempotency_key"] = json!(format!("key-{}", random.u8(..20))),
        4 => options["timeout_ms"] = json!(50),
        5 => options["visibility_timeout_ms"] = json!(100),
        6 => options["retry"] = json!({ "dialect": "azolla", "policy": { "stop": { "max_attempts": 2 } } }),
        7 => options["tags"] = json!(["a", "b"]),
        8 | 9 => options["unique"] = unique(random),
        10 | 11 => {
            options["rate_limit"] = limits(random);
            options["rate_limit"]["key"] = LIMIT_KEYS[random.usize(..LIMIT_KEYS.len())].into();
        }
        _ => {}
    }
    json!({ "type": "work.do", "args": [random.u8(..), { "text": "ü" }], "meta": { "trace": "t" }, "options": options })
}

fn unique(random: &mut fastrand::Rng) -> Value {
    let on_conflict = ["reject", "ignore", "replace", "replace_except_schedule"][random.usize(..4)];
    match random.u8(..3) {
        0 => json!({ "keys": ["type", "queue"], "on_conflict": on_conflict }),
        1 => {
            json!({ "keys": ["args"], "period": "PT2S", "states": ["available", "completed"], "on_conflict": on_conflict })
        }
        _ => json!({ "keys": ["meta"], "meta_keys": ["trace"], "states": ["active"], "on_conflict": on_conflict }),
    }
}

/// Limits that let jobs run in the end.
fn limits(random: &mut fastrand::Rng) -> Value {
    match random.u8(..3) {
        0 => json!({ "concurrency": random.u8(1..5) }),
        1 => json!({ "rate": { "limit": random.u8(5..50), "period": "PT0.5S" } }),
        _ => json!({ "throttle": { "limit": 50, "period": "PT1S" }, "concurrency": 9 }),
    }
}

/// A subscription that is right, mostly to what does not happen all the time.
fn subscription(random: &mut fastrand::Rng) -> Value {
    let events = [json!(["queue.*"]), json!(["workflow.*", "job.cancelled"]), json!(["job.discarded"]), json!(["*"])];
    let events = &events[if random.u8(..20) == 0 { 3 } else { random.usize(..3) }];
    let retry =
        json!({ "max_attempts": random.u8(1..4), "initial_interval": "PT0.1S", "on_exhaustion": "dead_letter" });
    let filter = json!({ "queues": [QUEUES[random.usize(..QUEUES.len())]] });
    json!({ "url": hooks::random_url(), "events": events, "retry": retry, "filter": filter, "timeout_ms": 5_000 })
}

/// A workflow that is right, of any kind.
fn workflow(random: &mut fastrand::Rng) -> Value {
    let mut jobs = |count: u8| (0..count).map(|_| plain_job(random)).collect::<Vec<_>>();
    let (some, callback) = (jobs(3), jobs(1).remove(0));
    match random.u8(..5) {
        0 => json!({ "type": "chain", "name": "c", "steps": some }),
        1 => json!({ "type": "group", "jobs": some }),
        2 => json!({ "type": "batch", "jobs": some, "callbacks": { "on_complete": callback } }),
        3 => json!({ "type": "chain", "steps": [callback, { "type": "group", "jobs": some }] }),
        _ => {
            let step = |(number, mut job): (usize, Value)| {
                job["id"] = json!(format!("s{number}"));
                job["depends_on"] = (0..number).map(|before| format!("s{before}")).collect();
                job
            };
            json!({ "name": "g", "steps": some.into_iter().enumerate().map(step).collect::<Vec<_>>() })
        }
    }
}

/// A job without what jobs of workflows and schedules may not have.
fn plain_job(random: &mut fastrand::Rng) -> Value {
    let queue = QUEUES[random.usize(..QUEUES.len())];
    let retry = json!({ "max_attempts": random.u8(1..3), "initial_interval": "PT0.01S" });
    json!({ "type": "work.do", "args": [random.u8(..)], "options": { "queue": queue, "retry": retry } })
}

/// A schedule that is right, and often due.
fn schedule(random: &mut fastrand::Rng) -> Value {
    let mut schedule = plain_job(random);
    schedule["cron"] = json!(["* * * * * *", "@every 1s", "0 9 * * MON-FRI", "@daily"][random.usize(..4)]);
    schedule["timezone"] = json!(["UTC", "Europe/Berlin"][random.usize(..2)]);
    schedule["overlap_policy"] = json!(["skip", "allow", "cancel_previous", "enqueue"][random.usize(..4)]);
    schedule
}

/// The document that an endpoint takes; `id` is that of a job that may be there.
pub(crate) fn document(path: &str, id: &str, random: &mut fastrand::Rng) -> Value {
    let code = ["x", "RETRY", "DISCARD", "DEAD_LETTER"][random.usize(..4)];
    let error = json!({ "type": "Boom", "code": code, "message": "m" });
    match path {
        "/ojs/v1/jobs" => job(random),
        "/ojs/v1/jobs/batch" => json!({ "jobs": (0..random.u8(1..5)).map(|_| job(random)).collect::<Vec<_>>() }),
        "/ojs/v1/workers/fetch" => json!({
            "queues": QUEUES, "count": random.u8(1..10), "worker_id": "w", "wait_ms": u32::from(random.u8(..)) * 2,
            "visibility_timeout_ms": random.u16(100..2_000),
        }),
        "/ojs/v1/workers/ack" => json!({ "job_id": id, "worker_id": "w", "result": [1, { "a": null }] }),
        "/ojs/v1/workers/nack" => match random.u8(..3) {
            0 => json!({ "job_id": id, "requeue": true }),
            1 => json!({ "job_id": id, "snooze_ms": random.u8(..), "error": error }),
            _ => json!({ "job_id": id, "error": error, "retry_after": 0.01 }),
        },
        "/ojs/v1/workers/settle" => json!({ "settlements": [
            { "action": "ack", "job_id": id }, { "action": "nack", "job_id": id, "error": error },
        ] }),
        "/ojs/v1/workers/heartbeat" => json!({ "worker_id": "w", "active_jobs": [id], "visibility_timeout_ms": 500 }),
        "/ojs/v1/workers/progress" => json!({ "job_id": id, "percentage": 50, "message": "half", "data": { "n": 1 } }),
        "/ojs/v1/jobs/{id}/progress" => json!({ "progress": 0.5, "message": "half" }),
        "/ojs/v1/dead-letter" | "/ojs/v1/dead-letter/retry" => {
            json!({ "filter": { "queue": "alpha", "type": "work.do" }, "confirm": random.bool(), "dry_run": random.bool() })
        }
        "/ojs/v1/admin/jobs/bulk/retry" | "/ojs/v1/admin/jobs/bulk/delete" => {
            json!({ "filter": { "state": "discarded", "queue": "alpha" }, "confirm": random.bool(), "dry_run": random.bool() })
        }
        "/ojs/v1/dead-letter/{id}/retry" | "/ojs/v1/admin/jobs/{id}/retry" => {
            json!({ "by": "ada", "override": { "queue": "beta", "args": [2], "meta": { "x": 1 }, "expires_at": "+PT1H" } })
        }
        "/ojs/v1/workflows" => workflow(random),
        "/ojs/v1/cron" => {
            let mut schedule = schedule(random);
            schedule["name"] = json!(SCHEDULES[random.usize(..SCHEDULES.len())]);
            schedule
        }
        "/ojs/v1/queues/{queue}/config" if random.bool() => json!({ "concurrency": random.u8(1..9) }),
        "/ojs/v1/rate-limits/{limit}"
        | "/ojs/v1/admin/types/{type}/rate-limit"
        | "/ojs/v1/admin/queues/{queue}/rate-limit" => limits(random),
        "/ojs/v1/webhooks/subscriptions" => subscription(random),
        "/ojs/v1/webhooks/subscriptions/{hook}" => match random.u8(..3) {
            0 => json!({ "active": random.bool() }),
            1 => json!({ "events": ["job.completed"], "timeout_ms": 7_000 }),
            _ => subscription(random),
        },
        "/ojs/v1/cron/{schedule}" if random.bool() => schedule(random),
        "/ojs/v1/cron/{schedule}" => json!({ "enabled": random.bool() }),
        _ => json!({}),
    }
}
