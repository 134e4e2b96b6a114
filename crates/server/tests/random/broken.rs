//! Connections with malformed or incomplete HTTP.

use crate::mutate;
use crate::wire::{Request, TIMEOUT, connected, read};
use fastrand::Rng;
use std::net::SocketAddr;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// How many requests are sent before the first answer is read.
const PIPELINED: usize = 20;

/// Returns how many connections there were.
pub(crate) async fn run(address: SocketAddr, mut random: Rng, until: Instant) -> usize {
    let mut count = 0;
    while Instant::now() < until {
        let way = random.u8(..8);
        let bytes = bytes(way, &mut random);
        let mut stream = connected(address).await;
        let ended = timeout(TIMEOUT, async {
            // The server may close the connection before everything is written.
            let _ = stream.write_all(&bytes).await;
            if way == 0 {
                return pipelined(&mut stream).await;
            }
            if way < 4 {
                let _ = stream.shutdown().await;
            }
            while let Some(answer) = read(&mut stream, false).await {
                assert!(answer.status < 500, "{answer} to {}", bytes.escape_ascii());
                if answer.closes {
                    break;
                }
            }
        });
        ended.await.unwrap_or_else(|_| panic!("neither answered nor closed: {}", bytes.escape_ascii()));
        count += 1;
    }
    count
}

/// Each request of a pipeline is answered, in its order.
async fn pipelined(stream: &mut TcpStream) {
    for index in 0..PIPELINED {
        let answer = read(stream, false).await.expect("an answer to each request");
        assert_eq!(answer.status, if index % 2 == 0 { 200 } else { 404 }, "{answer}");
    }
}

fn bytes(way: u8, random: &mut Rng) -> Vec<u8> {
    let heartbeat = Request::new("POST", "/ojs/v1/workers/heartbeat", b"{\"worker_id\":\"w\"}".to_vec());
    match way {
        0 => {
            let one = Request::new("GET", "/ojs/v1/health", Vec::new()).bytes();
            let other = Request::new("GET", "/ojs/v1/jobs/none", Vec::new()).bytes();
            [one, other].concat().repeat(PIPELINED / 2)
        }
        // A head or a body that ends too early, and then the client closes the connection.
        1 => {
            let whole = heartbeat.bytes();
            whole[..random.usize(1..whole.len())].to_vec()
        }
        2 => mutate::damaged(heartbeat.bytes(), random),
        3 => (0..random.usize(1..2_000)).map(|_| random.u8(..)).collect(),
        // A body that does not arrive, from a client that waits as long as the server allows.
        4 => b"POST /ojs/v1/workers/heartbeat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{\"wor".to_vec(),
        5 => {
            let lengths = ["-1", "1e9", "18446744073709551616", "5, 5", "0x10", ""];
            let length = lengths[random.usize(..lengths.len())];
            format!("POST /ojs/v1/workers/ack HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{{}}")
                .into_bytes()
        }
        6 => {
            let chunks = ["5\r\n{\"a\"\r\n", "zz\r\n", "ffffffffffffffff\r\nx", "2\r\n{}\r\n0\r\n\r\n"];
            let chunk = chunks[random.usize(..chunks.len())];
            let head = "POST /ojs/v1/workers/ack HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
            format!("{head}{chunk}").into_bytes()
        }
        _ => {
            let name = "x".repeat(random.usize(1..30_000));
            format!("GET /ojs/v1/health HTTP/1.1\r\nHost: localhost\r\nX-{name}: 1\r\n{}", "a: b\r\n".repeat(150))
                .into_bytes()
        }
    }
}
