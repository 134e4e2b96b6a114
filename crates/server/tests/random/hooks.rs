//! The endpoint of webhooks: it answers the neighbour well, and random clients in every possible way.

use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// The path of the neighbour.
const NEIGHBOUR: &str = "/neighbour";
/// The addresses of both, once the endpoint is there.
static ADDRESS: OnceLock<String> = OnceLock::new();

/// The address that the subscriptions of random clients have.
pub(crate) fn random_url() -> String {
    format!("{}/random", ADDRESS.get().expect("the endpoint is there"))
}

/// The address that the subscription of the neighbour has.
pub(crate) fn neighbour_url() -> String {
    format!("{}{NEIGHBOUR}", ADDRESS.get().expect("the endpoint is there"))
}

/// The jobs of the neighbour whose events have arrived.
#[derive(Clone, Default)]
pub(crate) struct Arrived(Arc<Mutex<BTreeSet<String>>>);

impl Arrived {
    /// Starts the endpoint.
    pub(crate) async fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        ADDRESS.set(format!("http://{address}")).expect("one endpoint");
        let arrived = Self::default();
        let serving = arrived.clone();
        tokio::spawn(async move {
            let mut count = 0_usize;
            while let Ok((stream, _)) = listener.accept().await {
                count += 1;
                let arrived = serving.clone();
                tokio::spawn(async move { answer(stream, count, &arrived).await });
            }
        });
        arrived
    }

    /// Waits until the events of all these jobs are there.
    pub(crate) async fn has(&self, jobs: &BTreeSet<String>) {
        let all = timeout(Duration::from_secs(30), async {
            while !self.all().is_superset(jobs) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let missing = || jobs.difference(&self.all()).cloned().collect::<Vec<_>>();
        assert!(all.await.is_ok(), "events of the neighbour that never arrived: {:?}", missing());
        assert_eq!(self.all().len(), jobs.len(), "events of others arrived at the neighbour's");
    }

    fn all(&self) -> BTreeSet<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Reads a request, and answers it.
async fn answer(mut stream: TcpStream, count: usize, arrived: &Arrived) {
    let mut bytes = Vec::new();
    let (head, begins) = loop {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        break (String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase(), end + 4);
    };
    let length: Option<usize> = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    while bytes.len() < begins + length.expect("the length of an event") {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let said = if head.starts_with(&format!("post {NEIGHBOUR} ")) {
        let event: Value = serde_json::from_slice(&bytes[begins..]).expect("an event");
        let job = event["subject"].as_str().expect("the job of an event").to_owned();
        arrived.0.lock().unwrap_or_else(PoisonError::into_inner).insert(job);
        "204 No Content"
    } else {
        let refusals = ["503 Service Unavailable", "404 Not Found", "429 Too Many Requests\r\nretry-after: 1"];
        refusals.get(count % 8).copied().unwrap_or("200 OK")
    };
    // A server that stops does not wait.
    let _ =
        stream.write_all(format!("HTTP/1.1 {said}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").as_bytes()).await;
}
