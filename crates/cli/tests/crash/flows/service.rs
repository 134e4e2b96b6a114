//! The service that the flows call: it is busy as often as the call says, and remembers every key.

use crate::webhooks::receiver::request;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long it takes for an answer, so that kills meet calls that are under way.
const TAKES: Duration = Duration::from_millis(30);

/// The keys of the requests with one body, by the id of the run and the number of the call.
pub(crate) type Calls = BTreeMap<(String, u64), BTreeSet<String>>;

pub(crate) struct Service {
    pub(crate) url: String,
    arrived: Arc<Mutex<(Calls, usize)>>,
}

impl Service {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/announce", listener.local_addr().expect("an address"));
        let arrived = Arc::<Mutex<(Calls, usize)>>::default();
        let serving = Arc::clone(&arrived);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let arrived = Arc::clone(&serving);
                std::thread::spawn(move || {
                    // A request that ends early is one of a server that was killed.
                    let _ = answer(&stream, &arrived);
                });
            }
        });
        Self { url, arrived }
    }

    /// What has arrived, and in how many requests.
    pub(crate) fn arrived(&self) -> (Calls, usize) {
        self.arrived.lock().expect("no thread panicked").clone()
    }
}

fn answer(mut stream: &TcpStream, arrived: &Mutex<(Calls, usize)>) -> std::io::Result<()> {
    let request = request(stream)?;
    let call: Value = serde_json::from_slice(&request.body)?;
    let calls = call["calls"].as_u64().unwrap_or(u64::MAX);
    let key = request.headers.get("idempotency-key").cloned().unwrap_or_default();
    {
        // It counts before the server can know: what it never learns of is sent again.
        let mut arrived = arrived.lock().expect("no thread panicked");
        let id = call["id"].as_str().unwrap_or_default().to_owned();
        arrived.0.entry((id, calls)).or_default().insert(key);
        arrived.1 += 1;
    }
    std::thread::sleep(TAKES);
    let busy = call["busy"].as_u64() > Some(calls);
    let status = if busy { "503 Service Unavailable" } else { "200 OK" };
    let body = json!({ "calls": calls }).to_string();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
    stream.write_all(format!("{head}\r\nconnection: close\r\n\r\n{body}").as_bytes())
}
