//! A minimal HTTP/1.1 client for measurements: one connection, kept alive, one request at a time.
//!
//! The bench does not use the client of the other commands, because it runs on the processors of the server that it
//! measures. Enqueues one by one over 16 connections took 24 to 29 µs of the bench's processor time each with this
//! code, and 56 to 61 µs with `redrive_worker::http` (10,000 jobs, two runs of each, a build of the development
//! profile on two busy cores); claims with acks took 56 to 60 µs, and 100 to 112 µs.

use crate::exit::Failed;
use std::net::{SocketAddr, ToSocketAddrs};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The longest answer that is read.
const MAX_ANSWER: usize = 64 << 20;

/// The address of the server, and the headers of every request.
#[derive(Clone, Debug)]
pub(super) struct Target {
    address: SocketAddr,
    /// The header lines of every request, each with its end.
    headers: String,
}

impl Target {
    /// From `http://HOST:PORT` and an API key.
    pub(super) fn of(url: &str, key: Option<&str>) -> Result<Self, Failed> {
        if url.starts_with("https://") {
            return Err(Failed::usage(format!(
                "{url}: the bench measures without encryption; allowed is http://HOST:PORT, the server itself"
            )));
        }
        let host = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/');
        let with_port = if host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
            host.to_owned()
        } else {
            format!("{host}:80")
        };
        let mut addresses =
            with_port.to_socket_addrs().map_err(|error| Failed::unreachable(format!("{host}: {error}")))?;
        let address = addresses.next().ok_or_else(|| Failed::unreachable(format!("{host} has no address")))?;
        let key = key.map_or_else(String::new, |key| format!("authorization: Bearer {key}\r\n"));
        Ok(Self { address, headers: format!("host: {host}\r\n{key}content-type: application/json\r\n") })
    }

    /// The bytes of a POST up to the number of its body's bytes.
    pub(super) fn head(&self, path: &str) -> Head {
        Head(format!("POST {path} HTTP/1.1\r\n{}content-length: ", self.headers).into_bytes())
    }

    pub(super) async fn connect(&self) -> Result<Connection, Failed> {
        let unreachable = |error| Failed::unreachable(format!("no connection to {}: {error}", self.address));
        let stream = TcpStream::connect(self.address).await.map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        Ok(Connection { stream, request: Vec::new(), answer: Vec::with_capacity(16 << 10) })
    }
}

/// The bytes of a POST up to the number of its body's bytes.
#[derive(Clone, Debug)]
pub(super) struct Head(Vec<u8>);

/// An open connection.
pub(super) struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Connection {
    /// Sends a body and returns that of the answer. Any other status than success is an error.
    pub(super) async fn post(&mut self, head: &Head, body: &[u8]) -> Result<&[u8], Failed> {
        self.request.clear();
        self.request.extend_from_slice(&head.0);
        self.request.extend_from_slice(body.len().to_string().as_bytes());
        self.request.extend_from_slice(b"\r\n\r\n");
        self.request.extend_from_slice(body);
        let broken = |error: std::io::Error| Failed::unreachable(format!("the connection broke: {error}"));
        self.stream.write_all(&self.request).await.map_err(broken)?;
        self.answer.clear();
        loop {
            let read = self.stream.read_buf(&mut self.answer).await.map_err(broken)?;
            if read == 0 {
                return Err(Failed::unreachable("the server closed the connection in the middle of an answer"));
            }
            if let Some(HttpResponse { status, body }) = parse_response(&self.answer).map_err(Failed::unreachable)? {
                let body = self.answer.get(body).unwrap_or_default();
                return match status {
                    200 | 201 => Ok(body),
                    other => Err(Failed::unreachable(format!("the server answered {other}: {}", start_of(body)))),
                };
            }
        }
    }
}

#[derive(Debug, PartialEq)]
struct HttpResponse {
    status: u16,
    body: std::ops::Range<usize>,
}

/// The answer in these bytes; `None` as long as it is incomplete.
fn parse_response(bytes: &[u8]) -> Result<Option<HttpResponse>, String> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let head = bytes.get(..end).unwrap_or_default();
    let mut lines = head.split(|byte| *byte == b'\n');
    let status = lines.next().and_then(|line| std::str::from_utf8(line.get(9..12)?).ok()?.parse().ok());
    let status = status.ok_or_else(|| format!("not an answer of HTTP/1.1: {}", start_of(head)))?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_at_checked(15)?;
        let number = || std::str::from_utf8(value).ok()?.trim().parse::<usize>().ok();
        name.eq_ignore_ascii_case(b"content-length:").then(number)
    });
    let length = length.flatten().filter(|length| *length <= MAX_ANSWER);
    let length = length.ok_or_else(|| "an answer without a usable content-length".to_owned())?;
    let body = end + 4..end + 4 + length;
    Ok((bytes.len() >= body.end).then_some(HttpResponse { status, body }))
}

fn start_of(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes.get(..400).unwrap_or(bytes));
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_parsed_once_it_is_complete() {
        let text = b"HTTP/1.1 201 Created\r\nX: y\r\nContent-Length: 5\r\n\r\nhello";
        for cut in 0..text.len() {
            assert_eq!(parse_response(&text[..cut]), Ok(None), "after {cut} bytes");
        }
        assert_eq!(parse_response(text), Ok(Some(HttpResponse { status: 201, body: 49..54 })));
        assert!(parse_response(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
        assert!(parse_response(b"SSH-2.0\r\n\r\n").is_err());
    }

    #[test]
    fn the_port_is_eighty_unless_given() {
        let address = |url| Target::of(url, None).map(|target| target.address.to_string()).ok();
        assert_eq!(address("http://127.0.0.1:8080/"), Some("127.0.0.1:8080".to_owned()));
        assert_eq!(address("http://127.0.0.1"), Some("127.0.0.1:80".to_owned()));
        assert_eq!(address("http://[::1]:9"), Some("[::1]:9".to_owned()));
    }
}
