//! The inputs of a state: placeholders are replaced once, by outputs of earlier states and by the store.

use super::state::RunState;
use crate::template::{Part, parts};
use serde_json::{Map, Value};

impl RunState {
    /// The inputs of a state of a node that comes after a state.
    pub(super) fn resolve(&self, node: usize, up: u32) -> Result<Map<String, Value>, String> {
        let template = &self.template.nodes[node];
        let mut inputs = Map::new();
        for (name, value) in &template.inputs {
            let text = value.as_str().unwrap_or_default();
            let resolved = self
                .text(text, up)
                .map_err(|why| format!("input {name:?} of {:?} cannot be resolved: {why}", template.identifier))?;
            inputs.insert(name.clone(), resolved.into());
        }
        Ok(inputs)
    }

    fn text(&self, text: &str, up: u32) -> Result<String, String> {
        let mut out = String::with_capacity(text.len());
        for part in parts(text)? {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Store(key) => out.push_str(self.stored(key).ok_or_else(|| format!("the store has no {key:?}"))?),
                Part::Output(node, field) => out.push_str(self.output(node, field, up)?),
            }
        }
        Ok(out)
    }

    /// A value of the store: what the trigger brought, else the default.
    pub(crate) fn stored(&self, key: &str) -> Option<&str> {
        self.store.get(key).or_else(|| self.template.store.default_values.get(key)).map(String::as_str)
    }

    fn output(&self, node: &str, field: &str, up: u32) -> Result<&str, String> {
        let identifier = |row: u32| &self.template.nodes[self.row(row).node as usize].identifier;
        let found = std::iter::once(up).chain(self.above(up)).find(|row| identifier(*row) == node);
        let found = found.ok_or_else(|| format!("{node:?} has no state before it"))?;
        match self.row(found).outputs.get(field) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(format!("output {field:?} of {node:?} is not a string")),
            None => Err(format!("{node:?} has returned no output {field:?}")),
        }
    }

    /// Those of the outputs of a state that other nodes read.
    pub(super) fn read_outputs(&self, node: u32, outputs: &Map<String, Value>) -> Map<String, Value> {
        let identifier = &self.template.nodes[node as usize].identifier;
        let texts = self.template.nodes.iter().flat_map(|node| node.inputs.values()).filter_map(Value::as_str);
        let mut read = Map::new();
        for part in texts.flat_map(|text| parts(text).unwrap_or_default()) {
            if let Part::Output(other, field) = part
                && other == identifier
                && let Some(value) = outputs.get(field)
            {
                read.insert(field.to_owned(), value.clone());
            }
        }
        read
    }
}
