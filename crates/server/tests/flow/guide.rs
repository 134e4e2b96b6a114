//! The example of the guide, as it says.

use crate::common::{Harness, text};
use crate::world::{put, run, start};
use serde_json::{Value, json};

const GUIDE: &str = include_str!("../../../../docs/guides/flows.md");

fn block(language: &str) -> Value {
    let (_, rest) = GUIDE.split_once(&format!("```{language}\n")).expect("a block");
    let (block, _) = rest.split_once("```").expect("its end");
    serde_json::from_str(block).expect("JSON")
}

#[tokio::test]
async fn the_example_ends_as_the_guide_says() {
    let harness = Harness::new();
    put(&harness, "ship", &block("mwl")).await.expect(201);
    let started = start(&harness, &json!({ "definition": "ship", "input": { "order": 17 } })).await.expect(201);
    let first = harness.fetch().await.expect("a job");
    assert_eq!((&first["type"], &first["args"]), (&json!("order.ship"), &json!([17])));
    harness.fail_with(&text(&first["id"]), json!({ "code": "Carrier.Busy", "message": "busy" })).await;
    harness.advance_ms(10_000.0).await;
    let second = harness.fetch().await.expect("another job");
    assert_ne!(second["id"], first["id"], "each attempt is another job");
    harness.post("/workers/ack", json!({ "job_id": second["id"], "result": { "number": 4 } })).await.expect(200);
    let ended = run(&harness, &text(&started["id"])).await;
    assert_eq!(ended["result"], block("result"));
    let attempts = ended["retries"][0]["attempts"].as_array().expect("attempts");
    assert_eq!((attempts.len(), &attempts[0]["delay_ms"]), (2, &json!(10_000.0)));
}
