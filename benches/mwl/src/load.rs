//! Starts runs on a server: bodies of requests from standard input, a line each, over many connections at once.

use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::Instant;

pub(crate) fn run(port: u16, connections: usize) {
    let bodies: Vec<String> = std::io::stdin().lines().map(|line| line.expect("a line")).collect();
    let (count, next) = (bodies.len(), Mutex::new(bodies.into_iter()));
    let times = Mutex::new(Vec::with_capacity(count));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..connections {
            scope.spawn(|| {
                let mut connection = Connection::new(port);
                let mut own = Vec::new();
                loop {
                    // The lock is not held while a request is on its way.
                    let body = next.lock().expect("no panic").next();
                    let Some(body) = body else { break };
                    let sent = Instant::now();
                    connection.post("/flows/v1/runs", &body);
                    own.push(sent.elapsed().as_secs_f64() * 1e3);
                }
                times.lock().expect("no panic").extend(own);
            });
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    let mut times = times.into_inner().expect("no panic");
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times.get((share * times.len() as f64) as usize).copied().unwrap_or(0.0);
    println!(
        "{}",
        json!({ "runs": count, "seconds": seconds, "p50_ms": crate::rounded(at(0.5)), "p99_ms": crate::rounded(at(0.99)) })
    );
}

/// One connection that stays open, one request at a time.
struct Connection {
    port: u16,
    stream: BufReader<TcpStream>,
}

impl Connection {
    fn new(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("a server listens");
        stream.set_nodelay(true).expect("a socket");
        Self { port, stream: BufReader::new(stream) }
    }

    fn post(&mut self, path: &str, body: &str) {
        let (port, length) = (self.port, body.len());
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes()).expect("the server reads");
        let (mut status, mut answer) = (String::new(), 0);
        self.stream.read_line(&mut status).expect("an answer");
        loop {
            let mut header = String::new();
            self.stream.read_line(&mut header).expect("a header");
            match header.trim_end().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    answer = value.trim().parse().expect("a length");
                }
                Some(_) => {}
                None => break,
            }
        }
        let mut text = vec![0; answer];
        self.stream.read_exact(&mut text).expect("a body");
        assert!(status.contains(" 201 "), "{status}{}", String::from_utf8_lossy(&text));
    }
}
