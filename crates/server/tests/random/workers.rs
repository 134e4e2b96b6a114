//! Workers that claim the jobs of random clients, and end the runs in every possible way.

use crate::client::Tally;
use crate::vocabulary::QUEUES;
use crate::wire::{Caller, Request};
use fastrand::Rng;
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::time::Instant;

pub(crate) async fn run(address: SocketAddr, mut random: Rng, until: Instant) -> Tally {
    let mut caller = Caller::new(address);
    let mut tally = Tally::default();
    while Instant::now() < until {
        let fetch = json!({ "queues": QUEUES, "count": 5, "worker_id": "worker", "wait_ms": 100 });
        let jobs = asked(&mut caller, &mut tally, "fetch", &fetch).await["jobs"].take();
        for job in jobs.as_array().into_iter().flatten() {
            let mut hold = json!({ "job_id": job["id"], "lease_token": job["lease_token"] });
            let path = match random.u8(..8) {
                0 => {
                    hold["percentage"] = random.u8(..100).into();
                    "progress"
                }
                1 => {
                    hold["requeue"] = true.into();
                    "nack"
                }
                2..=4 => {
                    hold["error"] = json!({ "type": "Boom", "message": "boom" });
                    "nack"
                }
                5 => {
                    hold = json!({ "worker_id": "worker", "active_jobs": [hold] });
                    "heartbeat"
                }
                _ => "ack",
            };
            asked(&mut caller, &mut tally, path, &hold).await;
        }
    }
    tally
}

async fn asked(caller: &mut Caller, tally: &mut Tally, path: &str, body: &Value) -> Value {
    let request = Request::new("POST", &format!("/ojs/v1/workers/{path}"), body.to_string().into_bytes());
    let answer = caller.send(&request).await.unwrap_or_else(|| panic!("no answer to {request}"));
    assert!([200, 404, 409, 429].contains(&answer.status), "{answer} to {request}");
    tally.note(&request, &answer);
    answer.body
}
