//! Events: the same over HTTP and in-process; streams resume where they were cut off, and say what is missing.

#![cfg(all(feature = "http", feature = "embedded"))]
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::proxy::Proxy;
use common::{TestServer, soon};
use redrive_store::{Memory, Store};
use redrive_worker::testing::Harness;
use redrive_worker::{Client, ClientError, EventInfo, EventStream, Events, Failure, Followed, NewJob, Retry, Worker};
use std::sync::Arc;

const MISSING: &str = "01890f5e-6f00-7000-8000-000000000009";

fn job(queue: &str) -> NewJob {
    NewJob::new("mail.send", ()).expect("it can be written").queue(queue)
}

async fn enqueued(client: &Client, queue: &str) -> String {
    soon(client.enqueue(job(queue))).await.expect("enqueued").id().to_owned()
}

async fn next(stream: &mut EventStream) -> Option<Followed> {
    soon(stream.next()).await.expect("it goes on")
}

async fn event(stream: &mut EventStream) -> EventInfo {
    match next(stream).await {
        Some(Followed::Event(event)) => event,
        other => panic!("not an event: {other:?}"),
    }
}

fn kinds(events: &[EventInfo]) -> Vec<&str> {
    events.iter().map(EventInfo::kind).collect()
}

fn refused(answer: Result<impl Sized, ClientError>) -> (u16, String, String) {
    match answer.err() {
        Some(ClientError::Refused(refused)) => (refused.status, refused.code, refused.message),
        other => panic!("not refused: {other:?}"),
    }
}

/// What the same calls answer on a client; ids and times differ.
async fn listed(client: &Client) -> Vec<(Vec<String>, Option<String>)> {
    let id = enqueued(client, "mail").await;
    enqueued(client, "slow").await;
    soon(client.cancel(&id)).await.expect("cancelled");
    let events = client.events();
    let first = soon(events.list()).await.expect("a list")[0].id().to_owned();
    let mut all = Vec::new();
    let filters: [Events; 6] = [
        events.clone(),
        events.clone().queue("mail"),
        events.clone().queue("none"),
        events.clone().job(&*id),
        events.clone().types(["job.cancelled", "queue.*"]),
        events.clone().after(first),
    ];
    for filter in filters {
        let list = soon(filter.list()).await.expect("a list");
        let queue = list.last().and_then(EventInfo::queue).map(str::to_owned);
        all.push((kinds(&list).into_iter().map(str::to_owned).collect(), queue));
    }
    all
}

#[tokio::test]
async fn events_are_listed_and_refused_alike_over_http_and_in_process() {
    let (server, harness) = (TestServer::open().await, Harness::new().expect("an engine"));
    let (http, local) = (server.client(), harness.client());
    let over_http = listed(&http).await;
    assert_eq!(over_http, listed(local).await);
    let mail = |kinds: &[&str]| (kinds.iter().map(|&kind| kind.to_owned()).collect(), Some("mail".to_owned()));
    assert_eq!(over_http[0], mail(&["job.enqueued", "job.enqueued", "job.cancelled"]));
    assert_eq!(over_http[1], mail(&["job.enqueued", "job.cancelled"]));
    assert_eq!(over_http[2], (Vec::new(), None));
    assert_eq!(over_http[3], mail(&["job.enqueued", "job.cancelled"]));
    assert_eq!(over_http[4], mail(&["job.cancelled"]));
    assert_eq!(over_http[5], mail(&["job.enqueued", "job.cancelled"]));
    let wrong: [fn(Events) -> Events; 3] =
        [|events| events.types(["job.canceled"]), |events| events.queue("nowhere"), |events| events.job(MISSING)];
    for (wrong, words) in wrong.into_iter().zip(["did you mean job.cancelled?", "\"nowhere\"", MISSING]) {
        let streams = [soon(wrong(http.events()).follow()).await, soon(wrong(local.events()).follow()).await];
        let [http, local] = streams.map(refused);
        assert_eq!((http.0, &http.1), (local.0, &local.1), "{words}");
        assert!(http.2.contains(words) && local.2.contains(words), "{:?} and {:?}", http.2, local.2);
    }
    for events in [http.events(), local.events()] {
        let typo = refused(soon(events.clone().types(["job.canceled"]).list()).await);
        assert!(typo.0 == 400 && typo.2.contains("did you mean job.cancelled?"), "{typo:?}");
        assert_eq!(refused(soon(events.after("yesterday").list()).await).0, 400);
    }
    server.close().await;
}

async fn failing(_: ()) -> Result<(), Failure> {
    Err(Failure::new("external.timeout", "no answer"))
}

/// Runs a job to its end on a client, by a worker that fails.
async fn failed(client: &Client, stream: &mut EventStream) -> Vec<EventInfo> {
    let worker = Worker::builder(client).queue("mail").handle("mail.send", failing).build().expect("it fits");
    let read = async {
        let mut all = Vec::new();
        while let Some(followed) = next(stream).await {
            match followed {
                Followed::Event(event) => all.push(event),
                other => panic!("{other:?}"),
            }
        }
        all
    };
    let (send, stopped) = tokio::sync::oneshot::channel();
    let running = worker.run_until(async { drop(stopped.await) });
    let (ran, all) = tokio::join!(running, async {
        let all = read.await;
        let _ = send.send(());
        all
    });
    ran.expect("it worked");
    all
}

