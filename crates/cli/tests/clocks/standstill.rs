//! A server that stood still hears its workers before it takes anything from them.

use crate::harness::until;
use crate::place::SkewedServer;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const LEASE_MS: u64 = 6_000;
/// Longer than a lease.
const STANDSTILL: Duration = Duration::from_secs(7);

/// Sends a heartbeat without waiting for the answer, which can be read later.
fn heartbeat(place: &SkewedServer, job: &Value) -> TcpStream {
    let body = json!({
        "worker_id": "tester",
        "active_jobs": [{ "job_id": job["id"], "lease_token": job["lease_token"] }],
    });
    let (body, address) = (body.to_string(), place.server().url.trim_start_matches("http://").to_owned());
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
fn a_server_that_stood_still_takes_no_job_from_a_worker_that_lives() {
    SkewedServer::on_both(|place| {
        let name = place.name();
        let [beats, reports, lost] = ["beats", "reports", "lost"].map(|queue| place.held(queue, LEASE_MS));
        place.signal("-STOP");
        let mut waiting = heartbeat(&place, &beats);
        std::thread::sleep(STANDSTILL);
        place.signal("-CONT");
        let mut answer = String::new();
        waiting.read_to_string(&mut answer).expect("the heartbeat is answered");
        let extended = format!("\"jobs_extended\":[{}]", beats["id"]);
        assert!(answer.contains(&extended), "{name}: the heartbeat that waited: {answer}");
        place.sweeps();
        place.server().succeed(&beats);
        place.server().succeed(&reports);
        until("a lease without a worker ends all the same", || (place.state(&lost) != "active").then_some(()));
        let said = place.server().said();
        assert!(said.iter().any(|line| line.contains("stood still for")), "{name}: {said:?}");
    });
}

#[test]
fn a_server_that_was_away_takes_no_job_from_a_worker_that_lives() {
    SkewedServer::on_both(|mut place| {
        let [reports, lost] = ["reports", "lost"].map(|queue| place.held(queue, LEASE_MS));
        place.kill();
        std::thread::sleep(STANDSTILL);
        place.start();
        place.sweeps();
        place.server().succeed(&reports);
        until("a lease without a worker ends all the same", || (place.state(&lost) != "active").then_some(()));
    });
}
