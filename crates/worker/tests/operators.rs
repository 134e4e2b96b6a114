//! Webhooks and workers, as operators use them.

#![cfg(all(feature = "http", feature = "embedded"))]
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{TestServer, soon};
use redrive_worker::testing::Harness;
use redrive_worker::{Client, ClientError, Context, DeliveryInfo, Failure, NewJob, WebhookSettings, Worker};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc, oneshot};

fn status(error: &ClientError) -> u16 {
    match error {
        ClientError::Refused(refused) => refused.status,
        other => panic!("not refused: {other}"),
    }
}

/// An endpoint that answers with a status to each request, and tells the heads of the requests.
async fn endpoint(answer: &'static str) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port");
    let url = format!("http://{}/hooks", listener.local_addr().expect("an address"));
    let (sender, arrived) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = vec![0; 64 << 10];
            let read = stream.read(&mut bytes).await.expect("a request");
            let said = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(said.as_bytes()).await.expect("answered");
            let _ = sender.send(String::from_utf8_lossy(&bytes[..read]).into_owned());
        }
    });
    (url, arrived)
}

async fn until_ended(client: &Client, webhook: &str) -> DeliveryInfo {
    let ended = async {
        loop {
            let all = client.webhooks().deliveries(Some(webhook), None, 10).await.expect("a list");
            match all.into_iter().find(|one| ["delivered", "dead"].contains(&one.status())) {
                Some(delivery) => return delivery,
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    soon(ended).await
}

#[tokio::test]
async fn a_webhook_is_subscribed_tested_changed_and_deleted() {
    let server = TestServer::open().await;
    let client = server.client();
    let webhooks = client.webhooks();
    let (url, mut arrived) = endpoint("200 OK").await;
    let settings = WebhookSettings::new().queues(["mail"]).job_types(["mail.send"]).timeout(Duration::from_secs(5));
    let added = soon(webhooks.subscribe(&*url, ["job.enqueued"], settings.description("tests"))).await;
    let added = added.expect("subscribed");
    let id = added.id().to_owned();
    let secret = added.secret().expect("the only time").to_owned();
    assert_eq!((added.url(), added.events().collect::<Vec<_>>()), (&*url, vec!["job.enqueued"]));
    assert_eq!(added.document()["filter"]["queues"][0], "mail");
    assert_eq!(added.document()["metadata"]["description"], "tests");
    let shown = soon(webhooks.get(&id)).await.expect("it is there");
    assert_eq!((shown.secret(), shown.is_active(), shown.disabled_reason()), (None, true, None));
    let tested = soon(webhooks.test(&id)).await.expect("it was sent");
    assert_eq!((tested.succeeded(), tested.status(), tested.error()), (true, Some(200), None));
    assert!(soon(arrived.recv()).await.expect("a request").contains("webhook.test"));
    client.enqueue(NewJob::new("mail.send", ()).expect("a job").queue("mail")).await.expect("enqueued");
    let delivery = until_ended(&client, &id).await;
    assert_eq!((delivery.status(), delivery.event_type(), delivery.attempts()), ("delivered", "job.enqueued", 1));
    assert_eq!(delivery.subscription_id(), id);
    let (delivery, event) = soon(webhooks.delivery(delivery.id())).await.expect("it is there");
    assert_eq!((event.kind(), event.queue()), ("job.enqueued", Some("mail")));
    assert!(soon(arrived.recv()).await.expect("a request").contains(delivery.id()));
    let rotated = soon(webhooks.rotate_secret(&id)).await.expect("rotated");
    assert_ne!(rotated.secret().expect("a new one"), secret);
    assert!(!soon(webhooks.pause(&id)).await.expect("paused").is_active());
    assert!(soon(webhooks.resume(&id)).await.expect("resumed").is_active());
    let changed = webhooks.update(&id, WebhookSettings::new().events(["job.*"])).await.expect("changed");
    assert_eq!((changed.events().collect::<Vec<_>>(), changed.url()), (vec!["job.*"], &*url));
    soon(webhooks.drop_delivery(delivery.id())).await.expect("dropped");
    assert_eq!(soon(webhooks.list()).await.expect("a list").len(), 1);
    soon(webhooks.delete(&id)).await.expect("deleted");
    assert_eq!(status(&soon(webhooks.get(&id)).await.expect_err("it is gone")), 404);
    server.close().await;
}

#[tokio::test]
async fn dead_deliveries_are_listed_and_sent_again_and_mistakes_are_refused() {
    let server = TestServer::open().await;
    let client = server.client();
    let webhooks = client.webhooks();
    let (url, _arrived) = endpoint("410 Gone").await;
    let added = soon(webhooks.subscribe(url, ["job.*"], WebhookSettings::new())).await.expect("subscribed");
    client.enqueue(NewJob::new("mail.send", ()).expect("a job")).await.expect("enqueued");
    let dead = until_ended(&client, added.id()).await;
    assert_eq!(dead.status(), "dead");
    let listed = soon(webhooks.deliveries(None, Some("dead"), 5)).await.expect("a list");
    assert_eq!(listed[0].id(), dead.id());
    let again = soon(webhooks.retry(dead.id())).await.expect("sent again");
    assert_eq!(again.id(), dead.id());
    let typo = soon(webhooks.subscribe("https://example.com/", ["job.fialed"], WebhookSettings::new())).await;
    assert_eq!(status(&typo.expect_err("there is no such type")), 400);
    assert_eq!(status(&soon(webhooks.deliveries(None, Some("lost"), 5)).await.expect_err("no such status")), 400);
    assert_eq!(status(&soon(webhooks.test("sub_x")).await.expect_err("no such webhook")), 404);
    let harness = Harness::new().expect("an engine");
    let refused = harness.client().webhooks().list().await.expect_err("nobody would send them");
    assert!(status(&refused) == 409 && refused.to_string().contains("redrive serve"), "{refused}");
    server.close().await;
}

/// What a handler tells the test, and what it waits for.
struct Meeting {
    begun: mpsc::Sender<()>,
    looked: Mutex<Option<oneshot::Receiver<()>>>,
}

/// Tells that it has begun, and waits until the test has looked.
async fn wait(_: (), context: Context<Meeting>) -> Result<(), Failure> {
    let Meeting { begun, looked } = context.state();
    begun.send(()).await.map_err(|_| Failure::new("test", "nobody waits"))?;
    let looked = looked.lock().await.take();
    looked.ok_or_else(|| Failure::new("test", "it runs twice"))?.await.map_err(|_| Failure::new("test", "over"))
}

#[tokio::test]
async fn workers_are_listed_with_what_they_run_over_http_and_in_process() {
    let (server, harness) = (TestServer::open().await, Harness::new().expect("an engine"));
    for client in [&server.client(), harness.client()] {
        assert!(soon(client.workers().list()).await.expect("a list").is_empty());
        let id = client.enqueue(NewJob::new("mail.send", ()).expect("a job")).await.expect("enqueued").id().to_owned();
        let (begins, mut begun) = mpsc::channel(1);
        let (looked, look) = oneshot::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let state = Meeting { begun: begins, looked: Mutex::new(Some(look)) };
        let worker = Worker::with_state(client, state).name("mailer-1").handle("mail.send", wait).build();
        let running = worker.expect("it fits together").run_until(async { drop(stopped.await) });
        let test = async {
            soon(begun.recv()).await.expect("it begins");
            let listed = client.workers().list().await.expect("a list");
            assert_eq!(listed.len(), 1);
            assert_eq!((listed[0].id(), listed[0].state(), listed[0].active_jobs()), ("mailer-1", "running", 1));
            assert_eq!((listed[0].queues().collect::<Vec<_>>(), listed[0].is_stale()), (vec!["default"], false));
            let shown = client.workers().get("mailer-1").await.expect("it is there");
            assert_eq!(shown.job_ids().collect::<Vec<_>>(), [id.as_str()]);
            assert!(!shown.last_seen_at().is_empty());
            let missing = client.workers().get("mailer-2").await.expect_err("it never called");
            assert!(status(&missing) == 404 && missing.to_string().contains("mailer-2"), "{missing}");
            let _ = looked.send(());
            let _ = stop.send(());
        };
        let (ran, ()) = tokio::join!(running, test);
        ran.expect("it worked");
    }
    server.close().await;
}
