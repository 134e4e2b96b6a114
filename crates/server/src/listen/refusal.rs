//! Refusing a connection beyond the limit, and closing one to make room for another.

use super::connections::Limit;
use crate::api_error::{ApiError, Code};
use crate::limits::Limits;
use std::io::{ErrorKind, Read, Write};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long the client of a refused connection may take to send its request and to take the answer.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// How much of a refused request is read, so that the client, still sending, finds the answer.
const MOST_READ: usize = 1 << 20;

/// The response to a request on a connection beyond the limit.
pub(super) fn answer(limit: Limit, limits: &Limits) -> Vec<u8> {
    let message = match limit {
        Limit::Connections => {
            format!("all {} connections of this server are taken (limits.connections)", limits.connections)
        }
        Limit::OfNetwork => format!(
            "all {} connections that one address may have are taken (limits.connections_per_address)",
            limits.connections_per_address
        ),
    };
    let error = ApiError::new(Code::Unavailable, message).retry_after(1);
    let body = format!("{{\"error\":{}}}", error.to_json("none"));
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/openjobspec+json\r\nOJS-Version: 1.0\r\n\
         Retry-After: 1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

/// Answers the request on a connection beyond the limit, and closes it. Many clients take a response
/// that comes before their request for a fault, so the request is awaited.
pub(super) async fn refuse(mut stream: TcpStream, answer: &[u8]) {
    let drained = async {
        let mut request = Vec::new();
        while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < MOST_READ {
            if stream.read_buf(&mut request).await? == 0 {
                return Ok(());
            }
        }
        stream.write_all(answer).await?;
        stream.shutdown().await?;
        let mut left = MOST_READ;
        while left > 0 {
            request.clear();
            match stream.read_buf(&mut request).await? {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
        Ok::<(), std::io::Error>(())
    };
    // A client that breaks off, or does not send anything, misses nothing.
    let _ = timeout(DRAIN_TIMEOUT, drained).await;
}

/// Closes a connection to make room for another. Where a request has come, in part or not read yet, it
/// is answered; where none has, there is nothing to answer.
pub(super) fn close(stream: TcpStream, request_has_begun: bool, answer: &[u8]) {
    let Ok(mut stream) = stream.into_std() else { return };
    let mut request_has_begun = request_has_begun;
    let mut scratch = [0; 4 << 10];
    for _ in 0..16 {
        match stream.read(&mut scratch) {
            Ok(0) => return,
            Ok(_) => request_has_begun = true,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    if request_has_begun {
        let _ = stream.write(answer);
    }
}
