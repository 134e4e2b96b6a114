//! How much jobs of a workflow are given of the results before them.

use crate::common::Harness;
use crate::workflows::{claimable, complete, create, job, state};
use serde_json::{Value, json};

const KIB: usize = 1 << 10;

fn large(number: usize, kib: usize) -> Value {
    json!(format!("{number}{}", "x".repeat(kib * KIB)))
}

#[tokio::test]
async fn a_step_of_a_chain_is_given_the_latest_results_that_fit_and_is_told_how_many_are_left_out() {
    let harness = Harness::new();
    let steps: Vec<Value> = (0..8).map(|number| job(&format!("step.n{number}"))).collect();
    let id = create(&harness, json!({ "type": "chain", "steps": steps })).await;
    for number in 0..8 {
        let job = complete(&harness, &format!("step.n{number}"), large(number, 100)).await;
        // The one right before, and 256 KiB of those before it.
        let omitted = usize::saturating_sub(number, 3);
        let given: Vec<Value> =
            (0..number).map(|before| if before < omitted { Value::Null } else { large(before, 100) }).collect();
        assert_eq!(job["parent_results"].as_array().cloned().unwrap_or_default(), given, "step {number}");
        assert_eq!(job["parent_results_omitted"].as_u64(), Some(omitted as u64).filter(|count| *count > 0));
    }
    assert_eq!(state(&harness, &id).await, "completed");
    let shown = harness.get(&format!("/workflows/{id}")).await.expect(200);
    assert_eq!(shown["workflow"]["steps"][0]["result"], large(0, 100), "the job has it");
}

#[tokio::test]
async fn the_result_right_before_a_step_is_given_however_large_and_a_long_chain_does_not_outgrow_its_state() {
    let harness = Harness::new();
    let steps: Vec<Value> = (0..12).map(|number| job(&format!("step.n{number}"))).collect();
    let id = create(&harness, json!({ "type": "chain", "steps": steps })).await;
    for number in 0..12 {
        // Together these are more than the state of a run may have.
        let job = complete(&harness, &format!("step.n{number}"), large(number, 500)).await;
        if number > 0 {
            assert_eq!(job["parent_results"][number - 1], large(number - 1, 500));
            assert_eq!(job["parent_results_omitted"].as_u64(), Some(number as u64 - 1).filter(|count| *count > 0));
        }
    }
    assert_eq!(state(&harness, &id).await, "completed");
}

#[tokio::test]
async fn a_step_that_would_be_given_too_much_fails_and_says_what_to_do() {
    let harness = Harness::new();
    let group: Vec<Value> = (0..3).map(|number| job(&format!("part.n{number}"))).collect();
    let group = json!({ "type": "group", "jobs": group });
    let after = json!({ "type": "group", "jobs": [job("after.a"), job("after.b")] });
    let id = create(&harness, json!({ "type": "chain", "steps": [group, after, job("last.one")] })).await;
    for (number, (_, job)) in claimable(&harness).await.into_iter().enumerate() {
        let result = json!({ "job_id": job["id"], "result": large(number, 400) });
        harness.post("/workers/ack", result).await.expect(200);
    }
    assert!(claimable(&harness).await.is_empty());
    let shown = harness.get(&format!("/workflows/{id}")).await.expect(200)["workflow"].clone();
    assert_eq!(shown["state"], "failed");
    let errors = shown["errors"].as_array().cloned().unwrap_or_default();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert_eq!(errors[0]["code"], "result_too_large");
    let message = errors[0]["message"].as_str().unwrap_or_default();
    for words in ["1228813 bytes", "1048576", "references"] {
        assert!(message.contains(words), "{message}");
    }
    let states: Vec<&Value> = shown["steps"].as_array().expect("steps").iter().map(|step| &step["state"]).collect();
    let expected = ["completed", "completed", "completed", "failed", "failed", "cancelled"];
    assert_eq!(states, expected, "{shown}");
}

#[tokio::test]
async fn a_callback_that_would_be_given_too_much_fails_its_batch_once() {
    let harness = Harness::new();
    let batch = json!({
        "type": "batch",
        "jobs": [job("part.a"), job("part.b"), job("part.c")],
        "callbacks": { "on_complete": job("told.all"), "on_success": job("told.success") },
    });
    let id = create(&harness, batch).await;
    for (number, (_, job)) in claimable(&harness).await.into_iter().enumerate() {
        let result = json!({ "job_id": job["id"], "result": large(number, 400) });
        harness.post("/workers/ack", result).await.expect(200);
    }
    assert_eq!(state(&harness, &id).await, "failed");
    let events = harness.get("/events?types=workflow.*").await.expect(200);
    let failed = events["events"].as_array().expect("events").iter().filter(|event| event["type"] == "workflow.failed");
    assert_eq!(failed.count(), 1, "{events}");
}
