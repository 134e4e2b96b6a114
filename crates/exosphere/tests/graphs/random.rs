//! Graphs made at random: trees, with nodes that unite branches.

use fastrand::Rng;
use redrive_exosphere::{Strategy, Template, TemplateNode, Unites};
use serde_json::{Map, Value, json};

fn node(identifier: &str, before: Option<&str>) -> TemplateNode {
    let path = before.map_or_else(|| "none".to_owned(), |before| format!("${{{{ {before}.outputs.path }}}}"));
    TemplateNode {
        node_name: format!("Node{}", identifier.len()),
        namespace: "ns".to_owned(),
        identifier: identifier.to_owned(),
        inputs: [("path".to_owned(), Value::from(path))].into_iter().collect(),
        next_nodes: Vec::new(),
        unites: None,
    }
}

/// The nodes below one, by the edges of the tree.
fn below(nodes: &[TemplateNode], top: usize) -> Vec<usize> {
    let (mut found, mut open) = (Vec::new(), vec![top]);
    while let Some(index) = open.pop() {
        for next in &nodes[index].next_nodes {
            let next = nodes.iter().position(|node| node.identifier == *next).expect("it is there");
            if nodes[next].unites.is_none() {
                found.push(next);
                open.push(next);
            }
        }
    }
    found
}

pub(crate) fn template(rng: &mut Rng) -> Template {
    let mut nodes = vec![node("root", None)];
    for number in 1..rng.usize(2..6) {
        let before = rng.usize(..nodes.len());
        let (identifier, parent) = (format!("n{number}"), nodes[before].identifier.clone());
        nodes.push(node(&identifier, Some(&parent)));
        nodes[before].next_nodes.push(identifier);
    }
    let plain = nodes.len();
    for number in 0..rng.usize(..3) {
        let united = rng.usize(..plain);
        let mut leading = below(&nodes, united);
        leading.push(united);
        rng.shuffle(&mut leading);
        leading.truncate(rng.usize(1..=leading.len()));
        let (join, target) = (format!("join{number}"), nodes[united].identifier.clone());
        let strategy = if rng.bool() { Strategy::AllDone } else { Strategy::AllSuccess };
        let unites = Some(Unites { identifier: target.clone(), strategy });
        let mut joining = TemplateNode { unites, ..node(&join, Some(&target)) };
        leading.iter().for_each(|index| nodes[*index].next_nodes.push(join.clone()));
        if rng.bool() {
            let after = format!("after{number}");
            joining.next_nodes.push(after.clone());
            nodes.push(joining);
            nodes.push(node(&after, Some(&join)));
        } else {
            nodes.push(joining);
        }
    }
    let policy = json!({ "max_retries": 1, "strategy": "FIXED", "backoff_factor": 50 });
    let retry_policy: Map<String, Value> = policy.as_object().cloned().expect("an object");
    Template { nodes, retry_policy, ..Template::default() }
}
