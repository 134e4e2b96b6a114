//! The document: every endpoint of the registry with what the tables say of it.

use super::groups::GROUPS;
use super::operation::{Answer, Group, Operation};
use super::parameters::Parameters;
use super::schemas;
use crate::access::Access;
use crate::api_error::Code;
use crate::endpoints::{Entry, Table};
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const ABOUT: &str = include_str!("about.md");

/// The whole document.
pub(super) fn of(table: &Table) -> Value {
    let (mut parts, mut paths) = (Parts::default(), Map::new());
    for entry in table.entries() {
        let Some((group, operation)) = find(entry.method.as_str(), entry.path) else { continue };
        let described = parts.describe(group, operation, entry);
        paths.entry(entry.path).or_insert_with(|| json!({}))[entry.method.as_str().to_lowercase()] = described;
    }
    let tags: Vec<Value> =
        GROUPS.iter().map(|group| json!({ "name": group.name, "description": group.about })).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Redrive",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
            "description": ABOUT.trim_end(),
        },
        "servers": [{ "url": "/" }],
        "security": [{ "bearer": [] }, { "key": [] }, {}],
        "tags": tags,
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "key": { "type": "apiKey", "in": "header", "name": "X-API-Key" },
            },
            "parameters": parts.parameters.into_components(),
            "responses": parts.errors.into_iter().collect::<Map<_, _>>(),
            "schemas": schemas::all(),
        },
    })
}

/// What the tables say of an endpoint.
pub(super) fn find(method: &str, path: &str) -> Option<(&'static Group, &'static Operation)> {
    let mut all = GROUPS.into_iter().flat_map(|group| group.operations.iter().map(move |operation| (group, operation)));
    all.find(|(_, operation)| operation.method == method && operation.path == path)
}

/// What several endpoints refer to.
#[derive(Default)]
struct Parts {
    parameters: Parameters,
    errors: BTreeMap<String, Value>,
}

impl Parts {
    fn describe(&mut self, group: &Group, operation: &Operation, entry: &Entry) -> Value {
        let Operation { method, path, summary, about, .. } = *operation;
        let mut described =
            json!({ "tags": [group.name], "operationId": operation_id(method, path), "summary": summary });
        if !about.is_empty() {
            described["description"] = about.into();
        }
        described["security"] = match entry.rule.access {
            Access::Open => json!([]),
            // A server without keys admits everyone.
            Access::Needs(scope) => json!([{ "bearer": [scope.name()] }, { "key": [scope.name()] }, {}]),
        };
        let is_open = entry.rule.access == Access::Open;
        let mut parameters: Vec<Value> = self.parameters.of_path(path).collect();
        parameters.extend(entry.takes.iter().map(|name| self.parameters.of_query(path, name)));
        let version = operation.is_ojs().then_some("OJS-Version");
        parameters.extend(operation.headers.iter().copied().chain(version).map(|name| self.parameters.header(name)));
        if !parameters.is_empty() {
            described["parameters"] = parameters.into();
        }
        if let Some(body) = operation.body {
            let content = json!({ "application/json": { "schema": reference("schemas", body.schema) } });
            described["requestBody"] = json!({ "required": body.is_required, "content": content });
        }
        described["responses"] = self.responses(operation, is_open).into();
        described
    }

    /// What an endpoint answers, by status. Where a status has an answer and errors, the body is one of them.
    fn responses(&mut self, operation: &Operation, is_open: bool) -> Map<String, Value> {
        let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
        for code in operation.all_errors(is_open) {
            by_status.entry(code.status().as_u16()).or_default().push(code);
        }
        let mut responses: BTreeMap<u16, Value> = BTreeMap::new();
        for answer in operation.answers {
            let errors = by_status.remove(&answer.0).unwrap_or_default();
            responses.insert(answer.0, response(operation, answer, &errors));
        }
        for (status, codes) in by_status {
            let names: Vec<&str> = codes.iter().map(|code| code.name()).collect();
            let interface = match operation {
                flow if flow.is_flow() => "flows.",
                exosphere if exosphere.is_exosphere() => "exosphere.",
                _ => "",
            };
            let key = format!("{interface}{}", names.join("."));
            let reference = reference("responses", &key);
            self.errors.entry(key).or_insert_with(|| refusal(operation, &codes));
            responses.insert(status, reference);
        }
        responses.into_iter().map(|(status, response)| (status.to_string(), response)).collect()
    }
}

/// `get_jobs_id`: of the method and the words of the path.
fn operation_id(method: &str, path: &str) -> String {
    let words = path.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words = words.filter(|word| !matches!(*word, "v0" | "v1"));
    let mut id = method.to_lowercase();
    words.for_each(|word| id.extend(["_", word]));
    if path.ends_with('/') {
        id.push_str("_slash");
    }
    id
}

fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

/// The media type of the JSON of an endpoint.
fn media(operation: &Operation) -> &'static str {
    match operation.is_exosphere() || operation.is_flow() || operation.path == "/openapi.json" {
        true => "application/json",
        false => "application/openjobspec+json",
    }
}

fn response(operation: &Operation, (status, body): &Answer, errors: &[Code]) -> Value {
    let reason = StatusCode::from_u16(*status).ok().and_then(|status| status.canonical_reason());
    let mut response = json!({ "description": reason.unwrap_or("An answer") });
    match body {
        &"" => {}
        media if media.contains('/') => response["content"] = json!({ *media: {} }),
        schema => {
            let schema = reference("schemas", schema);
            let schema = match errors {
                [] => schema,
                _ => json!({ "anyOf": [schema, reference("schemas", error_schema(operation))] }),
            };
            response["content"] = json!({ media(operation): { "schema": schema } });
        }
    }
    response
}

fn error_schema(operation: &Operation) -> &'static str {
    if operation.is_exosphere() { "ExosphereError" } else { "ErrorAnswer" }
}

fn refusal(operation: &Operation, codes: &[Code]) -> Value {
    let told: Vec<String> = codes.iter().map(|code| format!("`{}`: {}", code.name(), code.hint())).collect();
    let schema = reference("schemas", error_schema(operation));
    json!({ "description": told.join("\n\n"), "content": { media(operation): { "schema": schema } } })
}
