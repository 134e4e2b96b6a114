//! Whether a graph holds together. Every reason against it is listed.

use super::{Part, Template, TemplateNode, parts};
use crate::name::check_name;
use std::collections::{BTreeSet, HashMap};

/// Everything that is wrong with the structure of a graph.
#[must_use]
pub fn check(template: &Template) -> Vec<String> {
    let mut reasons = Vec::new();
    let nodes = &template.nodes;
    if nodes.is_empty() {
        return vec!["the graph has no nodes; at least one is required".to_owned()];
    }
    let mut positions: HashMap<&str, usize> = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        for (what, name) in [("the node name", &node.node_name), ("the namespace", &node.namespace)] {
            reasons.extend(check_name(what, name).err().map(|why| format!("node {:?}: {why}", node.identifier)));
        }
        if positions.insert(&node.identifier, index).is_some() {
            reasons.push(format!("the identifier {:?} appears twice; identifiers are unique", node.identifier));
        }
    }
    let unknown = nodes.iter().flat_map(|node| {
        let next = node.next_nodes.iter().map(move |next| (node, "next_nodes", next));
        next.chain(node.unites.iter().map(move |unites| (node, "unites", &unites.identifier)))
    });
    for (node, field, name) in unknown {
        let identifier = &node.identifier;
        if !positions.contains_key(name.as_str()) {
            reasons.push(format!("node {identifier:?}: {field} names {name:?}, and there is no such node"));
        } else if field == "unites" && name == identifier {
            reasons.push(format!("node {identifier:?}: unites names the node itself; name one that comes before it"));
        }
    }
    // What follows needs edges that lead somewhere.
    if reasons.is_empty() {
        Shape::of(nodes, &positions).check(template, &mut reasons);
    }
    let required = &template.store.required_keys;
    if !template.triggers.is_empty() && !required.is_empty() {
        reasons.push(format!(
            "the graph has cron triggers, which bring nothing for the store, and requires {}; give defaults to these \
             keys in place of requiring them",
            required.join(", ")
        ));
    }
    reasons
}

/// How the nodes are connected.
struct Shape<'t> {
    nodes: &'t [TemplateNode],
    positions: &'t HashMap<&'t str, usize>,
    /// The nodes that lead to each node.
    before: Vec<Vec<usize>>,
    /// The node that each node unites.
    united: Vec<Option<usize>>,
}

impl<'t> Shape<'t> {
    fn of(nodes: &'t [TemplateNode], positions: &'t HashMap<&'t str, usize>) -> Self {
        let mut before = vec![Vec::new(); nodes.len()];
        for (index, node) in nodes.iter().enumerate() {
            for next in &node.next_nodes {
                before[positions[next.as_str()]].push(index);
            }
        }
        let united = nodes.iter().map(|node| node.unites.as_ref().map(|unites| positions[unites.identifier.as_str()]));
        let united = united.collect();
        Self { nodes, positions, before, united }
    }

    fn check(&self, template: &Template, reasons: &mut Vec<String>) {
        let name = |index: &usize| format!("{:?}", self.nodes[*index].identifier);
        let named = |indexes: &[usize]| indexes.iter().map(name).collect::<Vec<_>>().join(", ");
        let all = 0..self.nodes.len();
        let roots: Vec<usize> =
            all.clone().filter(|index| self.before[*index].is_empty() && self.united[*index].is_none()).collect();
        match roots[..] {
            [] => reasons.push("every node comes after another; exactly one has to come first".to_owned()),
            [_] => {}
            _ => reasons.push(format!("nothing leads to {}; exactly one node has to come first", named(&roots))),
        }
        let order = self.order();
        let missing: Vec<usize> = all.clone().filter(|index| !order.contains(index)).collect();
        if !missing.is_empty() {
            reasons.push(format!("there is a cycle among, or before, {}; a graph has none", named(&missing)));
            return;
        }
        if let [root] = roots[..] {
            let reached = self.reached(root);
            let lost: Vec<usize> = all.filter(|index| !reached.contains(index)).collect();
            if !lost.is_empty() {
                reasons.push(format!("{} cannot be reached from {}", named(&lost), name(&root)));
            }
        }
        let ancestors = self.ancestors(&order);
        for index in 0..self.nodes.len() {
            self.check_united(index, &ancestors, reasons);
            self.check_inputs(index, &ancestors[index], template, reasons);
        }
    }

