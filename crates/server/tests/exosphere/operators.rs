//! The calls of the dashboard, and what operators of jobs do to states.

use crate::world::{World, counts, node};
use serde_json::{Value, json};

#[tokio::test]
async fn nodes_are_listed_as_they_were_registered() {
    let world = World::with(&["Node", "Other"]).await;
    world.register(&["Node"]).await;
    let list = world.get("nodes/").await.expect(200);
    assert_eq!((&list["namespace"], &list["count"]), (&json!("ns"), &json!(2)));
    let first = &list["nodes"][0];
    assert_eq!((&first["name"], &first["runtime_name"]), (&json!("Node"), &json!("runtime")));
    assert_eq!(first["inputs_schema"]["properties"]["text"]["type"], "string");
    assert_eq!(world.get("nodes").await.expect(200), list);
    let namespaces = world.raw("GET", "/v0/namespaces", "").await.expect(200);
    assert_eq!(namespaces, json!({ "namespaces": ["ns"], "count": 1 }), "those that have registered nodes");
    let none = world.raw("GET", "/v0/namespace/none/nodes/", "").await.expect(200);
    assert_eq!(none, json!({ "namespace": "none", "count": 0, "nodes": [] }));
}

#[tokio::test]
async fn runs_are_listed_by_pages_the_newest_first() {
    let world = World::with(&["Node"]).await;
    world.graph(&[node("a", "", &[])], Value::Null).await;
    let mut runs = Vec::new();
    for _ in 0..5 {
        world.harness.advance_ms(1.0).await;
        runs.push(world.trigger().await);
    }
    runs.reverse();
    let ids = |page: &Value| -> Vec<String> {
        let runs = page["runs"].as_array().expect("a list");
        runs.iter().map(|run| run["run_id"].as_str().expect("an id").to_owned()).collect()
    };
    let first = world.get("runs/1/2").await.expect(200);
    assert_eq!((&first["total"], &first["page"], &first["size"]), (&json!(5), &json!(1), &json!(2)));
    assert_eq!(ids(&first), runs[..2]);
    assert_eq!(ids(&world.get("runs/3/2").await.expect(200)), runs[4..]);
    assert!(ids(&world.get("runs/4/2").await.expect(200)).is_empty());
    assert_eq!(first["runs"][0]["status"], "PENDING");
    assert_eq!(world.raw("GET", "/v0/namespace/other/runs/1/10", "").await.expect(200)["total"], 0);
    for path in ["runs/x/2", "runs/1/0", "runs/0/1", "runs/1/99999999"] {
        assert!(world.get(path).await.expect(422)["detail"][0]["loc"][0] == "path", "{path}");
    }
}

#[tokio::test]
async fn a_state_is_shown_with_everything_about_it() {
    let world = World::with(&["Node"]).await;
    world.graph(&[node("a", "in", &["b"]), node("b", "${{a.outputs.text}}", &[])], Value::Null).await;
    let run = world.trigger().await;
    let first = world.one("Node").await;
    world.report(&first, "errored", json!({ "error": "why" })).await.expect(200);
    world.harness.advance_ms(2_000.0).await;
    let retry = world.one("Node").await;
    world.execute(&retry, &["out"]).await;
    let second = world.one("Node").await;
    let show = |state: String| {
        let (world, run) = (&world, &run);
        async move { world.get(&format!("graph/g/run/{run}/node/{state}")).await }
    };
    let failed = show(first.clone()).await.expect(200);
    assert_eq!((&failed["status"], &failed["error"]), (&json!("RETRY_CREATED"), &json!("why")));
    assert_eq!((&failed["inputs"], &failed["outputs"]), (&json!({ "text": "in" }), &json!({})));
    let done = show(retry.clone()).await.expect(200);
    assert_eq!((&done["status"], &done["error"]), (&json!("SUCCESS"), &Value::Null));
    assert_eq!((&done["outputs"], &done["parents"]), (&json!({ "text": "out" }), &json!({})));
    let next = show(second.clone()).await.expect(200);
    assert_eq!((&next["status"], &next["parents"]), (&json!("QUEUED"), &json!({ "a": retry })));
    assert_eq!((&next["graph_name"], &next["run_id"]), (&json!("g"), &json!(run)));
    show("nonsense".to_owned()).await.expect(400);
    show(format!("{first}-7")).await.expect(404);
    world.get(&format!("graph/other/run/{run}/node/{first}")).await.expect(404);
    let path = format!("/v0/namespace/other/graph/g/run/{run}/node/{first}");
    world.raw("GET", &path, "").await.expect(404);
    let structure = world.get(&format!("states/run/{run}/graph")).await.expect(200);
    assert_eq!((&structure["graph_name"], &structure["node_count"]), (&json!("g"), &json!(3)));
    assert_eq!(structure["root_states"].as_array().map(Vec::len), Some(2));
    assert_eq!(structure["edges"], json!([{ "source": retry, "target": second }]));
    assert_eq!(structure["execution_summary"].as_object().map(serde_json::Map::len), Some(8));
    let empty = world.get("states/run/nonsense/graph").await.expect(200);
    assert_eq!((&empty["node_count"], &empty["nodes"]), (&json!(0), &json!([])));
}

