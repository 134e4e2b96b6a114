//! Discarded jobs are counted by type, queue and reason.

use super::harness::{Harness, START, failure, job, secs, with_ojs};
use redrive_engine::Submission;
use serde_json::json;

#[tokio::test]
async fn a_discarded_job_that_is_not_a_dead_letter_is_counted_once() {
    let harness = Harness::new();
    for on_exhaustion in ["discard", "discard", "dead_letter"] {
        harness.submit(with_ojs(json!({ "max_attempts": 1, "on_exhaustion": on_exhaustion }))).await;
        let claimed = harness.claim().await;
        harness.fail(&claimed, failure()).await;
    }
    // One expires before its first run, one sends no heartbeats.
    harness.submit(Submission { expires: Some(START.after(secs(5))), ..job() }).await;
    harness.at(START.after(secs(5))).await;
    harness.submit(Submission { lease: Some(secs(5)), ..with_ojs(json!({ "max_attempts": 1 })) }).await;
    harness.claim().await;
    harness.at(START.after(secs(10))).await;
    let counted: Vec<_> =
        harness.engine.take_discarded().into_iter().map(|(group, count)| (group.why, count)).collect();
    assert_eq!(counted, [("it expired before a run of it failed", 1), ("on_exhaustion is discard", 3)]);
    assert_eq!(harness.engine.take_discarded(), [], "what was returned is not returned again");
}
