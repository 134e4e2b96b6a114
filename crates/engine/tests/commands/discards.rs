//! Jobs that are thrown away are counted, by type, queue and reason.

use super::rig::{Rig, START, failure, job, secs, with_ojs};
use redrive_engine::Submission;
use serde_json::json;

#[tokio::test]
async fn what_is_discarded_and_no_dead_letter_is_counted_once() {
    let rig = Rig::new();
    for on_exhaustion in ["discard", "discard", "dead_letter"] {
        rig.submit(with_ojs(json!({ "max_attempts": 1, "on_exhaustion": on_exhaustion }))).await;
        let claimed = rig.claim().await;
        rig.fail(&claimed, failure()).await;
    }
    // One runs out of time before its first run, one goes silent.
    rig.submit(Submission { expires: Some(START.after(secs(5))), ..job() }).await;
    rig.at(START.after(secs(5))).await;
    rig.submit(Submission { lease: Some(secs(5)), ..with_ojs(json!({ "max_attempts": 1 })) }).await;
    rig.claim().await;
    rig.at(START.after(secs(10))).await;
    let counted: Vec<_> = rig.engine.take_discarded().into_iter().map(|(group, count)| (group.why, count)).collect();
    assert_eq!(counted, [("it expired before a run of it failed", 1), ("on_exhaustion is discard", 3)]);
    assert_eq!(rig.engine.take_discarded(), [], "what was told is not told again");
}
