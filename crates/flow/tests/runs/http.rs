//! Calls over HTTP, as jobs that the server has.

use crate::harness::done;
use crate::world::{HTTP, Tried};
use redrive_engine::testing::Report;
use redrive_flow::runs::{HTTP_QUEUE, http_answer, http_call};
use redrive_flow::{Failure, Outcome};
use redrive_store::Job;
use serde_json::{Value, json};

fn definition(with: Value) -> Value {
    json!({
        "$schema": "https://mwl.dev/v0.1/flow/schema.json", "entrypoint": "first",
        "steps": {
            "first": { "action": "Call", "call": { "provider": HTTP, "with": with, "onSuccess": {
                "assign": { "metadata": "{{ provider.metadata }}" } } }, "next": "done" },
            "done": done(),
        },
    })
}

/// Answers as a server does that has made the request.
fn server(job: &Job) -> Report {
    assert_eq!(&*job.spec.queue, HTTP_QUEUE);
    let call = http_call(job).expect("a call");
    let outcome = match call.request.url.rsplit('/').next() {
        Some("down") => Outcome::Failure(Failure::error("Redrive.Http.Server.503", "it is down")),
        Some("crash") => return Report::Fails("the server is gone".to_owned()),
        _ => {
            let body: Value =
                call.request.body.map_or(Value::Null, |body| serde_json::from_str(body.get()).expect("JSON"));
            Outcome::Success(json!({ "key": call.key, "method": call.request.method, "body": body }))
        }
    };
    let answer = http_answer(&outcome, &json!({ "status": 200 }));
    Report::Done(String::from_utf8(answer.to_vec()).expect("a text"))
}

#[tokio::test]
async fn a_request_has_a_key_and_its_answer_is_the_result() {
    let mut tried = Tried::new(definition(json!({ "url": "https://example.org/charge" }))).worker(server);
    tried.input = json!({ "amount": 5 });
    let ended = tried.check().await;
    let value = ended.value();
    assert_eq!((&value["method"], &value["body"]), (&json!("POST"), &json!({ "amount": 5 })));
    assert!(value["key"].as_str().is_some_and(|key| key.ends_with(".0")), "{value}");
    assert_eq!(ended.jobs.len(), 1);
}

#[tokio::test]
async fn a_failure_of_the_service_is_the_result_and_a_call_that_is_lost_is_made_again() {
    let ended = Tried::new(definition(json!({ "url": "https://example.org/down" }))).worker(server).check().await;
    assert_eq!((ended.code(), ended.jobs.len()), ("Redrive.Http.Server.503", 1));
    let ended = Tried::new(definition(json!({ "url": "https://example.org/crash" }))).worker(server).check().await;
    assert_eq!((ended.code(), &ended.result["details"]["attempts"]), ("Redrive.Http.Lost", &json!(10)));
}
