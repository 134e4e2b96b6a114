//! Triggering a graph.

use crate::definition::GraphDefinition;
use crate::fields::{FieldError, Loc, Reader};
use crate::run::RunState;
use crate::template::{Part, parts};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The longest delay: a hundred years.
const LONGEST_DELAY_MS: i64 = 100 * 365 * 86_400_000;

/// What a trigger brings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TriggerRequest {
    /// After how many milliseconds the first state may run.
    pub start_delay: u64,
    /// Inputs of the first node, in place of those of the template.
    pub inputs: BTreeMap<String, String>,
    /// Values of the store.
    pub store: BTreeMap<String, String>,
}

/// Reads the body of `POST graph/{name}/trigger`.
///
/// # Errors
/// Every field that is wrong.
pub fn read_trigger(body: &Value) -> Result<TriggerRequest, Vec<FieldError>> {
    let (mut reader, loc) = (Reader::default(), Loc::body());
    let Some(members) = reader.object(body, &loc, &["start_delay", "inputs", "store"]) else {
        return reader.finish(TriggerRequest::default());
    };
    let delay = members.get("start_delay");
    let delay = delay.and_then(|delay| reader.whole(delay, &loc.key("start_delay"), 0, LONGEST_DELAY_MS));
    let mut texts = |key: &str| members.get(key).map(|value| reader.texts(value, &loc.key(key))).unwrap_or_default();
    let (inputs, store) = (texts("inputs").into_iter().collect(), texts("store").into_iter().collect());
    reader.finish(TriggerRequest { start_delay: delay.unwrap_or(0).unsigned_abs(), inputs, store })
}

impl GraphDefinition {
    /// What a run of the graph is started with.
    ///
    /// # Errors
    /// Why it cannot be triggered.
    pub fn begin(&self, request: TriggerRequest) -> Result<RunState, String> {
        if !self.is_valid() {
            return Err("Graph template is not valid".to_owned());
        }
        let TriggerRequest { start_delay, inputs, store } = request;
        let required = self.template.store.required_keys.iter();
        let missing: Vec<&str> = required.filter(|key| !store.contains_key(*key)).map(String::as_str).collect();
        if !missing.is_empty() {
            return Err(format!("Missing store keys: {}", missing.join(", ")));
        }
        let mut state = RunState {
            namespace: self.namespace.clone(),
            graph: self.name.clone(),
            template: self.template.clone(),
            store,
            inputs: Map::new(),
            start_delay,
            rows: Vec::new(),
            backlog: Vec::new(),
        };
        let root = self.template.root().map(|root| &self.template.nodes[root]);
        let root = root.ok_or("the graph has no node that comes first")?;
        for (name, own) in &root.inputs {
            let text = inputs.get(name).map(String::as_str).or(own.as_str()).unwrap_or_default();
            let resolved = resolved(&state, text, &root.identifier)?;
            state.inputs.insert(name.clone(), resolved.into());
        }
        Ok(state)
    }
}

/// An input of the first node: only the store is there before it.
fn resolved(state: &RunState, text: &str, root: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    for part in parts(text).map_err(|why| format!("Invalid input: {why}"))? {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Store(key) => match state.stored(key) {
                Some(value) => out.push_str(value),
                None => return Err(format!("Invalid input: Dependent {key} not found in store for root node {root}")),
            },
            Part::Output(node, _) => {
                return Err(format!("Invalid input: root node {root} cannot have outputs of {node} as an input"));
            }
        }
    }
    Ok(out)
}
