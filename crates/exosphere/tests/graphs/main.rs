//! Random graphs, interrupted at every write, against a small model that knows no order.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

mod model;
mod random;
mod triggers;

use model::{Label, expected};
use redrive_engine::testing::{Report, Trial};
use redrive_exosphere::{GraphDefinition, RUN, RunState, Runs, Template, TriggerRequest, check};
use redrive_ojs::body;
use redrive_policy::Span;
use redrive_store::{Blob, Job};
use serde_json::{Value, json};
use std::sync::Arc;

/// What a node does with a path: the same for the worker and for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// It returns so many outputs, after so many failures.
    Returns {
        outputs: u32,
        failures: u32,
    },
    Fails,
    Prunes,
}

fn does(identifier: &str, path: &str) -> Does {
    let bytes = identifier.bytes().chain(path.bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let (kind, number) = ((hash >> 32) % 16, (hash >> 40) % 16);
    let outputs = [0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3][number as usize];
    match kind {
        0 => Does::Fails,
        1 => Does::Prunes,
        2..=4 => Does::Returns { outputs, failures: 1 },
        _ => Does::Returns { outputs, failures: 0 },
    }
}

/// A runtime of Exosphere.
fn worker(job: &Job) -> Report {
    let stored: Value = serde_json::from_slice(&job.spec.body).expect("JSON");
    let identifier = stored["meta"]["identifier"].as_str().expect("an identifier");
    let args: Value = serde_json::from_str(body::args(&job.spec.body)).expect("JSON");
    let path = args[0]["path"].as_str().expect("a path");
    match does(identifier, path) {
        Does::Returns { failures, .. } if job.attempt <= failures => Report::Fails("once".to_owned()),
        Does::Returns { outputs, failures } => {
            let outputs: Vec<Value> =
                (0..outputs).map(|number| json!({ "path": format!("{path}/{identifier}.{number}") })).collect();
            Report::Done(json!({ "outputs": outputs, "retries": failures }).to_string())
        }
        Does::Fails => Report::Fails("always".to_owned()),
        Does::Prunes => Report::Prunes,
    }
}

fn trial(template: Template, start: &str) -> Trial {
    let definition = GraphDefinition::new("ns", "graph", template);
    let request =
        TriggerRequest { inputs: [("path".to_owned(), start.to_owned())].into(), ..TriggerRequest::default() };
    let state = definition.begin(request).expect("it can be triggered");
    Trial {
        programs: vec![Arc::new(Runs::default())],
        program: RUN,
        state: Blob::from(state.write()),
        key: None,
        worker,
        signals: Vec::new(),
        lasts: Span::from_secs(3_600),
    }
}

/// The states in the outcome of a trial.
fn found(outcome: &str) -> Vec<(Label, String)> {
    let line = outcome.lines().find(|line| line.starts_with("  {\"namespace\"")).expect("the state of the run");
    let state = RunState::read(line.trim().as_bytes()).expect("it can be read");
    let name = |row: u32| {
        let row = state.row(row);
        let number = row.copy_of.map_or(0, |(_, number)| number);
        format!("{}.{number}", state.template.nodes[row.node as usize].identifier)
    };
    let label = |row: u32| {
        let mut names: Vec<String> = std::iter::once(row).chain(state.above(row)).map(name).collect();
        names.reverse();
        names.join("/")
    };
    let mut states: Vec<(Label, String)> = (0..)
        .zip(&state.rows)
        .map(|(index, row)| (label(index), format!("{:?} {}", row.status, row.retries)))
        .collect();
    states.sort();
    states
}

#[tokio::test]
async fn random_graphs_end_as_the_model_says_whatever_is_interrupted() {
    let mut kinds = [0_usize; 3];
    for seed in 0..40 {
        let template = random::template(&mut fastrand::Rng::with_seed(seed));
        assert_eq!(check(&template), Vec::<String>::new(), "seed {seed}");
        let start = format!("start {seed}");
        let outcome = trial(template.clone(), &start).check().await;
        let (found, expected) = (found(&outcome.0), expected(&template, &start));
        assert_eq!(found, expected, "seed {seed}: {template:#?}");
        let has = |word: &str| found.iter().any(|(_, status)| status.starts_with(word));
        let joins = found.iter().any(|(label, _)| label.contains("join"));
        for (count, is) in kinds.iter_mut().zip([has("Errored"), has("Pruned"), joins]) {
            *count += usize::from(is);
        }
    }
    assert!(kinds.iter().all(|count| *count > 3), "the graphs cover little: {kinds:?}");
}
