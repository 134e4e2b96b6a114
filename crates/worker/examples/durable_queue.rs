//! A durable queue without a server: a folder, a producer and a worker in one program.
//!
//! `cargo run -p redrive-worker --features embedded --example durable_queue`
//!
//! Stop it in the middle with Ctrl-C or kill -9 and start it again: it goes on where it was.

use redrive_worker::{Client, Context, Event, Failure, NewJob, Worker};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Serialize, Deserialize)]
struct Thumbnail {
    image: String,
    width: u32,
}

/// The first try fails; the default policy tries twice more.
async fn shrink(job: Thumbnail, context: Context) -> Result<String, Failure> {
    if context.job().attempt() == 1 {
        return Err(Failure::new("image.busy", format!("{} is still being written", job.image)));
    }
    Ok(format!("{}-{}.png", job.image, job.width))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::open(std::env::temp_dir().join("redrive-durable-queue")).await?;
    let job = NewJob::new("image.shrink", Thumbnail { image: "cat".into(), width: 320 })?;
    let job = client.enqueue(job.idempotency_key("cat-320")).await?;
    eprintln!("job {} is safe on disk", job.id());

    let worker = Worker::builder(&client)
        .handle("image.shrink", shrink)
        .on_event(|event| match event {
            Event::Failed(job, failure) => eprintln!("attempt {} failed: {failure}", job.attempt()),
            Event::Settled { state, retry_after: Some(wait), .. } => eprintln!("{state}, next try in {wait:?}"),
            _ => {}
        })
        .build()?;
    let waiting = client.clone();
    let id = job.id().to_owned();
    worker
        .run_until(async move {
            match waiting.result::<String>(&id, Duration::from_secs(30)).await {
                Ok(file) => eprintln!("done: {file}"),
                Err(error) => eprintln!("{error}"),
            }
        })
        .await?;
    client.close().await?;
    Ok(())
}
