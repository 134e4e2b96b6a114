//! Hostile clients: what they send is refused, and others are answered meanwhile.

use crate::harness::{Folder, Server, TIMEOUT, call, until};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// As many connections as this, where the limits of the machine allow it.
const IDLE: u64 = 10_000;

fn connect(server: &Server) -> TcpStream {
    let address = server.url.strip_prefix("http://").expect("plain HTTP");
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a time");
    stream
}

/// Sends bytes as far as they are taken, and reads what comes until the server closes the connection.
fn answer(server: &Server, bytes: &[u8]) -> String {
    let mut stream = connect(server);
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn status(answer: &str) -> &str {
    answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).unwrap_or("closed")
}

/// A request with this body, whatever it is.
fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").into_bytes()
}

/// Enqueues and completes jobs during `attack`; every request has to succeed. Prints how long these took.
fn meanwhile<T>(server: &Server, what: &str, attack: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut took: Vec<Duration> = Vec::new();
            while took.is_empty() || !over.load(Ordering::SeqCst) {
                let begun = Instant::now();
                server.enqueue(json!({ "type": "a.b", "args": [] }));
                took.push(begun.elapsed());
                let begun = Instant::now();
                let jobs = server.fetch("default", 1);
                took.push(begun.elapsed());
                jobs.iter().for_each(|job| drop(server.succeed(job)));
            }
            took.sort_unstable();
            took
        });
        // Also where the attack finds something: the other one would never end.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(attack));
        over.store(true, Ordering::SeqCst);
        let took = client.join().expect("others are answered");
        let at = |share: usize| took[(took.len() - 1) * share / 100];
        eprintln!(
            "{what}: {} requests of others, median {:?}, p99 {:?}, max {:?}",
            took.len(),
            at(50),
            at(99),
            at(100)
        );
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn malformed_and_oversized_requests_are_refused_while_others_are_answered() {
    let folder = Folder::new("hostile");
    let server = Server::start(&folder.at("data"));
    let nested = format!("{{\"type\":\"a.b\",\"args\":{}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    let headers: String = (0..20_000).map(|i| format!("x-{i}: y\r\n")).collect();
    let flood = format!("GET /ojs/v1/health HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").into_bytes();
    let long =
        format!("GET /ojs/v1/health HTTP/1.1\r\nHost: localhost\r\nx: {}\r\n\r\n", "y".repeat(2 << 20)).into_bytes();
    let enqueue = "/ojs/v1/jobs";
    let raw = |head: &str| {
        format!("POST {enqueue} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}\r\n\r\n").into_bytes()
    };
    let endless = || {
        let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        [raw("Transfer-Encoding: chunked"), chunk.repeat(64).into_bytes()].concat()
    };
    let cases: Vec<(&str, Vec<u8>, &[&str], &str)> = vec![
        ("nested arrays", post(enqueue, nested.as_bytes()), &["400"], "nest"),
        ("duplicate keys", post(enqueue, br#"{"type":"a.b","type":"c.d","args":[]}"#), &["400"], "type"),
        ("invalid UTF-8", post(enqueue, b"{\"type\":\"a\xff\xfe\",\"args\":[]}"), &["400"], ""),
        ("a NUL in a name", post(enqueue, br#"{"type":"a\u0000b","args":[]}"#), &["400"], "type"),
        ("a body that is announced too long", raw("Content-Length: 10000000000"), &["413"], "1048576"),
        ("a body without end", endless(), &["413"], "1048576"),
        ("a length that is none", raw("Content-Length: -1"), &["400"], ""),
        ("two lengths", raw("Content-Length: 1\r\nContent-Length: 2"), &["400"], ""),
        ("a length that no number can hold", raw("Content-Length: 99999999999999999999999"), &["400"], ""),
        ("a flood of headers", flood, &["431"], ""),
        ("a header of two megabytes", long, &["431"], ""),
        ("a path of one megabyte", get(&format!("/{}", "x".repeat(1 << 20))), &["414", "431"], ""),
        ("dots", get("/ojs/v1/../../../../etc/passwd"), &["404"], ""),
        ("dots in disguise", get("/ojs/v1/jobs/%2e%2e%2f%2e%2e%2fadmin"), &["400", "404"], ""),
        ("a NUL in a path", get("/ojs/v1/jobs/%00"), &["400", "404"], ""),
        ("a path that is no UTF-8", get("/ojs/v1/queues/%ff%fe/stats"), &["400", "404"], ""),
        ("two slashes", get("//ojs//v1//health"), &["404"], ""),
        ("an unknown parameter", get("/ojs/v1/admin/jobs?per_page=1&per_pages=2"), &["400"], "per_pages"),
        ("no HTTP at all", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec(), &["400", "closed"], ""),
        (
            "a method that is none",
            b"ENQUEUE / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".to_vec(),
            &["404", "405"],
            "",
        ),
    ];
    meanwhile(&server, "malformed and oversized requests", || {
        let mut wrong = Vec::new();
        // Several times, so that others have something to be slowed down by.
        for (name, bytes, allowed, part) in cases.iter().cycle().take(cases.len() * 5) {
            let answer = answer(&server, bytes);
            let found = status(&answer);
            if !allowed.contains(&found) || !answer.contains(part) {
                wrong.push(format!("{name}: found {found}, allowed {allowed:?} with {part:?}: {answer:.400}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    });
    assert_eq!(server.stop().0.code(), Some(0));
}

#[test]
fn slow_bodies_and_slow_readers_are_closed_while_others_are_answered() {
    let folder = Folder::new("slow");
    let limits =
        ["--set", "limits.header_timeout=1s", "--set", "limits.body_timeout=1s", "--set", "limits.write_timeout=1s"];
    let server = Server::start_with(&folder.at("data"), &limits);
    let args = ["x".repeat(400_000)];
    for _ in 0..15 {
        server.enqueue(json!({ "type": "a.b", "args": args, "options": { "queue": "large" } }));
    }
    meanwhile(&server, "slow bodies and slow readers", || {
        let sent = |bytes: &[u8]| {
            let mut stream = connect(&server);
            stream.write_all(bytes).expect("it is taken");
            stream
        };
        let heads: Vec<TcpStream> = (0..50).map(|_| sent(b"POST /ojs/v1/jobs HTTP/1.1\r\nHost: loc")).collect();
        let body = b"POST /ojs/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"type\"";
        let bodies: Vec<TcpStream> = (0..50).map(|_| sent(body)).collect();
        // Six megabytes, of which a client with small buffers takes the first part only.
        let readers: Vec<TcpStream> =
            (0..20).map(|_| sent(&get("/ojs/v1/admin/jobs?include=payload&queue=large"))).collect();
        let rest = |mut stream: TcpStream| {
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            String::from_utf8_lossy(&answer).into_owned()
        };
        heads.into_iter().for_each(|stream| assert!(["408", "closed"].contains(&status(&rest(stream)))));
        for stream in bodies {
            let answer = rest(stream);
            assert_eq!(status(&answer), "408", "{answer}");
        }
        let logged = || server.log_lines().iter().any(|line| line.contains("limits.write_timeout"));
        until("a slow reader is closed", || logged().then_some(()));
        drop(readers);
    });
    assert_eq!(server.stop().0.code(), Some(0));
}

#[test]
fn ten_thousand_idle_connections_are_borne_while_others_are_answered() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
        .expect("up to the hard limit");
    // A share of the descriptors is for the other tests of this process, and for the server itself.
    let many = limit.maximum.map_or(IDLE, |maximum| IDLE.min(maximum.saturating_sub(3_000)));
    let folder = Folder::new("idle");
    let connections = format!("limits.connections={}", many + 100);
    let server = Server::start_with(&folder.at("data"), &["--set", &connections, "--set", "limits.header_timeout=10m"]);
    let mut idle = Vec::new();
    meanwhile(&server, &format!("{many} connections are opened"), || {
        idle.extend((0..many).map(|_| connect(&server)));
    });
    meanwhile(&server, &format!("{many} connections are idle"), || {
        // Each of a sample is still served, so none was closed to make room.
        for stream in idle.iter_mut().step_by(97) {
            stream.write_all(b"GET /ojs/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it is open");
            let mut head = [0; 12];
            stream.read_exact(&mut head).expect("it is answered");
            assert_eq!(&head, b"HTTP/1.1 200");
        }
    });
    drop(idle);
    let agent = ureq::Agent::config_builder().proxy(None).build().into();
    assert_eq!(call(&agent, &server.url, "GET", "/ojs/v1/health", &Value::Null).expect("an answer").0, 200);
    assert_eq!(server.stop().0.code(), Some(0));
}
