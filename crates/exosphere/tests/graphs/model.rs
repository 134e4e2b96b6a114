//! What a graph comes to, worked out from the top down, without any order in time.

use crate::{Does, does};
use redrive_exosphere::{Strategy, Template, TemplateNode};

/// A state: the states above it and its own, each with its node and the number of its output.
pub(crate) type Label = String;

/// All states of a run, each with how it ended and the retries that it took.
pub(crate) fn expected(template: &Template, start: &str) -> Vec<(Label, String)> {
    let mut states = below(template, &template.nodes[0], "", start);
    states.sort();
    states
}

/// The states of a node and everything below.
fn below(template: &Template, node: &TemplateNode, above: &str, path: &str) -> Vec<(Label, String)> {
    let name = |number: u32| {
        let joint = if above.is_empty() { "" } else { "/" };
        format!("{above}{joint}{}.{number}", node.identifier)
    };
    let (outputs, failures) = match does(&node.identifier, path) {
        Does::Fails => return vec![(name(0), "Errored 1".to_owned())],
        Does::Prunes => return vec![(name(0), "Pruned 0".to_owned())],
        Does::Returns { outputs, failures } => (outputs, failures),
    };
    let next: Vec<&TemplateNode> =
        template.nodes.iter().filter(|other| node.next_nodes.contains(&other.identifier)).collect();
    let next: Vec<&TemplateNode> = next.into_iter().filter(|other| other.unites.is_none()).collect();
    let joins: Vec<(&TemplateNode, Strategy)> = template
        .nodes
        .iter()
        .filter_map(|other| other.unites.as_ref().map(|unites| (other, unites)))
        .filter(|(_, unites)| unites.identifier == node.identifier)
        .map(|(other, unites)| (other, unites.strategy))
        .collect();
    let mut states = Vec::new();
    for number in 0..outputs.max(1) {
        let (label, retries) = (name(number), if number == 0 { failures } else { 0 });
        // Nothing is returned, and every node that comes after reads something.
        if outputs == 0 && !next.is_empty() {
            states.push((label, format!("NextCreatedError {retries}")));
            continue;
        }
        let path = format!("{path}/{}.{number}", node.identifier);
        let branches: Vec<_> = next.iter().flat_map(|next| below(template, next, &label, &path)).collect();
        let succeeded = branches.iter().all(|(_, status)| status.starts_with("Success"));
        for (join, strategy) in &joins {
            match (strategy, outputs) {
                (Strategy::AllSuccess, _) if !succeeded => {}
                (_, 0) => states.push((format!("{label}/{}.0", join.identifier), "Errored 0".to_owned())),
                _ => states.extend(below(template, join, &label, &path)),
            }
        }
        states.extend(branches);
        states.push((label, format!("Success {retries}")));
    }
    states
}