#[tokio::test]
async fn the_stream_of_a_job_ends_with_it_and_one_that_has_ended_has_its_state() {
    let (server, harness) = (TestServer::open().await, Harness::new().expect("an engine"));
    for client in [&server.client(), harness.client()] {
        let once = job("mail").retry(Retry::none().expect("no retries"));
        let id = soon(client.enqueue(once)).await.expect("enqueued").id().to_owned();
        enqueued(client, "slow").await;
        let events = client.events().job(&*id);
        let mut stream = soon(events.follow()).await.expect("a stream");
        let all = failed(client, &mut stream).await;
        assert_eq!(kinds(&all), ["job.started", "job.failed", "job.discarded"]);
        assert!(all.iter().all(|event| event.subject() == id));
        assert_eq!(all[2].data()["last_error"]["code"], "external.timeout", "{:?}", all[2]);
        let mut again = soon(events.follow()).await.expect("a stream");
        let state = event(&mut again).await;
        assert_eq!((state.kind(), &state.data()["current"]), ("job.discarded", &true.into()));
        assert!(next(&mut again).await.is_none());
        let mut rest = soon(events.clone().after(all[0].id()).follow()).await.expect("a stream");
        assert_eq!(event(&mut rest).await, all[1]);
        assert_eq!(event(&mut rest).await, all[2]);
        assert!(next(&mut rest).await.is_none());
        let mut seen = soon(events.clone().after(all[2].id()).follow()).await.expect("a stream");
        assert!(next(&mut seen).await.is_none(), "everything was seen");
        let mut other = soon(events.types(["job.released"]).after(all[0].id()).follow()).await.expect("a stream");
        assert!(next(&mut other).await.is_none(), "it ends, though its end is not wanted");
    }
    server.close().await;
}

#[tokio::test]
async fn a_stream_resumes_after_a_lost_connection_and_misses_nothing() {
    let server = TestServer::open().await;
    let proxy = Proxy::to(server.address).await;
    let (direct, cut_off) = (server.client(), Client::http(&proxy.url()).expect("an address"));
    let mut stream = soon(cut_off.events().types(["job.enqueued"]).follow()).await.expect("a stream");
    let id = enqueued(&direct, "mail").await;
    assert_eq!(event(&mut stream).await.subject(), id);
    proxy.cut();
    let lost = next(&mut stream).await;
    assert!(matches!(lost, Some(Followed::Lost { .. })), "{lost:?}");
    let ids = [enqueued(&direct, "mail").await, enqueued(&direct, "slow").await];
    let still = next(&mut stream).await;
    assert!(matches!(still, Some(Followed::Lost { .. })), "the server is still unreachable: {still:?}");
    proxy.restore();
    let mut found = Vec::new();
    while found.len() < 2 {
        match next(&mut stream).await {
            Some(Followed::Event(event)) => found.push(event.subject().to_owned()),
            Some(Followed::Lost { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(found, ids);
    server.close().await;
}

#[tokio::test]
async fn a_stream_says_that_events_are_missing_after_a_restart() {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let server = TestServer::on(Arc::clone(&store), None).await;
    let (address, client) = (server.address, server.client());
    let mut stream = soon(client.events().follow()).await.expect("a stream");
    let id = enqueued(&client, "mail").await;
    assert_eq!(event(&mut stream).await.subject(), id);
    server.close().await;
    let lost = next(&mut stream).await;
    assert!(matches!(lost, Some(Followed::Lost { .. })), "{lost:?}");
    let server = TestServer::on(store, Some(address)).await;
    let gap = loop {
        match next(&mut stream).await {
            Some(Followed::Lost { .. }) => {}
            Some(Followed::Gap(gap)) => break gap,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((gap.reason(), gap.missed_at_most()), ("other_process", None));
    let id = enqueued(&client, "mail").await;
    assert_eq!(event(&mut stream).await.subject(), id, "it goes on from there");
    server.close().await;
}

#[tokio::test]
async fn a_stream_that_is_not_read_says_how_many_events_are_missing() {
    let harness = Harness::new().expect("an engine");
    let client = harness.client();
    let mut stream = client.events().follow().await.expect("a stream");
    for _ in 0..21 {
        let jobs = (0..500).map(|_| job("mail")).collect();
        client.enqueue_all(jobs).await.expect("enqueued");
    }
    match next(&mut stream).await {
        Some(Followed::Gap(gap)) => assert_eq!((gap.reason(), gap.missed_at_most()), ("dropped", Some(500))),
        other => panic!("{other:?}"),
    }
    let first = event(&mut stream).await;
    assert!(first.id().ends_with("-501"), "{first:?}");
    client.close().await.expect("closed");
    for _ in 0..9_999 {
        event(&mut stream).await;
    }
    assert!(next(&mut stream).await.is_none(), "the client is closed");
}
