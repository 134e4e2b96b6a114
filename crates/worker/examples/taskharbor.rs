//! TaskHarbor's split: the limit travels with the job, the delays belong to the worker.
//!
//! `redrive serve`, then `cargo run -p redrive-worker --example taskharbor`

use redrive_policy::dialect::Dialect;
use redrive_worker::{Client, Event, Failure, NewJob, Retry, Worker};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

#[derive(Serialize, Deserialize)]
struct Email {
    to: String,
}

async fn send(email: Email) -> Result<(), Failure> {
    if !email.to.contains('@') {
        return Err(Failure::new("bad_address", email.to).unrecoverable());
    }
    Err(Failure::new("smtp.busy", "421 try again later"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::http("http://127.0.0.1:8080")?;
    // NewExponentialBackoffPolicy(200ms, 10s, 2.0, 0.10, WithMaxAttempts(15))
    let policy = Retry::written(
        Dialect::TaskHarbor,
        json!({ "policy": {
            "base_delay": "200ms", "max_delay": "10s", "multiplier": 2.0, "jitter": 0.1, "max_attempts": 15,
        } }),
    )?;
    // JobRequest.MaxAttempts: 4 is less than 15, and holds.
    let job = NewJob::new("email.send", Email { to: "ada@example.com".into() })?;
    let patient = client.enqueue(job.retry(Retry::by_worker(Some(4))?)).await?;
    let job = NewJob::new("email.send", Email { to: "unknown".into() })?;
    client.enqueue(job.retry(Retry::by_worker(Some(4))?)).await?;

    let worker = Worker::builder(&client)
        .handle("email.send", send)
        .retry(&policy)
        .on_event(|event| match event {
            Event::Failed(job, failure) => eprintln!("{} attempt {}: {failure}", job.id(), job.attempt()),
            Event::Settled { job, state, retry_after, dead } => {
                eprintln!("{} {state}, next in {retry_after:?}, dead letter: {dead}", job.id());
            }
            _ => {}
        })
        .build()?;
    let id = patient.id().to_owned();
    worker.run_until(async move { drop(client.wait(&id, Duration::from_secs(60)).await) }).await?;
    Ok(())
}
