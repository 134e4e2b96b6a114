//! Jobs that are enqueued while requests are under way share the next one.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod common;

use common::{TestServer, soon};
use redrive_store::{Filter, Group, Job, Page, Setting};
use redrive_worker::{Client, ClientError, JobInfo, NewJob};
use serde_json::json;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// A real server behind a gate that lets answers through, one for each permit.
struct Gated {
    server: TestServer,
    client: Client,
    gate: Arc<Semaphore>,
}

impl Gated {
    /// The server, with as many requests under way as there can be, whose answers the gate holds back.
    async fn with_requests_under_way() -> (Self, Vec<Call>) {
        let server = TestServer::open().await;
        let gate = Arc::new(Semaphore::new(0));
        let address = forward(server.address, Arc::clone(&gate)).await;
        let gated = Self { client: Client::http(&format!("http://{address}")).unwrap(), server, gate };
        let mut calls = Vec::new();
        // One after the other has its request, so that no two of them share one.
        for number in 1..=UNDER_WAY {
            calls.push(gated.enqueue(job(0)).await);
            soon(async {
                while gated.jobs().await.len() < number {
                    tokio::task::yield_now().await;
                }
            })
            .await;
        }
        (gated, calls)
    }

    /// Starts a call, and answers when it waits.
    async fn enqueue(&self, job: NewJob) -> Call {
        let client = self.client.clone();
        let call = tokio::spawn(async move { client.enqueue(job).await });
        // There is one thread: the call runs until it waits.
        tokio::task::yield_now().await;
        call
    }

    fn open(&self) {
        self.gate.add_permits(1_000);
    }

    async fn jobs(&self) -> Vec<Job> {
        self.server.engine.list(Filter::default(), Page::new(0, 1_000)).await.unwrap().jobs
    }
}

/// How many requests are under way at the same time.
const UNDER_WAY: usize = 2;

type Call = JoinHandle<Result<JobInfo, ClientError>>;

async fn forward(server: SocketAddr, gate: Arc<Semaphore>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let (far, gate) = (TcpStream::connect(server).await.unwrap(), Arc::clone(&gate));
            let ((mut near_in, mut near_out), (mut far_in, mut far_out)) = (near.into_split(), far.into_split());
            tokio::spawn(async move { copy(&mut near_in, &mut far_out).await });
            tokio::spawn(async move {
                let mut bytes = vec![0; 1 << 20];
                while let Ok(read @ 1..) = far_in.read(&mut bytes).await {
                    gate.acquire().await.unwrap().forget();
                    near_out.write_all(&bytes[..read]).await.unwrap();
                }
            });
        }
    });
    address
}

fn job(number: u32) -> NewJob {
    NewJob::new("gathered", number).unwrap()
}

/// A job that the server refuses.
fn invalid() -> NewJob {
    job(0).priority(101)
}

async fn all(calls: impl IntoIterator<Item = Call>) -> Vec<JobInfo> {
    let mut jobs = Vec::new();
    for call in calls {
        jobs.push(answer(call).await.unwrap());
    }
    jobs
}

async fn answer(call: Call) -> Result<JobInfo, ClientError> {
    soon(call).await.unwrap()
}

#[tokio::test]
async fn calls_during_a_request_share_the_next_one_in_their_order() {
    let (gated, under_way) = Gated::with_requests_under_way().await;
    let mut calls = Vec::new();
    for number in 1..10 {
        calls.push(gated.enqueue(job(number)).await);
    }
    gated.open();
    all(under_way).await;
    let ids: Vec<String> = all(calls).await.iter().map(|job| job.id().to_owned()).collect();
    let jobs = gated.jobs().await;
    let created: BTreeSet<_> =
        jobs.iter().filter(|job| ids.contains(&job.id.to_string())).map(|job| job.times.created).collect();
    assert_eq!(
        (jobs.len(), created.len()),
        (UNDER_WAY + 9, 1),
        "the jobs of one request are created at the same moment"
    );
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "the ids of a request ascend: {ids:?}");
    for (number, id) in (1..).zip(&ids) {
        assert_eq!(gated.client.job(id).await.unwrap().envelope()["args"], json!([number]));
    }
}

