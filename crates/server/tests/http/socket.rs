//! A real socket: stopping gracefully, and slow clients.

use crate::common::{Harness, Parts};
use redrive_server::Limits;
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

pub(crate) async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

pub(crate) fn request(method: &str, path: &str, body: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Everything that arrives until the server closes the connection.
pub(crate) async fn rest(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    stream.read_to_end(&mut text).await.unwrap();
    String::from_utf8(text).unwrap()
}

/// Reads until `end` was read.
pub(crate) async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(end.as_bytes()) {
        text.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(text).unwrap()
}

/// Reads one answer, as long as it says that it is.
pub(crate) async fn read_answer(stream: &mut TcpStream) -> String {
    let head = read_until(stream, "\r\n\r\n").await;
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.unwrap();
    head + &String::from_utf8(body).unwrap()
}

#[tokio::test]
async fn a_stop_answers_what_runs_and_takes_nothing_new() {
    let harness = Harness::new();
    let (listener, address) = listener().await;
    let (stop, stopped) = oneshot::channel::<()>();
    let client = async {
        let mut idle = TcpStream::connect(address).await.unwrap();
        idle.write_all(request("GET", "/ojs/v1/health", "").as_bytes()).await.unwrap();
        assert!(read_answer(&mut idle).await.starts_with("HTTP/1.1 200"));
        let mut waiting = TcpStream::connect(address).await.unwrap();
        let fetch = json!({ "queues": ["default"], "wait_ms": 60_000 }).to_string();
        waiting.write_all(request("POST", "/ojs/v1/workers/fetch", &fetch).as_bytes()).await.unwrap();
        // Once the server has read the request, it counts as a waiting fetch.
        while harness.server.waiting_fetches() == 0 {
            tokio::task::yield_now().await;
        }
        stop.send(()).unwrap();
        let answer = rest(&mut waiting).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("{\"jobs\":[]}"), "{answer}");
        assert_eq!(rest(&mut idle).await, "", "an idle connection is closed");
        assert!(TcpStream::connect(address).await.is_err(), "the server has stopped listening");
    };
    let stopping = async {
        let _ = stopped.await;
    };
    tokio::join!(harness.server.serve(listener, stopping), client);
}

#[tokio::test]
async fn a_head_that_does_not_arrive_closes_the_connection() {
    let limits = Limits { header_timeout: Duration::from_millis(50), ..Limits::default() };
    let harness = Harness::with(Parts { limits, ..Parts::default() });
    let (listener, address) = listener().await;
    let (stop, stopped) = oneshot::channel::<()>();
    let client = async {
        let mut slow = TcpStream::connect(address).await.unwrap();
        slow.write_all(b"GET /ojs/v1/health HTTP/1.1\r\nHo").await.unwrap();
        let answer = rest(&mut slow).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
        stop.send(()).unwrap();
    };
    tokio::join!(harness.server.serve(listener, async { drop(stopped.await) }), client);
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_answered() {
    let limits = Limits { body_timeout: Duration::from_millis(50), ..Limits::default() };
    let harness = Harness::with(Parts { limits, ..Parts::default() });
    let (listener, address) = listener().await;
    let (stop, stopped) = oneshot::channel::<()>();
    let client = async {
        let mut slow = TcpStream::connect(address).await.unwrap();
        slow.write_all(b"POST /ojs/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{").await.unwrap();
        let answer = read_until(&mut slow, "}}").await;
        assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("request_timeout"), "{answer}");
        stop.send(()).unwrap();
    };
    tokio::join!(harness.server.serve(listener, async { drop(stopped.await) }), client);
}
