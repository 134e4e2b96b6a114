//! Nodes as a runtime registers them.

use crate::fields::{FieldError, Loc, Reader};
use crate::name::check_name;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many nodes one runtime may register at once.
const MOST_NODES: usize = 1_000;

/// A registered node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// The runtime that registered it last.
    pub runtime_name: String,
    /// The JSON schema of its inputs.
    pub inputs_schema: Value,
    /// The JSON schema of its outputs.
    pub outputs_schema: Value,
    /// The names of the secrets that it needs.
    pub secrets: Vec<String>,
}

impl Node {
    /// The names of the fields of a schema that are strings, or of those that are not.
    pub(crate) fn fields(schema: &Value, strings: bool) -> impl Iterator<Item = &str> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let is_string = |value: &Value| value.get("type").and_then(Value::as_str) == Some("string");
        let fits = move |(_, value): &(&String, &Value)| is_string(value) == strings;
        properties.into_iter().flatten().filter(fits).map(|(name, _)| name.as_str())
    }
}

/// The nodes of a runtime.
#[derive(Clone, Debug, PartialEq)]
pub struct Registration {
    /// The name of the runtime.
    pub runtime_name: String,
    /// Its nodes.
    pub nodes: Vec<Node>,
}

/// Reads the body of `PUT nodes/`.
///
/// # Errors
/// Every field that is wrong.
pub fn read_registration(body: &Value) -> Result<Registration, Vec<FieldError>> {
    let (mut reader, loc) = (Reader::default(), Loc::body());
    let Some(members) = reader.object(body, &loc, &["runtime_name", "runtime_namespace", "nodes"]) else {
        return reader.finish(Registration { runtime_name: String::new(), nodes: Vec::new() });
    };
    let runtime_name = reader.text(members, "runtime_name", &loc).unwrap_or_default();
    let listed = reader.required(members, "nodes", &loc);
    let listed = listed.map_or(&[][..], |nodes| reader.list(nodes, &loc.key("nodes")));
    if listed.len() > MOST_NODES {
        let message = format!("found {} nodes; at most {MOST_NODES} are allowed", listed.len());
        reader.wrong(&loc.key("nodes"), message, &Value::Null);
    }
    let read = |(index, node)| read_node(&mut reader, node, &loc.key("nodes").item(index), &runtime_name);
    let nodes = listed.iter().enumerate().filter_map(read).collect();
    reader.finish(Registration { runtime_name, nodes })
}

fn read_node(reader: &mut Reader, value: &Value, loc: &Loc, runtime: &str) -> Option<Node> {
    let known = ["name", "namespace", "inputs_schema", "outputs_schema", "secrets"];
    let members = reader.object(value, loc, &known)?;
    let name = reader.text(members, "name", loc)?;
    if let Err(why) = check_name("a node", &name) {
        reader.wrong(&loc.key("name"), why, &members["name"]);
    }
    let mut schema = |key: &str| {
        let value = reader.required(members, key, loc)?;
        reader.map(value, &loc.key(key))?;
        Some(value.clone())
    };
    let (inputs_schema, outputs_schema) = (schema("inputs_schema"), schema("outputs_schema"));
    let secrets = reader.required(members, "secrets", loc)?;
    let at = loc.key("secrets");
    let secrets = reader.list(secrets, &at).iter().enumerate();
    let secrets = secrets.filter_map(|(index, secret)| reader.string(secret, &at.item(index))).collect();
    let runtime_name = runtime.to_owned();
    Some(Node { name, runtime_name, inputs_schema: inputs_schema?, outputs_schema: outputs_schema?, secrets })
}
