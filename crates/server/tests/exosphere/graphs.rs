//! Graphs as they are put, looked at and triggered.

use crate::world::{World, counts, node, of, uniting};
use serde_json::{Value, json};

async fn put(world: &World, nodes: &[Value]) -> (u16, Value) {
    let reply = world.put("graph/g", json!({ "secrets": {}, "nodes": nodes })).await;
    (reply.status.as_u16(), reply.body)
}

#[tokio::test]
async fn a_graph_comes_back_as_it_was_put() {
    let world = World::with(&["Node"]).await;
    let mut second = node("b", "${{ a.outputs.text }}", &[]);
    second.as_object_mut().expect("an object").remove("next_nodes");
    second["unites"] = Value::Null;
    let body = json!({
        "secrets": {}, "nodes": [node(" a ", "", &["b "]), second],
        "retry_policy": { "max_retries": 5, "max_delay": null }, "triggers": null,
        "store_config": { "required_keys": ["k"], "default_values": { "d": "x" } },
    });
    let graph = world.put("graph/g", body).await.expect(201);
    assert_eq!(graph["nodes"][0]["identifier"], "a");
    assert_eq!(graph["nodes"][0]["next_nodes"], json!(["b"]));
    assert_eq!(graph["nodes"][1]["next_nodes"], json!([]));
    assert_eq!(graph["nodes"][1]["unites"], Value::Null);
    assert_eq!(graph["retry_policy"]["max_retries"], 5);
    assert_eq!(graph["retry_policy"]["strategy"], "EXPONENTIAL");
    assert_eq!(graph["store_config"], json!({ "required_keys": ["k"], "default_values": { "d": "x" } }));
    assert_eq!((&graph["triggers"], &graph["secrets"]), (&json!([]), &json!({})));
    assert_eq!((&graph["validation_status"], &graph["validation_errors"]), (&json!("VALID"), &json!([])));
    assert_eq!(world.get("graph/g").await.expect(200), graph);
    for path in ["graphs/", "graphs"] {
        let list = world.get(path).await.expect(200);
        assert_eq!((&list["count"], &list["templates"][0]["name"]), (&json!(1), &json!("g")));
    }
    let missing = world.get("graph/other").await.expect(404);
    assert_eq!(missing["detail"], "Graph template other not found in namespace ns");
}

#[tokio::test]
async fn every_reason_against_a_graph_is_listed_and_nothing_is_stored() {
    let world = World::with(&["Node"]).await;
    let cases = [
        (vec![], "no nodes"),
        (vec![node("a", "", &[]), node("a", "", &[])], "appears twice"),
        (vec![node("a", "", &["x"])], "names \"x\", and there is no such node"),
        (vec![node("a", "", &[]), node("b", "", &[])], "exactly one node has to come first"),
        (vec![node("a", "", &["a"])], "cycle"),
        (vec![node("a", "", &["b"]), node("b", "", &["c"]), node("c", "", &["b"])], "cycle"),
        (vec![uniting(node("a", "", &[]), "a", "ALL_DONE")], "names the node itself"),
        (vec![node("a", "", &[]), uniting(node("b", "", &[]), "a", "ALL_DONE")], "cannot be reached"),
        (vec![node("a", "${{", &[])], "close the placeholder"),
        (vec![node("a", "${{ b.outputs.text }}", &["b"]), node("b", "", &[])], "does not always come before"),
        (vec![node("a", "${{ store.k }}", &[])], "neither required"),
        (
            vec![
                node("a", "", &["b", "c"]),
                node("b", "", &["d"]),
                node("c", "", &["d"]),
                node("d", "${{ b.outputs.text }}", &[]),
            ],
            "does not always come before",
        ),
        (
            vec![
                node("a", "", &["b", "c"]),
                node("b", "", &["d"]),
                node("c", "", &["d"]),
                uniting(node("d", "", &[]), "b", "ALL_DONE"),
            ],
            "does not always come after",
        ),
    ];
    for (nodes, reason) in cases {
        let (status, body) = put(&world, &nodes).await;
        let detail = body["detail"].as_str().unwrap_or_default();
        assert!(status == 400 && detail.starts_with("Error validating graph template: "), "{reason}: {body}");
        assert!(detail.contains(reason), "{reason}: {detail}");
    }
    let mut several = node("a", "${{ nobody }} ${{ x.outputs.text }}", &[]);
    several["inputs"]["number"] = 3.into();
    let (_, body) = put(&world, &[several, node("b", "${{ store.k }}", &[])]).await;
    let detail = body["detail"].as_str().unwrap_or_default();
    for reason in ["placeholder", "a string is required", "exactly one node", "neither required"] {
        assert!(detail.contains(reason), "{reason}: {detail}");
    }
    world.get("graph/g").await.expect(404);
    put(&world, &[node("a", "", &[])]).await;
    put(&world, &[node("a", "", &["x"])]).await;
    assert_eq!(world.get("graph/g").await.expect(200)["validation_status"], "VALID");
}

#[tokio::test]
async fn a_graph_that_does_not_fit_the_registered_nodes_is_invalid() {
    let world = World::with(&["Node"]).await;
    let schema = json!({ "properties": { "text": { "type": "string" }, "number": { "type": "integer" } } });
    let strange = json!({ "name": "Strange", "inputs_schema": schema, "outputs_schema": schema, "secrets": ["token"] });
    world.put("nodes", json!({ "runtime_name": "r", "nodes": [strange] })).await.expect(200);
    let mut bare = of("Node", node("c", "", &[]));
    bare["inputs"] = json!({});
    let nodes = [of("Gone", node("a", "", &["b"])), of("Strange", node("b", "", &["c"])), bare];
    let (status, graph) = put(&world, &nodes).await;
    assert_eq!((status, &graph["validation_status"]), (201, &json!("INVALID")));
    let errors = graph["validation_errors"].as_array().expect("a list");
    let found = graph["validation_errors"].to_string();
    for error in ["Gone in namespace ns is not registered", "Secret token", "number", "Input text"] {
        assert!(found.contains(error), "{error}: {found}");
    }
    assert_eq!(errors.len(), 4, "each once: {found}");
    let refused = world.post("graph/g/trigger", json!({})).await.expect(400);
    assert_eq!(refused["detail"], "Graph template is not valid");
    let reads = [node("a", "", &["b"]), node("b", "${{ a.outputs.other }}", &[])];
    assert!(put(&world, &reads).await.1["validation_errors"][0].to_string().contains("no output other"));
}

