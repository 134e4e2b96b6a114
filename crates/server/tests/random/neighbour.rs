//! A well-behaved client in its own queue, whose answers are right whatever other clients do.

use crate::hooks;
use crate::wire::{Caller, HttpResponse};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use tokio::time::Instant;

/// Its queue. No random client names it.
pub(crate) const QUEUE: &str = "neighbour";

/// What it has done.
pub(crate) struct Neighbour {
    caller: Caller,
    pub(crate) rounds: usize,
    /// How many jobs it has stored.
    pub(crate) jobs: usize,
    /// The jobs whose completion it has to be told.
    pub(crate) hooked: BTreeSet<String>,
}

/// Goes on until the time has come.
pub(crate) async fn run(address: SocketAddr, until: Instant) -> Neighbour {
    let mut neighbour = Neighbour { caller: Caller::new(address), rounds: 0, jobs: 0, hooked: BTreeSet::new() };
    neighbour.subscribe().await;
    while Instant::now() < until {
        neighbour.plain().await;
        match neighbour.rounds % 10 {
            1 => neighbour.unique().await,
            2 => neighbour.limited().await,
            3 => neighbour.hooked().await,
            _ => {}
        }
        neighbour.rounds += 1;
    }
    neighbour
}

impl Neighbour {
    async fn enqueue(&mut self, kind: &str, options: Value) -> HttpResponse {
        let mut job = json!({ "type": kind, "args": [self.rounds, "ü"], "options": options });
        job["options"]["queue"] = QUEUE.into();
        let answer = self.caller.post("/ojs/v1/jobs", &job).await;
        self.jobs += usize::from(answer.status == 201);
        answer
    }

    /// Claims what there is, which is one job, and completes it.
    async fn work(&mut self, id: &Value) {
        let fetch = json!({ "queues": [QUEUE], "count": 10, "worker_id": "neighbour" });
        let taken = self.caller.post("/ojs/v1/workers/fetch", &fetch).await;
        let jobs = taken.body["jobs"].as_array().expect("jobs");
        assert_eq!(jobs.len(), 1, "{taken}");
        let args = json!([self.rounds, "ü"]);
        assert_eq!((&jobs[0]["id"], &jobs[0]["args"], &jobs[0]["attempt"]), (id, &args, &json!(1)), "{taken}");
        let result = json!({ "round": self.rounds });
        let ack = json!({ "job_id": id, "lease_token": jobs[0]["lease_token"], "result": result });
        let ended = self.caller.post("/ojs/v1/workers/ack", &ack).await;
        assert_eq!((ended.status, &ended.body["state"]), (200, &json!("completed")), "{ended}");
    }

    /// A job is enqueued, claimed, completed, and read.
    async fn plain(&mut self) {
        let stored = self.enqueue("quiet.work", json!({})).await;
        assert_eq!(stored.status, 201, "{stored}");
        let id = stored.body["job"]["id"].clone();
        self.work(&id).await;
        let shown = self.caller.get(&format!("/ojs/v1/jobs/{}", id.as_str().expect("an id"))).await;
        assert_eq!(shown.body["job"]["result"], json!({ "round": self.rounds }), "{shown}");
    }

    /// A second job of a kind is refused while the first has not ended, or ignored, or replaces it.
    async fn unique(&mut self) {
        let options = |on_conflict: &str| json!({ "unique": { "keys": ["type"], "on_conflict": on_conflict } });
        let first = self.enqueue("quiet.unique", options("reject")).await;
        assert_eq!(first.status, 201, "{first}");
        let refused = self.enqueue("quiet.unique", options("reject")).await;
        assert_eq!(refused.status, 409, "{refused}");
        let id = &first.body["job"]["id"];
        assert_eq!(&refused.body["error"]["details"]["existing_job_id"], id, "{refused}");
        let ignored = self.enqueue("quiet.unique", options("ignore")).await;
        let told = (ignored.status, &ignored.body["deduplicated"], &ignored.body["job"]["id"]);
        assert_eq!(told, (200, &json!(true), id), "{ignored}");
        let second = self.enqueue("quiet.unique", options("replace")).await;
        assert_eq!(second.status, 201, "{second}");
        let replaced = self.caller.get(&format!("/ojs/v1/jobs/{}", id.as_str().expect("an id"))).await;
        assert_eq!(replaced.body["job"]["state"], "cancelled", "{replaced}");
        self.work(&second.body["job"]["id"].clone()).await;
    }

    /// Two jobs of which one may run at a time: the second is claimed when the first has ended.
    async fn limited(&mut self) {
        let mut ids = Vec::new();
        for _ in 0..2 {
            let limit = json!({ "rate_limit": { "key": "neighbour", "concurrency": 1 } });
            let stored = self.enqueue("quiet.limited", limit).await;
            assert_eq!(stored.status, 201, "{stored}");
            ids.push(stored.body["job"]["id"].clone());
        }
        for id in &ids {
            self.work(id).await;
        }
    }

    async fn subscribe(&mut self) {
        let filter = json!({ "queues": [QUEUE], "job_types": ["quiet.hooked"] });
        let body = json!({ "url": hooks::neighbour_url(), "events": ["job.completed"], "filter": filter });
        let made = self.caller.post("/ojs/v1/webhooks/subscriptions", &body).await;
        assert_eq!(made.status, 201, "{made}");
    }

    /// A job of whose completion it has to be told.
    async fn hooked(&mut self) {
        let stored = self.enqueue("quiet.hooked", json!({})).await;
        assert_eq!(stored.status, 201, "{stored}");
        let id = stored.body["job"]["id"].clone();
        self.work(&id).await;
        self.hooked.insert(id.as_str().expect("an id").to_owned());
    }
}
