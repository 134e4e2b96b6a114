//! What is refused, and with which words.

use crate::common::Harness;
use crate::world::{JOB, around, delete, get, put, returning, start};
use serde_json::json;

#[tokio::test]
async fn every_problem_of_a_definition_is_listed_with_its_line_and_column() {
    let harness = Harness::new();
    let text = "{\n  \"$schema\": \"https://mwl.dev/v0.1/flow/schema.json\",\n  \"entrypoint\": \"b\",\n  \"steps\": {\n    \
                \"a\": { \"action\": \"Jump\" }\n  }\n}";
    let refused = harness.call_text("PUT", "/flows/v1/definitions/order", text).await.expect(422);
    let details = &refused["error"]["details"];
    assert_eq!(details["error_type"], "validation.flow_definition_invalid");
    let problems = details["problems"].as_array().expect("a list");
    let at: Vec<(&str, u64, u64)> = problems
        .iter()
        .map(|problem| {
            let number = |key: &str| problem[key].as_u64().expect("a number");
            (problem["path"].as_str().expect("a path"), number("line"), number("column"))
        })
        .collect();
    assert_eq!(at, [("/entrypoint", 3, 17), ("/steps/a/action", 5, 22)]);
    get(&harness, "definitions/order").await.expect(404);
}

#[tokio::test]
async fn what_a_provider_does_not_take_is_refused_when_the_definition_is_put() {
    let harness = Harness::new();
    let http = "mwl:provider.call/redrive/http/v1";
    for (provider, with, path) in [
        (JOB, json!({}), "/steps/charge/call/with"),
        (JOB, json!({ "type": "a", "que": "b" }), "/steps/charge/call/with/que"),
        (JOB, json!({ "type": 5 }), "/steps/charge/call/with/type"),
        (JOB, json!({ "type": "a", "args": {} }), "/steps/charge/call/with/args"),
        (JOB, json!({ "type": "a", "priority": 101 }), "/steps/charge/call/with/priority"),
        (JOB, json!({ "type": "a", "timeout": "-PT1S" }), "/steps/charge/call/with/timeout"),
        (JOB, json!({ "type": "a", "retry": { "max_attempts": -1 } }), "/steps/charge/call/with/retry/max_attempts"),
        (http, json!({ "url": "ftp://example.org" }), "/steps/charge/call/with/url"),
        (http, json!({ "url": "https://a", "method": "post" }), "/steps/charge/call/with/method"),
        (http, json!({ "url": "https://a", "headers": { "Host": "b" } }), "/steps/charge/call/with/headers"),
        (http, json!({ "url": "https://a", "headers": { "X": "a\r\nb" } }), "/steps/charge/call/with/headers"),
        (http, json!({ "url": "https://a", "timeout": "PT6M" }), "/steps/charge/call/with/timeout"),
        ("mwl:provider.call/redrive/other/v1", json!({}), "/steps/charge/call/provider"),
    ] {
        let definition = around(&json!([]), &json!({ "provider": provider, "with": with }));
        let refused = put(&harness, "order", &definition).await.expect(422);
        let problems = &refused["error"]["details"]["problems"];
        assert_eq!(problems[0]["path"], path, "{with}: {problems}");
    }
    let fits = json!({ "type": "{{ 'a' }}", "args": ["{{ call.input }}"], "retry": { "max_attempts": "{{ 2 }}" } });
    put(&harness, "order", &around(&json!([]), &json!({ "provider": JOB, "with": fits }))).await.expect(201);
}

#[tokio::test]
async fn requests_are_refused_whole() {
    let harness = Harness::new();
    put(&harness, "order", &returning(&json!(1))).await.expect(201);
    for (body, status) in [
        (json!({}), 400),
        (json!({ "definition": "order", "inptu": 1 }), 400),
        (json!({ "definition": "a/b" }), 400),
        (json!({ "definition": "order", "version": 0 }), 400),
        (json!({ "definition": "order", "version": "1" }), 400),
        (json!({ "definition": "order", "arguments": [] }), 400),
        (json!({ "definition": "order", "id": "x" }), 400),
        (json!({ "definition": "other" }), 404),
        (json!({ "definition": "order", "version": 2 }), 404),
    ] {
        start(&harness, &body).await.expect(status);
    }
    let listed = get(&harness, "runs").await.expect(200);
    assert_eq!(listed["runs"], json!([]), "nothing was started");
    let all = start(&harness, &json!({ "version": 0, "id": 1, "x": 1 })).await.expect(400);
    assert_eq!(all["error"]["details"]["problems"].as_array().map(Vec::len), Some(4), "{all}");
    let id = "01933fd0-0000-7000-8000-000000000000";
    for (method, path, status) in [
        ("GET", format!("runs/{id}"), 404),
        ("GET", "runs/nonsense".to_owned(), 404),
        ("DELETE", format!("runs/{id}"), 404),
        ("GET", format!("runs/{id}/history"), 404),
        ("GET", format!("runs/{id}/events"), 404),
        ("GET", "runs?state=done".to_owned(), 400),
        ("GET", "runs?after=x".to_owned(), 400),
        ("GET", "runs?limit=x".to_owned(), 400),
        ("GET", "runs?colour=red".to_owned(), 400),
        ("GET", "definitions?after=a%2Fb".to_owned(), 400),
        ("GET", "definitions/order?version=x".to_owned(), 400),
        ("GET", "definitions/other".to_owned(), 404),
        ("DELETE", "definitions/other".to_owned(), 404),
        ("GET", "definitions/a%20b".to_owned(), 400),
        ("PATCH", "definitions/order".to_owned(), 405),
    ] {
        let reply = harness.call_text(method, &format!("/flows/v1/{path}"), "").await;
        assert_eq!(reply.status.as_u16(), status, "{method} {path}: {}", reply.body);
    }
    let large = returning(&json!("x".repeat(300_000)));
    put(&harness, "order", &large).await.expect(413);
    harness.call_text("PUT", "/flows/v1/definitions/order", "{").await.expect(422);
    let deep = (0..70).fold(json!(1), |inner, _| json!([inner]));
    start(&harness, &json!({ "definition": "order", "input": deep })).await.expect(400);
    delete(&harness, "definitions/order").await.expect(200);
}
