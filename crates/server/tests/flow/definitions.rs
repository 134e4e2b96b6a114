//! Definitions: versions, lists, removal.

use crate::common::Harness;
use crate::world::{delete, get, put, returning, run, start};
use serde_json::{Value, json};

#[tokio::test]
async fn a_definition_comes_back_byte_for_byte_with_its_version() {
    let harness = Harness::new();
    let text = "{ \"$schema\": \"https://mwl.dev/v0.1/flow/schema.json\",\n  \"comment\": \"ä\", \"entrypoint\": \"a\",
        \"steps\": { \"a\": { \"action\": \"Return\", \"value\": 1.50 } } }";
    let reply = harness.call_text("PUT", "/flows/v1/definitions/order", text).await;
    assert_eq!(reply.header("content-type"), "application/json");
    let first = reply.expect(201);
    assert_eq!((&first["name"], &first["version"]), (&json!("order"), &json!(1)));
    assert_eq!(first["counts"], json!({ "flows": 1, "steps": 1, "calls": 0, "middleware": 0 }));
    assert_eq!(first["definition"], serde_json::from_str::<Value>(text).expect("JSON"));
    let again = harness.call_text("PUT", "/flows/v1/definitions/order", text).await.expect(200);
    assert_eq!(again["version"], 1, "the same text is no new version");
    harness.advance_ms(1_000.0).await;
    let second = put(&harness, "order", &returning(&json!(2))).await.expect(200);
    assert_eq!((&second["version"], &second["created_at"]), (&json!(2), &first["created_at"]));
    assert_ne!(second["updated_at"], first["updated_at"]);
    assert_eq!(get(&harness, "definitions/order").await.expect(200), second);
    let old = get(&harness, "definitions/order?version=1").await.expect(200);
    assert_eq!(old["definition"], first["definition"]);
    let missing = get(&harness, "definitions/order?version=3").await.expect(404);
    assert!(missing["error"]["message"].as_str().expect("a text").contains("kept are 1, 2"), "{missing}");
}

#[tokio::test]
async fn a_run_keeps_the_definition_that_it_started_with() {
    let harness = Harness::new();
    put(&harness, "order", &returning(&json!("old"))).await.expect(201);
    put(&harness, "order", &returning(&json!("new"))).await.expect(200);
    for (version, value) in [(json!(1), "old"), (json!(2), "new"), (Value::Null, "new")] {
        let mut body = json!({ "definition": "order" });
        if !version.is_null() {
            body["version"] = version.clone();
        }
        let run = start(&harness, &body).await.expect(201);
        assert_eq!(run["result"]["value"], value, "{version}");
    }
    let waits = crate::world::sleeping("PT10S");
    put(&harness, "wait", &waits).await.expect(201);
    let waiting = start(&harness, &json!({ "definition": "wait", "input": 7 })).await.expect(201);
    delete(&harness, "definitions/wait").await.expect(200);
    get(&harness, "definitions/wait").await.expect(404);
    harness.advance_ms(10_000.0).await;
    let ended = run(&harness, waiting["id"].as_str().expect("an id")).await;
    assert_eq!((&ended["state"], &ended["result"]["value"]), (&json!("completed"), &json!(7)));
    start(&harness, &json!({ "definition": "wait" })).await.expect(404);
    assert_eq!(put(&harness, "wait", &waits).await.expect(201)["version"], 1);
}

#[tokio::test]
async fn definitions_are_listed_by_name_page_by_page() {
    let harness = Harness::new();
    for name in ["c", "a", "b"] {
        put(&harness, name, &returning(&json!(name))).await.expect(201);
    }
    let page = get(&harness, "definitions?limit=2").await.expect(200);
    let names = |page: &Value| {
        let listed = page["definitions"].as_array().expect("a list").clone();
        listed.iter().map(|one| one["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((names(&page), &page["next_after"]), (vec!["a".to_owned(), "b".to_owned()], &json!("b")));
    let rest = get(&harness, "definitions?limit=2&after=b").await.expect(200);
    assert_eq!((names(&rest), rest.get("next_after")), (vec!["c".to_owned()], None));
}
