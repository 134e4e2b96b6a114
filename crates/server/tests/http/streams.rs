//! Streams of events: what they have, how they resume, what they say about gaps, and how they end.

use crate::common::{Harness, Parts, text};
use crate::socket::{listener, read_until, request, rest};
use axum::body::Body;
use axum::http::{HeaderMap, Request};
use hyper::body::Body as _;
use redrive_server::Limits;
use redrive_store::Memory;
use serde_json::{Value, json};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tower::ServiceExt;

/// One event as it arrives.
#[derive(Debug)]
struct Arrived {
    id: String,
    name: String,
    data: Value,
}

/// An open stream, read block by block.
struct Reader {
    status: u16,
    headers: HeaderMap,
    body: Body,
    text: String,
}

impl Reader {
    async fn open(harness: &Harness, path: &str, last_event_id: Option<&str>) -> Self {
        let mut request = Request::get(format!("/ojs/v1{path}"));
        if let Some(id) = last_event_id {
            request = request.header("Last-Event-ID", id);
        }
        let response = harness.server.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        Self { status: parts.status.as_u16(), headers: parts.headers, body, text: String::new() }
    }

    /// The next block, up to an empty line; `None` where the stream has ended.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(block);
            }
            let frame = std::future::poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await?;
            let data = frame.unwrap().into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&data).unwrap());
        }
    }

    /// The next event; times to retry and heartbeats are passed over.
    async fn next(&mut self) -> Option<Arrived> {
        loop {
            let block = self.block().await?;
            let field = |key: &str| block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
            if let Some(data) = field("data") {
                let data = serde_json::from_str(data).unwrap();
                return Some(Arrived { id: field("id")?.to_owned(), name: field("event")?.to_owned(), data });
            }
        }
    }

    async fn expect(&mut self, names: &[&str]) -> Vec<Arrived> {
        let mut arrived = Vec::new();
        for name in names {
            let event = self.next().await.unwrap_or_else(|| panic!("the stream ended before {name}"));
            assert_eq!(event.name, *name, "{event:?}");
            arrived.push(event);
        }
        arrived
    }

    async fn ended(mut self) {
        let more = self.next().await;
        assert!(more.is_none(), "{more:?}");
    }
}

fn limited(limits: Limits) -> Harness {
    Harness::with(Parts { limits, ..Parts::default() })
}

