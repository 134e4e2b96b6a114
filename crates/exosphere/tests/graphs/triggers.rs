//! Graphs with cron triggers, interrupted at every write: each slot is one run.

use crate::worker;
use redrive_engine::testing::Trial;
use redrive_exosphere::{GRAPH, GraphDefinition, Graphs, REPLACE, Runs, Template, graph_key, read_template};
use redrive_policy::Span;
use redrive_store::{Blob, Signal};
use serde_json::json;
use std::sync::Arc;

fn template(triggers: &[&str]) -> Template {
    let triggers = triggers.iter().map(|own| json!({ "type": "CRON", "value": { "expression": own } }));
    let node = json!({ "node_name": "N", "namespace": "ns", "identifier": "a", "inputs": { "path": "x" } });
    let body = json!({ "secrets": {}, "nodes": [node], "triggers": triggers.collect::<Vec<_>>() });
    read_template(&body).expect("it is valid").0
}

fn state(triggers: &[&str]) -> Blob {
    Blob::from(serde_json::to_vec(&GraphDefinition::new("ns", "g", template(triggers))).expect("JSON"))
}

#[tokio::test]
async fn each_slot_is_one_run_whatever_is_interrupted_and_a_removed_trigger_fires_no_more() {
    let replace = |after: u32, triggers: &[&str]| {
        (Span::from_secs(after), Signal { name: REPLACE.into(), body: state(triggers) })
    };
    let trial = Trial {
        programs: vec![Arc::new(Graphs), Arc::new(Runs::default())],
        program: GRAPH,
        state: state(&["* * * * * */10"]),
        key: Some(graph_key("ns", "g")),
        worker,
        // The test starts 20 seconds after a full minute: slots at 10, 20 and 30 s, and then each 15 s until 60 s.
        signals: vec![replace(35, &["* * * * * */15", "* * * * * */30"]), replace(62, &[])],
        lasts: Span::from_secs(200),
    };
    let outcome = trial.check().await.0;
    let runs = outcome.lines().filter(|line| line.contains("exosphere.run")).count();
    assert_eq!(runs, 3 + 2 + 1, "{outcome}");
}
