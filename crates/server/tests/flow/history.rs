//! The history of a run, as pages and as a stream.

use crate::common::Harness;
use crate::world::{JOB, MOCK, around, delete, get, put, retrying, start, started, with};
use axum::body::Body;
use axum::http::Request;
use hyper::body::Body as _;
use serde_json::{Value, json};
use std::pin::Pin;
use tower::ServiceExt;

fn names(events: &Value) -> Vec<String> {
    let events = events.as_array().expect("a list");
    events.iter().map(|event| event["event"].as_str().expect("a name").to_owned()).collect()
}

async fn failing_twice() -> (Harness, String) {
    let call = json!({ "provider": MOCK, "with": { "failure": { "code": "A.B" } } });
    let harness = with(&around(&json!([retrying(2)]), &call)).await;
    let id = started(&harness).await;
    (harness, id)
}

const ALL: [&str; 7] =
    ["run.started", "step.started", "retry.entered", "retry.waiting", "retry.ended", "step.ended", "run.ended"];

#[tokio::test]
async fn a_history_has_every_step_once_and_pages() {
    let (harness, id) = failing_twice().await;
    harness.advance_ms(2_000.0).await;
    let history = get(&harness, &format!("runs/{id}/history")).await.expect(200);
    assert_eq!(names(&history["events"]), ALL);
    assert_eq!((&history["omitted"], history.get("next_after")), (&json!(0), None));
    let waiting = &history["events"][3];
    assert_eq!(
        (&waiting["delay_ms"], &waiting["code"], &waiting["step"]),
        (&json!(2000.0), &json!("A.B"), &json!("charge"))
    );
    let page = get(&harness, &format!("runs/{id}/history?limit=3")).await.expect(200);
    assert_eq!(
        (names(&page["events"]), &page["next_after"]),
        (ALL[..3].iter().map(ToString::to_string).collect(), &json!(3))
    );
    let rest = get(&harness, &format!("runs/{id}/history?limit=9&after=3")).await.expect(200);
    assert_eq!(names(&rest["events"]), ALL[3..]);
}

#[tokio::test]
async fn a_long_history_keeps_its_newest_events_and_says_what_is_missing() {
    let entry = json!({
        "provider": "mwl:provider.middleware/mwl/loop/v1",
        "onSuccess": { "when": "{{ middleware.metadata.iteration < 500 }}" },
    });
    let harness = with(&around(&json!([entry]), &json!({ "provider": MOCK }))).await;
    let id = started(&harness).await;
    let history = get(&harness, &format!("runs/{id}/history?limit=1000")).await.expect(200);
    let (events, omitted) = (names(&history["events"]), history["omitted"].as_u64().expect("a number"));
    assert_eq!((events.len(), events.last().map(String::as_str)), (200, Some("run.ended")));
    assert_eq!(history["events"][0]["seq"], omitted + 1);
    assert!(omitted > 300, "{omitted}");
}

/// The events of a stream, until it ends or has so many.
async fn stream(harness: &Harness, id: &str, after: Option<u64>, most: usize) -> (u16, Vec<(String, String)>) {
    let mut request = Request::get(format!("/flows/v1/runs/{id}/events"));
    if let Some(after) = after {
        request = request.header("Last-Event-ID", after.to_string());
    }
    let request = request.body(Body::empty()).expect("a valid request");
    let response = harness.server.router().oneshot(request).await.expect("an answer");
    let (status, mut body) = (response.status().as_u16(), response.into_body());
    let mut text = String::new();
    let arrived = |text: &str| {
        let blocks = text.split("\n\n").filter(|block| block.contains("data: "));
        let field = |block: &str, key: &str| {
            block.lines().find_map(|line| line.strip_prefix(key)).map(str::to_owned).unwrap_or_default()
        };
        blocks.map(|block| (field(block, "id: "), field(block, "event: "))).collect::<Vec<_>>()
    };
    while arrived(&text).len() < most {
        let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await else { break };
        let data = frame.expect("a frame").into_data().expect("data");
        text.push_str(std::str::from_utf8(&data).expect("a text"));
    }
    (status, arrived(&text))
}

#[tokio::test]
async fn a_stream_follows_a_run_resumes_behind_an_event_and_ends_with_it() {
    let (harness, id) = failing_twice().await;
    let (status, first) = stream(&harness, &id, None, 4).await;
    assert_eq!((status, first.len(), first[3].1.as_str()), (200, 4, "retry.waiting"));
    let following = stream(&harness, &id, Some(4), usize::MAX);
    let moving = async {
        tokio::task::yield_now().await;
        harness.advance_ms(2_000.0).await;
    };
    let ((_, rest), ()) = tokio::join!(following, moving);
    assert_eq!(rest.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ALL[4..]);
    assert_eq!(rest[0].0, "5");
    assert_eq!(stream(&harness, &id, Some(7), 1).await, (204, Vec::new()), "the client has everything");
    let (_, again) = stream(&harness, &id, None, usize::MAX).await;
    assert_eq!(again.len(), ALL.len(), "from the beginning, after the end");
    let reply = get(&harness, &format!("runs/{id}/events?last_event_id=x")).await;
    assert_eq!(reply.status.as_u16(), 400);
}

#[tokio::test]
async fn calls_are_in_the_history_with_their_jobs_and_nothing_of_their_contents() {
    let call = json!({ "provider": JOB, "with": { "type": "charge", "args": ["hunter2"] } });
    let harness = Harness::new();
    put(&harness, "order", &around(&json!([]), &call)).await.expect(201);
    let run = start(&harness, &json!({ "definition": "order" })).await.expect(201);
    let id = run["id"].as_str().expect("an id");
    delete(&harness, &format!("runs/{id}")).await.expect(202);
    let history = get(&harness, &format!("runs/{id}/history")).await.expect(200);
    let expected = [
        "run.started",
        "step.started",
        "call.dispatched",
        "run.cancelling",
        "call.withdrawn",
        "step.ended",
        "run.ended",
    ];
    assert_eq!(names(&history["events"]), expected);
    let job = history["events"][2]["job_id"].as_str().expect("an id");
    assert_eq!(harness.job(job).await["state"], "cancelled");
    assert!(!history.to_string().contains("hunter2"));
}
