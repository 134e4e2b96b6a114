//! An endpoint on loopback that checks signatures, and fails when it is told to.

use ring::hmac;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The paths of the endpoint: one that answers, one that fails for a while, and one that fails always.
pub(crate) const GOOD: &str = "/good";
pub(crate) const FLAKY: &str = "/flaky";
pub(crate) const NEVER: &str = "/never";

/// What arrived at one path.
#[derive(Debug, Default)]
pub(crate) struct Arrived {
    /// The jobs whose events were taken, each with the ids of its deliveries.
    pub(crate) taken: BTreeMap<String, BTreeSet<String>>,
    /// How many requests there were, and how many of them were answered with an error.
    pub(crate) requests: usize,
    pub(crate) failed: usize,
    pub(crate) wrong: Vec<String>,
}

#[derive(Default)]
struct Shared {
    arrived: Mutex<BTreeMap<String, Arrived>>,
    secrets: Mutex<BTreeMap<String, String>>,
    recovered: AtomicBool,
}

pub(crate) struct Receiver {
    address: String,
    shared: Arc<Shared>,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let shared = Arc::<Shared>::default();
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                std::thread::spawn(move || {
                    // A request that ends early is one of a server that was killed.
                    let _ = shared.answer(&stream);
                });
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    /// The secret with which requests to a path are signed.
    pub(crate) fn signed_with(&self, path: &str, secret: String) {
        self.shared.secrets.lock().expect("no thread panicked").insert(path.to_owned(), secret);
    }

    /// From now on only one path fails.
    pub(crate) fn recovers(&self) {
        self.shared.recovered.store(true, Ordering::SeqCst);
    }

    /// Takes what has arrived at a path.
    pub(crate) fn take(&self, path: &str) -> Arrived {
        self.shared.arrived.lock().expect("no thread panicked").remove(path).unwrap_or_default()
    }
}

/// A request that has arrived.
pub(crate) struct Request {
    pub(crate) path: String,
    /// By name, in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// Reads a request.
pub(crate) fn request(stream: &TcpStream) -> std::io::Result<Request> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.trim_end().split_once(": ") {
            headers.insert(name.to_lowercase(), value.to_owned());
        }
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Request { path, headers, body })
}

impl Shared {
    fn answer(&self, stream: &TcpStream) -> std::io::Result<()> {
        let Request { path, headers, body } = request(stream)?;
        let takes = path == GOOD || (path == FLAKY && self.recovered.load(Ordering::SeqCst));
        // It counts as taken before the server can know: what it never learns of is sent again.
        self.arrived(&path, &headers, &body, takes);
        let status = if takes { "200 OK" } else { "503 Service Unavailable" };
        let mut stream = stream;
        stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").as_bytes())
    }

    fn arrived(&self, path: &str, headers: &BTreeMap<String, String>, body: &[u8], takes: bool) {
        let event: Value = serde_json::from_slice(body).expect("an event");
        let secret = self.secrets.lock().expect("no thread panicked").get(path).cloned();
        let mut all = self.arrived.lock().expect("no thread panicked");
        let arrived = all.entry(path.to_owned()).or_default();
        arrived.requests += 1;
        arrived.failed += usize::from(!takes);
        let header = |name: &str| headers.get(name).cloned().unwrap_or_default();
        if !secret
            .is_some_and(|secret| is_signed(&secret, &header("x-ojs-timestamp"), body, &header("x-ojs-signature")))
        {
            arrived.wrong.push(format!("not signed: {headers:?} {event}"));
        }
        if event["type"] != "job.completed" {
            arrived.wrong.push(format!("not wanted: {event}"));
        }
        let subject = event["subject"].as_str().unwrap_or_default().to_owned();
        let ids = arrived.taken.entry(subject).or_default();
        if takes {
            ids.insert(header("x-ojs-delivery-id"));
        }
    }
}

/// What a receiver does, with a library of its own choice.
fn is_signed(secret: &str, timestamp: &str, body: &[u8], signature: &str) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let signed = [timestamp.as_bytes(), b".", body].concat();
    let hex = signature.strip_prefix("sha256=").unwrap_or_default();
    let byte = |at: usize| hex.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    let bytes: Option<Vec<u8>> = (0..hex.len() / 2).map(|at| byte(at * 2)).collect();
    bytes.is_some_and(|bytes| hmac::verify(&key, &signed, &bytes).is_ok())
}

#[test]
fn a_signature_is_checked() {
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"key");
    let tag = hmac::sign(&key, b"1.x");
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(is_signed("key", "1", b"x", &format!("sha256={hex}")));
    assert!(!is_signed("other", "1", b"x", &format!("sha256={hex}")));
    assert!(!is_signed("key", "2", b"x", &format!("sha256={hex}")));
    assert!(!is_signed("key", "1", b"x", "sha256="));
}
