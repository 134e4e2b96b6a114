//! What a definition gives to a call provider, as far as it is written out.

use super::fields::Fields;
use crate::cel::embedded;
use crate::json::{Kind, Node};
use crate::problem::Findings;
use crate::providers::Provider;
use redrive_policy::Problems;
use redrive_policy::dialect::Dialect;
use serde_json::Value;

/// Checks `with` of a call: its members, and the values that are no expressions.
pub(super) fn check(provider: Provider, call: &Fields<'_>, findings: &mut Findings) {
    let arguments = provider.arguments();
    let Some(with) = call.get("with") else {
        for argument in arguments.iter().filter(|argument| argument.required) {
            call.missing("with", &format!("its member {:?} is {}", argument.name, argument.allowed), findings);
        }
        return;
    };
    // What is no object is refused where `with` is read; an expression is checked when it is evaluated.
    if !matches!(with.kind, Kind::Object(_)) {
        return;
    }
    let with = Fields::of(with, call.path_of("with"), findings);
    let names: Vec<&str> = arguments.iter().map(|argument| argument.name).collect();
    with.only(&names, findings);
    for argument in arguments {
        match with.get(argument.name) {
            Some(node) if is_expression(node) => {}
            Some(node) if !(argument.fits)(&node.to_value()) => {
                with.wrong(argument.name, node, argument.allowed, findings);
            }
            Some(node) if argument.name == "retry" => check_policy(node, &with.path_of("retry"), findings),
            None if argument.required => with.missing(argument.name, argument.allowed, findings),
            _ => {}
        }
    }
}

/// Checks a policy that has no expression in it. One of another dialect is checked when the job is enqueued.
fn check_policy(node: &Node, path: &str, findings: &mut Findings) {
    let policy = node.to_value();
    if policy.get("dialect").is_some() || has_expression(&policy) {
        return;
    }
    if let Err(Problems(problems)) = Dialect::Ojs.read(&policy) {
        for problem in problems {
            findings.add(node.at, format!("{path}{}", problem.path), problem.message.to_string());
        }
    }
}

fn is_expression(node: &Node) -> bool {
    matches!(&node.kind, Kind::String(text) if embedded(text).is_some())
}

fn has_expression(value: &Value) -> bool {
    match value {
        Value::String(text) => embedded(text).is_some(),
        Value::Array(items) => items.iter().any(has_expression),
        Value::Object(members) => members.values().any(has_expression),
        _ => false,
    }
}
