//! Whether a graph fits the nodes that are registered.

use super::{Part, Template, TemplateNode, parts};
use crate::node::Node;
use std::collections::{BTreeMap, BTreeSet};

/// Everything in which a graph of a namespace does not fit the registered nodes, by namespace and name, and the names
/// of its secrets.
#[must_use]
pub fn registered_errors<'s>(
    template: &Template,
    namespace: &str,
    secrets: impl IntoIterator<Item = &'s str>,
    registered: &BTreeMap<(String, String), Node>,
) -> Vec<String> {
    let secrets: BTreeSet<&str> = secrets.into_iter().collect();
    let known = |node: &TemplateNode| registered.get(&(node.namespace.clone(), node.node_name.clone()));
    let mut errors = Vec::new();
    for node in &template.nodes {
        let Some(found) = known(node) else {
            let (name, namespace) = (&node.node_name, &node.namespace);
            errors.push(format!("Node {name} in namespace {namespace} is not registered"));
            continue;
        };
        check_secrets(node, found, namespace, &secrets, &mut errors);
        for field in Node::fields(&found.inputs_schema, false) {
            errors.push(format!("Input {field} of node {} is not a string in its schema", node.node_name));
        }
        for field in Node::fields(&found.inputs_schema, true).filter(|field| !node.inputs.contains_key(*field)) {
            let (name, identifier) = (&node.node_name, &node.identifier);
            errors.push(format!("Input {field} of node {name} is missing in the inputs of {identifier}"));
        }
        for (other, field) in references(node) {
            let producer = template.position(other).and_then(|position| known(&template.nodes[position]));
            let Some(producer) = producer else { continue };
            if !Node::fields(&producer.outputs_schema, true).any(|name| name == field) {
                let (name, identifier) = (&producer.name, &node.identifier);
                errors.push(format!("Node {name} has no output {field} that is a string, which {identifier} reads"));
            }
        }
    }
    let mut seen = BTreeSet::new();
    errors.retain(|error| seen.insert(error.clone()));
    errors
}

fn check_secrets(
    node: &TemplateNode,
    found: &Node,
    namespace: &str,
    secrets: &BTreeSet<&str>,
    errors: &mut Vec<String>,
) {
    let name = &node.node_name;
    if node.namespace != namespace && !found.secrets.is_empty() {
        errors.push(format!(
            "Node {name} in namespace {} needs secrets, and those of a graph stay in its own namespace {namespace}",
            node.namespace
        ));
        return;
    }
    for secret in found.secrets.iter().filter(|secret| !secrets.contains(secret.as_str())) {
        errors.push(format!("Secret {secret} is required by node {name} and is not present in the graph template"));
    }
}

/// The outputs that a node reads: of which node, and which field.
fn references(node: &TemplateNode) -> impl Iterator<Item = (&str, &str)> {
    let texts = node.inputs.values().filter_map(|value| value.as_str());
    texts.flat_map(|text| parts(text).unwrap_or_default()).filter_map(|part| match part {
        Part::Output(other, field) => Some((other, field)),
        Part::Text(_) | Part::Store(_) => None,
    })
}
