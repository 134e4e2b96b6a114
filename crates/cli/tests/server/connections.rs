//! Many connections that do nothing, and few file descriptors.

use crate::harness::{Folder, Server, TIMEOUT, until};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const KEY: &str = "0123456789abcdef0123456789abcdef";
/// More than the server has places by default.
const MANY: usize = 1_129;

/// Raises the limit of open connections of this process.
fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
        .expect("up to the hard limit");
}

fn connect(server: &Server) -> TcpStream {
    let address = server.url.strip_prefix("http://").expect("plain HTTP");
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a time");
    stream
}

/// A request with a key on a connection that stays open; the status and the document.
fn ask(stream: &mut TcpStream, method: &str, path: &str, body: &Value) -> (u16, Value) {
    try_ask(stream, method, path, body).expect("an answer")
}

fn try_ask(stream: &mut TcpStream, method: &str, path: &str, body: &Value) -> io::Result<(u16, Value)> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all((head + &body).as_bytes())?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse().ok());
    let mut body = vec![0; length.expect("a length")];
    stream.read_exact(&mut body)?;
    Ok((head[9..12].parse().expect("a status"), serde_json::from_slice(&body).expect("JSON")))
}

/// How long a new client waits for its answer.
fn answered(server: &Server) -> Duration {
    let start = Instant::now();
    let job = json!({ "type": "a.b", "args": [] });
    assert_eq!(ask(&mut connect(server), "POST", "/ojs/v1/jobs", &job).0, 201);
    start.elapsed()
}

#[test]
fn more_than_a_thousand_silent_connections_lock_out_no_other_client() {
    allow_descriptors();
    let folder = Folder::new("silent");
    let server = Server::start(&folder.at("data"));
    let silent: Vec<TcpStream> = (0..MANY).map(|_| connect(&server)).collect();
    let waited = answered(&server);
    assert!(waited < Duration::from_secs(10), "{waited:?}");
    assert!(server.log_lines().iter().any(|line| line.contains("(limits.connections)")), "{:?}", server.log_lines());
    drop(silent);
}

#[test]
fn more_than_a_thousand_clients_that_do_not_read_lock_out_no_client_with_a_key() {
    allow_descriptors();
    let folder = Folder::new("unread");
    let keys = folder.file("keys", KEY);
    let server = Server::start_with(&folder.at("data"), &["--api-key-file", &keys]);
    let requests = "GET /ojs/manifest HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(20);
    let unread: Vec<TcpStream> = (0..MANY)
        .map(|_| {
            let mut stream = connect(&server);
            // A connection that was closed to make room cannot send any more.
            let _ = stream.write_all(requests.as_bytes());
            stream
        })
        .collect();
    let waited = answered(&server);
    assert!(waited < Duration::from_secs(10), "{waited:?}");
    drop(unread);
}

#[test]
fn few_descriptors_are_kept_for_the_store_and_the_server_recovers() {
    allow_descriptors();
    let folder = Folder::new("descriptors");
    let keys = folder.file("keys", KEY);
    let server = Server::start_after("ulimit -n 160", &folder.at("data"), &["--api-key-file", &keys]);
    let log = server.log_lines().join("\n");
    assert!(log.contains("160 file descriptors") && log.contains("limits.connections"), "{log}");
    let mut worker = connect(&server);
    let job = json!({ "type": "a.b", "args": ["x".repeat(100_000)] });
    assert_eq!(ask(&mut worker, "POST", "/ojs/v1/jobs", &job).0, 201);
    let mut silent = Vec::new();
    for _ in 0..30 {
        silent.extend((0..10).map(|_| connect(&server)));
        let (status, answer) = ask(&mut worker, "POST", "/ojs/v1/jobs", &job);
        assert_eq!(status, 201, "{answer}");
        let fetch = json!({ "queues": ["default"], "worker_id": "w" });
        let lease = ask(&mut worker, "POST", "/ojs/v1/workers/fetch", &fetch).1["jobs"][0].clone();
        let ack = json!({ "job_id": lease["id"], "lease_token": lease["lease_token"] });
        let (status, answer) = ask(&mut worker, "POST", "/ojs/v1/workers/ack", &ack);
        assert_eq!(status, 200, "{answer}");
    }
    drop(silent);
    until("the health is good", || {
        Some(ask(&mut connect(&server), "GET", "/ojs/v1/health", &Value::Null)).filter(|(status, _)| *status == 200)
    });
    answered(&server);
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log:?}");
}

#[test]
fn a_server_without_descriptors_says_so_and_admits_clients_with_a_key() {
    allow_descriptors();
    let folder = Folder::new("exhausted");
    let keys = folder.file("keys", KEY);
    let server = Server::start_with(&folder.at("data"), &["--api-key-file", &keys]);
    let mut worker = connect(&server);
    let job = json!({ "type": "a.b", "args": [] });
    assert_eq!(ask(&mut worker, "POST", "/ojs/v1/jobs", &job).0, 201);

    // Less than it was started with, and than it counts on.
    let process = Pid::from_raw(i32::try_from(server.id()).expect("an id")).expect("an id");
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.id())).expect("Linux").count() as u64;
    let few = Rlimit { current: Some(open + 8), maximum: getrlimit(Resource::Nofile).maximum };
    let before = prlimit(Some(process), Resource::Nofile, few).expect("its limit is lowered");
    let silent: Vec<TcpStream> = (0..40).map(|_| connect(&server)).collect();
    until("the log says so", || {
        server
            .log_lines()
            .iter()
            .any(|line| line.contains("warn refused") && line.contains("no more file descriptors"))
            .then_some(())
    });
    let enqueue =
        |stream: &mut TcpStream| try_ask(stream, "POST", "/ojs/v1/jobs", &job).ok().filter(|printed| printed.0 == 201);
    assert!(enqueue(&mut worker).is_some(), "a connection that is there is served");
    until("a holder of a key is served", || enqueue(&mut connect(&server)));

    drop(silent);
    prlimit(Some(process), Resource::Nofile, before).expect("its limit is raised again");
    until("every client is served", || enqueue(&mut connect(&server)));
    assert!(enqueue(&mut worker).is_some());
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log:?}");
}
