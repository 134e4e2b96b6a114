//! The public suite as durable runs. Whether the Results are right is for the runner of the suite; here they are the
//! same as those of the machine in memory, whatever is interrupted.

use crate::harness::{Flow, flow};
use crate::world::Tried;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The folder of the suite, where there is one beside the project.
fn folder() -> Option<PathBuf> {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().skip(2);
    above.map(|at| at.join("../shared/conformance/mwl")).find(|at| at.is_dir())
}

fn read(path: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(serde_json::from_str(&text).expect("JSON"))
}

#[tokio::test]
async fn every_scenario_of_the_public_suite_ends_alike_as_a_run_whatever_is_interrupted() {
    let Some(folder) = folder() else { return };
    let mut tried = 0;
    for case in std::fs::read_dir(folder).expect("a folder") {
        let case = case.expect("a case").path();
        let Some(definition) = read(&case.join("definition.json")) else { continue };
        for scenario in std::fs::read_dir(case.join("scenarios")).into_iter().flatten() {
            let scenario = scenario.expect("a scenario").path();
            let input = read(&scenario.join("input.json")).unwrap_or_default();
            let arguments = read(&scenario.join("arguments.json")).unwrap_or_else(|| json!({}));
            let ended = Tried { input: input.clone(), arguments: arguments.clone(), ..Tried::new(definition.clone()) };
            let ended = ended.check().await;
            let in_memory = Flow { definition: definition.clone(), input, arguments, ..flow(json!({})) }.run();
            let brief = |result: &Value| (result["type"].clone(), result.get("value").cloned(), result["code"].clone());
            assert_eq!(brief(&ended.result), brief(&in_memory.result), "{}", scenario.display());
            tried += 1;
        }
    }
    assert!(tried > 40, "only {tried} scenarios were found");
}