async fn ack(harness: &Harness, id: &str) {
    harness.post("/workers/ack", json!({ "job_id": id })).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_everything_has_the_events_of_the_list() {
    let harness = Harness::new();
    harness.enqueue_with(json!({})).await;
    let mut stream = Reader::open(&harness, "/events/stream", None).await;
    assert_eq!(stream.status, 200);
    assert_eq!(stream.headers["content-type"], "text/event-stream");
    assert_eq!(stream.headers["cache-control"], "no-store");
    assert!(stream.block().await.is_some_and(|block| block.starts_with("retry: 3000\nid: evt-")));
    harness.fetch().await.unwrap();
    harness.enqueue_with(json!({ "queue": "mail" })).await;
    let arrived = stream.expect(&["job.started", "job.enqueued"]).await;
    let listed = harness.get("/events").await.expect(200)["events"].clone();
    assert_eq!(
        json!([arrived[0].data, arrived[1].data]),
        json!([listed[1], listed[2]]),
        "what came before is not sent"
    );
    assert_eq!(arrived[1].id, text(&listed[2]["id"]));
    let data = &arrived[0].data["data"];
    assert_eq!(
        (&data["worker_id"], &data["from"], &data["state"]),
        (&json!("w1"), &json!("available"), &json!("active"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_channel_and_types_narrow_a_stream() {
    let harness = Harness::new();
    let id = harness.enqueue_with(json!({ "queue": "mail" })).await;
    let mut of_queue = Reader::open(&harness, "/events/stream?channel=queue:mail", None).await;
    let mut of_types = Reader::open(&harness, "/events/stream?types=job.cancelled,job.available", None).await;
    let mut of_job = Reader::open(&harness, &format!("/events/stream?channel=job%3A{id}"), None).await;
    harness.enqueue_with(json!({})).await;
    harness.delete(&format!("/jobs/{id}")).await.expect(200);
    for stream in [&mut of_queue, &mut of_types, &mut of_job] {
        let arrived = stream.expect(&["job.cancelled"]).await;
        assert_eq!(arrived[0].data["subject"], json!(id));
    }
    of_job.ended().await;
    for wrong in [
        "channel=job:",
        "channel=everything",
        "channel=queue:Mail!",
        "types=job.canceled",
        "channel=queue:",
        "channel=all&channel=all",
    ] {
        let reply = harness.get(&format!("/events/stream?{wrong}")).await;
        assert!([400, 404].contains(&reply.status.as_u16()), "{wrong}: {}", reply.body);
    }
    let typo = harness.get("/events/stream?types=job.canceled").await.expect(400);
    assert!(text(&typo["error"]["message"]).contains("did you mean job.cancelled?"), "{typo}");
    harness.get(&format!("/jobs/{id}/events?types=job.failed&event_types=job.failed")).await.expect(400);
    assert_eq!(harness.server.open_streams(), 2, "what is refused takes no place");
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_a_job_ends_with_the_job() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({ "initial_interval": "PT1S", "jitter": false })).await;
    let mut stream = Reader::open(&harness, &format!("/jobs/{id}/events"), None).await;
    harness.fetch().await.unwrap();
    harness.fail(&id).await;
    harness.advance_ms(1_000.0).await;
    harness.fetch().await.unwrap();
    ack(&harness, &id).await;
    let arrived = stream.expect(&["job.state_changed"; 5]).await;
    let steps: Vec<Value> = arrived.iter().map(|event| json!([event.data["from"], event.data["to"]])).collect();
    let expected = [
        ["available", "active"],
        ["active", "retryable"],
        ["retryable", "available"],
        ["available", "active"],
        ["active", "completed"],
    ];
    assert_eq!(json!(steps), json!(expected));
    let last = &arrived[4];
    assert_eq!((&last.data["job_id"], &last.data["type"]), (&json!(id), &json!("test.run")));
    assert_eq!((&last.data["event"], &last.data["queue"]), (&json!("job.completed"), &json!("default")));
    stream.ended().await;
    let done = Reader::open(&harness, &format!("/jobs/{id}/events"), Some(&last.id)).await;
    assert_eq!(done.status, 204, "a client that has seen the end need not call again");
    let mut missed = Reader::open(&harness, &format!("/jobs/{id}/events"), Some(&arrived[2].id)).await;
    let rest = missed.expect(&["job.state_changed"; 2]).await;
    assert_eq!((&rest[1].id, &rest[1].data["to"]), (&last.id, &json!("completed")));
    missed.ended().await;
    harness.get("/jobs/019539a4-0000-7000-8000-ffffffffffff/events").await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_a_job_tells_its_progress() {
    let harness = Harness::new();
    let id = harness.enqueue_with(json!({})).await;
    let mut changes = Reader::open(&harness, &format!("/jobs/{id}/events"), None).await;
    let mut events = Reader::open(&harness, &format!("/events/stream?channel=job:{id}&types=job.progress"), None).await;
    let mut without = Reader::open(&harness, &format!("/jobs/{id}/events?types=job.completed"), None).await;
    harness.fetch().await.unwrap();
    changes.expect(&["job.state_changed"]).await;
    for (percentage, message) in [(25, "page 1"), (75, "page 3")] {
        let report = json!({ "job_id": id, "percentage": percentage, "message": message, "data": { "page": 3 } });
        harness.post("/workers/progress", report).await.expect(200);
        let change = changes.expect(&["job.progress"]).await.remove(0).data;
        let expected = json!({
            "job_id": id, "timestamp": "2026-02-13T10:00:00.000000Z", "progress": percentage, "message": message,
            "data": { "page": 3 },
        });
        assert_eq!(change, expected);
        let event = events.expect(&["job.progress"]).await.remove(0).data;
        assert_eq!((&event["subject"], &event["data"]["progress_percent"]), (&json!(id), &json!(percentage)));
    }
    ack(&harness, &id).await;
    changes.expect(&["job.state_changed"]).await;
    without.expect(&["job.state_changed"]).await;
    for stream in [changes, events, without] {
        stream.ended().await;
    }
    harness.get("/events/stream?types=job.progress").await.expect(400);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_has_ended_is_told_in_one_event() {
    let harness = Harness::new();
    let id = harness.enqueue_with(json!({})).await;
    harness.delete(&format!("/jobs/{id}")).await.expect(200);
    for last_event_id in [None, Some("evt-00000000-7")] {
        let mut stream = Reader::open(&harness, &format!("/jobs/{id}/events"), last_event_id).await;
        if last_event_id.is_some() {
            assert_eq!(stream.expect(&["gap"]).await[0].data["reason"], "other_process");
        }
        let arrived = stream.expect(&["job.state_changed"]).await;
        let data = &arrived[0].data;
        assert_eq!((&data["to"], &data["current"]), (&json!("cancelled"), &json!(true)), "{data}");
        stream.ended().await;
    }
    let mut envelope = Reader::open(&harness, &format!("/events/stream?channel=job:{id}"), None).await;
    envelope.expect(&["job.cancelled"]).await;
    envelope.ended().await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_job_on_another_node_is_seen_with_the_next_heartbeat() {
    let store = Arc::new(Memory::new());
    let node = || Harness::with(Parts { store: Arc::clone(&store) as _, ..Parts::default() });
    let (here, there) = (node(), node());
    let id = here.enqueue_with(json!({})).await;
    let mut stream = Reader::open(&here, &format!("/jobs/{id}/events"), None).await;
    there.fetch().await.unwrap();
    ack(&there, &id).await;
    let arrived = stream.expect(&["job.state_changed"]).await;
    assert_eq!((&arrived[0].data["to"], &arrived[0].data["current"]), (&json!("completed"), &json!(true)));
    stream.ended().await;
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_a_queue_has_its_jobs_alone() {
    let harness = Harness::new();
    harness.enqueue_with(json!({ "queue": "mail" })).await;
    let mut stream = Reader::open(&harness, "/queues/mail/events", None).await;
    harness.enqueue_with(json!({})).await;
    let id = harness.enqueue_with(json!({ "queue": "mail" })).await;
    let arrived = stream.expect(&["job.state_changed"]).await;
    let data = &arrived[0].data;
    assert_eq!((&data["job_id"], &data["to"], data.get("from")), (&json!(id), &json!("available"), None));
    let refused = harness.get("/queues/mails/events").await.expect(404);
    assert!(text(&refused["error"]["message"]).contains("did you mean \"mail\"?"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_resumes_after_the_last_event_seen() {
    let harness = Harness::new();
    for _ in 0..4 {
        harness.enqueue_with(json!({})).await;
    }
    let listed = harness.get("/events").await.expect(200)["events"].clone();
    let ids: Vec<String> = listed.as_array().unwrap().iter().map(|event| text(&event["id"])).collect();
    let by_query = format!("/events/stream?last_event_id={}", ids[0]);
    let mut stream = Reader::open(&harness, &by_query, None).await;
    let arrived = stream.expect(&["job.enqueued"; 3]).await;
    assert_eq!(arrived.iter().map(|event| &event.id).collect::<Vec<_>>(), [&ids[1], &ids[2], &ids[3]]);
    let mut stream = Reader::open(&harness, &by_query, Some(&ids[2])).await;
    assert_eq!(stream.expect(&["job.enqueued"]).await[0].id, ids[3], "the header is the newer one");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_cannot_resume_says_so_and_goes_on() {
    let harness = limited(Limits { stream_events: 2, ..Limits::default() });
    for _ in 0..5 {
        harness.enqueue_with(json!({})).await;
    }
    let first = text(&harness.get("/events?limit=1").await.expect(200)["events"][0]["id"]);
    let process = first.rsplit_once('-').unwrap().0.to_owned();
    for (id, reason) in [
        ("evt-00000000-3".to_owned(), "other_process"),
        (format!("{process}-6"), "unknown_id"),
        ("42".to_owned(), "unknown_id"),
    ] {
        let mut stream = Reader::open(&harness, "/events/stream", Some(&id)).await;
        let gap = stream.expect(&["gap"]).await.remove(0);
        assert_eq!((&gap.data["reason"], gap.data.get("missed_at_most")), (&json!(reason), None), "{id}");
        assert_eq!((&gap.id, &gap.data["goes_on_after"]), (&format!("{process}-5"), &json!(gap.id)));
    }
    let mut stream = Reader::open(&harness, "/events/stream", Some(&first)).await;
    let arrived = stream.expect(&["gap", "job.enqueued", "job.enqueued"]).await;
    assert_eq!((&arrived[0].data["reason"], &arrived[0].data["missed_at_most"]), (&json!("dropped"), &json!(2)));
    assert_eq!(arrived[1].id, format!("{process}-4"));
    let mut again = Reader::open(&harness, "/events/stream", Some(&arrived[0].id)).await;
    assert_eq!(again.expect(&["job.enqueued"]).await[0].id, arrived[1].id, "a gap is told once");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_too_slow_is_told_of_its_gap_and_goes_on() {
    let harness = limited(Limits { stream_events: 3, ..Limits::default() });
    let mut stream = Reader::open(&harness, "/events/stream", None).await;
    for _ in 0..10 {
        harness.enqueue_with(json!({})).await;
    }
    let arrived = stream.expect(&["gap", "job.enqueued", "job.enqueued", "job.enqueued"]).await;
    assert_eq!(arrived[0].data["missed_at_most"], 7);
    harness.fetch().await.unwrap();
    stream.expect(&["job.started"]).await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_stream_gets_heartbeats_and_ends_after_a_while() {
    let limits = Limits { stream_idle: Duration::from_secs(40), ..Limits::default() };
    let harness = limited(limits);
    let start = tokio::time::Instant::now();
    let mut stream = Reader::open(&harness, "/events/stream", None).await;
    assert!(stream.block().await.is_some_and(|block| block.starts_with("retry: 3000\nid: evt-")));
    for beat in 1..=3 {
        assert_eq!(stream.block().await.as_deref(), Some(":heartbeat"));
        assert_eq!(start.elapsed().as_secs(), 15 * beat);
    }
    assert_eq!(stream.block().await, None);
}

#[tokio::test(start_paused = true)]
async fn streams_are_limited_and_free_their_place() {
    let harness = limited(Limits { streams: 2, ..Limits::default() });
    let first = Reader::open(&harness, "/events/stream", None).await;
    let _second = Reader::open(&harness, "/events/stream", None).await;
    let refused = harness.get("/events/stream").await;
    assert_eq!(refused.header("retry-after"), "3");
    assert!(text(&refused.expect(429)["error"]["message"]).contains("(limits.streams)"));
    drop(first);
    assert_eq!(harness.server.open_streams(), 1);
    assert_eq!(Reader::open(&harness, "/events/stream", None).await.status, 200);
}

#[tokio::test]
async fn streams_end_when_the_server_stops_and_when_the_client_goes() {
    let harness = Harness::new();
    let (listener, address) = listener().await;
    let (stop, stopped) = oneshot::channel::<()>();
    let client = async {
        let mut gone = TcpStream::connect(address).await.unwrap();
        gone.write_all(request("GET", "/ojs/v1/events/stream", "").as_bytes()).await.unwrap();
        read_until(&mut gone, "retry: 3000\n").await;
        assert_eq!(harness.server.open_streams(), 1);
        drop(gone);
        while harness.server.open_streams() > 0 {
            tokio::task::yield_now().await;
        }
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request("GET", "/ojs/v1/events/stream", "").as_bytes()).await.unwrap();
        let head = read_until(&mut stream, "retry: 3000\n").await.to_lowercase();
        assert!(head.contains("content-type: text/event-stream") && head.contains("ojs-version: 1.0"), "{head}");
        harness.enqueue_with(json!({})).await;
        read_until(&mut stream, "}}\n\n").await;
        stop.send(()).unwrap();
        let end = rest(&mut stream).await;
        assert!(end.contains("event: server.shutdown"), "{end}");
    };
    tokio::join!(harness.server.serve(listener, async { drop(stopped.await) }), client);
}
