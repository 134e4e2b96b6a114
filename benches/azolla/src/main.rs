//! Tasks through Azolla's protocol: callers that create them and wait for them, and a shepherd that starts no workers.
//! It does what standard input says, a word on each line, and prints after how many seconds that was done:
//!
//! - `create`: creates the tasks;
//! - `run`: a shepherd comes, and callers wait for each of the tasks.

#[allow(dead_code, reason = "servers and workers are others")]
#[path = "../../../crates/azolla/src/proto.rs"]
mod proto;
mod shepherd;

use proto::common::retry_policy_wait::Kind;
use proto::common::{RetryPolicy, RetryPolicyFixedWait, RetryPolicyRetry, RetryPolicyStop, RetryPolicyWait};
use proto::orchestrator::client_service_client::ClientServiceClient;
use proto::orchestrator::wait_for_task_response::ResultType;
use proto::orchestrator::{CreateTaskRequest, WaitForTaskRequest};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinSet;
use tonic::transport::{Channel, Endpoint};

type Failed = Box<dyn Error + Send + Sync>;

const USAGE: &str = "usage: redrive-benches-azolla PORT TASKS FAILURES CALLERS CONCURRENCY";
const DOMAIN: &str = "default";
/// Over how many connections callers call.
const CONNECTIONS: usize = 4;
/// Args of about 100 bytes, as the jobs of the other benchmarks have.
const ARGS: &str =
    r#"["user-4711@example.com","welcome",{"locale":"en","template":"onboarding-2026","attempt_of_day":1}]"#;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let numbers: Result<Vec<u32>, _> = std::env::args().skip(1).map(|argument| argument.parse()).collect();
    let [port, tasks, failures, callers, concurrency] = numbers?[..] else { return Err(USAGE.into()) };
    let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"))?;
    let callers = Callers::new(&endpoint, callers as usize).await?;
    let mut ids = Arc::default();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let begun = Instant::now();
        match line.as_str() {
            "create" => ids = Arc::new(callers.create(tasks as usize, failures).await?),
            "run" => {
                let shepherd = shepherd::run(&endpoint, DOMAIN, concurrency, failures);
                tokio::select! {
                    ended = callers.wait(&ids) => ended?,
                    ended = shepherd => return Err(ended.err().unwrap_or_else(|| "the stream has ended".into())),
                }
            }
            other => return Err(format!("found {other:?}; allowed are create and run").into()),
        }
        println!("{}", begun.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Callers, each with one call at a time.
struct Callers(Vec<ClientServiceClient<Channel>>);

impl Callers {
    async fn new(endpoint: &Endpoint, count: usize) -> Result<Self, Failed> {
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            connections.push(ClientServiceClient::new(endpoint.connect().await?));
        }
        Ok(Self(connections.into_iter().cycle().take(count).collect()))
    }

    /// Creates so many tasks; their ids, those of the first ones first.
    async fn create(&self, count: usize, failures: u32) -> Result<Vec<String>, Failed> {
        let (next, mut calls) = (Arc::new(AtomicUsize::new(0)), JoinSet::new());
        for mut client in self.0.iter().cloned() {
            let next = Arc::clone(&next);
            calls.spawn(async move {
                let mut created = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return Ok::<_, Failed>(created);
                    }
                    created.push((number, client.create_task(task(failures)).await?.into_inner().task_id));
                }
            });
        }
        let mut ids = Vec::with_capacity(count);
        while let Some(created) = calls.join_next().await {
            ids.extend(created??);
        }
        ids.sort_unstable();
        Ok(ids.into_iter().map(|(_, id)| id).collect())
    }

    /// Waits for each task, the first ones first; all have to succeed.
    async fn wait(&self, ids: &Arc<Vec<String>>) -> Result<(), Failed> {
        let (next, mut calls) = (Arc::new(AtomicUsize::new(0)), JoinSet::new());
        for mut client in self.0.iter().cloned() {
            let (next, ids) = (Arc::clone(&next), Arc::clone(ids));
            calls.spawn(async move {
                while let Some(id) = ids.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let request =
                        WaitForTaskRequest { task_id: id.clone(), domain: DOMAIN.to_owned(), timeout_ms: None };
                    let answer = client.wait_for_task(request).await?.into_inner();
                    if !matches!(answer.result_type, Some(ResultType::Success(_))) {
                        return Err(format!("task {id} has not succeeded: {answer:?}").into());
                    }
                }
                Ok::<_, Failed>(())
            });
        }
        while let Some(waited) = calls.join_next().await {
            waited??;
        }
        Ok(())
    }
}

/// A task that may fail so many times, and is retried at once.
fn task(failures: u32) -> CreateTaskRequest {
    let policy = RetryPolicy {
        version: 1,
        stop: Some(RetryPolicyStop { max_attempts: Some(failures + 1), max_delay: None }),
        wait: Some(RetryPolicyWait { kind: Some(Kind::Fixed(RetryPolicyFixedWait { delay: 0.0 })) }),
        retry: Some(RetryPolicyRetry { include_errors: vec!["ValueError".to_owned()], exclude_errors: Vec::new() }),
    };
    CreateTaskRequest {
        name: "mail.send".to_owned(),
        domain: DOMAIN.to_owned(),
        retry_policy: Some(policy),
        args: ARGS.to_owned(),
        kwargs: "{}".to_owned(),
        flow_instance_id: None,
        shepherd_group: None,
    }
}