#[tokio::test]
async fn a_manual_retry_takes_the_place_of_a_state() {
    let world = World::with(&["Node"]).await;
    world.graph(&[node("a", "in", &[])], json!({ "max_retries": 0 })).await;
    let run = world.trigger().await;
    let state = world.one("Node").await;
    world.report(&state, "errored", json!({ "error": "why" })).await.expect(200);
    assert_eq!(world.listed(&run).await["status"], "FAILED");
    let retry = json!({ "fanout_id": "one" });
    let created = world.report(&state, "manual-retry", retry.clone()).await.expect(200);
    let duplicate = world.report(&state, "manual-retry", retry).await.expect(409);
    assert_eq!(duplicate["detail"], "Duplicate retry state detected");
    assert_eq!(world.summary(&run).await, counts([("RETRY_CREATED", 1), ("CREATED", 1)]));
    let again = world.one("Node").await;
    assert_eq!((&created["id"], &created["status"]), (&json!(again), &json!("CREATED")));
    // A state that a runtime has can be retried as well: what the runtime reports is refused.
    world.report(&again, "manual-retry", json!({ "fanout_id": "two" })).await.expect(200);
    world.report(&again, "executed", json!({ "outputs": [] })).await.expect(400);
    let third = world.one("Node").await;
    world.execute(&third, &["out"]).await;
    assert_eq!(world.summary(&run).await, counts([("RETRY_CREATED", 2), ("SUCCESS", 1)]));
    assert_eq!(world.listed(&run).await["status"], "SUCCESS");
    world.report("nonsense", "manual-retry", json!({ "fanout_id": "x" })).await.expect(404);
}

#[tokio::test]
async fn a_state_is_a_job_that_operators_see_and_cancel() {
    let world = World::with(&["Node"]).await;
    world.graph(&[node("a", "in", &[])], Value::Null).await;
    let run = world.trigger().await;
    let state = world.one("Node").await;
    let job = world.harness.job(&state).await;
    assert_eq!((&job["type"], &job["queue"]), (&json!("exosphere.state"), &json!("exosphere.ns.-node")));
    assert_eq!((&job["args"], &job["meta"]["run_id"]), (&json!([{ "text": "in" }]), &json!(run)));
    world.report(&state, "errored", json!({ "error": "why" })).await.expect(200);
    let job = world.harness.job(&state).await;
    assert_eq!(job["errors"][0]["message"], "why");
    world.harness.delete(&format!("/jobs/{state}")).await.expect(200);
    assert_eq!(world.summary(&run).await, counts([("RETRY_CREATED", 1), ("ERRORED", 1)]));
    assert_eq!(world.listed(&run).await["status"], "FAILED");
}
