//! A sender of web hooks with retries.
//!
//! `redrive serve`, then `cargo run -p redrive-worker --example webhooks -- http://127.0.0.1:9000/hook`,
//! with something that listens there, sooner or later.

use redrive_policy::{Disposition, Policy};
use redrive_worker::{Client, Failure, NewJob, ResultExt, Retry, Worker};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(Serialize, Deserialize)]
struct Hook {
    url: String,
    body: String,
}

async fn send(hook: Hook) -> Result<u16, Failure> {
    let address = hook.url.strip_prefix("http://").ok_or_else(|| Failure::other("not http")).unrecoverable()?;
    let (host, path) = address.split_once('/').unwrap_or((address, ""));
    let mut stream = TcpStream::connect(host).await?;
    let (length, body) = (hook.body.len(), &hook.body);
    let request = format!("POST /{path} HTTP/1.0\r\nhost: {host}\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await?;
    match String::from_utf8_lossy(&answer[9..]).parse()? {
        status @ 200..300 => Ok(status),
        // The receiver will not like it better next time.
        status @ 400..500 if status != 429 => Err(Failure::new("hook.refused", status).unrecoverable()),
        429 => Err(Failure::new("hook.busy", 429).retry_after(Duration::from_secs(30))),
        status => Err(Failure::new("hook.failed", status)),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("the address of the receiver is missing")?;
    let client = Client::http("http://127.0.0.1:8080")?;
    let policy = Policy::builder()
        .exponential(Duration::from_secs(1), 2.0)
        .ojs_jitter()
        .max_attempts(10)
        .on_stop(Disposition::DeadLetter);
    let hook = NewJob::new("hook.send", Hook { url, body: r#"{"event": "paid"}"#.to_owned() })?;
    let job = client.enqueue(hook.retry(Retry::policy(&policy.build()?)?)).await?;
    let worker = Worker::builder(&client).handle("hook.send", send).timeout(Duration::from_secs(10));
    let worker = worker.on_event(|event| eprintln!("{event:?}")).build()?;
    let id = job.id().to_owned();
    worker.run_until(async move { drop(client.wait(&id, Duration::from_secs(600)).await) }).await?;
    Ok(())
}
