//! Reading the members of objects, with a problem for everything that is not as it should be.

use crate::cel::{Expression, embedded};
use crate::json::{Kind, Member, Node};
use crate::problem::{Findings, join};
use crate::template::Template;
use redrive_policy::resembling;
use std::sync::Arc;

/// An object of the definition and its path.
pub(super) struct Fields<'n> {
    pub(super) path: String,
    pub(super) at: usize,
    pub(super) members: &'n [Member],
}

impl<'n> Fields<'n> {
    /// The members of a node that is to be an object.
    pub(super) fn of(node: &'n Node, path: String, findings: &mut Findings) -> Self {
        let members: &[Member] = match &node.kind {
            Kind::Object(members) => members,
            _ => {
                findings.add(node.at, path.clone(), format!("an object is expected, not {}", node.shown()));
                &[]
            }
        };
        Self { path, at: node.at, members }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'n Node> {
        self.members.iter().find(|member| member.name == name).map(|member| &member.value)
    }

    pub(super) fn path_of(&self, name: &str) -> String {
        join(&self.path, name)
    }

    /// Refuses members with other names.
    pub(super) fn only(&self, allowed: &[&str], findings: &mut Findings) {
        for member in self.members.iter().filter(|member| !allowed.contains(&member.name.as_str())) {
            let meant = resembling(&member.name, allowed);
            let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant:?}?"));
            let message = format!("{:?} is not known here{meant} Allowed are {}", member.name, allowed.join(", "));
            findings.add(member.at, self.path_of(&member.name), message.replace("here Allowed", "here; allowed"));
        }
    }

    pub(super) fn missing(&self, name: &str, allowed: &str, findings: &mut Findings) {
        findings.add(self.at, self.path.clone(), format!("the member {name:?} is missing: {allowed}"));
    }

    pub(super) fn wrong(&self, name: &str, node: &Node, allowed: &str, findings: &mut Findings) {
        findings.add(node.at, self.path_of(name), format!("found {}, allowed is {allowed}", node.shown()));
    }

    /// A string that is no expression.
    pub(super) fn word(&self, name: &str, allowed: &str, findings: &mut Findings) -> Option<&'n str> {
        let node = self.get(name)?;
        match &node.kind {
            Kind::String(text) if embedded(text).is_some() => {
                let message =
                    format!("an expression is not allowed here, where the definition itself is fixed: {allowed}");
                findings.add(node.at, self.path_of(name), message);
                None
            }
            Kind::String(text) => Some(text),
            _ => {
                self.wrong(name, node, allowed, findings);
                None
            }
        }
    }

    pub(super) fn comment(&self, findings: &mut Findings) {
        if let Some(node) = self.get("comment")
            && !matches!(node.kind, Kind::String(_))
        {
            self.wrong("comment", node, "a string", findings);
        }
    }

    pub(super) fn items(&self, name: &str, findings: &mut Findings) -> Option<&'n [Node]> {
        let node = self.get(name)?;
        match &node.kind {
            Kind::Array(items) => Some(items),
            _ => {
                self.wrong(name, node, "an array", findings);
                None
            }
        }
    }

    /// Any value, with expressions in it.
    pub(super) fn template(&self, name: &str, findings: &mut Findings) -> Option<Template> {
        self.get(name).map(|node| template(node, &self.path_of(name), findings))
    }

    /// A value of which the kind is known, or an expression that makes one.
    pub(super) fn typed(
        &self,
        name: &str,
        allowed: &str,
        fits: fn(&Kind) -> bool,
        findings: &mut Findings,
    ) -> Option<Template> {
        let node = self.get(name)?;
        let expression = matches!(&node.kind, Kind::String(text) if embedded(text).is_some());
        if !expression && !fits(&node.kind) {
            self.wrong(name, node, &format!("{allowed}, or an expression that makes it"), findings);
        }
        self.template(name, findings)
    }

    /// The variables that a block assigns.
    pub(super) fn assign(&self, findings: &mut Findings) -> Vec<(String, Template)> {
        let Some(node) = self.get("assign") else { return Vec::new() };
        let fields = Fields::of(node, self.path_of("assign"), findings);
        let assigned = fields.members.iter().map(|member| {
            let path = fields.path_of(&member.name);
            (member.name.clone(), template(&member.value, &path, findings))
        });
        assigned.collect()
    }
}

/// A value with expressions at its leaves.
pub(super) fn template(node: &Node, path: &str, findings: &mut Findings) -> Template {
    match &node.kind {
        Kind::String(text) => match embedded(text) {
            Some(body) => expression(node, body, path, findings),
            None => Template::Literal(node.to_value()),
        },
        Kind::Array(items) => {
            let items = items.iter().enumerate();
            Template::array(items.map(|(at, item)| template(item, &format!("{path}/{at}"), findings)).collect())
        }
        Kind::Object(members) => {
            let member = |member: &Member| {
                let path = join(path, &member.name);
                (member.name.clone(), template(&member.value, &path, findings))
            };
            Template::object(members.iter().map(member).collect())
        }
        _ => Template::Literal(node.to_value()),
    }
}

fn expression(node: &Node, body: &str, path: &str, findings: &mut Findings) -> Template {
    match Expression::read(body) {
        Ok(expression) => Template::Expression(Arc::new(expression)),
        Err(fault) => {
            let near: String = body.get(fault.at..).unwrap_or("").trim().chars().take(20).collect();
            let near = if near.is_empty() { "its end".to_owned() } else { format!("{near:?}") };
            findings.add(node.at, path, format!("the expression cannot be read at {near}: {}", fault.message));
            Template::Literal(serde_json::Value::Null)
        }
    }
}

pub(super) const fn is_string(kind: &Kind) -> bool {
    matches!(kind, Kind::String(_))
}

pub(super) const fn is_object(kind: &Kind) -> bool {
    matches!(kind, Kind::Object(_))
}

pub(super) const fn is_bool(kind: &Kind) -> bool {
    matches!(kind, Kind::Bool(_))
}
