//! A well-behaved client in its own queue, whose answers are right whatever other clients do.

use crate::wire::Caller;
use serde_json::json;
use std::net::SocketAddr;
use tokio::time::Instant;

/// Its queue. No random client names it.
pub(crate) const QUEUE: &str = "neighbour";

/// Enqueues a job, claims it, acks it, and reads it; returns how often.
pub(crate) async fn run(address: SocketAddr, until: Instant) -> usize {
    let mut caller = Caller::new(address);
    let mut round = 0;
    while Instant::now() < until {
        let job = json!({ "type": "quiet.work", "args": [round, "ü"], "options": { "queue": QUEUE } });
        let stored = caller.post("/ojs/v1/jobs", &job).await;
        assert_eq!(stored.status, 201, "{stored}");
        let id = stored.body["job"]["id"].clone();
        let fetch = json!({ "queues": [QUEUE], "count": 10, "worker_id": "neighbour" });
        let taken = caller.post("/ojs/v1/workers/fetch", &fetch).await;
        let jobs = taken.body["jobs"].as_array().expect("jobs");
        assert_eq!(jobs.len(), 1, "{taken}");
        assert_eq!((&jobs[0]["id"], &jobs[0]["args"], &jobs[0]["attempt"]), (&id, &job["args"], &json!(1)), "{taken}");
        let ack = json!({ "job_id": id, "lease_token": jobs[0]["lease_token"], "result": { "round": round } });
        let ended = caller.post("/ojs/v1/workers/ack", &ack).await;
        assert_eq!((ended.status, &ended.body["state"]), (200, &json!("completed")), "{ended}");
        let shown = caller.get(&format!("/ojs/v1/jobs/{}", id.as_str().expect("an id"))).await;
        assert_eq!(shown.body["job"]["result"], json!({ "round": round }), "{shown}");
        round += 1;
    }
    round
}
