//! An endpoint of webhooks on loopback.

use ring::hmac;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// A request as it arrived.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// An endpoint that answers what it is told to, and 200 after that.
pub(crate) struct Receiver {
    pub(crate) address: String,
    answers: Arc<Mutex<VecDeque<String>>>,
    arrived: mpsc::UnboundedReceiver<Arrived>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (sender, arrived) = mpsc::unbounded_channel();
        let answers: Arc<Mutex<VecDeque<String>>> = Arc::default();
        let shared = Arc::clone(&answers);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&shared), sender.clone()));
            }
        });
        Self { address, answers, arrived }
    }

    pub(crate) fn answers(&self, head: &str) {
        self.answers.lock().unwrap().push_back(head.to_owned());
    }

    pub(crate) async fn next(&mut self) -> Arrived {
        let arrived = tokio::time::timeout(Duration::from_secs(20), self.arrived.recv());
        arrived.await.expect("a delivery in time").expect("the receiver is there")
    }

    /// Whether nothing has arrived that was not asked for.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.arrived.try_recv().is_err()
    }
}

async fn answer(mut stream: TcpStream, answers: Arc<Mutex<VecDeque<String>>>, arrived: mpsc::UnboundedSender<Arrived>) {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
    };
    let lines = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let mut lines = lines.lines();
    let path = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers["content-length"].parse().unwrap();
    while bytes.len() < head + length {
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0);
    }
    let body = String::from_utf8(bytes[head..].to_vec()).unwrap();
    let said = answers.lock().unwrap().pop_front().unwrap_or_else(|| "200 OK".to_owned());
    let said = format!("HTTP/1.1 {said}\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
    stream.write_all(said.as_bytes()).await.unwrap();
    let _ = arrived.send(Arrived { path, headers, body });
}

/// What a receiver does, with a library of its own choice.
pub(crate) fn is_signed(secret: &str, arrived: &Arrived, signature: &str) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let signed = format!("{}.{}", arrived.headers["x-ojs-timestamp"], arrived.body);
    let hex = signature.strip_prefix("sha256=").unwrap();
    let bytes: Vec<u8> =
        (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap()).collect();
    hmac::verify(&key, signed.as_bytes(), &bytes).is_ok()
}
