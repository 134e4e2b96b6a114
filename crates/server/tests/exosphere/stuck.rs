//! States whose runtime died: Exosphere's server keeps them QUEUED for ever. Here operators free them, and a lease does
//! where one is set.

use crate::common::{Harness, Leases, Parts, Reply};
use crate::world::{World, counts, node};
use redrive_policy::Span;
use serde_json::{Value, json};

const HOUR: f64 = 3_600_000.0;

async fn operator(world: &World, method: &str, path: &str, body: Value) -> Reply {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    world.raw(method, &format!("/ojs/v1/admin/{path}"), &body).await
}

async fn free(world: &World, state: &str, body: Value) -> Reply {
    operator(world, "POST", &format!("graph-states/{state}/free"), body).await
}

/// A graph of one node with one retry, after a second.
async fn world(leases: Leases) -> World {
    let world = World { harness: Harness::with(Parts { leases, ..Parts::default() }) };
    world.register(&["Node"]).await;
    let policy = json!({ "max_retries": 1, "strategy": "FIXED", "backoff_factor": 1_000 });
    world.graph(&[node("a", "x", &[])], policy).await;
    world
}

async fn stuck(world: &World, query: &str) -> Vec<String> {
    let list = operator(world, "GET", &format!("graph-states{query}"), Value::Null).await.expect(200);
    let states = list["states"].as_array().expect("a list").iter();
    states.map(|state| state["state_id"].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test]
async fn a_state_that_a_runtime_took_long_ago_is_listed_and_freed() {
    let world = world(Leases::default()).await;
    let run = world.trigger().await;
    let first = world.one("Node").await;
    world.harness.advance_ms(2.0 * HOUR).await;
    world.trigger().await;
    let second = world.one("Node").await;
    assert_eq!(stuck(&world, "").await, [&*second, &*first]);
    assert_eq!(stuck(&world, "?taken_before=2026-02-13T11:00:00Z").await, [&*first]);
    assert_eq!(stuck(&world, "?namespace=ns&limit=1").await, [&*second]);
    assert!(stuck(&world, "?namespace=other").await.is_empty());
    let list = operator(&world, "GET", "graph-states?taken_before=2026-02-13T11:00:00Z", Value::Null).await.expect(200);
    let entry = &list["states"][0];
    assert_eq!((&entry["namespace"], &entry["graph_name"], &entry["run_id"]), (&json!("ns"), &json!("g"), &json!(run)));
    assert_eq!((&entry["identifier"], &entry["taken_at"]), (&json!("a"), &json!("2026-02-13T10:00:00.000000Z")));

    // The second is too new for what the operator has looked at.
    let before = json!({ "taken_before": "2026-02-13T11:00:00Z", "by": "ada" });
    let refused = free(&world, &second, before.clone()).await.expect(409);
    assert_eq!(refused["error"]["details"]["reason"], "not_stuck");
    let freed = free(&world, &first, before.clone()).await.expect(200);
    assert_eq!((&freed["freed"], &freed["status"]), (&json!(true), &json!("RETRY_CREATED")));
    free(&world, &first, before).await.expect(409);
    let late = world.report(&first, "executed", json!({ "outputs": [] })).await.expect(400);
    assert_eq!(late["detail"], "State is not queued", "the runtime was not dead after all");
    let shown = world.get(&format!("graph/g/run/{run}/node/{first}")).await.expect(200);
    assert_eq!(shown["error"], "no runtime reported the state within 2 h, and ada freed it");

    world.harness.advance_ms(1_000.0).await;
    let retry = world.one("Node").await;
    assert_eq!(retry, format!("{first}-1"));
    let freed = free(&world, &retry, Value::Null).await.expect(200);
    assert_eq!(freed["status"], "ERRORED");
    assert_eq!(world.summary(&run).await, counts([("RETRY_CREATED", 1), ("ERRORED", 1)]));
    assert_eq!(world.listed(&run).await["status"], "FAILED");
}

/// All runtimes are one worker, whose states are not ended together by a word about one of them.
#[tokio::test]
async fn the_worker_that_stands_for_all_runtimes_is_not_removed() {
    let world = world(Leases::default()).await;
    let run = world.trigger().await;
    world.one("Node").await;
    world.harness.advance_ms(2.0 * HOUR).await;
    let refused = operator(&world, "DELETE", "workers/exosphere", Value::Null).await.expect(409);
    let message = refused["error"]["message"].as_str().expect("a text");
    assert!(message.contains("redrive graph stuck"), "{message}");
    assert_eq!(world.summary(&run).await, counts([("QUEUED", 1)]));
}

#[tokio::test]
async fn only_states_that_a_runtime_has_are_freed_and_words_that_are_not_known_are_refused() {
    let world = world(Leases::default()).await;
    let run = world.trigger().await;
    let structure = world.get(&format!("states/run/{run}/graph")).await.expect(200);
    let waiting = structure["nodes"][0]["id"].as_str().expect("an id").to_owned();
    free(&world, &waiting, json!({})).await.expect(409);
    let job = world.harness.enqueue(json!({})).await;
    for unknown in ["nonsense", &job, "0190a5c0-0000-7000-8000-000000000001", &format!("{waiting}.1")] {
        let status = if unknown.ends_with(".1") { 409 } else { 404 };
        free(&world, unknown, json!({})).await.expect(status);
    }
    let state = world.one("Node").await;
    for wrong in [json!({ "befor": "x" }), json!({ "taken_before": "yesterday" }), json!({ "by": 1 })] {
        free(&world, &state, wrong).await.expect(400);
    }
    for path in ["graph-states?taken_before=x", "graph-states?older=1", "graph-runs?after=x", "graph-runs?page=1"] {
        operator(&world, "GET", path, Value::Null).await.expect(400);
    }
    assert_eq!(stuck(&world, "").await, [state], "nothing was changed");
}

#[tokio::test]
async fn without_a_lease_a_state_is_its_runtimes_for_as_long_as_it_takes() {
    let world = world(Leases::default()).await;
    let run = world.trigger().await;
    let state = world.one("Node").await;
    world.harness.advance_ms(10.0 * 365.0 * 24.0 * HOUR).await;
    assert_eq!(world.summary(&run).await, counts([("QUEUED", 1)]));
    world.execute(&state, &["done"]).await;
    assert_eq!(world.summary(&run).await, counts([("SUCCESS", 1)]));
}

#[tokio::test]
async fn a_lease_of_the_server_or_of_the_namespace_ends_a_state_that_is_not_reported() {
    let server = Leases { server: Some(Span::from_secs(60)), ..Leases::default() };
    let own = Leases { server: Some(Span::from_secs(9)), namespaces: [("ns".to_owned(), Span::from_secs(60))].into() };
    let others = Leases { server: None, namespaces: [("other".to_owned(), Span::from_secs(60))].into() };
    for (leases, ends) in [(server, true), (own, true), (others, false)] {
        let world = world(leases).await;
        let run = world.trigger().await;
        let state = world.one("Node").await;
        world.harness.advance_ms(59_999.0).await;
        assert_eq!(world.summary(&run).await, counts([("QUEUED", 1)]));
        world.harness.advance_ms(1.0).await;
        if !ends {
            assert_eq!(world.summary(&run).await, counts([("QUEUED", 1)]));
            continue;
        }
        assert_eq!(world.summary(&run).await, counts([("RETRY_CREATED", 1), ("CREATED", 1)]));
        world.report(&state, "executed", json!({ "outputs": [] })).await.expect(400);
        world.harness.advance_ms(1_000.0).await;
        let retry = world.one("Node").await;
        world.execute(&retry, &["done"]).await;
        assert_eq!(world.listed(&run).await["status"], "SUCCESS");
    }
}

#[tokio::test]
async fn runs_are_listed_over_all_namespaces_and_shown_with_their_states() {
    let world = world(Leases::default()).await;
    let first = world.trigger().await;
    world.harness.advance_ms(1.0).await;
    let second = world.trigger().await;
    let list = |query: &'static str| operator(&world, "GET", query, Value::Null);
    let runs = list("graph-runs").await.expect(200);
    assert_eq!(runs["runs"][0]["run_id"], second.as_str());
    assert_eq!((&runs["runs"][1]["namespace"], &runs["runs"][1]["status"]), (&json!("ns"), &json!("PENDING")));
    assert_eq!(runs.get("next_after"), None);
    let page = list("graph-runs?limit=1&namespace=ns").await.expect(200);
    assert_eq!((&page["next_after"], page["runs"].as_array().map(Vec::len)), (&json!(second), Some(1)));
    let path = format!("graph-runs?limit=1&after={second}");
    let rest = operator(&world, "GET", &path, Value::Null).await.expect(200);
    assert_eq!((&rest["runs"][0]["run_id"], rest.get("next_after")), (&json!(first), None));
    assert_eq!(list("graph-runs?namespace=other").await.expect(200), json!({ "runs": [] }));

    let states = world.enqueue(&["Node"]).await;
    let state = states[0]["state_id"].as_str().expect("an id");
    world.report(state, "errored", json!({ "error": "why" })).await.expect(200);
    let id = if list("graph-runs?limit=1").await.expect(200)["runs"][0]["retried_count"] == 1 { second } else { first };
    let run = operator(&world, "GET", &format!("graph-runs/{id}"), Value::Null).await.expect(200);
    assert_eq!((&run["graph_name"], &run["nodes"][0]["identifier"]), (&json!("g"), &json!("a")));
    let (failed, waiting) = (&run["states"][0], &run["states"][1]);
    assert_eq!(
        (&failed["status"], &failed["error"], &failed["retry"]),
        (&json!("RETRY_CREATED"), &json!("why"), &json!(0))
    );
    assert_eq!((&waiting["status"], &waiting["retry"]), (&json!("CREATED"), &json!(1)));
    assert_eq!(waiting["due_at"], "2026-02-13T10:00:01.001000Z");
    operator(&world, "GET", "graph-runs/nonsense", Value::Null).await.expect(404);
}
