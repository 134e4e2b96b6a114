//! A raw HTTP client: requests may be malformed, answers are read completely.

use serde_json::Value;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long an answer may take: far longer than it does, and far shorter than for ever.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// A request, as bytes that can be sent.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(&'static str, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &str, target: &str, body: Vec<u8>) -> Self {
        let headers = vec![("Host", b"localhost".to_vec())];
        Self { method: method.to_owned(), target: target.to_owned(), headers, body }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = format!("{} {} HTTP/1.1\r\n", self.method, self.target).into_bytes();
        for (name, value) in &self.headers {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", self.body.len()).as_bytes());
        out.extend_from_slice(&self.body);
        out
    }
}

/// For the message of a failure.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes();
        let shown = bytes.len().min(4_000);
        write!(f, "{}", bytes[..shown].escape_ascii())
    }
}

#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) closes: bool,
    pub(crate) body: Value,
}

impl fmt::Display for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.body)
    }
}

/// A client with one connection at a time.
pub(crate) struct Caller {
    address: SocketAddr,
    stream: Option<TcpStream>,
}

impl Caller {
    pub(crate) const fn new(address: SocketAddr) -> Self {
        Self { address, stream: None }
    }

    pub(crate) async fn get(&mut self, target: &str) -> HttpResponse {
        self.send(&Request::new("GET", target, Vec::new())).await.expect("an answer")
    }

    pub(crate) async fn post(&mut self, target: &str, body: &Value) -> HttpResponse {
        let request = Request::new("POST", target, body.to_string().into_bytes());
        self.send(&request).await.unwrap_or_else(|| panic!("no answer to {request}"))
    }

    /// Sends a request and reads its answer. `None` if the server closed the connection without one.
    ///
    /// A connection that the server has closed meanwhile, because it was idle, is not an answer: the
    /// request is sent again, on a new one.
    pub(crate) async fn send(&mut self, request: &Request) -> Option<HttpResponse> {
        let answered = timeout(TIMEOUT, async {
            if let Some(stream) = self.stream.take()
                && let Some(answer) = self.sent(stream, request).await
            {
                return Some(answer);
            }
            let stream = connected(self.address).await;
            self.sent(stream, request).await
        });
        let answer = answered.await.unwrap_or_else(|_| panic!("no answer within {TIMEOUT:?} to {request}"))?;
        assert!(answer.status < 500, "{answer} to {request}");
        Some(answer)
    }

    async fn sent(&mut self, mut stream: TcpStream, request: &Request) -> Option<HttpResponse> {
        // A server that refuses early may close before everything is written; its answer still counts.
        let _ = stream.write_all(&request.bytes()).await;
        let answer = read(&mut stream, request.method == "HEAD").await?;
        self.stream = Some(stream).filter(|_| !answer.closes);
        Some(answer)
    }
}

pub(crate) async fn connected(address: SocketAddr) -> TcpStream {
    let stream = timeout(TIMEOUT, TcpStream::connect(address)).await.expect("a connection in time");
    let stream = stream.expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    stream
}

/// Reads one answer; `None` if the connection ends before it does.
pub(crate) async fn read(stream: &mut TcpStream, headless: bool) -> Option<HttpResponse> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).expect("a head in ASCII").to_ascii_lowercase();
        let status: u16 = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
        if status < 200 {
            continue;
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; if headless { 0 } else { length.unwrap_or(0) }];
        stream.read_exact(&mut body).await.ok()?;
        let closes = head.contains("\r\nconnection: close");
        let body = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{error} in {}", body.escape_ascii()))
        };
        return Some(HttpResponse { status, closes, body });
    }
}
