//! A server that stood still hears its workers before it takes anything from them.

use crate::harness::until;
use crate::skewed_server::SkewedServer;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const LEASE_MS: u64 = 6_000;
/// Longer than a lease.
const STANDSTILL: Duration = Duration::from_secs(7);

/// Sends a heartbeat without waiting for the answer, which can be read later.
fn heartbeat(skewed: &SkewedServer, job: &Value) -> TcpStream {
    let body = json!({
        "worker_id": "tester",
        "active_jobs": [{ "job_id": job["id"], "lease_token": job["lease_token"] }],
    });
    let (body, address) = (body.to_string(), skewed.server().url.trim_start_matches("http://").to_owned());
    let mut stream = TcpStream::connect(&address).expect("the system takes the connection");
    let head = format!(
        "POST /ojs/v1/workers/heartbeat HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         ojs-version: 1.0\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).expect("the system takes the request");
    stream
}

#[test]
fn a_server_that_stood_still_takes_no_job_from_a_live_worker() {
    SkewedServer::on_both(|skewed| {
        let name = skewed.name();
        let [heartbeats, reports, lost] = ["heartbeats", "reports", "lost"].map(|queue| skewed.held(queue, LEASE_MS));
        skewed.signal("-STOP");
        let mut waiting = heartbeat(&skewed, &heartbeats);
        std::thread::sleep(STANDSTILL);
        skewed.signal("-CONT");
        let mut answer = String::new();
        waiting.read_to_string(&mut answer).expect("the heartbeat is answered");
        let extended = format!("\"jobs_extended\":[{}]", heartbeats["id"]);
        assert!(answer.contains(&extended), "{name}: the heartbeat that waited: {answer}");
        skewed.sweeps();
        skewed.server().succeed(&heartbeats);
        skewed.server().succeed(&reports);
        until("a lease without a worker ends all the same", || (skewed.state(&lost) != "active").then_some(()));
        let log = skewed.server().log_lines();
        assert!(log.iter().any(|line| line.contains("stood still for")), "{name}: {log:?}");
    });
}

#[test]
fn a_server_that_was_stopped_takes_no_job_from_a_live_worker() {
    SkewedServer::on_both(|mut skewed| {
        let [reports, lost] = ["reports", "lost"].map(|queue| skewed.held(queue, LEASE_MS));
        skewed.kill();
        std::thread::sleep(STANDSTILL);
        skewed.start();
        skewed.sweeps();
        skewed.server().succeed(&reports);
        until("a lease without a worker ends all the same", || (skewed.state(&lost) != "active").then_some(()));
    });
}
