//! Workflows of which steps are redriven.

use crate::common::{Harness, text};
use crate::workflows::{claimable, complete, create, failing, job, state};
use serde_json::{Value, json};

#[tokio::test]
async fn a_graph_of_which_one_of_two_failed_steps_is_redriven_goes_on_after_it_and_ends() {
    let harness = Harness::new();
    let step = |id: &str, after: Value, job: Value| {
        let mut step = job;
        (step["id"], step["depends_on"]) = (id.into(), after);
        step
    };
    let steps_of_graph = [
        step("a", json!([]), failing("a.one")),
        step("b", json!([]), failing("a.two")),
        step("c", json!(["a"]), job("a.three")),
        step("d", json!(["b"]), job("a.four")),
        step("e", json!(["c", "d"]), job("a.five")),
    ];
    let id = create(&harness, json!({ "steps": steps_of_graph })).await;
    let first = claimable(&harness).await;
    for (_, job) in &first {
        harness.fail(&text(&job["id"])).await;
    }
    assert_eq!(state(&harness, &id).await, "failed");
    harness.post(&format!("/dead-letter/{}/retry", text(&first[0].1["id"])), json!({})).await.expect(200);
    assert_eq!(state(&harness, &id).await, "running");
    complete(&harness, "a.one", json!(1)).await;
    complete(&harness, "a.three", json!(2)).await;
    assert_eq!(state(&harness, &id).await, "failed", "nothing waits for the other one");
    harness.post(&format!("/dead-letter/{}/retry", text(&first[1].1["id"])), json!({})).await.expect(200);
    for kind in ["a.two", "a.four", "a.five"] {
        complete(&harness, kind, json!(3)).await;
    }
    assert_eq!(state(&harness, &id).await, "completed");
}
