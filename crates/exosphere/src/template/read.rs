//! Reading a graph as it is put.

use super::trigger::triggers;
use super::{Store, Strategy, Template, TemplateNode, Unites};
use crate::fields::{FieldError, Loc, Reader};
use redrive_policy::dialect::Dialect;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How many nodes a graph may have.
const MOST_NODES: usize = 1_000;

/// Reads the body of `PUT graph/{name}`: the template, and the secrets with their values.
///
/// # Errors
/// Every field that is wrong.
pub fn read_template(body: &Value) -> Result<(Template, BTreeMap<String, String>), Vec<FieldError>> {
    let (mut reader, loc) = (Reader::default(), Loc::body());
    let known = ["secrets", "nodes", "retry_policy", "store_config", "triggers"];
    let Some(members) = reader.object(body, &loc, &known) else { return reader.finish(Default::default()) };
    let secrets = reader.required(members, "secrets", &loc);
    let secrets = secrets.map(|secrets| reader.texts(secrets, &loc.key("secrets"))).unwrap_or_default();
    let given = |key: &str| members.get(key).filter(|value| !value.is_null());
    let template = Template {
        nodes: nodes(&mut reader, members, &loc),
        retry_policy: given("retry_policy").map(|policy| retry_policy(&mut reader, policy, &loc)).unwrap_or_default(),
        store: given("store_config").map(|store| store_config(&mut reader, store, &loc)).unwrap_or_default(),
        triggers: given("triggers")
            .map(|listed| triggers(&mut reader, listed, &loc.key("triggers")))
            .unwrap_or_default(),
    };
    reader.finish((template, secrets.into_iter().collect()))
}

fn nodes(reader: &mut Reader, members: &Map<String, Value>, loc: &Loc) -> Vec<TemplateNode> {
    let Some(listed) = reader.required(members, "nodes", loc) else { return Vec::new() };
    let loc = loc.key("nodes");
    let listed = reader.list(listed, &loc);
    if listed.len() > MOST_NODES {
        let message = format!("found {} nodes; at most {MOST_NODES} are allowed", listed.len());
        reader.wrong(&loc, message, &Value::Null);
        return Vec::new();
    }
    listed.iter().enumerate().filter_map(|(index, value)| node(reader, value, &loc.item(index))).collect()
}

fn node(reader: &mut Reader, value: &Value, loc: &Loc) -> Option<TemplateNode> {
    let known = ["node_name", "namespace", "identifier", "inputs", "next_nodes", "unites"];
    let members = reader.object(value, loc, &known)?;
    let node_name = reader.trimmed(members, "node_name", loc);
    let namespace = reader.text(members, "namespace", loc);
    let identifier = reader.trimmed(members, "identifier", loc);
    if identifier.as_deref() == Some("store") {
        let message = "found \"store\", which placeholders use for the store; choose another name";
        reader.wrong(&loc.key("identifier"), message, &members["identifier"]);
    }
    let inputs = reader.required(members, "inputs", loc);
    let inputs = inputs.and_then(|inputs| reader.map(inputs, &loc.key("inputs")).cloned());
    let given = |key: &str| members.get(key).filter(|value| !value.is_null());
    let next_nodes = given("next_nodes").map(|next| next_nodes(reader, next, &loc.key("next_nodes")));
    let unites = given("unites").and_then(|value| unites(reader, value, &loc.key("unites")));
    Some(TemplateNode {
        node_name: node_name?,
        namespace: namespace?.trim().to_owned(),
        identifier: identifier?,
        inputs: inputs?,
        next_nodes: next_nodes.unwrap_or_default(),
        unites,
    })
}

fn next_nodes(reader: &mut Reader, value: &Value, loc: &Loc) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (index, item) in reader.list(value, loc).iter().enumerate() {
        let Some(name) = reader.string(item, &loc.item(index)) else { continue };
        let name = name.trim();
        if name.is_empty() {
            reader.wrong(&loc.item(index), "found an empty string; the identifier of a node is required", item);
        } else if names.iter().any(|other| other == name) {
            reader.wrong(&loc.item(index), format!("{name:?} appears twice; keep one of them"), item);
        } else {
            names.push(name.to_owned());
        }
    }
    names
}

fn unites(reader: &mut Reader, value: &Value, loc: &Loc) -> Option<Unites> {
    let members = reader.object(value, loc, &["identifier", "strategy"])?;
    let identifier = reader.trimmed(members, "identifier", loc);
    let strategy = match members.get("strategy").map(Value::as_str) {
        None | Some(Some("ALL_SUCCESS")) => Strategy::AllSuccess,
        Some(Some("ALL_DONE")) => Strategy::AllDone,
        Some(_) => {
            let found = &members["strategy"];
            let message = format!("found {found}; allowed are \"ALL_SUCCESS\" and \"ALL_DONE\"");
            reader.wrong(&loc.key("strategy"), message, found);
            Strategy::AllSuccess
        }
    };
    Some(Unites { identifier: identifier?, strategy })
}

fn retry_policy(reader: &mut Reader, value: &Value, loc: &Loc) -> Map<String, Value> {
    let loc = loc.key("retry_policy");
    if let Err(problems) = Dialect::Exosphere.read(value) {
        for problem in problems.0 {
            let pointer = problem.path.strip_prefix('/').unwrap_or_default().to_owned();
            let at = if pointer.is_empty() { loc.clone() } else { loc.key(&pointer) };
            reader.wrong(&at, problem.message.clone(), value.get(&pointer).unwrap_or(value));
        }
    }
    value.as_object().cloned().unwrap_or_default()
}

fn store_config(reader: &mut Reader, value: &Value, loc: &Loc) -> Store {
    let loc = loc.key("store_config");
    let Some(members) = reader.object(value, &loc, &["required_keys", "default_values"]) else {
        return Store::default();
    };
    let mut required_keys: Vec<String> = Vec::new();
    let at = loc.key("required_keys");
    let listed = members.get("required_keys").map_or(&[][..], |keys| reader.list(keys, &at));
    for (index, item) in listed.iter().enumerate() {
        let Some(key) = reader.string(item, &at.item(index)) else { continue };
        let key = store_key(reader, &key, &at.item(index), item);
        if required_keys.contains(&key) {
            reader.wrong(&at.item(index), format!("{key:?} appears twice; keep one of them"), item);
        }
        required_keys.push(key);
    }
    let at = loc.key("default_values");
    let values = members.get("default_values").map(|values| reader.texts(values, &at)).unwrap_or_default();
    let mut default_values = BTreeMap::new();
    for (name, text) in values {
        let key = store_key(reader, &name, &at.key(&name), &Value::from(&*name));
        if default_values.insert(key.clone(), text).is_some() {
            reader.wrong(&at.key(&name), format!("{key:?} appears twice; keep one of them"), &Value::from(&*name));
        }
    }
    Store { required_keys, default_values }
}

fn store_key(reader: &mut Reader, key: &str, loc: &Loc, input: &Value) -> String {
    let key = key.trim();
    if key.is_empty() || key.contains('.') {
        reader.wrong(loc, format!("found the key {key:?}; allowed is a name that is not empty and has no dot"), input);
    }
    key.to_owned()
}