#[tokio::test]
async fn a_job_that_is_refused_costs_the_others_nothing() {
    let (gated, under_way) = Gated::with_requests_under_way().await;
    let mut calls = Vec::new();
    for number in 1..8 {
        calls.push(gated.enqueue(if number == 3 { invalid() } else { job(number) }).await);
    }
    gated.open();
    all(under_way).await;
    for (number, call) in (1..).zip(calls) {
        match answer(call).await {
            Ok(_) => assert_ne!(number, 3),
            Err(ClientError::Refused(refused)) => {
                assert_eq!((number, refused.status), (3, 400), "{refused:?}");
                assert!(refused.message.contains("priority") && refused.message.contains("101"), "{refused:?}");
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(gated.jobs().await.len(), UNDER_WAY + 6, "each of the others once");
}

#[tokio::test]
async fn a_caller_that_goes_away_takes_its_own_job_and_no_other() {
    let (gated, under_way) = Gated::with_requests_under_way().await;
    let [before, gone, behind] = [job(1), job(2), job(3)];
    let before = gated.enqueue(before).await;
    let gone = gated.enqueue(gone).await;
    let behind = gated.enqueue(behind).await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    // Those whose requests are under way go too: the requests are not their own.
    under_way.iter().for_each(JoinHandle::abort);
    gated.open();
    all([before, behind]).await;
    assert_eq!(gated.jobs().await.len(), UNDER_WAY + 2, "what was under way is enqueued");
}

#[tokio::test]
async fn a_job_with_a_key_goes_alone_and_is_found_again() {
    let (gated, under_way) = Gated::with_requests_under_way().await;
    let plain = gated.enqueue(job(1)).await;
    let keyed = gated.enqueue(job(2).idempotency_key("k")).await;
    gated.open();
    all(under_way.into_iter().chain([plain])).await;
    let keyed = answer(keyed).await.unwrap();
    let again = gated.client.enqueue_or_find(job(2).idempotency_key("k")).await.unwrap();
    assert_eq!((again.0.id(), again.1), (keyed.id(), false));
    let conflict = gated.client.enqueue(job(3).idempotency_key("k")).await;
    assert!(matches!(conflict, Err(ClientError::Refused(refused)) if refused.status == 409));
    assert_eq!(gated.jobs().await.len(), UNDER_WAY + 2);
}

#[tokio::test]
async fn an_unreachable_server_is_told_to_every_caller_and_the_next_call_tries_again() {
    let server = TestServer::open().await;
    let proxy = common::proxy::Proxy::to(server.address).await;
    let client = Client::http(&proxy.url()).unwrap();
    proxy.cut();
    let call = |number| client.enqueue(job(number));
    let (first, second, third) = tokio::join!(call(1), call(2), call(3));
    for outcome in [first, second, third] {
        assert!(matches!(outcome, Err(ClientError::Unreachable(_))), "{outcome:?}");
    }
    proxy.restore();
    soon(client.enqueue(job(4))).await.unwrap();
    server.close().await;
}

#[tokio::test]
async fn a_request_does_not_become_larger_than_servers_take() {
    let (gated, under_way) = Gated::with_requests_under_way().await;
    let large = "x".repeat(400 << 10);
    let mut calls = under_way;
    for _ in 0..4 {
        calls.push(gated.enqueue(NewJob::new("gathered", &large).unwrap()).await);
    }
    gated.open();
    assert_eq!(all(calls).await.len(), UNDER_WAY + 4, "together they are larger than the server takes");
}

#[cfg(feature = "embedded")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_in_this_process_answers_each_call_of_many_at_once() {
    let folder = common::Folder::new("gather");
    let client = Client::open(&folder.0).await.unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..200 {
        let client = client.clone();
        calls.spawn(
            async move { (number, client.enqueue(if number % 50 == 7 { invalid() } else { job(number) }).await) },
        );
    }
    let mut ids = BTreeSet::new();
    for (number, outcome) in soon(calls.join_all()).await {
        assert_eq!(outcome.is_err(), number % 50 == 7, "{outcome:?}");
        ids.extend(outcome.ok().map(|job| job.id().to_owned()));
    }
    assert_eq!(ids.len(), 196);
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_full_queue_refuses_its_own_jobs_and_no_others() {
    let (gated, first) = Gated::with_requests_under_way().await;
    let setting = Setting { depth: Some(1), ..Setting::default() };
    gated.server.engine.set_limit(Group::Queue("small".into()), Some(setting)).await.unwrap();
    let mut calls = Vec::new();
    for queue in ["small", "wide", "small", "wide", "small"] {
        calls.push(gated.enqueue(job(1).queue(queue)).await);
    }
    gated.open();
    all(first).await;
    let mut answers = Vec::new();
    for call in calls {
        answers.push(match answer(call).await {
            Ok(_) => None,
            Err(ClientError::QueueFull(full)) => Some((full.queue, full.depth, full.bound, full.retry_after.as_secs())),
            Err(other) => panic!("{other}"),
        });
    }
    let full = || Some(("small".to_owned(), 1, 1, 5));
    assert_eq!(answers, [None, None, full(), None, full()]);
}
