//! Cron triggers (exosphere §12). Every clock starts on Friday 2026-02-13 at 10:00 UTC.

use crate::common::{Harness, Parts, START};
use crate::world::{World, node};
use redrive_store::Memory;
use serde_json::{Value, json};
use std::sync::Arc;

const MINUTE: f64 = 60_000.0;

fn body(expressions: &[&str]) -> Value {
    let triggers = expressions.iter().map(|own| json!({ "type": "CRON", "value": { "expression": own } }));
    json!({ "secrets": {}, "nodes": [node("a", "x", &[])], "triggers": triggers.collect::<Vec<_>>() })
}

async fn put(world: &World, expressions: &[&str]) -> Value {
    let graph = world.put("graph/g", body(expressions)).await.expect(201);
    assert_eq!(graph["validation_status"], "VALID", "{graph}");
    graph
}

async fn runs(world: &World) -> u64 {
    world.get("runs/1/1").await.expect(200)["total"].as_u64().expect("a number")
}

#[tokio::test]
async fn a_graph_is_triggered_at_each_slot_once() {
    let world = World::with(&["Node"]).await;
    let graph = put(&world, &["*/5 * * * *", "*/5 * * * *", "0 11 * * *"]).await;
    assert_eq!(graph["triggers"][0], json!({ "type": "CRON", "value": { "expression": "*/5 * * * *" } }));
    assert_eq!(world.get("graph/g").await.expect(200), graph, "the answer of GET has them too");
    assert_eq!(runs(&world).await, 0);
    for minute in 1..=20 {
        world.harness.advance_ms(MINUTE).await;
        assert_eq!(runs(&world).await, minute / 5, "minute {minute}");
    }
    world.harness.advance_ms(39.0 * MINUTE).await;
    assert_eq!(runs(&world).await, 5, "of several slots that were missed, the last counts");
    world.harness.advance_ms(MINUTE).await;
    assert_eq!(runs(&world).await, 7, "two triggers are due at 11:00");
    assert_eq!(world.enqueue(&["Node"]).await.len(), 7);
    let shown = world.get("graph/g").await.expect(200);
    assert_eq!(shown["updated_at"], graph["updated_at"], "being triggered changes nothing");
}

#[tokio::test]
async fn a_removed_trigger_fires_no_more_and_others_stay_as_they_were() {
    let world = World::with(&["Node"]).await;
    put(&world, &["*/5 * * * *", "*/7 * * * *"]).await;
    world.harness.advance_ms(5.0 * MINUTE).await;
    assert_eq!(runs(&world).await, 1);
    put(&world, &["*/7 * * * *"]).await;
    put(&world, &["*/7 * * * *"]).await;
    for _ in 0..6 {
        world.harness.advance_ms(MINUTE).await;
    }
    assert_eq!(runs(&world).await, 2, "at 10:07; not at 10:10");
    put(&world, &[]).await;
    world.harness.advance_ms(600.0 * MINUTE).await;
    assert_eq!(runs(&world).await, 2);
}

/// The slot is due, and the graph is put again before it was triggered: Exosphere's server loses it, or fires twice.
#[tokio::test]
async fn a_graph_that_is_put_at_a_slot_is_triggered_once() {
    let world = World::with(&["Node"]).await;
    put(&world, &["*/5 * * * *"]).await;
    world.harness.advance_clock_ms(5.0 * MINUTE);
    put(&world, &["*/5 * * * *"]).await;
    put(&world, &["*/5 * * * *"]).await;
    world.harness.advance_ms(0.0).await;
    assert_eq!(runs(&world).await, 1);
    world.harness.advance_clock_ms(5.0 * MINUTE);
    put(&world, &["0 0 * * *"]).await;
    world.harness.advance_ms(MINUTE).await;
    assert_eq!(runs(&world).await, 1, "a trigger that was removed when it was due does not fire");
}

#[tokio::test]
async fn a_graph_that_is_not_valid_is_not_triggered() {
    let world = World::with(&[]).await;
    let graph = world.put("graph/g", body(&["* * * * *"])).await.expect(201);
    assert_eq!(graph["validation_status"], "INVALID");
    world.harness.advance_ms(3.0 * MINUTE).await;
    assert_eq!(runs(&world).await, 0);
    world.register(&["Node"]).await;
    put(&world, &["* * * * *"]).await;
    world.harness.advance_ms(MINUTE).await;
    assert_eq!(runs(&world).await, 1);
}

#[tokio::test]
async fn a_server_that_stood_still_triggers_once_and_goes_on() {
    let store = Arc::new(Memory::new());
    let parts = || Parts { store: Arc::clone(&store) as _, ..Parts::default() };
    let world = World { harness: Harness::with(parts()) };
    world.register(&["Node"]).await;
    put(&world, &["0 * * * *"]).await;
    let later = START + 5 * 3_600_000_000;
    let world = World { harness: Harness::at(parts(), later) };
    world.harness.advance_ms(0.0).await;
    assert_eq!(runs(&world).await, 1);
    world.harness.advance_ms(60.0 * MINUTE).await;
    assert_eq!(runs(&world).await, 2);
}

#[tokio::test]
async fn triggers_that_cannot_be_are_refused_with_every_reason() {
    let world = World::with(&["Node"]).await;
    put(&world, &["0 0 * * *"]).await;
    let mut wrong = body(&["* * * *", "0 0 * * *", "61 25 * * *"]);
    wrong["triggers"][1]["type"] = json!("EVENT");
    let refused = world.put("graph/g", wrong).await.expect(422);
    let places: Vec<&Value> = refused["detail"].as_array().expect("a list").iter().map(|one| &one["loc"]).collect();
    let at = |index: u32, field: &str| json!(["body", "triggers", index, "value", field]);
    assert_eq!(
        places,
        [&at(0, "expression"), &json!(["body", "triggers", 1, "type"]), &at(2, "expression"), &at(2, "expression")],
        "{refused}"
    );
    for triggers in [json!({}), json!([1]), json!([{ "type": "CRON" }]), json!([{ "type": "CRON", "value": "x" }])] {
        let mut wrong = body(&[]);
        wrong["triggers"] = triggers;
        world.put("graph/g", wrong).await.expect(422);
    }
    let many = vec!["* * * * *"; 101];
    world.put("graph/g", body(&many)).await.expect(422);
    let mut wrong = body(&["* * * * *"]);
    wrong["store_config"] = json!({ "required_keys": ["who"], "default_values": {} });
    let refused = world.put("graph/g", wrong).await.expect(400);
    assert!(refused["detail"].as_str().is_some_and(|why| why.contains("requires who")), "{refused}");
    assert_eq!(world.get("graph/g").await.expect(200)["triggers"][0]["value"]["expression"], "0 0 * * *");
}