#[tokio::test]
async fn renamed_identifiers_are_valid_at_once() {
    let world = World::with(&["Node"]).await;
    world.graph(&[node("a", "", &["b"]), node("b", "${{a.outputs.text}}", &[])], Value::Null).await;
    world.graph(&[node("p", "", &["q"]), node("q", "${{p.outputs.text}}", &[])], Value::Null).await;
}

#[tokio::test]
async fn a_run_goes_on_with_the_graph_that_was_triggered() {
    let world = World::with(&["Node"]).await;
    world.graph(&[node("a", "", &["b"]), node("b", "old", &[])], Value::Null).await;
    let run = world.trigger().await;
    world.graph(&[node("x", "new", &[])], json!({ "max_retries": 0 })).await;
    let state = world.one("Node").await;
    world.execute(&state, &["y"]).await;
    assert_eq!(world.enqueue(&["Node"]).await[0]["inputs"]["text"], "old");
    assert_eq!(world.summary(&run).await, counts([("SUCCESS", 1), ("QUEUED", 1)]));
}

#[tokio::test]
async fn a_trigger_brings_inputs_a_store_and_a_delay() {
    let world = World::with(&["Node"]).await;
    let body = json!({
        "secrets": {}, "nodes": [node("a", "${{store.k}} ${{store.d}}", &["b"]), node("b", "${{store.d}}", &[])],
        "store_config": { "required_keys": ["k"], "default_values": { "d": "default", "k": "unused" } },
    });
    world.put("graph/g", body).await.expect(201);
    let refused = world.post("graph/g/trigger", json!({ "store": { "d": "x" } })).await.expect(400);
    assert_eq!(refused["detail"], "Missing store keys: k");
    let delayed = json!({ "start_delay": 1_000, "store": { "k": "1" }, "inputs": { "other": "ignored" } });
    world.post("graph/g/trigger", delayed).await.expect(200);
    assert!(world.enqueue(&["Node"]).await.is_empty());
    world.harness.advance_ms(1_000.0).await;
    let states = world.enqueue(&["Node"]).await;
    assert_eq!(states[0]["inputs"], json!({ "text": "1 default" }));
    world.execute(states[0]["state_id"].as_str().expect("an id"), &[]).await;
    assert_eq!(world.enqueue(&["Node"]).await[0]["inputs"], json!({ "text": "default" }));
    let own = json!({ "store": { "k": "${{store.d}}" }, "inputs": { "text": "<${{store.k}}>" } });
    world.post("graph/g/trigger", own).await.expect(200);
    assert_eq!(world.enqueue(&["Node"]).await[0]["inputs"]["text"], "<${{store.d}}>", "substituted once");
    for (text, reason) in
        [("${{store.none}}", "not found in store"), ("${{a.outputs.text}}", "cannot have"), ("${{", "close")]
    {
        let body = json!({ "store": { "k": "" }, "inputs": { "text": text } });
        let refused = world.post("graph/g/trigger", body).await.expect(400);
        assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains(reason)), "{refused}");
    }
    world.post("graph/other/trigger", json!({})).await.expect(404);
}

#[tokio::test]
async fn a_node_of_another_namespace_has_its_own_queue() {
    let world = World::with(&["Node"]).await;
    let schema = json!({ "properties": { "text": { "type": "string" } } });
    let other = json!({ "name": "Other", "inputs_schema": schema, "outputs_schema": schema, "secrets": [] });
    let body = json!({ "runtime_name": "r", "nodes": [other] }).to_string();
    world.raw("PUT", "/v0/namespace/elsewhere/nodes/", &body).await.expect(200);
    let mut foreign = of("Other", node("b", "${{a.outputs.text}}", &["c"]));
    foreign["namespace"] = "elsewhere".into();
    world.graph(&[node("a", "", &["b"]), foreign, node("c", "${{b.outputs.text}}", &[])], Value::Null).await;
    let run = world.trigger().await;
    let first = world.one("Node").await;
    world.execute(&first, &["1"]).await;
    assert!(world.enqueue(&["Other"]).await.is_empty());
    let wanted = json!({ "nodes": ["Other"], "batch_size": 5 }).to_string();
    let states = world.raw("POST", "/v0/namespace/elsewhere/states/enqueue", &wanted).await.expect(200);
    let id = states["states"][0]["state_id"].as_str().expect("an id").to_owned();
    world.report(&id, "executed", json!({ "outputs": [] })).await.expect(404);
    let path = format!("/v0/namespace/elsewhere/state/{id}/executed");
    world.raw("POST", &path, &json!({ "outputs": [{ "text": "2" }] }).to_string()).await.expect(200);
    assert_eq!(world.enqueue(&["Node"]).await[0]["inputs"]["text"], "2");
    assert_eq!(world.summary(&run).await, counts([("SUCCESS", 2), ("QUEUED", 1)]));
    let namespaces = world.raw("GET", "/v0/namespaces", "").await.expect(200);
    assert_eq!(namespaces, json!({ "namespaces": ["elsewhere", "ns"], "count": 2 }));
}
