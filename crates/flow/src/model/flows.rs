//! Reading flows.

use super::fields::Fields;
use super::order;
use super::{Call, Definition, Entry, Flow, FlowId};
use crate::json::{Kind, Node};
use crate::problem::Findings;
use crate::schema::Schema;
use std::collections::BTreeMap;

const SCHEMA: &str = "https://mwl.dev/v0.1/flow/schema.json";
const FIELDS: [&str; 6] = ["entrypoint", "steps", "flows", "middleware", "parameters", "comment"];

/// What is read so far.
pub(super) struct Reader<'f> {
    pub(super) findings: &'f mut Findings,
    flows: Vec<Flow>,
    pub(super) calls: Vec<Call>,
    pub(super) entries: Vec<Entry>,
    /// The names of flows that can be called, the innermost scope last.
    scopes: Vec<BTreeMap<String, FlowId>>,
    /// Which flow calls which, and where.
    pub(super) edges: Vec<Edge>,
}

/// A call of a flow by a flow.
pub(super) struct Edge {
    pub(super) from: FlowId,
    pub(super) to: FlowId,
    pub(super) at: usize,
    pub(super) path: String,
}

/// Where something is read: in which flow, and with which names of steps.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    pub(super) flow: FlowId,
    pub(super) steps: &'p BTreeMap<&'p str, usize>,
}

pub(super) fn read(root: &Node, findings: &mut Findings, fingerprint: u64) -> Definition {
    let (flows, calls, entries) = (Vec::new(), Vec::new(), Vec::new());
    let mut reader = Reader { findings, flows, calls, entries, scopes: Vec::new(), edges: Vec::new() };
    let fields = Fields::of(root, String::new(), reader.findings);
    if matches!(root.kind, Kind::Object(_)) {
        match fields.get("$schema") {
            Some(Node { kind: Kind::String(text), .. }) if text == SCHEMA => {}
            Some(node) => fields.wrong("$schema", node, &format!("{SCHEMA:?}"), reader.findings),
            None => fields.missing("$schema", &format!("it is {SCHEMA:?}"), reader.findings),
        }
        let id = reader.reserve();
        reader.flow(id, root, String::new(), true);
    }
    order::check(reader.flows.len(), &reader.edges, reader.findings);
    Definition { flows: reader.flows, calls: reader.calls, entries: reader.entries, fingerprint }
}

impl Reader<'_> {
    pub(super) fn reserve(&mut self) -> FlowId {
        self.flows.push(Flow::default());
        self.flows.len() - 1
    }

    /// The flow that has a name here.
    pub(super) fn named(&self, name: &str) -> Option<FlowId> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).copied()
    }

    /// The names of flows that can be called here.
    pub(super) fn known_flows(&self) -> Vec<&str> {
        self.scopes.iter().flat_map(|scope| scope.keys().map(String::as_str)).collect()
    }

    /// Reads a flow into the place that is reserved for it.
    pub(super) fn flow(&mut self, id: FlowId, node: &Node, path: String, root: bool) {
        let fields = Fields::of(node, path.clone(), self.findings);
        let mut allowed = FIELDS.to_vec();
        if root {
            allowed.push("$schema");
        }
        fields.only(&allowed, self.findings);
        fields.comment(self.findings);
        let nested = self.nested_flows(&fields);
        self.scopes.push(nested.iter().map(|(name, id, _)| ((*name).to_owned(), *id)).collect());
        for (name, id, node) in nested {
            let path = format!("{}{}", fields.path_of("flows"), crate::problem::join("", name));
            self.flow(id, node, path, false);
        }
        let parameters = match fields.get("parameters") {
            Some(node) => Schema::parameters(node, &fields.path_of("parameters"), self.findings),
            None => Schema::no_parameters(),
        };
        let names = self.step_names(&fields);
        let place = Place { flow: id, steps: &names };
        let entrypoint = self.entrypoint(&fields, place);
        let stack = self.stack(&fields, place, Level::Flow);
        let steps = self.steps(&fields, place);
        self.scopes.pop();
        self.flows[id] = Flow { path, entrypoint, steps, stack, parameters };
    }

    fn nested_flows<'n>(&mut self, fields: &Fields<'n>) -> Vec<(&'n str, FlowId, &'n Node)> {
        let Some(node) = fields.get("flows") else { return Vec::new() };
        let flows = Fields::of(node, fields.path_of("flows"), self.findings);
        let mut nested = Vec::new();
        for member in flows.members {
            if crate::cel::embedded(&member.name).is_some() {
                self.findings.add(member.at, flows.path_of(&member.name), "the name of a flow cannot be an expression");
            }
            nested.push((member.name.as_str(), self.reserve(), &member.value));
        }
        nested
    }

    fn step_names<'n>(&mut self, fields: &Fields<'n>) -> BTreeMap<&'n str, usize> {
        let Some(node) = fields.get("steps") else {
            fields.missing("steps", "an object with at least one step", self.findings);
            return BTreeMap::new();
        };
        let steps = Fields::of(node, fields.path_of("steps"), self.findings);
        if matches!(node.kind, Kind::Object(_)) && steps.members.is_empty() {
            fields.wrong("steps", node, "an object with at least one step", self.findings);
        }
        steps.members.iter().enumerate().map(|(at, member)| (member.name.as_str(), at)).collect()
    }

    fn entrypoint(&mut self, fields: &Fields<'_>, place: Place<'_>) -> usize {
        if fields.get("entrypoint").is_none() {
            fields.missing("entrypoint", "the name of the first step", self.findings);
        }
        self.step_named(fields, "entrypoint", place)
    }

    /// The step that a member names.
    pub(super) fn step_named(&mut self, fields: &Fields<'_>, member: &str, place: Place<'_>) -> usize {
        let Some(name) = fields.word(member, "the name of a step", self.findings) else { return 0 };
        if let Some(step) = place.steps.get(name) {
            return *step;
        }
        let names: Vec<&str> = place.steps.keys().copied().take(20).collect();
        let meant = redrive_policy::resembling(name, &names);
        let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant:?}?"));
        let message = format!("there is no step {name:?} in this flow{meant} Its steps are {}", names.join(", "));
        let at = fields.get(member).map_or(fields.at, |node| node.at);
        self.findings.add(at, fields.path_of(member), message.replace("flow Its", "flow; its"));
        0
    }
}

/// What a stack of middleware is around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Flow,
    Step,
}
