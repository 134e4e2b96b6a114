//! Graphs: put, look at, list, trigger.

use super::definitions::{all, put as put_definition};
use super::place::Place;
use super::reply::{Document, bad, damaged, fields, missing};
use super::secrets::seal;
use crate::api_error::ApiError;
use crate::app::App;
use crate::response::JsonResponse;
use axum::extract::State;
use axum::http::StatusCode;
use redrive_engine::RunRequest;
use redrive_exosphere::{
    GRAPH, GraphDefinition, Node, RUN, Template, check, graph_key, node_key, read_template, read_trigger,
    registered_errors,
};
use redrive_ojs::time::rfc3339;
use redrive_store::{Blob, Run};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// `PUT graph/{graph}`: it is validated at once, and stored if it holds together.
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    place: Place,
    Document(body): Document,
) -> Result<JsonResponse, ApiError> {
    let (template, secrets) = read_template(&body).map_err(|errors| fields(&errors))?;
    let reasons = check(&template);
    if !reasons.is_empty() {
        return Err(bad(format!("Error validating graph template: {}", reasons.join("; "))));
    }
    let registered = registered(&app, &template).await?;
    let errors = registered_errors(&template, &place.namespace, secrets.keys().map(String::as_str), &registered);
    let secrets = seal(&app, &place, &secrets)?;
    let mut definition = GraphDefinition::new(&place.namespace, &place.graph, template);
    (definition.secrets, definition.errors) = (secrets, errors);
    let run = put_definition(&app.engine, GRAPH, graph_key(&place.namespace, &place.graph), &definition).await?;
    let definition = GraphDefinition::read(&run.state).map_err(damaged)?;
    Ok(JsonResponse::json(&Value::Object(body_of(&run, &definition))).status(StatusCode::CREATED))
}

/// `GET graph/{graph}`.
pub(crate) async fn get(State(app): State<Arc<App>>, place: Place) -> Result<JsonResponse, ApiError> {
    let (run, definition) = find(&app, &place).await?;
    Ok(JsonResponse::json(&Value::Object(body_of(&run, &definition))))
}

/// `GET graphs/`.
pub(crate) async fn list(State(app): State<Arc<App>>, place: Place) -> Result<JsonResponse, ApiError> {
    let prefix = graph_key(&place.namespace, "");
    let mut templates = Vec::new();
    for run in all(&app.engine, GRAPH, Arc::clone(&prefix)).await? {
        let name = run.key.as_deref().and_then(|key| key.strip_prefix(&*prefix)).unwrap_or_default();
        let definition = GraphDefinition::read(&run.state).map_err(damaged)?;
        let mut shown = body_of(&run, &definition);
        shown.insert("_id".to_owned(), run.id.to_string().into());
        shown.insert("name".to_owned(), name.into());
        shown.insert("namespace".to_owned(), place.namespace.as_str().into());
        templates.push(Value::Object(shown));
    }
    let answer = json!({ "namespace": place.namespace, "count": templates.len(), "templates": templates });
    Ok(JsonResponse::json(&answer))
}

/// `POST graph/{graph}/trigger`: starts a run.
pub(crate) async fn trigger(
    State(app): State<Arc<App>>,
    place: Place,
    Document(body): Document,
) -> Result<JsonResponse, ApiError> {
    let request = read_trigger(&body).map_err(|errors| fields(&errors))?;
    let (_, definition) = find(&app, &place).await?;
    let state = definition.begin(request).map_err(bad)?;
    let state = Blob::from(state.write());
    let run = app.engine.start_run(RunRequest { id: None, program: RUN, state, key: None }).await?;
    Ok(JsonResponse::json(&json!({ "status": "CREATED", "run_id": run.id.to_string() })))
}

pub(super) async fn find(app: &App, place: &Place) -> Result<(Run, GraphDefinition), ApiError> {
    let Place { namespace, graph, .. } = place;
    let run = app.engine.run_of_key(graph_key(namespace, graph)).await?;
    let run = run.ok_or_else(|| missing(format!("Graph template {graph} not found in namespace {namespace}")))?;
    let definition = GraphDefinition::read(&run.state).map_err(damaged)?;
    Ok((run, definition))
}

/// The registered nodes that a graph uses.
async fn registered(app: &App, template: &Template) -> Result<BTreeMap<(String, String), Node>, ApiError> {
    let mut registered = BTreeMap::new();
    for node in &template.nodes {
        let name = (node.namespace.clone(), node.node_name.clone());
        if registered.contains_key(&name) {
            continue;
        }
        if let Some(run) = app.engine.run_of_key(node_key(&node.namespace, &node.node_name)).await? {
            registered.insert(name, Node::read(&run.state).map_err(damaged)?);
        }
    }
    Ok(registered)
}

/// A graph as it is answered. Of secrets only the names are.
fn body_of(run: &Run, definition: &GraphDefinition) -> Map<String, Value> {
    let Template { nodes, retry_policy, store, triggers } = &definition.template;
    let nodes: Vec<Value> = nodes
        .iter()
        .map(|node| {
            json!({
                "node_name": node.node_name,
                "namespace": node.namespace,
                "identifier": node.identifier,
                "inputs": node.inputs,
                "next_nodes": node.next_nodes,
                "unites": node.unites,
            })
        })
        .collect();
    let mut policy = json!({
        "max_retries": 3, "strategy": "EXPONENTIAL", "backoff_factor": 2000, "exponent": 2, "max_delay": null,
    });
    for (name, value) in retry_policy {
        policy[name] = value.clone();
    }
    let triggers: Vec<Value> =
        triggers.iter().map(|expression| json!({ "type": "CRON", "value": { "expression": expression } })).collect();
    let body = json!({
        "nodes": nodes,
        "secrets": definition.secrets.keys().map(|name| (name.clone(), true.into())).collect::<Map<_, _>>(),
        "retry_policy": policy,
        "store_config": store,
        "triggers": triggers,
        "created_at": rfc3339(run.created),
        "updated_at": rfc3339(definition.put_at()),
        "validation_status": if definition.is_valid() { "VALID" } else { "INVALID" },
        "validation_errors": definition.errors,
    });
    match body {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
