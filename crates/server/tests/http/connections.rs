//! Connections that send nothing, stop half-way, or do not read lock no other client out.

use crate::common::{Harness, Parts};
use crate::socket::{listener, read_answer, read_until, request, rest};
use redrive_server::{ApiKeys, Limits};
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

const KEY: &str = "0123456789abcdef0123456789abcdef";

fn harness(limits: Limits) -> Harness {
    Harness::with(Parts { limits, ..Parts::default() })
}

/// Serves until the client is done.
async fn served(harness: &Harness, client: impl AsyncFnOnce(SocketAddr)) {
    let (listener, address) = listener().await;
    let (stop, stopped) = oneshot::channel::<()>();
    let client = async {
        client(address).await;
        stop.send(()).unwrap();
    };
    tokio::join!(harness.server.serve(listener, async { drop(stopped.await) }), client);
}

async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.unwrap()
}

/// Sends a request that is answered at once, and reads the answer.
async fn request_health(stream: &mut TcpStream) {
    stream.write_all(request("GET", "/ojs/v1/health", "").as_bytes()).await.unwrap();
    answered(stream).await;
}

/// The same with a key, for something that needs one.
async fn ask_with_key(stream: &mut TcpStream) {
    let head = format!("GET /ojs/v1/queues HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    answered(stream).await;
}

async fn answered(stream: &mut TcpStream) {
    let answer = timeout(Duration::from_secs(60), read_answer(stream)).await.expect("an answer in time");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// How many requests the server has handled, from the id that it generates for each.
async fn requests_so_far(harness: &Harness) -> u64 {
    let reply = harness.get("/health").await;
    let count = reply.header("x-request-id").rsplit('-').next().map(|count| u64::from_str_radix(count, 16));
    count.unwrap().unwrap()
}

fn is_logged(harness: &Harness, part: &str) -> bool {
    harness.log.lock().unwrap().iter().any(|line| line.contains(part))
}

#[tokio::test(start_paused = true)]
async fn a_new_client_replaces_the_connection_that_is_idle_the_longest() {
    let harness = harness(Limits { connections: 2, ..Limits::default() });
    served(&harness, async |address| {
        let (mut first, mut second) = (connect(address).await, connect(address).await);
        request_health(&mut second).await;
        sleep(Duration::from_secs(1)).await;
        request_health(&mut first).await;
        let mut third = connect(address).await;
        request_health(&mut third).await;
        assert_eq!(rest(&mut second).await, "", "it had sent nothing that could be answered");
        request_health(&mut first).await;
        assert!(is_logged(&harness, "all 2 are taken (limits.connections)"), "{:?}", harness.log);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn silent_connections_lock_no_client_out() {
    let harness = harness(Limits { connections: 20, ..Limits::default() });
    served(&harness, async |address| {
        let mut silent = Vec::new();
        for _ in 0..60 {
            silent.push(connect(address).await);
        }
        let start = Instant::now();
        request_health(&mut connect(address).await).await;
        assert!(start.elapsed() < Duration::from_secs(10), "their time is not waited for: {:?}", start.elapsed());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn clients_that_do_not_read_lock_no_other_out_and_are_closed_in_time() {
    let limits = Limits { connections: 4, write_timeout: Duration::from_secs(5), ..Limits::default() };
    let harness = harness(limits);
    let job = json!({ "type": "a.b", "args": ["x".repeat(400_000)] });
    let id = crate::common::text(&harness.post("/jobs", job).await.expect(201)["job"]["id"]);
    served(&harness, async |address| {
        let mut unread = Vec::new();
        // More than the socket buffers on both sides can hold.
        let requests = request("GET", &format!("/ojs/v1/jobs/{id}"), "").repeat(60);
        for _ in 0..8 {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_recv_buffer_size(64 << 10).unwrap();
            let mut stream = socket.connect(address).await.unwrap();
            stream.write_all(requests.as_bytes()).await.unwrap();
            unread.push(stream);
        }
        request_health(&mut connect(address).await).await;
        let handled = requests_so_far(&harness).await;
        assert!(handled < 8 * 30, "{handled} of {} were carried out, although no answer was read", 8 * 60);
        let start = Instant::now();
        let ended = async {
            while harness.server.open_connections() > 0 {
                sleep(Duration::from_secs(1)).await;
            }
        };
        timeout(Duration::from_secs(600), ended).await.expect("the server gives them up");
        assert!(start.elapsed() < Limits::default().header_timeout, "{:?}", start.elapsed());
        assert!(is_logged(&harness, "(limits.write_timeout)"), "{:?}", harness.log);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn connections_are_reserved_for_clients_with_a_key() {
    let limits = Limits { connections: 4, ..Limits::default() };
    let harness = Harness::with(Parts { limits, keys: ApiKeys::read(KEY).unwrap(), ..Parts::default() });
    served(&harness, async |address| {
        let mut known = connect(address).await;
        ask_with_key(&mut known).await;
        let mut others = Vec::new();
        for _ in 0..12 {
            let mut stream = connect(address).await;
            request_health(&mut stream).await;
            others.push(stream);
        }
        ask_with_key(&mut connect(address).await).await;
        ask_with_key(&mut known).await;
        assert_eq!(rest(&mut others[0]).await, "", "it had no key");
    })
    .await;
}

#[tokio::test]
async fn a_new_client_is_told_to_retry_while_every_connection_is_busy() {
    let harness = harness(Limits { connections: 1, ..Limits::default() });
    served(&harness, async |address| {
        let mut waiting = connect(address).await;
        let fetch = json!({ "queues": ["default"], "wait_ms": 60_000 }).to_string();
        waiting.write_all(request("POST", "/ojs/v1/workers/fetch", &fetch).as_bytes()).await.unwrap();
        while harness.server.waiting_fetches() == 0 {
            tokio::task::yield_now().await;
        }
        let mut second = connect(address).await;
        second.write_all(request("POST", "/ojs/v1/jobs", &"x".repeat(10_000)).as_bytes()).await.unwrap();
        let answer = rest(&mut second).await;
        for part in ["HTTP/1.1 503", "Retry-After: 1\r\n", "Connection: close\r\n", "(limits.connections)", "}}"] {
            assert!(answer.contains(part), "{part} is missing in {answer}");
        }
        let id = harness.enqueue_with(json!({})).await;
        assert!(read_until(&mut waiting, "]}").await.contains(&id), "the one at work is not disturbed");
        assert!(is_logged(&harness, "refused 1 connection with 503"), "{:?}", harness.log);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_stops_half_way_makes_room_and_its_client_gets_an_answer() {
    let harness = harness(Limits { connections: 1, ..Limits::default() });
    served(&harness, async |address| {
        for part in
            ["GET /ojs/v1/health HTT", "POST /ojs/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"]
        {
            let mut slow = connect(address).await;
            slow.write_all(part.as_bytes()).await.unwrap();
            request_health(&mut connect(address).await).await;
            let answer = rest(&mut slow).await;
            assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("(limits.connections)"), "{part}: {answer}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_address_at_its_limit_makes_room_for_itself() {
    let harness = harness(Limits { connections_per_address: 1, ..Limits::default() });
    served(&harness, async |address| {
        let other = TcpSocket::new_v4().unwrap();
        other.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let mut other = other.connect(address).await.unwrap();
        request_health(&mut other).await;
        let mut first = connect(address).await;
        request_health(&mut first).await;
        request_health(&mut connect(address).await).await;
        assert_eq!(rest(&mut first).await, "");
        request_health(&mut other).await;
        assert!(is_logged(&harness, "(limits.connections_per_address)"), "{:?}", harness.log);
    })
    .await;
}
