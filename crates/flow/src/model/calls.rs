//! Reading calls.

use super::fields::{Fields, is_object};
use super::flows::{Edge, Place, Reader};
use super::{Call, CallId, Target};
use crate::json::{Kind, Node};
use crate::providers::Provider;

pub(super) const MOCK: &str = "mwl:provider.call/mwl/mock/v1";
const FIELDS: [&str; 7] = ["provider", "flow", "input", "with", "onSuccess", "onFailure", "comment"];

impl Reader<'_> {
    /// Reads a call and returns its place.
    pub(super) fn call(&mut self, node: &Node, path: String, place: Place<'_>) -> CallId {
        let fields = Fields::of(node, path, self.findings);
        fields.only(&FIELDS, self.findings);
        fields.comment(self.findings);
        let target = self.target(&fields, place);
        if let Target::Outside(provider) = target {
            super::providers::check(provider, &fields, self.findings);
        }
        let input = fields.template("input", self.findings);
        let with = fields.typed("with", "an object of arguments", is_object, self.findings);
        let (value, on_success) = self.arm(&fields, "onSuccess", &["value", "assign"]);
        let (_, on_failure) = self.arm(&fields, "onFailure", &["assign"]);
        self.calls.push(Call { target, input, with, value, on_success, on_failure });
        self.calls.len() - 1
    }

    fn arm(
        &mut self,
        fields: &Fields<'_>,
        name: &str,
        allowed: &[&str],
    ) -> (Option<crate::template::Template>, super::Assign) {
        let Some(node) = fields.get(name) else { return (None, Vec::new()) };
        let arm = Fields::of(node, fields.path_of(name), self.findings);
        arm.only(allowed, self.findings);
        let value = if allowed.contains(&"value") { arm.template("value", self.findings) } else { None };
        (value, arm.assign(self.findings))
    }

    fn target(&mut self, fields: &Fields<'_>, place: Place<'_>) -> Target {
        match (fields.get("provider"), fields.get("flow")) {
            (Some(_), None) => self.provider(fields),
            (None, Some(node)) => self.flow_target(fields, node, place),
            (Some(_), Some(_)) => {
                let message = "a call has provider or flow, not both; remove one of them";
                self.findings.add(fields.at, fields.path.clone(), message);
                Target::Mock
            }
            (None, None) => {
                fields.missing("provider", "a call has a provider or a flow", self.findings);
                Target::Mock
            }
        }
    }

    fn provider(&mut self, fields: &Fields<'_>) -> Target {
        let Some(uri) = fields.word("provider", "the URI of a call provider", self.findings) else {
            return Target::Mock;
        };
        if let Some(provider) = Provider::of_uri(uri) {
            return Target::Outside(provider);
        }
        if uri != MOCK {
            let at = fields.get("provider").map_or(fields.at, |node| node.at);
            let kind = if uri.starts_with("mwl:provider.middleware/") { ", and this one is a middleware" } else { "" };
            let message = format!(
                "there is no call provider {uri:?}{kind}; known are {MOCK}, {} and {}",
                Provider::Job.uri(),
                Provider::Http.uri()
            );
            self.findings.add(at, fields.path_of("provider"), message);
        }
        Target::Mock
    }

    fn flow_target(&mut self, fields: &Fields<'_>, node: &Node, place: Place<'_>) -> Target {
        let path = fields.path_of("flow");
        let to = if matches!(node.kind, Kind::Object(_)) {
            let id = self.reserve();
            self.flow(id, node, path.clone(), false);
            id
        } else {
            let Some(name) = fields.word("flow", "the name of a flow, or a flow", self.findings) else {
                return Target::Mock;
            };
            match self.named(name) {
                Some(id) => id,
                None => {
                    let known = self.known_flows().join(", ");
                    let known = if known.is_empty() {
                        "there are no named flows here".to_owned()
                    } else {
                        format!("known here are {known}")
                    };
                    self.findings.add(node.at, path, format!("there is no flow {name:?}; {known}"));
                    return Target::Mock;
                }
            }
        };
        self.edges.push(Edge { from: place.flow, to, at: node.at, path });
        Target::Flow(to)
    }
}