    /// All nodes, each behind those that lead to it and the one that it unites; those on cycles are left out.
    fn order(&self) -> Vec<usize> {
        let edges = |index: usize| self.before[index].iter().copied().chain(self.united[index]);
        let mut missing: Vec<usize> = (0..self.nodes.len()).map(|index| edges(index).count()).collect();
        let mut order: Vec<usize> = (0..self.nodes.len()).filter(|index| missing[*index] == 0).collect();
        let mut taken = 0;
        while let Some(done) = order.get(taken).copied() {
            taken += 1;
            for (index, left) in missing.iter_mut().enumerate() {
                let met = edges(index).filter(|before| *before == done).count();
                *left -= met;
                if met > 0 && *left == 0 {
                    order.push(index);
                }
            }
        }
        order
    }

    fn reached(&self, root: usize) -> BTreeSet<usize> {
        let (mut reached, mut open) = (BTreeSet::from([root]), vec![root]);
        while let Some(index) = open.pop() {
            for next in &self.nodes[index].next_nodes {
                let next = self.positions[next.as_str()];
                if reached.insert(next) {
                    open.push(next);
                }
            }
        }
        reached
    }

    /// The nodes whose outputs each node can read, whichever way led to it: of a node that unites, the united node and
    /// what comes before that.
    fn ancestors(&self, order: &[usize]) -> Vec<BTreeSet<usize>> {
        let mut ancestors: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); self.nodes.len()];
        for index in order {
            let before: Vec<usize> = self.united[*index].map_or_else(|| self.before[*index].clone(), |node| vec![node]);
            let mut ways = before.into_iter().map(|node| {
                let mut way = ancestors[node].clone();
                way.insert(node);
                way
            });
            let first = ways.next().unwrap_or_default();
            ancestors[*index] = ways.fold(first, |common, way| common.intersection(&way).copied().collect());
        }
        ancestors
    }

    /// What leads to a node that unites has to be below the united node.
    fn check_united(&self, index: usize, ancestors: &[BTreeSet<usize>], reasons: &mut Vec<String>) {
        let Some(united) = self.united[index] else { return };
        let (node, target) = (&self.nodes[index].identifier, &self.nodes[united].identifier);
        for before in self.before[index].iter().filter(|before| **before != united) {
            if !ancestors[*before].contains(&united) {
                let other = &self.nodes[*before].identifier;
                reasons.push(format!(
                    "node {node:?} unites {target:?}, and {other:?}, which leads to it, does not always come after \
                     {target:?}"
                ));
            }
        }
    }

    fn check_inputs(&self, index: usize, ancestors: &BTreeSet<usize>, template: &Template, reasons: &mut Vec<String>) {
        let node = &self.nodes[index];
        for (input, value) in &node.inputs {
            let mut wrong = |why: String| reasons.push(format!("node {:?}, input {input:?}: {why}", node.identifier));
            let Some(text) = value.as_str() else {
                wrong(format!("found {value}; a string is required"));
                continue;
            };
            let parts = match parts(text) {
                Ok(parts) => parts,
                Err(why) => {
                    wrong(why);
                    continue;
                }
            };
            for part in parts {
                match part {
                    Part::Text(_) => {}
                    Part::Store(key) => {
                        let store = &template.store;
                        if !store.default_values.contains_key(key) && !store.required_keys.iter().any(|own| own == key)
                        {
                            wrong(format!("the key {key:?} is neither required of the store nor has it a default"));
                        }
                    }
                    Part::Output(other, _) => match self.positions.get(other) {
                        None => wrong(format!("there is no node {other:?}")),
                        Some(other) if ancestors.contains(other) => {}
                        Some(_) => wrong(format!("{other:?} does not always come before this node")),
                    },
                }
            }
        }
    }
}
