//! Schedules and workflows as operators list them.

use crate::common::{Harness, text};
use serde_json::json;

#[tokio::test]
async fn schedules_are_listed_by_numbered_pages() {
    let harness = Harness::new();
    for number in 0..250 {
        let body = json!({ "name": format!("s{number:03}"), "cron": "@daily", "type": "report.make" });
        harness.post("/cron", body).await.expect(201);
    }
    let page = harness.get("/admin/crons?page=2&per_page=100").await.expect(200);
    let items = page["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["name"], &items[99]["name"]), (100, &json!("s100"), &json!("s199")));
    assert_eq!((&page["pagination"]["page"], &page["pagination"]["has_more"]), (&json!(2), &json!(true)));
    let last = harness.get("/admin/crons?page=3&per_page=100").await.expect(200);
    assert_eq!((&last["items"][49]["name"], &last["pagination"]["total"]), (&json!("s249"), &json!(250)));
    harness.get("/admin/crons?limit=3").await.expect(400);
    let near = harness.get("/cron/s20").await.expect(404);
    assert!(text(&near["error"]["message"]).contains("did you mean"), "{near}");
}

#[tokio::test]
async fn workflows_are_listed_by_numbered_pages() {
    let harness = Harness::new();
    let mut ids = Vec::new();
    for _ in 0..5 {
        let body = json!({ "type": "chain", "steps": [{ "type": "a", "args": [] }] });
        ids.insert(0, text(&harness.post("/workflows", body).await.expect(201)["id"]));
        harness.advance_ms(2.0).await;
    }
    harness.delete(&format!("/workflows/{}", ids[4])).await.expect(200);
    let page = harness.get("/admin/workflows?page=2&per_page=2").await.expect(200);
    assert_eq!((&page["items"][0]["id"], &page["items"][1]["id"]), (&json!(ids[2]), &json!(ids[3])));
    assert_eq!((&page["pagination"]["page"], &page["pagination"]["has_more"]), (&json!(2), &json!(true)));
    let cursor = text(&page["pagination"]["next_cursor"]);
    let last = harness.get(&format!("/admin/workflows?per_page=2&cursor={cursor}")).await.expect(200);
    assert_eq!((&last["items"][0]["id"], last["items"].as_array().unwrap().len()), (&json!(ids[4]), 1));
    let running = harness.get("/admin/workflows?state=running").await.expect(200);
    assert_eq!(running["pagination"]["total"], 4);
    harness.get("/admin/workflows?state=dead").await.expect(400);
    harness.get("/admin/workflows?cursor=x").await.expect(400);
}
